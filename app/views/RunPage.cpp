// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/RunPage.h"

#include "app/look/Theme.h"
#include "app/look/Units.h"
#include "app/run/Trainer.h"
#include "app/tables/OperatorTable.h"
#include "app/tables/RunTables.h"
#include "app/views/Card.h"
#include "app/views/DataTable.h"
#include "app/views/Legend.h"
#include "app/views/LossChart.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QScrollBar>
#include <QVBoxLayout>

namespace shardscope::app {

RunPage::RunPage(Trainer& trainer, QWidget* parent)
    : QWidget(parent), m_trainer(trainer), m_headline(new QLabel(this)), m_folder(makeLabel({}, "secondary", this)),
      m_progress(new QProgressBar(this)), m_stop(new QPushButton(tr("Stop"), this)),
      m_resume(new QPushButton(tr("Resume"), this)), m_recalibrate(new QPushButton(tr("Recalibrate"), this)),
      m_kill(new QPushButton(tr("kill, as a drill"), this)), m_loss(new LossChart(this)),
      m_memory(new MemoryBars(this)), m_devices(makeLabel({}, "secondary", this)), m_workers(new WorkersTable(this)),
      m_log(new LogTable(this)) {
    auto* head = new Card({}, this);
    head->setFixedHeight(72);
    m_headline->setStyleSheet(QStringLiteral("font-size: 18px; font-weight: 600;"));
    m_headline->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    m_folder->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_folder->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    m_progress->setTextVisible(false);
    m_progress->setAccessibleName(tr("Progress of the run"));
    m_stop->setToolTip(tr("Finishes the step and saves a checkpoint; pressed again it ends at once"));
    connect(m_stop, &QPushButton::clicked, &m_trainer, &Trainer::stop);
    m_resume->setToolTip(tr("Goes on from the newest checkpoint"));
    connect(m_resume, &QPushButton::clicked, this, &RunPage::resumeRequested);
    m_recalibrate->setAccessibleName(tr("Recalibrate from this run"));
    connect(m_recalibrate, &QPushButton::clicked, this, &RunPage::recalibrateRequested);
    setReview(nullptr);
    auto* words = new QVBoxLayout;
    words->setSpacing(3);
    words->addWidget(m_headline);
    words->addWidget(m_folder);
    auto* row = new QHBoxLayout;
    row->setSpacing(16);
    row->addLayout(words, 1);
    m_progress->setFixedWidth(180);
    row->addWidget(m_progress);
    row->addWidget(m_recalibrate);
    row->addWidget(m_resume);
    row->addWidget(m_stop);
    head->body()->addLayout(row);
    head->layout()->setContentsMargins(kCardMargin, 8, kCardMargin, 8);

    auto* loss = new Card(tr("Loss"), this);
    loss->body()->addWidget(m_loss);
    loss->setMinimumHeight(220);
    auto* memory = new Card(tr("Memory on a device, measured over predicted"), this);
    m_memoryLegend = new Legend(memory);
    memory->body()->addWidget(m_memoryLegend);
    memory->body()->addWidget(m_memory, 1);
    memory->setMinimumHeight(220);
    // One above the other: what the run does, and what it takes.
    auto* charts = new QVBoxLayout;
    charts->setSpacing(kGap);
    charts->addWidget(loss, 1);
    charts->addWidget(memory, 1);

    auto* workers = new Card(tr("Workers"), this);
    auto* workersView = new DataTable(m_workers, kSortRole, tr("Workers"), workers);
    // Figures are whole; the device's name takes what is left.
    constexpr std::pair<WorkersTable::Column, int> kWidths[] = {
        {WorkersTable::Rank, 44},      {WorkersTable::Pid, 62},      {WorkersTable::State, 66},
        {WorkersTable::Predicted, 76}, {WorkersTable::Measured, 76}, {WorkersTable::Difference, 74}};
    workersView->horizontalHeader()->setSectionResizeMode(QHeaderView::Fixed);
    workersView->horizontalHeader()->setSectionResizeMode(WorkersTable::DeviceColumn, QHeaderView::Stretch);
    workersView->horizontalHeader()->setMinimumSectionSize(40);
    for (const auto& [column, width] : kWidths)
        workersView->setColumnWidth(column, width);
    workers->body()->addWidget(workersView);
    m_kill->setObjectName("link");
    m_kill->setCursor(Qt::PointingHandCursor);
    m_kill->setToolTip(tr("Ends the selected worker at once, to see that the run recovers"));
    workers->header()->addSpacing(8);
    workers->header()->addWidget(m_devices);
    workers->header()->addStretch();
    workers->header()->addWidget(m_kill);
    const auto selected = [workersView]() -> std::int64_t {
        const QModelIndex index = workersView->currentIndex();
        return index.isValid() ? index.siblingAtColumn(WorkersTable::Pid).data().toLongLong() : 0;
    };
    connect(m_kill, &QPushButton::clicked, this, [this, selected] { m_trainer.killWorker(selected()); });
    auto* log = new Card(tr("Log"), this);
    auto* filter = new QLineEdit(log);
    filter->setPlaceholderText(tr("Filter"));
    filter->setAccessibleName(tr("Filter the log"));
    filter->setClearButtonEnabled(true);
    filter->setMaximumWidth(200);
    auto* levels = new QComboBox(log);
    levels->addItems({tr("All"), tr("Warnings and errors"), tr("Errors")});
    levels->setAccessibleName(tr("Levels of the log"));
    levels->setToolTip(tr("Which levels are shown"));
    auto* atLeast = new LevelFilter(m_log);
    connect(levels, &QComboBox::currentIndexChanged, atLeast, &LevelFilter::setLowest);
    log->header()->addStretch();
    log->header()->addWidget(levels);
    log->header()->addWidget(filter);
    m_logView = new DataTable(atLeast, kSortRole, tr("Log"), log);
    m_logView->horizontalHeader()->setSectionResizeMode(QHeaderView::Fixed);
    m_logView->horizontalHeader()->setSectionResizeMode(LogTable::Text, QHeaderView::Stretch);
    m_logView->horizontalHeader()->setMinimumSectionSize(56);
    m_logView->setColumnWidth(LogTable::Time, 64);
    m_logView->setColumnWidth(LogTable::Who, 62);
    m_logView->setColumnWidth(LogTable::Level, 62);
    m_logView->verticalHeader()->setDefaultSectionSize(21);
    connect(filter, &QLineEdit::textChanged, m_logView, &DataTable::setFilter);
    log->body()->addWidget(m_logView);
    auto* beside = new QVBoxLayout;
    beside->setSpacing(kGap);
    beside->addWidget(workers, 1);
    beside->addWidget(log, 1);
    auto* panes = new QHBoxLayout;
    panes->setSpacing(kGap);
    panes->addLayout(charts, 3);
    panes->addLayout(beside, 2);

    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(kGap);
    column->addWidget(head);
    column->addLayout(panes, 1);

    connect(&trainer, &Trainer::recordChanged, this, &RunPage::refresh);
    connect(&trainer, &Trainer::stateChanged, this, &RunPage::refresh);
    refresh();
}

void RunPage::refresh() {
    showRecord(m_trainer.record());
    const auto state = m_trainer.state();
    if (state == Trainer::State::Idle)
        m_headline->setText(tr("No run yet"));
    m_folder->setText(state == Trainer::State::Idle
                          ? tr("Train starts one from the plan; File > Attach to run follows one that exists")
                          : m_trainer.runDirectory());
    m_stop->setEnabled(m_trainer.isActive());
    m_resume->setVisible(m_trainer.canResume());
    if (m_trainer.canResume())
        m_resume->setText(tr("Resume from step %1").arg(m_trainer.record().checkpoint()->step));
    m_stop->setText(state == Trainer::State::Stopping ? tr("Stop at once") : tr("Stop"));
    m_progress->setVisible(m_trainer.isActive());
    m_kill->setVisible(m_trainer.canKillWorkers());
}

void RunPage::setReview(const RunReviewPointer& review) {
    m_recalibrate->setVisible(review != nullptr);
    if (review)
        m_recalibrate->setToolTip(
            tr("Step %1 computed %2 and communicated %3 beside the prediction. Gives the cluster these rates, so that "
               "plans follow what was measured")
                .arg(review->step)
                .arg(signedPercentText(review->ratio.compute - 1), signedPercentText(review->ratio.communication - 1)));
}

void RunPage::showRecord(const RunRecord& record) {
    m_headline->setText(record.headline());
    m_headline->setToolTip(record.headline());
    m_progress->setMaximum(static_cast<int>(record.stepsAsked()));
    m_progress->setValue(record.steps().empty() ? 0 : static_cast<int>(record.steps().back().step));
    m_loss->setRecord(record);
    m_memory->setWorkers(record.workers());
    m_memoryLegend->setItems(
        [present = m_memory->present()](const Colors& colors) { return memoryLegend(present, colors); });
    m_workers->setWorkers(record.workers());
    m_devices->setText(record.devicesText());
    QScrollBar* bar = m_logView->verticalScrollBar();
    const bool isAtEnd = bar->value() >= bar->maximum() - 2;
    m_log->setLog(record.log());
    if (isAtEnd)
        m_logView->scrollToBottom();
}

} // namespace shardscope::app
