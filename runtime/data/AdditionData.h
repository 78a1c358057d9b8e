// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/data/Dataset.h"

namespace shardscope::engine {

/// Sums of two-digit numbers as text, "12+34=046;" after each other. Only the digits of the answers count in the loss.
/// A tenth of all pairs is held out for the evaluation.
class AdditionData : public Dataset {
public:
    /// Errors: BadInput when the sequence is too short for one sum.
    static contract::Result<std::unique_ptr<Dataset>> create(std::uint64_t seed, std::int64_t sequence);

    void trainingSample(std::int64_t step, std::int64_t index, std::int32_t* tokens,
                        std::int32_t* targets) const override;
    void heldOutSample(std::int64_t index, std::int32_t* tokens, std::int32_t* targets) const override;
    bool hasAnswers() const override { return true; }
    AnswerCount countAnswers(const std::int32_t* tokens, const std::vector<bool>& correct,
                             std::size_t first) const override;

    static bool isHeldOut(std::int64_t pair);

private:
    AdditionData(std::uint64_t seed, std::int64_t sequence) : m_seed(seed), m_sequence(sequence) {}
    void write(std::uint64_t key, bool heldOut, std::int32_t* tokens, std::int32_t* targets) const;

    std::uint64_t m_seed;
    std::int64_t m_sequence;
};

} // namespace shardscope::engine
