// SPDX-License-Identifier: GPL-3.0-or-later
// What each convention keeps, operator by operator, against closed forms.
#include "planner/cost/MegatronActivations.h"
#include "planner/cost/PyTorchActivations.h"
#include "planner/cost/ZeroEstimates.h"
#include "planner/readers/Readers.h"
#include "planner/support/PlannerFixtures.h"

#include <QtTest>

#include <algorithm>

using namespace shardscope;
using namespace shardscope::planner;

namespace {

constexpr std::int64_t kSequence = 64;
constexpr std::int64_t kSamples = 3;
constexpr std::int64_t kLayers = 5;
constexpr std::int64_t kHidden = 96;
constexpr std::int64_t kHeads = 6;

struct Small {
    contract::Architecture architecture = testing::smallArchitecture(kLayers, kHidden, kHeads, 1000, true);
    std::vector<contract::Operator> operators = *contract::lowerArchitecture(architecture, kSequence);
    ActivationBatch batch{kSequence, kSamples, 2};
};

std::int64_t blockBytes(const Small& small, const KeptByOperator& kept) {
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < kept.size(); ++i) {
        for (const KeptTensor& tensor : kept[i])
            bytes += small.operators[i].block >= 0 ? tensor.bytes : 0;
    }
    return bytes;
}

/// s m h L
constexpr std::int64_t kUnit = kSequence * kSamples * kHidden * kLayers;
/// A s^2 m L
constexpr std::int64_t kScores = kHeads * kSequence * kSequence * kSamples * kLayers;
/// fp32 mean and rstd of two norms.
constexpr std::int64_t kStatistics = 2 * 2 * 4 * kSequence * kSamples * kLayers;
constexpr std::int64_t kLogSumExp = 4 * kHeads * kSequence * kSamples * kLayers;

GraphPointer llama() {
    const auto graph = openGraph("llama-3.1-8b", 8192);
    if (!graph)
        qFatal("%s", graph.error().message.c_str());
    return *graph;
}

} // namespace

class tst_activation_conventions : public QObject {
    Q_OBJECT

private slots:
    void megatronOperatorsAddUpToTheClosedForm() {
        const Small small;
        const MegatronDecoder decoder{kHidden, kHeads, kLayers};
        for (const std::int64_t tensor : {1, 2, 3}) {
            for (const bool sequenceParallel : {false, true}) {
                for (const auto recompute :
                     {MegatronRecompute::None, MegatronRecompute::Selective, MegatronRecompute::Full}) {
                    MegatronOptions options;
                    options.tensor = tensor;
                    options.sequenceParallel = sequenceParallel;
                    options.recompute = recompute;
                    QCOMPARE(totalBytes(megatronActivations(small.architecture, small.operators, small.batch, options)),
                             megatronFirstStageBytes(decoder, small.batch, options));
                }
            }
        }
        QCOMPARE(megatronFirstStageBytes(decoder, small.batch, {}), 34 * kUnit + 5 * kScores);
    }

    void pytorchGpt2IsMegatronsSumAndStatistics() {
        const Small small;
        PyTorchOptions options;
        options.attention = AttentionKernel::Materialised;
        options.dropout = true;
        const auto kept = [&] {
            return blockBytes(small, pytorchActivations(small.architecture, small.operators, small.batch, options));
        };
        QCOMPARE(kept(), 34 * kUnit + 5 * kScores + kStatistics);
        options.dropout = false;
        QCOMPARE(kept(), 32 * kUnit + 2 * kScores + kStatistics);
        options.attention = AttentionKernel::Fused;
        QCOMPARE(kept(), 32 * kUnit + kStatistics + kLogSumExp);
        options.composedActivation = true; // three more tensors of 4 h
        QCOMPARE(kept(), 56 * kUnit + kStatistics + kLogSumExp);
        options.recompute = PyTorchRecompute::Full;
        QCOMPARE(kept(), 2 * kUnit);
    }

    void pytorchFollowsThePrecision() {
        Small small;
        small.batch.elementBytes = 4;
        const auto kept = pytorchActivations(small.architecture, small.operators, small.batch, {});
        // Everything but the fp32 statistics doubles.
        QCOMPARE(blockBytes(small, kept), 64 * kUnit + kStatistics + kLogSumExp);
    }

