// SPDX-License-Identifier: GPL-3.0-or-later
// Out-of-memory messages of PyTorch, and laying them against a plan.
#include "app/run/OomReport.h"
#include "app/views/OomCard.h"
#include "planner/cluster/Clusters.h"
#include "planner/readers/Readers.h"
#include "runtime/contract/Bytes.h"

#include <QPushButton>
#include <QSignalSpy>
#include <QTest>

using namespace shardscope;
using namespace shardscope::app;

namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;

std::int64_t gib(double value) {
    return std::llround(value * kGib);
}

const char* const kNew =
    "Traceback (most recent call last):\n  File \"train.py\", line 88, in <module>\n    optimizer.step()\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 3 has a total capacity of 23.64 GiB "
    "of "
    "which 709.06 MiB is free. Including non-PyTorch memory, this process has 22.94 GiB memory in use. Of the "
    "allocated "
    "memory 20.53 GiB is allocated by PyTorch, and 1.12 GiB is reserved by PyTorch but unallocated. If reserved but "
    "unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True";
const char* const kOld = "RuntimeError: CUDA out of memory. Tried to allocate 512.00 MiB (GPU 0; 15.78 GiB total "
                         "capacity; 13.21 GiB already "
                         "allocated; 344.75 MiB free; 14.05 GiB reserved in total by PyTorch)";

} // namespace

