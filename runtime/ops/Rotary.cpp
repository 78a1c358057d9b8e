// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/ops/Rotary.h"

#include "runtime/contract/Json.h"
#include "runtime/ops/Vectorised.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <numbers>

namespace shardscope::engine {

namespace {

SHARDSCOPE_VECTORISED
void rotate(float* head, const float* cosines, const float* sines, std::int64_t pairs) {
    float* const low = head;
    float* const high = head + pairs;
    for (std::int64_t i = 0; i < pairs; ++i) {
        const float a = low[i];
        const float b = high[i];
        low[i] = a * cosines[i] - b * sines[i];
        high[i] = b * cosines[i] + a * sines[i];
    }
}

} // namespace

contract::Result<Rotary> Rotary::create(const contract::Rope& rope, std::int64_t headDim) {
    Rotary rotary;
    const std::int64_t pairs = headDim / 2;
    for (std::int64_t i = 0; i < pairs; ++i)
        rotary.m_frequencies.push_back(
            std::pow(rope.theta, -2.0 * static_cast<double>(i) / static_cast<double>(headDim)));
    rotary.m_angles.resize(static_cast<std::size_t>(2 * pairs));
    if (rope.scalingKind.empty())
        return rotary;
    if (rope.scalingKind != "linear" && rope.scalingKind != "llama3")
        return contract::badInput(fmt::format(
            "rope.scaling_kind is \"{}\"; this runtime computes none, linear and llama3", rope.scalingKind));
    const auto document = contract::parseJson(rope.scaling, "rope.scaling");
    if (!document)
        return tl::unexpected(document.error());
    const contract::JsonCursor scaling(*document, "rope.scaling");
    const double factor = scaling.at("factor").number(1e-6, 1e9);
    if (rope.scalingKind == "linear") {
        if (scaling.failed())
            return scaling.error();
        for (double& frequency : rotary.m_frequencies)
            frequency /= factor;
        return rotary;
    }
    const double low = scaling.at("low_freq_factor").number(1e-6, 1e9);
    const double high = scaling.at("high_freq_factor").number(1e-6, 1e9);
    const double context = scaling.at("original_max_position_embeddings").number(1, 1e12);
    if (!scaling.failed() && high <= low)
        scaling.at("high_freq_factor").fail(fmt::format("is {}; it must be above low_freq_factor {}", high, low));
    if (scaling.failed())
        return scaling.error();
    // As Llama 3.1 does: by how often a wave repeats within the original context.
    for (double& frequency : rotary.m_frequencies) {
        const double turns = context * frequency / (2.0 * std::numbers::pi);
        if (turns < low)
            frequency /= factor;
        else if (turns < high) {
            const double blend = (turns - low) / (high - low);
            frequency = (1.0 - blend) * frequency / factor + blend * frequency;
        }
    }
    return rotary;
}

void Rotary::apply(float* x, std::int64_t tokens, std::int64_t sequence, std::int64_t heads,
                   Direction direction) const {
    const auto pairs = static_cast<std::int64_t>(m_frequencies.size());
    float* const cosines = m_angles.data();
    float* const sines = cosines + pairs;
    const std::int64_t width = heads * 2 * pairs;
    const double sign = direction == Direction::Forward ? 1.0 : -1.0;
    for (std::int64_t position = 0; position < sequence; ++position) {
        for (std::int64_t i = 0; i < pairs; ++i) {
            const double angle = sign * static_cast<double>(position) * m_frequencies[static_cast<std::size_t>(i)];
            cosines[i] = static_cast<float>(std::cos(angle));
            sines[i] = static_cast<float>(std::sin(angle));
        }
        for (std::int64_t token = position; token < tokens; token += sequence)
            for (std::int64_t head = 0; head < heads; ++head)
                rotate(x + token * width + head * 2 * pairs, cosines, sines, pairs);
    }
}

} // namespace shardscope::engine
