// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/ops/Embedding.h"

#include "runtime/ops/Vectorised.h"

#include <cstring>

namespace shardscope::engine {

namespace {

SHARDSCOPE_VECTORISED
void addRow(const float* source, float* destination, std::int64_t columns) {
    for (std::int64_t c = 0; c < columns; ++c)
        destination[c] += source[c];
}

bool contains(contract::RowRange rows, std::int64_t row) {
    return row >= rows.begin && row < rows.end;
}

} // namespace

void embeddingForward(const std::int32_t* ids, contract::RowRange rows, const float* table, Matrix y, Write write) {
    for (std::int64_t t = 0; t < y.rows; ++t) {
        if (!contains(rows, ids[t]))
            continue;
        const float* source = table + (ids[t] - rows.begin) * y.columns;
        float* destination = y.data + t * y.stride;
        if (write == Write::Add)
            addRow(source, destination, y.columns);
        else
            std::memcpy(destination, source, static_cast<std::size_t>(y.columns) * sizeof(float));
    }
}

void embeddingBackward(const std::int32_t* ids, contract::RowRange rows, ConstMatrix dy, float* tableGradient) {
    for (std::int64_t t = 0; t < dy.rows; ++t)
        if (contains(rows, ids[t]))
            addRow(dy.data + t * dy.stride, tableGradient + (ids[t] - rows.begin) * dy.columns, dy.columns);
}

void positionForward(std::int64_t sequence, contract::RowRange rows, const float* table, Matrix y) {
    for (std::int64_t t = 0; t < y.rows; ++t)
        if (contains(rows, t % sequence))
            addRow(table + (t % sequence - rows.begin) * y.columns, y.data + t * y.stride, y.columns);
}

void positionBackward(std::int64_t sequence, contract::RowRange rows, ConstMatrix dy, float* tableGradient) {
    for (std::int64_t t = 0; t < dy.rows; ++t)
        if (contains(rows, t % sequence))
            addRow(dy.data + t * dy.stride, tableGradient + (t % sequence - rows.begin) * dy.columns, dy.columns);
}

} // namespace shardscope::engine
