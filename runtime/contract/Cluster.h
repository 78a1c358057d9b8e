// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Json.h"
#include "runtime/contract/KernelRates.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::contract {

/// A link as seen by one device in one direction. One ring step over X bytes takes latencySeconds + X / bytesPerSecond.
struct Link {
    double latencySeconds = 0;
    double bytesPerSecond = 0;
    bool operator==(const Link&) const = default;
};

/// Memory that a plan cannot use, one line each.
struct ReserveLine {
    std::string what; ///< "context", "collective", "other processes", ...
    std::int64_t bytes = 0;
    std::string source; ///< "measured" or "assumed"
    bool operator==(const ReserveLine&) const = default;
};

struct Device {
    std::string name;
    std::int64_t memoryBytes = 0; ///< what the driver reports
    double flopsFp32 = 0; ///< sustained floating point operations per second (rate x efficiency), 0 = not supported
    double flopsBf16 = 0;
    double peakFlopsFp32 = 0; ///< datasheet peaks, for utilisation
    double peakFlopsBf16 = 0;
    double memoryBandwidth = 0; ///< bytes per second
    bool operator==(const Device&) const = default;
};

struct Cluster {
    std::string name;  ///< the bundled name or file stem
    std::string title; ///< what a person reads: "8 x TITAN, PCIe 3"
    std::int64_t nodes = 1;
    std::int64_t devicesPerNode = 1;
    Device device;
    Link inside;
    Link between; ///< only meaningful with more than one node
    double hostSecondsPerCollective = 0;
    double overlapEfficiency = 1; ///< share of communication that compute beside it can really hide, 0..1
    std::vector<ReserveLine> reserve;
    std::vector<std::string> warnings; ///< keys of the file it was read from that are not known
    bool isCpu = false;
    std::string source;   ///< "measured", "assumed", "detected with default rates": shown to the user
    std::string measured; ///< fits with R2 as written by `shardscope-train measure`, as JSON text; "" when none
    std::optional<KernelRates> kernels; ///< the part "kernels" of `measured`, where there is one

    std::int64_t devices() const { return nodes * devicesPerNode; }
    std::int64_t reserveBytes() const;
    bool operator==(const Cluster&) const = default;
};

OrderedJson toJson(const Cluster& cluster);
Cluster readCluster(const JsonCursor& cursor);
/// parse + read + sanity. Errors: BadInput.
Result<Cluster> readClusterFile(const std::string& path);

} // namespace shardscope::contract
