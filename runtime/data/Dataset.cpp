// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/Dataset.h"

#include "runtime/data/AdditionData.h"
#include "runtime/data/TextData.h"
#include "runtime/data/TokenData.h"
#include "runtime/data/Tokenizer.h"

#include <fmt/format.h>

namespace shardscope::engine {

namespace {

constexpr std::string_view kBuiltin = "builtin:";

contract::Result<void> checkByteIds(std::int64_t vocabulary) {
    constexpr std::int64_t kByteIds = 256;
    if (vocabulary < kByteIds)
        return contract::badInput(fmt::format("plan: graph.architecture.vocabulary is {}; text without a tokenizer is "
                                              "read as byte ids, which needs at least {}",
                                              vocabulary, kByteIds));
    return {};
}

contract::Result<std::unique_ptr<Dataset>> openWithoutTokenizer(const DatasetRequest& request) {
    if (TokenData::isTokenData(request.name))
        return TokenData::open(request.name, request.seed, request.sequence, request.vocabulary);
    if (auto fits = checkByteIds(request.vocabulary); !fits)
        return tl::unexpected(fits.error());
    if (request.name == "builtin:addition")
        return AdditionData::create(request.seed, request.sequence);
    if (request.name.starts_with(kBuiltin))
        return contract::badInput(
            fmt::format("--data \"{}\": the built-in data sets are: builtin:addition", request.name));
    return TextData::open(request);
}

/// The tokenizer that is asked for, or none. It has nothing to encode where data are ids already, but turns what the
/// network says into text.
contract::Result<std::unique_ptr<Tokenizer>> requestedTokenizer(const DatasetRequest& request) {
    if (request.tokenizer.empty())
        return nullptr;
    if (request.name.starts_with(kBuiltin))
        return contract::usageError(fmt::format("--tokenizer \"{}\": {} is made of bytes; leave the option out",
                                                request.tokenizer, request.name));
    return openTokenizer(request.tokenizer, request.vocabulary);
}

} // namespace

contract::Result<std::unique_ptr<Dataset>> openDataset(const DatasetRequest& request) {
    const auto tokenizer = requestedTokenizer(request);
    if (!tokenizer)
        return tl::unexpected(tokenizer.error());
    if (*tokenizer == nullptr || TokenData::isTokenData(request.name))
        return openWithoutTokenizer(request);
    if (request.say)
        for (const std::string& note : (*tokenizer)->notes())
            request.say(fmt::format("{}: {}", (*tokenizer)->path(), note));
    return TextData::encode(request, **tokenizer);
}

contract::Result<void> checkDataset(const DatasetRequest& request) {
    const auto tokenizer = requestedTokenizer(request);
    if (!tokenizer)
        return tl::unexpected(tokenizer.error());
    if (*tokenizer != nullptr && !TokenData::isTokenData(request.name))
        return TextData::check(request, **tokenizer);
    const auto opened = openWithoutTokenizer(request);
    return opened ? contract::Result<void>() : tl::unexpected(opened.error());
}

contract::Result<std::unique_ptr<Tokenizer>> openTokenizer(const std::string& path, std::int64_t vocabulary) {
    auto tokenizer = Tokenizer::open(path);
    if (!tokenizer)
        return tl::unexpected(tokenizer.error());
    if ((*tokenizer)->vocabulary() > vocabulary)
        return contract::badInput(fmt::format("{}: its ids reach {}, so that it needs a vocabulary of {}; the plan's "
                                              "graph.architecture.vocabulary is {}",
                                              (*tokenizer)->path(), (*tokenizer)->vocabulary() - 1,
                                              (*tokenizer)->vocabulary(), vocabulary));
    return tokenizer;
}

} // namespace shardscope::engine
