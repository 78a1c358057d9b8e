// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/export/ExportContent.h"

#include <QByteArray>
#include <QPicture>
#include <QSize>

namespace shardscope::app {

/// A view's drawing commands, recorded on the thread of the window; a thread may then play them into any format.
struct Figure {
    QPicture picture = QPicture();
    QSize size; ///< pixels of a screen at scale one
};

/// How wide a figure is: as on a large screen, or in print one column or a page of two, with text of about 8 points.
enum class FigureWidth { Screen, Column, Page };
/// 84 or 174; 0 for a screen.
int millimetres(FigureWidth width);
/// Tables do not fit into a column or a page.
bool fitsPrint(ViewKind kind);

/// Draws a view with its title, legend and, if wanted, its caption; always light, whatever the window shows. Empty when
/// the content lacks the view. Only on the thread of the window.
Figure drawFigure(ViewKind kind, const ExportContent& content, bool withCaption,
                  FigureWidth width = FigureWidth::Screen);

enum class PictureFormat { Png, Svg, Pdf };
/// The file's bytes. PNG has two pixels for one of the figure.
QByteArray encodeFigure(const Figure& figure, PictureFormat format, const QString& title);

/// Plays the figure so that it fills `width` from the painter's origin; returns the height taken.
double playFigure(QPainter& painter, const Figure& figure, double width);

} // namespace shardscope::app
