// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/Legend.h"

#include "app/look/Theme.h"

#include <QPainter>

namespace shardscope::app {

namespace {

constexpr double kMark = 14;
constexpr double kApart = 14;

double itemWidth(const LegendItem& item) {
    return kMark + QFontMetricsF(smallFont()).horizontalAdvance(item.text);
}

void paintMark(QPainter& painter, const LegendItem& item, double x, double y) {
    painter.setBrush(Qt::NoBrush);
    switch (item.mark) {
    case LegendItem::Mark::Square:
        painter.setPen(Qt::NoPen);
        painter.setBrush(item.brush);
        painter.drawRoundedRect(QRectF(x, y - 4.5, 9, 9), 2, 2);
        break;
    case LegendItem::Mark::Line:
        painter.setPen(QPen(item.brush.color(), 2));
        painter.drawLine(QPointF(x, y), QPointF(x + 10, y));
        break;
    case LegendItem::Mark::Dashes:
        painter.setPen(QPen(item.brush.color(), 1.5, Qt::DashLine));
        painter.drawLine(QPointF(x, y), QPointF(x + 10, y));
        break;
    case LegendItem::Mark::Bracket:
        painter.setPen(QPen(item.brush.color(), 1.5));
        painter.drawPolyline(
            QPolygonF{QPointF(x, y - 3), QPointF(x, y + 2), QPointF(x + 9, y + 2), QPointF(x + 9, y - 3)});
        break;
    }
}

} // namespace

Legend::Legend(QWidget* parent) : QWidget(parent) {
    setAccessibleName(tr("Legend"));
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    setFixedHeight(kLine);
}

void Legend::setItems(Items items) {
    m_items = std::move(items);
    updateGeometry();
    takeHeight();
    update();
}

QSize Legend::sizeHint() const {
    double width = 0;
    if (m_items)
        for (const LegendItem& item : m_items(colorsOf(this)))
            width += itemWidth(item) + kApart;
    return {static_cast<int>(width) + 2, height()};
}

int Legend::linesFor(int width) const {
    int lines = 1;
    double x = 0;
    if (!m_items)
        return lines;
    for (const LegendItem& item : m_items(colorsOf(this))) {
        const double wide = itemWidth(item);
        if (x > 0 && x + wide > width) {
            ++lines;
            x = 0;
        }
        x += wide + kApart;
    }
    return lines;
}

void Legend::takeHeight() {
    setFixedHeight(kLine * linesFor(width()));
}

void Legend::resizeEvent(QResizeEvent*) {
    takeHeight();
}

void Legend::paintEvent(QPaintEvent*) {
    if (!m_items)
        return;
    const Colors& colors = colorsOf(this);
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setFont(smallFont());
    double x = 0, y = 0;
    for (const LegendItem& item : m_items(colors)) {
        const double wide = itemWidth(item);
        if (x > 0 && x + wide > width()) {
            x = 0;
            y += kLine;
        }
        paintMark(painter, item, x, y + kLine / 2.0);
        painter.setPen(colors.secondary);
        painter.drawText(QRectF(x + kMark, y, wide - kMark + 2, kLine), Qt::AlignLeft | Qt::AlignVCenter, item.text);
        x += wide + kApart;
    }
}

std::vector<LegendItem> memoryLegend(const MemoryParts& present, const Colors& colors) {
    std::vector<LegendItem> items;
    for (int i = 0; i < kMemoryPartCount; ++i)
        if (present[static_cast<std::size_t>(i)] > 0)
            items.push_back({partName(static_cast<MemoryPart>(i)), partBrush(static_cast<MemoryPart>(i), colors)});
    return items;
}

Legend::Items mapLegend(const std::vector<MapRow>& rows) {
    MemoryParts present{};
    bool isCoalesced = false;
    for (const MapRow& row : rows) {
        for (std::size_t i = 0; i < present.size(); ++i)
            present[i] += row.memory[i];
        isCoalesced = isCoalesced || row.coalesced;
    }
    return [present, isCoalesced](const Colors& colors) {
        std::vector<LegendItem> items = memoryLegend(present, colors);
        items.push_back({Legend::tr("exposed"), colors.exposed});
        items.push_back({Legend::tr("hidden"), colors.hidden});
        if (isCoalesced)
            items.push_back({Legend::tr("one collective"), colors.exposed, LegendItem::Mark::Bracket});
        return items;
    };
}

std::vector<LegendItem> timelineLegend(const Colors& colors) {
    std::vector<LegendItem> items;
    for (int i = 0; i < kStepPhaseCount; ++i)
        items.push_back({phaseName(static_cast<StepPhase>(i)), phaseBrush(static_cast<StepPhase>(i), colors)});
    return items;
}

} // namespace shardscope::app
