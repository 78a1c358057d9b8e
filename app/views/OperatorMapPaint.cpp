// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/layout/Gallop.h"
#include "app/layout/Ticks.h"
#include "app/look/Theme.h"
#include "app/look/Units.h"
#include "app/views/OperatorMap.h"
#include "app/views/PixelBars.h"
#include "runtime/contract/Bytes.h"

#include <QPainter>
#include <QPainterPath>

#include <algorithm>
#include <array>
#include <cmath>

namespace shardscope::app {

namespace {

/// Bars fill this much of the height.
constexpr double kFill = 0.9;
/// Under this width columns are no longer drawn one by one.
constexpr double kThin = 1.5;

double innerGap(double width) {
    return width > 24 ? 2 : width > 6 ? 1 : 0;
}

} // namespace

void OperatorMap::paintEvent(QPaintEvent*) {
    const Colors& colors = colorsOf(this);
    QPainter painter(this);
    painter.fillRect(rect(), colors.card);
    painter.setRenderHint(QPainter::TextAntialiasing);
    const Geometry g = geometry();
    painter.setFont(smallFont());
    if (m_rows.empty())
        return;
    paintAxes(painter, g, colors);
    painter.save();
    painter.setClipRect(QRectF(g.plot.left() - 1, 0, g.plot.width() + 2, height()));
    paintBars(painter, g, colors);
    paintStripe(painter, g, colors);
    paintCoalescing(painter, g, colors);
    paintLabels(painter, g, colors);
    paintMarks(painter, g, colors);
    painter.restore();
    if (!m_notice.isEmpty()) {
        painter.setFont(smallBoldFont());
        const QFontMetricsF metrics(painter.font());
        const QRectF box(g.plot.right() - metrics.horizontalAdvance(m_notice) - 22, g.plot.top() - 10,
                         metrics.horizontalAdvance(m_notice) + 20, 20);
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(Qt::NoPen);
        painter.setBrush(colors.accent);
        painter.drawRoundedRect(box, 10, 10);
        painter.setPen(colors.onAccent);
        painter.drawText(box, Qt::AlignCenter, m_notice);
    }
    if (hasFocus()) {
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setBrush(Qt::NoBrush);
        painter.setPen(QPen(colors.accent, 1));
        painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 4, 4);
    }
}

void OperatorMap::paintAxes(QPainter& painter, const Geometry& g, const Colors& colors) const {
    const bool inGib = m_scale.top >= contract::kGiB;
    const auto unit = static_cast<double>(inGib ? contract::kGiB : contract::kMiB);
    const double top = static_cast<double>(m_scale.top) / kFill / unit;
    const Ticks ticks = niceTicks(0, top, std::max(2, static_cast<int>(g.plot.height() / 26)));
    for (const double value : ticks.values) {
        const double y = std::round(g.plot.bottom() - value / top * g.plot.height()) + 0.5;
        painter.setPen(value == 0 ? colors.line : colors.grid);
        painter.drawLine(QPointF(g.plot.left(), y), QPointF(g.plot.right(), y));
        if (y < g.plot.top() + 9)
            continue;
        painter.setPen(colors.secondary);
        painter.drawText(QRectF(0, y - 8, g.plot.left() - 6, 16), Qt::AlignRight | Qt::AlignVCenter,
                         QString::number(value, 'f', ticks.decimals));
    }
    painter.setPen(colors.secondary);
    painter.drawText(QRectF(0, g.plot.top() - 12, g.plot.left() - 6, 16), Qt::AlignRight | Qt::AlignVCenter,
                     inGib ? QStringLiteral("GiB") : QStringLiteral("MiB"));
    if (m_scale.communicationTop > 0) {
        painter.drawText(QRectF(0, g.communication.top() - 2, g.plot.left() - 6, 14), Qt::AlignRight | Qt::AlignVCenter,
                         QStringLiteral("ms"));
        const double topMs = m_scale.communicationTop / kFill * 1e3;
        const Ticks ms = niceTicks(0, topMs, std::max(1, static_cast<int>(g.communication.height() / 16)));
        for (const double value : ms.values) {
            if (value == 0)
                continue;
            const double y = std::round(g.communication.top() + value / topMs * g.communication.height()) + 0.5;
            painter.setPen(colors.grid);
            painter.drawLine(QPointF(g.plot.left(), y), QPointF(g.plot.right(), y));
            if (y < g.communication.top() + 16)
                continue;
            painter.setPen(colors.secondary);
            painter.drawText(QRectF(0, y - 8, g.plot.left() - 6, 16), Qt::AlignRight | Qt::AlignVCenter,
                             QString::number(value, 'f', ms.decimals));
        }
    }
}

