// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/launch/Show.h"

#include "runtime/contract/Bytes.h"
#include "runtime/contract/Json.h"
#include "runtime/contract/Telemetry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace shardscope::engine {

namespace {

struct Summary {
    std::optional<contract::HelloEvent> hello;
    std::map<std::int64_t, contract::StepEvent> steps; ///< a repeated step: the last wins
    std::optional<contract::EvaluationEvent> evaluation;
    std::map<std::int32_t, contract::MemoryEvent> memory;
    std::map<std::int32_t, contract::DeviceEvent> devices; ///< the latest
    std::optional<contract::CheckpointEvent> checkpoint;
    std::optional<contract::FailureEvent> failure;
    std::int32_t failedRank = -1;
    std::optional<contract::ByeEvent> bye;
    int restarts = 0;

    void add(const contract::Event& event) {
        if (const auto* e = std::get_if<contract::HelloEvent>(&event.body)) {
            hello = *e;
            bye.reset(); // a resumed run says hello again
        } else if (const auto* step = std::get_if<contract::StepEvent>(&event.body)) {
            steps[step->step] = *step;
        } else if (const auto* evaluated = std::get_if<contract::EvaluationEvent>(&event.body)) {
            evaluation = *evaluated;
        } else if (const auto* used = std::get_if<contract::MemoryEvent>(&event.body)) {
            memory[event.header.rank] = *used;
        } else if (const auto* status = std::get_if<contract::DeviceEvent>(&event.body)) {
            devices[event.header.rank] = *status;
        } else if (const auto* saved = std::get_if<contract::CheckpointEvent>(&event.body)) {
            checkpoint = *saved;
        } else if (const auto* failed = std::get_if<contract::FailureEvent>(&event.body); failed && failed->first) {
            failure = *failed;
            failedRank = event.header.rank;
        } else if (std::holds_alternative<contract::RestartEvent>(event.body)) {
            ++restarts;
        } else if (const auto* end = std::get_if<contract::ByeEvent>(&event.body)) {
            bye = *end;
        }
    }

