// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shardscope::engine {

/// The characters that stand for bytes in vocabularies (GPT-2's table): printable ones of Latin-1 for themselves, the
/// others, in order, for U+0100 and what follows.
std::int32_t characterOfByte(unsigned char byte);
/// The bytes that a text of such characters stands for; nothing, where another character is among them.
std::optional<std::string> bytesOfCharacters(std::string_view text);

} // namespace shardscope::engine
