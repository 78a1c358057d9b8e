// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Plan.h"
#include "runtime/execute/PlanSetup.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::engine {

/// What `run` and `worker` are asked for.
struct RunOptions {
    std::string planPath;
    std::string data;
    std::string tokenizer; ///< tokenizer.json or its folder; empty: text is bytes
    std::string device = "cpu";
    std::string init;         ///< weights to begin with: a .safetensors file or a Hugging Face folder
    std::string book;         ///< folder of plans for fewer workers
    std::string runDirectory; ///< empty: ./runs/NAME-TIME
    std::int64_t steps = 200;
    std::uint64_t seed = 1;
    std::int64_t checkpointEvery = 0;
    std::int64_t maxRestarts = 0;
    std::int64_t checkpointsKept = 2;
    std::optional<double> timeoutSeconds; ///< as asked for; see timeout()
    bool resume = false;
    std::optional<std::int64_t> workers;
    std::optional<double> learningRate;

    DeviceKind deviceKind() const { return device == "cuda" ? DeviceKind::Cuda : DeviceKind::Cpu; }
    double timeout() const { return timeoutSeconds.value_or(kDefaultTimeoutSeconds); }
    static constexpr double kDefaultTimeoutSeconds = 5;
};

/// The arguments with which a coordinator starts a worker for these options.
std::vector<std::string> workerArguments(const RunOptions& options, const std::string& planPath, std::int64_t ranks);
/// "./runs/NAME-20250131-174500", with a suffix when that exists.
std::string defaultRunDirectory(const contract::Plan& plan);

/// What is wrong with a plan, beginning with its file instead of the bare word.
contract::Error namePlan(contract::Error error, const std::string& planPath);

/// Errors: RunFailed for a device that this build or this machine does not have, Usage for one nobody knows.
contract::Result<void> checkDevice(const std::string& device);

} // namespace shardscope::engine