    double tokensPerSecond() const {
        double tokens = 0;
        double seconds = 0;
        for (const auto& [number, step] : steps) {
            tokens += static_cast<double>(step.tokens);
            seconds += step.stepSeconds;
        }
        return seconds > 0 ? tokens / seconds : 0;
    }
    std::string status() const {
        if (bye)
            return bye->status;
        // A coordinator that was killed says no goodbye.
        const bool gone = hello && kill(static_cast<pid_t>(hello->pid), 0) != 0 && errno == ESRCH;
        return gone ? "ended without a word" : "running";
    }
};

contract::OrderedJson toJson(const Summary& s, const std::string& folder) {
    contract::OrderedJson json{{"run_dir", folder},
                               {"status", s.status()},
                               {"world", s.hello->world},
                               {"steps_asked", s.hello->steps},
                               {"steps", s.steps.empty() ? 0 : s.steps.rbegin()->first},
                               {"tokens_per_second", s.tokensPerSecond()},
                               {"restarts", s.restarts}};
    if (!s.steps.empty()) {
        json["first_loss"] = s.steps.begin()->second.loss;
        json["last_loss"] = s.steps.rbegin()->second.loss;
    }
    if (s.evaluation) {
        json["evaluation_loss"] = s.evaluation->loss;
        if (s.evaluation->accuracy)
            json["accuracy"] = *s.evaluation->accuracy;
    }
    if (s.checkpoint)
        json["checkpoint"] = s.checkpoint->path;
    for (const auto& [rank, used] : s.memory)
        json["memory"].push_back({{"rank", rank},
                                  {"predicted", contract::toJson(used.predicted)},
                                  {"allocated", contract::toJson(used.allocated)},
                                  {"resident", used.resident}});
    const auto orNull = [](const auto& value) {
        return value ? contract::OrderedJson(*value) : contract::OrderedJson(nullptr);
    };
    for (const auto& [rank, status] : s.devices)
        json["devices"].push_back({{"rank", rank},
                                   {"utilization", orNull(status.utilization)},
                                   {"memory_used", orNull(status.memoryUsed)},
                                   {"power_watts", orNull(status.powerWatts)},
                                   {"temperature_celsius", orNull(status.temperatureCelsius)}});
    if (s.failure)
        json["failure"] = {{"rank", s.failedRank},
                           {"step", s.failure->step},
                           {"phase", s.failure->phase},
                           {"cause", s.failure->cause}};
    return json;
}

/// "97 % busy, 3.0 GiB in use, 412 W, 63 °C", as far as it is known.
std::string describe(const contract::DeviceEvent& status) {
    std::vector<std::string> parts;
    if (status.utilization)
        parts.push_back(fmt::format("{:.0f} % busy", 100 * *status.utilization));
    if (status.memoryUsed)
        parts.push_back(contract::describeBytes(*status.memoryUsed) + " in use");
    if (status.powerWatts)
        parts.push_back(fmt::format("{:.0f} W", *status.powerWatts));
    if (status.temperatureCelsius)
        parts.push_back(fmt::format("{:.0f} °C", *status.temperatureCelsius));
    return fmt::format("{}", fmt::join(parts, ", "));
}

void print(const Summary& s, const std::string& folder) {
    fmt::print("run       {}\nstatus    {}{}\nworkers   {}\n", folder, s.status(),
               s.bye && !s.bye->reason.empty() ? " (" + s.bye->reason + ")" : "", s.hello->world);
    if (!s.steps.empty())
        fmt::print("steps     {} of {}\nloss      {:.4f} at step {}, {:.4f} at step {}\nspeed     {:.0f} tokens/s\n",
                   s.steps.rbegin()->first, s.hello->steps, s.steps.begin()->second.loss, s.steps.begin()->first,
                   s.steps.rbegin()->second.loss, s.steps.rbegin()->first, s.tokensPerSecond());
    if (s.evaluation)
        fmt::print("held out  loss {:.4f}{} at step {}\n", s.evaluation->loss,
                   s.evaluation->accuracy ? fmt::format(", {:.1f} % right", 100 * *s.evaluation->accuracy) : "",
                   s.evaluation->step);
    if (s.checkpoint)
        fmt::print("saved     {}\n", s.checkpoint->path);
    if (s.failure)
        fmt::print("failure   rank {} at step {} ({}): {}\n", s.failedRank, s.failure->step, s.failure->phase,
                   s.failure->cause);
    for (const auto& [rank, status] : s.devices)
        fmt::print("{:<9} {}\n", fmt::format("GPU of {}", rank), describe(status));
    if (!s.memory.empty()) {
        const contract::MemoryEvent& used = s.memory.begin()->second;
        fmt::print("\nmemory of rank {:<10} {:>14} {:>14}\n", s.memory.begin()->first, "predicted", "allocated");
        for (int i = 0; i < contract::kCategoryCount; ++i) {
            const auto category = static_cast<contract::Category>(i);
            if (used.predicted[category] != 0 || used.allocated[category] != 0)
                fmt::print("  {:<23} {:>14} {:>14}\n", contract::categoryName(category),
                           contract::describeBytes(used.predicted[category]),
                           contract::describeBytes(used.allocated[category]));
        }
        fmt::print("  {:<23} {:>14} {:>14}\n  {:<23} {:>14} {:>14}\n", "total",
                   contract::describeBytes(used.predicted.total()), contract::describeBytes(used.allocated.total()),
                   "resident", "", contract::describeBytes(used.resident));
    }
}

} // namespace

contract::Result<void> runShow(const ShowOptions& options) {
    const std::string path = options.runDirectory + "/run.ndjson";
    const auto text = contract::readTextFile(path);
    if (!text)
        return tl::unexpected(text.error());
    Summary summary;
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line);)
        if (const auto event = contract::parseEvent(line)) // the last line of a running run may be half written
            summary.add(*event);
    if (!summary.hello)
        return contract::badInput(path + ": holds no \"hello\" line; it is not the telemetry of a run");
    if (options.json)
        std::printf("%s\n", toJson(summary, options.runDirectory).dump(1).c_str());
    else
        print(summary, options.runDirectory);
    return {};
}

} // namespace shardscope::engine
