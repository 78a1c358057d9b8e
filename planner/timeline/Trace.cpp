// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/timeline/Trace.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iterator>

namespace shardscope::planner {

using contract::Category;
using contract::OrderedJson;

namespace {

constexpr int kProcess = 1;

int threadOf(Stream stream) {
    return stream == Stream::Compute ? 1 : 2;
}

/// Microseconds without loss: doubles would round the picoseconds of long steps away.
std::string microseconds(std::int64_t picoseconds) {
    return fmt::format("{}.{:06}", picoseconds / 1'000'000, picoseconds % 1'000'000);
}

/// Names may hold anything that a state dict's may.
std::string quoted(const std::string& text) {
    return OrderedJson(text).dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

class TraceWriter {
public:
    std::string write(const PlannedStep& step, const Timeline& timeline) {
        m_text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
        metadata("process_name", 0, quoted(fmt::format("One device of {}", step.request.cluster.title)));
        metadata("thread_name", threadOf(Stream::Compute), quoted("compute"));
        metadata("thread_name", threadOf(Stream::Communication), quoted("communication"));
        for (const Interval& interval : timeline.intervals)
            complete(step, interval);
        counters(timeline.memory);
        m_text += "\n]}\n";
        return std::move(m_text);
    }

private:
    void next() {
        m_text += m_first ? "\n" : ",\n";
        m_first = false;
    }

    void metadata(const char* what, int thread, const std::string& name) {
        next();
        fmt::format_to(std::back_inserter(m_text), R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{"name":{}}}}})",
                       kProcess, thread, what, name);
    }

    /// The operator's name, or the block's where a collective moves all of it.
    static std::string subjectOf(const PlannedStep& step, const Interval& interval) {
        if (interval.op < 0)
            return {};
        const contract::Operator& op = step.operators()[static_cast<std::size_t>(interval.op)];
        const bool wholeBlock = interval.stream == Stream::Communication && !op.blockName.empty() &&
                                interval.part == contract::StepInstruction::kWholeBlock;
        return wholeBlock ? op.blockName + " (whole block)" : op.name;
    }

    void complete(const PlannedStep& step, const Interval& interval) {
        const std::string_view phase = contract::stepCodeName(interval.phase);
        const std::string op = subjectOf(step, interval);
        next();
        fmt::format_to(std::back_inserter(m_text),
                       R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":{},"cat":"{}","args":{{"operator":{})"
                       R"(,"part":{},"micro_step":{})",
                       kProcess, threadOf(interval.stream), microseconds(interval.begin),
                       microseconds(interval.end - interval.begin),
                       quoted(op.empty() ? std::string(phase) : fmt::format("{} {}", phase, op)), phase, quoted(op),
                       interval.part, interval.microStep);
        if (interval.stream == Stream::Communication)
            fmt::format_to(std::back_inserter(m_text), R"(,"bytes":{})", interval.bytes);
        m_text += "}}";
    }

    /// One counter per category; of several changes at one instant the last counts.
    void counters(const MemoryTimeline& memory) {
        contract::Ledger inUse = memory.constant;
        for (int i = 0; i < contract::kCategoryCount; ++i)
            if (const auto category = static_cast<Category>(i); inUse[category] > 0)
                counter(category, 0, inUse[category]);
        std::array<bool, contract::kCategoryCount> touched{};
        for (std::size_t i = 0; i < memory.changes.size(); ++i) {
            const MemoryChange& change = memory.changes[i];
            inUse[change.category] += change.bytes;
            touched[static_cast<std::size_t>(change.category)] = true;
            if (i + 1 < memory.changes.size() && memory.changes[i + 1].picoseconds == change.picoseconds)
                continue;
            for (std::size_t c = 0; c < touched.size(); ++c)
                if (touched[c])
                    counter(static_cast<Category>(c), change.picoseconds, inUse.bytes[c]);
            touched = {};
        }
    }

    void counter(Category category, std::int64_t at, std::int64_t bytes) {
        next();
        fmt::format_to(std::back_inserter(m_text),
                       R"({{"ph":"C","pid":{},"ts":{},"name":"memory {}","args":{{"bytes":{}}}}})", kProcess,
                       microseconds(at), contract::categoryName(category), bytes);
    }

    std::string m_text;
    bool m_first = true;
};

} // namespace

std::string formatTrace(const PlannedStep& step, const Timeline& timeline) {
    return TraceWriter().write(step, timeline);
}

} // namespace shardscope::planner
