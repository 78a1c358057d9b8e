// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/launch/RunOptions.h"

#include "runtime/device/cuda/OpenCuda.h"

#include <fmt/format.h>

#include <cctype>
#include <ctime>
#include <filesystem>
#include <string_view>

namespace shardscope::engine {

std::vector<std::string> workerArguments(const RunOptions& options, const std::string& planPath, std::int64_t ranks) {
    std::vector<std::string> arguments{"shardscope-train", "worker", planPath};
    const auto add = [&](const char* name, std::string value) {
        arguments.emplace_back(name);
        arguments.push_back(std::move(value));
    };
    add("--data", options.data);
    add("--device", options.device);
    add("--run-dir", options.runDirectory);
    add("--steps", std::to_string(options.steps));
    add("--seed", std::to_string(options.seed));
    add("--checkpoint-every", std::to_string(options.checkpointEvery));
    add("--keep-checkpoints", std::to_string(options.checkpointsKept));
    if (options.timeoutSeconds)
        add("--timeout", fmt::format("{}", *options.timeoutSeconds));
    add("--workers", std::to_string(ranks));
    if (options.learningRate)
        add("--learning-rate", fmt::format("{}", *options.learningRate));
    if (!options.tokenizer.empty())
        add("--tokenizer", options.tokenizer);
    if (!options.init.empty())
        add("--init", options.init);
    if (options.resume)
        arguments.emplace_back("--resume");
    return arguments;
}

std::string defaultRunDirectory(const contract::Plan& plan) {
    std::string name;
    for (const char c : plan.graph.name)
        name += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.' ? c : '_';
    if (name.empty() || name.front() == '.')
        name = "run" + name;
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    char stamp[32] = {};
    std::strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local);
    const std::string base = fmt::format("./runs/{}-{}", name, stamp);
    std::string candidate = base;
    std::error_code error;
    for (int suffix = 2; std::filesystem::exists(candidate, error); ++suffix)
        candidate = fmt::format("{}-{}", base, suffix);
    return candidate;
}

contract::Result<void> checkDevice(const std::string& device) {
    if (device == "cpu")
        return {};
    if (device == "cuda")
        return checkCuda();
    return contract::usageError(fmt::format("--device \"{}\": known are cpu, cuda", device));
}

contract::Error namePlan(contract::Error error, const std::string& planPath) {
    constexpr std::string_view kWord = "plan: ";
    if (error.message.starts_with(kWord))
        error.message = planPath + ": " + error.message.substr(kWord.size());
    return error;
}

} // namespace shardscope::engine
