// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/collective/Ring.h"

#include <fmt/format.h>
#include <gloo/context.h>
#include <gloo/transport/buffer.h>
#include <gloo/transport/pair.h>

#include <cstring>
#include <exception>
#include <string_view>
#include <utility>

namespace shardscope::engine {

namespace {

// Large enough that a message's cost is its bytes, small enough that two fit a socket's buffers and overlap.
constexpr std::int64_t kPieceFloats = 32 * 1024;
constexpr int kMaximumRegions = 16; // of one ring

void addTo(float* into, const float* from, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i)
        into[i] += from[i];
}

/// The text of the exception being handled.
std::string currentMessage() {
    try {
        throw;
    } catch (const std::exception& error) {
        return error.what();
    } catch (...) {
        return "unknown error";
    }
}

} // namespace

RingMembers RingMembers::everybody(const Group& group) {
    return inside(group, group.size());
}
RingMembers RingMembers::inside(const Group& group, int size) {
    RingMembers members{{}, group.rank() % size, size == group.size() ? 0 : 1};
    for (int i = 0; i < size; ++i)
        members.ranks.push_back(group.rank() - members.index + i);
    return members;
}
RingMembers RingMembers::across(const Group& group, int size) {
    RingMembers members{{}, group.rank() / size, 2};
    for (int rank = group.rank() % size; rank < group.size(); rank += size)
        members.ranks.push_back(rank);
    return members;
}

Ring::Ring(Group& group, RingMembers members, std::vector<MemoryRegion> regions, MemoryRegion scratch)
    : m_group(group), m_members(std::move(members)), m_regions(std::move(regions)) {
    m_regions.push_back(scratch);
}

Ring::~Ring() = default;

contract::Result<std::unique_ptr<Ring>> Ring::create(Group& group, RingMembers members,
                                                     std::vector<MemoryRegion> regions, MemoryRegion scratch) {
    std::unique_ptr<Ring> ring(new Ring(group, std::move(members), std::move(regions), scratch));
    if (ring->size() == 1)
        return ring;
    if (auto bound = ring->bind(); !bound)
        return tl::unexpected(bound.error());
    // A message for a buffer that its receiver has not registered yet would be lost.
    if (auto met = group.meet(fmt::format("ring/{}", ring->m_members.id)); !met)
        return tl::unexpected(met.error());
    if (auto warm = ring->warmUp(); !warm)
        return tl::unexpected(warm.error());
    return ring;
}

/// Gloo sizes a socket's send buffer by the first message that is larger than the buffer seems to be, and takes the
/// size that the kernel doubled for its own books at face value: after a small first message a piece does not fit, and
/// every write of one waits 40 ms for a delayed acknowledgement. So the largest message goes first.
contract::Result<void> Ring::warmUp() {
    const MemoryRegion& scratch = m_regions.back();
    const std::int64_t floats = std::min(kPieceFloats, scratch.bytes / static_cast<std::int64_t>(sizeof(float)));
    const RingTensor piece{scratchFloats(), {floats, floats}}; // all of it is the first rank's chunk
    try {
        exchange({&piece, 1}, 0, 0, Target::SamePlace);
    } catch (...) {
        return tl::unexpected(describe("first message"));
    }
    tuneSockets();
    return {};
}

contract::Result<void> Ring::bind() {
    try {
        auto& toNext = m_group.context()->getPair(next());
        auto& fromPrevious = m_group.context()->getPair(previous());
        // Gloo pairs what is sent with what is received by a number; two rings may run over the same connection.
        const int first = m_members.id * kMaximumRegions;
        const int scratch = first + static_cast<int>(m_regions.size()) - 1;
        for (std::size_t i = 0; i < m_regions.size(); ++i) {
            const auto bytes = static_cast<std::size_t>(m_regions[i].bytes);
            m_toNext.push_back(toNext->createSendBuffer(first + static_cast<int>(i), m_regions[i].base, bytes));
            m_toScratch.push_back(toNext->createSendBuffer(scratch, m_regions[i].base, bytes));
            m_fromPrevious.push_back(
                fromPrevious->createRecvBuffer(first + static_cast<int>(i), m_regions[i].base, bytes));
        }
    } catch (...) {
        return tl::unexpected(describe("binding buffers"));
    }
    return {};
}