    void selectiveRecomputationHoldsEverySecondProduct() {
        const GraphPointer graph = llama();
        const ActivationBatch batch{8192, 2, 2};
        PyTorchOptions options;
        options.recompute = PyTorchRecompute::MatrixProducts;
        const auto bytesOfBlock = [&](const KeptByOperator& kept) {
            std::int64_t bytes = 0;
            for (std::size_t i = 0; i < kept.size(); ++i) {
                for (const KeptTensor& tensor : kept[i])
                    bytes += graph->operators[i].block == 7 ? tensor.bytes : 0;
            }
            return bytes / batch.tokens();
        };
        // A token: block input, query, value, gate, down, attention output and its fp32 log-sum-exp of 32 heads.
        const std::int64_t eager = 2 * (4096 + 4096 + 1024 + 14336 + 4096 + 4096) + 4 * 32;
        QCOMPARE(bytesOfBlock(pytorchActivations(*graph->architecture, graph->operators, batch, options)), eager);
        options.compiled = true;
        QCOMPARE(bytesOfBlock(pytorchActivations(*graph->architecture, graph->operators, batch, options)),
                 eager - 2 * 4096);
    }

    void groupedKeysAreRepeatedOnlyWhereAsked() {
        const GraphPointer graph = llama();
        const ActivationBatch batch{8192, 1, 2};
        PyTorchOptions options;
        const std::int64_t repeated =
            totalBytes(pytorchActivations(*graph->architecture, graph->operators, batch, options));
        options.repeatedKeyValue = false;
        const std::int64_t grouped =
            totalBytes(pytorchActivations(*graph->architecture, graph->operators, batch, options));
        QCOMPARE(repeated - grouped, std::int64_t(2) * 8192 * 32 * 2 * (4096 - 1024));
    }

    void materialisedLlamaKeepsProbabilitiesTwice() {
        const GraphPointer graph = llama();
        const ActivationBatch batch{8192, 1, 2};
        PyTorchOptions options;
        options.attention = AttentionKernel::Materialised;
        const KeptByOperator kept = pytorchActivations(*graph->architecture, graph->operators, batch, options);
        std::int64_t probabilities = 0;
        for (const auto& tensors : kept) {
            for (const KeptTensor& tensor : tensors)
                probabilities += tensor.name.starts_with("probabilities") ? tensor.bytes : 0;
        }
        QCOMPARE(probabilities, std::int64_t(6) * 32 * 32 * 8192 * 8192);
    }

    void lossPeaksInItsBackward() {
        QCOMPARE(pytorchLoss(10, 7, 2).peakBytes, std::int64_t(12) * 70);
        QCOMPARE(pytorchLoss(10, 7, 2).slackBytes, std::int64_t(2) * 70);
        QCOMPARE(pytorchLoss(10, 7, 4).peakBytes, std::int64_t(12) * 70);
        QCOMPARE(pytorchLoss(10, 7, 4).slackBytes, std::int64_t(0));
    }

    void shardedReservesGoDownWithTheDevices() {
        const GraphPointer graph = llama();
        const contract::Preset preset = *contract::findPreset("fsdp2-mixed");
        const auto reserved = [&](std::int64_t ranks) {
            return fsdp2Reserved(graph->operators, {}, {}, preset, ranks).total();
        };
        const double expected = 16.0 * static_cast<double>(graph->countParameters().unique) * (1.0 / 8 - 1.0 / 128);
        QVERIFY(std::abs(static_cast<double>(reserved(8) - reserved(128)) / expected - 1) < 1e-5);
    }

    void zeroStagesDivideTheirShare() {
        const contract::Preset preset = *contract::findPreset("bf16-adam");
        QCOMPARE(zeroStateBytes(7.5e9, 0, 64, preset), 120e9);
        QCOMPARE(zeroStateBytes(7.5e9, 3, 64, preset), 1.875e9);
    }

    void t5IsCounted() {
        const T5Parameters large = countT5Parameters({1024, 64, 16, 4096, 24, 32128, 32});
        QCOMPARE(large.total, std::int64_t(737668096));
        QCOMPARE(large.largestLayer, std::int64_t(32899072));
    }
};

QTEST_APPLESS_MAIN(tst_activation_conventions)
#include "tst_activation_conventions.moc"
