// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/contract/Ledger.h"

#include <nlohmann/json.hpp>

#include <numeric>

namespace shardscope::contract {

namespace {
constexpr std::array<std::string_view, kCategoryCount> kNames{
    "parameters", "gradients",           "optimizer",  "activations", "logits",  "gathered",
    "unreduced",  "optimizer_temporary", "collective", "data",        "context", "slack"};
}

std::string_view categoryName(Category category) {
    return kNames[static_cast<std::size_t>(category)];
}

std::optional<Category> categoryFromName(std::string_view name) {
    for (int i = 0; i < kCategoryCount; ++i) {
        if (kNames[static_cast<std::size_t>(i)] == name)
            return static_cast<Category>(i);
    }
    return std::nullopt;
}

std::int64_t Ledger::total() const {
    return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

Ledger& Ledger::operator+=(const Ledger& other) {
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] += other.bytes[i];
    return *this;
}

OrderedJson toJson(const Ledger& ledger) {
    OrderedJson json = OrderedJson::object();
    for (int i = 0; i < kCategoryCount; ++i)
        json[std::string(kNames[static_cast<std::size_t>(i)])] = ledger.bytes[static_cast<std::size_t>(i)];
    return json;
}

Ledger readLedger(const JsonCursor& cursor) {
    Ledger ledger;
    for (int i = 0; i < kCategoryCount; ++i)
        ledger.bytes[static_cast<std::size_t>(i)] =
            cursor.at(kNames[static_cast<std::size_t>(i)]).integer(0, std::int64_t{1} << 56);
    return ledger;
}

} // namespace shardscope::contract
