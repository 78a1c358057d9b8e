// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/data/Dataset.h"

#include <memory>
#include <string>
#include <vector>

namespace shardscope::engine {

/// Token ids from files *.bin: one, or those of a folder in the order of their names, as one long text. Ids are 16 bits
/// wide, little-endian, or 32 where the vocabulary needs it; the headers of llm.c (1 KiB, magic 20240520 for 16 and
/// 20240801 for 32 bits) are recognised. Files with "val" in their names are held out; without any, the last tenth.
/// Mapped, not copied: a data set may be larger than the memory.
class TokenData : public Dataset {
public:
    /// Whether `path` is such a file, or a folder that holds one.
    static bool isTokenData(const std::string& path);
    /// Errors: BadInput, naming the file: an id outside the vocabulary, half an id, too few tokens.
    static contract::Result<std::unique_ptr<Dataset>> open(const std::string& path, std::uint64_t seed,
                                                           std::int64_t sequence, std::int64_t vocabulary);

    void trainingSample(std::int64_t step, std::int64_t index, std::int32_t* tokens,
                        std::int32_t* targets) const override;
    void heldOutSample(std::int64_t index, std::int32_t* tokens, std::int32_t* targets) const override;

private:
    class Shard;
    /// A stretch of tokens over several shards.
    struct Part {
        std::vector<std::shared_ptr<const Shard>> shards;
        std::int64_t begin = 0; ///< tokens of the first shards that are not part of it
        std::int64_t end = 0;   ///< all tokens up to its end, `begin` included
        std::int64_t count() const { return end - begin; }
    };
    TokenData(std::uint64_t seed, std::int64_t sequence) : m_seed(seed), m_sequence(sequence) {}
    void split();
    /// The window that begins at one of the places of a part which `key` chooses.
    void write(const Part& part, std::uint64_t key, std::int32_t* tokens, std::int32_t* targets) const;

    std::uint64_t m_seed;
    std::int64_t m_sequence;
    Part m_training;
    Part m_heldOut;
};

} // namespace shardscope::engine
