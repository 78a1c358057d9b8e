// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/contract/Plan.h"

#include <fmt/format.h>

#include <array>
#include <openssl/sha.h>

namespace shardscope::contract {

std::string sha256(std::string_view text) {
    std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
    SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
    std::string hex;
    for (const unsigned char byte : digest)
        hex += fmt::format("{:02x}", byte);
    return hex;
}

} // namespace shardscope::contract
