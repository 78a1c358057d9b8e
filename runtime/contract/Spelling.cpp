// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/contract/Spelling.h"

#include <algorithm>
#include <array>
#include <utility>

namespace shardscope::contract {

std::size_t editDistance(std::string_view first, std::string_view second) {
    constexpr std::size_t kLongest = 64;
    first = first.substr(0, kLongest);
    second = second.substr(0, kLongest);
    // Rows of the table of distances between beginnings: of first[0..i), and of one and two letters less.
    std::array<std::size_t, kLongest + 1> row{};
    std::array<std::size_t, kLongest + 1> before{};
    std::array<std::size_t, kLongest + 1> twoBefore{};
    for (std::size_t j = 0; j <= second.size(); ++j)
        row[j] = j;
    for (std::size_t i = 1; i <= first.size(); ++i) {
        twoBefore = before;
        before = row;
        row[0] = i;
        for (std::size_t j = 1; j <= second.size(); ++j) {
            const bool same = first[i - 1] == second[j - 1];
            row[j] = std::min({before[j] + 1, row[j - 1] + 1, before[j - 1] + (same ? 0 : 1)});
            const bool swapped = i > 1 && j > 1 && first[i - 1] == second[j - 2] && first[i - 2] == second[j - 1];
            if (swapped)
                row[j] = std::min(row[j], twoBefore[j - 2] + 1);
        }
    }
    return row[second.size()];
}

std::string_view nearestWord(std::string_view word, std::initializer_list<std::string_view> known) {
    constexpr std::size_t kPart = 3; // letters that are no coincidence
    const auto distance = [&](std::string_view other) {
        const bool isPart = word.size() >= kPart && word.size() < other.size() && other.find(word) != other.npos;
        const std::size_t letters = editDistance(word, other);
        return isPart ? letters / 2 : letters;
    };
    return *std::min_element(known.begin(), known.end(), [&](std::string_view first, std::string_view second) {
        return distance(first) < distance(second);
    });
}

} // namespace shardscope::contract
