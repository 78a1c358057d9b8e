// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/layout/PointLabels.h"

#include <QLineF>

#include <algorithm>
#include <array>
#include <cmath>

namespace shardscope::app {

namespace {

/// From the point's centre to the nearest label, and how much farther each next ring of candidates is.
constexpr double kNearest = 8;
constexpr double kRing = 9;
constexpr int kRings = 8;

bool crosses(const QPolygonF& curve, const QRectF& box) {
    const std::array<QLineF, 4> sides{QLineF(box.topLeft(), box.topRight()), QLineF(box.topRight(), box.bottomRight()),
                                      QLineF(box.bottomRight(), box.bottomLeft()),
                                      QLineF(box.bottomLeft(), box.topLeft())};
    for (int i = 1; i < curve.size(); ++i) {
        if (box.contains(curve[i]) || box.contains(curve[i - 1]))
            return true;
        // What lies to one side of the box cannot cross it.
        if (std::max(curve[i].x(), curve[i - 1].x()) < box.left() ||
            std::min(curve[i].x(), curve[i - 1].x()) > box.right())
            continue;
        const QLineF segment(curve[i - 1], curve[i]);
        for (const QLineF& side : sides)
            if (segment.intersects(side, nullptr) == QLineF::BoundedIntersection)
                return true;
    }
    return false;
}

} // namespace

std::vector<std::optional<QRectF>> placeLabels(const std::vector<QPointF>& points, const std::vector<QSizeF>& sizes,
                                               LabelRoom room) {
    // Beside, below and above first; slanted places after them.
    constexpr std::array<std::pair<double, double>, 8> kDirections{
        {{1, 0}, {0, 1}, {0, -1}, {-1, 0}, {1, 1}, {-1, 1}, {1, -1}, {-1, -1}}};
    std::vector<std::optional<QRectF>> places(points.size());
    std::vector<QRectF> labels;
    std::vector<QLineF> leaders;
    for (std::size_t i = 0; i < points.size(); ++i) {
        for (int ring = 0; ring < kRings && !places[i]; ++ring) {
            const double away = kNearest + ring * kRing;
            for (const auto& [dx, dy] : kDirections) {
                const QSizeF size = sizes[i];
                const QPointF center(points[i].x() + dx * (away + size.width() / 2),
                                     points[i].y() + dy * (away + size.height() / 2));
                const QRectF box(center.x() - size.width() / 2, center.y() - size.height() / 2, size.width(),
                                 size.height());
                const auto leaderTo = leaderEnd(points[i], box);
                const QLineF leader(points[i], leaderTo.value_or(points[i]));
                const bool isFree = room.area.contains(box) && !crosses(room.curve, box.adjusted(-3, -2, 3, 2)) &&
                                    std::none_of(room.taken.begin(), room.taken.end(),
                                                 [&](const QRectF& other) { return other.intersects(box); }) &&
                                    std::none_of(leaders.begin(), leaders.end(),
                                                 [&](const QLineF& other) {
                                                     return crosses({other.p1(), other.p2()}, box);
                                                 }) &&
                                    (!leaderTo || std::none_of(labels.begin(), labels.end(), [&](const QRectF& other) {
                                        return crosses({leader.p1(), leader.p2()}, other);
                                    }));
                if (!isFree)
                    continue;
                places[i] = box;
                labels.push_back(box);
                if (leaderTo)
                    leaders.push_back(leader);
                room.taken.push_back(box.adjusted(-4, -2, 4, 2));
                break;
            }
        }
    }
    return places;
}

std::optional<QPointF> leaderEnd(const QPointF& point, const QRectF& label) {
    const QPointF end(std::clamp(point.x(), label.left() - 1, label.right() + 1),
                      std::clamp(point.y(), label.top() - 1, label.bottom() + 1));
    if (std::hypot(end.x() - point.x(), end.y() - point.y()) < kNearest + kRing)
        return std::nullopt;
    return end;
}

} // namespace shardscope::app
