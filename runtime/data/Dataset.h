// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace shardscope::engine {

/// Right and asked answers of an exact-match evaluation.
struct AnswerCount {
    std::int64_t asked = 0;
    std::int64_t right = 0;
};

/// A stream of samples without state: a sample is a function of (seed, step, index), so that any rank can produce any
/// sample and a resumed run goes on where it stopped.
class Dataset {
public:
    virtual ~Dataset() = default;

    /// Writes S token ids and S targets (kIgnoredTarget where the loss does not count). Allocates nothing.
    virtual void trainingSample(std::int64_t step, std::int64_t index, std::int32_t* tokens,
                                std::int32_t* targets) const = 0;
    /// The same for sample `index` of the held-out part, which is the same at every step.
    virtual void heldOutSample(std::int64_t index, std::int32_t* tokens, std::int32_t* targets) const = 0;
    /// Whether answers can be right or wrong here; else only the loss is reported.
    virtual bool hasAnswers() const { return false; }
    /// Counts the answers of one sample of which every counted token was predicted (`correct`, S entries from `first`).
    virtual AnswerCount countAnswers(const std::int32_t* /*tokens*/, const std::vector<bool>& /*correct*/,
                                     std::size_t /*first*/) const {
        return {};
    }
};

/// `name` is "builtin:addition", the path of token ids (see TokenData), or that of a file or folder, read as bytes.
/// Errors: BadInput, when there is no such path, too little text, or `vocabulary` cannot hold byte ids.
contract::Result<std::unique_ptr<Dataset>> openDataset(const std::string& name, std::uint64_t seed,
                                                       std::int64_t sequence, std::int64_t vocabulary);

} // namespace shardscope::engine
