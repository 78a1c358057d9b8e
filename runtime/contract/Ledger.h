// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Json.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace shardscope::contract {

/// Every byte has a name. The order is that of the JSON keys and of every stacked bar.
enum class Category {
    Parameters,
    Gradients,
    Optimizer,
    Activations,
    Logits,
    Gathered,
    Unreduced,
    OptimizerTemporary,
    Collective,
    Data,
    Context,
    Slack,
};
inline constexpr int kCategoryCount = 12;

/// The JSON key: "parameters", "gradients", ... "slack".
std::string_view categoryName(Category category);
std::optional<Category> categoryFromName(std::string_view name);

/// Bytes by category on one device.
struct Ledger {
    std::array<std::int64_t, kCategoryCount> bytes{};

    std::int64_t& operator[](Category category) { return bytes[static_cast<std::size_t>(category)]; }
    std::int64_t operator[](Category category) const { return bytes[static_cast<std::size_t>(category)]; }
    std::int64_t total() const;
    Ledger& operator+=(const Ledger& other);
    bool operator==(const Ledger&) const = default;
};

OrderedJson toJson(const Ledger& ledger);
Ledger readLedger(const JsonCursor& cursor);

} // namespace shardscope::contract
