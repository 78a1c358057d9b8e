// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/collective/Group.h"
#include "runtime/collective/KeyValueServer.h"
#include "runtime/collective/Ring.h"
#include "runtime/contract/Sizing.h"

#include <QtTest/QtTest>

#include <chrono>
#include <cmath>
#include <functional>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

using namespace shardscope;
using engine::Chunks;
using engine::Ring;

namespace {

using Body = std::function<contract::Result<void>(Ring&, float* memory)>;
constexpr std::int64_t kFloats = 700'000; // more than the scratch holds

/// Runs `body` on each rank's thread; the errors by rank.
std::vector<std::optional<contract::Error>> onRanks(int ranks, const Body& body, std::chrono::milliseconds timeout) {
    auto server = engine::KeyValueServer::listen("127.0.0.1", 0);
    std::vector<std::optional<contract::Error>> errors(static_cast<std::size_t>(ranks));
    const auto run = [&](int rank) -> contract::Result<void> {
        engine::GroupAddress address;
        address.rank = rank;
        address.size = ranks;
        address.port = (*server)->port();
        address.timeout = timeout;
        auto group = engine::Group::connect(address);
        if (!group)
            return tl::unexpected(group.error());
        std::vector<float> memory(kFloats);
        std::vector<float> scratch(contract::kCollectiveScratchBytes / 4);
        auto ring = Ring::create(**group, engine::RingMembers::everybody(**group),
                                 {{reinterpret_cast<std::byte*>(memory.data()), kFloats * 4}},
                                 {reinterpret_cast<std::byte*>(scratch.data()), contract::kCollectiveScratchBytes});
        if (!ring)
            return tl::unexpected(ring.error());
        return body(**ring, memory.data());
    };
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank)
        threads.emplace_back([&, rank] {
            if (auto done = run(rank); !done)
                errors[static_cast<std::size_t>(rank)] = done.error();
        });
    for (std::thread& thread : threads)
        thread.join();
    return errors;
}

/// Small integers: sums are exact in any order.
float valueOf(int rank, std::int64_t i) {
    return static_cast<float>((i * 7 + rank * 13) % 31 - 15);
}

} // namespace

class RingTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void collectivesAgreeWithTheirDefinition_data();
    void collectivesAgreeWithTheirDefinition();
    void allRanksHaveTheSameBits();
    void severalTensorsAreSummedLikeEachAlone_data();
    void severalTensorsAreSummedLikeEachAlone();
    void anAbsentPeerIsAnErrorWithinTheTimeout();
    void aLeavingPeerIsAnErrorAtOnce();
    void anOccupiedPortIsNamed();
    void noMessageWaitsForADelayedAcknowledgement();
};

void RingTest::collectivesAgreeWithTheirDefinition_data() {
    QTest::addColumn<int>("ranks");
    for (int ranks = 1; ranks <= 5; ++ranks)
        QTest::addRow("%d ranks", ranks) << ranks;
}

void RingTest::collectivesAgreeWithTheirDefinition() {
    QFETCH(const int, ranks);
    const auto errors = onRanks(
        ranks,
        [&](Ring& ring, float* memory) -> contract::Result<void> {
            for (const std::int64_t n : {std::int64_t{0}, std::int64_t{1}, std::int64_t{3}, std::int64_t{1000},
                                         std::int64_t{65537}, kFloats}) {
                const Chunks chunks{n, (n + ranks - 1) / ranks};
                const auto sumAt = [&](std::int64_t i) {
                    float sum = 0;
                    for (int r = 0; r < ranks; ++r)
                        sum += valueOf(r, i);
                    return sum;
                };
                for (std::int64_t i = 0; i < n; ++i)
                    memory[i] = valueOf(ring.rank(), i);
                if (auto done = ring.reduceScatter(memory, chunks); !done)
                    return done;
                for (std::int64_t i = chunks.begin(ring.rank());
                     i < chunks.begin(ring.rank()) + chunks.count(ring.rank()); ++i)
                    if (memory[i] != sumAt(i))
                        return contract::runFailed("reduce-scatter: wrong sum");
                if (auto done = ring.allGather(memory, chunks); !done)
                    return done;
                for (std::int64_t i = 0; i < n; ++i)
                    if (memory[i] != sumAt(i))
                        return contract::runFailed("all-gather: wrong value");
                for (std::int64_t i = 0; i < n; ++i)
                    memory[i] = valueOf(ring.rank(), i);
                if (auto done = ring.allReduce(memory, n); !done)
                    return done;
                for (std::int64_t i = 0; i < n; ++i)
                    if (memory[i] != sumAt(i))
                        return contract::runFailed("all-reduce: wrong sum");
            }
            double scalars[2] = {1.0 + ring.rank(), 1e-17};
            if (auto done = ring.sumScalars(scalars, 2); !done)
                return done;
            return scalars[0] == ranks * (ranks + 1) / 2.0 ? contract::Result<void>()
                                                           : contract::runFailed("scalars: wrong sum");
        },
        std::chrono::seconds(20));
    for (const auto& error : errors)
        QVERIFY2(!error, qPrintable(error ? QString::fromStdString(error->message) : QString()));
}

