// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/collective/Ring.h"
#include "runtime/device/Elements.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace shardscope::engine {

class Device;

/// One tensor of a collective, in the memory of a device.
struct CollectiveTensor {
    Elements whole;
    Chunks chunks;
};

/// Collectives of the members of a ring over device memory, called from the communication thread inside a job. Several
/// tensors are one collective. All tensors of a call are of one type. After create() nothing is allocated but by the
/// first call of each size.
class Collectives {
public:
    virtual ~Collectives() = default;

    /// "gloo", "gloo through the host", "nccl".
    virtual const char* name() const = 0;
    /// See the functions of the same name of Ring.
    virtual contract::Result<void> allGather(std::span<const CollectiveTensor> tensors) = 0;
    virtual contract::Result<void> reduceScatter(std::span<const CollectiveTensor> tensors) = 0;
    virtual contract::Result<void> allReduce(std::span<const CollectiveTensor> tensors) = 0;
};

/// A ring over memory that the host can address and that is registered with the ring.
class RingCollectives final : public Collectives {
public:
    explicit RingCollectives(Ring& ring) : m_ring(ring) {}
    const char* name() const override { return "gloo"; }
    contract::Result<void> allGather(std::span<const CollectiveTensor> tensors) override;
    contract::Result<void> reduceScatter(std::span<const CollectiveTensor> tensors) override;
    contract::Result<void> allReduce(std::span<const CollectiveTensor> tensors) override;

private:
    std::span<const RingTensor> floats(std::span<const CollectiveTensor> tensors);
    Ring& m_ring;
    std::vector<RingTensor> m_tensors;
};

/// A ring over a piece of host memory through which device memory is copied piece by piece, as float32: sums are exact
/// to float32 and rounded once. For ranks that share a GPU, or have no library of collectives.
class StagedCollectives final : public Collectives {
public:
    /// `staging` is registered with the ring.
    StagedCollectives(Device& device, Ring& ring, MemoryRegion staging)
        : m_device(device), m_ring(ring), m_staging(staging) {}
    const char* name() const override { return "gloo through the host"; }
    contract::Result<void> allGather(std::span<const CollectiveTensor> tensors) override;
    contract::Result<void> reduceScatter(std::span<const CollectiveTensor> tensors) override;
    contract::Result<void> allReduce(std::span<const CollectiveTensor> tensors) override;

    static constexpr std::int64_t kStagingBytes = 8 << 20;

private:
    enum class Work { Gather, Scatter, Reduce };
    contract::Result<void> run(std::span<const CollectiveTensor> tensors, Work work);
    contract::Result<void> runPiece(const CollectiveTensor& tensor, std::int64_t at, std::int64_t length, Work work);

    Device& m_device;
    Ring& m_ring;
    MemoryRegion m_staging;
};

} // namespace shardscope::engine
