// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/layout/MemoryParts.h"
#include "app/layout/TimeWindow.h"
#include "planner/timeline/MemoryTimeline.h"

#include <QPolygonF>

#include <vector>

namespace shardscope::app {

/// Bytes in use in one of many equal pieces of a step, at the moment of its largest total.
struct MemoryBand {
    std::int64_t picoseconds = 0;
    MemoryParts parts{};
    std::int64_t total = 0;
};
std::vector<MemoryBand> makeBands(const std::vector<planner::MemorySample>& samples);

/// What each of `columns` equal pieces of the window shows: the band with the largest total in it, so that no peak is
/// lost. Indices into the bands; empty when there are none.
std::vector<std::size_t> bandsOfColumns(const std::vector<MemoryBand>& bands, const TimeWindow& window, int columns);

/// The stacked areas of the parts on `plot`, whose height stands for `topBytes`: staircases, closed, lowest first.
std::vector<QPolygonF> stackBands(const std::vector<MemoryBand>& bands, const std::vector<std::size_t>& columns,
                                  const QRectF& plot, double topBytes);

} // namespace shardscope::app
