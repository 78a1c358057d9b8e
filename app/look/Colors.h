// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/layout/LaneBars.h"
#include "app/layout/MemoryParts.h"

#include <QBrush>
#include <QColor>
#include <QPalette>

class QWidget;

namespace shardscope::app {

/// Every colour the window uses, for one lightness.
struct Colors {
    bool dark = false;
    QColor window, card, field, line, grid;
    QColor text, secondary;
    QColor accent, onAccent, accentWash;
    QColor parameters, gradients, optimizer, activations, slotMemory, reserve, other;
    QColor exposed, hidden, gather, reduce;
    QColor forward, backward; ///< compute of the timeline
    QColor limit, good, tight;
    QColor tightZone, beyondZone, safeZone;
    QColor shardStripe, onShardStripe;
};

const Colors& lightColors();
const Colors& darkColors();

/// The colours that go with a palette's lightness: what a widget paints itself with.
const Colors& colorsFor(const QPalette& palette);
const Colors& colorsOf(const QWidget* widget);

QPalette paletteOf(const Colors& colors);

/// Fill of a part of a device's memory; logits and the reserve are hatched.
QBrush partBrush(MemoryPart part, const Colors& colors);
QColor partColor(MemoryPart part, const Colors& colors);

/// Fill of an interval of the timeline; recomputation is forward again, hatched.
QBrush phaseBrush(StepPhase phase, const Colors& colors);

/// Contrast of two opaque colours as WCAG 2.1 defines it, 1..21.
double contrastRatio(const QColor& a, const QColor& b);

} // namespace shardscope::app
