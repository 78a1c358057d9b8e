// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QBrush>
#include <QImage>
#include <QList>
#include <QPainter>
#include <QRectF>

namespace shardscope::app {

/// Thousands of rectangles a pixel wide, filled into one picture: painting them one by one takes many times as long.
class PixelBars {
public:
    /// `area`: where they all lie, in the painter's coordinates.
    PixelBars(const QPainter& painter, const QRectF& area);
    /// Whether what is painted on is made of pixels; a drawing or a page keeps its rectangles.
    static bool isMeantFor(const QPainter& painter);
    /// Solid colours and textures; edges fall on whole device pixels.
    void fill(const QList<QRectF>& boxes, const QBrush& brush);
    void paint(QPainter& painter) const;

private:
    QRectF m_area;
    double m_ratio;
    QImage m_image;
};

} // namespace shardscope::app
