// SPDX-License-Identifier: GPL-3.0-or-later
// A GPU's stand-in: the shared kernels run by loops, memory that only the device may touch, and streams whose order is
// checked. The engine's orchestration for bf16 and for devices runs over it on any machine.
#pragma once

#include "runtime/device/Device.h"
#include "runtime/ops/shared/SharedKernels.h"

#include <atomic>
#include <barrier>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace shardscope::testing {

/// Runs one thing after the other.
struct LoopLauncher {
    using RowTeam = engine::shared::SoloTeam;
    using WarpTeam = engine::shared::SoloTeam;
    using ColumnTeam = engine::shared::SoloTeam;

    template<typename F> void rows(std::int64_t n, F f) const {
        for (std::int64_t i = 0; i < n; ++i)
            f(RowTeam{}, i);
    }
    template<typename F> void warps(std::int64_t n, F f) const { rows(n, f); }
    template<typename F> void columns(std::int64_t n, F f) const { rows(n, f); }
    template<typename F> void matrix(std::int64_t rowCount, std::int64_t columnCount, F f) const {
        for (std::int64_t r = 0; r < rowCount; ++r)
            for (std::int64_t c = 0; c < columnCount; ++c)
                f(r, c);
    }
};

/// A team of threads in lock step, so that strides, reductions and hand-overs between members are exercised.
struct ThreadTeam {
    static constexpr int kMembers = 4;
    static constexpr int kHeadDimsPerMember = 256 / kMembers;
    struct Shared {
        std::barrier<> barrier{kMembers};
        double values[kMembers] = {};
    };
    Shared* shared = nullptr;
    int member = 0;

    int rank() const { return member; }
    int size() const { return kMembers; }
    template<typename T, typename Fold> T all(T value, Fold fold) const {
        shared->values[member] = static_cast<double>(value);
        shared->barrier.arrive_and_wait();
        auto result = static_cast<T>(shared->values[0]);
        for (int i = 1; i < kMembers; ++i)
            result = fold(result, static_cast<T>(shared->values[i]));
        shared->barrier.arrive_and_wait();
        return result;
    }
    float sum(float value) const {
        return all(value, [](float a, float b) { return a + b; });
    }
    double sum(double value) const {
        return all(value, [](double a, double b) { return a + b; });
    }
    float maximum(float value) const {
        return all(value, [](float a, float b) { return a > b ? a : b; });
    }
    float from(float value, int source) const {
        shared->values[member] = static_cast<double>(value);
        shared->barrier.arrive_and_wait();
        const auto result = static_cast<float>(shared->values[source]);
        shared->barrier.arrive_and_wait();
        return result;
    }
};
struct ThreadLauncher {
    using RowTeam = ThreadTeam;
    using WarpTeam = ThreadTeam;
    using ColumnTeam = ThreadTeam;

    template<typename F> void rows(std::int64_t n, F f) const {
        ThreadTeam::Shared shared;
        std::vector<std::thread> threads;
        for (int member = 0; member < ThreadTeam::kMembers; ++member)
            threads.emplace_back([&, member] {
                for (std::int64_t i = 0; i < n; ++i)
                    f(ThreadTeam{&shared, member}, i);
            });
        for (std::thread& thread : threads)
            thread.join();
    }
    template<typename F> void warps(std::int64_t n, F f) const { rows(n, f); }
    template<typename F> void columns(std::int64_t n, F f) const { rows(n, f); }
    template<typename F> void matrix(std::int64_t rowCount, std::int64_t columnCount, F f) const {
        LoopLauncher{}.matrix(rowCount, columnCount, f);
    }
};