class OomTest : public QObject {
    Q_OBJECT
private:
    planner::PlanResultPointer m_plan;

private Q_SLOTS:
    void initTestCase() {
        planner::PlanRequest request;
        request.graph = *planner::openGraph("gpt2-xl");
        request.cluster = *planner::openCluster("8x-titan-pcie3");
        m_plan = (*planner::Planner::create(request))->solve(16 * contract::kGiB);
        QVERIFY(m_plan->feasible);
    }
    void newWordsAreRead() {
        const auto report = parseOom(kNew);
        QVERIFY(report);
        QCOMPARE(report->requested, gib(1.96));
        QCOMPARE(*report->device, 3);
        QCOMPARE(*report->capacity, gib(23.64));
        QCOMPARE(*report->free, std::llround(709.06 * 1024 * 1024));
        QCOMPARE(*report->inUse, gib(22.94));
        QCOMPARE(*report->allocated, gib(20.53));
        QCOMPARE(*report->cached, gib(1.12));
        QVERIFY(qAbs(*report->outside() - gib(22.94 - 20.53 - 1.12)) < 4);
        QCOMPARE(*report->others(), 0);
    }
    void oldWordsAreRead() {
        const auto report = parseOom(kOld);
        QVERIFY(report);
        QCOMPARE(report->requested, 512 * contract::kMiB);
        QCOMPARE(*report->device, 0);
        QCOMPARE(*report->capacity, gib(15.78));
        QCOMPARE(*report->allocated, gib(13.21));
        QCOMPARE(*report->cached, gib(14.05) - gib(13.21));
        QVERIFY(!report->inUse && !report->outside() && !report->others());
    }
    void brokenLinesAreRead() {
        QString wrapped = kNew;
        wrapped.replace("capacity of", "capacity\n    of").replace(" of which", "\r\nof which");
        QCOMPARE(*parseOom(wrapped)->capacity, gib(23.64));
    }
    void otherTextsAreNone_data() {
        QTest::addColumn<QString>("text");
        QTest::newRow("empty") << "";
        QTest::newRow("prose") << "the machine ran out of memory yesterday";
        QTest::newRow("numbers only") << "Tried to allocate 1.96 GiB";
        QTest::newRow("cut short") << "CUDA out of memory. Tried to allocate";
        QTest::newRow("huge") << QString(1 << 20, 'a');
    }
    void otherTextsAreNone() {
        QFETCH(QString, text);
        QVERIFY(!parseOom(text));
    }
    void missingPartsAreNothing() {
        const auto report = parseOom("CUDA out of memory. Tried to allocate 20.00 MiB.");
        QVERIFY(report);
        QCOMPARE(report->requested, 20 * contract::kMiB);
        QVERIFY(!report->capacity && !report->free && !report->allocated && !report->cached && !report->inUse);
        const OomComparison comparison = compareOom(*report, *m_plan);
        QVERIFY(comparison.lines.empty());
        QCOMPARE(comparison.surplusBytes, 0);
        QCOMPARE(comparison.capacityBytes, 0);
    }
    void theMessageIsLaidAgainstThePlan() {
        const OomComparison comparison = compareOom(*parseOom(kNew), *m_plan);
        QVERIFY(comparison.lines.size() >= 4);
        QCOMPARE(comparison.lines[0].measured, gib(23.64));
        QCOMPARE(comparison.lines[0].planned, m_plan->request.cluster.device.memoryBytes);
        // Context and buffers: 1.29 GiB of which the plan expects its reserve; cached: 1.12 GiB beyond the slack.
        const std::int64_t reserve =
            m_plan->ledger[contract::Category::Context] + m_plan->ledger[contract::Category::Collective];
        const std::int64_t expected =
            gib(22.94 - 20.53 - 1.12) - reserve + gib(1.12) - m_plan->ledger[contract::Category::Slack];
        QVERIFY(qAbs(comparison.surplusBytes - expected) < 8);
        QCOMPARE(comparison.capacityBytes, 0); // within one percent of the bundled card
        QVERIFY(compareOom(*parseOom(kOld), *m_plan).capacityBytes == gib(15.78));
    }
    void theRequestIsNamed() {
        std::size_t largest = 0;
        for (std::size_t i = 0; i < m_plan->operators.size(); ++i)
            if (m_plan->operators[i].cost.memory[contract::Category::Parameters] >
                m_plan->operators[largest].cost.memory[contract::Category::Parameters])
                largest = i;
        OomReport report;
        report.requested = m_plan->operators[largest].cost.memory[contract::Category::Parameters];
        const QString text = compareOom(report, *m_plan).request;
        const QString name = QString::fromStdString(
            m_plan->request.graph->operators[static_cast<std::size_t>(m_plan->operators[largest].op)].name);
        QVERIFY2(text.contains(name), qPrintable(text));
        report.requested = gib(900);
        QVERIFY(compareOom(report, *m_plan).request.contains("No single buffer"));
    }
    void theCardOffersWhatHelps() {
        OomCard card;
        QSignalSpy reserve(&card, &OomCard::reserveRequested), capacity(&card, &OomCard::capacityRequested);
        const auto report = *parseOom(kNew);
        const OomComparison comparison = compareOom(report, *m_plan);
        card.open(report, comparison, "GPT-2 XL");
        QVERIFY(card.isVisible());
        QPushButton* visible = nullptr;
        for (auto* button : card.findChildren<QPushButton*>())
            if (button->isVisible() && button->text().contains("reserve"))
                visible = button;
        QVERIFY(visible);
        QTest::mouseClick(visible, Qt::LeftButton);
        QCOMPARE(reserve.count(), 1);
        QCOMPARE(reserve[0][0].toLongLong(), comparison.surplusBytes);
        QVERIFY(!card.isVisible());
        card.open(*parseOom(kOld), compareOom(*parseOom(kOld), *m_plan), "GPT-2 XL");
        for (auto* button : card.findChildren<QPushButton*>())
            if (button->isVisible() && button->text().contains("15.8 GiB"))
                QTest::mouseClick(button, Qt::LeftButton);
        QCOMPARE(capacity.count(), 1);
        card.open(report, comparison, "GPT-2 XL");
        QTest::keyClick(&card, Qt::Key_Escape);
        QVERIFY(!card.isVisible());
    }
};

QTEST_MAIN(OomTest)
#include "tst_oom.moc"
