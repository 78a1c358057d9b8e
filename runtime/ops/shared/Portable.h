// SPDX-License-Identifier: GPL-3.0-or-later
// What kernel bodies are written in: they are compiled by nvcc for a GPU and by the C++ compiler for a CPU, where tests
// run each of them against a float64 reference.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#define SHARDSCOPE_SHARED __host__ __device__ inline
#define SHARDSCOPE_KERNEL __device__
#else
#define SHARDSCOPE_SHARED inline
#define SHARDSCOPE_KERNEL
#endif

namespace shardscope::engine::shared {

SHARDSCOPE_SHARED std::uint32_t bitsOf(float value) {
    std::uint32_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
SHARDSCOPE_SHARED float floatOf(std::uint32_t bits) {
    float value = 0;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/// The upper half of a float32: 8 bits of exponent, 7 of mantissa.
struct BFloat16 {
    std::uint16_t bits;
};

SHARDSCOPE_SHARED bool isNotFinite(float value) {
    return (bitsOf(value) & 0x7F800000U) == 0x7F800000U;
}

/// Rounds to the nearest, ties to even. NaN stays NaN, what is beyond the largest becomes infinite.
SHARDSCOPE_SHARED BFloat16 roundToNearest(float value) {
    const std::uint32_t bits = bitsOf(value);
    if ((bits & 0x7FFFFFFFU) > 0x7F800000U) // a NaN keeps its sign; quiet, so that truncation leaves a NaN
        return {static_cast<std::uint16_t>((bits >> 16) | 0x40U)};
    return {static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16)};
}

/// Rounds up or down with probabilities that make the expectation exact; `random` is uniform in [0, 2^16).
SHARDSCOPE_SHARED BFloat16 roundStochastically(float value, std::uint32_t random) {
    if (isNotFinite(value))
        return roundToNearest(value);
    return {static_cast<std::uint16_t>((bitsOf(value) + (random & 0xFFFFU)) >> 16)};
}

SHARDSCOPE_SHARED float load(const float* at) {
    return *at;
}
SHARDSCOPE_SHARED float load(const BFloat16* at) {
    return floatOf(static_cast<std::uint32_t>(at->bits) << 16);
}
SHARDSCOPE_SHARED void store(float* at, float value) {
    *at = value;
}
SHARDSCOPE_SHARED void store(BFloat16* at, float value) {
    *at = roundToNearest(value);
}
/// Writes, or adds to what is there; the sum is float32 and rounded once.
template<typename E> SHARDSCOPE_SHARED void write(E* at, float value, bool add) {
    store(at, add ? load(at) + value : value);
}
SHARDSCOPE_SHARED void storeStochastically(float* at, float value, std::uint32_t) {
    *at = value;
}
SHARDSCOPE_SHARED void storeStochastically(BFloat16* at, float value, std::uint32_t random) {
    *at = roundStochastically(value, random);
}

/// A bijective 64-bit mix (SplitMix64's finaliser): the counter-based source of all randomness here.
SHARDSCOPE_SHARED constexpr std::uint64_t mix(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
}

/// The threads that compute something together; their reductions give every member the same value. A body strides by
/// size() from rank() and calls the reductions from all members alike. This is a team of one.
struct SoloTeam {
    static constexpr int kHeadDimsPerMember = 256;
    SHARDSCOPE_SHARED int rank() const { return 0; }
    SHARDSCOPE_SHARED int size() const { return 1; }
    SHARDSCOPE_SHARED float sum(float value) const { return value; }
    SHARDSCOPE_SHARED double sum(double value) const { return value; }
    SHARDSCOPE_SHARED float maximum(float value) const { return value; }
    /// The value of another member.
    SHARDSCOPE_SHARED float from(float value, int) const { return value; }
};

} // namespace shardscope::engine::shared
