// SPDX-License-Identifier: GPL-3.0-or-later
// In every build: tests hold it against plain loops where there is no GPU.
#pragma once

#include "runtime/ops/Kernels.h"

#include <cstdint>

namespace shardscope::engine::cuda {

/// d = a b + beta * c, then the epilogue: column-major matrices as cuBLASLt knows them, each as it is stored. A
/// row-major (R, C) matrix with a stride is a column-major (C, R) one with that leading dimension.
struct Product {
    struct Stored {
        ConstElements data;
        std::int64_t rows = 0, columns = 0, leading = 0;
        bool transposed = false; ///< before it is multiplied; a and b only
    };
    Stored a, b;
    Stored c; ///< none: d itself with accumulate, else nothing is added
    Elements d;
    std::int64_t rows = 0, columns = 0, leading = 0; ///< of d, and of c
    bool accumulate = false;                         ///< d += a b
    ConstElements bias;                              ///< (rows), added to every column
    Elements beforeGelu;                             ///< what goes into the gelu that d is then of; as d is stored
};

/// The three products of a linear layer, from row-major to column-major: y = x w^T, dx = dy w, dw = dy^T x.
Product forwardProduct(ConstElementMatrix x, ConstElements weight, ElementMatrix y);
Product inputProduct(ConstElementMatrix dy, ConstElements weight, ElementMatrix dx, Write write);
Product weightProduct(ConstElementMatrix dy, ConstElementMatrix x, Elements gradient, Write write);

/// How far memory at an address is aligned, at most 256 bytes: what decides which algorithms can be used.
std::uint32_t alignmentOf(const void* address);
/// Whether a gelu can be fused: its input is stored with a leading dimension of a multiple of 8 elements, aligned.
bool canFuseGelu(const Product& product);

} // namespace shardscope::engine::cuda
