// SPDX-License-Identifier: GPL-3.0-or-later
// Every page and state of the window as a picture in the build folder, with checks for texts that are cut off, covered,
// touch or are too pale. The checks themselves are checked on planted faults.
//
// By default two sizes are checked, one of them in both lightnesses, and one set of pictures is written; with
// SHARDSCOPE_GALLERY=full every size and lightness is checked and becomes a picture at every scale.
#include "app/look/Theme.h"
#include "app/support/TextProbe.h"
#include "app/views/CommandPalette.h"
#include "app/views/HelpPage.h"
#include "app/views/MessageStrip.h"
#include "app/views/OomCard.h"
#include "app/views/OperatorMap.h"
#include "app/views/PlanPage.h"
#include "app/views/PlanTabs.h"
#include "app/views/RunPage.h"
#include "app/views/TimelineView.h"
#include "app/views/TrainCard.h"
#include "app/views/ValidationView.h"
#include "app/views/WaterfallView.h"
#include "app/window/MainWindow.h"
#include "runtime/contract/Bytes.h"

#include <QClipboard>
#include <QDir>
#include <QFile>
#include <QFontMetrics>
#include <QLabel>
#include <QListWidget>
#include <QPainter>
#include <QScrollBar>
#include <QSettings>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTest>

#include <map>

using namespace shardscope;
using namespace shardscope::app;

class GalleryTest : public QObject {
    Q_OBJECT
private:
    std::unique_ptr<Theme> m_theme;
    std::unique_ptr<MainWindow> m_window;
    QTemporaryDir m_folder;
    QString m_gallery;
    bool m_isFull = false;
    /// By size and lightness: what the contact sheet of that name shows.
    std::map<QString, std::vector<std::pair<QString, QImage>>> m_sheets;

    Document& document() { return m_window->document(); }
    PlanTabs& tabs() { return m_window->planPage().tabs(); }
    /// `whole`: with the fine frontier and the comparison of policies, else with the first frontier.
    bool open(const QString& graph, const QString& cluster, std::int64_t budget = 0, bool whole = true) {
        document().open(graph, cluster, budget);
        return QTest::qWaitFor(
            [&] {
                const auto answer = document().answer();
                if (!answer || !document().isOpen() || answer->choices != document().choicesPointer())
                    return false;
                if (answer->plan && !answer->plan->feasible)
                    return document().remedies() && document().remedies()->generation == answer->generation;
                return document().surroundings() &&
                       (!whole || (document().surroundings()->isFinal && document().comparison() && answer->isFinal));
            },
            180000);
    }
    bool simulated() {
        return QTest::qWaitFor(
            [this] {
                const auto picture = tabs().timeline().picture();
                return picture && document().answer() && picture->plan == document().answer()->plan;
            },
            60000);
    }
    /// Checks all sizes and lightnesses of what the window shows now, and writes its pictures.
    QStringList shoot(const QString& name) {
        QStringList faults;
        for (const QSize size : {QSize(1024, 700), QSize(1280, 800), QSize(2560, 1440)}) {
            m_window->resize(size);
            for (const Lightness lightness : {Lightness::Light, Lightness::Dark}) {
                const bool isMain = size.width() == 1280;
                const bool isNarrowLight = size.width() == 1024 && lightness == Lightness::Light;
                if (!m_isFull && !isMain && !isNarrowLight)
                    continue;
                m_theme->choose(lightness);
                // Layouts and style sheets settle over a few turns of the event loop.
                QTest::qWait(20);
                const QString kind = QStringLiteral("%1x%2-%3")
                                         .arg(size.width())
                                         .arg(size.height())
                                         .arg(lightness == Lightness::Dark ? "dark" : "light");
                for (const QString& fault : test::textFaults(*m_window))
                    faults << name + ' ' + kind + ": " + fault;
                if (!m_isFull && !isMain)
                    continue;
                for (const double scale : m_isFull ? std::vector<double>{1, 2} : std::vector<double>{1}) {
                    const QImage image = test::render(*m_window, scale);
                    image.save(QStringLiteral("%1/%2-%3@%4.png").arg(m_gallery, name, kind).arg(scale));
                    if (scale == 1)
                        m_sheets[kind].emplace_back(name, image);
                }
            }
        }
        m_theme->choose(Lightness::Light);
        m_window->resize(1280, 800);
        return faults;
    }
    static void report(const QStringList& faults) {
        if (!faults.isEmpty())
            QFAIL(qPrintable(QStringLiteral("%1 faults\n%2").arg(faults.size()).arg(faults.join('\n'))));
    }
    void writeSheet(const QString& kind, const std::vector<std::pair<QString, QImage>>& pictures) const {
        constexpr int kColumns = 3, kWidth = 800, kCaption = 26, kApart = 10;
        const QSize each = pictures.front().second.size().scaled(kWidth, 10000, Qt::KeepAspectRatio);
        const int rows = (static_cast<int>(pictures.size()) + kColumns - 1) / kColumns;
        QImage sheet(kColumns * (kWidth + kApart) + kApart, rows * (each.height() + kCaption + kApart) + kApart,
                     QImage::Format_RGB32);
        sheet.fill(QColor(0x808080));
        QPainter painter(&sheet);
        painter.setFont(titleFont());
        for (int i = 0; i < static_cast<int>(pictures.size()); ++i) {
            const int x = kApart + i % kColumns * (kWidth + kApart);
            const int y = kApart + i / kColumns * (each.height() + kCaption + kApart);
            painter.drawText(QRect(x, y, kWidth, kCaption), Qt::AlignVCenter,
                             pictures[static_cast<std::size_t>(i)].first);
            painter.drawImage(x, y + kCaption,
                              pictures[static_cast<std::size_t>(i)].second.scaled(each, Qt::IgnoreAspectRatio,
                                                                                  Qt::SmoothTransformation));
        }
        painter.end();
        sheet.save(QStringLiteral("%1/sheet-%2.png").arg(m_gallery, kind));
    }
    /// A run of the fake trainer, until it ended or, of a stalling one, until its first step.
    void train(const QString& behaviour) {
        TrainSettings settings;
        settings.data = behaviour;
        settings.steps = 40;
        settings.runDirectory = m_folder.filePath(behaviour);
        m_window->trainer().setProgram(QStringLiteral(SHARDSCOPE_SOURCE_DIR "/tests/app/support/fake-trainer.sh"));
        m_window->showMode(1);
        m_window->trainer().start({}, settings);
        if (behaviour == "stall")
            QTRY_VERIFY_WITH_TIMEOUT(!m_window->trainer().record().steps().empty(), 20000);
        else
            QTRY_COMPARE_WITH_TIMEOUT(m_window->trainer().state(), Trainer::State::Ended, 20000);
        QTest::qWait(100);
    }

private Q_SLOTS:
    void initTestCase() {
        QStandardPaths::setTestModeEnabled(true);
        QApplication::setOrganizationName("shardscope-test");
        m_theme = std::make_unique<Theme>(*qApp);
        m_isFull = qEnvironmentVariable("SHARDSCOPE_GALLERY") == "full";
        m_gallery = QDir(QCoreApplication::applicationDirPath() + "/../gallery").absolutePath();
        QVERIFY(QDir().mkpath(m_gallery));
    }
    void cleanupTestCase() {
        for (const auto& [kind, pictures] : m_sheets)
            writeSheet(kind, pictures);
    }
    void init() {
        m_window = std::make_unique<MainWindow>(*m_theme);
        m_window->resize(1280, 800);
        m_window->show();
    }
    void cleanup() { m_window.reset(); }

