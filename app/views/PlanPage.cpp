// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/PlanPage.h"

#include "app/document/Document.h"
#include "app/document/Verdict.h"
#include "app/look/Theme.h"
#include "app/look/Units.h"
#include "app/tables/OperatorTable.h"
#include "app/views/BudgetField.h"
#include "app/views/Card.h"
#include "app/views/DataTable.h"
#include "app/views/FrontierView.h"
#include "app/views/Legend.h"
#include "app/views/OperatorMap.h"
#include "app/views/PlanTabs.h"
#include "app/views/RemediesView.h"
#include "app/views/Tabs.h"
#include "app/work/Planning.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSortFilterProxyModel>
#include <QStackedWidget>
#include <QVBoxLayout>

#include <cmath>

namespace shardscope::app {

PlanPage::PlanPage(Document& document, QWidget* parent)
    : QWidget(parent), m_document(document), m_map(new OperatorMap(this)), m_operatorTable(new OperatorTable(this)),
      m_frontier(new FrontierView(this)), m_tabs(new PlanTabs(document, this)) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(kGap);
    column->addWidget(buildMap(), 23);
    column->addWidget(buildBudget(), 19);
    column->addWidget(m_tabs, 17);
    connectMap();
    connect(&document, &Document::answered, this, &PlanPage::showAnswer);
    connect(&document, &Document::selectionChanged, this, [this] { m_map->setSelection(m_document.selection()); });
    connect(&document, &Document::choicesChanged, this, [this] {
        m_budget->setBytes(m_document.choices().budget());
        showFrontier();
    });
    connect(&document, &Document::surroundingsChanged, this, &PlanPage::showFrontier);
    connect(&document, &Document::savedPlansChanged, this, &PlanPage::showFrontier);
}

QWidget* PlanPage::buildMap() {
    m_mapCard = new Card(tr("Operators"), this);
    m_mapCard->setMinimumHeight(166);
    m_legend = new Legend(m_mapCard);
    m_mapCard->header()->addSpacing(8);
    m_mapCard->header()->addWidget(m_legend, 1);
    auto* table = new QPushButton(tr("table"), m_mapCard);
    table->setObjectName("link");
    table->setCursor(Qt::PointingHandCursor);
    table->setToolTip(tr("The same numbers as a table (Ctrl+T)"));
    connect(table, &QPushButton::clicked, this, [this] { showTableTwin(!isTableTwinShown()); });
    connect(this, &PlanPage::tableTwinShown, table,
            [table](bool shown) { table->setText(shown ? tr("map") : tr("table")); });
    m_mapCard->header()->addWidget(table);
    m_mapPages = new QStackedWidget(m_mapCard);
    m_mapPages->addWidget(m_map);

    m_twin = new QWidget(m_mapCard);
    auto* filter = new QLineEdit(m_twin);
    filter->setPlaceholderText(tr("Filter by name or placement"));
    filter->setAccessibleName(tr("Filter operators"));
    filter->setClearButtonEnabled(true);
    m_operatorView = new DataTable(m_operatorTable, kSortRole, tr("Operators"), m_twin);
    m_operatorView->horizontalHeader()->setResizeContentsPrecision(40);
    m_operatorView->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
    connect(filter, &QLineEdit::textChanged, m_operatorView, &DataTable::setFilter);
    connect(m_operatorView->selectionModel(), &QItemSelectionModel::selectionChanged, this, [this] {
        std::vector<std::int32_t> operators;
        for (const QModelIndex& row : m_operatorView->selectionModel()->selectedRows())
            operators.push_back(row.data(kOperatorRole).toInt());
        if (!operators.empty())
            m_document.select(std::move(operators));
    });
    auto* twin = new QVBoxLayout(m_twin);
    twin->setContentsMargins(0, 0, 0, 0);
    twin->addWidget(filter);
    twin->addWidget(m_operatorView, 1);
    m_mapPages->addWidget(m_twin);
    m_remedies = new RemediesView(m_mapCard);
    connect(m_remedies, &RemediesView::smallestRequested, this, [this](qint64 bytes) { m_document.setBudget(bytes); });
    connect(m_remedies, &RemediesView::remedyChosen, &m_document, &Document::applyRemedy);
    connect(&m_document, &Document::remediesChanged, this,
            [this] { m_remedies->setAnswer(m_document.answer(), m_document.remedies()); });
    m_mapPages->addWidget(m_remedies);
    m_mapCard->body()->addWidget(m_mapPages);
    return m_mapCard;
}

