// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/device/Device.h"
#include "runtime/device/Nvml.h"
#include "runtime/device/cuda/CudaKernels.h"
#include "runtime/device/cuda/Matmul.h"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace shardscope::engine::cuda {

/// What watches collectives while the host waits for the device.
class CollectiveWatch {
public:
    virtual ~CollectiveWatch() = default;
    /// Errors: RunFailed when a peer is gone; the collectives have been given up then, so that the wait ends.
    virtual contract::Result<void> check() = 0;
};

/// One GPU of this machine, with a stream to compute on and one to communicate on.
class CudaDevice final : public Device {
public:
    static contract::Result<std::unique_ptr<Device>> open(int ordinal, std::string name, double timeoutSeconds);
    ~CudaDevice() override;

    /// The GPU, and how attention is computed.
    std::string name() const override {
        return m_name + (m_attention ? ", attention by cuDNN" : ", attention by our own kernel: " + m_whyNoCudnn);
    }
    Kernels& kernels() override { return *m_kernels; }
    bool isHostMemory() const override { return false; }
    contract::Result<std::byte*> allocate(std::int64_t bytes, std::string_view what) override;
    void release(std::byte* memory, std::int64_t bytes) override;
    std::int64_t contextBytes() const override;
    std::function<contract::DeviceEvent()> statusReader() const override;
    void upload(Elements to, const float* from, std::int64_t count) override { copyIn(m_compute, to, from, count); }
    void download(float* to, ConstElements from, std::int64_t count) override { copyOut(m_compute, to, from, count); }
    void uploadBytes(void* to, const void* from, std::int64_t bytes) override;
    void clearBytes(std::byte* memory, std::int64_t bytes) override;
    void jobFollowsCompute(Job job) override;
    void jobBegins(Job job) override;
    void jobEnds(Job job) override;
    void computeFollowsJob(Job job) override;
    contract::Result<void> synchronize() override;
    double takeStalledSeconds() override;
    void copyOnLane(Elements to, ConstElements from, std::int64_t count) override;
    void addOnLane(Elements into, ConstElements from, std::int64_t count) override;
    void uploadOnLane(Elements to, const float* from, std::int64_t count) override { copyIn(m_lane, to, from, count); }
    void downloadOnLane(float* to, ConstElements from, std::int64_t count) override {
        copyOut(m_lane, to, from, count);
    }
    contract::Result<std::unique_ptr<Collectives>> connect(Group& group, const RingMembers& members,
                                                           std::string& why) override;

    cudaStream_t laneStream() const { return m_lane; }
    /// Makes this the calling thread's device.
    void use();
    /// Remembers the first failure.
    void fail(const contract::Error& error);
    void watch(CollectiveWatch* collectives);
    void unwatch(CollectiveWatch* collectives);

private:
    CudaDevice(int ordinal, std::string name, std::string pciAddress, double timeoutSeconds);
    contract::Result<void> start();
    bool check(cudaError_t status, const char* what);
    void copyIn(cudaStream_t stream, Elements to, const float* from, std::int64_t count);
    void copyOut(cudaStream_t stream, float* to, ConstElements from, std::int64_t count);
    contract::Result<std::byte*> allocateRaw(std::int64_t bytes);

    /// More than the jobs that can be on their way (Lane's capacity and the one being handed over).
    static constexpr std::size_t kEvents = 2048;
    static std::size_t slotOf(Job job) { return job % kEvents; }

    int m_ordinal;
    std::string m_name;
    std::string m_pciAddress;
    double m_timeoutSeconds;
    Nvml m_nvml;
    std::optional<std::int64_t> m_usedBefore; ///< by everybody, before this process had a context
    std::int64_t m_arenaBytes = 0;
    cudaStream_t m_compute = nullptr;
    cudaStream_t m_lane = nullptr;
    cudaEvent_t m_reached = nullptr;
    std::vector<cudaEvent_t> m_computed; ///< by job: what it follows
    std::vector<cudaEvent_t> m_done;     ///< by job
    struct Stall {
        cudaEvent_t begin = nullptr, end = nullptr;
    };
    std::vector<Stall> m_stalls; ///< waits of the compute stream since they were last taken
    std::size_t m_stallCount = 0;
    Job m_followed = 0;
    /// Host memory from which copies do not wait, used in turn.
    struct Pinned {
        void* memory = nullptr;
        std::int64_t bytes = 0;
        cudaEvent_t copied = nullptr;
    };
    std::array<Pinned, 8> m_pinned;
    std::size_t m_nextPinned = 0;
    std::vector<std::byte*> m_own; ///< beside the arenas: workspace, sums, tables
    std::unique_ptr<Matmul> m_matmul;
    std::unique_ptr<CudnnAttention> m_attention; ///< null where there is none
    std::string m_whyNoCudnn;
    std::unique_ptr<Kernels> m_kernels;
    std::mutex m_mutex;
    std::optional<contract::Error> m_failure;
    std::vector<CollectiveWatch*> m_watched;
};

} // namespace shardscope::engine::cuda
