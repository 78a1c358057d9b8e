// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/layout/MemoryParts.h"
#include "app/layout/Ticks.h"
#include "app/look/Theme.h"
#include "app/look/Units.h"
#include "app/views/LossChart.h"
#include "runtime/contract/Bytes.h"

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>

#include <algorithm>

namespace shardscope::app {

MemoryBars::MemoryBars(QWidget* parent) : QWidget(parent) {
    setAccessibleName(tr("Memory of every rank, measured over predicted"));
    setMouseTracking(true);
}

void MemoryBars::setWorkers(const std::vector<RunWorker>& workers) {
    m_workers.clear();
    for (const RunWorker& worker : workers)
        if (worker.memory)
            m_workers.push_back(worker);
    update();
}

MemoryParts MemoryBars::present() const {
    MemoryParts present{};
    for (const RunWorker& worker : m_workers)
        for (const contract::Ledger* ledger : {&worker.memory->predicted, &worker.memory->allocated}) {
            const MemoryParts parts = partsOf(*ledger);
            for (std::size_t i = 0; i < present.size(); ++i)
                present[i] = std::max(present[i], parts[i]);
        }
    return present;
}

QRectF MemoryBars::plot() const {
    return {52, 22, width() - 60.0, height() - 22.0 - 36};
}

void MemoryBars::paintEvent(QPaintEvent*) {
    const Colors& colors = colorsOf(this);
    QPainter painter(this);
    painter.fillRect(rect(), colors.card);
    painter.setFont(smallFont());
    if (m_workers.empty()) {
        painter.setPen(colors.secondary);
        painter.drawText(rect(), Qt::AlignCenter, tr("Workers report their memory after the first step"));
        return;
    }
    const QRectF area = plot();
    std::int64_t top = 1;
    for (const RunWorker& worker : m_workers)
        top = std::max(
            {top, worker.memory->predicted.total(), worker.memory->allocated.total(), worker.memory->peakAllocated});
    const bool inGib = top >= contract::kGiB;
    const auto unit = static_cast<double>(inGib ? contract::kGiB : contract::kMiB);
    const double high = static_cast<double>(top) * 1.1 / unit;
    const Ticks ticks = niceTicks(0, high, std::max(2, static_cast<int>(area.height() / 44)));
    for (const double value : ticks.values) {
        const double y = std::round(area.bottom() - value / high * area.height()) + 0.5;
        painter.setPen(value == 0 ? colors.line : colors.grid);
        painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
        painter.setPen(colors.secondary);
        painter.drawText(QRectF(0, y - 8, area.left() - 7, 16), Qt::AlignRight | Qt::AlignVCenter,
                         QString::number(value, 'f', ticks.decimals));
    }
    painter.setPen(colors.secondary);
    painter.drawText(QRectF(0, 0, area.left() - 7, 16), Qt::AlignRight | Qt::AlignVCenter,
                     inGib ? QStringLiteral("GiB") : QStringLiteral("MiB"));

    const double each = area.width() / static_cast<double>(m_workers.size());
    const double bar = std::clamp(each * 0.3, 3.0, 54.0);
    const QFontMetricsF metrics(painter.font());
    for (std::size_t i = 0; i < m_workers.size(); ++i) {
        const contract::MemoryEvent& memory = *m_workers[i].memory;
        const double center = area.left() + each * (static_cast<double>(i) + 0.5);
        const auto stack = [&](const contract::Ledger& ledger, double left, double opacity) {
            const MemoryParts parts = partsOf(ledger);
            double y = area.bottom();
            painter.setOpacity(opacity);
            for (int part = 0; part < kMemoryPartCount; ++part) {
                const double height =
                    static_cast<double>(parts[static_cast<std::size_t>(part)]) / unit / high * area.height();
                if (height <= 0)
                    continue;
                painter.fillRect(QRectF(left, y - height, bar, height),
                                 partBrush(static_cast<MemoryPart>(part), colors));
                y -= height;
            }
            painter.setOpacity(1);
            return y;
        };
        // Predicted pale behind, measured solid in front of it.
        const double predictedTop = stack(memory.predicted, center - bar - 1, 0.45);
        const double y = stack(memory.allocated, center + 1, 1);
        const double peak = area.bottom() - static_cast<double>(memory.peakAllocated) / unit / high * area.height();
        if (std::abs(peak - y) > 1.5) {
            painter.setPen(QPen(colors.text, 1.5));
            painter.drawLine(QPointF(center - 1, peak), QPointF(center + bar + 3, peak));
        }
        painter.setPen(colors.text);
        const double predicted = static_cast<double>(memory.predicted.total());
        const QString difference =
            predicted > 0 ? signedPercentText(static_cast<double>(memory.peakAllocated) / predicted - 1) : QString();
        if (metrics.horizontalAdvance(difference) < each - 4)
            painter.drawText(QRectF(center - each / 2, std::min({peak, y, predictedTop}) - 18, each, 16),
                             Qt::AlignCenter, difference);
        const QString rank = tr("rank %1").arg(m_workers[i].rank);
        painter.drawText(QRectF(center - each / 2, area.bottom() + 3, each, 15), Qt::AlignCenter,
                         metrics.horizontalAdvance(rank) < each - 4 ? rank : QString::number(m_workers[i].rank));
    }
    painter.setPen(colors.secondary);
    painter.drawText(QRectF(area.left(), area.bottom() + 19, area.width(), 15), Qt::AlignCenter,
                     tr("left, pale: predicted · right: measured · the line is the measured peak"));
}

bool MemoryBars::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip && !m_workers.empty()) {
        const auto* help = static_cast<QHelpEvent*>(event);
        const QRectF area = plot();
        const auto index =
            static_cast<int>((help->pos().x() - area.left()) / area.width() * static_cast<double>(m_workers.size()));
        if (index < 0 || index >= static_cast<int>(m_workers.size()))
            return true;
        const RunWorker& worker = m_workers[static_cast<std::size_t>(index)];
        const MemoryParts predicted = partsOf(worker.memory->predicted), allocated = partsOf(worker.memory->allocated);
        QString text = tr("<b>rank %1</b><table cellspacing=0 cellpadding=0><tr><td></td><td "
                          "align=right>&nbsp;&nbsp;predicted</td><td align=right>&nbsp;&nbsp;measured</td></tr>")
                           .arg(worker.rank);
        const auto line = [&](const QString& name, std::int64_t a, std::int64_t b) {
            text += QStringLiteral(
                        "<tr><td>%1</td><td align=right>&nbsp;&nbsp;%2</td><td align=right>&nbsp;&nbsp;%3</td></tr>")
                        .arg(name, bytesText(a), bytesText(b));
        };
        for (std::size_t i = 0; i < predicted.size(); ++i)
            if (predicted[i] > 0 || allocated[i] > 0)
                line(partName(static_cast<MemoryPart>(i)), predicted[i], allocated[i]);
        line(tr("peak"), worker.memory->predicted.total(), worker.memory->peakAllocated);
        QToolTip::showText(help->globalPos(), text + "</table>", this);
        return true;
    }
    return QWidget::event(event);
}

} // namespace shardscope::app
