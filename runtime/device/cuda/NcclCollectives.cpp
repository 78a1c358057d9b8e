// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/device/cuda/NcclCollectives.h"

#include "runtime/collective/Sharing.h"
#include "runtime/device/Library.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <nccl.h>
#include <optional>
#include <thread>
#include <unistd.h>
#include <utility>

namespace shardscope::engine::cuda {

namespace {

struct Functions {
    decltype(ncclGetVersion)* version = nullptr;
    decltype(ncclGetUniqueId)* uniqueId = nullptr;
    decltype(ncclCommInitRankConfig)* initialize = nullptr;
    decltype(ncclCommGetAsyncError)* asyncError = nullptr;
    decltype(ncclCommAbort)* abort = nullptr;
    decltype(ncclGetErrorString)* errorString = nullptr;
    decltype(ncclGroupStart)* groupStart = nullptr;
    decltype(ncclGroupEnd)* groupEnd = nullptr;
    decltype(ncclAllGather)* allGather = nullptr;
    decltype(ncclReduceScatter)* reduceScatter = nullptr;
    decltype(ncclAllReduce)* allReduce = nullptr;
    decltype(ncclBroadcast)* broadcast = nullptr;
    decltype(ncclReduce)* reduce = nullptr;
};

/// Null where the library is missing or another one.
const Functions* functions() {
    static const std::optional<Functions> kFunctions = []() -> std::optional<Functions> {
        const auto library = Library::load({"libnccl.so.2"});
        if (!library)
            return std::nullopt;
        Functions f;
        const bool complete =
            library->resolve(f.version, "ncclGetVersion") && library->resolve(f.uniqueId, "ncclGetUniqueId") &&
            library->resolve(f.initialize, "ncclCommInitRankConfig") &&
            library->resolve(f.asyncError, "ncclCommGetAsyncError") && library->resolve(f.abort, "ncclCommAbort") &&
            library->resolve(f.errorString, "ncclGetErrorString") && library->resolve(f.groupStart, "ncclGroupStart") &&
            library->resolve(f.groupEnd, "ncclGroupEnd") && library->resolve(f.allGather, "ncclAllGather") &&
            library->resolve(f.reduceScatter, "ncclReduceScatter") && library->resolve(f.allReduce, "ncclAllReduce") &&
            library->resolve(f.broadcast, "ncclBroadcast") && library->resolve(f.reduce, "ncclReduce");
        return complete ? std::optional(f) : std::nullopt;
    }();
    return kFunctions ? &*kFunctions : nullptr;
}

std::string libraryVersion() {
    int version = 0;
    if (functions() == nullptr || functions()->version(&version) != ncclSuccess)
        return {};
    return std::to_string(version);
}

/// Tells machines apart, also those of equal names.
std::string machine() {
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    char host[256] = {};
    gethostname(host, sizeof host - 1);
    return std::string(host) + "/" + boot;
}

class NcclCollectives final : public Collectives, public CollectiveWatch {
public:
    NcclCollectives(CudaDevice& device, const RingMembers& members, double timeoutSeconds)
        : m_device(device), m_members(members), m_timeout(timeoutSeconds), m_functions(*functions()) {}
    ~NcclCollectives() override {
        m_device.unwatch(this);
        giveUp(); // ends at once, whatever the peers do; everything that mattered has been waited for
    }

    const char* name() const override { return "nccl"; }
    contract::Result<void> start(const ncclUniqueId& id);

    contract::Result<void> allGather(std::span<const CollectiveTensor> tensors) override;
    contract::Result<void> reduceScatter(std::span<const CollectiveTensor> tensors) override;
    contract::Result<void> allReduce(std::span<const CollectiveTensor> tensors) override;
    contract::Result<void> check() override;

private:
    int rank() const { return m_members.index; }
    int size() const { return static_cast<int>(m_members.ranks.size()); }
    static ncclDataType_t typeOf(const CollectiveTensor& tensor) {
        return tensor.whole.type == ElementType::BFloat16 ? ncclBfloat16 : ncclFloat32;
    }
    void giveUp() {
        if (ncclComm_t communicator = std::exchange(m_communicator, nullptr))
            m_functions.abort(communicator);
    }
    contract::Error describe(const char* what, ncclResult_t result) const {
        return {contract::ErrorKind::RunFailed, fmt::format("NCCL: {}: {}", what, m_functions.errorString(result))};
    }
    /// Calls of a communicator that does not block are accepted before they are done: the next one must wait.
    contract::Result<void> settle(const char* what, ncclResult_t result, double seconds);
    /// All that `issue(tensor)` issues as one group.
    template<typename Issue>
    contract::Result<void> together(const char* what, std::span<const CollectiveTensor> tensors, Issue issue);

