// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/layout/FrontierAxis.h"

#include <QWidget>

namespace shardscope::app {

struct Colors;

/// A plan drawn as a point beside the curve.
struct PlanPoint {
    QString name;
    std::int64_t peakBytes = 0;
    double samplesPerSecond = 0;
    bool isSaved = false;
};

/// Everything the chart shows; replaced as a whole.
struct FrontierPicture {
    planner::Frontier frontier;
    std::vector<planner::Baseline> baselines;
    std::vector<PlanPoint> saved;
    std::int64_t cardBytes = 0;
    std::int64_t budgetBytes = 0;
    std::int64_t smallestBytes = 0; ///< 0 when unknown
    std::int64_t peakBytes = 0;     ///< of the current plan; 0 when there is none
    double samplesPerSecond = 0;    ///< of the current plan
    double unitsPerSample = 1;      ///< tokens of one sample, or 1 for images
    QString unit;                   ///< "tokens/s"
    QString owner;                  ///< "card", what has the memory
    bool isCpu = false;
    bool isComplete = false; ///< the frontier is not still being computed
};

/// The memory budget as the x axis of the frontier: the handle is dragged on the chart itself.
class FrontierView : public QWidget {
    Q_OBJECT
public:
    explicit FrontierView(QWidget* parent = nullptr);
    void setPicture(FrontierPicture picture);
    const FrontierPicture& picture() const { return m_picture; }
    FrontierAxis axis() const;
    QSize sizeHint() const override { return {800, 150}; }
    QSize minimumSizeHint() const override { return {300, 92}; }

Q_SIGNALS:
    void dragStarted();
    void budgetDragged(qint64 bytes);
    void dragEnded();
    /// One step by key or click, not part of a drag.
    void budgetPicked(qint64 bytes);

protected:
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    bool event(QEvent* event) override;

private:
    std::vector<PlanPoint> points() const;
    const PlanPoint* pointUnder(const std::vector<PlanPoint>& points, const QPointF& position) const;
    void paintZones(QPainter& painter, const FrontierAxis& axis, const Colors& colors) const;
    void paintAxes(QPainter& painter, const FrontierAxis& axis, const Colors& colors) const;
    void paintCurve(QPainter& painter, const FrontierAxis& axis, const Colors& colors) const;
    void paintPoints(QPainter& painter, const FrontierAxis& axis, const Colors& colors) const;
    void paintHandle(QPainter& painter, const FrontierAxis& axis, const Colors& colors) const;
    qint64 bytesAt(double x) const;

    FrontierPicture m_picture;
    std::vector<std::int64_t> m_flips;
    FrontierAxis m_dragAxis; ///< the axis does not move under the hand
    bool m_dragging = false;
};

} // namespace shardscope::app
