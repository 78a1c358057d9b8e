// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cli/Commands.h"
#include "planner/cli/RequestOptions.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string_view>
#include <thread>

namespace shardscope::planner::cli {

namespace {
std::stop_source interruptSource;
}

std::stop_token interruptToken() {
    return interruptSource.get_token();
}

} // namespace shardscope::planner::cli

namespace {

/// Turns the first SIGINT into a stop request on a thread of its own, since a handler may hardly do anything; the
/// second ends the program at once.
void watchInterrupts() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    std::thread([signals] {
        int received = 0;
        sigwait(&signals, &received);
        shardscope::planner::cli::interruptSource.request_stop();
        sigwait(&signals, &received);
        std::_Exit(130);
    }).detach();
}

int run(int argc, char** argv) {
    using namespace shardscope::planner::cli;
    CLI::App app{"Plans sharded training: memory, communication and the proven best placement of every operator",
                 "shardscope-plan"};
    app.set_version_flag("--version", std::string("shardscope-plan ") + SHARDSCOPE_VERSION);
    app.require_subcommand(1);
    int exitCode = 0;
    addInspect(app, exitCode);
    addSolve(app, exitCode);
    addFrontier(app, exitCode);
    addCompare(app, exitCode);
    addSimulate(app, exitCode);
    addDiff(app, exitCode);
    addZoo(app, exitCode);
    addValidate(app, exitCode);
    addCluster(app, exitCode);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        // With --json the document on standard output says what is wrong, as for every other error.
        const bool json =
            std::any_of(argv + 1, argv + argc, [](const char* word) { return std::string_view(word) == "--json"; });
        if (json && error.get_exit_code() != 0)
            return report({shardscope::contract::ErrorKind::Usage, error.what()}, true);
        return app.exit(error) == 0 ? 0 : 2;
    }
    return exitCode;
}

} // namespace

int main(int argc, char** argv) {
    watchInterrupts();
    try {
        const int exitCode = run(argc, argv);
        if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
            fmt::print(stderr, "shardscope-plan: standard output cannot be written\n");
            return 5;
        }
        return exitCode;
    } catch (const std::exception& error) {
        fmt::print(stderr, "shardscope-plan: unexpected failure: {}\n", error.what());
        return 5;
    }
}
