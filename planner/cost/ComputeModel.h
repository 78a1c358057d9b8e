// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Cluster.h"
#include "runtime/contract/Operator.h"
#include "runtime/contract/Preset.h"

#include <cstdint>
#include <optional>

namespace shardscope::planner {

/// Seconds of computing on one device: cost-model "Compute and optimizer time". Where the cluster tells what the
/// kernels of our engine take (`shardscope-train measure`) these, by the shape of each operator; otherwise FLOPs over
/// the device's rate and bytes over its memory bandwidth.
class ComputeModel {
public:
    /// `paperMode`: FLOPs over the rate and nothing else.
    ComputeModel(const contract::Cluster& cluster, const contract::Preset& preset, bool paperMode);

    /// One forward of `samples` samples; backward takes twice as long.
    double forwardSeconds(const contract::Operator& op, std::int64_t samples) const;
    /// An optimizer step that reads and writes so many bytes.
    double updateSeconds(double bytes) const;

private:
    double measuredForwardSeconds(const contract::Operator& op, double samples) const;
    double productSeconds(const contract::Operator& op, double samples) const;

    contract::Preset m_preset;
    std::optional<contract::KernelRates> m_kernels;
    bool m_paperMode;
    double m_flops;
    double m_memoryBandwidth;
};

} // namespace shardscope::planner
