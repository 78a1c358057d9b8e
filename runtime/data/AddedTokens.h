// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace shardscope::engine {

/// A token that is found in the text as a whole, before it is cut into words.
struct AddedToken {
    std::int32_t id = 0;
    std::string content;
    bool isSingleWord = false;     ///< only where no letter stands beside it
    bool stripsLeft = false;       ///< takes the white space before it along
    bool stripsRight = false;      ///< and that behind it
    bool matchesNormalized = true; ///< is looked for in the normalized text
};

/// Finds added tokens: leftmost first, of those that begin at one place the longest.
class AddedTokens {
public:
    explicit AddedTokens(std::vector<AddedToken> tokens);

    bool isEmpty() const { return m_tokens.empty(); }
    /// A stretch of text, or an added token (id, not negative) that was found. Returns whether to go on.
    using Sink = std::function<bool(std::string_view text, std::int32_t id)>;
    /// Gives text and tokens to `sink` in order; no text is empty.
    void split(std::string_view text, const Sink& sink) const;

private:
    /// The longest token that begins at byte `at`, or nothing.
    const AddedToken* longestAt(std::string_view text, std::size_t at) const;

    std::vector<AddedToken> m_tokens;
    std::array<bool, 256> m_begins{};                            ///< bytes with which one begins
    std::unordered_map<std::uint64_t, std::uint32_t> m_children; ///< of node * 256 + byte; the root is 0
    std::vector<std::int32_t> m_tokenAt;                         ///< by node, the token that ends there; -1: none
};

} // namespace shardscope::engine
