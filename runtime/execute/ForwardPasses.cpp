// SPDX-License-Identifier: GPL-3.0-or-later
// The executor's forward passes that no backward pass follows.
#include "runtime/execute/Executor.h"

#include <algorithm>

namespace shardscope::engine {

using contract::StepCode;
using contract::StepInstruction;

contract::Result<void> Executor::runForward() {
    // Gathers that it issued for the backward pass are awaited and forgotten.
    for (std::size_t i = 0; m_setup.program.instructions[i].code != StepCode::Loss; ++i) {
        const StepInstruction& instruction = m_setup.program.instructions[i];
        begin(i);
        if (instruction.code == StepCode::Gather) {
            takeSlot(instruction.slot);
            post(instruction);
        } else if (instruction.code == StepCode::Forward && !runCompute(i)) {
            return tl::unexpected(failure());
        }
    }
    m_current = kIdle;
    if (auto drained = awaitLane(); !drained)
        return drained;
    for (std::int32_t slot = 0; slot < m_setup.program.slotCount; ++slot)
        giveBackSlot(slot);
    return {};
}

contract::Result<std::vector<float>> Executor::predict(std::int64_t position) {
    for (std::int64_t i = 0; i < m_setup.training.microBatch; ++i)
        m_data.heldOutSample(0, m_decoder->takeTokens() + i * m_setup.training.sequence,
                             m_decoder->takeTargets() + i * m_setup.training.sequence);
    m_decoder->deliverBatch();
    m_decoder->beginPass(Decoder::HeadUse::Predict, position);
    if (auto forward = runForward(); !forward)
        return tl::unexpected(forward.error());
    return m_decoder->takeLogits();
}

contract::Result<Evaluation> Executor::evaluate(std::int64_t samples) {
    const std::int64_t microBatch = m_setup.training.microBatch;
    const std::int64_t sequence = m_setup.training.sequence;
    double sums[4] = {}; // loss, counted tokens, answers asked, answers right
    std::vector<bool> correct;
    const std::int64_t perRound = microBatch * m_setup.ranks;
    for (std::int64_t first = 0; first < samples; first += perRound) {
        std::int32_t* const tokens = m_decoder->takeTokens();
        std::int32_t* const targets = m_decoder->takeTargets();
        const std::int64_t mine = first + rank() * microBatch;
        for (std::int64_t i = 0; i < microBatch; ++i) {
            m_data.heldOutSample(mine + i, tokens + i * sequence, targets + i * sequence);
            if (mine + i >= samples)
                std::fill_n(targets + i * sequence, sequence, kIgnoredTarget);
        }
        m_decoder->deliverBatch();
        m_decoder->beginPass(Decoder::HeadUse::Judge);
        if (auto forward = runForward(); !forward)
            return tl::unexpected(forward.error());
        const LossSum sum = m_decoder->evaluate(correct);
        sums[0] += sum.loss;
        sums[1] += static_cast<double>(sum.tokens);
        for (std::int64_t i = 0; m_data.hasAnswers() && i < microBatch && mine + i < samples; ++i) {
            const AnswerCount count =
                m_data.countAnswers(tokens + i * sequence, correct, static_cast<std::size_t>(i * sequence));
            sums[2] += static_cast<double>(count.asked);
            sums[3] += static_cast<double>(count.right);
        }
    }
    if (auto summed = onLane([&sums](Ring& ring) { return ring.sumScalars(sums, 4); }); !summed)
        return tl::unexpected(summed.error());
    return Evaluation{sums[0] / std::max(sums[1], 1.0),
                      {static_cast<std::int64_t>(sums[2]), static_cast<std::int64_t>(sums[3])}};
}

} // namespace shardscope::engine
