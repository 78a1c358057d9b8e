// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/contract/Telemetry.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>

namespace shardscope::contract {

namespace {

constexpr double kLowest = std::numeric_limits<double>::lowest();

/// JSON has no NaN or infinity; a loss that has diverged is written as null and read back as NaN.
OrderedJson real(double value) {
    return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr);
}

double readReal(const JsonCursor& cursor, std::string_view key) {
    const auto value = cursor.find(key);
    if (!value && !cursor.raw().contains(std::string(key)))
        cursor.at(key); // remembers "is missing"
    return value ? value->number(kLowest) : std::numeric_limits<double>::quiet_NaN();
}

struct BodyWriter {
    OrderedJson& json;

    void operator()(const HelloEvent& e) const {
        json["version"] = e.version;
        json["plan_sha256"] = e.planSha256;
        json["world"] = e.world;
        json["run_dir"] = e.runDirectory;
        json["pid"] = e.pid;
        json["steps"] = e.steps;
    }
    void operator()(const ReadyEvent& e) const {
        json["pid"] = e.pid;
        json["device"] = e.device;
    }
    void operator()(const MemoryEvent& e) const {
        json["predicted"] = {{"ledger", toJson(e.predicted)}};
        json["allocated"] = {{"ledger", toJson(e.allocated)}};
        json["peak_allocated"] = e.peakAllocated;
        json["resident"] = e.resident;
    }
    void operator()(const StepEvent& e) const {
        json["step"] = e.step;
        json["loss"] = real(e.loss);
        json["learning_rate"] = real(e.learningRate);
        json["gradient_norm"] = real(e.gradientNorm);
        json["tokens"] = e.tokens;
        json["step_seconds"] = e.stepSeconds;
        json["compute_seconds"] = e.computeSeconds;
        json["exposed_communication_seconds"] = e.exposedCommunicationSeconds;
        json["tokens_per_second"] = e.tokensPerSecond;
    }
    void operator()(const EvaluationEvent& e) const {
        json["step"] = e.step;
        json["loss"] = real(e.loss);
        json["accuracy"] = e.accuracy ? real(*e.accuracy) : OrderedJson(nullptr);
    }
    void operator()(const OperatorEvent& e) const {
        json["name"] = e.name;
        json["phase"] = e.phase;
        json["stream"] = e.stream;
        json["start"] = e.start;
        json["end"] = e.end;
    }
    void operator()(const CollectiveEvent& e) const {
        json["kind"] = e.kind;
        json["bytes"] = e.bytes;
        json["seconds"] = e.seconds;
    }
    void operator()(const DeviceEvent& e) const {
        const auto put = [this](const char* key, const auto& value) {
            json[key] = value ? OrderedJson(*value) : OrderedJson(nullptr);
        };
        put("utilization", e.utilization);
        put("memory_used", e.memoryUsed);
        put("power_watts", e.powerWatts);
        put("temperature_celsius", e.temperatureCelsius);
        put("pcie_received_bytes_per_second", e.pcieReceived);
        put("pcie_sent_bytes_per_second", e.pcieSent);
        put("nvlink_received_bytes_per_second", e.nvlinkReceived);
        put("nvlink_sent_bytes_per_second", e.nvlinkSent);
    }
    void operator()(const CheckpointEvent& e) const {
        json["step"] = e.step;
        json["path"] = e.path;
    }
    void operator()(const FailureEvent& e) const {
        json["step"] = e.step;
        json["phase"] = e.phase;
        json["cause"] = e.cause;
        json["first"] = e.first;
    }
    void operator()(const RestartEvent& e) const {
        json["step"] = e.step;
        json["attempt"] = e.attempt;
        json["world"] = e.world;
    }
    void operator()(const LogEvent& e) const {
        json["level"] = e.level;
        json["message"] = e.message;
    }
    void operator()(const ByeEvent& e) const {
        json["status"] = e.status;
        json["steps"] = e.steps;
        json["reason"] = e.reason;
    }
    void operator()(const UnknownEvent&) const {}
};

struct TypeName {
    std::string operator()(const HelloEvent&) const { return "hello"; }
    std::string operator()(const ReadyEvent&) const { return "ready"; }
    std::string operator()(const MemoryEvent&) const { return "memory"; }
    std::string operator()(const StepEvent&) const { return "step"; }
    std::string operator()(const EvaluationEvent&) const { return "evaluation"; }
    std::string operator()(const OperatorEvent&) const { return "operator"; }
    std::string operator()(const CollectiveEvent&) const { return "collective"; }
    std::string operator()(const DeviceEvent&) const { return "device"; }
    std::string operator()(const CheckpointEvent&) const { return "checkpoint"; }
    std::string operator()(const FailureEvent&) const { return "failure"; }
    std::string operator()(const RestartEvent&) const { return "restart"; }
    std::string operator()(const LogEvent&) const { return "log"; }
    std::string operator()(const ByeEvent&) const { return "bye"; }
    std::string operator()(const UnknownEvent& e) const { return e.type; }
};

std::int32_t smallInteger(const JsonCursor& cursor) {
    return static_cast<std::int32_t>(cursor.integer(-1, std::numeric_limits<std::int32_t>::max()));
}

DeviceEvent readDevice(const JsonCursor& c) {
    const auto number = [&](const char* key, double lowest, double highest) -> std::optional<double> {
        const auto value = c.find(key);
        return value ? std::optional(value->number(lowest, highest)) : std::nullopt;
    };
    constexpr double kMuch = 1e18;
    DeviceEvent event;
    event.utilization = number("utilization", 0, 1);
    if (const auto used = c.find("memory_used"))
        event.memoryUsed = used->integer(0, std::int64_t{1} << 56);
    event.powerWatts = number("power_watts", 0, kMuch);
    event.temperatureCelsius = number("temperature_celsius", -kMuch, kMuch);
    event.pcieReceived = number("pcie_received_bytes_per_second", 0, kMuch);
    event.pcieSent = number("pcie_sent_bytes_per_second", 0, kMuch);
    event.nvlinkReceived = number("nvlink_received_bytes_per_second", 0, kMuch);
    event.nvlinkSent = number("nvlink_sent_bytes_per_second", 0, kMuch);
    return event;
}

EventBody readBody(const std::string& type, const JsonCursor& c) {
    if (type == "hello")
        return HelloEvent{smallInteger(c.at("version")), c.at("plan_sha256").text(), smallInteger(c.at("world")),
                          c.at("run_dir").text(),        c.at("pid").integer(),      c.at("steps").integer()};
    if (type == "ready")
        return ReadyEvent{c.at("pid").integer(), c.at("device").text()};
    if (type == "memory")
        return MemoryEvent{readLedger(c.at("predicted").at("ledger")), readLedger(c.at("allocated").at("ledger")),
                           c.at("peak_allocated").integer(), c.at("resident").integer(0, std::int64_t{1} << 56)};
    if (type == "step")
        return StepEvent{c.at("step").integer(),
                         readReal(c, "loss"),
                         readReal(c, "learning_rate"),
                         readReal(c, "gradient_norm"),
                         c.at("tokens").integer(),
                         c.at("step_seconds").number(),
                         c.at("compute_seconds").number(),
                         c.at("exposed_communication_seconds").number(),
                         c.at("tokens_per_second").number()};
    if (type == "evaluation") {
        EvaluationEvent event{c.at("step").integer(), readReal(c, "loss"), std::nullopt};
        if (const auto accuracy = c.find("accuracy"))
            event.accuracy = accuracy->number(0, 1);
        return event;
    }
    if (type == "operator")
        return OperatorEvent{c.at("name").text(), c.at("phase").text(), c.at("stream").text(), c.at("start").number(),
                             c.at("end").number()};
    if (type == "collective")
        return CollectiveEvent{c.at("kind").text(), c.at("bytes").integer(), c.at("seconds").number()};
    if (type == "device")
        return readDevice(c);
    if (type == "checkpoint")
        return CheckpointEvent{c.at("step").integer(), c.at("path").text()};
    if (type == "failure")
        return FailureEvent{c.at("step").integer(), c.at("phase").text(), c.at("cause").text(1 << 16),
                            c.at("first").boolean()};
    if (type == "restart")
        return RestartEvent{c.at("step").integer(), smallInteger(c.at("attempt")), smallInteger(c.at("world"))};
    if (type == "log")
        return LogEvent{c.at("level").text(), c.at("message").text(1 << 16)};
    if (type == "bye")
        return ByeEvent{c.at("status").text(), c.at("steps").integer(), c.at("reason").text(1 << 16)};
    return UnknownEvent{type};
}

} // namespace

std::string formatEvent(const Event& event) {
    OrderedJson json{{"type", std::visit(TypeName{}, event.body)},
                     {"t", event.header.t},
                     {"rank", event.header.rank},
                     {"seq", event.header.sequenceNumber}};
    std::visit(BodyWriter{json}, event.body);
    // Causes may quote foreign bytes; replace what is not UTF-8 instead of failing to report.
    return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

Result<Event> parseEvent(std::string_view line) {
    const auto document = parseJson(line, "telemetry");
    if (!document)
        return tl::unexpected(document.error());
    const JsonCursor cursor(*document, "telemetry");
    Event event;
    const std::string type = cursor.at("type").text(64);
    event.header.t = cursor.at("t").number(kLowest);
    event.header.rank = smallInteger(cursor.at("rank"));
    event.header.sequenceNumber = cursor.at("seq").integer();
    if (!cursor.failed())
        event.body = readBody(type, cursor);
    if (cursor.failed())
        return cursor.error();
    return event;
}

} // namespace shardscope::contract
