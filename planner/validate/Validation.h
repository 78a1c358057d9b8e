// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Json.h"
#include "runtime/contract/Result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::planner {

/// One published number and what we make of it, in the row's unit.
struct ValidationRow {
    std::string name;
    std::string unit; ///< "GiB", "MiB", "GB" (decimal), "tokens/s", "ratio", "parameters"
    double ours = 0;
    double theirs = 0;
    double tolerance = 0;      ///< largest |ours - theirs| at which the row counts as reproduced
    std::string toleranceText; ///< where it comes from: "every digit", "half of the last digit", "5 %"
    std::string convention;    ///< the formula used
    /// What `ours` is the sum of; empty where it has no parts.
    std::vector<std::pair<std::string, double>> parts{};

    double errorPercent() const; ///< signed, of theirs
    bool isReproduced() const;
};

/// A published number that we do not claim, and why.
struct NotReproduced {
    std::string name;
    std::string reason;
};

struct AccuracyBar {
    double meanPercent = 0;
    double maxPercent = 0;
};

struct ValidationTable {
    std::string name;
    std::string source;
    std::vector<ValidationRow> rows;
    std::vector<NotReproduced> notReproduced{};
    std::vector<std::string> notes{};
    std::optional<AccuracyBar> bar{}; ///< mean and largest error of the best public estimator for this kind of number

    double meanErrorPercent() const; ///< of absolute errors; 0 without rows
    double maxErrorPercent() const;
    bool isReproduced() const;
};

/// Every table of a published.json (its schema is models/published.json itself), in a fixed order.
/// Errors: BadInput, naming file and field, also when a graph that it names is not bundled.
contract::Result<std::vector<ValidationTable>> validate(const std::string& publishedFile);

} // namespace shardscope::planner
