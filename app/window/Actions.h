// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/views/CommandPalette.h"

#include <QHash>
#include <QObject>

#include <vector>

class QAction;
class QMenu;

namespace shardscope::app {

class MainWindow;
class Theme;

/// The menus, their shortcuts, and the same commands for the palette.
class Actions : public QObject {
    Q_OBJECT
public:
    Actions(MainWindow& window, Theme& theme);
    /// Every command, then every operator.
    std::vector<CommandPalette::Entry> entries() const;

private:
    QAction* add(QMenu* menu, const QString& text, const QKeySequence& keys, const std::function<void()>& act);
    void buildFile();
    void buildExport(QMenu* menu);
    void buildEdit();
    void buildView();
    void buildPlan();
    void buildRun();
    void buildHelp();
    void fillRecent();
    void describeKeys();

    MainWindow& m_window;
    Theme& m_theme;
    QMenu* m_recent = nullptr;
    std::vector<QAction*> m_commands;
    QHash<QAction*, QString> m_paletteNames; ///< where the menu's text alone does not say it
};

} // namespace shardscope::app
