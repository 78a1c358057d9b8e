// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/OperatorMap.h"

#include "app/layout/Gallop.h"
#include "app/look/Theme.h"
#include "app/look/Units.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QToolTip>
#include <QWheelEvent>

#include <algorithm>
#include <cmath>

namespace shardscope::app {

namespace {

constexpr double kMinimumColumn = 20;
constexpr double kGroupGap = 8;
constexpr double kMaximumZoom = 400;

} // namespace

OperatorMap::OperatorMap(QWidget* parent) : QWidget(parent) {
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setAccessibleName(tr("Operator map"));
    setAccessibleDescription(
        tr("Memory and communication of every operator. Arrow keys move, R, K and S place, P pins. "
           "The same numbers are in the table view."));
}

void OperatorMap::setRows(std::vector<MapRow> rows, std::int32_t peakOperator) {
    std::vector<std::int32_t> selected;
    for (std::size_t i = 0; i < m_isSelected.size() && i < m_rows.size(); ++i)
        if (m_isSelected[i])
            selected.push_back(m_rows[i].op);
    const int currentRow = m_current >= 0 && m_current < static_cast<int>(m_columns.columns.size())
                               ? m_columns.columns[static_cast<std::size_t>(m_current)].rows.front()
                               : -1;
    m_rows = std::move(rows);
    m_peakOperator = peakOperator;
    m_scale = scaleOf(m_rows);
    m_columns = foldColumns(m_rows, m_folded);
    m_coalesced = coalescedRuns(m_rows, m_columns);
    gatherFacts();
    m_current = -1;
    for (std::size_t c = 0; c < m_columns.columns.size() && currentRow >= 0; ++c) {
        const auto& members = m_columns.columns[c].rows;
        if (std::find(members.begin(), members.end(), currentRow) != members.end())
            m_current = static_cast<int>(c);
    }
    m_anchor = m_current;
    relayout();
    setSelection(selected);
}

void OperatorMap::setNotice(const QString& notice) {
    m_notice = notice;
    update();
}

void OperatorMap::setSelection(const std::vector<std::int32_t>& operators) {
    m_isSelected.assign(m_rows.size(), false);
    for (std::size_t i = 0; i < m_rows.size(); ++i)
        m_isSelected[i] = std::binary_search(operators.begin(), operators.end(), m_rows[i].op);
    m_selectedRuns.clear();
    for (std::int32_t c = 0; c < static_cast<std::int32_t>(m_columns.columns.size()) && !operators.empty(); ++c) {
        const auto& members = m_columns.columns[static_cast<std::size_t>(c)].rows;
        const bool isSelected = std::any_of(members.begin(), members.end(), [this](std::int32_t row) {
            return m_isSelected[static_cast<std::size_t>(row)];
        });
        if (!isSelected)
            continue;
        if (!m_selectedRuns.empty() && m_selectedRuns.back().last == c - 1)
            m_selectedRuns.back().last = c;
        else
            m_selectedRuns.push_back({c, c});
    }
    update();
}

void OperatorMap::gatherFacts() {
    m_heights.clear();
    m_cells.clear();
    m_pinnedColumns.clear();
    m_peakColumn = -1;
    for (std::int32_t c = 0; c < static_cast<std::int32_t>(m_columns.columns.size()); ++c) {
        const MapRow& row = rowOf(c);
        const MapColumn& column = m_columns.columns[static_cast<std::size_t>(c)];
        m_heights.push_back(row.memoryBytes);
        if (row.pinned)
            m_pinnedColumns.push_back(c);
        if (std::any_of(column.rows.begin(), column.rows.end(), [this](std::int32_t member) {
                return m_rows[static_cast<std::size_t>(member)].op == m_peakOperator;
            }))
            m_peakColumn = c;
        // Neighbours of one group with the same placement share one cell; unfolded, whole runs do.
        const bool isSame = c > 0 && rowOf(c - 1).placement == row.placement &&
                            (!m_folded || m_columns.columns[static_cast<std::size_t>(c - 1)].group == column.group);
        if (isSame)
            m_cells.back().last = c;
        else
            m_cells.push_back({c, c});
    }
}

void OperatorMap::setFolded(bool folded) {
    m_folded = folded;
    fit();
    setRows(std::move(m_rows), m_peakOperator);
}

void OperatorMap::fit() {
    m_zoom = 1;
    m_offset = 0;
    update();
}

OperatorMap::Geometry OperatorMap::geometry() const {
    Geometry g;
    const double width = this->width() - kLeftAxis - 4;
    const double labels = 32;
    const double communication = std::clamp(height() * 0.17, 22.0, 70.0);
    constexpr double kStripe = 17;
    g.plot = QRectF(kLeftAxis, 14, width, height() - 14 - labels - communication - kStripe - 12);
    g.stripe = QRectF(kLeftAxis, g.plot.bottom() + 3, width, kStripe);
    // Between stripe and communication there is room for the brackets of shared collectives.
    g.communication = QRectF(kLeftAxis, g.stripe.bottom() + 7, width, communication);
    g.nameY = g.communication.bottom() + 2;
    g.groupY = g.nameY + 15;
    return g;
}

void OperatorMap::relayout() {
    const double width = std::max(10.0, geometry().plot.width());
    m_spans = placeColumns(m_columns, width, kMinimumColumn, m_folded ? kGroupGap : 0);
}

QRectF OperatorMap::columnRect(int column) const {
    const Geometry g = geometry();
    const Span span = screenSpan(column);
    return {span.begin, g.plot.top(), span.width(), g.communication.bottom() - g.plot.top()};
}

int OperatorMap::columnUnder(double x) const {
    return columnAt(m_spans, (x - kLeftAxis + m_offset) / m_zoom);
}

int OperatorMap::firstBeginningAt(double x, int from) const {
    const double begin = (x - kLeftAxis + m_offset) / m_zoom;
    const auto found =
        gallop(m_spans.begin() + from, m_spans.end(), [begin](const Span& span) { return span.begin < begin; });
    return static_cast<int>(found - m_spans.begin());
}

std::vector<std::int32_t> OperatorMap::operatorsOf(int firstColumn, int lastColumn) const {
    std::vector<std::int32_t> operators;
    for (int c = std::min(firstColumn, lastColumn); c <= std::max(firstColumn, lastColumn); ++c)
        for (const std::int32_t row : m_columns.columns[static_cast<std::size_t>(c)].rows)
            operators.push_back(m_rows[static_cast<std::size_t>(row)].op);
    return operators;
}

void OperatorMap::resizeEvent(QResizeEvent*) {
    relayout();
    fit();
}

void OperatorMap::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton)
        return;
    const int column = columnUnder(event->position().x());
    if (column < 0) {
        m_anchor = m_current = -1;
        Q_EMIT selectionPicked({});
        return;
    }
    if (!(event->modifiers() & Qt::ShiftModifier) || m_anchor < 0)
        m_anchor = column;
    m_current = column;
    Q_EMIT selectionPicked(operatorsOf(m_anchor, m_current));
}

