// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/support/TrainingFixture.h"
#include "runtime/contract/Bytes.h"
#include "runtime/memory/BufferPool.h"

#include <QtTest/QtTest>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

// Every allocation of this process is counted, whoever makes it: our threads, Gloo, BLAS. Sanitizers bring allocators
// of their own, which cannot be replaced.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static constexpr bool kCountsAllocations = false;
static std::atomic<long> allocations{0};
#else
static constexpr bool kCountsAllocations = true;
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
static std::atomic<long> allocations{0};
void* malloc(size_t bytes) {
    ++allocations;
    return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
    ++allocations;
    return __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) {
    ++allocations;
    return __libc_realloc(old, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
    ++allocations;
    return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
    ++allocations;
    return __libc_memalign(alignment, bytes);
}
}
#endif

using namespace shardscope;
using shardscope::testing::PlanRecipe;

namespace {

PlanRecipe mixedRecipe(std::int64_t ranks, bool recompute) {
    PlanRecipe recipe;
    recipe.ranks = ranks;
    recipe.microBatch = 2;
    recipe.accumulate = 2;
    recipe.recompute = recompute;
    recipe.placement = [](int index, const std::string&) {
        static const char* const kMixed[] = {"shard:3:2", "keep", "shard", "replicate", "shard:4"};
        return std::string(kMixed[index % 5]);
    };
    return recipe;
}

} // namespace

class MemoryTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void highWaterIsTheTable_data();
    void highWaterIsTheTable();
    void laterStepsAllocateNothing_data();
    void laterStepsAllocateNothing();
    void aShrunkBufferIsNamed_data();
    void aShrunkBufferIsNamed();
    void overlappingBuffersAreNamed();
    void aTornSlotIsNamed();
};

void MemoryTest::highWaterIsTheTable_data() {
    QTest::addColumn<QString>("placement");
    QTest::addColumn<int>("ranks");
    QTest::addColumn<bool>("recompute");
    QTest::addColumn<QString>("family");
    for (const char* family : {"llama", "qwen3"})
        for (const char* placement : {"mixed", "coalesced shard and keep"})
            for (const bool recompute : {false, true})
                QTest::addRow("%s, %s%s", family, placement, recompute ? ", recomputed" : "")
                    << placement << 2 << recompute << family;
    for (const char* placement : {"replicate", "keep", "keep-held", "shard", "mixed", "coalesced shard",
                                  "coalesced keep", "coalesced shard and keep"})
        for (const int ranks : {1, 2})
            for (const bool recompute : {false, true})
                QTest::addRow("%s, %d ranks%s", placement, ranks, recompute ? ", recomputed" : "")
                    << placement << ranks << recompute << "gpt2";
}

void MemoryTest::highWaterIsTheTable() {
    QFETCH(const QString, placement);
    QFETCH(const int, ranks);
    QFETCH(const bool, recompute);
    QFETCH(const QString, family);
    PlanRecipe recipe = mixedRecipe(ranks, recompute);
    if (family != "gpt2")
        recipe.architecture = testing::oddLlama(family.toStdString());
    recipe.coalesce = placement.startsWith("coalesced");
    if (placement == "coalesced shard and keep")
        recipe.placement = [](int index, const std::string&) { return std::string(index % 2 == 0 ? "shard" : "keep"); };
    else if (placement != "mixed")
        recipe.placement = [&](int, const std::string&) { return placement.section(' ', -1).toStdString(); };
    const contract::Plan plan = testing::makePlan(recipe);
    const auto extents = plan.buffers.arenaBytes();
    const contract::Ledger ledger = plan.buffers.ledger();
    const auto done =
        testing::runRanks(plan, 1, [&](engine::Executor& executor, const engine::PlanSetup&) -> contract::Result<void> {
            for (int step = 1; step <= 2; ++step)
                if (auto ran = executor.runStep(step, 2, false, false); !ran)
                    return tl::unexpected(ran.error());
            for (int arena = 0; arena < contract::kArenaCount; ++arena)
                if (executor.pool().arenaHighWater()[static_cast<std::size_t>(arena)] !=
                    extents[static_cast<std::size_t>(arena)])
                    return contract::runFailed(
                        "arena " + std::string(contract::arenaName(static_cast<contract::Arena>(arena))) + ": " +
                        std::to_string(executor.pool().arenaHighWater()[static_cast<std::size_t>(arena)]) +
                        " handed out of " + std::to_string(extents[static_cast<std::size_t>(arena)]));
            for (int i = 0; i < contract::kCategoryCount; ++i)
                if (const auto category = static_cast<contract::Category>(i);
                    executor.pool().highWater()[category] != ledger[category])
                    return contract::runFailed("category " + std::string(contract::categoryName(category)));
            return {};
        });
    QVERIFY2(done, done ? "" : done.error().message.c_str());
}

