// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/MainWindow.h"

#include "app/document/Verdict.h"
#include "app/look/Theme.h"
#include "app/look/Units.h"
#include "app/run/TrainCheck.h"
#include "app/views/CommandPalette.h"
#include "app/views/Inspector.h"
#include "app/views/MessageStrip.h"
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

#include <QCloseEvent>
#include <QDir>
#include <QDropEvent>
#include <QFileInfo>
#include <QLabel>
#include <QMimeData>
#include <QStackedWidget>
#include <QStatusBar>
#include <QVBoxLayout>

namespace shardscope::app {

MainWindow::MainWindow(Theme& theme, QWidget* parent) : QMainWindow(parent), m_theme(theme), m_trainer(this) {
    setWindowTitle(tr("Shardscope"));
    setAcceptDrops(true);
    resize(1440, 900);
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
    connect(m_setup, &SetupPanel::openGraphRequested, this, [this] { openPathByDialog(true); });
    connect(m_setup, &SetupPanel::openClusterRequested, this, [this] { openPathByDialog(false); });
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
    connect(&m_trainer, &Trainer::failed, this, [this](const QString& message) { m_messages->showMessage(message); });
    connect(&m_trainer, &Trainer::stateChanged, this, [this] {
        showAnswer();
        if (m_trainer.state() == Trainer::State::Ended)
            if (const QString failure = m_trainer.record().failureText(); !failure.isEmpty())
                m_messages->showMessage(failure, {{tr("Show the run"), [this] { showMode(1); }, false}});
        if (m_mayClose && !m_trainer.isActive())
            close();
    });
    connect(&m_trainer, &Trainer::recordChanged, this, &MainWindow::showStatus);
    connect(&m_theme, &Theme::changed, this, [this] { m_document.select(m_document.selection()); });
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
    m_toolBar->setMode(mode);
    m_trainCard->hide();
    m_pages->setCurrentIndex(mode == 1 ? 1 : m_document.isOpen() ? 0 : 2);
    Q_EMIT modeChanged(mode);
}

void MainWindow::showAnswer() {
    const auto answer = m_document.answer();
    m_verdict->setAnswer(answer, m_document.comparison());
    m_toolBar->setTrainCheck(checkTraining(answer), m_trainer.isActive());
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
    if (m_trainer.isActive())
        activity << tr("training: %1").arg(m_trainer.record().headline());
    m_activity->setText(activity.join(QStringLiteral(" · ")));
}

void MainWindow::openPalette() {
    placeOverlays();
    m_palette->open(m_actions->entries());
}

void MainWindow::openTrainCard() {
    const auto answer = m_document.answer();
    const TrainCheck check = checkTraining(answer);
    if (!check.isPossible() || m_trainer.isActive()) {
        if (!check.isPossible())
            m_messages->showMessage(check.reason);
        return;
    }
    m_trainCard->open(defaultSettings(*answer->plan->request.graph), check.buttonText);
    placeOverlays();
}

void MainWindow::startTraining(const TrainSettings& settings) {
    const auto answer = m_document.answer();
    if (!answer || !answer->plan || !answer->plan->feasible)
        return;
    m_trainer.start(planner::emitPlan(*answer->plan, "shardscope " SHARDSCOPE_VERSION), settings);
    showMode(1);
    m_runPage->setFocus(Qt::OtherFocusReason);
}

void MainWindow::replanHere() {
    m_document.replanForThisMachine();
}

void MainWindow::placeOverlays() {
    const QWidget* page = centralWidget();
    m_trainCard->move(page->width() - m_trainCard->width() - kGap, m_toolBar->height() + 6);
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
        if (QFileInfo::exists(m_openingPath + QStringLiteral("/run.ndjson"))) {
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
    if (!m_trainer.isActive() || !m_trainer.isOwn()) {
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