contract::Error Ring::describe(const char* what) const {
    const std::string message = currentMessage();
    const int peer = m_sending ? next() : previous();
    std::string cause = message;
    if (message.find("timeout") != std::string::npos)
        cause = fmt::format("rank {} did not {} for {:.1f} s", peer, m_sending ? "receive" : "send",
                            static_cast<double>(m_group.timeout().count()) / 1000.0);
    else if (message.find("closed") != std::string::npos || message.find("reset") != std::string::npos ||
             message.find("roken pipe") != std::string::npos)
        cause = fmt::format("rank {} closed its connection", peer);
    return {contract::ErrorKind::RunFailed, fmt::format("{}: {}", what, cause)};
}

Ring::Place Ring::place(const float* address) const {
    const auto* bytes = reinterpret_cast<const std::byte*>(address);
    for (std::size_t i = 0; i < m_regions.size(); ++i)
        if (bytes >= m_regions[i].base && bytes < m_regions[i].base + m_regions[i].bytes)
            return {i, bytes - m_regions[i].base};
    return {m_regions.size() - 1, m_regions.back().bytes}; // out of bounds: Gloo's own check refuses it
}

float* Ring::scratchFloats() const {
    return reinterpret_cast<float*>(m_regions.back().base);
}
std::int64_t Ring::pieceCapacity() const {
    return size() == 1 ? kPieceFloats : m_regions.back().bytes / static_cast<std::int64_t>(sizeof(float)) / size();
}

/// The messages that carry one rank's chunks of all tensors, in the order in which they are sent.
class Ring::PieceWalk {
public:
    PieceWalk(std::span<const RingTensor> tensors, int rank) : m_tensors(tensors), m_rank(rank) { skipEmpty(); }

    bool isDone() const { return m_tensor == m_tensors.size(); }
    float* at() const { return m_tensors[m_tensor].whole + m_tensors[m_tensor].chunks.begin(m_rank) + m_offset; }
    std::int64_t count() const { return std::min(kPieceFloats, chunkCount() - m_offset); }
    /// Whether the current piece still belongs to a window of which `used` floats are taken.
    bool fits(std::int64_t used) const { return !isDone() && (used == 0 || used + count() <= kPieceFloats); }
    void advance() {
        m_offset += count();
        skipEmpty();
    }

private:
    std::int64_t chunkCount() const { return m_tensors[m_tensor].chunks.count(m_rank); }
    void skipEmpty() {
        while (!isDone() && m_offset >= chunkCount()) {
            ++m_tensor;
            m_offset = 0;
        }
    }

    std::span<const RingTensor> m_tensors;
    int m_rank;
    std::size_t m_tensor = 0;
    std::int64_t m_offset = 0; ///< floats of the chunk that are behind
};

void Ring::sendPiece(const float* from, std::int64_t count, Target target, std::int64_t scratchAt) {
    const Place source = place(from);
    m_sending = true;
    auto& buffers = target == Target::SamePlace ? m_toNext : m_toScratch;
    const std::int64_t landing =
        target == Target::SamePlace ? source.offset : scratchAt * static_cast<std::int64_t>(sizeof(float));
    buffers[source.region]->send(static_cast<std::size_t>(source.offset),
                                 static_cast<std::size_t>(count) * sizeof(float), static_cast<std::size_t>(landing));
}

void Ring::receivePiece(std::size_t region) {
    m_sending = false;
    m_fromPrevious[region]->waitRecv();
}

void Ring::sendWindow(PieceWalk& pieces, Target target) {
    for (std::int64_t used = 0; pieces.fits(used);) {
        const std::int64_t count = pieces.count();
        sendPiece(pieces.at(), count, target, used);
        used += count;
        pieces.advance();
    }
}

