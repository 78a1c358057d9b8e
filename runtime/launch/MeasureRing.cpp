// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/launch/MeasureRing.h"

#include "runtime/collective/KeyValueServer.h"
#include "runtime/collective/Lane.h"
#include "runtime/collective/Ring.h"
#include "runtime/contract/Bytes.h"
#include "runtime/launch/MeasureKernels.h"
#include "runtime/launch/RankThreads.h"
#include "runtime/launch/TelemetryWriter.h"
#include "runtime/ops/Linear.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <memory>

namespace shardscope::engine {

namespace {

constexpr std::int64_t kSmallest = 256;
constexpr std::int64_t kLargest = 4 << 20;
constexpr std::int64_t kRatio = 4;

/// A matrix product of about a millisecond, again and again.
class Computing {
public:
    Computing() : m_x(kRows * kWidth, 0.5F), m_w(kWidth * kWidth, 0.5F), m_y(kRows * kWidth) {
        run(1);
        const double begin = monotonicSeconds();
        run(kTimed);
        m_seconds = (monotonicSeconds() - begin) / kTimed;
    }
    void run(std::int64_t times) {
        for (std::int64_t i = 0; i < times; ++i)
            linearForward({m_x.data(), kRows, kWidth, kWidth}, m_w.data(), nullptr, {},
                          {m_y.data(), kRows, kWidth, kWidth});
    }
    std::int64_t timesFor(double seconds) const {
        return std::max<std::int64_t>(1, static_cast<std::int64_t>(seconds / m_seconds));
    }

private:
    static constexpr std::int64_t kRows = 128;
    static constexpr std::int64_t kWidth = 512;
    static constexpr int kTimed = 8;
    std::vector<float> m_x, m_w, m_y;
    double m_seconds = 0;
};

/// One rank's end of the ring and the times it sees.
class RingRank {
public:
    RingRank(Ring& ring, float* memory, std::barrier<>& start) : m_ring(ring), m_memory(memory), m_start(start) {}

    /// One message at a time, nothing beside it. The first ones grow the sockets' buffers.
    contract::Result<double> alone(std::int64_t bytes) {
        constexpr std::int64_t kSmall = 65536;
        const int repeats = bytes <= kSmall ? 60 : 12;
        std::vector<double> times;
        for (int repeat = 0; repeat < repeats; ++repeat) {
            const double begin = monotonicSeconds();
            if (auto done = gather(bytes); !done)
                return tl::unexpected(done.error());
            if (repeat >= 2)
                times.push_back((monotonicSeconds() - begin) / steps());
        }
        // The lower quartile: other programs only ever make a message slower.
        return quantile(times, 0.25);
    }

    /// What computing takes longer with a message beside it on the communication thread, as in a training step.
    contract::Result<double> beside(std::int64_t bytes, double secondsAlone) {
        constexpr double kLeastCompute = 3e-3;
        constexpr int kPairs = 24;
        const std::int64_t times = m_computing.timesFor(std::max(kLeastCompute, 2 * secondsAlone * steps()));
        Lane lane([&](const Lane::Job&) { return gather(bytes); });
        std::vector<double> longer;
        for (int pair = 0; pair < kPairs; ++pair) {
            m_start.arrive_and_wait();
            const double first = monotonicSeconds();
            m_computing.run(times);
            const double second = monotonicSeconds();
            m_start.arrive_and_wait();
            const double third = monotonicSeconds();
            const Lane::Ticket ticket = lane.post({});
            m_computing.run(times);
            if (!lane.wait(ticket))
                return tl::unexpected(*lane.failure());
            longer.push_back((monotonicSeconds() - third - (second - first)) / steps());
        }
        return quantile(longer, 0.5);
    }

private:
    double steps() const { return m_ring.size() - 1; }
    contract::Result<void> gather(std::int64_t bytes) {
        const std::int64_t floats = bytes / 4;
        return m_ring.allGather(m_memory, {floats * m_ring.size(), floats});
    }

    Ring& m_ring;
    float* m_memory;
    std::barrier<>& m_start;
    Computing m_computing;
};

} // namespace

LinkFit fitLink(const std::vector<LinkSample>& samples) {
    std::vector<FitSample> times;
    for (const LinkSample& sample : samples)
        times.push_back({{1.0, sample.bytes}, sample.seconds});
    const Fit fit = fitSeconds(times);
    if (samples.size() < 2)
        return {};
    return {fit.coefficients[0], fit.coefficients[1] > 0 ? 1.0 / fit.coefficients[1] : 0, fit.r2};
}

contract::Result<std::vector<RingSample>> measureRing(std::int64_t ranks, bool isCrowded) {
    auto server = KeyValueServer::listen("127.0.0.1", 0);
    if (!server)
        return tl::unexpected(server.error());
    std::barrier start(ranks);
    std::vector<RingSample> samples;
    const auto measureRank = [&](int rank) -> contract::Result<void> {
        GroupAddress address;
        address.rank = rank;
        address.size = static_cast<int>(ranks);
        address.port = (*server)->port();
        address.timeout = std::chrono::seconds(30);
        auto group = Group::connect(address);
        if (!group)
            return tl::unexpected(group.error());
        std::vector<float> memory(static_cast<std::size_t>(kLargest / 4 * ranks), 1.0F);
        std::vector<float> scratch(contract::kMiB / 4);
        auto ring = Ring::create(**group, RingMembers::everybody(**group),
                                 {{reinterpret_cast<std::byte*>(memory.data()), kLargest * ranks}},
                                 {reinterpret_cast<std::byte*>(scratch.data()), contract::kMiB});
        if (!ring)
            return tl::unexpected(ring.error());
        RingRank own(**ring, memory.data(), start);
        for (std::int64_t bytes = kSmallest; bytes <= kLargest; bytes *= kRatio) {
            const auto alone = own.alone(bytes);
            if (!alone)
                return tl::unexpected(alone.error());
            RingSample sample{{static_cast<double>(bytes), *alone}, *alone};
            if (isCrowded) {
                const auto beside = own.beside(bytes, *alone);
                if (!beside)
                    return tl::unexpected(beside.error());
                // A difference of two times is uncertain by more than a small message takes; it takes that at least.
                sample.link.seconds = std::max(*alone, *beside);
            }
            if (rank == 0)
                samples.push_back(sample);
        }
        return {};
    };
    const auto runRank = [&](int rank) {
        auto done = measureRank(rank);
        if (!done)
            start.arrive_and_drop(); // nobody waits for this rank any more
        return done;
    };
    if (auto done = runOnEveryRank(ranks, runRank); !done)
        return tl::unexpected(done.error());
    return samples;
}

} // namespace shardscope::engine
