// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

namespace shardscope::engine {

/// Byte pair encoding (Sennrich et al. 2016, section 3.2): a word is its bytes, and as long as two neighbours are a
/// known pair, those of the earliest learned pair, the leftmost first, become one token.
class BytePairs {
public:
    /// Two tokens that become one; their place in a list is their rank.
    struct Merge {
        std::int32_t left = 0;
        std::int32_t right = 0;
        std::int32_t merged = 0;
    };
    /// Larger words are refused by those who ask: the work space is 40 bytes for each of theirs.
    static constexpr std::size_t kMaximumWordBytes = std::size_t{16} << 20;

    BytePairs(const std::array<std::int32_t, 256>& idsOfBytes, const std::vector<Merge>& merges);

    /// Appends the tokens of a word.
    void encode(std::string_view word, std::vector<std::int32_t>& ids);

private:
    static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
    struct Known {
        std::uint64_t pair = std::numeric_limits<std::uint64_t>::max(); ///< of ids; none are that large
        std::uint32_t rank = kNone;
        std::int32_t merged = 0;
    };
    struct Symbol {
        std::int32_t id = 0; ///< -1: it has become part of the one before it
        std::uint32_t previous = kNone;
        std::uint32_t next = kNone;
    };
    struct Candidate {
        std::uint32_t rank = 0;
        std::uint32_t left = 0;
        std::int32_t merged = 0;
        bool isWorseThan(const Candidate& other) const {
            return rank != other.rank ? rank > other.rank : left > other.left;
        }
    };

    const Known* find(std::int32_t left, std::int32_t right) const;
    /// Adds the pair that begins at a symbol, if it is known.
    void consider(std::uint32_t left);
    void mergeAll();

    std::array<std::int32_t, 256> m_idsOfBytes;
    std::vector<Known> m_known; ///< open addressing; a power of two, at most half full
    std::vector<Symbol> m_symbols;
    std::vector<Candidate> m_candidates; ///< a heap
};

} // namespace shardscope::engine
