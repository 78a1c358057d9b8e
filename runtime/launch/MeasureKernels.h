// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/KernelRates.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace shardscope::engine {

/// The value that so large a share (0..1) of the values does not exceed. There must be one.
double quantile(std::vector<double> values, double share);

/// Runs `work` on every worker's thread at the same time, for about `seconds`; units of work per second. As in a
/// training step, workers wait for each other every few milliseconds, so that the slowest of every turn counts: cores
/// that are equally fast on average are not so at every moment.
double slowestRate(std::int64_t workers, double seconds, const std::function<double(std::int64_t)>& work);

/// Least squares of seconds = sum(coefficient x feature) on relative errors, so that small measurements count as much
/// as large ones. No coefficient is negative: a feature that would have one is left out.
struct Fit {
    std::vector<double> coefficients;
    double r2 = 0;
};
struct FitSample {
    std::vector<double> features;
    double seconds = 0;
};
Fit fitSeconds(const std::vector<FitSample>& samples);

struct MeasuredKernels {
    contract::KernelRates rates;
    double productR2 = 0;
    double attentionR2 = 0;
};
/// What the engine's own operations take on CPU cores, forward and backward, with `workers` of them busy.
MeasuredKernels measureKernels(std::int64_t workers);

} // namespace shardscope::engine
