// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/document/Document.h"
#include "app/export/Exporting.h"
#include "app/run/Measuring.h"
#include "app/run/Trainer.h"
#include "app/work/Reviewing.h"

#include <QMainWindow>

#include <optional>

class QLabel;
class QStackedWidget;

namespace shardscope::app {

class Actions;
class CommandPalette;
class HelpPage;
class Inspector;
class MessageStrip;
class OomCard;
class PlanPage;
class RunPage;
class SetupPanel;
class Theme;
class ToolBar;
class TrainCard;
class VerdictView;
class WelcomePage;

/// A cluster file that was written over, and how to take that back.
struct ClusterFileChange {
    QString path;
    QString argument; ///< what opens it
    bool existed = false;
    QByteArray before; ///< its content, if it existed
};

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

    HelpPage& helpPage() { return *m_help; }
    OomCard& oomCard() { return *m_oomCard; }
    SetupPanel& setupPanel() { return *m_setup; }
    CommandPalette& palette() { return *m_palette; }
    Measuring& measuring() { return m_measuring; }
    Actions& actions() { return *m_actions; }

    /// Takes size and lightness as they were left last time, and keeps them when closed.
    void restoreSettings();
    void showMode(int mode); ///< 0 plan, 1 run
    void showHelp(int topic);
    /// Goes on with the ended run; where that was done, with as many steps again.
    void resumeRun();
    /// Starts measuring this machine, or ends that.
    void toggleMeasuring();
    /// Trains one step of the plan shown on this machine, and says what it held beside the prediction.
    void runTestStep();
    /// Gives the run's cluster the rates that its newest traced step had, and plans with them.
    void recalibrate();
    Reviewing& reviewing() { return m_reviewing; }
    /// Lays an out-of-memory message in the clipboard against the plan; says so when there is none.
    void pasteOom();
    void openPathByDialog(bool folder);
    void saveSessionByDialog(bool askAlways);
    void savePlanByDialog();
    void attachByDialog();
    /// What exports show; cheap, everything in it is shared.
    ExportContent exportContent();
    /// Writes one view, or the report, in the format of the path's suffix. Errors come as messages.
    void exportFile(const std::optional<ViewKind>& view, const QString& path, FigureWidth width = FigureWidth::Screen);
    /// Every view that has something to show as picture, drawing and table, and the report.
    void exportEverything(ExportContent content, const QString& folder);
    void exportByDialog(const std::optional<ViewKind>& view);
    void exportEverythingByDialog();
    Exporting& exporting() { return m_exporting; }
    void openPalette();
    void openTrainCard();
    /// The same for other machines, also when this one has not the plan's devices.
    void openTrainCardElsewhere();
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
    void showFailure();
    void showTestStep();
    void showReview(const RunReviewPointer& review);
    void showRecalibrated(const RunReview& review, const ClusterFileChange& change, const QString& usedBefore);
    void autosave();
    void saveNow();
    void saveSettings() const;
    void placeOverlays();
    void showTrainCard(bool isElsewhere);
    void startTraining(const TrainSettings& settings, const RunTarget& target);

    Theme& m_theme;
    Document m_document;
    Trainer m_trainer;
    Exporting m_exporting;
    Measuring m_measuring;
    Reviewing m_reviewing;
    Actions* m_actions;
    ToolBar* m_toolBar = nullptr;
    MessageStrip* m_messages = nullptr;
    VerdictView* m_verdict = nullptr;
    SetupPanel* m_setup = nullptr;
    PlanPage* m_planPage = nullptr;
    Inspector* m_inspector = nullptr;
    RunPage* m_runPage = nullptr;
    HelpPage* m_help = nullptr;
    WelcomePage* m_welcome = nullptr;
    QStackedWidget* m_pages = nullptr;
    TrainCard* m_trainCard = nullptr;
    OomCard* m_oomCard = nullptr;
    CommandPalette* m_palette = nullptr;
    QLabel* m_proof = nullptr;
    QLabel* m_activity = nullptr;
    QString m_autosavePath;
    QString m_openingPath;
    bool m_mayClose = false;
    bool m_isTestStep = false;
    bool m_trainWhenAnswered = false;
    bool m_keepsSettings = false;
    int m_mode = 0;
    LatestWins m_saver;    ///< autosaves
    LatestWins m_writer;   ///< plan files
    LatestWins m_comparer; ///< out-of-memory messages
};

} // namespace shardscope::app
