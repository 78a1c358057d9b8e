// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/network/Decoder.h"

namespace shardscope::engine {

/// GPT-2: learned positions, LayerNorm, one fused projection to query, key and value, tanh GELU.
class Gpt2Decoder final : public Decoder {
public:
    Gpt2Decoder(const contract::Architecture& architecture, const std::vector<contract::Operator>& operators,
                const std::vector<contract::OperatorDecision>& decisions, const contract::Training& training,
                const contract::Preset& preset, BufferPool& pool, Device& device)
        : Decoder(architecture, operators, decisions, training, preset, pool, device) {}

private:
    void compute(std::int32_t op, const PartAccess& access) override;
    void differentiate(std::int32_t op, const PartAccess& access) override;
    void finishBackward(std::int32_t op) override;
    void differentiateNorm(const Buffers& b, const PartAccess& access, Write write);
};

} // namespace shardscope::engine