/// Rectangles by colour: a thousand drawn at once take a fraction of a thousand drawn alone.
struct OperatorMap::BarBatch {
    std::array<QList<QRectF>, kMemoryPartCount> parts;
    QList<QRectF> exposed, hidden;
    void reserve(qsizetype count) {
        for (QList<QRectF>& part : parts)
            part.reserve(count);
        exposed.reserve(count);
        hidden.reserve(count);
    }
    bool isEmpty() const {
        return exposed.isEmpty() && std::all_of(parts.begin(), parts.end(), [](const auto& p) { return p.isEmpty(); });
    }
};

void OperatorMap::addBar(BarBatch& batch, const Geometry& g, const MapRow& row, double left, double right) const {
    const double perByte = g.plot.height() * kFill / static_cast<double>(std::max<std::int64_t>(m_scale.top, 1));
    const double ceiling = g.plot.top() - 4;
    double y = g.plot.bottom();
    for (std::size_t i = 0; i < row.memory.size(); ++i) {
        if (row.memory[i] <= 0)
            continue;
        const double top = std::max(ceiling, y - static_cast<double>(row.memory[i]) * perByte);
        batch.parts[i] << QRectF(left, top, right - left, y - top);
        y = top;
        if (y <= ceiling)
            break;
    }
    if (m_scale.communicationTop <= 0)
        return;
    const double perSecond = g.communication.height() * kFill / m_scale.communicationTop;
    const double room = g.communication.height();
    const double exposed = std::min(room, row.exposedSeconds * perSecond);
    const double hidden = std::min(room - exposed, row.hiddenSeconds * perSecond);
    batch.exposed << QRectF(left, g.communication.top(), right - left, exposed);
    batch.hidden << QRectF(left, g.communication.top() + exposed, right - left, hidden);
}

void OperatorMap::paintPixels(QPainter& painter, const Geometry& g, const Colors& colors, const BarBatch& batch) const {
    if (batch.isEmpty())
        return;
    if (!PixelBars::isMeantFor(painter)) {
        paintBatch(painter, colors, batch);
        return;
    }
    PixelBars bars(painter, QRectF(QPointF(g.plot.left(), g.plot.top() - 4), g.communication.bottomRight()));
    for (std::size_t i = 0; i < batch.parts.size(); ++i)
        bars.fill(batch.parts[i], partBrush(static_cast<MemoryPart>(i), colors));
    bars.fill(batch.exposed, colors.exposed);
    bars.fill(batch.hidden, colors.hidden);
    bars.paint(painter);
}

void OperatorMap::paintBatch(QPainter& painter, const Colors& colors, const BarBatch& batch) const {
    painter.setPen(Qt::NoPen);
    const auto draw = [&painter](const QList<QRectF>& boxes, const QBrush& brush) {
        if (boxes.isEmpty())
            return;
        painter.setBrush(brush);
        painter.drawRects(boxes);
    };
    for (std::size_t i = 0; i < batch.parts.size(); ++i)
        draw(batch.parts[i], partBrush(static_cast<MemoryPart>(i), colors));
    draw(batch.exposed, colors.exposed);
    draw(batch.hidden, colors.hidden);
}

void OperatorMap::paintBars(QPainter& painter, const Geometry& g, const Colors& colors) const {
    const int count = static_cast<int>(m_columns.columns.size());
    BarBatch batch, pixels;
    QList<std::int32_t> wide;
    for (int c = std::max(0, columnUnder(g.plot.left() + 0.5)); c < count;) {
        const Span span = screenSpan(c);
        if (span.begin > g.plot.right())
            break;
        if (span.width() >= kThin) {
            addBar(batch, g, rowOf(c), std::round(span.begin),
                   std::max(std::round(span.begin) + 1, std::round(span.end) - innerGap(span.width())));
            wide << c++;
            continue;
        }
        // Several columns begin in a pixel: the tallest stands for all but a wide one, which can only be the last.
        const auto pixel = static_cast<int>(span.begin);
        if (pixels.isEmpty())
            pixels.reserve(static_cast<qsizetype>(g.plot.width()) + 2);
        int end = firstBeginningAt(pixel + 1, c + 1);
        if (end - 1 > c && screenSpan(end - 1).width() >= kThin)
            --end;
        const auto tallest = std::max_element(m_heights.begin() + c, m_heights.begin() + end);
        addBar(pixels, g, rowOf(static_cast<std::int32_t>(tallest - m_heights.begin())), pixel, pixel + 1);
        c = end;
    }
    paintPixels(painter, g, colors, pixels);
    paintBatch(painter, colors, batch);
    for (const std::int32_t c : wide)
        paintCuts(painter, g, colors, c);
}