void RingTest::allRanksHaveTheSameBits() {
    std::mutex mutex;
    std::vector<std::vector<float>> results;
    onRanks(
        3,
        [&](Ring& ring, float* memory) -> contract::Result<void> {
            for (int i = 0; i < 1000; ++i)
                memory[i] = std::sin(static_cast<float>(i * (ring.rank() + 1)));
            if (auto done = ring.allReduce(memory, 1000); !done)
                return done;
            const std::lock_guard lock(mutex);
            results.emplace_back(memory, memory + 1000);
            return {};
        },
        std::chrono::seconds(20));
    QCOMPARE(results.size(), std::size_t{3});
    QCOMPARE(results[1], results[0]);
    QCOMPARE(results[2], results[0]);
}

void RingTest::severalTensorsAreSummedLikeEachAlone_data() {
    collectivesAgreeWithTheirDefinition_data();
}

/// Sizes on both sides of a piece, empty ones and ones with fewer elements than ranks among them.
void RingTest::severalTensorsAreSummedLikeEachAlone() {
    QFETCH(const int, ranks);
    const std::vector<std::int64_t> sizes{5, 0, 100'000, 1, 32'768, 40'001, 3, 140'000};
    const auto errors = onRanks(
        ranks,
        [&](Ring& ring, float* memory) -> contract::Result<void> {
            const std::int64_t total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
            std::vector<engine::RingTensor> tensors;
            const auto fill = [&] {
                tensors.clear();
                for (std::int64_t i = 0; i < total; ++i)
                    memory[i] = std::sin(static_cast<float>(i * (ring.rank() + 1)));
                float* at = memory;
                for (const std::int64_t size : sizes) {
                    tensors.push_back({at, ring.evenChunks(size)});
                    at += size;
                }
            };
            fill();
            for (const engine::RingTensor& tensor : tensors)
                if (auto done = ring.allReduce(tensor.whole, tensor.chunks.elements); !done)
                    return done;
            const std::vector<float> apart(memory, memory + total);
            fill();
            if (auto done = ring.allReduce(tensors); !done)
                return done;
            if (!std::equal(apart.begin(), apart.end(), memory))
                return contract::runFailed("all-reduce: other bits");
            fill();
            if (auto done = ring.reduceScatter(tensors); !done)
                return done;
            for (const engine::RingTensor& tensor : tensors) {
                const std::int64_t begin = tensor.chunks.begin(ring.rank());
                const float* const sum = tensor.whole + begin;
                if (!std::equal(sum, sum + tensor.chunks.count(ring.rank()), apart.data() + (sum - memory)))
                    return contract::runFailed("reduce-scatter: other bits");
            }
            return {};
        },
        std::chrono::seconds(20));
    for (const auto& error : errors)
        QVERIFY2(!error, error ? error->message.c_str() : "");
}

void RingTest::anAbsentPeerIsAnErrorWithinTheTimeout() {
    QElapsedTimer timer;
    timer.start();
    const auto errors = onRanks(
        2,
        [](Ring& ring, float* memory) -> contract::Result<void> {
            if (ring.rank() == 1) {
                std::this_thread::sleep_for(std::chrono::milliseconds(2500));
                return {};
            }
            return ring.allReduce(memory, 100);
        },
        std::chrono::milliseconds(500));
    QVERIFY(errors[0]);
    QVERIFY2(errors[0]->message.find("rank 1 did not send for 0.5 s") != std::string::npos, errors[0]->message.c_str());
    QVERIFY(timer.elapsed() < 10000);
}

void RingTest::aLeavingPeerIsAnErrorAtOnce() {
    const auto errors = onRanks(
        2,
        [](Ring& ring, float* memory) -> contract::Result<void> {
            return ring.rank() == 1 ? contract::Result<void>() : ring.allReduce(memory, 100);
        },
        std::chrono::seconds(20));
    QVERIFY(errors[0]);
    QVERIFY2(errors[0]->message.find("rank 1 closed its connection") != std::string::npos, errors[0]->message.c_str());
}

/// Pieces of 64 KiB after small ones used to take 43 ms each on loopback, where they take well under 1 ms: 200 of them
/// must not come near that, however busy the machine.
void RingTest::noMessageWaitsForADelayedAcknowledgement() {
    constexpr int kMessages = 200;
    std::mutex mutex;
    double slowest = 0;
    const auto errors = onRanks(
        2,
        [&](Ring& ring, float* memory) -> contract::Result<void> {
            const auto begin = std::chrono::steady_clock::now();
            for (int i = 0; i < kMessages; ++i) {
                for (const std::int64_t chunk : {64, 16384}) {
                    if (auto done = ring.allGather(memory, Chunks{2 * chunk, chunk}); !done)
                        return done;
                }
            }
            const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
            const std::lock_guard lock(mutex);
            slowest = std::max(slowest, spent.count());
            return {};
        },
        std::chrono::seconds(60));
    for (const auto& error : errors)
        QVERIFY2(!error, error ? error->message.c_str() : "");
    QVERIFY2(slowest < kMessages * 0.02, qPrintable(QString::number(slowest)));
}

void RingTest::anOccupiedPortIsNamed() {
    const auto first = engine::KeyValueServer::listen("127.0.0.1", 0);
    QVERIFY(first);
    const auto second = engine::KeyValueServer::listen("127.0.0.1", (*first)->port());
    QVERIFY(!second);
    QVERIFY(second.error().message.find("MASTER_PORT " + std::to_string((*first)->port())) != std::string::npos);
    QCOMPARE(second.error().kind, contract::ErrorKind::RunFailed);
}

QTEST_GUILESS_MAIN(RingTest)
#include "tst_ring.moc"
