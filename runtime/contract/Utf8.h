// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shardscope::contract {

/// Whether the bytes are well-formed UTF-8 (Unicode 15, table 3-7), which names must be to be written as JSON.
bool isUtf8(std::string_view text);

/// The text with each byte that is no part of well-formed UTF-8 replaced by U+FFFD: names of files are any bytes.
std::string toUtf8(std::string_view text);

/// The text, or its first `bytes` bytes without half a character, and "...".
std::string shortened(std::string_view text, std::size_t bytes);

/// A message without its middle where that would be endless, since messages quote what files hold.
std::string withoutMiddle(std::string_view message);

} // namespace shardscope::contract
