// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/SetupPanel.h"

#include "app/document/Document.h"
#include "app/look/Theme.h"
#include "app/look/Units.h"
#include "app/work/Planning.h"

#include <QCheckBox>
#include <QEvent>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>

namespace shardscope::app {

namespace {

constexpr int kWidth = 232;

} // namespace

FactRows::FactRows(QWidget* parent) : QWidget(parent), m_grid(new QGridLayout(this)) {
    m_grid->setContentsMargins(0, 0, 0, 0);
    m_grid->setHorizontalSpacing(8);
    m_grid->setVerticalSpacing(3);
    m_grid->setColumnStretch(1, 1);
}

void FactRows::setFacts(const std::vector<Fact>& facts) {
    if (facts == m_facts)
        return;
    m_facts = facts;
    while (m_grid->count() > 0) {
        QLayoutItem* item = m_grid->takeAt(0);
        delete item->widget();
        delete item;
    }
    int row = 0;
    for (const Fact& fact : facts) {
        auto* name = makeLabel(fact.name, "secondary", this);
        auto* value = makeLabel(fact.value, fact.isStrong ? "value" : "body", this);
        value->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
        value->setTextInteractionFlags(Qt::TextSelectableByMouse);
        value->setAccessibleName(fact.name + ' ' + fact.value);
        name->setToolTip(fact.hint);
        value->setToolTip(fact.hint);
        m_grid->addWidget(name, row, 0);
        m_grid->addWidget(value, row, 1);
        ++row;
    }
}

SetupPanel::SetupPanel(Document& document, QWidget* parent)
    : QWidget(parent), m_document(document), m_graphFacts(new FactRows(this)),
      m_graphNotes(makeLabel({}, "small", this)), m_clusterFacts(new FactRows(this)),
      m_clusterNotes(makeLabel({}, "small", this)) {
    setFixedWidth(kWidth);
    const auto link = [this](const QString& text, const QString& hint, auto signal) {
        auto* button = new QPushButton(text, this);
        button->setObjectName("link");
        button->setToolTip(hint);
        button->setAccessibleName(hint);
        button->setCursor(Qt::PointingHandCursor);
        connect(button, &QPushButton::clicked, this, signal);
        return button;
    };
    auto* graph = new Card(tr("Graph"), this);
    graph->header()->addStretch();
    graph->header()->addWidget(link(tr("open"), tr("Open a graph folder or file"), &SetupPanel::openGraphRequested));
    graph->body()->addWidget(m_graphFacts);
    graph->body()->addSpacing(4);
    graph->body()->addWidget(m_graphNotes);
    m_graphNotes->setWordWrap(true);
    auto* cluster = new Card(tr("Cluster"), this);
    cluster->header()->addStretch();
    m_measure =
        link(tr("measure"), tr("Measure this machine's rates, about half a minute"), &SetupPanel::measureRequested);
    cluster->header()->addWidget(m_measure);
    cluster->header()->addWidget(link(tr("open"), tr("Open a cluster file"), &SetupPanel::openClusterRequested));
    cluster->body()->addWidget(m_clusterFacts);
    cluster->body()->addSpacing(4);
    cluster->body()->addWidget(m_clusterNotes);
    m_clusterNotes->setWordWrap(true);
    auto* training = new Card(tr("Training"), this);
    buildTraining(training);
    training->body()->addStretch(1);

    auto* column = new QWidget(this);
    column->setObjectName("scrolled");
    auto* cards = new QVBoxLayout(column);
    cards->setContentsMargins(0, 0, 0, 0);
    cards->setSpacing(kGap);
    cards->addWidget(graph);
    cards->addWidget(cluster);
    cards->addWidget(training, 1);
    auto* scroll = new QScrollArea(this);
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    scroll->setVerticalScrollBarPolicy(Qt::ScrollBarAsNeeded);
    scroll->setWidget(column);
    scroll->viewport()->setAutoFillBackground(false);
    // In a low window the bar stands beside the cards, not on them.
    const QScrollBar* bar = scroll->verticalScrollBar();
    connect(bar, &QScrollBar::rangeChanged, this, [this, cards, bar](int, int maximum) {
        constexpr int kBeside = 3;
        cards->setContentsMargins(0, 0, maximum > 0 ? kBeside : 0, 0);
        setFixedWidth(kWidth + (maximum > 0 ? kBeside + bar->sizeHint().width() : 0));
    });
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(scroll);

    const auto all = [this] {
        showGraph();
        showCluster();
        showTraining();
    };
    connect(&document, &Document::choicesChanged, this, all);
    connect(&document, &Document::answered, this, &SetupPanel::showTraining);
    all();
}

void SetupPanel::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        showTraining(); // the arrows are drawn in the accent colour
}