void OperatorMap::mouseMoveEvent(QMouseEvent* event) {
    const int column = columnUnder(event->position().x());
    if ((event->buttons() & Qt::LeftButton) && column >= 0 && m_anchor >= 0 && column != m_current) {
        m_current = column;
        Q_EMIT selectionPicked(operatorsOf(m_anchor, m_current));
    }
    if (column != m_hovered) {
        m_hovered = column;
        if (QToolTip::isVisible() && column >= 0)
            QToolTip::showText(event->globalPosition().toPoint(), describe(column), this);
        update();
    }
}

void OperatorMap::mouseReleaseEvent(QMouseEvent*) {}

void OperatorMap::wheelEvent(QWheelEvent* event) {
    const double x = event->position().x() - kLeftAxis;
    if (event->modifiers() & Qt::ShiftModifier ||
        std::abs(event->angleDelta().x()) > std::abs(event->angleDelta().y())) {
        const int delta = event->angleDelta().x() != 0 ? event->angleDelta().x() : event->angleDelta().y();
        m_offset -= delta;
    } else {
        const double zoom = std::clamp(m_zoom * std::pow(1.0015, event->angleDelta().y()), 1.0, kMaximumZoom);
        m_offset = (m_offset + x) * zoom / m_zoom - x;
        m_zoom = zoom;
    }
    m_offset = std::clamp(m_offset, 0.0, geometry().plot.width() * (m_zoom - 1));
    update();
    event->accept();
}

void OperatorMap::moveCurrent(int step, bool extend) {
    const int count = static_cast<int>(m_columns.columns.size());
    if (count == 0)
        return;
    m_current = m_current < 0 ? (step > 0 ? 0 : count - 1) : std::clamp(m_current + step, 0, count - 1);
    if (!extend || m_anchor < 0)
        m_anchor = m_current;
    const Span span = screenSpan(m_current);
    const QRectF plot = geometry().plot;
    if (span.begin < plot.left())
        m_offset -= plot.left() - span.begin;
    else if (span.end > plot.right())
        m_offset += span.end - plot.right();
    Q_EMIT selectionPicked(operatorsOf(m_anchor, m_current));
}

