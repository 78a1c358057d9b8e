// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <CLI/CLI.hpp>

#include <stop_token>

namespace shardscope::planner::cli {

/// Each adds its subcommand; `exitCode` receives the program's exit code when the subcommand runs.
void addInspect(CLI::App& app, int& exitCode);
void addSolve(CLI::App& app, int& exitCode);
void addFrontier(CLI::App& app, int& exitCode);
void addCompare(CLI::App& app, int& exitCode);
void addSimulate(CLI::App& app, int& exitCode);
void addDiff(CLI::App& app, int& exitCode);
void addZoo(CLI::App& app, int& exitCode);
void addValidate(CLI::App& app, int& exitCode);
void addCluster(CLI::App& app, int& exitCode);

/// Requested by the first SIGINT.
std::stop_token interruptToken();

} // namespace shardscope::planner::cli
