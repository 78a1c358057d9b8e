// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/support/TrainingFixture.h"
#include "runtime/contract/Bytes.h"
#include "runtime/memory/BufferPool.h"
#include "support/Sanitized.h"

#include <QtTest/QtTest>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

// Every allocation of this process is counted, whoever makes it: our threads, Gloo, BLAS. Sanitizers bring allocators
// of their own, which cannot be replaced.
#ifdef SHARDSCOPE_SANITIZED
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

contract::Architecture gpt2Small() {
    contract::Architecture a = testing::oddGpt2();
    a.layers = 12;
    a.hidden = 768;
    a.heads = a.kvHeads = 12;
    a.headDim = 64;
    a.intermediate = 3072;
    a.vocabulary = 50257;
    a.positions = 1024;
    return a;
}

/// Free space between the buffers of a table, filled with a pattern that nothing may change.
class RedZones {
public:
    /// Moves the buffers of a plan apart. A slot's two buffers stay together: they are one piece of memory.
    static constexpr std::int64_t kBytes = 4096;
    static void insert(contract::Plan& plan) {
        std::vector<contract::Buffer*> rows;
        for (contract::Buffer& row : plan.buffers.buffers)
            rows.push_back(&row);
        std::sort(rows.begin(), rows.end(), [](const contract::Buffer* a, const contract::Buffer* b) {
            return std::tie(a->arena, a->offset) < std::tie(b->arena, b->offset);
        });
        std::int64_t shift = 0;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const bool first = i == 0 || rows[i - 1]->arena != rows[i]->arena;
            shift = first ? kBytes : shift;
            if (!first && !(rows[i - 1]->name.ends_with(".gathered") && rows[i]->name.ends_with(".unreduced")))
                shift += kBytes;
            rows[i]->offset += shift;
        }
    }
    /// The zones of an executor's memory, filled.
    explicit RedZones(engine::Executor& executor, const contract::BufferTable& table) {
        for (const contract::Buffer& row : table.buffers) {
            std::byte* const begin = executor.pool().arenas().base(row.arena) + row.offset;
            const bool secondOfSlot = row.name.ends_with(".unreduced") &&
                                      std::any_of(table.buffers.begin(), table.buffers.end(), [&](const auto& other) {
                                          return other.name == row.name.substr(0, row.name.rfind('.')) + ".gathered";
                                      });
            if (!secondOfSlot)
                // Gradients are cleared as one piece of memory at the start of a step, what lies between them too.
                m_zones.push_back({row.name, begin - kBytes,
                                   row.arena == contract::Arena::Gradients ? std::byte{0} : std::byte{0xA5}});
        }
        for (const Zone& zone : m_zones)
            std::memset(zone.begin, static_cast<int>(zone.pattern), kBytes);
    }
    std::size_t count() const { return m_zones.size(); }
    /// The buffer behind the first zone that was changed; empty when none was.
    std::string firstTorn() const {
        for (const Zone& zone : m_zones)
            for (std::int64_t i = 0; i < kBytes; ++i)
                if (zone.begin[i] != zone.pattern)
                    return zone.before;
        return {};
    }

private:
    struct Zone {
        std::string before;
        std::byte* begin;
        std::byte pattern;
    };
    std::vector<Zone> m_zones;
};

} // namespace

/// With SHARDSCOPE_LARGE set, GPT-2 of 124 M parameters is among the networks.
class MemoryTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void highWaterIsTheTable_data() { addPlans(); }
    void highWaterIsTheTable();
    void redZonesStayIntact_data() { addPlans(); }
    void redZonesStayIntact();
    void laterStepsAllocateNothing_data() { addPlans(); }
    void laterStepsAllocateNothing();
    void aShrunkBufferIsNamed_data();
    void aShrunkBufferIsNamed();
    void overlappingBuffersAreNamed();
    void aTornSlotIsNamed();

private:
    static void addPlans();
    static PlanRecipe recipeOfRow();
};

void MemoryTest::addPlans() {
    QTest::addColumn<QString>("placement");
    QTest::addColumn<int>("ranks");
    QTest::addColumn<bool>("recompute");
    QTest::addColumn<QString>("family");
    for (const char* family : {"gpt2", "llama"})
        for (const char* placement : {"replicate, chunked", "shard, chunked", "mixed, chunked"})
            for (const int ranks : {1, 3})
                QTest::addRow("%s, %s, %d ranks", family, placement, ranks)
                    << placement << ranks << (ranks == 1) << family;
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
    if (!qEnvironmentVariableIsSet("SHARDSCOPE_LARGE"))
        return;
    for (const char* placement : {"replicate", "keep", "keep-held", "shard", "shard:4", "shard:4:2", "mixed",
                                  "coalesced shard", "coalesced keep", "coalesced shard and keep"})
        QTest::addRow("124 M, %s", placement) << placement << 2 << (qstrcmp(placement, "mixed") == 0) << "gpt2-124m";
}

