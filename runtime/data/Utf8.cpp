// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/Utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utf8proc.h>

namespace shardscope::engine {

namespace {

const utf8proc_uint8_t* bytesOf(std::string_view text) {
    return reinterpret_cast<const utf8proc_uint8_t*>(text.data());
}

/// Bytes of the valid character at the begin of a text; 0: there is none.
std::size_t characterBytes(std::string_view text) {
    if (static_cast<unsigned char>(text.front()) < 0x80)
        return 1;
    utf8proc_int32_t value = 0;
    const auto bytes =
        utf8proc_iterate(bytesOf(text), static_cast<utf8proc_ssize_t>(std::min<std::size_t>(text.size(), 4)), &value);
    return bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
}

/// Sorting them by class takes the square of their number.
constexpr std::size_t kMaximumCombining = 4096;
/// Texts are normalized in stretches of about this size, since the library needs several times their size.
constexpr std::size_t kStretchBytes = 1 << 16;

contract::Result<void> appendNfc(std::string_view stretch, std::string& to) {
    const bool isAscii =
        std::all_of(stretch.begin(), stretch.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    if (isAscii) {
        to += stretch;
        return {};
    }
    std::size_t combining = 0;
    for (std::size_t at = 0; at < stretch.size();) {
        const CodePoint point = firstCodePoint(stretch.substr(at));
        at += point.bytes;
        combining = utf8proc_get_property(point.value)->combining_class != 0 ? combining + 1 : 0;
        if (combining > kMaximumCombining)
            return contract::badInput(fmt::format(
                "has more than {} combining characters in a row, which are not put in order", kMaximumCombining));
    }
    utf8proc_uint8_t* composed = nullptr;
    const auto bytes = utf8proc_map(bytesOf(stretch), static_cast<utf8proc_ssize_t>(stretch.size()), &composed,
                                    static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owner(composed, std::free);
    if (bytes < 0)
        return contract::badInput(fmt::format("cannot be normalized: {}", utf8proc_errmsg(bytes)));
    to.append(reinterpret_cast<const char*>(composed), static_cast<std::size_t>(bytes));
    return {};
}

} // namespace

std::size_t validPrefix(std::string_view text) {
    std::size_t at = 0;
    while (at < text.size()) {
        const std::size_t bytes = characterBytes(text.substr(at));
        if (bytes == 0)
            break;
        at += bytes;
    }
    return at;
}

std::size_t invalidPrefix(std::string_view text) {
    std::size_t at = 0;
    while (at < text.size() && characterBytes(text.substr(at)) == 0)
        ++at;
    return at;
}

CodePoint firstCodePoint(std::string_view text) {
    utf8proc_int32_t value = 0;
    const auto bytes =
        utf8proc_iterate(bytesOf(text), static_cast<utf8proc_ssize_t>(std::min<std::size_t>(text.size(), 4)), &value);
    return {value, bytes > 0 ? static_cast<std::size_t>(bytes) : 1};
}

CodePoint lastCodePoint(std::string_view text) {
    std::size_t begin = text.size() - 1;
    while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80)
        --begin;
    return firstCodePoint(text.substr(begin));
}

bool isWhiteSpace(std::int32_t c) {
    return (c >= 0x9 && c <= 0xD) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool isWordCharacter(std::int32_t c) {
    switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
        return true;
    default: // the letters in circles and squares, which are symbols, and the joiners
        return c == 0x200C || c == 0x200D || (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
               (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
    }
}

contract::Result<std::string> normalizedNfc(std::string_view text) {
    std::string normalized;
    normalized.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        // Nothing before an ASCII character composes with it, so that texts may be cut there.
        std::size_t end = std::min(text.size(), at + kStretchBytes);
        while (end < text.size() && static_cast<unsigned char>(text[end]) >= 0x80)
            ++end;
        if (auto appended = appendNfc(text.substr(at, end - at), normalized); !appended)
            return tl::unexpected(appended.error());
        at = end;
    }
    return normalized;
}

} // namespace shardscope::engine
