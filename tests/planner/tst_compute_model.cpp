// SPDX-License-Identifier: GPL-3.0-or-later
// Seconds of computing: from what a machine's kernels were measured to take, or from rates.
#include "planner/cost/ComputeModel.h"
#include "planner/support/PlannerFixtures.h"
#include "runtime/contract/Cluster.h"

#include <QtTest>
#include <nlohmann/json.hpp>

#include <algorithm>

using namespace shardscope;
using namespace shardscope::planner;
using contract::Operator;
using contract::OperatorRole;

namespace {

constexpr std::int64_t kSequence = 64;
constexpr std::int64_t kSamples = 3;
constexpr double kTokens = kSequence * kSamples;
constexpr double kHidden = 96;

/// Every rate another power of ten, so that no term can stand in for another.
contract::KernelRates rates() {
    contract::KernelRates k;
    k.productSecondsPerFlop = 1e-11;
    k.productSecondsPerElement = 1e-9;
    k.productSeconds = 1e-6;
    k.attentionSecondsPerFlop = 3e-11;
    k.attentionSecondsPerElement = 3e-9;
    k.normSecondsPerElement = 2e-9;
    k.geluSecondsPerElement = 5e-9;
    k.siluGateSecondsPerElement = 6e-9;
    k.rotarySecondsPerElement = 7e-9;
    k.embeddingSecondsPerElement = 8e-9;
    k.lossSecondsPerLogit = 9e-9;
    k.updateSecondsPerByte = 4e-10;
    return k;
}

contract::Cluster cluster(bool measured) {
    contract::Cluster cluster;
    cluster.device.flopsFp32 = 1e12;
    cluster.device.flopsBf16 = 1e13;
    cluster.device.memoryBandwidth = 1e10;
    if (measured)
        cluster.kernels = rates();
    return cluster;
}

std::vector<Operator> operators() {
    return *contract::lowerArchitecture(testing::smallArchitecture(2, 96, 6, 1000, true), kSequence);
}
const Operator& find(const std::vector<Operator>& all, OperatorRole role) {
    return *std::find_if(all.begin(), all.end(), [&](const Operator& op) { return op.role == role; });
}

double product(double tokens, double outputs, double inputs) {
    return 2 * tokens * outputs * inputs * 1e-11 + (tokens * (outputs + inputs) + outputs * inputs) * 1e-9 + 1e-6;
}

void compare(double got, double expected) {
    QVERIFY2(std::abs(got - expected) < 1e-9 * expected, qPrintable(QString("%1, not %2").arg(got).arg(expected)));
}

} // namespace

class tst_compute_model : public QObject {
    Q_OBJECT

private slots:
    void measuredKernelsArePricedByShape() {
        const auto all = operators();
        const ComputeModel model(cluster(true), *contract::findPreset("fp32-adam"), false);
        const auto seconds = [&](OperatorRole role) { return 3 * model.forwardSeconds(find(all, role), kSamples); };
        compare(seconds(OperatorRole::TokenEmbedding), kTokens * kHidden * 8e-9);
        compare(seconds(OperatorRole::MlpNorm), kTokens * kHidden * 2e-9);
        compare(seconds(OperatorRole::AttentionOutput), product(kTokens, kHidden, kHidden));
        compare(seconds(OperatorRole::MlpUp), product(kTokens, 4 * kHidden, kHidden) + kTokens * 4 * kHidden * 5e-9);
        const double scores = 2 * 2.0 * kSamples * kSequence * kSequence * kHidden; // two products, whole
        compare(seconds(OperatorRole::QueryKeyValue),
                product(kTokens, 3 * kHidden, kHidden) + scores * 3e-11 + kTokens * kHidden * 3e-9);
        compare(seconds(OperatorRole::Head), product(kTokens, 1000, kHidden) + kTokens * 1000 * 9e-9);
        compare(model.updateSeconds(1000), 4e-7);
    }

    void gatedNetworksPayForGateAndRotation() {
        contract::Architecture llama = testing::smallArchitecture(2, 96, 6, 1000, true);
        llama.family = "llama";
        llama.attention = contract::AttentionLayout::Separate;
        llama.norm = contract::NormKind::RmsNorm;
        llama.activation = contract::Activation::SiluGated;
        llama.rope = contract::Rope{};
        llama.attentionBias = llama.attentionOutputBias = llama.mlpBias = false;
        const auto all = contract::lowerArchitecture(llama, kSequence);
        QVERIFY2(all.has_value(), all ? "" : all.error().message.c_str());
        const ComputeModel model(cluster(true), *contract::findPreset("fp32-adam"), false);
        const auto seconds = [&](OperatorRole role) { return 3 * model.forwardSeconds(find(*all, role), kSamples); };
        const auto inner = static_cast<double>(llama.intermediate);
        compare(seconds(OperatorRole::Query), product(kTokens, kHidden, kHidden) + kTokens * kHidden * 7e-9);
        compare(seconds(OperatorRole::MlpGate), product(kTokens, inner, kHidden) + kTokens * inner * 6e-9);
        compare(seconds(OperatorRole::MlpUp), product(kTokens, inner, kHidden));
    }

    /// The paper counts FLOPs alone; what was measured is float32.
    void ratesAreUsedWhereKernelsWereNotMeasured() {
        const auto all = operators();
        const Operator& op = find(all, OperatorRole::MlpUp);
        const double flops = op.flopsForward * kSamples;
        const ComputeModel paper(cluster(true), *contract::findPreset("fp32-adam"), true);
        compare(paper.forwardSeconds(op, kSamples), flops / 1e12);
        for (const bool measured : {false, true}) {
            const ComputeModel half(cluster(measured), *contract::findPreset("bf16-adam"), false);
            QVERIFY(half.forwardSeconds(op, kSamples) > flops / 1e13);
            compare(half.updateSeconds(1000), 1e-7);
        }
        const ComputeModel assumed(cluster(false), *contract::findPreset("fp32-adam"), false);
        QVERIFY(assumed.forwardSeconds(op, kSamples) > flops / 1e12);
        QVERIFY(assumed.forwardSeconds(op, kSamples) < 3 * flops / 1e12 + 1e-3);
    }

    void clusterFilesHoldMeasuredKernels() {
        contract::Cluster given = cluster(false);
        given.name = given.device.name = "here";
        given.device.memoryBytes = 1 << 30;
        given.device.peakFlopsFp32 = 1e12;
        given.device.peakFlopsBf16 = 1e13;
        given.inside = {1e-6, 1e9};
        contract::Json measured;
        measured["kernels"] = contract::toJson(rates());
        given.measured = measured.dump();
        contract::Json json = contract::Json::parse(contract::toJson(given).dump());
        const contract::JsonCursor cursor(json, "a.cluster.json");
        const contract::Cluster read = contract::readCluster(cursor);
        QVERIFY2(!cursor.failed(), cursor.failed() ? cursor.error().value().message.c_str() : "");
        QCOMPARE(read.kernels, std::optional(rates()));
        json["measured"]["kernels"].erase("product_seconds");
        const contract::JsonCursor broken(json, "a.cluster.json");
        contract::readCluster(broken);
        QVERIFY(broken.failed());
        const std::string message = broken.error().value().message;
        QVERIFY2(message.find("measured.kernels") != std::string::npos &&
                     message.find("product_seconds") != std::string::npos,
                 message.c_str());
    }
};

QTEST_GUILESS_MAIN(tst_compute_model)
#include "tst_compute_model.moc"
