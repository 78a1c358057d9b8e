// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cli/Commands.h"
#include "planner/cli/RequestOptions.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
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
    // An empty value is a variable that was not set; to take it for "not given" would do something else than was meant.
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word.empty() || (word.starts_with("--") && word.ends_with('=')))
            return report({shardscope::contract::ErrorKind::Usage,
                           fmt::format("argument {} ({}) is empty", i, i > 1 ? argv[i - 1] : "the subcommand")},
                          false);
    }
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        // With --json the document on standard output says what is wrong, as for every other error.
        std::string message = error.what();
        // "A subcommand is required" does not help who wrote one that is not there.
        if (argc > 1 && argv[1][0] != '-' && app.get_subcommands().empty())
            message = fmt::format("there is no subcommand \"{}\"; shardscope-plan --help lists them", argv[1]);
        const bool json =
            std::any_of(argv + 1, argv + argc, [](const char* word) { return std::string_view(word) == "--json"; });
        if (json && error.get_exit_code() != 0)
            return report({shardscope::contract::ErrorKind::Usage, message}, true);
        if (message != error.what())
            return report({shardscope::contract::ErrorKind::Usage, message}, false);
        return app.exit(error) == 0 ? 0 : 2;
    }
    return exitCode;
}

} // namespace

int main(int argc, char** argv) {
    using shardscope::planner::cli::complain;
    // A file beyond the allowed size is then an error of the write, which cleans up, and not the end.
    std::signal(SIGXFSZ, SIG_IGN);
    watchInterrupts();
    try {
        const int exitCode = run(argc, argv);
        if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
            complain("standard output cannot be written");
            return 5;
        }
        return exitCode;
    } catch (const std::exception& error) {
        complain(std::ferror(stdout) != 0 ? "standard output cannot be written"
                                          : fmt::format("unexpected failure: {}", error.what()));
        return 5;
    }
}
