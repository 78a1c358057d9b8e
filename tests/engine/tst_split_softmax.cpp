// SPDX-License-Identifier: GPL-3.0-or-later
// Cross-entropy of logits that come part by part of the vocabulary and chunk by chunk of the tokens, against that of
// all logits at once: on CPU cores, and with the kernels of a GPU by one thread and by a team.
#include "engine/support/KernelMemory.h"
#include "runtime/ops/HostKernels.h"

#include <QtTest/QtTest>

#include <cmath>
#include <memory>

using namespace shardscope;
using namespace shardscope::engine;
using namespace shardscope::testing;

namespace {

constexpr std::int64_t kTokens = 7, kVocabulary = 41;
constexpr std::int64_t kFirstRows[] = {0, 1, 14, 40}; ///< of parts of 1, 13, 26 and 1 rows
constexpr std::int64_t kChunk = 3;
const std::vector<std::int32_t> kTargets{0, 40, kIgnoredTarget, 13, 14, 22, 0};

std::unique_ptr<Kernels> kernelsOf(const QString& name) {
    if (name.startsWith("CPU"))
        return std::make_unique<HostKernels>();
    if (name.startsWith("team"))
        return std::make_unique<PortableKernels<ThreadLauncher>>();
    return std::make_unique<PortableKernels<LoopLauncher>>();
}

/// visit(columns of a part, first row, first token, whether it is the first part) of every part of every chunk.
template<typename Visit> void forEachPiece(Memory& logits, Visit visit) {
    for (std::size_t part = 0; part < std::size(kFirstRows); ++part)
        for (std::int64_t begin = 0; begin < kTokens; begin += kChunk) {
            const std::int64_t first = kFirstRows[part];
            const std::int64_t end = part + 1 < std::size(kFirstRows) ? kFirstRows[part + 1] : kVocabulary;
            const Elements at = Elements(logits) + (begin * kVocabulary + first);
            visit(ElementMatrix{at, std::min(kChunk, kTokens - begin), end - first, kVocabulary}, first, begin,
                  part == 0);
        }
}

/// What three rows of a buffer of losses hold; of an earlier batch at first.
struct Rows {
    Memory logsumexp{ElementType::Float32, kTokens, 99}, target{ElementType::Float32, kTokens, 98},
        largest{ElementType::Float32, kTokens, 97};
    TokenSoftmax softmax() { return {logsumexp, target, largest}; }
};

void join(Kernels& kernels, Memory& logits, Rows& rows) {
    forEachPiece(logits, [&](const ElementMatrix& piece, std::int64_t first, std::int64_t begin, bool isFirst) {
        kernels.joinSoftmax({piece.data, piece.rows, piece.columns, piece.stride}, first, kTargets.data() + begin,
                            rows.softmax() + begin, isFirst ? Write::Overwrite : Write::Add);
    });
}

} // namespace

class SplitSoftmaxTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void itIsThatOfTheWhole_data();
    void itIsThatOfTheWhole();
    void aBrokenLogitIsSeen_data() { itIsThatOfTheWhole_data(); }
    void aBrokenLogitIsSeen();
};

void SplitSoftmaxTest::itIsThatOfTheWhole_data() {
    QTest::addColumn<bool>("bf16");
    QTest::newRow("CPU") << false;
    for (const char* name : {"one thread", "team"})
        for (const bool bf16 : {false, true})
            QTest::addRow("%s, %s", name, bf16 ? "bf16" : "fp32") << bf16;
}

void SplitSoftmaxTest::itIsThatOfTheWhole() {
    QFETCH(const bool, bf16);
    const auto kernels = kernelsOf(QTest::currentDataTag());
    const ElementType type = bf16 ? ElementType::BFloat16 : ElementType::Float32;
    Floats values = randomFloats(kTokens * kVocabulary, 5, 4.0F);
    values[3 * kVocabulary + 13] = 30; // a target that is sure to be right
    const Memory logits(type, values);
    Memory whole = logits, split = logits, losses(ElementType::Float32, kTokens), marks(ElementType::Float32, kTokens);

    Rows rows;
    join(*kernels, split, rows);
    const LossSum expected = kernels->crossEntropy(whole, kTargets.data(), kTokens, kVocabulary, marks);
    const LossSum judged = kernels->judgeSoftmax(rows.softmax(), kTargets.data(), kTokens);
    QVERIFY(std::abs(judged.loss - expected.loss) < 1e-5 * expected.loss);
    QCOMPARE(judged.tokens, std::int64_t{6});
    QVERIFY(expected.correct >= 1);
    QCOMPARE(judged.correct, expected.correct);
    QCOMPARE(rows.largest.floats(), marks.floats());

    kernels->clearSums();
    kernels->crossEntropyWithGradient(whole, kTargets.data(), kTokens, kVocabulary, losses);
    const auto wanted = kernels->readSums();
    kernels->clearSums();
    join(*kernels, split, rows);
    kernels->addLosses(rows.softmax(), kTargets.data(), kTokens);
    const auto sums = kernels->readSums();
    QVERIFY(wanted && sums);
    QVERIFY(std::abs(sums->loss - wanted->loss) < 1e-5 * wanted->loss);
    QCOMPARE(sums->tokens, wanted->tokens);

    forEachPiece(split, [&](const ElementMatrix& piece, std::int64_t first, std::int64_t begin, bool) {
        kernels->softmaxGradient(piece, first, kTargets.data() + begin, rows.softmax().logsumexp + begin);
    });
    QVERIFY(worst(split.floats(), whole.doubles()) < (bf16 ? 4e-3 : 1e-6));
}

/// A loss that is no number is not taken for a small one, whatever part it comes from.
void SplitSoftmaxTest::aBrokenLogitIsSeen() {
    QFETCH(const bool, bf16);
    const auto kernels = kernelsOf(QTest::currentDataTag());
    for (const std::size_t row : {std::size_t{0}, std::size_t{20}, std::size_t{40}})
        for (const float value : {NAN, INFINITY}) {
            Floats values = randomFloats(kTokens * kVocabulary, 6);
            values[row] = value; // of the first token, whose target is row 0
            Memory logits(bf16 ? ElementType::BFloat16 : ElementType::Float32, values);
            Rows rows;
            join(*kernels, logits, rows);
            kernels->clearSums();
            kernels->addLosses(rows.softmax(), kTargets.data(), kTokens);
            QVERIFY(!std::isfinite(kernels->readSums()->loss));
        }
}

QTEST_GUILESS_MAIN(SplitSoftmaxTest)
#include "tst_split_softmax.moc"
