// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/BytePairs.h"

#include "runtime/network/Initializer.h"

#include <algorithm>
#include <bit>

namespace shardscope::engine {

namespace {

constexpr std::size_t kUsualWordBytes = 4096;

std::uint64_t pairOf(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
}

} // namespace

BytePairs::BytePairs(const std::array<std::int32_t, 256>& idsOfBytes, const std::vector<Merge>& merges)
    : m_idsOfBytes(idsOfBytes), m_known(std::bit_ceil(2 * merges.size() + 2)) {
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
        const Merge& merge = merges[rank];
        const std::uint64_t pair = pairOf(merge.left, merge.right);
        std::size_t place = mixBits(pair) & (m_known.size() - 1);
        while (m_known[place].rank != kNone && m_known[place].pair != pair)
            place = (place + 1) & (m_known.size() - 1);
        m_known[place] = {pair, static_cast<std::uint32_t>(rank), merge.merged};
    }
}

const BytePairs::Known* BytePairs::find(std::int32_t left, std::int32_t right) const {
    const std::uint64_t pair = pairOf(left, right);
    for (std::size_t place = mixBits(pair) & (m_known.size() - 1); m_known[place].rank != kNone;
         place = (place + 1) & (m_known.size() - 1))
        if (m_known[place].pair == pair)
            return &m_known[place];
    return nullptr;
}

void BytePairs::consider(std::uint32_t left) {
    const std::uint32_t right = m_symbols[left].next;
    if (right == kNone)
        return;
    const Known* const known = find(m_symbols[left].id, m_symbols[right].id);
    if (known == nullptr)
        return;
    m_candidates.push_back({known->rank, left, known->merged});
    std::push_heap(m_candidates.begin(), m_candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.isWorseThan(b); });
}

void BytePairs::mergeAll() {
    while (!m_candidates.empty()) {
        std::pop_heap(m_candidates.begin(), m_candidates.end(),
                      [](const Candidate& a, const Candidate& b) { return a.isWorseThan(b); });
        const Candidate best = m_candidates.back();
        m_candidates.pop_back();
        Symbol& left = m_symbols[best.left];
        if (left.id < 0 || left.next == kNone)
            continue;
        // A candidate may be older than what stands there now.
        const Known* const known = find(left.id, m_symbols[left.next].id);
        if (known == nullptr || known->merged != best.merged)
            continue;
        Symbol& right = m_symbols[left.next];
        left.id = best.merged;
        right.id = -1;
        left.next = right.next;
        if (left.next != kNone)
            m_symbols[left.next].previous = best.left;
        if (left.previous != kNone)
            consider(left.previous);
        consider(best.left);
    }
}

void BytePairs::encode(std::string_view word, std::vector<std::int32_t>& ids) {
    const auto count = static_cast<std::uint32_t>(word.size());
    m_symbols.resize(count);
    for (std::uint32_t i = 0; i < count; ++i)
        m_symbols[i] = {m_idsOfBytes[static_cast<unsigned char>(word[i])], i == 0 ? kNone : i - 1,
                        i + 1 == count ? kNone : i + 1};
    m_candidates.clear();
    for (std::uint32_t i = 0; i < count; ++i)
        consider(i);
    mergeAll();
    for (std::uint32_t i = 0; count > 0 && i != kNone; i = m_symbols[i].next)
        ids.push_back(m_symbols[i].id);
    if (count > kUsualWordBytes) { // one long word must not hold its work space for ever
        m_symbols = {};
        m_candidates = {};
    }
}

} // namespace shardscope::engine
