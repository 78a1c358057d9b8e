// SPDX-License-Identifier: GPL-3.0-or-later
// The window's jobs from end to end: by keyboard alone, with the real trainer, across closing and crashing.
#include "app/document/SessionFile.h"
#include "app/look/Theme.h"
#include "app/views/CommandPalette.h"
#include "app/views/FrontierView.h"
#include "app/views/HelpPage.h"
#include "app/views/MessageStrip.h"
#include "app/views/OomCard.h"
#include "app/views/OperatorMap.h"
#include "app/views/PlanPage.h"
#include "app/views/PlanTabs.h"
#include "app/views/RunPage.h"
#include "app/views/SetupPanel.h"
#include "app/views/TrainCard.h"
#include "app/views/ValidationView.h"
#include "app/views/VerdictView.h"
#include "app/views/WaterfallView.h"
#include "app/window/Actions.h"
#include "app/window/MainWindow.h"
#include "runtime/contract/Bytes.h"
#include "runtime/contract/Json.h"

#include <QAbstractItemModelTester>
#include <QAction>
#include <QClipboard>
#include <QComboBox>
#include <QLineEdit>
#include <QMenuBar>
#include <QPushButton>
#include <QSettings>
#include <QSignalSpy>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTest>

#include <csignal>

using namespace shardscope;
using namespace shardscope::app;

class JobsTest : public QObject {
    Q_OBJECT
private:
    std::unique_ptr<Theme> m_theme;
    std::unique_ptr<MainWindow> m_window;
    QTemporaryDir m_folder;

    const QString m_fake = QStringLiteral(SHARDSCOPE_SOURCE_DIR "/tests/app/support/fake-trainer.sh");
    Document& document() { return m_window->document(); }
    QString path(const QString& name) const { return m_folder.filePath(name); }
    void renew() {
        m_window = std::make_unique<MainWindow>(*m_theme);
        m_window->resize(1280, 800);
        m_window->show();
        QVERIFY(QTest::qWaitForWindowActive(m_window.get()));
    }
    bool settle() {
        return QTest::qWaitFor(
            [this] {
                const auto answer = document().answer();
                return answer && answer->choices == document().choicesPointer() && answer->isFinal;
            },
            60000);
    }
    bool open(const QString& graph = "gpt2", const QString& cluster = "8x-titan-pcie3", std::int64_t budget = 0) {
        document().open(graph, cluster, budget);
        return QTest::qWaitFor([this] { return document().isOpen(); }, 60000) && settle();
    }
    /// Types into whatever has the focus, as a person without a mouse would.
    static void type(const QString& text) {
        for (const QChar c : text)
            QTest::keyClick(QApplication::focusWidget(), c.toLatin1());
    }
    /// The palette's first match for a text.
    void command(const QString& text) {
        QTest::keyClick(m_window.get(), Qt::Key_K, Qt::ControlModifier);
        QTRY_VERIFY(m_window->palette().isVisible());
        type(text);
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_Return);
        QTRY_VERIFY(!m_window->palette().isVisible());
    }
    TrainSettings settings(const QString& behaviour, const QString& folder) const {
        TrainSettings settings;
        settings.data = behaviour;
        settings.steps = 5;
        settings.runDirectory = path(folder);
        return settings;
    }
    /// The fake trainer reads no plan.
    void train(const TrainSettings& chosen) {
        const contract::Plan nothing;
        m_window->trainer().start(nothing, chosen);
    }
    QPushButton* button(const QString& text) {
        for (auto* candidate : m_window->findChildren<QPushButton*>())
            if (candidate->isVisible() && candidate->text().contains(text))
                return candidate;
        return nullptr;
    }

