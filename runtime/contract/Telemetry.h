// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Ledger.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace shardscope::contract {

inline constexpr int kTelemetryVersion = 1;

/// What every line carries. `t` is seconds since the coordinator started; `rank` -1 is the coordinator.
struct EventHeader {
    double t = 0;
    std::int32_t rank = -1;
    std::int64_t sequenceNumber = 0;
};

struct HelloEvent {
    std::int32_t version = kTelemetryVersion;
    std::string planSha256;
    std::int32_t world = 0;
    std::string runDirectory;
    std::int64_t pid = 0;
    std::int64_t steps = 0; ///< how many steps the run is asked for
};
struct ReadyEvent {
    std::int64_t pid = 0;
    std::string device;
};
struct MemoryEvent {
    Ledger predicted;
    Ledger allocated; ///< high-water of bytes handed out, by category
    std::int64_t peakAllocated = 0;
    std::int64_t resident = 0; ///< process memory above its start-up
};
struct StepEvent {
    std::int64_t step = 0;
    double loss = 0;
    double learningRate = 0;
    double gradientNorm = 0;
    std::int64_t tokens = 0;
    double stepSeconds = 0;
    double computeSeconds = 0;
    double exposedCommunicationSeconds = 0;
    double tokensPerSecond = 0;
};
struct EvaluationEvent {
    std::int64_t step = 0;
    double loss = 0;
    std::optional<double> accuracy;
};
struct OperatorEvent {
    std::string name;
    std::string phase;
    std::string stream;
    double start = 0;
    double end = 0;
};
struct CollectiveEvent {
    std::string kind;
    std::int64_t bytes = 0;
    double seconds = 0;
};
/// How a rank's GPU is, about once a second; what its driver does not say is left out. Rates are bytes per second.
struct DeviceEvent {
    std::optional<double> utilization;      ///< share of the time in which anything was computed, by anybody: 0..1
    std::optional<std::int64_t> memoryUsed; ///< bytes, by everybody
    std::optional<double> powerWatts;
    std::optional<double> temperatureCelsius;
    std::optional<double> pcieReceived;
    std::optional<double> pcieSent;
    std::optional<double> nvlinkReceived; ///< all links together, data without protocol
    std::optional<double> nvlinkSent;

    bool isEmpty() const {
        return !utilization && !memoryUsed && !powerWatts && !temperatureCelsius && !pcieReceived && !pcieSent &&
               !nvlinkReceived && !nvlinkSent;
    }
};
struct CheckpointEvent {
    std::int64_t step = 0;
    std::string path;
};
/// EventHeader::rank is the rank that failed, also when the coordinator reports it.
struct FailureEvent {
    std::int64_t step = 0;
    std::string phase;
    std::string cause;
    bool first = true;
};
struct RestartEvent {
    std::int64_t step = 0;
    std::int32_t attempt = 0;
    std::int32_t world = 0;
};
struct LogEvent {
    std::string level;
    std::string message;
};
struct ByeEvent {
    std::string status; ///< "done", "stopped", "failed"
    std::int64_t steps = 0;
    std::string reason;
};
/// A line whose type this version does not know; readers skip it.
struct UnknownEvent {
    std::string type;
};

using EventBody =
    std::variant<HelloEvent, ReadyEvent, MemoryEvent, StepEvent, EvaluationEvent, OperatorEvent, CollectiveEvent,
                 DeviceEvent, CheckpointEvent, FailureEvent, RestartEvent, LogEvent, ByeEvent, UnknownEvent>;
struct Event {
    EventHeader header;
    EventBody body;
};

/// One line without its newline.
std::string formatEvent(const Event& event);
/// Errors: BadInput for text that is not a telemetry object or misses a field of its type.
Result<Event> parseEvent(std::string_view line);

} // namespace shardscope::contract
