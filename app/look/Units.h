// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Placement.h"

#include <QString>

#include <cstdint>
#include <optional>

namespace shardscope::app {

// The only place where numbers become text in the window. Binary units, always written KiB, MiB, GiB.

/// "22.6": a number of GiB without its unit.
QString gibNumber(std::int64_t bytes, int decimals = 1);
/// "22.6 GiB"
QString gibText(std::int64_t bytes, int decimals = 1);
/// GiB, or MiB where a device holds so little that GiB would read 0.0.
struct MemoryUnit {
    bool isMib = false;
    /// "22.6", "49"
    QString number(std::int64_t bytes) const;
    /// "22.6 GiB", "49 MiB"
    QString text(std::int64_t bytes) const;
};
MemoryUnit memoryUnit(std::int64_t largestBytes);
/// "123 MiB", "4.9 MiB", "22.63 GiB", "512 B": three significant digits in the unit that suits.
QString bytesText(std::int64_t bytes);
/// The same with a sign, "+1.1 GiB".
QString signedBytesText(std::int64_t bytes);
/// "242 ms", "3.1 ms", "1.25 s", "86 µs"
QString secondsText(double seconds);
/// A unit in which times up to a largest one read well on an axis.
struct TimeUnit {
    double seconds = 1;
    QString name; ///< "ms"
};
TimeUnit timeUnit(double largestSeconds);
/// "12.5": a value beside an axis.
QString tickText(double value, int decimals);
/// "+3.1 ms"
QString signedSecondsText(double seconds);
/// "41 s", "12 min", "3 h 20 min": how long something still takes.
QString durationText(double seconds);
/// "1,557,611,200"
QString countText(std::int64_t count);
/// "203,100" above ten, with three significant digits kept below.
QString rateText(double perSecond);
/// "1.56 G", "124 M": for tight places.
QString shortCountText(double count);
/// "37 %", "3.1 %"
QString percentText(double fraction, int decimals = 1);
/// "+0.4 %"
QString signedPercentText(double fraction, int decimals = 1);
/// "3.5 GB/s" (decimal, as link rates are)
QString bandwidthText(double bytesPerSecond);
/// "13.1 TFLOP/s"
QString flopsText(double flopsPerSecond);

/// "R", "K", "KH" (gradient held), "S", "S4", "S4/2": what stands on the placement stripe.
QString placementLetter(const contract::Placement& placement);
/// "replicated", "kept", "kept, gradient held", "sharded", "sharded in 4 slices"
QString placementWord(const contract::Placement& placement);

/// Reads "16", "16 GiB", "500MiB", "24GB"; a bare number is GiB.
std::optional<std::int64_t> readBytes(const QString& text);
/// Reads "1.25", "1.25 s", "312 ms", "80us"; a bare number is seconds.
std::optional<double> readSeconds(const QString& text);

} // namespace shardscope::app
