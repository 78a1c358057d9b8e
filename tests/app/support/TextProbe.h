// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <QImage>
#include <QLineF>
#include <QRectF>
#include <QString>
#include <QStringList>

#include <vector>

class QWidget;

namespace shardscope::test {

/// A text that a widget painted and nothing painted over, in the widget's coordinates.
struct PaintedText {
    QString text;
    QRectF line;       ///< its advance by ascent and descent
    QRectF box;        ///< what its letters cover
    QRectF clip;       ///< where it may be seen
    double hidden = 0; ///< share of the box under something opaque that was painted later
    QColor color;
    int order = 0;        ///< of painting
    int ground = 0;       ///< when the last opaque thing under all of it was painted
    bool isLarge = false; ///< as WCAG means it: from 24 px, or bold from 18.5 px
    QRectF visible() const { return box & clip; }
};

/// A straight line that a widget drew.
struct PaintedLine {
    QLineF line;
    QColor color;
    int order = 0;
};

struct Painted {
    std::vector<PaintedText> texts;
    std::vector<PaintedLine> lines;
};

/// Renders a widget with all its children onto a device that remembers texts and lines. What one call draws in several
/// pieces is one text; what is painted over is none.
Painted painted(QWidget& widget);

/// Faults a reader would see, one sentence each:
/// - clipped: cut off at an edge, unless a scroll bar that is shown brings the rest into sight;
/// - covered: partly under something painted later;
/// - touching: over another text, or nearer to one on its line than a thin space;
/// - struck: a line of some contrast runs through its letters;
/// - low contrast: under 4.5 : 1 (large text 3 : 1) against a colour of its ground, as WCAG 2.1 computes it.
QStringList textFaults(QWidget& widget);

/// The widget as it looks on a screen of the given scale.
QImage render(QWidget& widget, double scale);

} // namespace shardscope::test
