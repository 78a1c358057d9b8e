// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"
#include "runtime/contract/Telemetry.h"
#include "runtime/device/Elements.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace shardscope::engine {

class Collectives;
class Group;
class Kernels;
struct RingMembers;

/// What a rank computes with: memory, kernels, and the order between computing and communicating.
///
/// A device may run what it is told later than it is told: kernels() in the order of the calls on its compute stream,
/// what the communication thread asks for in the order of those calls on its communication stream. Jobs of the
/// communication thread are numbered from 1 (Lane::Ticket); the four marks put the two streams into order. On a CPU
/// everything is done when the call returns and the marks mean nothing.
class Device {
public:
    using Job = std::uint64_t;

    virtual ~Device() = default;

    /// "NVIDIA H100 80GB HBM3", "Intel(R) Xeon(R) ...".
    virtual std::string name() const = 0;
    virtual Kernels& kernels() = 0;
    /// Whether its memory can be read and written by the host.
    virtual bool isHostMemory() const = 0;
    /// Zeroed memory of a run; `what` is for the message. Errors: RunFailed.
    virtual contract::Result<std::byte*> allocate(std::int64_t bytes, std::string_view what) = 0;
    virtual void release(std::byte* memory, std::int64_t bytes) = 0;
    /// Memory of this process on the device beyond what was allocated: context, libraries. Measured.
    virtual std::int64_t contextBytes() const { return 0; }
    /// What says, when it is called, how the device is. It is called by one thread, whichever that is, and does not
    /// need the device any more. None where nothing is known.
    virtual std::function<contract::DeviceEvent()> statusReader() const { return {}; }

    /// Copies that convert and are done when they return. For the time outside of steps; from any thread.
    virtual void upload(Elements to, const float* from, std::int64_t count) = 0;
    virtual void download(float* to, ConstElements from, std::int64_t count) = 0;
    /// In the order of kernels(); `from` may change as soon as it returns.
    virtual void uploadBytes(void* to, const void* from, std::int64_t bytes) = 0;
    virtual void clearBytes(std::byte* memory, std::int64_t bytes) = 0;

    /// Compute thread, before a job is handed over: the job sees what was computed until here.
    virtual void jobFollowsCompute(Job) {}
    /// Communication thread, before and after it does a job.
    virtual void jobBegins(Job) {}
    virtual void jobEnds(Job) {}
    /// Compute thread, after the communication thread has done (or begun on the device) a job: what is computed from
    /// here on sees its results.
    virtual void computeFollowsJob(Job) {}
    /// Compute thread: waits for everything. Errors: RunFailed when the device failed.
    virtual contract::Result<void> synchronize() { return {}; }
    /// Seconds since the last call that computing waited for communication on the device, beyond what its thread
    /// waited.
    virtual double takeStalledSeconds() { return 0; }

    /// Communication stream: to = from; into += from. All of one type, or `from` of a wider one.
    virtual void copyOnLane(Elements to, ConstElements from, std::int64_t count) = 0;
    virtual void addOnLane(Elements into, ConstElements from, std::int64_t count) = 0;
    /// The same as upload() and download() for the communication thread inside a job, in the order of its stream.
    virtual void uploadOnLane(Elements to, const float* from, std::int64_t count) = 0;
    virtual void downloadOnLane(float* to, ConstElements from, std::int64_t count) = 0;

    /// Collectives of the device's own among the members of a ring; nothing where it has none for them, and then `why`
    /// says why not. All members get something or none does. Errors: RunFailed.
    virtual contract::Result<std::unique_ptr<Collectives>> connect(Group& group, const RingMembers& members,
                                                                   std::string& why);
};

} // namespace shardscope::engine