QWidget* PlanPage::buildGranularity(Card* card) {
    m_granularity = new SegmentedSwitch({tr("operator"), tr("block")}, card, SegmentedSwitch::Size::Small);
    m_granularity->setObjectName("granularity");
    m_granularity->setAccessibleName(tr("Granularity: operator or block"));
    connect(m_granularity, &SegmentedSwitch::currentChanged, this, [this](int index) {
        m_document.setGranularity(index == 1 ? planner::Granularity::Block : planner::Granularity::Operator);
    });
    connect(&m_document, &Document::choicesChanged, this, &PlanPage::showGranularity);
    connect(&m_document, &Document::answered, this, &PlanPage::showGranularity);
    connect(&m_document, &Document::comparisonChanged, this, &PlanPage::showGranularity);
    showGranularity();
    return m_granularity;
}

void PlanPage::showGranularity() {
    const bool isByBlock = m_document.choices().granularity == planner::Granularity::Block;
    m_granularity->setCurrent(isByBlock ? 1 : 0);
    QStringList titles{tr("operator"), tr("block")};
    QString tip = tr("What is placed alike: every operator on its own, or all operators of a block, as one would write "
                     "it by hand");
    const auto answer = m_document.answer();
    const auto comparison = m_document.comparison();
    if (answer && comparison && comparison->generation == answer->generation && comparison->otherGranularity &&
        answer->plan && answer->plan->feasible) {
        const planner::PlanResult& other = *comparison->otherGranularity;
        const double faster = other.samplesPerSecond / answer->plan->samplesPerSecond - 1;
        const QString gain = !other.feasible ? tr("does not fit")
                             : std::abs(faster) < 0.00005
                                 ? tr("as fast")
                                 : signedPercentText(faster, std::abs(faster) < 0.0005 ? 2 : 1);
        QString& title = titles[isByBlock ? 0 : 1];
        title = tr("%1 %2").arg(title, gain);
        if (!other.feasible)
            tip += tr(". Blocks placed alike need %1").arg(gibText(other.smallestFeasibleBytes, 2));
    }
    m_granularity->setTitles(titles);
    m_granularity->parentWidget()
        ->layout()
        ->activate(); // a wider control must not lie over its neighbour until the next event
    m_granularity->setToolTip(tip);
}

QWidget* PlanPage::buildBudget() {
    auto* card = new Card(tr("Memory budget"), this);
    card->setMinimumHeight(150);
    m_budget = new BudgetField(card);
    m_flip = new ElidedLabel(card);
    m_flip->setProperty("role", "secondary");
    m_flip->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    card->header()->addSpacing(4);
    card->header()->addWidget(m_budget);
    card->header()->addSpacing(8);
    card->header()->addWidget(m_flip, 1);
    card->header()->addSpacing(8);
    card->header()->addWidget(buildGranularity(card));
    card->body()->addWidget(m_frontier);
    connect(m_budget, &BudgetField::bytesPicked, this, [this](qint64 bytes) { m_document.setBudget(bytes); });
    connect(m_frontier, &FrontierView::dragStarted, this, [this] {
        m_dragKey = m_document.newMergeKey();
        m_document.setDragging(true);
    });
    connect(m_frontier, &FrontierView::budgetDragged, this,
            [this](qint64 bytes) { m_document.setBudget(bytes, m_dragKey); });
    connect(m_frontier, &FrontierView::dragEnded, this, [this] { m_document.setDragging(false); });
    connect(m_frontier, &FrontierView::budgetPicked, this, [this](qint64 bytes) { m_document.setBudget(bytes); });
    return card;
}

void PlanPage::connectMap() {
    connect(m_map, &OperatorMap::selectionPicked, &m_document, &Document::select);
    connect(m_map, &OperatorMap::placeRequested, &m_document, &Document::placeSelection);
    connect(m_map, &OperatorMap::pinToggled, this, [this] {
        if (m_document.isSelectionPinned()) {
            m_document.unpinSelection();
            return;
        }
        const auto answer = m_document.answer();
        if (answer && answer->plan && answer->plan->feasible && !m_document.selection().empty())
            m_document.placeSelection(
                answer->plan->operators[static_cast<std::size_t>(m_document.selection().front())].placement);
    });
    connect(m_map, &OperatorMap::compareHeld, this, &PlanPage::setCompared);
    connect(&m_document.planning(), &Planning::allShardedAnswered, this, [this](const AnswerPointer& sharded) {
        if (!m_isComparing)
            return;
        m_map->setRows(mapRows(*sharded->plan), sharded->plan->peakOperator);
        m_map->setNotice(
            tr("everything sharded: %1 %2")
                .arg(rateText(sharded->plan->samplesPerSecond * unitsPerSample(*sharded->plan->request.graph)),
                     rateUnit(*sharded->plan->request.graph)));
    });
}