    CudaDevice& m_device;
    RingMembers m_members;
    double m_timeout;
    const Functions& m_functions;
    ncclComm_t m_communicator = nullptr;
    std::mutex m_using; ///< the communication thread issues while the compute thread checks
};

contract::Result<void> NcclCollectives::settle(const char* what, ncclResult_t result, double seconds) {
    using Clock = std::chrono::steady_clock;
    const auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
    while (result == ncclInProgress || result == ncclSuccess) {
        ncclResult_t state = ncclSuccess;
        if (const ncclResult_t asked = m_functions.asyncError(m_communicator, &state); asked != ncclSuccess)
            state = asked;
        if (state == ncclSuccess)
            return {};
        result = state;
        if (result != ncclInProgress)
            break;
        if (Clock::now() > deadline) {
            giveUp();
            return contract::runFailed(
                fmt::format("NCCL: {}: the ranks did not come together for {:.1f} s", what, seconds));
        }
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    const contract::Error error = describe(what, result);
    giveUp();
    return tl::unexpected(error);
}

contract::Result<void> NcclCollectives::start(const ncclUniqueId& id) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    constexpr double kPatience = 12; // starting takes longer than a collective, and ranks start at different times
    const ncclResult_t begun = m_functions.initialize(&m_communicator, size(), id, rank(), &config);
    if (auto settled = settle("connecting the ranks", begun, kPatience * m_timeout); !settled)
        return settled;
    m_device.watch(this);
    return {};
}

contract::Result<void> NcclCollectives::check() {
    const std::lock_guard lock(m_using);
    ncclResult_t state = ncclSuccess;
    if (m_communicator == nullptr)
        return contract::runFailed("NCCL: the collectives were given up");
    if (m_functions.asyncError(m_communicator, &state) != ncclSuccess || state == ncclSuccess ||
        state == ncclInProgress)
        return {};
    const contract::Error error = describe("a collective failed", state);
    giveUp();
    return tl::unexpected(error);
}

template<typename Issue>
contract::Result<void> NcclCollectives::together(const char* what, std::span<const CollectiveTensor> tensors,
                                                 Issue issue) {
    const std::lock_guard lock(m_using);
    if (m_communicator == nullptr)
        return contract::runFailed("NCCL: the collectives were given up");
    ncclResult_t result = m_functions.groupStart();
    for (const CollectiveTensor& tensor : tensors)
        if (result == ncclSuccess || result == ncclInProgress)
            result = issue(tensor);
    const ncclResult_t ended = m_functions.groupEnd(); // in any case
    if (result == ncclSuccess || result == ncclInProgress)
        result = ended;
    return settle(what, result, m_timeout);
}

contract::Result<void> NcclCollectives::allGather(std::span<const CollectiveTensor> tensors) {
    return together("all-gather", tensors, [&](const CollectiveTensor& tensor) {
        const Chunks& chunks = tensor.chunks;
        const Elements own = tensor.whole + chunks.begin(rank());
        if (chunks.elements == chunks.chunk * size())
            return m_functions.allGather(own.at, tensor.whole.at, static_cast<std::size_t>(chunks.chunk),
                                         typeOf(tensor), m_communicator, m_device.laneStream());
        // The last chunks are short, and there is no room behind them: each rank broadcasts what it has.
        ncclResult_t result = ncclSuccess;
        for (int root = 0; root < size() && (result == ncclSuccess || result == ncclInProgress); ++root)
            if (const std::int64_t count = chunks.count(root); count > 0) {
                std::byte* const at = (tensor.whole + chunks.begin(root)).at;
                result = m_functions.broadcast(at, at, static_cast<std::size_t>(count), typeOf(tensor), root,
                                               m_communicator, m_device.laneStream());
            }
        return result;
    });
}

contract::Result<void> NcclCollectives::reduceScatter(std::span<const CollectiveTensor> tensors) {
    return together("reduce-scatter", tensors, [&](const CollectiveTensor& tensor) {
        const Chunks& chunks = tensor.chunks;
        const Elements own = tensor.whole + chunks.begin(rank());
        if (chunks.elements == chunks.chunk * size())
            return m_functions.reduceScatter(tensor.whole.at, own.at, static_cast<std::size_t>(chunks.chunk),
                                             typeOf(tensor), ncclSum, m_communicator, m_device.laneStream());
        ncclResult_t result = ncclSuccess;
        for (int root = 0; root < size() && (result == ncclSuccess || result == ncclInProgress); ++root)
            if (const std::int64_t count = chunks.count(root); count > 0) {
                std::byte* const at = (tensor.whole + chunks.begin(root)).at;
                result = m_functions.reduce(at, at, static_cast<std::size_t>(count), typeOf(tensor), ncclSum, root,
                                            m_communicator, m_device.laneStream());
            }
        return result;
    });
}

contract::Result<void> NcclCollectives::allReduce(std::span<const CollectiveTensor> tensors) {
    return together("all-reduce", tensors, [&](const CollectiveTensor& tensor) {
        return m_functions.allReduce(tensor.whole.at, tensor.whole.at, static_cast<std::size_t>(tensor.chunks.elements),
                                     typeOf(tensor), ncclSum, m_communicator, m_device.laneStream());
    });
}

} // namespace

contract::Result<std::unique_ptr<Collectives>> connectNccl(CudaDevice& device, Group& group, const RingMembers& members,
                                                           const std::string& pciAddress, double timeoutSeconds,
                                                           std::string& why) {
    if (members.ranks.size() < 2) {
        why = "there is one rank";
        return std::unique_ptr<Collectives>();
    }
    const std::string base = fmt::format("nccl/{}/", members.id);
    const std::string version = libraryVersion();
    if (auto told =
            group.publish(fmt::format("{}{}", base, group.rank()), version + "\n" + machine() + "/" + pciAddress);
        !told)
        return tl::unexpected(told.error());
    // All ranks of the group, not only the members: rings must not differ in how they travel.
    std::vector<DeviceIdentity> ranks;
    for (int rank = 0; rank < group.size(); ++rank) {
        const auto heard = group.read(fmt::format("{}{}", base, rank));
        if (!heard)
            return tl::unexpected(heard.error());
        const std::size_t end = heard->find('\n');
        ranks.push_back({rank, heard->substr(end + 1), heard->substr(0, end)});
    }
    why = whyNotShared(ranks);
    if (!why.empty())
        return std::unique_ptr<Collectives>();
    const std::string idKey = fmt::format("{}id/{}", base, members.ranks.front());
    ncclUniqueId id{};
    if (members.index == 0) {
        if (const ncclResult_t made = functions()->uniqueId(&id); made != ncclSuccess)
            return contract::runFailed(fmt::format("NCCL: a unique id: {}", functions()->errorString(made)));
        if (auto told = group.publish(idKey, std::string(id.internal, sizeof id.internal)); !told)
            return tl::unexpected(told.error());
    } else {
        const auto heard = group.read(idKey);
        if (!heard)
            return tl::unexpected(heard.error());
        if (heard->size() != sizeof id.internal)
            return contract::runFailed("NCCL: the unique id in the store has the wrong size");
        std::memcpy(id.internal, heard->data(), sizeof id.internal);
    }
    device.use();
    auto collectives = std::make_unique<NcclCollectives>(device, members, timeoutSeconds);
    if (auto started = collectives->start(id); !started)
        return tl::unexpected(started.error());
    return std::unique_ptr<Collectives>(std::move(collectives));
}

} // namespace shardscope::engine::cuda
