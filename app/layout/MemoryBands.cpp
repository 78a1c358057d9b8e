// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/layout/MemoryBands.h"

#include <algorithm>
#include <cmath>

namespace shardscope::app {

std::vector<MemoryBand> makeBands(const std::vector<planner::MemorySample>& samples) {
    std::vector<MemoryBand> bands;
    bands.reserve(samples.size());
    for (const planner::MemorySample& sample : samples)
        bands.push_back({sample.picoseconds, partsOf(sample.bytes), sample.bytes.total()});
    return bands;
}

std::vector<std::size_t> bandsOfColumns(const std::vector<MemoryBand>& bands, const TimeWindow& window, int columns) {
    std::vector<std::size_t> result;
    if (bands.empty() || columns < 1)
        return result;
    const auto count = static_cast<double>(bands.size());
    for (int c = 0; c < columns; ++c) {
        const double begin = window.begin + window.width() * c / columns;
        const double end = window.begin + window.width() * (c + 1) / columns;
        const auto first = std::min(bands.size() - 1, static_cast<std::size_t>(std::max(0.0, begin * count)));
        const auto last = std::clamp(static_cast<std::size_t>(std::ceil(end * count - 1e-9)), first + 1, bands.size());
        std::size_t largest = first;
        for (std::size_t i = first; i < last; ++i)
            if (bands[i].total > bands[largest].total)
                largest = i;
        result.push_back(largest);
    }
    return result;
}

std::vector<QPolygonF> stackBands(const std::vector<MemoryBand>& bands, const std::vector<std::size_t>& columns,
                                  const QRectF& plot, double topBytes) {
    std::vector<QPolygonF> areas(kMemoryPartCount);
    if (columns.empty() || topBytes <= 0)
        return areas;
    const double each = plot.width() / static_cast<double>(columns.size());
    std::vector<double> below(columns.size(), 0);
    for (int part = 0; part < kMemoryPartCount; ++part) {
        QPolygonF upper, lower;
        bool isEmpty = true;
        for (std::size_t c = 0; c < columns.size(); ++c) {
            const double left = plot.left() + each * static_cast<double>(c);
            const double right = c + 1 == columns.size() ? plot.right() : left + each;
            const auto bytes = static_cast<double>(bands[columns[c]].parts[static_cast<std::size_t>(part)]);
            isEmpty = isEmpty && bytes <= 0;
            const double from = plot.bottom() - below[c] / topBytes * plot.height();
            below[c] += bytes;
            const double to = plot.bottom() - below[c] / topBytes * plot.height();
            // Columns of equal height make one step.
            if (!upper.isEmpty() && upper.last().y() == to && lower.last().y() == from) {
                upper.last().setX(right);
                lower.last().setX(right);
                continue;
            }
            upper << QPointF(left, to) << QPointF(right, to);
            lower << QPointF(left, from) << QPointF(right, from);
        }
        if (isEmpty)
            continue;
        std::reverse(lower.begin(), lower.end());
        areas[static_cast<std::size_t>(part)] = upper + lower;
    }
    return areas;
}

} // namespace shardscope::app
