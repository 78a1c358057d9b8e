// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/network/Initializer.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

namespace shardscope::engine {

namespace {
constexpr double kStandardDeviation = 0.02;
}

std::uint64_t tensorKey(std::uint64_t seed, std::string_view tensor) {
    std::uint64_t key = mixBits(seed);
    for (const char c : tensor)
        key = mixBits(key ^ static_cast<unsigned char>(c));
    return key;
}

float normalAt(std::uint64_t key, std::uint64_t index) {
    // Box and Muller's transform of two uniform numbers in (0, 1).
    const std::uint64_t bits = mixBits(key + 0xD1B54A32D192ED03ULL * (index + 1));
    const double u = (static_cast<double>(bits >> 32) + 0.5) * 0x1p-32;
    const double v = (static_cast<double>(bits & 0xFFFFFFFFULL) + 0.5) * 0x1p-32;
    return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v));
}

void fillElements(const TensorState& tensor, std::int64_t rank, Device& device, Elements to, bool sharded,
                  const std::function<float(std::int64_t)>& valueAt) {
    constexpr std::int64_t kPiece = 1 << 16;
    const std::int64_t begin = sharded ? tensor.shardBegin(rank) : 0;
    const std::int64_t count = sharded ? tensor.shardCount(rank) : tensor.elements;
    std::vector<float> piece(static_cast<std::size_t>(std::min(kPiece, count)));
    for (std::int64_t at = 0; at < count; at += kPiece) {
        const std::int64_t length = std::min(kPiece, count - at);
        const std::int64_t first = tensor.firstRow * tensor.columns + begin + at;
        for (std::int64_t e = 0; e < length; ++e)
            piece[static_cast<std::size_t>(e)] = valueAt(first + e);
        device.upload(to + at, piece.data(), length);
    }
}

void fillWeights(const TensorState& tensor, std::int64_t rank, Device& device,
                 const std::function<float(std::int64_t)>& valueAt) {
    fillElements(tensor, rank, device, tensor.weight, tensor.weightSharded, valueAt);
    if (tensor.master)
        fillElements(tensor, rank, device, tensor.master, tensor.updateSharded, valueAt);
}

void initializeWeights(const contract::Architecture& architecture, const std::vector<contract::Operator>& operators,
                       std::uint64_t seed, std::int64_t rank, const StateLayout& layout, Device& device) {
    const bool scalesResiduals = architecture.attention == contract::AttentionLayout::Fused;
    const double residualScale = scalesResiduals ? std::sqrt(2.0 * static_cast<double>(architecture.layers)) : 1.0;
    for (std::int32_t i = 0; i < layout.count(); ++i) {
        const contract::Operator& op = operators[static_cast<std::size_t>(i)];
        if (op.isTied())
            continue;
        const bool endsResidual =
            op.role == contract::OperatorRole::AttentionOutput || op.role == contract::OperatorRole::MlpDown;
        const double scale = kStandardDeviation / (endsResidual ? residualScale : 1.0);
        for (const PartState& part : layout.of(i).parts)
            for (std::size_t t = 0; t < part.tensors.size(); ++t) {
                const TensorState& tensor = part.tensors[t];
                const std::uint64_t key = tensorKey(seed, op.name + "." + op.tensors[t].name);
                const bool isMatrix = op.tensors[t].columns > 1;
                const float constant = op.kind == contract::OperatorKind::Norm && t == 0 ? 1.0F : 0.0F;
                fillWeights(tensor, rank, device, [&](std::int64_t element) {
                    return isMatrix ? static_cast<float>(scale) * normalAt(key, static_cast<std::uint64_t>(element))
                                    : constant;
                });
            }
    }
}

} // namespace shardscope::engine
