// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/ByteAlphabet.h"

#include "runtime/data/Utf8.h"

#include <array>

namespace shardscope::engine {

namespace {

constexpr std::int32_t kFirstOther = 0x100;

constexpr bool standsForItself(int byte) {
    return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr int countOthers() {
    int count = 0;
    for (int byte = 0; byte < 256; ++byte)
        count += standsForItself(byte) ? 0 : 1;
    return count;
}

struct Alphabet {
    std::array<std::int32_t, 256> characters{};
    std::array<int, kFirstOther + countOthers()> bytes{}; ///< by character; -1: none
    constexpr Alphabet() {
        for (int& byte : bytes)
            byte = -1;
        int others = 0;
        for (std::size_t byte = 0; byte < characters.size(); ++byte) {
            characters[byte] =
                standsForItself(static_cast<int>(byte)) ? static_cast<std::int32_t>(byte) : kFirstOther + others++;
            bytes[static_cast<std::size_t>(characters[byte])] = static_cast<int>(byte);
        }
    }
};
constexpr Alphabet kAlphabet;

} // namespace

std::int32_t characterOfByte(unsigned char byte) {
    return kAlphabet.characters[byte];
}

std::optional<std::string> bytesOfCharacters(std::string_view text) {
    std::string bytes;
    for (std::size_t at = 0; at < text.size();) {
        const CodePoint point = firstCodePoint(text.substr(at));
        at += point.bytes;
        const auto character = static_cast<std::size_t>(point.value);
        if (point.value < 0 || character >= kAlphabet.bytes.size() || kAlphabet.bytes[character] < 0)
            return std::nullopt;
        bytes += static_cast<char>(kAlphabet.bytes[character]);
    }
    return bytes;
}

} // namespace shardscope::engine