/// The shared kernels, and matrix products by loops with float64 sums.
template<typename Launcher> class PortableKernels final : public engine::shared::SharedKernels<Launcher> {
    using Base = engine::shared::SharedKernels<Launcher>;
    using In = engine::ConstElementMatrix;
    using Out = engine::ElementMatrix;

public:
    PortableKernels() : Base(Launcher{}), m_partialSums(engine::shared::kPartialSums) {
        this->m_sums = m_ownSums;
        this->m_partials = m_partialSums.data();
    }

    void linearForward(In x, engine::ConstElements weight, engine::ConstElements bias, In residual, Out y) override {
        each(y.rows, y.columns, [&](std::int64_t t, std::int64_t o) {
            double sum = bias ? read(bias, o) : 0.0;
            if (residual.data)
                sum += read(residual.data, t * residual.stride + o);
            for (std::int64_t i = 0; i < x.columns; ++i)
                sum += read(x.data, t * x.stride + i) * read(weight, o * x.columns + i);
            put(y.data, t * y.stride + o, sum, engine::Write::Overwrite);
        });
    }
    void linearGeluForward(In x, engine::ConstElements weight, engine::ConstElements bias, Out before, Out y) override {
        linearForward(x, weight, bias, {}, before);
        const In from{before.data, before.rows, before.columns, before.stride};
        engine::shared::byType(x.data.type, [&](auto e) { this->template geluForward<decltype(e)>(from, y); });
    }
    void linearBackwardInput(In dy, engine::ConstElements weight, Out dx, engine::Write write) override {
        each(dx.rows, dx.columns, [&](std::int64_t t, std::int64_t i) {
            double sum = 0;
            for (std::int64_t o = 0; o < dy.columns; ++o)
                sum += read(dy.data, t * dy.stride + o) * read(weight, o * dx.columns + i);
            put(dx.data, t * dx.stride + i, sum, write);
        });
    }
    void linearBackwardWeight(In dy, In x, engine::Elements gradient, engine::Write write) override {
        each(dy.columns, x.columns, [&](std::int64_t o, std::int64_t i) {
            double sum = 0;
            for (std::int64_t t = 0; t < dy.rows; ++t)
                sum += read(dy.data, t * dy.stride + o) * read(x.data, t * x.stride + i);
            put(gradient, o * x.columns + i, sum, write);
        });
    }
    void prepareRotary(const engine::Rotary& rotary, std::int64_t sequence) override {
        m_table = engine::shared::rotaryTable(rotary, sequence);
        this->m_rotaryTable = m_table.data();
    }

    static double read(engine::ConstElements from, std::int64_t i) {
        using namespace engine::shared;
        return from.type == engine::ElementType::BFloat16 ? static_cast<double>(load(as<BFloat16>(from) + i))
                                                          : static_cast<double>(load(as<float>(from) + i));
    }
    static void put(engine::Elements to, std::int64_t i, double value, engine::Write writes) {
        using namespace engine::shared;
        const bool add = writes == engine::Write::Add;
        if (to.type == engine::ElementType::BFloat16)
            write(as<BFloat16>(to) + i, static_cast<float>(value), add);
        else
            write(as<float>(to) + i, static_cast<float>(value), add);
    }

protected:
    contract::Result<engine::shared::DeviceSums> fetch(const engine::shared::DeviceSums* sums) override {
        return *sums;
    }

private:
    template<typename F> static void each(std::int64_t rows, std::int64_t columns, F f) {
        LoopLauncher{}.matrix(rows, columns, f);
    }
    engine::shared::DeviceSums m_ownSums[2] = {};
    std::vector<double> m_partialSums;
    std::vector<float> m_table;
};

/// See the top. Every rule that a caller breaks is noted in violations().
class PortableDevice final : public engine::Device {
public:
    explicit PortableDevice(std::vector<std::string>& violations) : m_violations(violations) {}

    std::string name() const override { return "a device of loops"; }
    engine::Kernels& kernels() override { return m_kernels; }
    bool isHostMemory() const override { return false; }
    contract::Result<std::byte*> allocate(std::int64_t bytes, std::string_view what) override;
    void release(std::byte* memory, std::int64_t bytes) override;
    void upload(engine::Elements to, const float* from, std::int64_t count) override;
    void download(float* to, engine::ConstElements from, std::int64_t count) override;
    void uploadBytes(void* to, const void* from, std::int64_t bytes) override;
    void clearBytes(std::byte* memory, std::int64_t bytes) override;
    void jobFollowsCompute(Job job) override;
    void jobBegins(Job job) override;
    void jobEnds(Job job) override;
    void computeFollowsJob(Job job) override;
    void copyOnLane(engine::Elements to, engine::ConstElements from, std::int64_t count) override;
    void addOnLane(engine::Elements into, engine::ConstElements from, std::int64_t count) override;
    void uploadOnLane(engine::Elements to, const float* from, std::int64_t count) override;
    void downloadOnLane(float* to, engine::ConstElements from, std::int64_t count) override;

private:
    void require(bool holds, const char* rule);
    void checkInside(const std::byte* at, std::int64_t bytes);

    std::vector<std::string>& m_violations;
    static inline std::mutex m_mutex; ///< the devices of several ranks note in one place
    std::map<const std::byte*, std::int64_t> m_memory;
    PortableKernels<LoopLauncher> m_kernels;
    Job m_announced = 0;
    Job m_begun = 0;
    std::atomic<Job> m_ended{0};
};

} // namespace shardscope::testing
