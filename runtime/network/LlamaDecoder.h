// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/network/Decoder.h"
#include "runtime/ops/Rotary.h"

#include <memory>

namespace shardscope::engine {

/// Llama and its relatives (Mistral, Qwen 2 and 3): rotary positions, RMSNorm, separate projections with grouped
/// queries, optionally a norm over each head of query and key, SwiGLU.
///
/// The wide gradient region holds dq (T, heads d), dk (T, kv_heads d) and dv (T, kv_heads d) one after the other, or
/// the gradients of gate and up (T, I) each.
class LlamaDecoder final : public Decoder {
public:
    static contract::Result<std::unique_ptr<Decoder>>
    create(const contract::Architecture& architecture, const std::vector<contract::Operator>& operators,
           const std::vector<contract::OperatorDecision>& decisions, const contract::Training& training,
           const contract::Preset& preset, BufferPool& pool, Device& device);

private:
    LlamaDecoder(const contract::Architecture& architecture, const std::vector<contract::Operator>& operators,
                 const std::vector<contract::OperatorDecision>& decisions, const contract::Training& training,
                 const contract::Preset& preset, BufferPool& pool, Device& device, Rotary rotary);
    void compute(std::int32_t op, const PartAccess& access) override;
    void differentiate(std::int32_t op, const PartAccess& access) override;
    void finishBackward(std::int32_t op) override;

    /// Operators of one block, by role.
    struct Block {
        std::int32_t query = -1, key = -1, value = -1, gate = -1, up = -1;
    };
    const Block& blockOf(std::int32_t op) const { return m_blocks[static_cast<std::size_t>(record(op).block)]; }
    void linkBuffers();
    void differentiateNorm(const Buffers& b, const PartAccess& access, Write write);
    /// Norm over each head of (T, width), whose gradient is in place.
    void differentiateHeadNorm(const Buffers& b, const PartAccess& access, std::int64_t width, Elements gradient);
    /// Rotates what the projection and its norm have written.
    void rotate(Elements rows, std::int64_t heads, Rotary::Direction direction);
    AttentionElements projected(std::int32_t op);
    AttentionGradients projectedGradients();

    std::int64_t queryWidth() const { return m_architecture.heads * m_architecture.headDim; }
    std::int64_t keyWidth() const { return m_architecture.kvHeads * m_architecture.headDim; }

    Rotary m_rotary;
    std::vector<Block> m_blocks;
};

} // namespace shardscope::engine
