// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/search/Planner.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace shardscope::planner::cli {

/// The options that `solve` and `frontier` share, as text; resolved by request() and searchBudget().
struct RequestOptions {
    std::string graph;
    std::string cluster = "local";
    std::string devices;
    std::string training;
    std::int64_t sequence = 0;
    std::string batch = "auto";
    std::string accumulate;
    std::int64_t globalBatch = 0;
    std::string precision;
    std::string recompute = "auto";
    std::string attention;
    std::string mode = "full";
    std::vector<std::int32_t> slices{1, 2, 4, 8, 16};
    std::vector<std::string> pins;
    std::vector<std::string> recomputePins;
    std::string coalescing = "auto";
    std::int64_t lossChunks = 1;
    std::string granularity = "operator";
    std::int32_t prefetch = 1;
    double tolerance = 0;
    std::int64_t workLimit = 0;
    double timeLimitSeconds = 0;
    bool json = false;

    void addTo(CLI::App& command);
    /// Errors: Usage and BadInput as the readers report them.
    contract::Result<PlanRequest> request() const;
    SearchBudget searchBudget() const;
};

/// What a GRAPH argument may be, for --help.
inline constexpr const char* kGraphHelp =
    "a Hugging Face folder, its config.json, safetensors, ONNX, *.graph.json, or a bundled name";

/// Of an option that is a whole number of at least 1.
CLI::Validator positiveCount();

/// The bytes a --memory text asks for; empty: all of the device. Errors: Usage.
contract::Result<std::int64_t> memoryLimit(const std::string& text, const PlanRequest& request);

/// A line for people on standard error, which may be closed or full.
void complain(const std::string& text);
/// The same for each, with the word "warning".
void warn(const std::vector<std::string>& texts);

/// Prints the error and returns its exit code. With --json the document {"error": ...} goes to standard output.
int report(const contract::Error& error, bool json);

} // namespace shardscope::planner::cli
