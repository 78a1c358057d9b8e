// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/document/EquivalentCommand.h"
#include "app/document/SessionFile.h"
#include "app/look/Theme.h"
#include "app/support/WindowFixture.h"
#include "app/views/BudgetField.h"
#include "app/views/FrontierView.h"
#include "app/views/MemoryView.h"
#include "app/views/MessageStrip.h"
#include "app/views/OperatorMap.h"
#include "app/views/PlanPage.h"
#include "app/views/PlanTabs.h"
#include "app/views/Tabs.h"
#include "app/views/TimelineView.h"
#include "app/views/VerdictView.h"
#include "app/views/WaterfallView.h"
#include "app/window/MainWindow.h"
#include "planner/cluster/Clusters.h"
#include "runtime/contract/Bytes.h"
#include "runtime/contract/Json.h"

#include <QComboBox>
#include <QDropEvent>
#include <QMenu>
#include <QMimeData>
#include <QSignalSpy>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTest>

using namespace shardscope;
using namespace shardscope::app;

class WindowTest : public test::WindowFixture {
    Q_OBJECT
private:
    void drop(const QString& path) {
        QMimeData data;
        data.setUrls({QUrl::fromLocalFile(path)});
        QDragEnterEvent enter(QPoint(100, 100), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(m_window.get(), &enter);
        QDropEvent event(QPointF(100, 100), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(m_window.get(), &event);
    }

private Q_SLOTS:
    void initTestCase() { prepare(); }
    void init() { renew(); }
    void cleanup() { m_window.reset(); }

    void opensAnExampleAndShowsAPlan() {
        QVERIFY(open());
        QVERIFY(document().answer()->plan->feasible);
        QVERIFY(m_window->verdictView().verdict().headline.size() > 0);
        QVERIFY(!m_window->planPage().map().columns().columns.empty());
    }
    void aDragOfTheBudgetIsOneUndoStep() {
        QVERIFY(open());
        QTRY_VERIFY_WITH_TIMEOUT(document().surroundings(), 60000);
        FrontierView& chart = m_window->planPage().frontier();
        const std::int64_t before = document().choices().budget();
        const QPoint start(chart.width() / 2, chart.height() / 2);
        QTest::mousePress(&chart, Qt::LeftButton, {}, start);
        for (int i = 1; i <= 20; ++i)
            QTest::mouseMove(&chart, start + QPoint(-4 * i, 0));
        QTest::mouseRelease(&chart, Qt::LeftButton, {}, start - QPoint(80, 0));
        QVERIFY(document().choices().budget() != before);
        QCOMPARE(document().undoStack().count(), 1);
        document().undoStack().undo();
        QCOMPARE(document().choices().budget(), before);
        QVERIFY(settle());
    }
    void anAnswerComesBeforeItsProof() {
        QSignalSpy answers(&document(), &Document::answered);
        document().open("llama-3.1-8b", "2x8-h100", 0);
        QTRY_VERIFY_WITH_TIMEOUT(answers.count() > 0, 60000);
        const auto first = document().answer();
        QVERIFY(first->plan->feasible);
        QVERIFY(first->plan->certificate.gap >= 0);
        QVERIFY(!m_window->verdictView().verdict().proof.isEmpty());
        if (first->isFinal)
            QCOMPARE(m_window->verdictView().verdict().proof, QStringLiteral("proven"));
        else
            QVERIFY(m_window->verdictView().verdict().proof.contains("still proving"));
        // A new question replaces the proof at once.
        document().setBudget(40 * contract::kGiB);
        QTRY_COMPARE_WITH_TIMEOUT(document().answer()->choices, document().choicesPointer(), 60000);
        QVERIFY(document().answer()->plan->peakBytes <= 40 * contract::kGiB);
    }
    void theStepIsSimulatedAndLinkedWithTheMap() {
        QVERIFY(open());
        PlanTabs& tabs = m_window->planPage().tabs();
        QTRY_VERIFY_WITH_TIMEOUT(
            tabs.timeline().picture() && tabs.timeline().picture()->plan == document().answer()->plan, 60000);
        const StepPicturePointer picture = tabs.timeline().picture();
        QVERIFY2(picture->error.isEmpty(), qPrintable(picture->error));
        QVERIFY(picture->stepPicoseconds > 0);
        for (const MemoryBand& band : picture->bands)
            QVERIFY(band.total <= picture->plan->peakBytes);
        const QRectF lane = tabs.timeline().laneRect(0);
        QTest::mouseClick(&tabs.timeline(), Qt::LeftButton, {},
                          QPoint(qRound(lane.left() + 0.3 * lane.width()), qRound(lane.center().y())));
        QCOMPARE(document().selection().size(), std::size_t{1});
        tabs.timeline().setFocus();
        QTest::keyClick(&tabs.timeline(), Qt::Key_Plus);
        QVERIFY(!tabs.timeline().window().isWhole());
        QCOMPARE(tabs.memory().window(), tabs.timeline().window());
    }
    void theDifferenceSumsToTheStepTimes() {
        QVERIFY(open());
        QTRY_VERIFY_WITH_TIMEOUT(document().comparison(), 60000);
        PlanTabs& tabs = m_window->planPage().tabs();
        tabs.showTab(PlanTabs::DifferenceTab);
        QTRY_VERIFY_WITH_TIMEOUT(tabs.waterfall().comparison(), 60000);
        QVERIFY2(tabs.waterfall().comparison()->error.isEmpty(), qPrintable(tabs.waterfall().comparison()->error));
        const planner::PlanDiff& diff = tabs.waterfall().comparison()->diff;
        QCOMPARE(diff.difference().total(), diff.b.time.total() - diff.a.time.total());
        QVERIFY(!tabs.waterfall().sentence().isEmpty());
    }
    void everyRemedyCanBeApplied() {
        QVERIFY(open("gpt2-xl"));
        document().setBudget(4 * contract::kGiB);
        QVERIFY(settle());
        QTRY_VERIFY_WITH_TIMEOUT(
            document().remedies() && document().remedies()->generation == document().answer()->generation, 60000);
        const int count = static_cast<int>(document().remedies()->list.size());
        for (int i = 0; i < std::min(count, 3); ++i) {
            const std::string change = document().remedies()->list[static_cast<std::size_t>(i)].change;
            document().applyRemedy(i);
            QVERIFY(settle());
            QVERIFY2(document().answer()->plan && document().answer()->plan->feasible, change.c_str());
            document().undoStack().undo();
            QVERIFY(settle());
            QTRY_VERIFY_WITH_TIMEOUT(document().remedies()->generation == document().answer()->generation, 60000);
        }
    }
    void keysPlaceAndPinTheSelection() {
        QVERIFY(open());
        OperatorMap& map = m_window->planPage().map();
        map.setFocus();
        QTest::keyClick(&map, Qt::Key_Right);
        QCOMPARE(document().selection().size(), std::size_t{1});
        QTest::keyClick(&map, Qt::Key_S);
        QVERIFY(settle());
        QVERIFY(document().answer()->plan->operators[0].placement.isSharded());
        QVERIFY(document().isSelectionPinned());
        QTest::keyClick(&map, Qt::Key_K);
        QVERIFY(settle());
        QCOMPARE(document().answer()->plan->operators[0].placement.kind, contract::PlacementKind::Keep);
        QTest::keyClick(&map, Qt::Key_P);
        QVERIFY(!document().isSelectionPinned());
        document().undoStack().undo();
        QVERIFY(document().isSelectionPinned());
    }
    void blocksArePlacedAlikeOnRequest() {
        QVERIFY(open("gpt2-xl", "8x-titan-pcie3", 16 * contract::kGiB));
        auto* granularity = m_window->findChild<SegmentedSwitch*>("granularity");
        QVERIFY(granularity);
        QTRY_VERIFY_WITH_TIMEOUT(granularity->titles().last().contains('%'), 60000);
        const double free = document().answer()->plan->samplesPerSecond;
        const double promised = document().comparison()->otherGranularity->samplesPerSecond;
        QVERIFY(promised < free);
        QTest::keyClick(granularity, Qt::Key_Right);
        QVERIFY(settle());
        QCOMPARE(document().choices().granularity, planner::Granularity::Block);
        QVERIFY(std::abs(document().answer()->plan->samplesPerSecond / promised - 1) < 1e-3);
        QTRY_VERIFY_WITH_TIMEOUT(granularity->titles().first().contains('+'), 60000);
        QVERIFY(equivalentCommand(document().choices()).contains("--granularity block"));
        QCOMPARE(document().undoStack().undoText(), QStringLiteral("Place blocks alike"));
        document().undoStack().undo();
        QVERIFY(settle());
        QCOMPARE(granularity->current(), 0);
        QCOMPARE(document().answer()->plan->samplesPerSecond, free);
    }
    void aCardsMemoryIsABudget() {
        QVERIFY(open("gpt2", "1x-h200"));
        auto* field = m_window->findChild<BudgetField*>();
        QVERIFY(field);
        field->setFocus();
        QTest::keyClick(field, Qt::Key_Down, Qt::AltModifier);
        auto* menu = field->findChild<QMenu*>();
        QVERIFY(menu && menu->isVisible() && menu->actions().size() >= 4);
        const auto card = planner::bundledCards().front();
        QVERIFY(menu->actions().front()->text().startsWith(QString::fromStdString(card.name)));
        menu->actions().front()->trigger();
        menu->close();
        QVERIFY(settle());
        QCOMPARE(document().choices().budget(), card.bytes);
    }
    void attentionAndLossChunksAreFields() {
        QVERIFY(open());
        QVERIFY(settle());
        const auto field = [this](const QString& name) {
            for (QComboBox* combo : m_window->findChildren<QComboBox*>())
                if (combo->accessibleName() == name)
                    return combo;
            return static_cast<QComboBox*>(nullptr);
        };
        const auto choose = [](QComboBox* combo, const QString& text) {
            combo->setCurrentIndex(combo->findText(text));
            Q_EMIT combo->activated(combo->currentIndex());
        };
        QVERIFY(field("Attention") && field("Loss chunks"));
        const auto kept = [this] { return document().answer()->plan->ledger[contract::Category::Activations]; };
        document().change("batch", [](Choices& choices) { choices.microBatch = 4; });
        QVERIFY(settle());
        const std::int64_t fused = kept();
        choose(field("Attention"), "unfused");
        QVERIFY(settle());
        QVERIFY(kept() > fused);
        QVERIFY(equivalentCommand(document().choices()).contains("--attention unfused"));
        choose(field("Loss chunks"), "4");
        QVERIFY(settle());
        QCOMPARE(document().answer()->plan->training.lossChunks, std::int64_t{4});
        const auto read = parseSession(formatSession(document().choices()), "a");
        QVERIFY(read.has_value());
        QCOMPARE(read->attention, std::optional(contract::AttentionKernel::Materialised));
        document().undoStack().undo();
        document().undoStack().undo();
        QVERIFY(settle());
        QCOMPARE(kept(), fused);
        QVERIFY(!document().choices().attention);
    }
    void anInfeasibleBudgetOffersTheSmallest() {
        QVERIFY(open());
        document().setBudget(contract::kGiB);
        QVERIFY(settle());
        QCOMPARE(m_window->verdictView().verdict().kind, VerdictKind::DoesNotFit);
        const std::int64_t smallest = m_window->verdictView().verdict().remedyBytes;
        QVERIFY(smallest > contract::kGiB);
        document().setBudget(smallest);
        QVERIFY(settle());
        QVERIFY(document().answer()->plan->feasible);
    }
    void badFilesAreMessagesAndChangeNothing() {
        QVERIFY(open());
        const auto before = document().choicesPointer();
        const std::pair<const char*, const char*> files[] = {
            {"broken.json", "{\"model_type\": "},
            {"empty.json", ""},
            {"array.json", "[1,2,3]"},
            {"plan.json", "{\"format\":\"shardscope-plan\",\"version\":99}"},
            {"s.shardscope", "{\"format\":\"shardscope-session\",\"version\":1}"},
            {"weird.bin", "\xff\xfe\x00"}};
        for (const auto& [name, content] : files) {
            const QString path = m_folder.filePath(name);
            QFile file(path);
            QVERIFY(file.open(QIODevice::WriteOnly));
            file.write(content);
            file.close();
            m_window->messages().hide();
            drop(path);
            QTRY_VERIFY2_WITH_TIMEOUT(!m_window->messages().text().isEmpty(), name, 10000);
            QCOMPARE(document().choicesPointer(), before);
        }
        drop(m_folder.filePath("missing.json"));
        QVERIFY(m_window->isVisible());
    }
    void sessionsSurviveSavingAndOpening() {
        QVERIFY(open());
        document().setBudget(9 * contract::kGiB);
        document().select({0});
        document().placeSelection({contract::PlacementKind::Shard, 2, 2, contract::ShardGroup::World});
        const QString path = m_folder.filePath("a.shardscope");
        QVERIFY(document().saveSession(path));
        const auto text = contract::readTextFile(path.toStdString());
        QVERIFY(text.has_value());
        const auto read = parseSession(*text, "a");
        QVERIFY(read.has_value());
        QCOMPARE(read->budgetBytes, 9 * contract::kGiB);
        QCOMPARE(read->pins, document().choices().pins);
        QCOMPARE(read->graphArgument, std::string("gpt2"));
    }
    void sessionsKeepWhatCanBeUndone() {
        QVERIFY(open());
        document().setBudget(9 * contract::kGiB);
        document().change("Sequence", [](Choices& choices) { choices.sequence = 512; });
        document().openCluster("2x8-h100");
        QTRY_COMPARE_WITH_TIMEOUT(document().choices().clusterArgument, std::string("2x8-h100"), 20000);
        document().setBudget(30 * contract::kGiB);
        document().undoStack().undo(); // one step can be redone
        const QString path = m_folder.filePath("history.shardscope");
        QVERIFY(document().saveSession(path));
        renew();
        document().openPath(path);
        QTRY_VERIFY_WITH_TIMEOUT(document().isOpen(), 20000);
        QUndoStack& stack = document().undoStack();
        QCOMPARE(stack.count(), 4);
        QCOMPARE(stack.index(), 3);
        QVERIFY(stack.isClean());
        QCOMPARE(document().choices().clusterArgument, std::string("2x8-h100"));
        stack.redo();
        QCOMPARE(document().choices().budget(), 30 * contract::kGiB);
        stack.undo();
        stack.undo();
        QCOMPARE(document().choices().clusterArgument, std::string("8x-titan-pcie3"));
        QCOMPARE(document().choices().cluster.devices(), std::int64_t{8});
        QCOMPARE(document().choices().sequence, std::int64_t{512});
        stack.undo();
        QCOMPARE(document().choices().sequence, std::int64_t{0});
        QCOMPARE(document().choices().budget(), 9 * contract::kGiB);
        stack.undo();
        QVERIFY(!stack.canUndo());
        QVERIFY(settle());
        QVERIFY(document().answer()->plan->feasible);
    }
    void aHistoryThatIsWrongIsLeftOut_data() {
        QTest::addColumn<QByteArray>("from");
        QTest::addColumn<QByteArray>("to");
        QTest::newRow("index") << QByteArray("\"current\": 2") << QByteArray("\"current\": 9");
        QTest::newRow("negative") << QByteArray("\"current\": 2") << QByteArray("\"current\": -1");
        QTest::newRow("type") << QByteArray("\"current\": 2") << QByteArray("\"current\": \"x\"");
        QTest::newRow("states") << QByteArray("\"states\": [") << QByteArray("\"states\": [ 7,");
        QTest::newRow("none") << QByteArray("\"steps\"") << QByteArray("\"other\"");
    }
    void aHistoryThatIsWrongIsLeftOut() {
        QFETCH(QByteArray, from);
        QFETCH(QByteArray, to);
        QVERIFY(open());
        document().setBudget(9 * contract::kGiB);
        document().setBudget(8 * contract::kGiB);
        QByteArray text = QByteArray::fromStdString(formatSession(document().history()));
        QVERIFY(text.contains(from));
        text.replace(from, to);
        const QString path = m_folder.filePath("wrong.shardscope");
        QFile file(path);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(text);
        file.close();
        renew();
        document().openPath(path);
        QTRY_VERIFY_WITH_TIMEOUT(document().isOpen(), 20000);
        QCOMPARE(document().choices().budget(), 8 * contract::kGiB);
        QCOMPARE(document().undoStack().count(), 0);
    }
    void patternsPinEqualOperatorsOfAllBlocks() {
        QVERIFY(open());
        const auto& graph = *document().choices().graph;
        std::vector<std::int32_t> all;
        for (std::size_t i = 0; i < graph.operators.size(); ++i)
            if (matchesGlob("*.mlp.c_fc", graph.operators[i].name))
                all.push_back(static_cast<std::int32_t>(i));
        const contract::Placement keep{contract::PlacementKind::Keep, 1, 1, contract::ShardGroup::World};
        auto pins = withPins({}, graph, all, keep);
        QCOMPARE(pins.size(), std::size_t{1});
        QCOMPARE(pins[0].pattern, std::string("*.mlp.c_fc"));
        pins = withPins(pins, graph, {all.front()}, std::nullopt);
        QCOMPARE(pins.size(), all.size() - 1);
    }
    void closingWhilePlanningIsQuick() {
        document().open("llama-3.1-70b", "16x8-h100", 0);
        QTest::qWait(30);
        QElapsedTimer clock;
        clock.start();
        m_window.reset();
        QVERIFY2(clock.elapsed() < 5000, qPrintable(QString::number(clock.elapsed())));
    }
    void everyControlHasAName() {
        QVERIFY(open());
        for (const QWidget* widget : m_window->findChildren<QWidget*>()) {
            if (widget->focusPolicy() == Qt::NoFocus || !widget->isVisible() || widget->objectName().startsWith("qt_"))
                continue;
            if (widget->inherits("QScrollArea") || widget->inherits("QLabel") || widget->inherits("QMenuBar"))
                continue;
            const bool isPartOfCombo = widget->parentWidget() && widget->parentWidget()->inherits("QComboBox");
            const QString text = widget->property("text").toString();
            QVERIFY2(isPartOfCombo || !widget->accessibleName().isEmpty() || !text.isEmpty(),
                     widget->metaObject()->className());
        }
    }
    void bothLightnessesPaint() {
        QVERIFY(open());
        for (const Lightness lightness : {Lightness::Dark, Lightness::Light}) {
            m_theme->choose(lightness);
            const QImage image = m_window->grab().toImage();
            const QColor corner = image.pixelColor(5, image.height() / 2);
            QCOMPARE(corner.lightness() < 128, lightness == Lightness::Dark);
        }
    }
};

QTEST_MAIN(WindowTest)
#include "tst_window.moc"
