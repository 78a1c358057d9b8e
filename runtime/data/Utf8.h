// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace shardscope::engine {

/// How many bytes at the begin of a text are valid UTF-8.
std::size_t validPrefix(std::string_view text);
/// How many bytes at its begin cannot be part of valid UTF-8.
std::size_t invalidPrefix(std::string_view text);

/// The code point at the begin of a text that is valid UTF-8, and how many bytes it has. The text must not be empty.
struct CodePoint {
    std::int32_t value = 0;
    std::size_t bytes = 1;
};
CodePoint firstCodePoint(std::string_view text);
CodePoint lastCodePoint(std::string_view text);

/// Unicode's property White_Space.
bool isWhiteSpace(std::int32_t codePoint);
/// Whether it belongs to a word: letters, marks, decimal digits, connectors.
bool isWordCharacter(std::int32_t codePoint);

/// A text that is valid UTF-8 in normalization form C. Errors: BadInput, when there are more combining characters in a
/// row than any writing has.
contract::Result<std::string> normalizedNfc(std::string_view text);

} // namespace shardscope::engine