void MemoryTest::laterStepsAllocateNothing_data() {
    QTest::addColumn<bool>("coalesce");
    QTest::addColumn<QString>("family");
    QTest::newRow("one operator at a time") << false << "gpt2";
    QTest::newRow("coalesced") << true << "gpt2";
    QTest::newRow("llama") << true << "llama";
}

void MemoryTest::laterStepsAllocateNothing() {
    if (!kCountsAllocations)
        QSKIP("a sanitizer's allocator cannot be counted");
    QFETCH(const bool, coalesce);
    QFETCH(const QString, family);
    PlanRecipe recipe = mixedRecipe(2, true);
    if (family != "gpt2")
        recipe.architecture = testing::oddLlama(family.toStdString());
    recipe.coalesce = coalesce;
    if (coalesce)
        recipe.placement = [](int index, const std::string&) {
            static const char* const kTurns[] = {"shard", "keep", "keep-held"};
            return std::string(kTurns[index % 3]);
        };
    // Two ranks as threads: compute and communication threads of both, their BLAS and their Gloo.
    long allocated = -1;
    std::atomic<int> arrived{0};
    const auto meet = [&arrived](int target) {
        ++arrived;
        while (arrived < target)
            std::this_thread::yield();
    };
    const auto done =
        testing::runRanks(testing::makePlan(recipe), 1,
                          [&](engine::Executor& executor, const engine::PlanSetup&) -> contract::Result<void> {
                              if (auto ran = executor.runStep(1, 6, false, false); !ran)
                                  return tl::unexpected(ran.error());
                              meet(2);
                              const long before = allocations;
                              meet(4);
                              for (int step = 2; step <= 6; ++step)
                                  if (auto ran = executor.runStep(step, 6, false, step == 4); !ran)
                                      return tl::unexpected(ran.error());
                              meet(6);
                              if (executor.rank() == 0)
                                  allocated = allocations - before;
                              meet(8);
                              return {};
                          });
    QVERIFY2(done, done ? "" : done.error().message.c_str());
    QVERIFY(allocations > 1000); // the counter counts
    QCOMPARE(allocated, 0L);
}

void MemoryTest::aShrunkBufferIsNamed_data() {
    QTest::addColumn<QString>("buffer");
    for (const char* name : {"h.0.attn.c_attn.output", "wte.weight.0", "h.1.ln_2.weight.moment1", "slot.1.unreduced",
                             "live.wide_gradient", "logits", "targets", "collective"})
        QTest::newRow(name) << name;
}

void MemoryTest::aShrunkBufferIsNamed() {
    QFETCH(const QString, buffer);
    contract::Plan plan = testing::makePlan(mixedRecipe(2, false));
    bool found = false;
    for (contract::Buffer& row : plan.buffers.buffers)
        if (row.name == buffer.toStdString()) {
            row.bytes -= contract::kBufferAlignment;
            found = true;
        }
    QVERIFY(found);
    const auto setup = engine::preparePlan(plan, {});
    QVERIFY(!setup);
    QCOMPARE(setup.error().kind, contract::ErrorKind::BadInput);
    QVERIFY2(setup.error().message.find("\"" + buffer.toStdString() + "\"") != std::string::npos,
             setup.error().message.c_str());
}

void MemoryTest::overlappingBuffersAreNamed() {
    contract::Plan plan = testing::makePlan(mixedRecipe(2, false));
    for (contract::Buffer& row : plan.buffers.buffers)
        if (row.name == "targets")
            row.offset = 0;
    const auto setup = engine::preparePlan(plan, {});
    QVERIFY(!setup);
    QVERIFY2(setup.error().message.find("overlaps") != std::string::npos, setup.error().message.c_str());
}

/// Operators with smaller weights and larger gradients use a slot across the border of its two buffers.
void MemoryTest::aTornSlotIsNamed() {
    contract::Plan plan = testing::makePlan(mixedRecipe(2, false));
    std::int64_t end = 0;
    for (const contract::Buffer& row : plan.buffers.buffers)
        if (row.arena == contract::Arena::Slots)
            end = std::max(end, row.offset + row.bytes);
    for (contract::Buffer& row : plan.buffers.buffers)
        if (row.name == "slot.0.unreduced")
            row.offset = end;
    const auto setup = engine::preparePlan(plan, {});
    QVERIFY(!setup);
    QVERIFY2(setup.error().message.find("\"slot.0.unreduced\"") != std::string::npos, setup.error().message.c_str());
}

QTEST_GUILESS_MAIN(MemoryTest)
#include "tst_memory.moc"
