// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/layout/PeakBar.h"

#include <algorithm>

namespace shardscope::app {

PeakBarLayout layoutPeakBar(const contract::Ledger& ledger, std::int64_t budgetBytes, std::int64_t cardBytes,
                            double width) {
    PeakBarLayout layout;
    const MemoryParts parts = partsOf(ledger);
    const std::int64_t end = std::max({ledger.total(), budgetBytes, cardBytes, std::int64_t{1}});
    const auto xOf = [&](std::int64_t bytes) { return width * static_cast<double>(bytes) / static_cast<double>(end); };
    std::int64_t sum = 0;
    for (int i = 0; i < kMemoryPartCount; ++i) {
        const std::int64_t bytes = parts[static_cast<std::size_t>(i)];
        if (bytes <= 0)
            continue;
        layout.segments.push_back({static_cast<MemoryPart>(i), bytes, {xOf(sum), xOf(sum + bytes)}});
        sum += bytes;
    }
    layout.peakX = xOf(sum);
    layout.budgetX = xOf(budgetBytes);
    layout.cardX = xOf(cardBytes);
    return layout;
}

} // namespace shardscope::app