    void plantedFaultsAreFound_data() {
        QTest::addColumn<QRect>("box");
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("style");
        QTest::addColumn<QString>("fault");
        QTest::newRow("good") << QRect(10, 60, 200, 20) << "another good text"
                              << ""
                              << "";
        QTest::newRow("too wide") << QRect(10, 60, 40, 20) << "a text far too long for its label"
                                  << ""
                                  << "clipped";
        QTest::newRow("too tall") << QRect(10, 60, 200, 7) << "a text taller than its label"
                                  << ""
                                  << "clipped";
        QTest::newRow("out of the window") << QRect(250, 60, 200, 20) << "a text beyond the edge"
                                           << ""
                                           << "clipped";
        QTest::newRow("over another") << QRect(14, 12, 100, 20) << "another"
                                      << "background: transparent;"
                                      << "touching";
        QTest::newRow("side by side") << QRect(10 + QFontMetrics(bodyFont()).horizontalAdvance("a good text"), 10, 60,
                                               20)
                                      << "close"
                                      << "background: transparent;"
                                      << "touching";
        QTest::newRow("half over another") << QRect(40, 10, 200, 20) << " "
                                           << "background: #ffffff;"
                                           << "covered";
        QTest::newRow("pale") << QRect(10, 60, 100, 20) << "pale"
                              << "color: #dddddd;"
                              << "low contrast";
        QTest::newRow("grey at 4.4 to 1") << QRect(10, 60, 100, 20) << "grey"
                                          << "color: #787878;"
                                          << "low contrast";
        QTest::newRow("grey at 4.6 to 1") << QRect(10, 60, 100, 20) << "grey"
                                          << "color: #757575;"
                                          << "";
        QTest::newRow("on a coloured ground") << QRect(10, 60, 100, 20) << "ground"
                                              << "background: #0072B2;"
                                              << "low contrast";
    }
    void plantedFaultsAreFound() {
        QFETCH(QRect, box);
        QFETCH(QString, text);
        QFETCH(QString, style);
        QFETCH(QString, fault);
        QWidget page;
        page.resize(300, 120);
        page.setStyleSheet("QWidget { background: white; color: black; font-size: 13px; }");
        const auto put = [&page](const QString& words, const QRect& place, const QString& look) {
            auto* label = new QLabel(words, &page);
            label->setStyleSheet(look);
            label->setAlignment(Qt::AlignLeft | Qt::AlignTop);
            label->setGeometry(place);
        };
        put("a good text", {10, 10, 200, 20}, {});
        put(text, box, style);
        const QString faults = test::textFaults(page).join('\n');
        QVERIFY2(fault.isEmpty() ? faults.isEmpty() : faults.contains(fault), qPrintable(faults));
    }
    void linesThroughTextsAreFound() {
        class Struck : public QWidget {
        public:
            int y = 0;
            bool hasGround = false;

        protected:
            void paintEvent(QPaintEvent*) override {
                QPainter painter(this);
                painter.fillRect(rect(), Qt::white);
                painter.setPen(Qt::black);
                painter.drawLine(0, y, width(), y);
                if (hasGround)
                    painter.fillRect(QRect(10, 8, 150, 20), Qt::white);
                painter.setFont(bodyFont());
                painter.drawText(QRect(12, 10, 140, 16), Qt::AlignLeft | Qt::AlignVCenter, "words on a line");
            }
        };
        Struck page;
        page.resize(200, 60);
        page.y = 40;
        QCOMPARE(test::textFaults(page), QStringList());
        page.y = 18;
        QVERIFY(test::textFaults(page).join(' ').contains("struck"));
        page.hasGround = true;
        QCOMPARE(test::textFaults(page), QStringList());
    }
    void scrolledTextsAreNoFaults() {
        QWidget page;
        page.resize(300, 100);
        auto* list = new QListWidget(&page);
        list->setGeometry(0, 0, 300, 90);
        for (int i = 0; i < 20; ++i)
            list->addItem(QStringLiteral("line %1").arg(i));
        list->verticalScrollBar()->setValue(1);
        QVERIFY2(test::textFaults(page).filter("clipped").isEmpty(), qPrintable(test::textFaults(page).join('\n')));
        list->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
        list->setGeometry(0, 0, 300, 85);
        QVERIFY(!test::textFaults(page).filter("clipped").isEmpty());
    }