void OperatorMap::paintCuts(QPainter& painter, const Geometry& g, const Colors& colors, std::int32_t column) const {
    const Span span = screenSpan(column);
    const MapRow& row = rowOf(column);
    // Hairlines tell that one wide bar stands for many equal operators.
    const auto members = static_cast<double>(m_columns.columns[static_cast<std::size_t>(column)].rows.size());
    if (members > 1 && span.width() / members >= 4) {
        painter.setPen(QPen(colors.card, 1));
        for (double i = 1; i < members; ++i) {
            const double x = std::round(span.begin + (span.width() - innerGap(span.width())) * i / members) + 0.5;
            painter.drawLine(QPointF(x, g.plot.top() - 4), QPointF(x, g.plot.bottom()));
            painter.drawLine(QPointF(x, g.communication.top()), QPointF(x, g.communication.bottom()));
        }
    }
    // A bar that goes on beyond its axis is torn.
    const auto tear = [&](double y) {
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(QPen(colors.card, 3));
        painter.drawLine(QPointF(span.begin - 1, y + 3), QPointF(span.end + 1, y - 3));
        painter.setRenderHint(QPainter::Antialiasing, false);
    };
    const double perByte = g.plot.height() * kFill / static_cast<double>(std::max<std::int64_t>(m_scale.top, 1));
    if (static_cast<double>(row.memoryBytes) * perByte > g.plot.height() + 4)
        tear(g.plot.top() + 9);
    if (m_scale.communicationTop > 0 &&
        (row.exposedSeconds + row.hiddenSeconds) * kFill > 1.01 * m_scale.communicationTop)
        tear(g.communication.bottom() - 8);
}

void OperatorMap::paintStripe(QPainter& painter, const Geometry& g, const Colors& colors) const {
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setFont(smallBoldFont());
    const QFontMetricsF metrics(painter.font());
    const std::int32_t leftmost = std::max(0, columnUnder(g.plot.left() + 0.5));
    auto cell = std::lower_bound(m_cells.begin(), m_cells.end(), leftmost,
                                 [](const Run& run, std::int32_t column) { return run.last < column; });
    int pixel = -1;
    for (auto next = cell; cell != m_cells.end(); cell = next) {
        ++next;
        const Span first = screenSpan(cell->first), last = screenSpan(cell->last);
        if (first.begin > g.plot.right())
            break;
        const double right = last.end - innerGap(last.width());
        const bool isThin = right - first.begin < kThin;
        // Of several cells in a pixel the first is seen.
        if (isThin && static_cast<int>(first.begin) == pixel)
            continue;
        pixel = static_cast<int>(first.begin);
        if (isThin) // those that end in this pixel too are not looked at
            next = gallop(next, m_cells.end(), [&](const Run& run) { return screenSpan(run.last).end <= pixel + 1; });
        const contract::Placement& placement = rowOf(cell->first).placement;
        const bool isKept = placement.kind == contract::PlacementKind::Keep;
        const QColor ground = placement.isSharded() ? colors.shardStripe : isKept ? colors.secondary : colors.grid;
        if (isThin) {
            painter.fillRect(QRectF(pixel, g.stripe.top(), 1, g.stripe.height()), ground);
            continue;
        }
        const QRectF box(std::round(first.begin), g.stripe.top(),
                         std::max(1.0, std::round(right) - std::round(first.begin)), g.stripe.height());
        const double corner = box.width() > 8 ? 4 : 0;
        if (isKept) {
            painter.setPen(QPen(ground, 1));
            painter.setBrush(colors.card);
            painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), corner, corner);
        } else {
            painter.setPen(Qt::NoPen);
            painter.setBrush(ground);
            painter.drawRoundedRect(box, corner, corner);
        }
        QString letter = placementLetter(placement);
        if (metrics.horizontalAdvance(letter) + 2 > box.width())
            letter.truncate(1);
        const QRectF visible = box.intersected(g.stripe);
        if (metrics.horizontalAdvance(letter) + 2 <= visible.width()) {
            painter.setPen(placement.isSharded() ? colors.onShardStripe : colors.text);
            painter.drawText(visible, Qt::AlignCenter, letter);
        }
    }
    painter.setRenderHint(QPainter::Antialiasing, false);
}

