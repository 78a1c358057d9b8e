// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/Actions.h"

#include "app/look/Theme.h"
#include "app/views/HelpPage.h"
#include "app/views/MessageStrip.h"
#include "app/views/OperatorMap.h"
#include "app/views/PlanPage.h"
#include "app/views/PlanTabs.h"
#include "app/views/SetupPanel.h"
#include "app/window/MainWindow.h"
#include "planner/cluster/Clusters.h"
#include "planner/readers/Readers.h"

#include <QActionGroup>
#include <QApplication>
#include <QFileInfo>
#include <QMenu>
#include <QMenuBar>
#include <QTimer>

namespace shardscope::app {

Actions::Actions(MainWindow& window, Theme& theme) : QObject(&window), m_window(window), m_theme(theme) {
    buildFile();
    buildEdit();
    buildView();
    buildPlan();
    buildRun();
    buildHelp();
    describeKeys();
}

QAction* Actions::add(QMenu* menu, const QString& text, const QKeySequence& keys, const std::function<void()>& act) {
    QAction* action = menu->addAction(text);
    action->setShortcut(keys);
    connect(action, &QAction::triggered, this, act);
    m_commands.push_back(action);
    return action;
}

void Actions::buildFile() {
    QMenu* menu = m_window.menuBar()->addMenu(tr("&File"));
    add(menu, tr("&Open folder…"), QKeySequence::Open, [this] { m_window.openPathByDialog(true); });
    add(menu, tr("Open &file…"), QKeySequence(tr("Ctrl+Shift+O")), [this] { m_window.openPathByDialog(false); });
    m_recent = menu->addMenu(tr("Open &recent"));
    connect(&m_window, &MainWindow::recentFilesChanged, this, &Actions::fillRecent);
    fillRecent();
    menu->addSeparator();
    add(menu, tr("&Save session"), QKeySequence::Save, [this] { m_window.saveSessionByDialog(false); });
    add(menu, tr("Save session &as…"), QKeySequence::SaveAs, [this] { m_window.saveSessionByDialog(true); });
    add(menu, tr("Save &plan…"), QKeySequence(tr("Ctrl+Shift+P")), [this] { m_window.savePlanByDialog(); });
    buildExport(menu->addMenu(tr("&Export")));
    menu->addSeparator();
    add(menu, tr("A&ttach to run…"), {}, [this] { m_window.attachByDialog(); });
    add(menu, tr("&Close session"), QKeySequence::Close, [this] { m_window.document().close(); });
    add(menu, tr("&Quit"), QKeySequence::Quit, [this] { m_window.close(); });
}

void Actions::buildExport(QMenu* menu) {
    // Two keys in a row: Ctrl+E, then a letter of the view.
    constexpr std::pair<ViewKind, char> kKeys[] = {
        {ViewKind::Map, 'M'},       {ViewKind::Frontier, 'F'},       {ViewKind::Ledger, 'B'},
        {ViewKind::Timeline, 'T'},  {ViewKind::MemoryOverTime, 'O'}, {ViewKind::Communication, 'C'},
        {ViewKind::Plans, 'P'},     {ViewKind::Difference, 'D'},     {ViewKind::Loss, 'L'},
        {ViewKind::RunMemory, 'U'}, {ViewKind::Workers, 'W'},        {ViewKind::Log, 'G'}};
    for (const auto& [view, key] : kKeys) {
        if (view == ViewKind::Loss)
            menu->addSeparator();
        QAction* action = add(menu, tr("%1…").arg(viewTitle(view)), QKeySequence(QStringLiteral("Ctrl+E, %1").arg(key)),
                              [this, kind = view] { m_window.exportByDialog(kind); });
        m_paletteNames[action] = tr("Export: %1").arg(viewTitle(view));
    }
    menu->addSeparator();
    add(menu, tr("&Report as PDF…"), QKeySequence(tr("Ctrl+E, R")), [this] { m_window.exportByDialog(std::nullopt); });
    QAction* everything = add(menu, tr("&Everything into a folder…"), QKeySequence(tr("Ctrl+E, E")),
                              [this] { m_window.exportEverythingByDialog(); });
    m_paletteNames[everything] = tr("Export everything into a folder");
    add(menu, tr("&Cancel the export"), QKeySequence(tr("Ctrl+E, X")), [this] { m_window.exporting().cancel(); });
}

void Actions::fillRecent() {
    m_recent->clear();
    for (const QString& file : m_window.recentFiles()) {
        QAction* action = m_recent->addAction(QFileInfo(file).fileName());
        action->setToolTip(file);
        connect(action, &QAction::triggered, this, [this, file] { m_window.document().openPath(file); });
    }
    m_recent->setEnabled(!m_recent->isEmpty());
}

void Actions::buildEdit() {
    QMenu* menu = m_window.menuBar()->addMenu(tr("&Edit"));
    QUndoStack& stack = m_window.document().undoStack();
    QAction* undo = stack.createUndoAction(this, tr("&Undo"));
    undo->setShortcut(QKeySequence::Undo);
    menu->addAction(undo);
    QAction* redo = stack.createRedoAction(this, tr("&Redo"));
    redo->setShortcut(QKeySequence::Redo);
    menu->addAction(redo);
    menu->addSeparator();
    add(menu, tr("&Paste an out-of-memory message"), QKeySequence::Paste, [this] { m_window.pasteOom(); });
    menu->addSeparator();
    add(menu, tr("&Find operator or command"), QKeySequence(tr("Ctrl+K")), [this] { m_window.openPalette(); });
}

void Actions::buildView() {
    QMenu* menu = m_window.menuBar()->addMenu(tr("&View"));
    auto* group = new QActionGroup(this);
    const std::pair<QString, Lightness> choices[] = {{tr("Lightness of the &system"), Lightness::System},
                                                     {tr("&Light"), Lightness::Light},
                                                     {tr("&Dark"), Lightness::Dark}};
    for (const auto& [text, lightness] : choices) {
        QAction* action = add(menu, text, {}, [this, value = lightness] { m_theme.choose(value); });
        action->setCheckable(true);
        action->setChecked(m_theme.chosen() == lightness);
        group->addAction(action);
        connect(&m_theme, &Theme::changed, action,
                [this, action, value = lightness] { action->setChecked(m_theme.chosen() == value); });
    }
    menu->addSeparator();
    QAction* fold = add(menu, tr("&Fold equal blocks"), QKeySequence(tr("Ctrl+Shift+F")), [] {});
    fold->setCheckable(true);
    fold->setChecked(true);
    connect(fold, &QAction::toggled, this, [this](bool on) { m_window.planPage().setFolded(on); });
    add(menu, tr("Operators as a &table"), QKeySequence(tr("Ctrl+T")),
        [this] { m_window.planPage().showTableTwin(!m_window.planPage().isTableTwinShown()); });
    add(menu, tr("Fit the &map"), QKeySequence(tr("Ctrl+0")), [this] { m_window.planPage().map().fit(); });
    menu->addSeparator();
    const QString tabs[] = {tr("T&imeline"), tr("Memory &over time"), tr("&Communication"), tr("&Plans"),
                            tr("Diff&erence")};
    for (int i = 0; i < static_cast<int>(std::size(tabs)); ++i)
        add(menu, tabs[i], QKeySequence(QStringLiteral("Alt+%1").arg(i + 1)), [this, i] {
            m_window.showMode(0);
            m_window.planPage().tabs().showTab(i);
        });
}

void Actions::buildPlan() {
    QMenu* menu = m_window.menuBar()->addMenu(tr("&Plan"));
    add(menu, tr("Show the &plan"), QKeySequence(tr("Ctrl+1")), [this] { m_window.showMode(0); });
    add(menu, tr("&Keep this plan for comparison"), QKeySequence(tr("Ctrl+D")),
        [this] { m_window.document().savePlan(); });
    add(menu, tr("Use the whole &device"), {},
        [this] { m_window.document().setBudget(m_window.document().choices().cardBytes()); });
    QAction* byBlock = add(menu, tr("Place &blocks alike"), QKeySequence(tr("Ctrl+B")), [] {});
    byBlock->setCheckable(true);
    connect(byBlock, &QAction::triggered, this, [this](bool on) {
        m_window.document().setGranularity(on ? planner::Granularity::Block : planner::Granularity::Operator);
    });
    connect(&m_window.document(), &Document::choicesChanged, byBlock, [this, byBlock] {
        byBlock->setChecked(m_window.document().choices().granularity == planner::Granularity::Block);
    });
    add(menu, tr("&Unpin everything"), {}, [this] {
        m_window.document().change(tr("Unpin everything"), [](Choices& choices) {
            choices.pins.clear();
            choices.recomputePins.clear();
        });
    });
    add(menu, tr("Re-plan for this &machine"), {}, [this] { m_window.replanHere(); });
}

void Actions::buildRun() {
    QMenu* menu = m_window.menuBar()->addMenu(tr("&Run"));
    add(menu, tr("Show the &run"), QKeySequence(tr("Ctrl+2")), [this] { m_window.showMode(1); });
    add(menu, tr("&Train…"), QKeySequence(tr("Ctrl+Return")), [this] { m_window.openTrainCard(); });
    add(menu, tr("Train on &another machine…"), QKeySequence(tr("Ctrl+Shift+Return")),
        [this] { m_window.openTrainCardElsewhere(); });
    add(menu, tr("Run a test ste&p"), QKeySequence(tr("Ctrl+Shift+T")), [this] { m_window.runTestStep(); });
    add(menu, tr("&Stop the run"), QKeySequence(tr("Ctrl+.")), [this] { m_window.trainer().stop(); });
    add(menu, tr("R&esume the run"), QKeySequence(tr("Ctrl+R")), [this] { m_window.resumeRun(); });
    add(menu, tr("Re&calibrate from the run"), QKeySequence(tr("Ctrl+Shift+M")), [this] { m_window.recalibrate(); });
    menu->addSeparator();
    QAction* measure =
        add(menu, tr("&Measure this machine"), QKeySequence(tr("Ctrl+M")), [this] { m_window.toggleMeasuring(); });
    connect(&m_window.measuring(), &Measuring::runningChanged, measure, [measure](bool running) {
        measure->setText(running ? tr("Stop &measuring this machine") : tr("&Measure this machine"));
    });
}

void Actions::buildHelp() {
    QMenu* menu = m_window.menuBar()->addMenu(tr("&Help"));
    add(menu, tr("&Using Shardscope"), QKeySequence::HelpContents, [this] { m_window.showHelp(HelpPage::Using); });
    add(menu, tr("&Keys"), QKeySequence(tr("Ctrl+F1")), [this] { m_window.showHelp(HelpPage::Keys); });
    add(menu, tr("&Words"), QKeySequence(tr("Shift+F1")), [this] { m_window.showHelp(HelpPage::Words); });
    add(menu, tr("&Published tables, reproduced"), {}, [this] { m_window.showHelp(HelpPage::Published); });
    menu->addSeparator();
    add(menu, tr("&About Shardscope"), {}, [this] {
        m_window.messages().showMessage(tr("Shardscope %1: plans and runs sharded training. GPL-3.0-or-later. Qt %2.")
                                            .arg(QStringLiteral(SHARDSCOPE_VERSION), QString::fromLatin1(qVersion())));
    });
}

void Actions::describeKeys() {
    std::vector<HelpPage::KeyLine> lines;
    const auto collect = [&lines](const QString& group, const QMenu* menu, const auto& self) -> void {
        for (const QAction* action : menu->actions()) {
            if (action->menu())
                self(group, action->menu(), self);
            else if (!action->shortcut().isEmpty())
                lines.push_back({group, QString(action->text()).remove('&').remove(QChar(0x2026)),
                                 action->shortcut().toString(QKeySequence::NativeText)});
        }
    };
    for (const QAction* menu : m_window.menuBar()->actions())
        collect(QString(menu->text()).remove('&'), menu->menu(), collect);
    const QString map = tr("On the operator map"), frontier = tr("On the frontier"),
                  chart = tr("On the timeline and the memory curve"), all = tr("Everywhere");
    const HelpPage::KeyLine own[] = {
        {map, tr("go to the next operator, with Shift extend the selection"), tr("Left, Right")},
        {map, tr("replicate, keep or shard the selection"), tr("R, K, S")},
        {map, tr("pin or unpin"), tr("P")},
        {map, tr("see everything sharded while held"), tr("Space")},
        {map, tr("show the whole network"), tr("Home")},
        {map, tr("select nothing"), tr("Escape")},
        {frontier, tr("change the budget, with Shift in large steps"), tr("Left, Right")},
        {frontier, tr("go to the next or previous budget at which a placement flips"), tr("Page Up, Page Down")},
        {frontier, tr("the smallest budget, the whole device"), tr("Home, End")},
        {chart, tr("move"), tr("Left, Right")},
        {chart, tr("zoom"), tr("Plus, Minus")},
        {chart, tr("show the whole step"), tr("Home")},
        {all, tr("next or previous control"), tr("Tab, Shift+Tab")},
        {all, tr("close a card or a message"), tr("Escape")}};
    lines.insert(lines.end(), std::begin(own), std::end(own));
    m_window.helpPage().setKeys(lines);
}

std::vector<CommandPalette::Entry> Actions::entries() const {
    std::vector<CommandPalette::Entry> entries;
    for (QAction* action : m_commands) {
        QString name = m_paletteNames.value(action, action->text());
        name.remove('&');
        entries.push_back(
            {name, action->shortcut().toString(QKeySequence::NativeText), [action] { action->trigger(); }});
    }
    const auto& graph = m_window.document().choices().graph;
    if (graph) {
        const auto fields = m_window.setupPanel().fieldNames();
        for (int i = 0; i < static_cast<int>(fields.size()); ++i)
            entries.push_back({tr("Set: %1").arg(fields[static_cast<std::size_t>(i)]), tr("training"), [this, i] {
                                   m_window.showMode(0);
                                   QTimer::singleShot(0, &m_window, [this, i] { m_window.setupPanel().focusField(i); });
                               }});
    }
    for (const planner::ZooEntry& entry : planner::bundledGraphs())
        entries.push_back({tr("Graph: %1").arg(QString::fromStdString(entry.title)), tr("graph"), [this, entry] {
                               m_window.showMode(0);
                               m_window.document().openGraph(QString::fromStdString(entry.name));
                           }});
    if (graph)
        for (const planner::ZooEntry& entry : planner::bundledClusters())
            entries.push_back(
                {tr("Cluster: %1").arg(QString::fromStdString(entry.title)), tr("cluster"), [this, entry] {
                     m_window.showMode(0);
                     m_window.document().openCluster(QString::fromStdString(entry.name));
                 }});
    if (graph)
        for (std::size_t i = 0; i < graph->operators.size(); ++i)
            entries.push_back({QString::fromStdString(graph->operators[i].name), tr("operator"), [this, i] {
                                   m_window.showMode(0);
                                   m_window.document().select({static_cast<std::int32_t>(i)});
                                   // Once the palette is gone, so that R, K, S and Space mean this operator.
                                   QTimer::singleShot(0, &m_window, [this] {
                                       m_window.planPage().map().setFocus(Qt::OtherFocusReason);
                                   });
                               }});
    return entries;
}

} // namespace shardscope::app