    void welcome() { report(shoot("welcome")); }
    void planning() {
        QVERIFY(open("gpt2-xl", "8x-titan-pcie3", 16 * contract::kGiB));
        QVERIFY(simulated());
        QStringList faults = shoot("plan");
        tabs().showTab(PlanTabs::MemoryTab);
        faults += shoot("plan-memory");
        tabs().showTab(PlanTabs::CommunicationTab);
        faults += shoot("plan-communication");
        tabs().showTab(PlanTabs::PlansTab);
        document().savePlan();
        faults += shoot("plan-plans");
        tabs().showTab(PlanTabs::DifferenceTab);
        QTRY_VERIFY_WITH_TIMEOUT(tabs().waterfall().comparison(), 60000);
        report(faults + shoot("plan-difference"));
    }
    void selecting() {
        QStringList faults;
        QVERIFY(open("gpt2-xl", "8x-titan-pcie3", 16 * contract::kGiB, false));
        QVERIFY(simulated());
        document().select({9});
        QTest::qWait(300);
        faults += shoot("plan-selected");
        m_window->planPage().showTableTwin(true);
        document().select({9, 10, 11, 12, 40});
        faults += shoot("plan-table-several");
        m_window->planPage().showTableTwin(false);
        m_window->planPage().setFolded(false);
        m_window->openPalette();
        faults += shoot("plan-unfolded-palette");
        m_window->palette().hide();
        document().change("blocks", [](Choices& choices) { choices.granularity = planner::Granularity::Block; });
        m_window->planPage().setFolded(true);
        QTRY_VERIFY_WITH_TIMEOUT(
            document().answer()->isFinal && document().answer()->choices == document().choicesPointer(), 60000);
        QVERIFY(simulated());
        QTRY_VERIFY_WITH_TIMEOUT(
            document().comparison() && document().answer()->generation == document().comparison()->generation, 60000);
        QTest::qWait(300);
        faults += shoot("plan-by-block");
        report(faults);
    }
    void largest() {
        QVERIFY(open("llama-3.1-405b", "64x8-h100", 0, false));
        QVERIFY(simulated());
        report(shoot("405b"));
    }
    void tenThousandOperators() {
        QFile file(m_folder.filePath("config.json"));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(
            "{\"model_type\": \"gpt2\", \"n_layer\": 1667, \"n_embd\": 256, \"n_head\": 4, \"n_positions\": 512, "
            "\"vocab_size\": 50257}");
        file.close();
        QVERIFY(open(file.fileName(), "8x-a100-80g", 0, false));
        QVERIFY(document().choices().graph->operators.size() > 10000);
        QVERIFY(simulated());
        QStringList faults = shoot("10000-operators");
        m_window->planPage().setFolded(false);
        faults += shoot("10000-operators-unfolded");
        report(faults);
    }
    void small() {
        QVERIFY(open("demo-small", "local"));
        QVERIFY(simulated());
        QStringList faults = shoot("small-cpu");
        m_window->openTrainCard();
        faults += shoot("small-cpu-train");
        report(faults);
    }
    void elsewhere() {
        QVERIFY(open("gpt2-xl", "8x-titan-pcie3", 16 * contract::kGiB, false));
        QSettings().setValue("target/kind", 2); // a Slurm cluster
        m_window->openTrainCardElsewhere();
        QTRY_VERIFY(m_window->trainCard().isVisible());
        const QStringList faults = shoot("train-elsewhere");
        QSettings().remove("target");
        m_window->trainCard().hide();
        report(faults);
    }
    void measured() {
        const QString program = QStringLiteral(SHARDSCOPE_BIN_DIR "/shardscope-train");
        if (!QFile::exists(program))
            QSKIP("shardscope-train is not built");
        document().open("demo-small", "local", 0, 4);
        QTRY_VERIFY_WITH_TIMEOUT(document().isOpen() && document().choices().graph->name == "demo-small" &&
                                     document().answer() && document().answer()->isFinal &&
                                     document().answer()->choices == document().choicesPointer(),
                                 20000);
        TrainSettings settings;
        settings.steps = 40;
        settings.learningRate = 1e-3;
        settings.checkpointEvery = 10;
        settings.runDirectory = m_folder.filePath("measured");
        m_window->trainer().setProgram(program);
        m_window->trainer().start(planner::emitPlan(*document().answer()->plan, "gallery"), settings);
        QTRY_COMPARE_WITH_TIMEOUT(m_window->trainer().state(), Trainer::State::Ended, 240000);
        m_window->showMode(1);
        QStringList faults = shoot("run-real");
        m_window->showMode(0);
        tabs().showTab(PlanTabs::TimelineTab);
        QTRY_VERIFY_WITH_TIMEOUT(tabs().timeline().picture() && tabs().timeline().picture()->measured, 20000);
        report(faults + shoot("measured"));
    }
    void infeasible() {
        QVERIFY(open("gpt2-xl", "8x-titan-pcie3", 4 * contract::kGiB));
        QStringList faults = shoot("infeasible");
        m_window->messages().showMessage(
            "models/broken.json: training.precision is \"int3\", which is none of fp32-adam, "
            "bf16-adam, bf16-adam8");
        faults += shoot("infeasible-message");
        report(faults);
    }
    void outOfMemoryElsewhere() {
        QVERIFY(open("gpt2-xl", "8x-titan-pcie3", 16 * contract::kGiB, false));
        QGuiApplication::clipboard()->setText(
            "CUDA out of memory. Tried to allocate 1.96 GiB. GPU 0 has a total capacity of 15.78 GiB of which 0.10 GiB "
            "is "
            "free. Including non-PyTorch memory, this process has 15.60 GiB memory in use. Of the allocated memory "
            "13.00 "
            "GiB is allocated by PyTorch, and 0.50 GiB is reserved by PyTorch but unallocated.");
        m_window->pasteOom();
        QTRY_VERIFY_WITH_TIMEOUT(m_window->oomCard().isVisible(), 20000);
        report(shoot("out-of-memory"));
    }
    void help() {
        QStringList faults;
        const QString names[] = {"help-using", "help-keys", "help-words", "help-published"};
        for (int topic = 0; topic < HelpPage::TopicCount; ++topic) {
            m_window->showHelp(topic);
            if (topic == HelpPage::Published) {
                QTRY_VERIFY_WITH_TIMEOUT(m_window->helpPage().validation().tables(), 60000);
                QTest::qWait(50);
            }
            faults += shoot(names[topic]);
        }
        report(faults);
    }
    void noRun() {
        m_window->showMode(1);
        report(shoot("run-none"));
    }
    void running() {
        train("stall");
        report(shoot("run-running"));
        m_window->trainer().stop();
        QTRY_COMPARE_WITH_TIMEOUT(m_window->trainer().state(), Trainer::State::Ended, 20000);
    }
    void done() {
        train("normal");
        report(shoot("run-done"));
    }
    void failed() {
        train("crash");
        report(shoot("run-failed"));
    }
};

QTEST_MAIN(GalleryTest)
#include "tst_gallery.moc"
