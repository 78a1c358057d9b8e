// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/look/Units.h"

#include "runtime/contract/Bytes.h"

#include <QCoreApplication>
#include <QRegularExpression>

#include <array>
#include <cmath>

namespace shardscope::app {

namespace {

QString fixed(double value, int decimals) {
    QString text = QString::number(value, 'f', decimals);
    if (text.startsWith('-') && text.toDouble() == 0)
        text.remove(0, 1);
    return text;
}

/// Three significant digits, no more than `most` decimals.
QString significant(double value, int most = 2) {
    const double size = std::abs(value);
    const int decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
    return fixed(value, std::min(decimals, most));
}

QString signOf(double value) {
    return value > 0 ? QStringLiteral("+") : QString();
}

QString grouped(const QString& digits) {
    QString text = digits;
    const int first = text.startsWith('-') ? 1 : 0;
    for (int i = static_cast<int>(text.size()) - 3; i > first; i -= 3)
        text.insert(i, ',');
    return text;
}

QString translate(const char* text) {
    return QCoreApplication::translate("Units", text);
}

} // namespace

QString gibNumber(std::int64_t bytes, int decimals) {
    return fixed(static_cast<double>(bytes) / static_cast<double>(contract::kGiB), decimals);
}

QString gibText(std::int64_t bytes, int decimals) {
    return gibNumber(bytes, decimals) + QStringLiteral(" GiB");
}

MemoryUnit memoryUnit(std::int64_t largestBytes) {
    return {largestBytes < 2 * contract::kGiB};
}

/// "0.0" would say nothing: what is small beside its neighbours carries its own unit.
static bool carriesItsUnit(const MemoryUnit& unit, std::int64_t bytes) {
    return !unit.isMib && bytes > 0 && bytes < contract::kGiB / 20;
}

QString MemoryUnit::number(std::int64_t bytes) const {
    if (carriesItsUnit(*this, bytes))
        return bytesText(bytes);
    return isMib ? fixed(static_cast<double>(bytes) / static_cast<double>(contract::kMiB), 0) : gibNumber(bytes);
}

QString MemoryUnit::text(std::int64_t bytes) const {
    if (carriesItsUnit(*this, bytes))
        return bytesText(bytes);
    return number(bytes) + (isMib ? QStringLiteral(" MiB") : QStringLiteral(" GiB"));
}

QString bytesText(std::int64_t bytes) {
    const double size = std::abs(static_cast<double>(bytes));
    if (size >= 0.9995 * static_cast<double>(contract::kGiB))
        return significant(static_cast<double>(bytes) / static_cast<double>(contract::kGiB)) + QStringLiteral(" GiB");
    if (size >= 0.9995 * static_cast<double>(contract::kMiB))
        return significant(static_cast<double>(bytes) / static_cast<double>(contract::kMiB), 1) +
               QStringLiteral(" MiB");
    if (size >= 1024)
        return significant(static_cast<double>(bytes) / 1024.0, 1) + QStringLiteral(" KiB");
    return QString::number(bytes) + QStringLiteral(" B");
}

QString signedBytesText(std::int64_t bytes) {
    return signOf(static_cast<double>(bytes)) + bytesText(bytes);
}

QString secondsText(double seconds) {
    const double size = std::abs(seconds);
    if (size == 0)
        return QStringLiteral("0 ms");
    if (size >= 0.9995)
        return significant(seconds) + QStringLiteral(" s");
    if (size >= 0.0000995)
        return significant(seconds * 1e3, size < 0.000995 ? 2 : 1) + QStringLiteral(" ms");
    return significant(seconds * 1e6, 1) + QStringLiteral(" µs");
}

TimeUnit timeUnit(double largestSeconds) {
    if (largestSeconds >= 2)
        return {1, QStringLiteral("s")};
    if (largestSeconds >= 2e-3)
        return {1e-3, QStringLiteral("ms")};
    return {1e-6, QStringLiteral("µs")};
}

QString tickText(double value, int decimals) {
    return fixed(value, decimals);
}

QString signedSecondsText(double seconds) {
    return signOf(seconds) + secondsText(seconds);
}

QString durationText(double seconds) {
    if (!std::isfinite(seconds) || seconds < 0)
        return {};
    const auto whole = static_cast<std::int64_t>(std::llround(seconds));
    if (whole < 90)
        return translate("%1 s").arg(whole);
    const std::int64_t minutes = (whole + 30) / 60;
    if (minutes < 90)
        return translate("%1 min").arg(minutes);
    return translate("%1 h %2 min").arg(minutes / 60).arg(minutes % 60);
}

QString countText(std::int64_t count) {
    return grouped(QString::number(count));
}

QString rateText(double perSecond) {
    if (!std::isfinite(perSecond))
        return QStringLiteral("–");
    if (std::abs(perSecond) < 99.95)
        return significant(perSecond);
    return countText(std::llround(perSecond));
}

QString shortCountText(double count) {
    const double size = std::abs(count);
    constexpr std::array<std::pair<double, const char*>, 4> kUnits{
        {{1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e3, " k"}}};
    for (const auto& [unit, suffix] : kUnits)
        if (size >= unit)
            return significant(count / unit) + QLatin1String(suffix);
    return significant(count);
}

QString percentText(double fraction, int decimals) {
    return fixed(fraction * 100, decimals) + QStringLiteral(" %");
}

QString signedPercentText(double fraction, int decimals) {
    const QString text = percentText(fraction, decimals);
    return (fraction > 0 && !text.startsWith(fixed(0, decimals)) ? QStringLiteral("+") : QString()) + text;
}

QString bandwidthText(double bytesPerSecond) {
    if (bytesPerSecond >= 999.5e9)
        return significant(bytesPerSecond / 1e12, 1) + QStringLiteral(" TB/s");
    if (bytesPerSecond >= 0.9995e9)
        return significant(bytesPerSecond / 1e9, 1) + QStringLiteral(" GB/s");
    return significant(bytesPerSecond / 1e6, 1) + QStringLiteral(" MB/s");
}

QString flopsText(double flopsPerSecond) {
    if (flopsPerSecond >= 0.9995e12)
        return significant(flopsPerSecond / 1e12, 1) + QStringLiteral(" TFLOP/s");
    return significant(flopsPerSecond / 1e9, 1) + QStringLiteral(" GFLOP/s");
}

QString placementLetter(const contract::Placement& placement) {
    switch (placement.kind) {
    case contract::PlacementKind::Replicate:
        return QStringLiteral("R");
    case contract::PlacementKind::Keep:
        return placement.held ? QStringLiteral("KH") : QStringLiteral("K");
    case contract::PlacementKind::Shard:
        break;
    }
    if (!placement.isSplit())
        return QStringLiteral("S");
    if (placement.shardedSlices == placement.slices)
        return QStringLiteral("S%1").arg(placement.slices);
    return QStringLiteral("S%1/%2").arg(placement.slices).arg(placement.shardedSlices);
}

QString placementWord(const contract::Placement& placement) {
    switch (placement.kind) {
    case contract::PlacementKind::Replicate:
        return translate("replicated");
    case contract::PlacementKind::Keep:
        return placement.held ? translate("kept, gradient held") : translate("kept");
    case contract::PlacementKind::Shard:
        break;
    }
    if (!placement.isSplit())
        return translate("sharded");
    if (placement.shardedSlices == placement.slices)
        return translate("sharded in %1 slices").arg(placement.slices);
    return translate("%1 of %2 slices sharded").arg(placement.shardedSlices).arg(placement.slices);
}

std::optional<std::int64_t> readBytes(const QString& text) {
    bool isNumber = false;
    const double number = text.trimmed().toDouble(&isNumber);
    if (isNumber) {
        if (!(number > 0) || number > 1e6)
            return std::nullopt;
        return std::llround(number * static_cast<double>(contract::kGiB));
    }
    const auto bytes = contract::parseBytes(text.trimmed().toStdString());
    if (!bytes || *bytes <= 0)
        return std::nullopt;
    return *bytes;
}

std::optional<double> readSeconds(const QString& text) {
    static const QRegularExpression form(QStringLiteral("^\\s*([0-9.eE+-]+)\\s*(s|ms|us|µs)?\\s*$"));
    const QRegularExpressionMatch match = form.match(text);
    bool isNumber = false;
    const double number = match.captured(1).toDouble(&isNumber);
    if (!isNumber || !(number > 0))
        return std::nullopt;
    const QString unit = match.captured(2);
    const double scale = unit == QLatin1String("ms") ? 1e-3 : unit.isEmpty() || unit == u"s" ? 1 : 1e-6;
    const double seconds = number * scale;
    constexpr double kLongest = 1e6;
    return seconds <= kLongest ? std::optional(seconds) : std::nullopt;
}

} // namespace shardscope::app
