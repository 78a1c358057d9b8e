// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/MainWindow.h"

#include "app/document/Verdict.h"
#include "app/look/Theme.h"
#include "app/look/Units.h"
#include "app/run/TrainCheck.h"
#include "app/views/CommandPalette.h"
#include "app/views/HelpPage.h"
#include "app/views/Inspector.h"
#include "app/views/MessageStrip.h"
#include "app/views/OomCard.h"
#include "app/views/OperatorMap.h"
#include "app/views/PlanPage.h"
#include "app/views/RunPage.h"
#include "app/views/SetupPanel.h"
#include "app/views/TrainCard.h"
#include "app/views/VerdictView.h"
#include "app/views/WelcomePage.h"
#include "app/window/Actions.h"
#include "app/window/ToolBar.h"
#include "app/work/Planning.h"

#include <QClipboard>
#include <QCloseEvent>
#include <QDir>
#include <QDropEvent>
#include <QFileInfo>
#include <QLabel>
#include <QMetaObject>
#include <QMimeData>
#include <QScreen>
#include <QStackedWidget>
#include <QStatusBar>
#include <QVBoxLayout>

#include <algorithm>

namespace shardscope::app {

MainWindow::MainWindow(Theme& theme, QWidget* parent) : QMainWindow(parent), m_theme(theme), m_trainer(this) {
    setWindowTitle(tr("Shardscope"));
    setAcceptDrops(true);
    constexpr int kFrame = 40; // the title bar that a window manager adds
    // Not larger than the screen, its panels left aside.
    const QRect screen =
        QGuiApplication::primaryScreen() ? QGuiApplication::primaryScreen()->availableGeometry() : QRect();
    resize(screen.isValid() ? QSize(1440, 900).boundedTo(screen.size() - QSize(0, kFrame)) : QSize(1440, 900));
    setMinimumSize(1000, 640);
    build();
    m_actions = new Actions(*this, theme);
    wire();
    showPage();
    showAnswer();
}

MainWindow::~MainWindow() = default;

void MainWindow::build() {
    auto* page = new QWidget(this);
    page->setObjectName("page");
    m_toolBar = new ToolBar(m_document, page);
    m_messages = new MessageStrip(page);
    m_verdict = new VerdictView(page);
    m_setup = new SetupPanel(m_document, page);
    m_planPage = new PlanPage(m_document, page);
    m_inspector = new Inspector(m_document, page);
    m_runPage = new RunPage(m_trainer, page);
    m_welcome = new WelcomePage(page);
    m_help = new HelpPage(page);

    auto* planning = new QWidget(page);
    auto* columns = new QHBoxLayout;
    columns->setSpacing(kGap);
    columns->addWidget(m_setup);
    columns->addWidget(m_planPage, 1);
    columns->addWidget(m_inspector);
    auto* rows = new QVBoxLayout(planning);
    rows->setContentsMargins(0, 0, 0, 0);
    rows->setSpacing(kGap);
    rows->addWidget(m_verdict);
    rows->addLayout(columns, 1);

    m_pages = new QStackedWidget(page);
    m_pages->addWidget(planning);
    m_pages->addWidget(m_runPage);
    m_pages->addWidget(m_welcome);
    m_pages->addWidget(m_help);
    auto* body = new QVBoxLayout;
    body->setContentsMargins(kGap, kGap, kGap, kGap);
    body->setSpacing(kGap);
    body->addWidget(m_messages);
    body->addWidget(m_pages, 1);
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(m_toolBar);
    column->addLayout(body, 1);
    setCentralWidget(page);
    page->setAccessibleName(tr("Shardscope"));
    page->setFocusPolicy(Qt::ClickFocus);
    page->setFocus();

    m_trainCard = new TrainCard(page);
    m_oomCard = new OomCard(page);
    m_palette = new CommandPalette(page);
    m_proof = new QLabel(this);
    m_activity = new QLabel(this);
    statusBar()->setSizeGripEnabled(false);
    statusBar()->addWidget(m_proof);
    statusBar()->addPermanentWidget(m_activity);
    statusBar()->setContentsMargins(6, 0, 6, 0);
    m_welcome->setRecentFiles(recentFiles());
}

void MainWindow::wire() {
    connect(m_toolBar, &ToolBar::modeChosen, this, &MainWindow::showMode);
    connect(m_toolBar, &ToolBar::savePlanRequested, this, &MainWindow::savePlanByDialog);
    connect(m_toolBar, &ToolBar::paletteRequested, this, &MainWindow::openPalette);
    connect(m_toolBar, &ToolBar::trainRequested, this, &MainWindow::openTrainCard);
    connect(m_toolBar, &ToolBar::replanRequested, this, &MainWindow::replanHere);
    connect(m_toolBar, &ToolBar::elsewhereRequested, this, &MainWindow::openTrainCardElsewhere);
    connect(m_setup, &SetupPanel::openGraphRequested, this, [this] { openPathByDialog(true); });
    connect(m_setup, &SetupPanel::openClusterRequested, this, [this] { openPathByDialog(false); });
    connect(m_setup, &SetupPanel::measureRequested, this, &MainWindow::toggleMeasuring);
    connect(&m_measuring, &Measuring::runningChanged, this, [this](bool running) {
        m_setup->setMeasuring(running);
        showStatus();
    });
    connect(&m_measuring, &Measuring::failed, this,
            [this](const QString& message) { m_messages->showMessage(message); });
    connect(&m_measuring, &Measuring::finished, this, [this] {
        statusBar()->showMessage(tr("This machine is measured"), 8000);
        if (m_document.isOpen() && m_document.choices().clusterArgument == "local")
            m_document.openCluster(QStringLiteral("local"));
    });
    connect(m_oomCard, &OomCard::reserveRequested, this, [this](qint64 bytes) { m_document.reserveMore(bytes); });
    connect(m_oomCard, &OomCard::capacityRequested, this, [this](qint64 bytes) { m_document.setDeviceBytes(bytes); });
    connect(m_help, &HelpPage::closeRequested, this, [this] { showMode(m_mode); });
    connect(m_runPage, &RunPage::resumeRequested, this, &MainWindow::resumeRun);
    connect(m_verdict, &VerdictView::smallestRequested, this, [this](qint64 bytes) { m_document.setBudget(bytes); });
    connect(m_trainCard, &TrainCard::startRequested, this, &MainWindow::startTraining);
    connect(m_welcome, &WelcomePage::openRequested, this, [this] { openPathByDialog(true); });
    connect(m_welcome, &WelcomePage::recentChosen, &m_document, &Document::openPath);
    connect(m_welcome, &WelcomePage::exampleChosen, this,
            [this](const QString& graph, const QString& cluster, bool train) {
                m_trainWhenAnswered = train;
                m_document.open(graph, cluster, 0, train ? 16 : 0);
            });
    connect(&m_document, &Document::openFailed, this, [this](const QString& message) {
        m_trainWhenAnswered = false;
        m_messages->showMessage(message);
    });
    connect(&m_document, &Document::opened, this, [this] {
        if (!m_openingPath.isEmpty())
            addRecent(m_openingPath);
        m_openingPath.clear();
        m_messages->hide();
        showPage();
        autosave();
    });
    connect(&m_document, &Document::choicesChanged, this, &MainWindow::showPage);
    connect(&m_document, &Document::answered, this, &MainWindow::showAnswer);
    connect(&m_document, &Document::comparisonChanged, this, &MainWindow::showAnswer);
    connect(&m_document, &Document::surroundingsChanged, this, &MainWindow::showStatus);
    connect(&m_document.planning(), &Planning::busyChanged, this, &MainWindow::showStatus);
    connect(&m_document.undoStack(), &QUndoStack::indexChanged, this, &MainWindow::autosave);
    connect(&m_document, &Document::savedPlansChanged, this, &MainWindow::autosave);
    connect(&m_trainer, &Trainer::failed, this, [this](const QString& message) { m_messages->showMessage(message); });
    connect(&m_trainer, &Trainer::stateChanged, this, [this] {
        showAnswer();
        if (m_trainer.state() == Trainer::State::Ended) {
            showFailure();
            showTestStep();
        }
        if (m_mayClose && !m_trainer.isActive())
            close();
    });
    connect(&m_trainer, &Trainer::recordChanged, this, [this] {
        showStatus();
        m_reviewing.review(m_trainer.runDirectory(), m_trainer.record());
        if (!m_reviewing.newest()) // of another run
            showReview(nullptr);
    });
    connect(&m_reviewing, &Reviewing::reviewed, this, &MainWindow::showReview);
    connect(m_verdict, &VerdictView::testStepRequested, this, &MainWindow::runTestStep);
    connect(m_runPage, &RunPage::recalibrateRequested, this, &MainWindow::recalibrate);
    connect(&m_exporting, &Exporting::progressed, this, &MainWindow::showStatus);
    connect(&m_exporting, &Exporting::failed, this,
            [this](const QString& message) { m_messages->showMessage(message); });
    connect(&m_exporting, &Exporting::finished, this, [this](const QStringList& paths) {
        statusBar()->showMessage(
            paths.size() == 1 ? tr("Wrote %1").arg(paths.first())
                              : tr("Wrote %1 files to %2").arg(paths.size()).arg(QFileInfo(paths.value(0)).path()),
            8000);
    });
}

void MainWindow::showPage() {
    const bool isRun = m_pages->currentIndex() == 1;
    if (!m_document.isOpen() && !isRun)
        m_pages->setCurrentIndex(2);
    else if (m_document.isOpen() && !isRun)
        m_pages->setCurrentIndex(0);
    const QString title = m_document.isOpen() ? QString::fromStdString(m_document.choices().graph->title) : QString();
    if (!m_document.isOpen())
        showAnswer(); // what was said about the closed plan goes with it
    setWindowTitle(title.isEmpty() ? tr("Shardscope") : tr("%1 – Shardscope").arg(title));
    showStatus();
}

void MainWindow::showMode(int mode) {
    m_mode = mode;
    m_toolBar->setMode(mode);
    m_trainCard->hide();
    m_pages->setCurrentIndex(mode == 1 ? 1 : m_document.isOpen() ? 0 : 2);
    Q_EMIT modeChanged(mode);
}

void MainWindow::showAnswer() {
    const auto answer = m_document.answer();
    m_verdict->setAnswer(answer, m_document.comparison());
    const TrainCheck check = checkTraining(answer);
    m_toolBar->setTrainCheck(check, m_trainer.isActive());
    m_verdict->setCanTest(check.isPossible() && !m_trainer.isActive());
    showStatus();
    // A certified plan can be trained; its proof need not be waited for.
    if (m_trainWhenAnswered && answer && answer->choices == m_document.choicesPointer()) {
        m_trainWhenAnswered = false;
        openTrainCard();
    }
}

void MainWindow::showStatus() {
    const auto answer = m_document.answer();
    QString proof;
    if (m_document.isOpen() && answer && answer->plan)
        proof = tr("%1 · solved in %2").arg(proofText(*answer), secondsText(answer->plan->solveMilliseconds / 1e3));
    m_proof->setText(proof);
    QStringList activity;
    if (m_document.isOpen() && m_document.planning().isBusy())
        activity << (answer && answer->choices == m_document.choicesPointer() ? tr("proving") : tr("planning"));
    if (m_document.isOpen() && answer && answer->planner &&
        (!m_document.surroundings() || !m_document.surroundings()->isFinal))
        activity << tr("computing the frontier");
    if (m_measuring.isRunning())
        activity << tr("measuring this machine");
    if (m_exporting.isBusy())
        activity << m_exporting.progressText();
    if (m_trainer.isActive())
        activity << tr("training: %1").arg(m_trainer.record().headline());
    m_activity->setText(activity.join(QStringLiteral(" · ")));
}

void MainWindow::openPalette() {
    placeOverlays();
    m_palette->open(m_actions->entries());
}

void MainWindow::openTrainCard() {
    showTrainCard(false);
}

void MainWindow::openTrainCardElsewhere() {
    showTrainCard(true);
}

void MainWindow::showTrainCard(bool isElsewhere) {
    const auto answer = m_document.answer();
    const TrainCheck check = checkTraining(answer);
    if (m_trainer.isActive())
        return;
    if (!check.isPossible() && !(isElsewhere && check.isElsewhere)) {
        m_messages->showMessage(check.reason);
        return;
    }
    m_trainCard->open(defaultSettings(*answer->plan->request.graph), check.buttonText, isElsewhere);
    placeOverlays();
}

void MainWindow::startTraining(const TrainSettings& settings, const RunTarget& target) {
    const auto answer = m_document.answer();
    if (!answer || !answer->plan || !answer->plan->feasible)
        return;
    if (const TrainCheck check = checkTraining(answer); target.isHere() && !check.isPossible()) {
        m_messages->showMessage(check.reason);
        return;
    }
    m_trainer.start(planner::emitPlan(*answer->plan, "shardscope " SHARDSCOPE_VERSION), settings, target);
    showMode(1);
    m_runPage->setFocus(Qt::OtherFocusReason);
}

void MainWindow::showFailure() {
    const RunRecord& record = m_trainer.record();
    const QString failure = record.failureText();
    if (failure.isEmpty())
        return;
    std::vector<MessageStrip::Choice> choices;
    if (m_pages->currentIndex() != 1)
        choices.push_back({tr("Show the run"), [this] { showMode(1); }, false});
    if (m_trainer.canResume())
        choices.push_back({tr("Resume from step %1").arg(record.checkpoint()->step), [this] { resumeRun(); }, true});
    if (m_trainer.isLost())
        choices.push_back({tr("Connect again"), [this] { m_trainer.attach(QString(m_trainer.runDirectory())); }, true});
    // What was held beyond the prediction can be set aside, so that the next plan leaves room for it.
    std::int64_t surplus = 0;
    for (const RunWorker& worker : record.workers())
        if (worker.memory)
            surplus = std::max(surplus, worker.memory->peakAllocated - worker.memory->predicted.total());
    if (failure.contains(QLatin1String("memory"), Qt::CaseInsensitive) && surplus > 0 && m_document.isOpen())
        choices.push_back({tr("Plan with %1 more in reserve").arg(bytesText(surplus)),
                           [this, surplus] {
                               showMode(0);
                               m_document.reserveMore(surplus);
                           },
                           false});
    m_messages->showMessage(failure, choices);
}

void MainWindow::resumeRun() {
    const RunRecord& record = m_trainer.record();
    if (!m_trainer.canResume()) {
        m_messages->showMessage(m_trainer.isActive() ? tr("The run is still going on.")
                                                     : tr("There is no ended run with a checkpoint to resume."));
        return;
    }
    m_messages->hide();
    const std::int64_t asked = std::max<std::int64_t>(record.stepsAsked(), 1);
    const bool wasDone = record.bye() && record.bye()->status == "done";
    m_trainer.resume(wasDone ? record.bye()->steps + asked : asked);
    showMode(1);
}

void MainWindow::toggleMeasuring() {
    if (m_measuring.isRunning())
        m_measuring.cancel();
    else if (m_trainer.isActive())
        m_messages->showMessage(tr("A run is going on; measuring beside it would measure both."));
    else
        m_measuring.start();
}

void MainWindow::pasteOom() {
    const auto report = parseOom(QGuiApplication::clipboard()->text());
    const auto answer = m_document.answer();
    if (!report) {
        statusBar()->showMessage(tr("The clipboard holds no out-of-memory message of PyTorch"), 8000);
        return;
    }
    if (!answer || !answer->plan || !answer->plan->feasible) {
        m_messages->showMessage(
            tr("Open the network that ran out of memory first: the message is laid against its plan."));
        return;
    }
    m_comparer.submit([this, report = *report, answer](const std::stop_token& stop) {
        const OomComparison comparison = compareOom(report, *answer->plan);
        if (stop.stop_requested())
            return;
        QMetaObject::invokeMethod(
            this,
            [this, report, comparison, answer] {
                m_oomCard->open(report, comparison,
                                tr("%1 on %2")
                                    .arg(QString::fromStdString(answer->choices->graph->title),
                                         QString::fromStdString(answer->choices->cluster.title)));
                placeOverlays();
            },
            Qt::QueuedConnection);
    });
}

void MainWindow::showHelp(int topic) {
    m_trainCard->hide();
    m_help->showTopic(topic);
    m_pages->setCurrentWidget(m_help);
}

void MainWindow::replanHere() {
    m_document.replanForThisMachine();
}

void MainWindow::placeOverlays() {
    const QWidget* page = centralWidget();
    m_trainCard->move(page->width() - m_trainCard->width() - kGap, m_toolBar->height() + 6);
    m_oomCard->move((page->width() - m_oomCard->width()) / 2, m_toolBar->height() + 6);
    m_palette->move((page->width() - m_palette->width()) / 2, m_toolBar->height() + 6);
}

void MainWindow::resizeEvent(QResizeEvent* event) {
    QMainWindow::resizeEvent(event);
    placeOverlays();
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
    if (event->mimeData()->hasUrls())
        event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
    for (const QUrl& url : event->mimeData()->urls()) {
        if (!url.isLocalFile())
            continue;
        m_openingPath = url.toLocalFile();
        if (QFileInfo::exists(m_openingPath + QStringLiteral("/run.ndjson")) ||
            QFileInfo::exists(distantRunPath(m_openingPath))) {
            m_trainer.attach(m_openingPath);
            showMode(1);
        } else {
            m_document.openPath(m_openingPath);
        }
        event->acceptProposedAction();
        return;
    }
}

void MainWindow::closeEvent(QCloseEvent* event) {
    // What runs elsewhere does so without this window, and is found again through its folder.
    if (!m_trainer.isActive() || !m_trainer.isOwn() || !m_trainer.target().isHere()) {
        saveNow();
        saveSettings();
        event->accept();
        return;
    }
    event->ignore();
    m_messages->showMessage(tr("A run is going on."), {{tr("Stop and save"),
                                                        [this] {
                                                            m_mayClose = true;
                                                            m_trainer.stop();
                                                        },
                                                        true},
                                                       {tr("Leave it running"),
                                                        [this] {
                                                            m_trainer.leaveRunning();
                                                            close();
                                                        },
                                                        false},
                                                       {tr("Do not close"), [] {}, false}});
}

} // namespace shardscope::app
