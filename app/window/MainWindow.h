// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/document/Document.h"
#include "app/run/Trainer.h"

#include <QMainWindow>

#include <optional>

class QLabel;
class QStackedWidget;

namespace shardscope::app {

class Actions;
class CommandPalette;
class Inspector;
class MessageStrip;
class PlanPage;
class RunPage;
class SetupPanel;
class Theme;
class ToolBar;
class TrainCard;
class VerdictView;
class WelcomePage;

/// Wires document, trainer, views and actions together.
class MainWindow : public QMainWindow {
    Q_OBJECT
public:
    explicit MainWindow(Theme& theme, QWidget* parent = nullptr);
    ~MainWindow() override;

    Document& document() { return m_document; }
    Trainer& trainer() { return m_trainer; }
    PlanPage& planPage() { return *m_planPage; }
    RunPage& runPage() { return *m_runPage; }
    MessageStrip& messages() { return *m_messages; }
    VerdictView& verdictView() { return *m_verdict; }
    TrainCard& trainCard() { return *m_trainCard; }
    /// The session is kept here while it changes, and offered again on the welcome page; empty turns it off.
    void setAutosavePath(const QString& path);

    void showMode(int mode); ///< 0 plan, 1 run
    void openPathByDialog(bool folder);
    void saveSessionByDialog(bool askAlways);
    void savePlanByDialog();
    void attachByDialog();
    void openPalette();
    void openTrainCard();
    void replanHere();
    void addRecent(const QString& path);
    QStringList recentFiles() const;

Q_SIGNALS:
    void recentFilesChanged();
    void modeChanged(int mode);

protected:
    void closeEvent(QCloseEvent* event) override;
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    void build();
    void wire();
    void showPage();
    void showAnswer();
    void showStatus();
    void autosave();
    void placeOverlays();
    void startTraining(const TrainSettings& settings);

    Theme& m_theme;
    Document m_document;
    Trainer m_trainer;
    Actions* m_actions;
    ToolBar* m_toolBar = nullptr;
    MessageStrip* m_messages = nullptr;
    VerdictView* m_verdict = nullptr;
    SetupPanel* m_setup = nullptr;
    PlanPage* m_planPage = nullptr;
    Inspector* m_inspector = nullptr;
    RunPage* m_runPage = nullptr;
    WelcomePage* m_welcome = nullptr;
    QStackedWidget* m_pages = nullptr;
    TrainCard* m_trainCard = nullptr;
    CommandPalette* m_palette = nullptr;
    QLabel* m_proof = nullptr;
    QLabel* m_activity = nullptr;
    QString m_autosavePath;
    QString m_openingPath;
    bool m_mayClose = false;
    bool m_trainWhenAnswered = false;
};

} // namespace shardscope::app