void Ring::receiveWindow(PieceWalk& pieces, Target target) {
    for (std::int64_t used = 0; pieces.fits(used);) {
        const std::int64_t count = pieces.count();
        receivePiece(target == Target::SamePlace ? place(pieces.at()).region : m_regions.size() - 1);
        if (target == Target::Scratch)
            addTo(pieces.at(), scratchFloats() + used, count);
        used += count;
        pieces.advance();
    }
}

/// Window by window, each of as many pieces as a socket is sure to take. Writes block when it is full, so odd ranks
/// receive first: no ring of ranks can wait for each other.
void Ring::exchange(std::span<const RingTensor> tensors, int sent, int received, Target target) {
    const bool receivesFirst = rank() % 2 == 1;
    PieceWalk out(tensors, sent);
    PieceWalk in(tensors, received);
    while (!out.isDone() || !in.isDone()) {
        if (!receivesFirst)
            sendWindow(out, target);
        receiveWindow(in, target);
        if (receivesFirst)
            sendWindow(out, target);
    }
}

contract::Result<void> Ring::allGather(std::span<const RingTensor> tensors) {
    const int n = size();
    try {
        for (int step = 0; step + 1 < n; ++step)
            exchange(tensors, (rank() - step + n) % n, (rank() - step - 1 + n) % n, Target::SamePlace);
    } catch (...) {
        return tl::unexpected(describe("all-gather"));
    }
    return {};
}

contract::Result<void> Ring::reduceScatter(std::span<const RingTensor> tensors) {
    const int n = size();
    try {
        // The sum of chunk c starts at rank c + 1 and ends at rank c.
        for (int step = 0; step + 1 < n; ++step)
            exchange(tensors, (rank() - step - 1 + n) % n, (rank() - step - 2 + 2 * n) % n, Target::Scratch);
    } catch (...) {
        return tl::unexpected(describe("reduce-scatter"));
    }
    return {};
}

contract::Result<void> Ring::allReduce(std::span<const RingTensor> tensors) {
    if (auto reduced = reduceScatter(tensors); !reduced)
        return reduced;
    return allGather(tensors);
}

contract::Result<void> Ring::allGather(float* whole, Chunks chunks) {
    const RingTensor tensor{whole, chunks};
    return allGather({&tensor, 1});
}
contract::Result<void> Ring::reduceScatter(float* whole, Chunks chunks) {
    const RingTensor tensor{whole, chunks};
    return reduceScatter({&tensor, 1});
}
contract::Result<void> Ring::allReduce(float* whole, std::int64_t elements) {
    const RingTensor tensor{whole, evenChunks(elements)};
    return allReduce({&tensor, 1});
}

contract::Result<const float*> Ring::gatherPieces(const float* piece, std::int64_t count) {
    if (size() == 1)
        return piece;
    float* gathered = scratchFloats();
    std::memcpy(gathered + rank() * count, piece, static_cast<std::size_t>(count) * sizeof(float));
    if (auto done = allGather(gathered, {count * size(), count}); !done)
        return tl::unexpected(done.error());
    return gathered;
}

contract::Result<void> Ring::sumScalars(double* values, int count) {
    if (size() == 1 || count > kMaximumScalars)
        return {};
    // Doubles travel as pairs of floats' worth of bytes; nothing is computed with them on the way.
    float packed[2 * kMaximumScalars];
    std::memcpy(packed, values, static_cast<std::size_t>(count) * sizeof(double));
    const auto gathered = gatherPieces(packed, 2 * count);
    if (!gathered)
        return tl::unexpected(gathered.error());
    for (int i = 0; i < count; ++i) {
        values[i] = 0;
        for (int r = 0; r < size(); ++r) {
            double value = 0;
            std::memcpy(&value, *gathered + 2 * (r * count + i), sizeof value);
            values[i] += value;
        }
    }
    return {};
}

contract::Result<bool> Ring::stillWaiting(bool rankZeroIsBusy) {
    double busy = rank() == 0 && rankZeroIsBusy ? 1 : 0;
    if (auto summed = sumScalars(&busy, 1); !summed)
        return tl::unexpected(summed.error());
    return busy > 0;
}

} // namespace shardscope::engine
