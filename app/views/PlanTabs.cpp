// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/PlanTabs.h"

#include "app/document/Document.h"
#include "app/look/Theme.h"
#include "app/tables/OperatorTable.h"
#include "app/tables/PlansTable.h"
#include "app/views/DataTable.h"
#include "app/views/Legend.h"
#include "app/views/MemoryView.h"
#include "app/views/Tabs.h"
#include "app/views/TimelineView.h"
#include "app/views/WaterfallView.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QShortcut>
#include <QSignalBlocker>
#include <QSortFilterProxyModel>
#include <QStackedWidget>

namespace shardscope::app {

PlanTabs::PlanTabs(Document& document, QWidget* parent)
    : Card({}, parent), m_document(document), m_tabs(new TabStrip(this)), m_pages(new QStackedWidget(this)),
      m_communicationTable(new CommunicationTable(this)), m_plansTable(new PlansTable(this)) {
    setMinimumHeight(128);
    layout()->setContentsMargins(kCardMargin, 2, kCardMargin, 8);
    static_cast<QVBoxLayout*>(layout())->setSpacing(0);
    for (const QString& title :
         {tr("Timeline"), tr("Memory over time"), tr("Communication"), tr("Plans"), tr("Difference")})
        m_tabs->addTab(title);
    m_pages->addWidget(buildTimeline());
    m_pages->addWidget(buildMemory());
    buildTables();
    m_pages->addWidget(m_communicationView);
    m_pages->addWidget(m_plansView);
    m_pages->addWidget(buildDifference());
    body()->addWidget(m_tabs);
    body()->addWidget(m_pages, 1);

    connect(m_tabs, &TabStrip::currentChanged, this, [this](int index) {
        m_pages->setCurrentIndex(index);
        showAnswer();
    });
    connect(&document, &Document::answered, this, &PlanTabs::showAnswer);
    connect(&document, &Document::comparisonChanged, this, &PlanTabs::showPlans);
    connect(&document, &Document::savedPlansChanged, this, &PlanTabs::showPlans);
    connect(&document, &Document::selectionChanged, this, [this] { m_timeline->setSelection(m_document.selection()); });
    connect(&m_simulating, &Simulating::simulated, this, [this](const StepPicturePointer& picture) {
        showPicture(picture);
        m_memoryLegend->setItems(
            [present = m_memory->present()](const Colors& colors) { return memoryLegend(present, colors); });
        showNote();
    });
    connect(&m_simulating, &Simulating::compared, this, [this](const StepComparisonPointer& comparison) {
        m_waterfall->setComparison(comparison);
        showNote();
    });
}

QWidget* PlanTabs::buildTimeline() {
    auto* page = new QWidget(this);
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(0, 4, 0, 0);
    column->setSpacing(0);
    m_timeline = new TimelineView(page);
    auto* legend = new Legend(page);
    legend->setItems(timelineLegend);
    connect(m_timeline, &TimelineView::selectionPicked, &m_document, &Document::select);
    column->addWidget(legend);
    column->addWidget(m_timeline, 1);
    return page;
}

QWidget* PlanTabs::buildMemory() {
    auto* page = new QWidget(this);
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(0, 4, 0, 0);
    column->setSpacing(2);
    m_memory = new MemoryView(page);
    m_memoryLegend = new Legend(page);
    // Both show the same time, so they zoom and move together.
    connect(m_timeline, &TimeChart::windowChanged, m_memory, &TimeChart::setWindow);
    connect(m_memory, &TimeChart::windowChanged, m_timeline, &TimeChart::setWindow);
    column->addWidget(m_memoryLegend);
    column->addWidget(m_memory, 1);
    return page;
}

QWidget* PlanTabs::buildTables() {
    m_communicationView = new DataTable(m_communicationTable, kSortRole, tr("Communication"), this);
    m_plansView = new DataTable(m_plansTable, kSortRole, tr("Plans"), this);
    m_plansView->setSortingEnabled(false);
    m_plansView->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
    // What a policy is stands in the tooltip of its row; the name takes the room that is left.
    m_plansView->setColumnHidden(PlansTable::What, true);
    m_plansView->horizontalHeader()->setSectionResizeMode(PlansTable::Name, QHeaderView::Stretch);
    connect(m_communicationView, &QTableView::clicked, this,
            [this](const QModelIndex& index) { m_document.select({index.data(kOperatorRole).toInt()}); });
    connect(m_plansView, &QTableView::clicked, this, [this](const QModelIndex& index) {
        const int row = m_plansView->proxy()->mapToSource(index).row();
        const int choice = m_other->findText(m_plansTable->row(row).name);
        if (choice >= 0)
            m_other->setCurrentIndex(choice);
    });
    m_plansView->setEditTriggers(QAbstractItemView::DoubleClicked | QAbstractItemView::EditKeyPressed);
    // Once the editor is gone: the table is built anew then.
    connect(m_plansTable, &PlansTable::measured, &m_document, &Document::setMeasured, Qt::QueuedConnection);
    auto* remove = new QShortcut(QKeySequence::Delete, m_plansView, nullptr, nullptr, Qt::WidgetShortcut);
    connect(remove, &QShortcut::activated, this, [this] {
        const QModelIndex index = m_plansView->proxy()->mapToSource(m_plansView->currentIndex());
        if (index.isValid())
            m_document.removeSavedPlan(m_plansTable->row(index.row()).saved);
    });
    connect(m_plansView, &QTableView::doubleClicked, this, [this](const QModelIndex& index) {
        if (index.flags() & Qt::ItemIsEditable)
            return;
        const PlansTable::Row& row = m_plansTable->row(m_plansView->proxy()->mapToSource(index).row());
        if (row.peakBytes > 0)
            m_document.setBudget(row.peakBytes);
        else if (row.smallestBytes > 0)
            m_document.setBudget(row.smallestBytes);
    });
    return m_plansView;
}

QWidget* PlanTabs::buildDifference() {
    auto* page = new QWidget(this);
    m_other = new QComboBox(page);
    m_other->setAccessibleName(tr("Plan to compare with"));
    m_other->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    m_other->setToolTip(tr("The plan that this one is compared with"));
    m_waterfall = new WaterfallView(page);
    auto* row = new QHBoxLayout;
    row->setSpacing(8);
    row->addWidget(makeLabel(tr("This plan against"), "secondary", page));
    row->addWidget(m_other);
    row->addStretch(1);
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(0, 6, 0, 0);
    column->setSpacing(2);
    column->addLayout(row);
    column->addWidget(m_waterfall, 1);
    connect(m_other, &QComboBox::currentIndexChanged, this, [this] { compareWhenSeen(); });
    return page;
}

void PlanTabs::showTab(int tab) {
    m_tabs->setCurrent(tab);
}

int PlanTabs::currentTab() const {
    return m_tabs->current();
}

void PlanTabs::showAnswer() {
    const auto answer = m_document.answer();
    const bool isFeasible = answer && answer->plan && answer->plan->feasible;
    m_communicationTable->setPlan(isFeasible ? answer->plan : nullptr);
    simulateWhenSeen();
    showPlans();
}

void PlanTabs::simulateWhenSeen() {
    if (m_tabs->current() != TimelineTab && m_tabs->current() != MemoryTab)
        return;
    const auto answer = m_document.answer();
    const auto plan = answer ? answer->plan : nullptr;
    if (plan == m_simulatedPlan)
        return;
    m_simulatedPlan = plan;
    m_simulating.simulate(plan);
    if (!m_simulating.isSimulating()) {
        m_timeline->setPicture(nullptr);
        m_memory->setPicture(nullptr);
        return;
    }
    m_timeline->setBusy(true);
    m_memory->setBusy(true);
}

void PlanTabs::setMeasured(const RunReviewPointer& review) {
    m_measured = review;
    if (const StepPicturePointer picture = m_timeline->picture()) {
        showPicture(picture);
        showNote();
    }
}

void PlanTabs::showPicture(const StepPicturePointer& picture) {
    const bool isSame = m_measured && picture && picture->error.isEmpty() && isPlanOf(*m_measured, *picture->plan);
    const RunReviewPointer measured = isSame ? m_measured : nullptr;
    StepPicturePointer shown = picture;
    if (picture && picture->measured != measured) {
        auto other = std::make_shared<StepPicture>(*picture);
        other->measured = measured;
        shown = other;
    }
    m_timeline->setPicture(shown);
    m_memory->setPicture(shown);
}

void PlanTabs::showPlans() {
    m_plansTable->setDocument(m_document);
    for (const auto column : {PlansTable::MeasuredStep, PlansTable::MeasuredPeak})
        m_plansView->setColumnHidden(column, m_document.savedPlans().empty());
    // The same plan stays chosen as long as it exists.
    const QString chosen = m_other->currentText();
    QStringList names;
    for (int i = 1; i < m_plansTable->rowCount(); ++i)
        if (m_plansTable->row(i).plan)
            names << m_plansTable->row(i).name;
    {
        const QSignalBlocker blocker(m_other);
        m_other->clear();
        m_other->addItems(names);
        const QString wanted = names.contains(chosen) ? chosen : QStringLiteral("FSDP");
        m_other->setCurrentIndex(std::max<int>(0, static_cast<int>(names.indexOf(wanted))));
    }
    m_other->setEnabled(!names.isEmpty());
    compareWhenSeen();
    showNote();
}

void PlanTabs::compareWhenSeen() {
    if (m_tabs->current() != DifferenceTab)
        return;
    const auto answer = m_document.answer();
    planner::PlanResultPointer other;
    for (int i = 1; i < m_plansTable->rowCount(); ++i)
        if (m_plansTable->row(i).name == m_other->currentText())
            other = m_plansTable->row(i).plan;
    const auto own = answer && answer->plan && answer->plan->feasible ? answer->plan : nullptr;
    if (!own || !other) {
        m_comparedPlans = {};
        m_simulating.compare(nullptr, nullptr, {});
        m_waterfall->setComparison(nullptr);
        return;
    }
    if (m_comparedPlans == std::pair(own, other))
        return;
    m_comparedPlans = {own, other};
    m_simulating.compare(own, other, m_other->currentText());
}

void PlanTabs::showNote() {
    switch (m_tabs->current()) {
    case TimelineTab:
        m_tabs->setNote(m_timeline->summary());
        break;
    case MemoryTab:
        m_tabs->setNote(m_memory->summary());
        break;
    case CommunicationTab:
        m_tabs->setNote(m_communicationTable->summary());
        break;
    case PlansTab:
        m_tabs->setNote(
            tr("each at its own best batch · Ctrl+D keeps this plan · double-click takes its memory as the budget"));
        break;
    default:
        m_tabs->setNote(m_waterfall->sentence());
    }
}

} // namespace shardscope::app
