// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/MemoryView.h"

#include "app/layout/Ticks.h"
#include "app/look/Theme.h"
#include "app/look/Units.h"
#include "runtime/contract/Bytes.h"

#include <QPainter>

#include <algorithm>
#include <cmath>

namespace shardscope::app {

namespace {

/// A limit further above the peak than this is named, not drawn: the curve must stay readable.
constexpr double kNearLimit = 1.7;

} // namespace

MemoryView::MemoryView(QWidget* parent) : TimeChart(parent) {
    setAccessibleName(tr("Memory over one step"));
    setAccessibleDescription(tr("Bytes in use on a device over one simulated step, by category. Left and right move, "
                                "plus and minus zoom, Home shows the whole step."));
}

void MemoryView::setPicture(const StepPicturePointer& picture) {
    m_present = {};
    if (picture)
        for (const MemoryBand& band : picture->bands)
            for (std::size_t i = 0; i < m_present.size(); ++i)
                m_present[i] = std::max(m_present[i], band.parts[i]);
    TimeChart::setPicture(picture);
}

QString MemoryView::summary() const {
    if (!hasPicture())
        return {};
    return tr("at most %1 in use, at %2 · %3 planned")
        .arg(bytesText(picture()->peakInUseBytes), secondsText(planner::toSeconds(picture()->peakPicoseconds)),
             bytesText(picture()->plan->peakBytes));
}

double MemoryView::topBytes() const {
    const auto peak = static_cast<double>(std::max(picture()->plan->peakBytes, picture()->peakInUseBytes));
    const auto limit = static_cast<double>(picture()->plan->limitBytes);
    return 1.12 * (limit <= kNearLimit * peak ? std::max(limit, peak) : peak);
}

void MemoryView::paintChart(QPainter& painter, const Colors& colors) {
    const QRectF area = plot();
    const double top = topBytes();
    const bool inGib = top >= contract::kGiB;
    const auto unit = static_cast<double>(inGib ? contract::kGiB : contract::kMiB);
    const Ticks ticks = niceTicks(0, top / unit, std::max(2, static_cast<int>(area.height() / 26)));
    for (const double value : ticks.values) {
        const double y = std::round(area.bottom() - value * unit / top * area.height()) + 0.5;
        painter.setPen(colors.grid);
        painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
        if (y < area.top() + 6 || value == 0)
            continue;
        painter.setPen(colors.secondary);
        painter.drawText(QRectF(0, y - 8, area.left() - 8, 16), Qt::AlignRight | Qt::AlignVCenter,
                         tickText(value, ticks.decimals) + (inGib ? QStringLiteral(" GiB") : QStringLiteral(" MiB")));
    }
    const auto columns = bandsOfColumns(picture()->bands, window(), std::max(1, static_cast<int>(area.width())));
    const auto areas = stackBands(picture()->bands, columns, area, top);
    painter.setPen(Qt::NoPen);
    for (int part = 0; part < kMemoryPartCount; ++part) {
        if (areas[static_cast<std::size_t>(part)].isEmpty())
            continue;
        painter.setBrush(partBrush(static_cast<MemoryPart>(part), colors));
        painter.drawPolygon(areas[static_cast<std::size_t>(part)]);
    }

    // The planned peak includes what the arenas hold without use; nothing in use may pass it.
    const MemoryUnit words = memoryUnit(static_cast<std::int64_t>(top));
    const std::int64_t peak = picture()->plan->peakBytes, limit = picture()->plan->limitBytes;
    const double peakY = area.bottom() - static_cast<double>(peak) / top * area.height();
    const double limitY = area.bottom() - static_cast<double>(limit) / top * area.height();
    if (static_cast<double>(limit) > kNearLimit * static_cast<double>(peak)) {
        painter.setPen(colors.secondary);
        painter.drawText(QRectF(area.left(), area.top() - 3, area.width() - 4, 15), Qt::AlignRight | Qt::AlignVCenter,
                         tr("budget %1, above this axis").arg(words.text(limit)));
    } else {
        paintLine(painter, colors, limitY, colors.limit, tr("budget %1").arg(words.text(limit)), true);
    }
    paintLine(painter, colors, peakY, colors.text, tr("peak %1").arg(words.text(peak)), false);
}

void MemoryView::paintLine(QPainter& painter, const Colors& colors, double y, const QColor& color, const QString& text,
                           bool isLimit) const {
    const QRectF area = plot();
    painter.setPen(QPen(color, 1.5, isLimit ? Qt::SolidLine : Qt::DashLine));
    painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
    const double width = QFontMetricsF(painter.font()).horizontalAdvance(text);
    // The two labels sit at opposite ends, each on a ground of its own so that bars do not run through it.
    const QRectF box(isLimit ? area.right() - width - 10 : area.left() + 4, y - 17, width + 6, 14);
    if (box.top() < area.top() - 4)
        return;
    painter.setPen(Qt::NoPen);
    painter.fillRect(box, colors.card);
    painter.setPen(colors.text);
    painter.drawText(box, Qt::AlignCenter, text);
}

QString MemoryView::describe(const QPointF& position) const {
    const QRectF area = plot();
    if (!hasPicture() || picture()->bands.empty() || position.x() < area.left() || position.x() > area.right())
        return {};
    const int count = std::max(1, static_cast<int>(area.width()));
    const auto columns = bandsOfColumns(picture()->bands, window(), count);
    const int column = std::clamp(static_cast<int>((position.x() - area.left()) / area.width() * count), 0, count - 1);
    const MemoryBand& band = picture()->bands[columns[static_cast<std::size_t>(column)]];
    QString text =
        tr("<b>at %1</b><table cellspacing=0 cellpadding=0>").arg(secondsText(planner::toSeconds(band.picoseconds)));
    const auto line = [&text](const QString& name, std::int64_t bytes) {
        text += QStringLiteral("<tr><td>%1&nbsp;&nbsp;</td><td align=right>%2</td></tr>").arg(name, bytesText(bytes));
    };
    for (int part = kMemoryPartCount - 1; part >= 0; --part)
        if (band.parts[static_cast<std::size_t>(part)] > 0)
            line(partName(static_cast<MemoryPart>(part)), band.parts[static_cast<std::size_t>(part)]);
    line(tr("<b>in use</b>"), band.total);
    return text + QStringLiteral("</table>");
}

} // namespace shardscope::app