private Q_SLOTS:
    void initTestCase() {
        QStandardPaths::setTestModeEnabled(true);
        QApplication::setOrganizationName("shardscope-test");
        QSettings().clear();
        m_theme = std::make_unique<Theme>(*qApp);
    }
    void init() { renew(); }
    void cleanup() { m_window.reset(); }

    /// Open, plan, choose a budget, place an operator, train, watch: not one click.
    void theMainJobByKeyboardAlone() {
        command("Graph: Demo");
        QTRY_VERIFY_WITH_TIMEOUT(document().isOpen(), 20000);
        command("Re-plan for this machine");
        QTRY_COMPARE_WITH_TIMEOUT(document().choices().clusterArgument, std::string("local"), 20000);
        QVERIFY(settle());
        QVERIFY(document().answer()->plan->feasible);

        // To the frontier by Tab alone, then a smaller budget by key.
        FrontierView& frontier = m_window->planPage().frontier();
        for (int i = 0; i < 60 && QApplication::focusWidget() != &frontier; ++i)
            QTest::keyClick(QApplication::focusWidget() ? QApplication::focusWidget() : m_window.get(), Qt::Key_Tab);
        QCOMPARE(QApplication::focusWidget(), &frontier);
        const std::int64_t before = document().choices().budget();
        QTest::keyClick(&frontier, Qt::Key_Left);
        QVERIFY(document().choices().budget() < before);
        QVERIFY(settle());

        command("h.1.mlp.c_fc");
        QTRY_COMPARE(QApplication::focusWidget(), &m_window->planPage().map());
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_K);
        QVERIFY(settle());
        QVERIFY(document().isSelectionPinned());

        m_window->trainer().setProgram(m_fake);
        QTest::keyClick(m_window.get(), Qt::Key_Return, Qt::ControlModifier);
        QTRY_VERIFY(m_window->trainCard().isVisible());
        type("7");
        auto* directory = m_window->trainCard().findChildren<QLineEdit*>().last();
        for (auto* field : m_window->trainCard().findChildren<QLineEdit*>())
            if (field->accessibleName() == "Run folder")
                directory = field;
        directory->setText(path("by-keyboard"));
        auto* data = m_window->trainCard().findChild<QComboBox*>();
        data->setCurrentText("normal");
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_Return);
        QTRY_COMPARE_WITH_TIMEOUT(m_window->trainer().state(), Trainer::State::Ended, 20000);
        QCOMPARE(m_window->trainer().record().steps().size(), std::size_t{7});
        QVERIFY(m_window->runPage().isVisible());
        QTest::keyClick(m_window.get(), Qt::Key_1, Qt::ControlModifier);
        QVERIFY(m_window->planPage().isVisible());
    }
    void everyActionHasItsPlaceInThePalette() {
        QVERIFY(open());
        QStringList names;
        for (const CommandPalette::Entry& entry : m_window->actions().entries()) {
            QVERIFY(!entry.name.isEmpty() && entry.act);
            names << entry.name;
        }
        QCOMPARE(QSet<QString>(names.begin(), names.end()).size(), names.size());
        QHash<QString, QString> owners;
        int actions = 0;
        const auto visit = [&](const QMenu* menu, const auto& self) -> void {
            QSet<QChar> mnemonics;
            for (QAction* action : menu->actions()) {
                if (action->isSeparator())
                    continue;
                const qsizetype mark = action->text().indexOf('&');
                if (mark >= 0) {
                    const QChar mnemonic = action->text()[mark + 1].toLower();
                    QVERIFY2(!mnemonics.contains(mnemonic), qPrintable(menu->title() + ": " + action->text()));
                    mnemonics.insert(mnemonic);
                }
                if (action->menu()) {
                    if (!action->text().contains("recent"))
                        self(action->menu(), self);
                    continue;
                }
                ++actions;
                const QString keys = action->shortcut().toString();
                if (!keys.isEmpty()) {
                    QVERIFY2(!owners.contains(keys),
                             qPrintable(keys + ": " + owners.value(keys) + ", " + action->text()));
                    owners[keys] = action->text();
                }
                QString name = action->text();
                name.remove('&');
                const bool isUndo = name.startsWith("Undo") || name.startsWith("Redo");
                const QString stem = name.chopped(name.endsWith(QChar(0x2026)) ? 1 : 0);
                QVERIFY2(isUndo || names.contains(name) || !names.filter(stem, Qt::CaseInsensitive).isEmpty(),
                         qPrintable(name));
            }
        };
        for (const QAction* menu : m_window->menuBar()->actions())
            visit(menu->menu(), visit);
        QVERIFY(actions > 40);
        for (const QString& field : m_window->setupPanel().fieldNames())
            QVERIFY(names.contains("Set: " + field));
        QVERIFY(names.contains("h.0.mlp.c_fc"));
    }
    void shortcutsDoWhatTheySay() {
        QVERIFY(open());
        QTest::keyClick(m_window.get(), Qt::Key_2, Qt::ControlModifier);
        QVERIFY(m_window->runPage().isVisible());
        QTest::keyClick(m_window.get(), Qt::Key_4, Qt::AltModifier);
        QVERIFY(m_window->planPage().isVisible());
        QCOMPARE(m_window->planPage().tabs().currentTab(), int{PlanTabs::PlansTab});
        QTest::keyClick(m_window.get(), Qt::Key_D, Qt::ControlModifier);
        QCOMPARE(document().savedPlans().size(), std::size_t{1});
        QTest::keyClick(m_window.get(), Qt::Key_T, Qt::ControlModifier);
        QVERIFY(m_window->planPage().isTableTwinShown());
        QTest::keyClick(m_window.get(), Qt::Key_F1);
        QVERIFY(m_window->helpPage().isVisible());
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_Escape);
        QVERIFY(m_window->planPage().isVisible());
        const std::int64_t before = document().choices().budget();
        document().setBudget(6 * contract::kGiB);
        QTest::keyClick(m_window.get(), Qt::Key_Z, Qt::ControlModifier);
        QCOMPARE(document().choices().budget(), before);
        QTest::keySequence(m_window.get(), QKeySequence(QKeySequence::Redo));
        QCOMPARE(document().choices().budget(), 6 * contract::kGiB);
    }
    void everyInteractiveWidgetHasAName() {
        QVERIFY(open());
        int checked = 0;
        QStringList nameless;
        for (const QWidget* widget : m_window->findChildren<QWidget*>()) {
            const QWidget* parent = widget->parentWidget();
            const bool isPart = widget->objectName().startsWith("qt_") || widget->inherits("QScrollBar") ||
                                (parent && (parent->inherits("QComboBox") || parent->inherits("QAbstractSpinBox") ||
                                            parent->inherits("QAbstractScrollArea") || parent->inherits("QLineEdit") ||
                                            parent->inherits("QComboBoxPrivateContainer")));
            if (widget->focusPolicy() == Qt::NoFocus || isPart || widget->inherits("QScrollArea") ||
                widget->inherits("QLabel") || widget->inherits("QMenu") || widget->inherits("QMenuBar"))
                continue;
            ++checked;
            const QString text = widget->property("text").toString();
            if (widget->accessibleName().isEmpty() && text.isEmpty())
                nameless << QStringLiteral("%1 in %2")
                                .arg(widget->metaObject()->className(),
                                     parent ? parent->metaObject()->className() : "nothing");
        }
        QVERIFY2(nameless.isEmpty(), qPrintable(nameless.join(", ")));
        QVERIFY2(checked > 50, qPrintable(QString::number(checked)));
    }
    void clickingAPointOfTheFrontierGoesThere() {
        QVERIFY(open("gpt2-xl", "8x-titan-pcie3", 12 * contract::kGiB));
        QTRY_VERIFY_WITH_TIMEOUT(document().surroundings() && document().surroundings()->isFinal, 120000);
        FrontierView& chart = m_window->planPage().frontier();
        const auto& baselines = chart.picture().baselines;
        const auto ddp = std::find_if(baselines.begin(), baselines.end(),
                                      [](const planner::Baseline& baseline) { return baseline.feasible; });
        QVERIFY(ddp != baselines.end());
        const FrontierAxis axis = chart.axis();
        QTest::mouseClick(
            &chart, Qt::LeftButton, {},
            QPointF(axis.xOf(static_cast<double>(ddp->peakBytes)), axis.yOf(ddp->samplesPerSecond)).toPoint());
        // Points may lie over each other; the one under the mouse is one of them.
        const auto hit = std::find_if(baselines.begin(), baselines.end(), [this](const planner::Baseline& baseline) {
            return baseline.feasible && baseline.peakBytes == document().choices().budget();
        });
        QVERIFY(hit != baselines.end());
        QCOMPARE(document().undoStack().count(), 1);
        QVERIFY(settle());
    }
    void aSuggestionIsAppliedByClick() {
        QVERIFY(open("gpt2-xl", "8x-titan-pcie3", 4 * contract::kGiB));
        QVERIFY(!document().answer()->plan->feasible);
        QTRY_VERIFY_WITH_TIMEOUT(
            document().remedies() && document().remedies()->generation == document().answer()->generation, 60000);
        QVERIFY(!document().remedies()->list.empty());
        QTRY_VERIFY(button("Apply"));
        QTest::mouseClick(button("Apply"), Qt::LeftButton);
        QVERIFY(settle());
        QVERIFY(document().answer()->plan->feasible);
        document().undoStack().undo();
        QVERIFY(settle());
        QVERIFY(!document().answer()->plan->feasible);
        QTRY_VERIFY(button("Go there"));
        QTest::mouseClick(button("Go there"), Qt::LeftButton);
        QVERIFY(settle());
        QVERIFY(document().answer()->plan->feasible);
    }
    void twoPlansAreLaidSideBySide() {
        QVERIFY(open("gpt2", "8x-titan-pcie3", 3 * contract::kGiB));
        document().savePlan();
        document().setBudget(12 * contract::kGiB);
        QVERIFY(settle());
        PlanTabs& tabs = m_window->planPage().tabs();
        tabs.showTab(PlanTabs::DifferenceTab);
        auto* other = tabs.findChild<QComboBox*>();
        QTRY_VERIFY(other->findText("plan A") >= 0);
        other->setCurrentIndex(other->findText("plan A"));
        QTRY_VERIFY_WITH_TIMEOUT(tabs.waterfall().comparison() && tabs.waterfall().comparison()->bName == "plan A",
                                 60000);
        const planner::PlanDiff& diff = tabs.waterfall().comparison()->diff;
        QCOMPARE(diff.difference().total(), diff.b.time.total() - diff.a.time.total());
        QVERIFY(tabs.waterfall().sentence().contains("plan A"));
    }
    void settingsSurvive() {
        m_window->restoreSettings();
        m_theme->choose(Lightness::Dark);
        m_window->resize(1111, 777);
        m_window->addRecent(path("somewhere.shardscope"));
        m_window->close();
        m_window.reset();
        m_theme = std::make_unique<Theme>(*qApp);
        renew();
        m_window->restoreSettings();
        QCOMPARE(m_theme->chosen(), Lightness::Dark);
        QCOMPARE(m_window->size(), QSize(1111, 777));
        QCOMPARE(m_window->recentFiles().value(0), path("somewhere.shardscope"));
        m_theme->choose(Lightness::System);
        QSettings().clear();
    }
    void aCrashLosesNothing() {
        const QString autosave = path("auto/last.shardscope");
        m_window->setAutosavePath(autosave);
        QVERIFY(open());
        document().setBudget(5 * contract::kGiB);
        document().select({3});
        document().placeSelection({contract::PlacementKind::Keep, 1, 1, contract::ShardGroup::World});
        document().reserveMore(100 * contract::kMiB);
        // No closing: what a crash leaves is what was written so far.
        QTRY_VERIFY_WITH_TIMEOUT(QFile::exists(autosave), 10000);
        const auto newest = [&] {
            const auto text = contract::readTextFile(autosave.toStdString());
            const auto read = text ? parseSession(*text, "auto") : contract::badInput("none");
            return read && read->pins.size() == 1 && read->extraReserveBytes == 100 * contract::kMiB;
        };
        QTRY_VERIFY_WITH_TIMEOUT(newest(), 10000);
        const auto pins = document().choices().pins;
        const std::int64_t reserve = document().choices().cluster.reserveBytes();
        MainWindow after(*m_theme);
        after.setAutosavePath(autosave);
        after.document().openPath(autosave);
        QTRY_VERIFY_WITH_TIMEOUT(after.document().isOpen(), 20000);
        QCOMPARE(after.document().choices().budget(), 5 * contract::kGiB);
        QCOMPARE(after.document().choices().pins, pins);
        QCOMPARE(after.document().choices().cluster.reserveBytes(), reserve);
    }
    void closingNeverWaits_data() {
        QTest::addColumn<int>("moment");
        QTest::newRow("loading") << 0;
        QTest::newRow("planning") << 1;
        QTest::newRow("simulating") << 2;
        QTest::newRow("exporting") << 3;
        QTest::newRow("measuring") << 4;
        QTest::newRow("reproducing tables") << 5;
    }
    void closingNeverWaits() {
        QFETCH(int, moment);
        if (moment > 1)
            QVERIFY(open("gpt2-xl"));
        if (moment == 0)
            document().open("llama-3.1-405b", "64x8-h100", 0);
        else if (moment == 1) {
            document().open("llama-3.1-70b", "16x8-h100", 0);
            QTest::qWait(60);
        } else if (moment == 2) {
            document().setBudget(9 * contract::kGiB);
            QTRY_VERIFY_WITH_TIMEOUT(document().answer()->choices == document().choicesPointer(), 60000);
        } else if (moment == 3) {
            m_window->exportEverything(m_window->exportContent(), path("closing"));
        } else if (moment == 4) {
            QVERIFY(QFile::copy(QStringLiteral(SHARDSCOPE_SOURCE_DIR "/tests/app/support/fake-measure.sh"),
                                path("slow.sh")));
            m_window->measuring().setProgram(path("slow.sh"));
            m_window->toggleMeasuring();
            QVERIFY(m_window->measuring().isRunning());
        } else {
            m_window->showHelp(HelpPage::Published);
        }
        // No bound on seconds: a close that waits for its work never comes back within the test's own limit.
        m_window->close();
        m_window.reset();
        QVERIFY(!m_window);
    }
    void closingAsksWhenARunGoesOn() {
        m_window->trainer().setProgram(m_fake);
        train(settings("stall", "asks"));
        QTRY_VERIFY_WITH_TIMEOUT(!m_window->trainer().record().steps().empty(), 20000);
        m_window->close();
        QVERIFY(m_window->isVisible());
        QVERIFY(button("Leave it running") && button("Do not close"));
        QTest::mouseClick(button("Stop and save"), Qt::LeftButton);
        QTRY_VERIFY_WITH_TIMEOUT(!m_window->isVisible(), 20000);
        QCOMPARE(m_window->trainer().record().bye()->status, std::string("stopped"));
    }
    void aRunOutlivesTheWindowAndIsAttachedAgain() {
        m_window->trainer().setProgram(m_fake);
        train(settings("stall-to-file", "outlives"));
        QTRY_VERIFY_WITH_TIMEOUT(!m_window->trainer().record().steps().empty(), 20000);
        const auto pid = static_cast<pid_t>(m_window->trainer().record().hello()->pid);
        m_window->close();
        QTest::mouseClick(button("Leave it running"), Qt::LeftButton);
        m_window.reset();
        QCOMPARE(::kill(pid, 0), 0);
        renew();
        m_window->trainer().attach(path("outlives"));
        m_window->showMode(1);
        QTRY_VERIFY_WITH_TIMEOUT(!m_window->trainer().record().steps().empty(), 10000);
        QVERIFY(m_window->trainer().isActive() && !m_window->trainer().isOwn());
        m_window->trainer().stop();
        QTRY_COMPARE_WITH_TIMEOUT(m_window->trainer().state(), Trainer::State::Ended, 20000);
        QTRY_VERIFY_WITH_TIMEOUT(::kill(pid, 0) != 0, 10000);
    }
    void failuresComeToTheWindow_data() {
        QTest::addColumn<QString>("behaviour");
        QTest::addColumn<QString>("words");
        QTest::newRow("crash") << "crash"
                               << "Rank 1 failed";
        QTest::newRow("half a last line") << "half"
                                          << "ended with code 0";
        QTest::newRow("nothing at all") << "silent"
                                        << "code 4";
    }
    void failuresComeToTheWindow() {
        QFETCH(QString, behaviour);
        QFETCH(QString, words);
        m_window->trainer().setProgram(m_fake);
        train(settings(behaviour, behaviour));
        QTRY_COMPARE_WITH_TIMEOUT(m_window->trainer().state(), Trainer::State::Ended, 20000);
        QTRY_VERIFY2(m_window->messages().text().contains(words), qPrintable(m_window->messages().text()));
        m_window->trainer().setProgram(path("missing/shardscope-train"));
        train(settings("normal", "missing"));
        QTRY_VERIFY_WITH_TIMEOUT(m_window->messages().text().contains("missing/shardscope-train"), 20000);
    }
    void anOutOfMemoryRunOffersMoreReserve() {
        QVERIFY(open("demo-small", "local"));
        m_window->trainer().setProgram(m_fake);
        train(settings("crash", "oom-run"));
        QTRY_COMPARE_WITH_TIMEOUT(m_window->trainer().state(), Trainer::State::Ended, 20000);
        QTRY_VERIFY(button("more in reserve"));
        const std::int64_t before = document().choices().cluster.reserveBytes();
        QTest::mouseClick(button("more in reserve"), Qt::LeftButton);
        QVERIFY(document().choices().cluster.reserveBytes() > before);
        QVERIFY(settle());
        QCOMPARE(document().answer()->plan->ledger[contract::Category::Context],
                 document().choices().cluster.reserveBytes());
        document().undoStack().undo();
        QCOMPARE(document().choices().cluster.reserveBytes(), before);
    }
    void aPastedMessageIsLaidAgainstThePlan() {
        QVERIFY(open("gpt2-xl", "8x-titan-pcie3", 16 * contract::kGiB));
        QGuiApplication::clipboard()->setText("nothing of interest");
        QTest::keyClick(m_window.get(), Qt::Key_V, Qt::ControlModifier);
        QTest::qWait(50);
        QVERIFY(!m_window->oomCard().isVisible());
        QGuiApplication::clipboard()->setText(
            "CUDA out of memory. Tried to allocate 1.96 GiB. GPU 0 has a total capacity of 15.78 GiB of which 0.10 GiB "
            "is "
            "free. Including non-PyTorch memory, this process has 15.60 GiB memory in use. Of the allocated memory "
            "13.00 "
            "GiB is allocated by PyTorch, and 0.50 GiB is reserved by PyTorch but unallocated.");
        QTest::keyClick(m_window.get(), Qt::Key_V, Qt::ControlModifier);
        QTRY_VERIFY_WITH_TIMEOUT(m_window->oomCard().isVisible(), 20000);
        const std::int64_t surplus = m_window->oomCard().comparison().surplusBytes;
        QVERIFY(surplus > 0);
        const std::int64_t before = document().choices().cluster.reserveBytes();
        QTest::mouseClick(button("more in reserve"), Qt::LeftButton);
        QCOMPARE(document().choices().cluster.reserveBytes(), before + surplus);
        QTest::keyClick(m_window.get(), Qt::Key_V, Qt::ControlModifier);
        QTRY_VERIFY_WITH_TIMEOUT(m_window->oomCard().isVisible(), 20000);
        QTest::mouseClick(button("Plan for 15.8 GiB"), Qt::LeftButton);
        QCOMPARE(document().choices().cardBytes(), std::llround(15.78 * 1024 * 1024 * 1024));
        QVERIFY(settle());
    }
    void helpAndPublishedTables() {
        m_window->showHelp(HelpPage::Using);
        QVERIFY(m_window->helpPage().text(HelpPage::Using).contains("Drag the budget"));
        QVERIFY(m_window->helpPage().text(HelpPage::Words).contains("ZeRO-3"));
        const QString keys = m_window->helpPage().text(HelpPage::Keys);
        for (const char* part : {"Ctrl+K", "Page Up", "Ctrl+E, M", "replicate, keep or shard"})
            QVERIFY2(keys.contains(part), part);
        m_window->showHelp(HelpPage::Published);
        ValidationView& view = m_window->helpPage().validation();
        const QAbstractItemModelTester summary(&view.summary(), QAbstractItemModelTester::FailureReportingMode::QtTest);
        const QAbstractItemModelTester rows(&view.rows(), QAbstractItemModelTester::FailureReportingMode::QtTest);
        QTRY_VERIFY_WITH_TIMEOUT(view.tables(), 60000);
        QCOMPARE(view.summary().rowCount(), static_cast<int>(view.tables()->size()));
        QTRY_VERIFY(view.rows().rowCount() > 0);
        QTest::keyClick(&m_window->helpPage(), Qt::Key_Escape);
        QVERIFY(!m_window->helpPage().isVisible());
    }
    void measuringThisMachine() {
        const QString script = QStringLiteral(SHARDSCOPE_SOURCE_DIR "/tests/app/support/fake-measure.sh");
        QVERIFY(open("demo-small", "local"));
        QSignalSpy finished(&m_window->measuring(), &Measuring::finished),
            failed(&m_window->measuring(), &Measuring::failed);
        m_window->measuring().setProgram(script);
        QTest::keyClick(m_window.get(), Qt::Key_M, Qt::ControlModifier);
        QTRY_COMPARE_WITH_TIMEOUT(finished.count(), 1, 20000);
        QVERIFY(QFile::copy(script, path("broken-measure.sh")));
        m_window->measuring().setProgram(path("broken-measure.sh"));
        m_window->toggleMeasuring();
        QTRY_COMPARE_WITH_TIMEOUT(failed.count(), 1, 20000);
        QVERIFY(failed[0][0].toString().contains("no core to measure on"));
        QVERIFY(QFile::copy(script, path("slow-measure.sh")));
        m_window->measuring().setProgram(path("slow-measure.sh"));
        m_window->toggleMeasuring();
        QVERIFY(m_window->measuring().isRunning());
        m_window->toggleMeasuring();
        QTRY_VERIFY_WITH_TIMEOUT(!m_window->measuring().isRunning(), 20000);
        QCOMPARE(failed.count(), 1);
        m_window->measuring().setProgram("/nowhere/shardscope-train");
        m_window->toggleMeasuring();
        QTRY_COMPARE_WITH_TIMEOUT(failed.count(), 2, 20000);
        QVERIFY(!m_window->measuring().isRunning());
    }
    /// Plans the demo for two workers, trains it, stops, resumes to the end; the loss falls.
    void theRealTrainer() {
        const QString program = QStringLiteral(SHARDSCOPE_BIN_DIR "/shardscope-train");
        if (!QFile::exists(program))
            QSKIP("shardscope-train is not built");
        document().open("demo-small", "local", 0, 4);
        QTRY_VERIFY_WITH_TIMEOUT(document().isOpen(), 20000);
        QVERIFY(settle());
        m_window->trainer().setProgram(program);
        TrainSettings chosen = settings("builtin:addition", "real");
        chosen.steps = 60;
        chosen.learningRate = 1e-3;
        chosen.checkpointEvery = 5;
        m_window->trainer().start(planner::emitPlan(*document().answer()->plan, "test"), chosen);
        QTRY_VERIFY_WITH_TIMEOUT(m_window->trainer().record().checkpoint().has_value(), 240000);
        m_window->trainer().stop();
        QTRY_COMPARE_WITH_TIMEOUT(m_window->trainer().state(), Trainer::State::Ended, 60000);
        QCOMPARE(m_window->trainer().record().bye()->status, std::string("stopped"));
        const std::size_t before = m_window->trainer().record().steps().size();
        m_window->showMode(1);
        QTRY_VERIFY(m_window->runPage().resumeButton().isVisible());
        QTest::mouseClick(&m_window->runPage().resumeButton(), Qt::LeftButton);
        QVERIFY(m_window->trainer().isActive());
        QTRY_COMPARE_WITH_TIMEOUT(m_window->trainer().state(), Trainer::State::Ended, 240000);
        const RunRecord& record = m_window->trainer().record();
        QVERIFY2(record.bye()->status == "done", record.bye()->reason.c_str());
        QVERIFY(record.steps().size() > before);
        QCOMPARE(record.steps().back().step, 60);
        double early = 0, late = 0;
        for (std::size_t i = 0; i < 5; ++i) {
            early += record.steps()[i].loss;
            late += record.steps()[record.steps().size() - 1 - i].loss;
        }
        QVERIFY2(late < 0.9 * early, qPrintable(QStringLiteral("%1 to %2").arg(early / 5).arg(late / 5)));
        QVERIFY(record.memorySurplus().has_value());
    }
};

QTEST_MAIN(JobsTest)
#include "tst_jobs.moc"
