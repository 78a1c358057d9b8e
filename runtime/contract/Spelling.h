// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string_view>

namespace shardscope::contract {

/// Letters to insert, remove, replace or swap with their neighbour until one word is the other (optimal string
/// alignment distance). Only the first 64 bytes of either count, so that a hostile word costs nothing.
std::size_t editDistance(std::string_view first, std::string_view second);

/// The one of `known`, which is not empty, that `word` was most probably meant as. A part of a longer word ("latency"
/// of "latency_seconds") is nearer to it than its missing letters say.
std::string_view nearestWord(std::string_view word, std::initializer_list<std::string_view> known);

} // namespace shardscope::contract
