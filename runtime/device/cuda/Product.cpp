// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/device/cuda/Product.h"

#include <bit>

namespace shardscope::engine::cuda {

// Row-major y (T, O) is column-major (O, T): y^T = w x^T. A row-major w (O, I) is column-major (I, O), so it is
// transposed back; x (T, I) is column-major (I, T) as it is.
Product forwardProduct(ConstElementMatrix x, ConstElements weight, ElementMatrix y) {
    Product p;
    p.a = {weight, x.columns, y.columns, x.columns, true};
    p.b = {x.data, x.columns, x.rows, x.stride, false};
    p.d = y.data;
    p.rows = y.columns;
    p.columns = y.rows;
    p.leading = y.stride;
    return p;
}

// dx^T (I, T) = w^T (I, O) dy^T (O, T).
Product inputProduct(ConstElementMatrix dy, ConstElements weight, ElementMatrix dx, Write write) {
    Product p;
    p.a = {weight, dx.columns, dy.columns, dx.columns, false};
    p.b = {dy.data, dy.columns, dy.rows, dy.stride, false};
    p.d = dx.data;
    p.rows = dx.columns;
    p.columns = dx.rows;
    p.leading = dx.stride;
    p.accumulate = write == Write::Add;
    return p;
}

// dw^T (I, O) = x^T (I, T) dy (T, O).
Product weightProduct(ConstElementMatrix dy, ConstElementMatrix x, Elements gradient, Write write) {
    Product p;
    p.a = {x.data, x.columns, x.rows, x.stride, false};
    p.b = {dy.data, dy.columns, dy.rows, dy.stride, true};
    p.d = gradient;
    p.rows = x.columns;
    p.columns = dy.columns;
    p.leading = x.columns;
    p.accumulate = write == Write::Add;
    return p;
}

std::uint32_t alignmentOf(const void* address) {
    const auto bits = std::bit_cast<std::uintptr_t>(address);
    constexpr std::uintptr_t kMost = 256;
    return static_cast<std::uint32_t>(bits % kMost == 0 ? kMost : bits & (~bits + 1));
}

bool canFuseGelu(const Product& product) {
    return product.leading % 8 == 0 && alignmentOf(product.beforeGelu.at) >= 16;
}

} // namespace shardscope::engine::cuda
