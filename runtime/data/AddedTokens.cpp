// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/AddedTokens.h"

#include "runtime/data/Utf8.h"

#include <algorithm>

namespace shardscope::engine {

namespace {

std::size_t whiteSpaceAtEnd(std::string_view text) {
    const std::size_t all = text.size();
    while (!text.empty()) {
        const CodePoint last = lastCodePoint(text);
        if (!isWhiteSpace(last.value))
            break;
        text.remove_suffix(last.bytes);
    }
    return all - text.size();
}

std::size_t whiteSpaceAtBegin(std::string_view text) {
    const std::size_t all = text.size();
    while (!text.empty()) {
        const CodePoint first = firstCodePoint(text);
        if (!isWhiteSpace(first.value))
            break;
        text.remove_prefix(first.bytes);
    }
    return all - text.size();
}

} // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : m_tokens(std::move(tokens)), m_tokenAt{-1} {
    for (std::size_t token = 0; token < m_tokens.size(); ++token) {
        const std::string& content = m_tokens[token].content;
        m_begins[static_cast<unsigned char>(content.front())] = true;
        std::uint32_t node = 0;
        for (const char c : content) {
            const std::uint64_t key = std::uint64_t{node} * 256 + static_cast<unsigned char>(c);
            const auto [child, isNew] = m_children.emplace(key, static_cast<std::uint32_t>(m_tokenAt.size()));
            if (isNew)
                m_tokenAt.push_back(-1);
            node = child->second;
        }
        m_tokenAt[node] = static_cast<std::int32_t>(token);
    }
}

const AddedToken* AddedTokens::longestAt(std::string_view text, std::size_t at) const {
    if (!m_begins[static_cast<unsigned char>(text[at])])
        return nullptr;
    std::int32_t longest = -1;
    std::uint32_t node = 0;
    for (; at < text.size(); ++at) {
        const auto child = m_children.find(std::uint64_t{node} * 256 + static_cast<unsigned char>(text[at]));
        if (child == m_children.end())
            break;
        node = child->second;
        longest = m_tokenAt[node] >= 0 ? m_tokenAt[node] : longest;
    }
    return longest < 0 ? nullptr : &m_tokens[static_cast<std::size_t>(longest)];
}

void AddedTokens::split(std::string_view text, const Sink& sink) const {
    std::size_t given = 0; // up to here the sink has everything
    for (std::size_t at = 0; at < text.size() && !m_tokens.empty();) {
        const AddedToken* const token = longestAt(text, at);
        if (token == nullptr) {
            ++at;
            continue;
        }
        const std::size_t end = at + token->content.size();
        const std::string_view before = text.substr(0, at);
        const std::string_view behind = text.substr(end);
        const bool touchesWord = (!before.empty() && isWordCharacter(lastCodePoint(before).value)) ||
                                 (!behind.empty() && isWordCharacter(firstCodePoint(behind).value));
        if (token->isSingleWord && touchesWord) {
            at = end;
            continue;
        }
        const std::size_t from = at - (token->stripsLeft ? whiteSpaceAtEnd(text.substr(given, at - given)) : 0);
        if (from > given && !sink(text.substr(given, from - given), -1))
            return;
        given = at = end + (token->stripsRight ? whiteSpaceAtBegin(behind) : 0);
        if (!sink(text.substr(from, given - from), token->id))
            return;
    }
    if (given < text.size())
        sink(text.substr(given), -1);
}

} // namespace shardscope::engine