void OperatorMap::paintCoalescing(QPainter& painter, const Geometry& g, const Colors& colors) const {
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(colors.exposed, 1.5));
    const double y = g.stripe.bottom() + 4.5;
    double lineBegin = 0, lineEnd = -1e9;
    const auto drawLine = [&] {
        if (lineEnd > lineBegin)
            painter.drawLine(QPointF(lineBegin, y), QPointF(lineEnd, y));
        lineEnd = -1e9;
    };
    auto run = std::partition_point(m_coalesced.begin(), m_coalesced.end(),
                                    [&](const CoalescedRun& r) { return screenSpan(r.last).end < g.plot.left(); });
    for (auto next = run; run != m_coalesced.end(); run = next) {
        ++next;
        const Span first = screenSpan(run->first), last = screenSpan(run->last);
        const double begin = first.begin + 1, end = last.end - innerGap(last.width()) - 1;
        if (end < g.plot.left())
            continue;
        if (begin > g.plot.right())
            break;
        if (end - begin < 5) {
            // Too many blocks for brackets: one line under all of them.
            if (begin > lineEnd + 2) {
                drawLine();
                lineBegin = begin;
            }
            lineEnd = std::max(lineEnd, end + 1);
            // Those inside the line change nothing.
            next = gallop(next, m_coalesced.end(),
                          [&](const CoalescedRun& r) { return screenSpan(r.last).end <= lineEnd; });
            continue;
        }
        painter.drawLine(QPointF(begin, y), QPointF(end, y));
        // A tick up to every operator that takes part.
        for (std::int32_t c = run->first; c <= run->last; ++c) {
            if (!rowOf(c).coalesced)
                continue;
            const double x = c == run->first ? begin : c == run->last ? end : screenSpan(c).center();
            painter.drawLine(QPointF(x, y), QPointF(x, g.stripe.bottom() + 1.5));
        }
    }
    drawLine();
    painter.setRenderHint(QPainter::Antialiasing, false);
}

void OperatorMap::paintLabels(QPainter& painter, const Geometry& g, const Colors& colors) const {
    painter.setFont(smallFont());
    const QFontMetricsF metrics(painter.font());
    double groupEnd = -1e9, nameEnd = -1e9;
    // Measuring text is slow: labels as long as one that was too wide are not measured while there are many.
    constexpr qsizetype kLengths = 64;
    std::array<double, kLengths> widthOfLength{};
    const auto first = std::lower_bound(
        m_columns.groups.begin(), m_columns.groups.end(), g.plot.left(),
        [this](const MapGroup& group, double left) { return screenSpan(group.lastColumn).end < left; });
    auto next = first;
    for (auto group = first; group != m_columns.groups.end(); group = next) {
        ++next;
        const double begin = screenSpan(group->firstColumn).begin, end = screenSpan(group->lastColumn).end;
        if (begin > g.plot.right())
            break;
        const double left = std::max(begin, g.plot.left()), right = std::min(end, g.plot.right());
        double& known = widthOfLength[static_cast<std::size_t>(std::min(group->label.size(), kLengths - 1))];
        const bool isTooNarrow = right - left < known && (left + right - known) / 2 <= groupEnd + 8;
        if (group->blocks > 0 && !isTooNarrow)
            known = paintGroupLabel(painter, g, colors, *group, left, right, groupEnd);
        // Columns this thin have no names, and no group under the last label has one of its own.
        if (end - begin < kThin * (group->lastColumn - group->firstColumn + 1)) {
            next = gallop(next, m_columns.groups.end(),
                          [&](const MapGroup& other) { return screenSpan(other.lastColumn).end <= groupEnd + 8; });
            continue;
        }
        for (std::int32_t c = group->firstColumn; c <= group->lastColumn; ++c) {
            const Span span = screenSpan(c);
            if (span.end < g.plot.left() || span.begin > g.plot.right() || span.center() < nameEnd + 6)
                continue;
            QString name = rowOf(c).shortName;
            if (metrics.horizontalAdvance(name) > span.width() - 4)
                name = name.mid(name.lastIndexOf('.') + 1);
            const double width = metrics.horizontalAdvance(name);
            // Operators outside blocks may reach into the empty space beside them.
            const double room = group->blocks > 0 ? span.width() - 2 : span.width() + 20;
            double x = std::max(span.center() - width / 2, g.plot.left());
            x = std::min(x, g.plot.right() - width);
            if (width > room || x < nameEnd + 6)
                continue;
            painter.setPen(colors.secondary);
            painter.drawText(QRectF(x, g.nameY, width + 2, 15), Qt::AlignLeft | Qt::AlignVCenter, name);
            nameEnd = x + width;
        }
    }
}

