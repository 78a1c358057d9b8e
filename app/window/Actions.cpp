// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/Actions.h"

#include "app/look/Theme.h"
#include "app/views/MessageStrip.h"
#include "app/views/OperatorMap.h"
#include "app/views/PlanPage.h"
#include "app/window/MainWindow.h"

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
    menu->addSeparator();
    add(menu, tr("A&ttach to run…"), {}, [this] { m_window.attachByDialog(); });
    add(menu, tr("&Close session"), QKeySequence::Close, [this] { m_window.document().close(); });
    add(menu, tr("&Quit"), QKeySequence::Quit, [this] { m_window.close(); });
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
    add(menu, tr("Fit the &map"), {}, [this] { m_window.planPage().map().fit(); });
}

void Actions::buildPlan() {
    QMenu* menu = m_window.menuBar()->addMenu(tr("&Plan"));
    add(menu, tr("Show the &plan"), QKeySequence(tr("Ctrl+1")), [this] { m_window.showMode(0); });
    add(menu, tr("&Keep this plan for comparison"), QKeySequence(tr("Ctrl+D")),
        [this] { m_window.document().savePlan(); });
    add(menu, tr("Use the whole &device"), {},
        [this] { m_window.document().setBudget(m_window.document().choices().cardBytes()); });
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
    add(menu, tr("&Stop the run"), {}, [this] { m_window.trainer().stop(); });
}

void Actions::buildHelp() {
    QMenu* menu = m_window.menuBar()->addMenu(tr("&Help"));
    add(menu, tr("&About Shardscope"), {}, [this] {
        m_window.messages().showMessage(tr("Shardscope %1: plans and runs sharded training. GPL-3.0-or-later. Qt %2.")
                                            .arg(QStringLiteral(SHARDSCOPE_VERSION), QString::fromLatin1(qVersion())));
    });
}

std::vector<CommandPalette::Entry> Actions::entries() const {
    std::vector<CommandPalette::Entry> entries;
    for (QAction* action : m_commands) {
        QString name = action->text();
        name.remove('&');
        entries.push_back(
            {name, action->shortcut().toString(QKeySequence::NativeText), [action] { action->trigger(); }});
    }
    const auto& graph = m_window.document().choices().graph;
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
