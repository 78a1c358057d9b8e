// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/data/Dataset.h"

namespace shardscope::engine {

/// Text as bytes: a file, or the files of a folder (and its folders) in the order of their names. The last tenth is
/// held out; training samples are windows at random places of the rest.
class TextData : public Dataset {
public:
    /// Errors: BadInput.
    static contract::Result<std::unique_ptr<Dataset>> open(const std::string& path, std::uint64_t seed,
                                                           std::int64_t sequence);

    void trainingSample(std::int64_t step, std::int64_t index, std::int32_t* tokens,
                        std::int32_t* targets) const override;
    void heldOutSample(std::int64_t index, std::int32_t* tokens, std::int32_t* targets) const override;

private:
    TextData(std::string bytes, std::uint64_t seed, std::int64_t sequence);
    void write(std::int64_t begin, std::int32_t* tokens, std::int32_t* targets) const;

    std::string m_bytes;
    std::uint64_t m_seed;
    std::int64_t m_sequence;
    std::int64_t m_heldOutBegin;
};

} // namespace shardscope::engine
