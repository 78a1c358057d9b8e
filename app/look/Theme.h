// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/look/Colors.h"

#include <QFont>
#include <QIcon>
#include <QObject>

class QApplication;

namespace shardscope::app {

enum class Lightness { System, Light, Dark };

inline constexpr int kGap = 12;
inline constexpr int kCorner = 8;
inline constexpr int kCardMargin = 14;

/// Sizes are pixels of a screen at scale one. Figures are tabular where the font has them.
QFont bodyFont();
QFont bodyBoldFont();
QFont smallFont(); ///< 11 px: axis numbers, legends
QFont smallBoldFont();
QFont titleFont();   ///< 13 px semibold: card titles
QFont verdictFont(); ///< 18 px semibold
QFont headingFont(); ///< 24 px semibold: the welcome page

enum class Glyph { Undo, Redo, Search, Reset, Check, Warning, Error, Pin, Close, Folder, Play, ChevronDown };
/// A line drawing in the given colour, sharp at every scale.
QIcon glyphIcon(Glyph glyph, const QColor& color);
void drawGlyph(QPainter& painter, Glyph glyph, const QRectF& box, const QColor& color);

/// Gives the application its style, palette and style sheet.
class Theme : public QObject {
    Q_OBJECT
public:
    explicit Theme(QApplication& application);
    void choose(Lightness lightness);
    Lightness chosen() const { return m_chosen; }

Q_SIGNALS:
    void changed();

private:
    QApplication& m_application;
    Lightness m_chosen = Lightness::System;
    bool m_systemIsDark = false;
};

/// The style sheet for controls; painted views use Colors directly.
QString styleSheet(const Colors& colors);

} // namespace shardscope::app
