// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPolygonF>
#include <QRectF>

#include <optional>
#include <vector>

namespace shardscope::app {

/// What labels must keep clear of.
struct LabelRoom {
    QRectF area;               ///< labels stay inside
    std::vector<QRectF> taken; ///< marks and other texts
    QPolygonF curve;           ///< a line that no label crosses
};

/// A place for the label of every point, the nearest free one around it; nothing where none is free. Later labels avoid
/// earlier ones.
std::vector<std::optional<QRectF>> placeLabels(const std::vector<QPointF>& points, const std::vector<QSizeF>& sizes,
                                               LabelRoom room);

/// Where a line from the point to its label ends, when the label is so far away that it needs one.
std::optional<QPointF> leaderEnd(const QPointF& point, const QRectF& label);

} // namespace shardscope::app
