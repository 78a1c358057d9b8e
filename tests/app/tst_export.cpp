// SPDX-License-Identifier: GPL-3.0-or-later
// Every view in every format, the report, and what happens when a file cannot be written.
#include "app/document/EquivalentCommand.h"
#include "app/export/CsvTables.h"
#include "app/export/Exporter.h"
#include "app/look/Theme.h"
#include "app/tables/OperatorTable.h"
#include "app/views/MessageStrip.h"
#include "app/views/PlanPage.h"
#include "app/views/PlanTabs.h"
#include "app/views/TimelineView.h"
#include "app/views/WaterfallView.h"
#include "app/window/MainWindow.h"
#include "runtime/contract/Bytes.h"

#include <QFileDialog>
#include <QProcess>
#include <QRegularExpression>
#include <QSignalSpy>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTest>
#include <QXmlStreamReader>

#include <csignal>
#include <sys/resource.h>

using namespace shardscope;
using namespace shardscope::app;

class ExportTest : public QObject {
    Q_OBJECT
private:
    std::unique_ptr<Theme> m_theme;
    std::unique_ptr<MainWindow> m_window;
    QTemporaryDir m_folder;

    Document& document() { return m_window->document(); }
    QString path(const QString& name) const { return m_folder.filePath(name); }
    static QByteArray read(const QString& path) {
        QFile file(path);
        return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
    }
    /// Cells of RFC 4180 text.
    static QList<QStringList> parseCsv(const QByteArray& bytes) {
        QList<QStringList> rows;
        QStringList row;
        QString cell;
        bool isQuoted = false;
        const QString text = QString::fromUtf8(bytes);
        for (qsizetype i = 0; i < text.size(); ++i) {
            const QChar c = text[i];
            if (isQuoted) {
                if (c == '"' && text.mid(i + 1, 1) == "\"")
                    cell += text[++i];
                else if (c == '"')
                    isQuoted = false;
                else
                    cell += c;
            } else if (c == '"') {
                isQuoted = true;
            } else if (c == ',') {
                row << cell;
                cell.clear();
            } else if (c == '\n') {
                rows << (row << cell);
                row.clear();
                cell.clear();
            } else if (c != '\r') {
                cell += c;
            }
        }
        return rows;
    }
    /// The window with a plan, its step, a comparison and a finished run.
    void openEverything() {
        document().open("gpt2", "8x-titan-pcie3", 4 * contract::kGiB);
        QTRY_VERIFY_WITH_TIMEOUT(document().comparison() && document().surroundings() &&
                                     document().surroundings()->isFinal && document().answer()->isFinal,
                                 120000);
        PlanTabs& tabs = m_window->planPage().tabs();
        tabs.showTab(PlanTabs::DifferenceTab);
        QTRY_VERIFY_WITH_TIMEOUT(tabs.waterfall().comparison(), 60000);
        tabs.showTab(PlanTabs::TimelineTab);
        QTRY_VERIFY_WITH_TIMEOUT(tabs.timeline().picture(), 60000);
        TrainSettings settings;
        settings.data = "normal";
        settings.steps = 5;
        settings.runDirectory = path("run");
        m_window->trainer().setProgram(QStringLiteral(SHARDSCOPE_SOURCE_DIR "/tests/app/support/fake-trainer.sh"));
        m_window->trainer().start({}, settings);
        QTRY_COMPARE_WITH_TIMEOUT(m_window->trainer().state(), Trainer::State::Ended, 20000);
    }
    QString exportOne(const std::optional<ViewKind>& view, const QString& file,
                      FigureWidth width = FigureWidth::Screen) {
        QSignalSpy finished(&m_window->exporting(), &Exporting::finished);
        QSignalSpy failed(&m_window->exporting(), &Exporting::failed);
        m_window->exportFile(view, file, width);
        if (!QTest::qWaitFor([&] { return finished.count() + failed.count() > 0; }, 60000))
            return "did not end";
        return failed.isEmpty() ? QString() : failed[0][0].toString();
    }

private Q_SLOTS:
    void figuresForPrintAreAsWideAsAskedFor() {
        const std::pair<FigureWidth, double> widths[] = {{FigureWidth::Column, 84}, {FigureWidth::Page, 174}};
        for (const auto& [width, wanted] : widths)
            for (int i = 0; i < kViewKindCount; ++i) {
                const auto kind = static_cast<ViewKind>(i);
                if (!fitsPrint(kind))
                    continue;
                const QString file = path(QStringLiteral("%1-%2.pdf").arg(viewStem(kind)).arg(wanted));
                QCOMPARE(exportOne(kind, file, width), QString());
                QFile pdf(file);
                QVERIFY(pdf.open(QIODevice::ReadOnly));
                static const QRegularExpression kBox("/MediaBox \\[0 0 ([0-9.]+) ");
                const auto match = kBox.match(QString::fromLatin1(pdf.readAll()));
                QVERIFY(match.hasMatch());
                const double millimetres = match.captured(1).toDouble() / 72 * 25.4;
                QVERIFY2(qAbs(millimetres - wanted) < 0.5, qPrintable(QString("%1: %2").arg(file).arg(millimetres)));
            }
    }
    void initTestCase() {
        QStandardPaths::setTestModeEnabled(true);
        QApplication::setOrganizationName("shardscope-test");
        m_theme = std::make_unique<Theme>(*qApp);
        m_window = std::make_unique<MainWindow>(*m_theme);
        m_window->resize(1280, 800);
        m_window->show();
        openEverything();
    }
    void cleanupTestCase() { m_window.reset(); }
    void cleanup() { m_window->messages().hide(); }

