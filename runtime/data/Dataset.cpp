// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/Dataset.h"

#include "runtime/data/AdditionData.h"
#include "runtime/data/TextData.h"
#include "runtime/data/TokenData.h"

#include <fmt/format.h>

namespace shardscope::engine {

contract::Result<std::unique_ptr<Dataset>> openDataset(const std::string& name, std::uint64_t seed,
                                                       std::int64_t sequence, std::int64_t vocabulary) {
    if (TokenData::isTokenData(name))
        return TokenData::open(name, seed, sequence, vocabulary);
    constexpr std::int64_t kByteIds = 256;
    if (vocabulary < kByteIds)
        return contract::badInput(fmt::format("plan: graph.architecture.vocabulary is {}; text without a tokenizer is "
                                              "read as byte ids, which needs at least {}",
                                              vocabulary, kByteIds));
    constexpr std::string_view kBuiltin = "builtin:";
    if (name == "builtin:addition")
        return AdditionData::create(seed, sequence);
    if (name.starts_with(kBuiltin))
        return contract::badInput(fmt::format("--data \"{}\": the built-in data sets are: builtin:addition", name));
    return TextData::open(name, seed, sequence);
}

} // namespace shardscope::engine
