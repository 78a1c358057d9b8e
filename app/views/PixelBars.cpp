// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/PixelBars.h"

#include <QPaintEngine>

#include <algorithm>
#include <cmath>

namespace shardscope::app {

PixelBars::PixelBars(const QPainter& painter, const QRectF& area)
    : m_area(area.toAlignedRect()), m_ratio(painter.device()->devicePixelRatioF()),
      m_image((m_area.size() * m_ratio).toSize(), QImage::Format_ARGB32_Premultiplied) {
    m_image.setDevicePixelRatio(m_ratio);
    m_image.fill(Qt::transparent);
}

bool PixelBars::isMeantFor(const QPainter& painter) {
    return painter.paintEngine()->type() == QPaintEngine::Raster;
}

void PixelBars::fill(const QList<QRectF>& boxes, const QBrush& brush) {
    if (boxes.isEmpty())
        return;
    const QRgb solid = qPremultiply(brush.color().rgba());
    QImage texture;
    if (brush.style() == Qt::TexturePattern)
        texture = brush.textureImage().convertToFormat(QImage::Format_ARGB32_Premultiplied);
    const auto pixels = [this](double logical, int bound) {
        return std::clamp(static_cast<int>(std::lround(logical * m_ratio)), 0, bound);
    };
    auto* const bits = reinterpret_cast<QRgb*>(m_image.bits());
    const auto stride = static_cast<std::size_t>(m_image.bytesPerLine()) / sizeof(QRgb);
    for (const QRectF& box : boxes) {
        const int left = pixels(box.left() - m_area.left(), m_image.width());
        const int right = pixels(box.right() - m_area.left(), m_image.width());
        const int top = pixels(box.top() - m_area.top(), m_image.height());
        const int bottom = pixels(box.bottom() - m_area.top(), m_image.height());
        if (texture.isNull() && right == left + 1) {
            QRgb* pixel = bits + static_cast<std::size_t>(top) * stride + left;
            for (int y = top; y < bottom; ++y, pixel += stride)
                *pixel = solid;
            continue;
        }
        for (int y = top; y < bottom; ++y) {
            QRgb* const line = bits + static_cast<std::size_t>(y) * stride;
            if (texture.isNull()) {
                std::fill(line + left, line + right, solid);
                continue;
            }
            const double scale = texture.devicePixelRatio() / m_ratio;
            const auto at = [scale](int pixel, int size) { return static_cast<int>(pixel * scale) % size; };
            const auto* const row = reinterpret_cast<const QRgb*>(texture.constScanLine(at(y, texture.height())));
            for (int x = left; x < right; ++x)
                line[x] = row[at(x, texture.width())];
        }
    }
}

void PixelBars::paint(QPainter& painter) const {
    painter.drawImage(m_area.topLeft(), m_image);
}

} // namespace shardscope::app