void OperatorMap::keyPressEvent(QKeyEvent* event) {
    const bool shift = event->modifiers() & Qt::ShiftModifier;
    using contract::PlacementKind;
    switch (event->key()) {
    case Qt::Key_Left:
        moveCurrent(-1, shift);
        return;
    case Qt::Key_Right:
        moveCurrent(1, shift);
        return;
    case Qt::Key_Home:
        fit();
        return;
    case Qt::Key_Escape:
        m_anchor = m_current = -1;
        Q_EMIT selectionPicked({});
        return;
    case Qt::Key_R:
        Q_EMIT placeRequested({PlacementKind::Replicate, 1, 1, contract::ShardGroup::World});
        return;
    case Qt::Key_K:
        Q_EMIT placeRequested({PlacementKind::Keep, 1, 1, contract::ShardGroup::World});
        return;
    case Qt::Key_S:
        Q_EMIT placeRequested({PlacementKind::Shard, 1, 1, contract::ShardGroup::World});
        return;
    case Qt::Key_P:
        Q_EMIT pinToggled();
        return;
    case Qt::Key_Space:
        if (!event->isAutoRepeat() && !m_isComparing) {
            m_isComparing = true;
            Q_EMIT compareHeld(true);
        }
        return;
    default:
        QWidget::keyPressEvent(event);
    }
}

void OperatorMap::keyReleaseEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Space && !event->isAutoRepeat() && m_isComparing) {
        m_isComparing = false;
        Q_EMIT compareHeld(false);
        return;
    }
    QWidget::keyReleaseEvent(event);
}

void OperatorMap::focusOutEvent(QFocusEvent* event) {
    if (m_isComparing) {
        m_isComparing = false;
        Q_EMIT compareHeld(false);
    }
    QWidget::focusOutEvent(event);
}

QString OperatorMap::describe(int column) const {
    const auto& members = m_columns.columns[static_cast<std::size_t>(column)].rows;
    const MapRow& row = m_rows[static_cast<std::size_t>(members.front())];
    const MapGroup& group =
        m_columns.groups[static_cast<std::size_t>(m_columns.columns[static_cast<std::size_t>(column)].group)];
    QString title = row.name;
    if (members.size() > 1)
        title = tr("%1 of %2 equal blocks, %3").arg(row.shortName).arg(members.size()).arg(group.label);
    QString text = QStringLiteral("<b>%1</b><br>%2%3<table cellspacing=0 cellpadding=0>")
                       .arg(title.toHtmlEscaped(), placementWord(row.placement),
                            (row.recompute ? tr(", block recomputed") : QString()) +
                                (row.coalesced ? tr("<br>one collective with its block") : QString()));
    const auto line = [&text](const QString& name, const QString& value) {
        text += QStringLiteral("<tr><td>%1&nbsp;&nbsp;</td><td align=right>%2</td></tr>").arg(name, value);
    };
    for (int i = 0; i < kMemoryPartCount; ++i)
        if (const std::int64_t bytes = row.memory[static_cast<std::size_t>(i)]; bytes > 0)
            line(partName(static_cast<MemoryPart>(i)), bytesText(bytes));
    line(members.size() > 1 ? tr("<b>memory of one</b>") : tr("<b>memory</b>"),
         QStringLiteral("<b>%1</b>").arg(bytesText(row.memoryBytes)));
    line(tr("compute"), secondsText(row.computeSeconds));
    line(tr("communication hidden"), secondsText(row.hiddenSeconds));
    line(tr("communication exposed"), secondsText(row.exposedSeconds));
    return text + QStringLiteral("</table>");
}

bool OperatorMap::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        const int column = columnUnder(help->pos().x());
        if (column >= 0)
            QToolTip::showText(help->globalPos(), describe(column), this);
        else
            QToolTip::hideText();
        return true;
    }
    if (event->type() == QEvent::Leave && m_hovered >= 0) {
        m_hovered = -1;
        update();
    }
    // Space, R, K, S and P belong to the map while it has the focus, whatever shortcuts there are.
    if (event->type() == QEvent::ShortcutOverride) {
        const auto* key = static_cast<QKeyEvent*>(event);
        if (key->modifiers() == Qt::NoModifier &&
            (key->key() == Qt::Key_Space || (key->key() >= Qt::Key_A && key->key() <= Qt::Key_Z))) {
            event->accept();
            return true;
        }
    }
    return QWidget::event(event);
}

} // namespace shardscope::app