void PlanPage::setCompared(bool held) {
    m_isComparing = held;
    if (held) {
        m_document.planning().askAllSharded(m_document.answer());
        return;
    }
    m_map->setNotice({});
    showAnswer();
}

void PlanPage::showTableTwin(bool shown) {
    m_isTable = shown;
    if (m_mapPages->currentWidget() != m_remedies)
        m_mapPages->setCurrentIndex(shown ? 1 : 0);
    Q_EMIT tableTwinShown(shown);
}

bool PlanPage::isTableTwinShown() const {
    return m_isTable;
}

void PlanPage::setFolded(bool folded) {
    m_map->setFolded(folded);
}

void PlanPage::showAnswer() {
    const auto answer = m_document.answer();
    const bool isFeasible = answer && answer->plan && answer->plan->feasible;
    if (!m_isComparing) {
        auto rows = isFeasible ? mapRows(*answer->plan) : std::vector<MapRow>();
        m_operatorTable->setRows(rows);
        m_legend->setItems(isFeasible ? mapLegend(rows) : Legend::Items());
        m_map->setRows(std::move(rows), isFeasible ? answer->plan->peakOperator : -1);
        m_map->setSelection(m_document.selection());
    }
    if (answer && answer->plan && !answer->plan->feasible) {
        m_remedies->setAnswer(answer, m_document.remedies());
        m_mapPages->setCurrentWidget(m_remedies);
    } else {
        m_mapPages->setCurrentIndex(m_isTable ? 1 : 0);
    }
    showFrontier();
}

void PlanPage::showFrontier() {
    FrontierPicture picture;
    const Choices& choices = m_document.choices();
    if (!choices.isComplete())
        return;
    picture.cardBytes = choices.cardBytes();
    picture.budgetBytes = choices.budget();
    picture.isCpu = choices.cluster.isCpu;
    picture.owner = memoryOwnerWord(choices.cluster);
    picture.unit = rateUnit(*choices.graph);
    picture.unitsPerSample = unitsPerSample(*choices.graph);
    if (const auto surroundings = m_document.surroundings()) {
        picture.frontier = surroundings->frontier;
        picture.baselines = surroundings->baselines;
        picture.smallestBytes = surroundings->frontier.smallestFeasibleBytes;
        picture.isComplete = surroundings->isFinal;
    }
    const auto answer = m_document.answer();
    if (answer && answer->plan && answer->plan->request.graph) {
        picture.unitsPerSample = unitsPerSample(*answer->plan->request.graph);
        if (answer->plan->feasible) {
            picture.peakBytes = answer->plan->peakBytes;
            picture.samplesPerSecond = answer->plan->samplesPerSecond;
        } else if (picture.smallestBytes == 0) {
            picture.smallestBytes = answer->plan->smallestFeasibleBytes;
        }
    }
    for (const SavedPlan& saved : m_document.savedPlans())
        if (saved.answer)
            picture.saved.push_back(
                {saved.name, saved.answer->plan->peakBytes, saved.answer->plan->samplesPerSecond, true});
    m_frontier->setPicture(std::move(picture));
    showFlip();
}

void PlanPage::showFlip() {
    const auto surroundings = m_document.surroundings();
    if (!surroundings || surroundings->frontier.points.empty()) {
        m_flip->setText(surroundings ? QString() : tr("computing the frontier"));
        return;
    }
    const std::int64_t budget = m_document.choices().budget();
    const auto* here = frontierPointAt(surroundings->frontier, budget);
    const auto flip = nextFlip(flipBudgets(surroundings->frontier), budget);
    if (!here) {
        m_flip->setText(tr("The smallest plan needs %1").arg(gibText(surroundings->frontier.smallestFeasibleBytes, 2)));
        return;
    }
    QStringList parts;
    if (flip) {
        const auto* there = frontierPointAt(surroundings->frontier, *flip);
        QStringList changes;
        const auto change = [&](std::int64_t before, std::int64_t after, const QString& word) {
            if (after != before)
                changes << tr("%1%2 %3").arg(after > before ? "+" : "−").arg(std::abs(after - before)).arg(word);
        };
        change(here->counts.replicate, there->counts.replicate, tr("replicated"));
        change(here->counts.keep, there->counts.keep, tr("kept"));
        change(here->counts.shard, there->counts.shard, tr("sharded"));
        if (changes.isEmpty())
            change(here->counts.split, there->counts.split, tr("split"));
        parts << tr("Next flip %1: %2, %3")
                     .arg(gibText(*flip, 2), changes.join(QStringLiteral(", ")),
                          signedPercentText(there->samplesPerSecond / here->samplesPerSecond - 1));
    } else {
        parts << tr("More memory flips no placement in this range");
    }
    m_flip->setText(parts.join(QStringLiteral(" · ")));
}

} // namespace shardscope::app
