// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/layout/MapRows.h"
#include "app/layout/MemoryParts.h"

#include <cstdint>
#include <vector>

namespace shardscope::app {

struct PeakSegment {
    MemoryPart part = MemoryPart::Parameters;
    std::int64_t bytes = 0;
    Span span;
};

/// A device's peak as one stacked bar with the marks of budget and card.
struct PeakBarLayout {
    std::vector<PeakSegment> segments;
    double budgetX = 0;
    double cardX = 0;
    double peakX = 0;
};

/// The bar ends at the card, or at the largest of peak and budget when that is beyond it.
PeakBarLayout layoutPeakBar(const contract::Ledger& ledger, std::int64_t budgetBytes, std::int64_t cardBytes,
                            double width);

} // namespace shardscope::app
