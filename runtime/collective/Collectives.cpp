// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/collective/Collectives.h"

#include "runtime/device/Device.h"

#include <algorithm>

namespace shardscope::engine {

std::span<const RingTensor> RingCollectives::floats(std::span<const CollectiveTensor> tensors) {
    m_tensors.clear(); // keeps its room
    for (const CollectiveTensor& tensor : tensors)
        m_tensors.push_back({tensor.whole.floats(), tensor.chunks});
    return m_tensors;
}

contract::Result<void> RingCollectives::allGather(std::span<const CollectiveTensor> tensors) {
    return m_ring.allGather(floats(tensors));
}
contract::Result<void> RingCollectives::reduceScatter(std::span<const CollectiveTensor> tensors) {
    return m_ring.reduceScatter(floats(tensors));
}
contract::Result<void> RingCollectives::allReduce(std::span<const CollectiveTensor> tensors) {
    return m_ring.allReduce(floats(tensors));
}

contract::Result<void> StagedCollectives::allGather(std::span<const CollectiveTensor> tensors) {
    return run(tensors, Work::Gather);
}
contract::Result<void> StagedCollectives::reduceScatter(std::span<const CollectiveTensor> tensors) {
    return run(tensors, Work::Scatter);
}
contract::Result<void> StagedCollectives::allReduce(std::span<const CollectiveTensor> tensors) {
    return run(tensors, Work::Reduce);
}

/// Stretches [at, at + length) of every rank's chunk travel together, so that a piece of the staging memory is laid out
/// as a whole tensor with shorter chunks.
contract::Result<void> StagedCollectives::run(std::span<const CollectiveTensor> tensors, Work work) {
    if (m_ring.size() == 1)
        return {};
    const std::int64_t capacity = m_staging.bytes / static_cast<std::int64_t>(sizeof(float)) / m_ring.size();
    for (const CollectiveTensor& tensor : tensors)
        for (std::int64_t at = 0; at < tensor.chunks.chunk; at += capacity)
            if (auto done = runPiece(tensor, at, std::min(capacity, tensor.chunks.chunk - at), work); !done)
                return done;
    return {};
}

contract::Result<void> StagedCollectives::runPiece(const CollectiveTensor& tensor, std::int64_t at, std::int64_t length,
                                                   Work work) {
    auto* const staging = reinterpret_cast<float*>(m_staging.base);
    const Chunks staged{length * m_ring.size(), length};
    // The last chunks may be short or empty; what is missing of them travels as zeros.
    const auto valid = [&](int rank) { return std::clamp<std::int64_t>(tensor.chunks.count(rank) - at, 0, length); };
    const auto source = [&](int rank) { return tensor.whole + (tensor.chunks.begin(rank) + at); };
    const auto isMine = [&](int rank) { return rank == m_ring.rank(); };
    for (int rank = 0; rank < m_ring.size(); ++rank) {
        if (work == Work::Gather && !isMine(rank))
            continue;
        float* const place = staging + rank * length;
        if (valid(rank) > 0)
            m_device.downloadOnLane(place, source(rank), valid(rank));
        std::fill(place + valid(rank), place + length, 0.0F);
    }
    const auto done = work == Work::Gather    ? m_ring.allGather(staging, staged)
                      : work == Work::Scatter ? m_ring.reduceScatter(staging, staged)
                                              : m_ring.allReduce(staging, staged.elements);
    if (!done)
        return done;
    for (int rank = 0; rank < m_ring.size(); ++rank) {
        const bool arrived = work == Work::Gather ? !isMine(rank) : work == Work::Reduce || isMine(rank);
        if (arrived && valid(rank) > 0)
            m_device.uploadOnLane(source(rank), staging + rank * length, valid(rank));
    }
    return {};
}

} // namespace shardscope::engine
