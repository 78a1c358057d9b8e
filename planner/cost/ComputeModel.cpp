// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cost/ComputeModel.h"

#include "runtime/contract/Sizing.h"

#include <algorithm>

namespace shardscope::planner {

using contract::Operator;
using contract::OperatorKind;
using contract::OperatorRole;

namespace {

double real(std::int64_t value) {
    return static_cast<double>(value);
}

/// Elements of a sample's activation of this name that is kept for backward; 0 when there is none.
double keptElements(const Operator& op, std::string_view name) {
    for (const contract::ActivationSpec& spec : op.kept)
        if (spec.name == name)
            return real(spec.elementsPerSample);
    return 0;
}

} // namespace

ComputeModel::ComputeModel(const contract::Cluster& cluster, const contract::Preset& preset, bool paperMode)
    : m_preset(preset), m_paperMode(paperMode), m_memoryBandwidth(cluster.device.memoryBandwidth) {
    const contract::Device& device = cluster.device;
    m_flops = preset.gatheredBytes == 2 && device.flopsBf16 > 0 ? device.flopsBf16 : device.flopsFp32;
    if (!paperMode && preset.gatheredBytes == 4) // what was measured is float32
        m_kernels = cluster.kernels;
}

double ComputeModel::forwardSeconds(const Operator& op, std::int64_t samples) const {
    const double flopSeconds = op.flopsForward * real(samples) / m_flops;
    if (m_paperMode)
        return flopSeconds;
    if (m_kernels && op.kind != OperatorKind::Other)
        return measuredForwardSeconds(op, real(samples)) / 3; // of forward and backward, which is twice forward
    // What is kept is written once and read once; embeddings read their rows and write the residual stream.
    double touched = 2 * real(contract::keptBytes(op, m_preset, samples, false));
    if (op.kind == OperatorKind::Embedding)
        touched = 3 * real(samples * m_preset.gatheredBytes) * real(op.liveActivationElements);
    return flopSeconds + touched / m_memoryBandwidth;
}

double ComputeModel::updateSeconds(double bytes) const {
    return m_kernels ? bytes * m_kernels->updateSecondsPerByte : bytes / m_memoryBandwidth;
}

double ComputeModel::measuredForwardSeconds(const Operator& op, double samples) const {
    const contract::KernelRates& k = *m_kernels;
    switch (op.kind) {
    case OperatorKind::Embedding:
        return samples * real(op.liveActivationElements) * k.embeddingSecondsPerElement;
    case OperatorKind::Norm:
        return samples * keptElements(op, "input") * k.normSecondsPerElement;
    default:
        break;
    }
    double seconds = productSeconds(op, samples);
    if (const auto& attention = op.attention)
        seconds +=
            samples * (attention->flops(attention->keys) * k.attentionSecondsPerFlop +
                       real(attention->queries * attention->heads * attention->headDim) * k.attentionSecondsPerElement);
    if (op.role == OperatorRole::Query || op.role == OperatorRole::Key)
        seconds += samples * keptElements(op, "output") * k.rotarySecondsPerElement;
    if (op.role == OperatorRole::MlpGate)
        seconds += samples * keptElements(op, "output") * k.siluGateSecondsPerElement;
    return seconds + samples * keptElements(op, "pre_activation") * k.geluSecondsPerElement;
}

double ComputeModel::productSeconds(const Operator& op, double samples) const {
    const contract::KernelRates& k = *m_kernels;
    const auto weight = std::max_element(op.tensors.begin(), op.tensors.end(),
                                         [](const auto& a, const auto& b) { return a.elements() < b.elements(); });
    const double perSample = op.flopsForward - (op.attention ? op.attention->flops(op.attention->keys) : 0);
    if (weight == op.tensors.end() || weight->elements() == 0 || perSample <= 0)
        return 0;
    const double outputs = real(weight->rows);
    const double inputs = real(weight->columns);
    const double tokens = samples * perSample / (2 * outputs * inputs);
    double seconds = samples * perSample * k.productSecondsPerFlop + k.productSeconds +
                     (tokens * (inputs + outputs) + outputs * inputs) * k.productSecondsPerElement;
    if (op.role == OperatorRole::Head)
        seconds += tokens * outputs * k.lossSecondsPerLogit;
    return seconds;
}

} // namespace shardscope::planner
