// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <bit>
#include <cstdint>

// Kernels marked with this are compiled twice, for any x86-64 and for processors with AVX2 and FMA; the loader picks
// one. Sanitizers run before the loader's resolvers are safe to call, so their builds keep the plain version.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&               \
    !defined(__SANITIZE_THREAD__)
#define SHARDSCOPE_VECTORISED __attribute__((target_clones("arch=haswell", "default")))
#else
#define SHARDSCOPE_VECTORISED
#endif

namespace shardscope::engine {

/// Reductions keep this many partial sums, so that they vectorise and their order does not depend on the compiler.
inline constexpr int kLanes = 16;

/// e^x with a relative error below 2e-7, in a form that compilers vectorise (libm's is a call per element).
/// Range reduction by ln 2 in two parts, then the degree 6 polynomial of Cephes' expf.
[[gnu::always_inline]] inline float fastExp(float x) {
    x = x < -87.0F ? -87.0F : x;
    x = x > 88.0F ? 88.0F : x;
    const float scaled = x * 1.44269504088896341F;
    // Adding and subtracting 1.5 * 2^23 rounds to the nearest integer.
    const float shifted = scaled + 12582912.0F;
    const float rounded = shifted - 12582912.0F;
    float r = x - rounded * 0.693359375F;
    r = r + rounded * 2.12194440e-4F;
    float p = 1.9875691500e-4F;
    p = p * r + 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    p = p * r * r + r + 1.0F;
    // The integer stands in the low bits of `shifted`. Converting would be undefined for NaN, which stays NaN through p.
    const std::uint32_t integer = std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(12582912.0F);
    return p * std::bit_cast<float>((integer + 127U) << 23);
}

/// tanh through fastExp; absolute error below 3e-7.
[[gnu::always_inline]] inline float fastTanh(float x) {
    return 1.0F - 2.0F / (fastExp(2.0F * x) + 1.0F);
}

} // namespace shardscope::engine
