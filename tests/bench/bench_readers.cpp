// SPDX-License-Identifier: GPL-3.0-or-later
// How long `shardscope-plan inspect` takes for every bundled graph, and how long an ONNX graph of 10,000 nodes takes to
// open. Each is run a few times; the shortest counts, since a busy machine only adds.
#include "planner/readers/Readers.h"
#include "support/OnnxText.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace shardscope;

namespace {

constexpr int kRounds = 5;

struct Run {
    double milliseconds = 1e9; ///< by the clock
    double processor = 1e9;    ///< milliseconds of processor time
    bool failed = false;
};

void improve(Run& best, double milliseconds, double processor) {
    best.milliseconds = std::min(best.milliseconds, milliseconds);
    best.processor = std::min(best.processor, processor);
}

double milliseconds(const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) * 1e-3;
}

Run inspect(const std::string& graph) {
    Run best;
    for (int round = 0; round < kRounds; ++round) {
        const auto begin = std::chrono::steady_clock::now();
        const pid_t child = ::fork();
        if (child == 0) {
            ::dup2(::open("/dev/null", O_WRONLY), STDOUT_FILENO);
            ::execl(SHARDSCOPE_PLAN, SHARDSCOPE_PLAN, "inspect", graph.c_str(), nullptr);
            ::_exit(127);
        }
        int status = 0;
        rusage usage{};
        ::wait4(child, &status, 0, &usage);
        const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - begin;
        best.failed = best.failed || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
        improve(best, spent.count(), milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime));
    }
    return best;
}

} // namespace

int main() {
    bool failed = false;
    Run worst{0, 0, false};
    std::string slowest;
    fmt::print("{:<24} {:>10} {:>14}\n", "inspect", "ms", "processor ms");
    const auto show = [&](const std::string& name, const Run& run) {
        fmt::print("{:<24} {:>10.1f} {:>14.1f}{}\n", name, run.milliseconds, run.processor,
                   run.failed ? "  failed" : "");
        failed = failed || run.failed;
    };
    for (const planner::ZooEntry& entry : planner::bundledGraphs()) {
        const Run run = inspect(entry.name);
        show(entry.name, run);
        if (run.milliseconds > worst.milliseconds) {
            worst = run;
            slowest = entry.name;
        }
    }
    fmt::print("worst: {} in {:.1f} ms\n\n", slowest, worst.milliseconds);
    const std::string path =
        (std::filesystem::temp_directory_path() / fmt::format("shardscope-bench-{}.onnx", ::getpid())).string();
    std::ofstream(path, std::ios::binary) << test::onnx_text::tenThousandNodes();
    show("10,000 nodes of ONNX", inspect(path));
    std::filesystem::remove(path);
    return failed ? 1 : 0;
}