double OperatorMap::paintGroupLabel(QPainter& painter, const Geometry& g, const Colors& colors, const MapGroup& group,
                                    double left, double right, double& groupEnd) const {
    const QFontMetricsF metrics(painter.font());
    QString label = group.blocks > 1 ? QStringLiteral("%1  ×%2").arg(group.label).arg(group.blocks) : group.label;
    const QString withRecompute = label + (rowOf(group.firstColumn).recompute ? tr(" · recomputed") : QString());
    if (metrics.horizontalAdvance(withRecompute) <= right - left)
        label = withRecompute;
    const double width = metrics.horizontalAdvance(label);
    const double x =
        std::clamp((left + right) / 2 - width / 2, g.plot.left(), std::max(g.plot.left(), g.plot.right() - width));
    if (x <= groupEnd + 8 || (width > right - left + 6 && m_folded))
        return width;
    painter.setPen(colors.text);
    painter.drawText(QRectF(x, g.groupY, width + 2, 15), Qt::AlignLeft | Qt::AlignVCenter, label);
    groupEnd = x + width;
    if (right - left > width + 24) {
        painter.setPen(colors.line);
        painter.drawLine(QPointF(left, g.groupY + 7.5), QPointF(x - 6, g.groupY + 7.5));
        painter.drawLine(QPointF(x + width + 6, g.groupY + 7.5), QPointF(right - 2, g.groupY + 7.5));
    }
    return width;
}

void OperatorMap::paintMarks(QPainter& painter, const Geometry& g, const Colors& colors) const {
    painter.setRenderHint(QPainter::Antialiasing);
    const double top = g.plot.top() - 6, bottom = g.communication.bottom() + 1;
    if (m_hovered >= 0 && m_hovered < static_cast<int>(m_columns.columns.size())) {
        const Span span = screenSpan(m_hovered);
        QColor wash = colors.text;
        wash.setAlphaF(0.05F);
        painter.fillRect(QRectF(span.begin, top, span.width(), bottom - top), wash);
    }
    QColor wash = colors.accent;
    wash.setAlphaF(0.12F);
    double drawnTo = -1e9;
    for (const Run& run : m_selectedRuns) {
        const double begin = screenSpan(run.first).begin, end = screenSpan(run.last).end;
        if (end < g.plot.left() || (end - begin < kThin && begin < drawnTo))
            continue;
        if (begin > g.plot.right())
            break;
        const QRectF box(begin - 1.5, top, std::max(3.0, end - begin + 2), bottom - top);
        painter.setPen(QPen(colors.accent, 1.5));
        painter.setBrush(wash);
        painter.drawRoundedRect(box, 3, 3);
        drawnTo = box.right();
    }
    for (const std::int32_t c : m_pinnedColumns) {
        const Span span = screenSpan(c);
        if (span.end >= g.plot.left() && span.begin <= g.plot.right() && span.width() >= 8)
            drawGlyph(painter, Glyph::Pin, QRectF(span.center() - 6, g.plot.bottom() - 14, 11, 11), colors.text);
    }
    if (m_peakColumn >= 0)
        paintPeak(painter, g, colors, screenSpan(m_peakColumn));
    painter.setRenderHint(QPainter::Antialiasing, false);
}

void OperatorMap::paintPeak(QPainter& painter, const Geometry& g, const Colors& colors, const Span& span) const {
    if (span.end < g.plot.left() || span.begin > g.plot.right())
        return;
    painter.setFont(smallFont());
    const QFontMetricsF metrics(painter.font());
    const QString text = tr("sets the peak");
    const double width = metrics.horizontalAdvance(text);
    const double x = span.center();
    const bool isLeft = x + width + 14 > g.plot.right();
    painter.setPen(QPen(colors.limit, 1.5));
    painter.drawLine(QPointF(x, 2), QPointF(x, g.plot.top() - 1));
    QPainterPath flag;
    const double side = isLeft ? -1 : 1;
    flag.moveTo(x, 2);
    flag.lineTo(x + side * 7, 5);
    flag.lineTo(x, 8);
    flag.closeSubpath();
    painter.fillPath(flag, colors.limit);
    // The frame of a selection must not go through the words.
    const QRectF words(isLeft ? x - width - 12 : x + 11, -2, width + 2, 14);
    painter.fillRect(words.adjusted(-1, 0, 1, 0), colors.card);
    painter.setPen(colors.text);
    painter.drawText(words, Qt::AlignLeft | Qt::AlignVCenter, text);
}

} // namespace shardscope::app
