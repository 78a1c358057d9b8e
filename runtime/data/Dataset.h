// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace shardscope::engine {

class Tokenizer;

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

/// What a data set is asked for by.
struct DatasetRequest {
    /// "builtin:addition", the path of token ids (see TokenData), or that of a text file or folder.
    std::string name;
    std::uint64_t seed = 1;
    std::int64_t sequence = 0;                        ///< of the plan, in tokens
    std::int64_t vocabulary = 0;                      ///< of the plan's network
    std::string tokenizer = {};                       ///< tokenizer.json or its folder; empty: text is read as bytes
    std::function<void(const std::string&)> say = {}; ///< is told how far a long text is; nothing: nobody is
    std::function<bool()> isStopped = {};             ///< asked while a long text is encoded; nothing: never
};

/// Errors: BadInput, when there is no such path, too little text, or ids that the vocabulary does not have; Usage, for
/// a tokenizer where there is no text; Interrupted, when it was stopped.
contract::Result<std::unique_ptr<Dataset>> openDataset(const DatasetRequest& request);
/// The same errors, without encoding all of a long text.
contract::Result<void> checkDataset(const DatasetRequest& request);
/// The tokenizer at `path`, if a network with this vocabulary can be trained with it. Errors: BadInput.
contract::Result<std::unique_ptr<Tokenizer>> openTokenizer(const std::string& path, std::int64_t vocabulary);

} // namespace shardscope::engine