PlanRecipe MemoryTest::recipeOfRow() {
    QFETCH(QString, placement);
    QFETCH(const int, ranks);
    QFETCH(const bool, recompute);
    QFETCH(const QString, family);
    PlanRecipe recipe = mixedRecipe(ranks, recompute);
    if (const QString chunked = ", chunked"; placement.endsWith(chunked)) {
        recipe.lossChunks = 5; // of 9 of the 44 tokens, the last of 8
        placement.chop(chunked.size());
    }
    if (family == "gpt2-124m")
        recipe.architecture = gpt2Small();
    else if (family != "gpt2")
        recipe.architecture = testing::oddLlama(family.toStdString());
    recipe.coalesce = placement.startsWith("coalesced");
    if (placement == "coalesced shard and keep")
        recipe.placement = [](int index, const std::string&) { return std::string(index % 2 == 0 ? "shard" : "keep"); };
    else if (placement != "mixed")
        recipe.placement = [text = placement.section(' ', -1).toStdString()](int, const std::string&) { return text; };
    return recipe;
}

void MemoryTest::highWaterIsTheTable() {
    const contract::Plan plan = testing::makePlan(recipeOfRow());
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

/// Nothing is written beside its buffer, in steps and in an evaluation.
void MemoryTest::redZonesStayIntact() {
    contract::Plan plan = testing::makePlan(recipeOfRow());
    RedZones::insert(plan);
    std::atomic<std::size_t> zones{0};
    const auto done = testing::runRanks(
        plan, 1, [&](engine::Executor& executor, const engine::PlanSetup& setup) -> contract::Result<void> {
            const RedZones red(executor, setup.table);
            zones += red.count();
            for (int step = 1; step <= 3; ++step) {
                if (auto ran = executor.runStep(step, 3, false, false); !ran)
                    return tl::unexpected(ran.error());
                if (const std::string torn = red.firstTorn(); !torn.empty())
                    return contract::runFailed("step " + std::to_string(step) + " wrote before " + torn);
            }
            if (auto evaluated = executor.evaluate(4); !evaluated)
                return tl::unexpected(evaluated.error());
            if (const std::string torn = red.firstTorn(); !torn.empty())
                return contract::runFailed("the evaluation wrote before " + torn);
            *executor.pool().arenas().base(setup.table.buffers.front().arena) = std::byte{1}; // the check itself
            return red.firstTorn().empty() ? contract::runFailed("a changed byte was not seen")
                                           : contract::Result<void>();
        });
    QVERIFY2(done, done ? "" : done.error().message.c_str());
    QVERIFY2(zones > plan.buffers.buffers.size() / 2, qPrintable(QString::number(zones)));
}

void MemoryTest::laterStepsAllocateNothing() {
    if (!kCountsAllocations)
        QSKIP("a sanitizer's allocator cannot be counted");
    const PlanRecipe recipe = recipeOfRow();
    // Ranks as threads: compute and communication threads of all, their BLAS and their Gloo.
    const int ranks = static_cast<int>(recipe.ranks);
    long allocated = -1;
    std::atomic<int> arrived{0};
    const auto meet = [&arrived, ranks](int time) {
        ++arrived;
        while (arrived < time * ranks)
            std::this_thread::yield();
    };
    const auto done =
        testing::runRanks(testing::makePlan(recipe), 1,
                          [&](engine::Executor& executor, const engine::PlanSetup&) -> contract::Result<void> {
                              if (auto ran = executor.runStep(1, 6, false, false); !ran)
                                  return tl::unexpected(ran.error());
                              meet(1);
                              long before = -1; // the rendezvous' server sees late that its clients are done
                              while (before != allocations) {
                                  before = allocations;
                                  std::this_thread::sleep_for(std::chrono::milliseconds(20));
                              }
                              meet(2);
                              for (int step = 2; step <= 6; ++step)
                                  if (auto ran = executor.runStep(step, 6, false, step == 4); !ran)
                                      return tl::unexpected(ran.error());
                              meet(3);
                              if (executor.rank() == 0)
                                  allocated = allocations - before;
                              meet(4);
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