void SetupPanel::showGraph() {
    const auto& graph = m_document.choices().graph;
    if (!graph)
        return;
    const auto parameters = graph->countParameters();
    std::vector<FactRows::Fact> facts{
        {tr("Parameters"), countText(parameters.unique), tr("Unique; tied tensors are counted once"), true}};
    if (parameters.active > 0 && parameters.active != parameters.unique)
        facts.push_back({tr("Active"), countText(parameters.active), tr("Used for one token"), false});
    if (const int blocks = graph->blockCount(); blocks > 0) {
        std::int64_t inBlocks = 0;
        for (const contract::Operator& op : graph->operators)
            inBlocks += op.block >= 0 ? 1 : 0;
        facts.push_back({tr("Blocks"),
                         inBlocks % blocks == 0 ? tr("%1 × %2 operators").arg(blocks).arg(inBlocks / blocks)
                                                : QString::number(blocks),
                         {},
                         false});
    } else {
        facts.push_back({tr("Operators"), QString::number(graph->operators.size()), {}, false});
    }
    facts.push_back(
        {tr("Family"), QString::fromStdString(graph->family), QString::fromStdString(graph->source), false});
    m_graphFacts->setFacts(facts);
    QString notes;
    if (parameters.duplicated > 0)
        notes = tr("%1 tied parameters are counted once").arg(countText(parameters.duplicated));
    QString all = notes;
    for (const std::string& warning : graph->warnings) {
        all += (all.isEmpty() ? "" : "\n") + QString::fromStdString(warning);
        if (notes.isEmpty())
            notes = QString::fromStdString(warning);
    }
    if (graph->warnings.size() > 1)
        notes = tr("%1 · %2 import notes").arg(notes).arg(graph->warnings.size());
    m_graphNotes->setText(notes);
    m_graphNotes->setToolTip(all);
    m_graphNotes->setVisible(!notes.isEmpty());
}

void SetupPanel::showCluster() {
    const contract::Cluster& cluster = m_document.choices().cluster;
    if (cluster.name.empty())
        return;
    m_measure->setVisible(cluster.isCpu);
    QString reserve;
    bool isMeasured = !cluster.reserve.empty();
    for (const contract::ReserveLine& line : cluster.reserve) {
        reserve += (reserve.isEmpty() ? "" : "\n") + tr("%1: %2, %3")
                                                         .arg(QString::fromStdString(line.what), bytesText(line.bytes),
                                                              QString::fromStdString(line.source));
        isMeasured = isMeasured && line.source == "measured";
    }
    const bool isBf16 = cluster.device.flopsBf16 > 0;
    std::vector<FactRows::Fact> facts{
        {tr("Devices"),
         cluster.nodes > 1 ? tr("%1 × %2").arg(cluster.nodes).arg(cluster.devicesPerNode)
                           : QString::number(cluster.devices()),
         QString::fromStdString(cluster.device.name), false},
        {tr("Memory"), tr("%1 each").arg(bytesText(cluster.device.memoryBytes)), tr("What the driver reports"), true}};
    if (cluster.devices() > 1)
        facts.push_back(
            {cluster.nodes > 1 ? tr("Link inside") : tr("Link"), bandwidthText(cluster.inside.bytesPerSecond),
             tr("Per device and direction, latency %1").arg(secondsText(cluster.inside.latencySeconds)), false});
    if (cluster.nodes > 1)
        facts.push_back({tr("Link between"), bandwidthText(cluster.between.bytesPerSecond),
                         tr("Per device and direction, latency %1").arg(secondsText(cluster.between.latencySeconds)),
                         false});
    facts.push_back({isBf16 ? tr("bf16 matmul") : tr("fp32 matmul"),
                     flopsText(isBf16 ? cluster.device.flopsBf16 : cluster.device.flopsFp32),
                     tr("Sustained, per device"), false});
    facts.push_back({tr("Reserve"),
                     tr("%1 %2").arg(bytesText(cluster.reserveBytes()), isMeasured ? tr("measured") : tr("assumed")),
                     reserve, false});
    m_clusterFacts->setFacts(facts);
    QStringList notes, all;
    if (!cluster.source.empty())
        notes << tr("Rates: %1").arg(QString::fromStdString(cluster.source));
    for (const std::string& warning : cluster.warnings)
        all << QString::fromStdString(warning);
    if (all.size() == 1)
        notes << all.first();
    else if (all.size() > 1)
        notes << tr("%1 import notes").arg(all.size());
    m_clusterNotes->setText(notes.join(QStringLiteral(" · ")));
    m_clusterNotes->setToolTip(all.join('\n'));
    m_clusterNotes->setVisible(!notes.isEmpty());
}

void SetupPanel::setMeasuring(bool running) {
    m_measure->setText(running ? tr("cancel") : tr("measure"));
    m_measure->setToolTip(running ? tr("Measuring this machine; click to cancel")
                                  : tr("Measure this machine's rates, about half a minute"));
    m_measure->setAccessibleName(m_measure->toolTip());
}

void SetupPanel::focusField(int index) {
    if (index >= 0 && index < static_cast<int>(m_fields.size()))
        m_fields[static_cast<std::size_t>(index)].editor->setFocus(Qt::OtherFocusReason);
}

std::vector<QString> SetupPanel::fieldNames() const {
    std::vector<QString> names;
    for (const Field& field : m_fields)
        names.push_back(field.name);
    return names;
}

} // namespace shardscope::app