    void everyViewInEveryFormat_data() {
        QTest::addColumn<int>("view");
        for (int i = 0; i < kViewKindCount; ++i)
            QTest::newRow(qPrintable(viewStem(static_cast<ViewKind>(i)))) << i;
    }
    void everyViewInEveryFormat() {
        QFETCH(int, view);
        const auto kind = static_cast<ViewKind>(view);
        const QString stem = path(viewStem(kind));
        for (const char* suffix : {"png", "svg", "pdf", "csv"})
            QCOMPARE(exportOne(kind, stem + '.' + suffix), QString());
        const QImage image(stem + ".png");
        QVERIFY(image.width() > 800 && image.height() > 100);
        // A drawing has many colours, letters among them; the ground is white whatever the window's lightness.
        QSet<QRgb> colors;
        for (int y = 0; y < image.height(); y += 2)
            for (int x = 0; x < image.width(); x += 2)
                colors.insert(image.pixel(x, y));
        QVERIFY2(colors.size() > 8, qPrintable(QString::number(colors.size())));
        QCOMPARE(image.pixelColor(2, 2), QColor(Qt::white));
        QXmlStreamReader svg(read(stem + ".svg"));
        int drawn = 0;
        while (!svg.atEnd())
            if (svg.readNext() == QXmlStreamReader::StartElement &&
                (svg.name() == u"path" || svg.name() == u"text" || svg.name() == u"rect" || svg.name() == u"polyline"))
                ++drawn;
        QVERIFY2(!svg.hasError(), qPrintable(svg.errorString()));
        QVERIFY2(drawn > 10, qPrintable(QString::number(drawn)));
        const QByteArray pdf = read(stem + ".pdf");
        QVERIFY(pdf.startsWith("%PDF-") && pdf.contains("%%EOF") && pdf.size() > 4000);
        const auto rows = parseCsv(read(stem + ".csv"));
        QVERIFY(rows.size() > 1);
        for (const QStringList& row : rows)
            QCOMPARE(row.size(), rows.first().size());
    }
    void theMapsNumbersAreThePlans() {
        const auto rows = parseCsv(csvOf(ViewKind::Map, m_window->exportContent()));
        const planner::PlanResult& plan = *document().answer()->plan;
        QCOMPARE(rows.size(), static_cast<qsizetype>(plan.operators.size()) + 1);
        QCOMPARE(rows[0][OperatorTable::Parameters], QStringLiteral("parameters (bytes)"));
        for (std::size_t i = 0; i < plan.operators.size(); ++i) {
            const QStringList& row = rows[static_cast<qsizetype>(i) + 1];
            QCOMPARE(row[OperatorTable::Name].toStdString(), plan.request.graph->operators[i].name);
            QCOMPARE(row[OperatorTable::Parameters].toLongLong(),
                     plan.operators[i].cost.memory[contract::Category::Parameters]);
            QCOMPARE(row[OperatorTable::Exposed].toDouble(), plan.operators[i].cost.exposedSeconds());
        }
    }
    void tablesSayWhatTheWindowSays() {
        const ExportContent content = m_window->exportContent();
        const auto plans = parseCsv(csvOf(ViewKind::Plans, content));
        const PlansTable& table = m_window->planPage().tabs().plansTable();
        QCOMPARE(plans.size(), static_cast<qsizetype>(table.rowCount()) + 1);
        for (int row = 0; row < table.rowCount(); ++row) {
            QVERIFY(plans[row + 1][PlansTable::Name].startsWith(table.row(row).name));
            QCOMPARE(plans[row + 1][PlansTable::Step].toDouble(), table.row(row).stepSeconds);
        }
        const auto frontier = parseCsv(csvOf(ViewKind::Frontier, content));
        const auto& points = document().surroundings()->frontier.points;
        for (std::size_t i = 0; i < points.size(); ++i) {
            QCOMPARE(frontier[static_cast<qsizetype>(i) + 1][2].toLongLong(), points[i].memoryBytes);
            QCOMPARE(frontier[static_cast<qsizetype>(i) + 1][4].toDouble(), points[i].samplesPerSecond);
        }
        const auto ledger = parseCsv(csvOf(ViewKind::Ledger, content));
        std::int64_t sum = 0;
        for (int i = 1; i <= contract::kCategoryCount; ++i)
            sum += ledger[i][1].toLongLong();
        QCOMPARE(ledger[contract::kCategoryCount + 1][0], QStringLiteral("peak"));
        QCOMPARE(sum, ledger[contract::kCategoryCount + 1][1].toLongLong());
        QCOMPARE(sum, document().answer()->plan->peakBytes);
        const auto difference = parseCsv(csvOf(ViewKind::Difference, content));
        double total = difference[1][1].toDouble();
        for (int i = 2; i < difference.size() - 1; ++i)
            total += difference[i][1].toDouble();
        QVERIFY(qAbs(total - difference.last()[1].toDouble()) < 1e-9);
        const auto loss = parseCsv(csvOf(ViewKind::Loss, content));
        QCOMPARE(loss.size(), 6);
        QCOMPARE(loss[5][1].toDouble(), m_window->trainer().record().steps()[4].loss);
        const auto timeline = parseCsv(csvOf(ViewKind::Timeline, content));
        const auto& step = *content.step;
        QCOMPARE(timeline.size(),
                 static_cast<qsizetype>(step.lanes[0].intervals.size() + step.lanes[1].intervals.size()) + 1);
        double latest = 0;
        for (qsizetype i = 1; i < timeline.size(); ++i)
            latest = std::max(latest, timeline[i][6].toDouble());
        QVERIFY(qAbs(latest - planner::toSeconds(step.stepPicoseconds)) < 1e-9);
    }
    void namesWithCommasAndQuotesSurvive() {
        std::vector<PlansTable::Row> rows(1);
        rows[0].name = "a \"plan\", with both\nand a line";
        PlansTable table;
        table.setRows(rows, "tokens/s");
        QCOMPARE(parseCsv(csvOfModel(table))[1][0], rows[0].name);
    }
    void theReportHasEveryPart() {
        const QString file = path("report.pdf");
        QCOMPARE(exportOne(std::nullopt, file), QString());
        const QByteArray pdf = read(file);
        QVERIFY(pdf.startsWith("%PDF-"));
        QVERIFY(pdf.count("/Type /Page\n") + pdf.count("/Type /Page\r") >= 2);
        QVERIFY(pdf.contains("/FontFile")); // embedded
        const QString reader = QStandardPaths::findExecutable("pdftotext");
        if (reader.isEmpty())
            QSKIP("pdftotext is not installed: the report's words are not read back");
        QProcess process;
        process.start(reader, {"-layout", file, "-"});
        QVERIFY(process.waitForFinished(20000));
        const QString text = QString::fromUtf8(process.readAllStandardOutput());
        for (const char* part : {"TITAN", "Setup", "Memory", "optimizer", "Why the costliest", "FSDP", "The plan",
                                 "shardscope-plan solve gpt2 --cluster 8x-titan-pcie3 --memory 4GiB", "tokens/s"})
            QVERIFY2(text.contains(part), part);
    }
    void everythingGoesIntoAFolder() {
        QSignalSpy finished(&m_window->exporting(), &Exporting::finished);
        m_window->exportEverything(m_window->exportContent(), path("all/of/it"));
        QTRY_COMPARE_WITH_TIMEOUT(finished.count(), 1, 120000);
        QCOMPARE(finished[0][0].toStringList().size(), 3 * kViewKindCount + 1);
        for (const QString& file : finished[0][0].toStringList())
            QVERIFY2(QFileInfo(file).size() > 50, qPrintable(file));
        QVERIFY(!m_window->exporting().isBusy());
    }
    void darkWindowsExportLightPictures() {
        const QString light = path("light.png"), dark = path("dark.png");
        QCOMPARE(exportOne(ViewKind::Plans, light), QString());
        m_theme->choose(Lightness::Dark);
        const QString error = exportOne(ViewKind::Plans, dark);
        m_theme->choose(Lightness::Light);
        QCOMPARE(error, QString());
        QCOMPARE(QImage(dark), QImage(light));
    }
    void cancellingWritesNothingMore() {
        QSignalSpy finished(&m_window->exporting(), &Exporting::finished);
        m_window->exportEverything(m_window->exportContent(), path("cancelled"));
        QVERIFY(m_window->exporting().isBusy());
        m_window->exporting().cancel();
        QVERIFY(!m_window->exporting().isBusy());
        QTest::qWait(300);
        QCOMPARE(finished.count(), 0);
    }
    void unwritablePathsAreMessages() {
        const QString plain = path("plain");
        QFile file(plain);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.close();
        for (const QString& bad :
             {plain + "/map.png", path("missing/folder/map.csv"), QStringLiteral("/proc/map.svg")}) {
            const QString error = exportOne(ViewKind::Map, bad);
            QVERIFY2(error.contains(bad), qPrintable(error));
            QCOMPARE(m_window->messages().text(), error);
            QVERIFY(!QFile::exists(bad));
        }
        QVERIFY(exportOne(ViewKind::Map, path("map.bmp")).contains(".svg"));
        QVERIFY(exportOne(std::nullopt, path("report.png")).contains(".pdf"));
    }
    void aFullDiskKeepsTheOldFile() {
        const QString file = path("kept.png");
        QCOMPARE(exportOne(ViewKind::Map, file), QString());
        const QByteArray before = read(file);
        // No file of this process may grow beyond a few bytes: what a full disk looks like to a writer.
        rlimit old{};
        QCOMPARE(getrlimit(RLIMIT_FSIZE, &old), 0);
        const auto handler = std::signal(SIGXFSZ, SIG_IGN);
        rlimit small{100, old.rlim_max};
        QCOMPARE(setrlimit(RLIMIT_FSIZE, &small), 0);
        const QString error = exportOne(ViewKind::Frontier, file);
        setrlimit(RLIMIT_FSIZE, &old);
        std::signal(SIGXFSZ, handler);
        QVERIFY2(error.contains("kept.png"), qPrintable(error));
        QCOMPARE(read(file), before);
    }
    void theDialogNamesAFile() {
        m_window->exportByDialog(ViewKind::Frontier);
        auto* dialog = m_window->findChild<QFileDialog*>();
        QVERIFY(dialog);
        QCOMPARE(QFileInfo(dialog->selectedFiles().value(0)).fileName(), QStringLiteral("gpt2-frontier.png"));
        Q_EMIT dialog->filterSelected(dialog->nameFilters().last());
        QCOMPARE(QFileInfo(dialog->selectedFiles().value(0)).fileName(), QStringLiteral("gpt2-frontier.csv"));
        QSignalSpy finished(&m_window->exporting(), &Exporting::finished);
        Q_EMIT dialog->fileSelected(path("by-dialog.csv"));
        QTRY_COMPARE_WITH_TIMEOUT(finished.count(), 1, 20000);
        QVERIFY(QFileInfo(path("by-dialog.csv")).size() > 100);
        delete dialog;
    }
    void commandsAskTheSame() {
        Choices choices = document().choices();
        QCOMPARE(equivalentCommand(choices),
                 QStringLiteral("shardscope-plan solve gpt2 --cluster 8x-titan-pcie3 --memory 4GiB"));
        choices.globalBatch = 64;
        choices.accumulate = 0;
        choices.recompute = contract::RecomputePolicy::Off;
        choices.slicesUpTo = 4;
        choices.pins.push_back({"h.*.mlp.*", {contract::PlacementKind::Shard, 4, 4, contract::ShardGroup::World}});
        QCOMPARE(equivalentCommand(choices),
                 QStringLiteral("shardscope-plan solve gpt2 --cluster 8x-titan-pcie3 --memory 4GiB --global-batch 64 "
                                "--recompute off --slices 1,2,4 --pin 'h.*.mlp.*=shard:4'"));
    }
    void theCommandLineWritesTheSame() {
        QVERIFY(document().saveSession(path("cli.shardscope")));
        const auto written = exportPictures({path("cli"), path("cli.shardscope"), path("file-run")});
        QVERIFY(!written); // no such run
        QVERIFY(written.error().message.find("file-run") != std::string::npos);
        const auto again = exportPictures({path("cli"), path("cli.shardscope"), {}});
        m_theme->choose(Lightness::Light);
        QVERIFY2(again, again ? "" : again.error().message.c_str());
        for (const char* name : {"window.png", "map.png", "map.svg", "map.csv", "frontier.png", "timeline.csv",
                                 "difference.png", "ledger.csv", "report.pdf"})
            QVERIFY2(QFileInfo(path("cli/") + name).size() > 100, name);
    }
    void nothingToExportIsSaid() {
        MainWindow empty(*m_theme);
        empty.exportByDialog(ViewKind::Map);
        QVERIFY(!empty.messages().text().isEmpty());
        QVERIFY(!empty.findChild<QFileDialog*>());
        empty.exportByDialog(std::nullopt);
        QVERIFY(!empty.findChild<QFileDialog*>());
        QVERIFY(csvOf(ViewKind::Loss, empty.exportContent()).isEmpty());
    }
};

QTEST_MAIN(ExportTest)
#include "tst_export.moc"
