// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shardscope::contract {

inline constexpr std::int64_t kKiB = std::int64_t{1} << 10;
inline constexpr std::int64_t kMiB = std::int64_t{1} << 20;
inline constexpr std::int64_t kGiB = std::int64_t{1} << 30;

/// Every buffer of a native plan starts on, and is rounded up to, this many bytes.
inline constexpr std::int64_t kBufferAlignment = 256;

constexpr std::int64_t ceilDivide(std::int64_t dividend, std::int64_t divisor) {
    return dividend / divisor + (dividend % divisor != 0 ? 1 : 0);
}
constexpr std::int64_t alignUp(std::int64_t bytes, std::int64_t alignment = kBufferAlignment) {
    return ceilDivide(bytes, alignment) * alignment;
}

/// a * b, or nothing when it does not fit. Both must be non-negative.
std::optional<std::int64_t> checkedMultiply(std::int64_t a, std::int64_t b);

/// Reads `16GiB`, `500MiB`, `24GB`, `1.5 GiB` or plain bytes. Binary and decimal units are kept apart.
/// Errors: Usage, when the text is not a size, is negative, or does not fit 2^62.
Result<std::int64_t> parseBytes(std::string_view text);

/// "22.63 GiB", "123.0 MiB", "512 B": for messages and logs only. Binary units.
std::string describeBytes(std::int64_t bytes);

} // namespace shardscope::contract
