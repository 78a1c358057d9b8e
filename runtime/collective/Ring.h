// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/collective/Group.h"
#include "runtime/contract/Result.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace gloo::transport {
class Buffer;
}

namespace shardscope::engine {

struct MemoryRegion {
    std::byte* base = nullptr;
    std::int64_t bytes = 0;
};

/// `elements` floats cut into one chunk per rank: rank r's is [r * chunk, (r + 1) * chunk), cut off at `elements`.
struct Chunks {
    std::int64_t elements = 0;
    std::int64_t chunk = 0;

    std::int64_t begin(int rank) const { return std::min(elements, rank * chunk); }
    std::int64_t count(int rank) const { return std::min(elements, (rank + 1) * chunk) - begin(rank); }
};

/// The ranks of a group that form a ring, in its order, and this rank's place among them. A rank may be in several
/// rings; they are told apart by their ids.
struct RingMembers {
    std::vector<int> ranks; ///< of the group
    int index = 0;
    int id = 0;

    static RingMembers everybody(const Group& group);
    /// The `size` consecutive ranks that this one is among: a node's.
    static RingMembers inside(const Group& group, int size);
    /// The ranks with this one's place in each run of `size`: one of every node.
    static RingMembers across(const Group& group, int size);
};

/// One tensor of a collective.
struct RingTensor {
    float* whole = nullptr;
    Chunks chunks;
};

/// Ring collectives over Gloo's bound buffers: all-gather, reduce-scatter and all-reduce of floats, with an order of
/// additions that depends on nothing but the number of ranks.
///
/// Messages are written straight into the next rank's memory at the same place as in one's own ("symmetric" regions),
/// so all ranks must register regions of equal layout and call the same collectives in the same order, from one thread.
/// Nothing is allocated after create().
class Ring {
public:
    /// `scratch` takes received pieces before they are added; the rings of a rank may share it. All ranks of the group
    /// create their rings in the same order of ids. Errors: RunFailed.
    static contract::Result<std::unique_ptr<Ring>> create(Group& group, RingMembers members,
                                                          std::vector<MemoryRegion> regions, MemoryRegion scratch);
    ~Ring();

    /// This rank's place in the ring, and the number of places.
    int rank() const { return m_members.index; }
    int size() const { return static_cast<int>(m_members.ranks.size()); }

    /// The collectives of several tensors pay a ring's latency once: in every ring step the pieces of all of them are
    /// on the way together. Results are bit for bit those of one collective per tensor.
    ///
    /// Every rank's chunk of each tensor, which it already holds, reaches every other rank.
    contract::Result<void> allGather(std::span<const RingTensor> tensors);
    /// This rank's chunk of each tensor becomes the sum over the ranks; the other chunks are used up.
    contract::Result<void> reduceScatter(std::span<const RingTensor> tensors);
    /// Each tensor becomes the sum over the ranks, bit for bit the same on each.
    contract::Result<void> allReduce(std::span<const RingTensor> tensors);

    contract::Result<void> allGather(float* whole, Chunks chunks);
    contract::Result<void> reduceScatter(float* whole, Chunks chunks);
    contract::Result<void> allReduce(float* whole, std::int64_t elements);
    /// The chunks into which an all-reduce cuts a tensor.
    Chunks evenChunks(std::int64_t elements) const { return {elements, (elements + size() - 1) / size()}; }
    /// Sums up to kMaximumScalars doubles in the order of the ranks.
    contract::Result<void> sumScalars(double* values, int count);
    /// Copies `count` floats from each rank to every rank: `gathered` (size, count) points into the scratch and is
    /// valid until the next call. count <= pieceCapacity().
    contract::Result<const float*> gatherPieces(const float* piece, std::int64_t count);
    std::int64_t pieceCapacity() const;
    /// Rank 0 tells the others whether to go on waiting; true while it is not done. For work that only rank 0 does and
    /// that may take longer than a collective's timeout.
    contract::Result<bool> stillWaiting(bool rankZeroIsBusy);

    static constexpr int kMaximumScalars = 16;

private:
    Ring(Group& group, RingMembers members, std::vector<MemoryRegion> regions, MemoryRegion scratch);
    /// Ranks of the group.
    int next() const { return m_members.ranks[static_cast<std::size_t>((rank() + 1) % size())]; }
    int previous() const { return m_members.ranks[static_cast<std::size_t>((rank() + size() - 1) % size())]; }
    contract::Result<void> bind();
    contract::Result<void> warmUp();
    struct Place {
        std::size_t region = 0;
        std::int64_t offset = 0;
    };
    Place place(const float* address) const;
    contract::Error describe(const char* what) const;
    /// Where a message lands at its receiver: at the place it has at the sender, or in the scratch to be added.
    enum class Target { SamePlace, Scratch };
    class PieceWalk;
    /// One ring step: sends the chunks of rank `sent` of all tensors to the next rank while those of rank `received`
    /// arrive from the previous one.
    void exchange(std::span<const RingTensor> tensors, int sent, int received, Target target);
    void sendWindow(PieceWalk& pieces, Target target);
    void receiveWindow(PieceWalk& pieces, Target target);
    void sendPiece(const float* from, std::int64_t count, Target target, std::int64_t scratchAt);
    void receivePiece(std::size_t region);
    float* scratchFloats() const;

    Group& m_group;
    RingMembers m_members;
    std::vector<MemoryRegion> m_regions; ///< the last one is the scratch
    std::vector<std::unique_ptr<gloo::transport::Buffer>> m_toNext;
    std::vector<std::unique_ptr<gloo::transport::Buffer>> m_toScratch;
    std::vector<std::unique_ptr<gloo::transport::Buffer>> m_fromPrevious;
    bool m_sending = false; ///< which neighbour an exception is about
};

} // namespace shardscope::engine
