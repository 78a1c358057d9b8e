// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/look/Theme.h"

#include <QIconEngine>
#include <QPainter>
#include <QPainterPath>

namespace shardscope::app {

namespace {

/// Paths on a 16 x 16 grid, drawn with a round pen.
QPainterPath pathOf(Glyph glyph) {
    QPainterPath path;
    switch (glyph) {
    case Glyph::Undo:
        path.moveTo(6, 2.5);
        path.lineTo(2.5, 6);
        path.lineTo(6, 9.5);
        path.moveTo(2.5, 6);
        path.lineTo(9.5, 6);
        path.cubicTo(15, 6, 15, 13.5, 9.5, 13.5);
        path.lineTo(7, 13.5);
        break;
    case Glyph::Redo:
        path.moveTo(10, 2.5);
        path.lineTo(13.5, 6);
        path.lineTo(10, 9.5);
        path.moveTo(13.5, 6);
        path.lineTo(6.5, 6);
        path.cubicTo(1, 6, 1, 13.5, 6.5, 13.5);
        path.lineTo(9, 13.5);
        break;
    case Glyph::Search:
        path.addEllipse(QPointF(7, 7), 4.5, 4.5);
        path.moveTo(10.4, 10.4);
        path.lineTo(14, 14);
        break;
    case Glyph::Reset:
        path.arcMoveTo(3, 3, 10, 10, 130);
        path.arcTo(3, 3, 10, 10, 130, -310);
        path.moveTo(4.4, 0.8);
        path.lineTo(4.4, 4.4);
        path.lineTo(8, 4.4);
        break;
    case Glyph::Check:
        path.moveTo(4.2, 8.4);
        path.lineTo(7, 11);
        path.lineTo(11.8, 5.4);
        break;
    case Glyph::Warning:
        path.moveTo(8, 4.2);
        path.lineTo(8, 8.8);
        path.moveTo(8, 11.6);
        path.lineTo(8, 11.7);
        break;
    case Glyph::Error:
        path.moveTo(5.4, 5.4);
        path.lineTo(10.6, 10.6);
        path.moveTo(10.6, 5.4);
        path.lineTo(5.4, 10.6);
        break;
    case Glyph::Pin:
        path.moveTo(5, 2);
        path.lineTo(11, 2);
        path.moveTo(6, 2);
        path.lineTo(6, 6.5);
        path.lineTo(4, 9);
        path.lineTo(12, 9);
        path.lineTo(10, 6.5);
        path.lineTo(10, 2);
        path.moveTo(8, 9);
        path.lineTo(8, 14);
        break;
    case Glyph::Close:
        path.moveTo(4, 4);
        path.lineTo(12, 12);
        path.moveTo(12, 4);
        path.lineTo(4, 12);
        break;
    case Glyph::Folder:
        path.moveTo(2, 12.5);
        path.lineTo(2, 3.5);
        path.lineTo(6.3, 3.5);
        path.lineTo(8, 5.2);
        path.lineTo(14, 5.2);
        path.lineTo(14, 12.5);
        path.closeSubpath();
        break;
    case Glyph::Play:
        path.moveTo(5, 3);
        path.lineTo(12.5, 8);
        path.lineTo(5, 13);
        path.closeSubpath();
        break;
    case Glyph::ChevronDown:
        path.moveTo(4.5, 6.3);
        path.lineTo(8, 9.8);
        path.lineTo(11.5, 6.3);
        break;
    }
    return path;
}

class GlyphEngine : public QIconEngine {
public:
    GlyphEngine(Glyph glyph, QColor color) : m_glyph(glyph), m_color(std::move(color)) {}
    void paint(QPainter* painter, const QRect& rect, QIcon::Mode mode, QIcon::State) override {
        QColor color = m_color;
        if (mode == QIcon::Disabled)
            color.setAlphaF(0.4F);
        drawGlyph(*painter, m_glyph, QRectF(rect), color);
    }
    QPixmap pixmap(const QSize& size, QIcon::Mode mode, QIcon::State state) override {
        QPixmap pixmap(size);
        pixmap.fill(Qt::transparent);
        QPainter painter(&pixmap);
        paint(&painter, QRect(QPoint(0, 0), size), mode, state);
        return pixmap;
    }
    QIconEngine* clone() const override { return new GlyphEngine(m_glyph, m_color); }

private:
    Glyph m_glyph;
    QColor m_color;
};

} // namespace

void drawGlyph(QPainter& painter, Glyph glyph, const QRectF& box, const QColor& color) {
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    const double side = std::min(box.width(), box.height());
    painter.translate(box.center().x() - side / 2, box.center().y() - side / 2);
    painter.scale(side / 16.0, side / 16.0);
    painter.setPen(QPen(color, 1.5, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
    painter.setBrush(glyph == Glyph::Play ? QBrush(color) : QBrush(Qt::NoBrush));
    painter.drawPath(pathOf(glyph));
    painter.restore();
}

QIcon glyphIcon(Glyph glyph, const QColor& color) {
    return QIcon(new GlyphEngine(glyph, color));
}

} // namespace shardscope::app
