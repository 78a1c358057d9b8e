// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/ToolBar.h"

#include "app/document/Document.h"
#include "app/look/Theme.h"
#include "app/views/Card.h"
#include "app/views/ElidedCombo.h"
#include "app/views/Tabs.h"
#include "planner/cluster/Clusters.h"
#include "planner/readers/Readers.h"

#include <QAbstractItemView>
#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QPushButton>
#include <QSignalBlocker>
#include <QToolButton>

namespace shardscope::app {

namespace {

/// Shows the bundled entries and, first, what is open when it is none of them.
void fill(QComboBox* box, const std::vector<planner::ZooEntry>& entries, const QString& current,
          const QString& currentTitle) {
    const QSignalBlocker blocker(box);
    box->clear();
    for (const planner::ZooEntry& entry : entries)
        box->addItem(QString::fromStdString(entry.title), QString::fromStdString(entry.name));
    int index = box->findData(current);
    if (index < 0 && !current.isEmpty()) {
        box->insertItem(0, currentTitle, current);
        index = 0;
    }
    box->setCurrentIndex(index);
}

} // namespace

ToolBar::ToolBar(Document& document, QWidget* parent)
    : QWidget(parent), m_document(document), m_graph(new ElidedCombo(this)), m_cluster(new ElidedCombo(this)),
      m_undo(new QToolButton(this)), m_redo(new QToolButton(this)),
      m_mode(new SegmentedSwitch({tr("Plan"), tr("Run")}, this)), m_save(new QPushButton(tr("Save plan"), this)),
      m_search(new QPushButton(this)), m_reason(new ElidedLabel(this)),
      m_replan(new QPushButton(tr("Re-plan here"), this)), m_elsewhere(new QPushButton(tr("Elsewhere…"), this)),
      m_train(new QPushButton(tr("Train"), this)) {
    setFixedHeight(44);
    m_graph->setMinimumWidth(112);
    m_graph->setMaximumWidth(166);
    m_graph->setMaxVisibleItems(24);
    m_graph->setAccessibleName(tr("Graph"));
    m_graph->setToolTip(tr("The neural network"));
    m_cluster->setMinimumWidth(120);
    m_cluster->setMaximumWidth(260);
    m_cluster->setMaxVisibleItems(24);
    m_cluster->setAccessibleName(tr("Cluster"));
    m_cluster->setToolTip(tr("The devices it is trained on"));
    for (QComboBox* box : {m_graph, m_cluster}) {
        box->setMinimumHeight(28);
        box->view()->setMinimumWidth(240);
    }
    for (QToolButton* button : {m_undo, m_redo}) {
        button->setObjectName("flat");
        button->setIconSize({17, 17});
        button->setFixedSize(30, 28);
    }
    m_undo->setAccessibleName(tr("Undo"));
    m_redo->setAccessibleName(tr("Redo"));
    m_search->setObjectName("search");
    m_search->setText(tr("Search"));
    m_search->setToolTip(tr("Search operators and commands (Ctrl+K)"));
    m_search->setAccessibleName(tr("Search operators and commands"));
    m_search->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
    m_search->setMinimumWidth(100);
    m_search->setMaximumWidth(260);
    m_train->setObjectName("primary");
    m_train->setMinimumHeight(28);
    for (QPushButton* link : {m_replan, m_elsewhere}) {
        link->setObjectName("link");
        link->setCursor(Qt::PointingHandCursor);
        link->setStyleSheet(QStringLiteral("font-size: 11px; min-height: 14px; padding: 0; border: none;"));
    }
    m_elsewhere->setToolTip(tr("Train this plan on another machine over ssh, or in a Slurm cluster"));
    m_reason->setProperty("role", "small");
    m_reason->setAlignment(Qt::AlignRight | Qt::AlignVCenter);

    auto* reason = new QVBoxLayout;
    reason->setSpacing(0);
    reason->setContentsMargins(0, 3, 0, 3);
    reason->addStretch();
    reason->addWidget(m_reason);
    auto* links = new QHBoxLayout;
    links->setSpacing(10);
    links->addStretch();
    links->addWidget(m_replan);
    links->addWidget(m_elsewhere);
    reason->addLayout(links);
    reason->addStretch();

    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(kGap, 0, kGap, 0);
    row->setSpacing(8);
    row->addWidget(m_graph, 3);
    row->addWidget(m_cluster, 4);
    row->addSpacing(2);
    row->addWidget(m_undo);
    row->addWidget(m_redo);
    row->addSpacing(2);
    row->addWidget(m_mode);
    row->addWidget(m_save);
    row->addSpacing(8);
    row->addWidget(m_search, 4);
    row->addLayout(reason, 4);
    row->addWidget(m_train);

    connect(m_graph, &QComboBox::activated, this,
            [this](int index) { m_document.openGraph(m_graph->itemData(index).toString()); });
    connect(m_cluster, &QComboBox::activated, this,
            [this](int index) { m_document.openCluster(m_cluster->itemData(index).toString()); });
    QUndoStack& stack = document.undoStack();
    connect(m_undo, &QToolButton::clicked, &stack, &QUndoStack::undo);
    connect(m_redo, &QToolButton::clicked, &stack, &QUndoStack::redo);
    const auto showUndo = [this, &stack] {
        m_undo->setEnabled(stack.canUndo());
        m_redo->setEnabled(stack.canRedo());
        m_undo->setToolTip(tr("Undo %1 (Ctrl+Z)").arg(stack.undoText()));
        m_redo->setToolTip(tr("Redo %1 (Ctrl+Shift+Z)").arg(stack.redoText()));
    };
    connect(&stack, &QUndoStack::indexChanged, this, showUndo);
    showUndo();
    connect(m_mode, &SegmentedSwitch::currentChanged, this, &ToolBar::modeChosen);
    connect(m_save, &QPushButton::clicked, this, &ToolBar::savePlanRequested);
    connect(m_search, &QPushButton::clicked, this, &ToolBar::paletteRequested);
    connect(m_train, &QPushButton::clicked, this, &ToolBar::trainRequested);
    connect(m_replan, &QPushButton::clicked, this, &ToolBar::replanRequested);
    connect(m_elsewhere, &QPushButton::clicked, this, &ToolBar::elsewhereRequested);
    connect(&document, &Document::choicesChanged, this, &ToolBar::showChoices);
    connect(&document, &Document::openFailed, this, &ToolBar::showChoices);
    setIcons();
    showChoices();
}

void ToolBar::setIcons() {
    const Colors& colors = colorsOf(this);
    m_undo->setIcon(glyphIcon(Glyph::Undo, colors.text));
    m_redo->setIcon(glyphIcon(Glyph::Redo, colors.text));
    m_search->setIcon(glyphIcon(Glyph::Search, colors.secondary));
}

void ToolBar::changeEvent(QEvent* event) {
    if (event->type() == QEvent::PaletteChange)
        setIcons();
    QWidget::changeEvent(event);
}

void ToolBar::showChoices() {
    const Choices& choices = m_document.choices();
    fill(m_graph, planner::bundledGraphs(), QString::fromStdString(choices.graphArgument),
         choices.graph ? QString::fromStdString(choices.graph->title) : QString());
    std::vector<planner::ZooEntry> clusters = planner::bundledClusters();
    clusters.push_back({"local", tr("This machine").toStdString(), {}});
    fill(m_cluster, clusters, QString::fromStdString(choices.clusterArgument),
         QString::fromStdString(choices.cluster.title));
    m_graph->setPlaceholderText(tr("Choose a graph"));
    m_cluster->setPlaceholderText(tr("Choose a cluster"));
    m_save->setEnabled(choices.isComplete());
    m_cluster->setEnabled(choices.graph != nullptr);
}

void ToolBar::setTrainCheck(const TrainCheck& check, bool isRunning) {
    m_train->setText(isRunning ? tr("Training") : check.buttonText);
    m_train->setEnabled(check.isPossible() && !isRunning);
    m_train->setToolTip(check.reason);
    m_train->setAccessibleDescription(check.reason);
    const bool showReason = !check.isPossible() && !isRunning && m_document.isOpen();
    m_reason->setVisible(showReason);
    m_reason->setText(check.reason);
    m_replan->setVisible(showReason && check.canReplan);
    m_elsewhere->setVisible(showReason && check.isElsewhere);
}

void ToolBar::setMode(int mode) {
    m_mode->setCurrent(mode);
}

void ToolBar::paintEvent(QPaintEvent*) {
    const Colors& colors = colorsOf(this);
    QPainter painter(this);
    painter.fillRect(rect(), colors.card);
    painter.setPen(colors.line);
    painter.drawLine(0, height() - 1, width(), height() - 1);
}

} // namespace shardscope::app
