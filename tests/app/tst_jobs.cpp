// SPDX-License-Identifier: GPL-3.0-or-later
// The window from end to end: by keyboard alone, by click, its settings and its sessions.
#include "app/document/SessionFile.h"
#include "app/look/Theme.h"
#include "app/support/WindowFixture.h"
#include "app/tables/PlansTable.h"
#include "app/views/CommandPalette.h"
#include "app/views/FrontierView.h"
#include "app/views/HelpPage.h"
#include "app/views/OperatorMap.h"
#include "app/views/PlanPage.h"
#include "app/views/PlanTabs.h"
#include "app/views/RunPage.h"
#include "app/views/SetupPanel.h"
#include "app/views/TrainCard.h"
#include "app/views/WaterfallView.h"
#include "app/window/Actions.h"
#include "app/window/MainWindow.h"
#include "runtime/contract/Bytes.h"
#include "runtime/contract/Json.h"

#include <QAction>
#include <QComboBox>
#include <QLineEdit>
#include <QMenuBar>
#include <QPushButton>
#include <QSettings>
#include <QTest>

using namespace shardscope;
using namespace shardscope::app;

class JobsTest : public test::WindowFixture {
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() { prepare(); }
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
        for (auto* field : m_window->trainCard().findChildren<QComboBox*>())
            if (field->accessibleName() == "Data")
                field->setCurrentText("normal");
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
    void savedPlansAndWhatWasMeasuredSurviveASession() {
        QVERIFY(open("gpt2", "8x-titan-pcie3", 3 * contract::kGiB));
        document().savePlan();
        document().setBudget(12 * contract::kGiB);
        QVERIFY(settle());
        document().savePlan();
        const double rate = document().savedPlans()[1].answer->plan->samplesPerSecond;
        PlansTable table;
        connect(&table, &PlansTable::measured, &document(), &Document::setMeasured);
        table.setDocument(document());
        QCOMPARE(table.row(2).name, QStringLiteral("plan B"));
        const QModelIndex step = table.index(2, PlansTable::MeasuredStep),
                          peak = table.index(2, PlansTable::MeasuredPeak);
        QVERIFY(!(table.index(0, PlansTable::MeasuredStep).flags() & Qt::ItemIsEditable));
        QVERIFY(!table.setData(step, "soon", Qt::EditRole));
        QVERIFY(!table.setData(step, "-3", Qt::EditRole));
        QVERIFY(table.setData(step, "312 ms", Qt::EditRole));
        QVERIFY(table.setData(peak, "11.5", Qt::EditRole));
        QVERIFY(step.data(Qt::DisplayRole).toString().startsWith("312 ms, "));
        const QString file = path("saved.shardscope");
        QVERIFY(document().saveSession(file));
        renew();
        QVERIFY(document().savedPlans().empty());
        document().openPath(file);
        QTRY_VERIFY_WITH_TIMEOUT(document().savedPlans().size() == 2 && document().savedPlans()[1].answer, 60000);
        const SavedPlan& kept = document().savedPlans()[1];
        QCOMPARE(kept.name, QStringLiteral("plan B"));
        QCOMPARE(kept.answer->plan->samplesPerSecond, rate);
        QCOMPARE(kept.measuredSeconds, 0.312);
        QCOMPARE(kept.measuredBytes, std::int64_t(11.5 * double(contract::kGiB)));
        document().removeSavedPlan(0);
        QVERIFY(settle()); // only what is planned can be saved
        document().savePlan();
        QCOMPARE(document().savedPlans().back().name, QStringLiteral("plan A"));
        document().openGraph("gpt2-medium"); // a step of this session: what was saved stays
        QTRY_COMPARE_WITH_TIMEOUT(document().choices().graphArgument, std::string("gpt2-medium"), 20000);
        QCOMPARE(document().savedPlans().size(), std::size_t{2});
        document().close();
        QVERIFY(document().savedPlans().empty());
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
};

QTEST_MAIN(JobsTest)
#include "tst_jobs.moc"
