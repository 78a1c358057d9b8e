// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/contract/Utf8.h"

#include <cstddef>

namespace shardscope::contract {

namespace {

/// The bytes of the character that the text begins with; 0 where they are none.
std::size_t characterBytes(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    const std::size_t bytes = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (text.size() < bytes)
        return 0;
    for (std::size_t i = 1; i < bytes; ++i) {
        if ((byte(i) & 0xc0) != 0x80)
            return 0;
    }
    // Neither longer than need be, nor a surrogate, nor beyond the last character.
    const bool wrong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) ||
                       (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f);
    return wrong ? 0 : bytes;
}

/// The bytes before `end`, without half a character at its end.
std::size_t characterEnd(std::string_view text, std::size_t end) {
    while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
        --end;
    return end;
}

} // namespace

bool isUtf8(std::string_view text) {
    while (!text.empty()) {
        const std::size_t bytes = characterBytes(text);
        if (bytes == 0)
            return false;
        text.remove_prefix(bytes);
    }
    return true;
}

std::string toUtf8(std::string_view text) {
    std::string valid;
    while (!text.empty()) {
        const std::size_t bytes = characterBytes(text);
        valid += bytes == 0 ? std::string_view("\xef\xbf\xbd") : text.substr(0, bytes);
        text.remove_prefix(bytes == 0 ? 1 : bytes);
    }
    return valid;
}

std::string shortened(std::string_view text, std::size_t bytes) {
    if (text.size() <= bytes)
        return std::string(text);
    return std::string(text.substr(0, characterEnd(text, bytes))) + "...";
}

std::string withoutMiddle(std::string_view message) {
    constexpr std::size_t kHead = 400;
    constexpr std::size_t kTail = 200;
    if (message.size() <= kHead + kTail)
        return std::string(message);
    return std::string(message.substr(0, characterEnd(message, kHead))) + " ... " +
           std::string(message.substr(characterEnd(message, message.size() - kTail)));
}

} // namespace shardscope::contract
