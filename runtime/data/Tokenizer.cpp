// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/Tokenizer.h"

#include "runtime/data/Utf8.h"

#include <fmt/format.h>

namespace shardscope::engine {

namespace {

constexpr std::size_t kCachedWordBytes = 64;
constexpr std::size_t kCachedWords = 1 << 18;
constexpr std::size_t kProgressBytes = 1 << 16;

AddedTokens selectAdded(const std::vector<AddedToken>& all, bool normalized, bool nfc) {
    std::vector<AddedToken> chosen;
    for (AddedToken token : all) {
        if (token.matchesNormalized != normalized)
            continue;
        if (normalized && nfc)
            token.content = normalizedNfc(token.content).value_or(token.content);
        chosen.push_back(std::move(token));
    }
    return AddedTokens(std::move(chosen));
}

} // namespace

contract::Result<std::unique_ptr<Tokenizer>> Tokenizer::open(const std::string& path) {
    auto file = readTokenizerFile(path);
    if (!file)
        return tl::unexpected(file.error());
    return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(*file)));
}

Tokenizer::Tokenizer(TokenizerFile file)
    : m_file(std::move(file)), m_pairs(m_file.idsOfBytes, m_file.merges),
      m_addedRaw(selectAdded(m_file.addedTokens, false, m_file.normalizesNfc)),
      m_addedNormalized(selectAdded(m_file.addedTokens, true, m_file.normalizesNfc)) {
    m_file.merges = {};
    if (m_file.ignoresMerges)
        for (std::size_t id = 0; id < m_file.tokens.size(); ++id)
            if (const TokenizerFile::Token& token = m_file.tokens[id]; token.exists && token.isOfBytes)
                m_wholeWords.emplace(token.bytes, static_cast<std::int32_t>(id));
}

contract::Result<void> Tokenizer::encode(std::string_view text, std::vector<std::int32_t>& ids,
                                         const Progress& progress) {
    m_ids = &ids;
    m_progress = &progress;
    m_done = 0;
    m_told = 0;
    contract::Result<void> encoded;
    while (encoded && !text.empty()) {
        const std::size_t valid = validPrefix(text);
        if (valid > 0)
            encoded = encodeValid(text.substr(0, valid));
        text.remove_prefix(valid);
        const std::size_t invalid = invalidPrefix(text);
        if (encoded && invalid > 0)
            encoded = encodeWord(text.substr(0, invalid));
        text.remove_prefix(invalid);
    }
    return encoded;
}

contract::Result<void> Tokenizer::encodeValid(std::string_view text) {
    contract::Result<void> encoded;
    m_addedRaw.split(text, [&](std::string_view stretch, std::int32_t id) {
        if (id >= 0) {
            m_ids->push_back(id);
        } else if (m_file.normalizesNfc) {
            const auto normalized = normalizedNfc(stretch);
            encoded = normalized ? encodeNormalized(*normalized)
                                 : contract::badInput(fmt::format("{}: normalizer NFC: the text {}", m_file.path,
                                                                  normalized.error().message));
        } else {
            encoded = encodeNormalized(stretch);
        }
        return encoded.has_value();
    });
    return encoded;
}

contract::Result<void> Tokenizer::encodeNormalized(std::string_view text) {
    contract::Result<void> encoded;
    m_addedNormalized.split(text, [&](std::string_view stretch, std::int32_t id) {
        if (id >= 0)
            m_ids->push_back(id);
        else
            encoded = cutIntoWords(0, stretch);
        return encoded.has_value();
    });
    return encoded;
}

contract::Result<void> Tokenizer::cutIntoWords(std::size_t number, std::string_view text) {
    if (number == m_file.steps.size())
        return encodeWord(text);
    TokenizerFile::Step& step = m_file.steps[number];
    std::string spaced;
    if (step.addsSpace && !text.starts_with(' ')) {
        spaced = fmt::format(" {}", text);
        text = spaced;
    }
    if (!step.pattern)
        return cutIntoWords(number + 1, text);
    return step.pattern->split(text, [&](std::string_view piece, SplitPattern::Piece kind) -> contract::Result<void> {
        const bool isKept = kind == SplitPattern::Piece::Match ? step.keepsMatches : step.keepsBetween;
        return isKept ? cutIntoWords(number + 1, piece) : contract::Result<void>();
    });
}

contract::Result<void> Tokenizer::encodeWord(std::string_view word) {
    if (word.size() > BytePairs::kMaximumWordBytes)
        return contract::badInput(fmt::format("{}: pre_tokenizer: finds a word of {} bytes in the text; {} is the most",
                                              m_file.path, word.size(), BytePairs::kMaximumWordBytes));
    m_done += word.size();
    if (m_done - m_told >= kProgressBytes) {
        m_told = m_done;
        if (*m_progress && !(*m_progress)(m_done))
            return contract::failure(contract::ErrorKind::Cancelled, "stopped while text was being encoded");
    }
    if (m_file.ignoresMerges)
        if (const auto whole = m_wholeWords.find(word); whole != m_wholeWords.end()) {
            m_ids->push_back(whole->second);
            return {};
        }
    if (word.size() > kCachedWordBytes) {
        m_pairs.encode(word, *m_ids);
        return {};
    }
    auto cached = m_cache.find(word);
    if (cached == m_cache.end()) {
        if (m_cache.size() >= kCachedWords) {
            m_cache.clear();
            m_cachedIds.clear();
        }
        const auto begin = static_cast<std::uint32_t>(m_cachedIds.size());
        m_pairs.encode(word, m_cachedIds);
        const auto count = static_cast<std::uint32_t>(m_cachedIds.size()) - begin;
        cached = m_cache.emplace(std::string(word), CachedWord{begin, count}).first;
    }
    const auto from = m_cachedIds.begin() + cached->second.begin;
    m_ids->insert(m_ids->end(), from, from + cached->second.count);
    return {};
}

} // namespace shardscope::engine
