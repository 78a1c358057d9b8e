// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/look/Colors.h"

#include <QImage>
#include <QPainter>
#include <QWidget>

#include <algorithm>
#include <cmath>

namespace shardscope::app {

namespace {

Colors makeLight() {
    Colors c;
    c.window = QColor(0xF4F5F7);
    c.card = QColor(0xFFFFFF);
    c.field = QColor(0xF4F5F7);
    c.line = QColor(0xD9DCE1);
    c.grid = QColor(0xE8EAEE);
    c.text = QColor(0x1F2328);
    c.secondary = QColor(0x5F6977);
    c.accent = QColor(0x1F57B8);
    c.onAccent = QColor(0xFFFFFF);
    c.accentWash = QColor(0xE9EFF9);
    c.parameters = QColor(0x0072B2);
    c.gradients = QColor(0x56B4E9);
    c.optimizer = QColor(0x009E73);
    c.activations = QColor(0xE69F00);
    c.slotMemory = QColor(0xCC79A7);
    c.reserve = QColor(0x667080);
    c.other = QColor(0xA3ABB7);
    c.exposed = QColor(0x8A6FC9);
    c.hidden = QColor(0xD8CFEE);
    c.gather = QColor(0x8A6FC9);
    c.reduce = QColor(0xB39AE6);
    c.forward = QColor(0x8C95A3);
    c.backward = QColor(0x59626F);
    c.limit = QColor(0xD55E00);
    c.good = QColor(0x0B8A66);
    c.tight = QColor(0xB07A00);
    c.safeZone = QColor(0xF4F6F9);
    c.tightZone = QColor(0xF9EBC4);
    c.beyondZone = QColor(0xFAEBE1);
    c.shardStripe = QColor(0x5F6977);
    c.onShardStripe = QColor(0xFFFFFF);
    return c;
}

Colors makeDark() {
    Colors c;
    c.dark = true;
    c.window = QColor(0x17191D);
    c.card = QColor(0x202329);
    c.field = QColor(0x191B20);
    c.line = QColor(0x343941);
    c.grid = QColor(0x2B2F36);
    c.text = QColor(0xE6E8EB);
    c.secondary = QColor(0xA0A9B6);
    c.accent = QColor(0x6EA0F5);
    c.onAccent = QColor(0x10131A);
    c.accentWash = QColor(0x263450);
    c.parameters = QColor(0x3B9AD9);
    c.gradients = QColor(0x7CC6F0);
    c.optimizer = QColor(0x13A87E);
    c.activations = QColor(0xE69F00);
    c.slotMemory = QColor(0xCC79A7);
    c.reserve = QColor(0x98A1AE);
    c.other = QColor(0x6E7785);
    c.exposed = QColor(0x9B82D8);
    c.hidden = QColor(0x4A4365);
    c.gather = QColor(0x9B82D8);
    c.reduce = QColor(0x7A66B0);
    c.forward = QColor(0xB4BCC8);
    c.backward = QColor(0x7B8594);
    c.limit = QColor(0xE8762B);
    c.good = QColor(0x2DB88C);
    c.tight = QColor(0xD9A520);
    c.safeZone = QColor(0x25292F);
    c.tightZone = QColor(0x4A4124);
    c.beyondZone = QColor(0x3A2C25);
    c.shardStripe = QColor(0x98A1AE);
    c.onShardStripe = QColor(0x17191D);
    return c;
}

/// Diagonal lines on the given ground; drawn as a texture so that neighbouring pieces line up.
QBrush hatch(const QColor& line, const QColor& ground) {
    constexpr int kPeriod = 6;
    constexpr int kScale = 2;
    QImage tile(kPeriod * kScale, kPeriod * kScale, QImage::Format_ARGB32_Premultiplied);
    tile.setDevicePixelRatio(kScale);
    tile.fill(ground);
    QPainter painter(&tile);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(line, 1.6, Qt::SolidLine, Qt::FlatCap));
    for (int shift = -kPeriod; shift <= kPeriod; shift += kPeriod)
        painter.drawLine(QPointF(shift - 1, kPeriod + 1), QPointF(shift + kPeriod + 1, -1));
    painter.end();
    QBrush brush;
    brush.setTextureImage(tile);
    brush.setTransform(QTransform::fromScale(1.0 / kScale, 1.0 / kScale));
    return brush;
}

} // namespace

const Colors& lightColors() {
    static const Colors colors = makeLight();
    return colors;
}

const Colors& darkColors() {
    static const Colors colors = makeDark();
    return colors;
}

const Colors& colorsFor(const QPalette& palette) {
    return palette.color(QPalette::Window).lightness() < 128 ? darkColors() : lightColors();
}

const Colors& colorsOf(const QWidget* widget) {
    return colorsFor(widget->palette());
}

QPalette paletteOf(const Colors& c) {
    QPalette palette;
    palette.setColor(QPalette::Window, c.window);
    palette.setColor(QPalette::WindowText, c.text);
    palette.setColor(QPalette::Base, c.card);
    palette.setColor(QPalette::AlternateBase, c.field);
    palette.setColor(QPalette::Text, c.text);
    palette.setColor(QPalette::PlaceholderText, c.secondary);
    palette.setColor(QPalette::Button, c.card);
    palette.setColor(QPalette::ButtonText, c.text);
    palette.setColor(QPalette::BrightText, c.limit);
    palette.setColor(QPalette::Highlight, c.accent);
    palette.setColor(QPalette::HighlightedText, c.onAccent);
    palette.setColor(QPalette::Link, c.accent);
    palette.setColor(QPalette::ToolTipBase, c.card);
    palette.setColor(QPalette::ToolTipText, c.text);
    palette.setColor(QPalette::Light, c.card);
    palette.setColor(QPalette::Midlight, c.grid);
    palette.setColor(QPalette::Mid, c.line);
    palette.setColor(QPalette::Dark, c.line);
    palette.setColor(QPalette::Shadow, c.line);
    for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
        palette.setColor(QPalette::Disabled, role, c.secondary);
    return palette;
}

QColor partColor(MemoryPart part, const Colors& c) {
    switch (part) {
    case MemoryPart::Parameters:
        return c.parameters;
    case MemoryPart::Gradients:
        return c.gradients;
    case MemoryPart::Optimizer:
        return c.optimizer;
    case MemoryPart::Activations:
        return c.activations;
    case MemoryPart::Logits:
        return c.activations;
    case MemoryPart::Slots:
        return c.slotMemory;
    case MemoryPart::Other:
        return c.other;
    case MemoryPart::Reserve:
        return c.reserve;
    }
    return c.other;
}

QBrush partBrush(MemoryPart part, const Colors& c) {
    // Textures are made once for each lightness; painting asks for them every frame.
    static const QBrush hatches[2][2] = {
        {hatch(lightColors().activations, QColor(0xFCF3DE)), hatch(lightColors().reserve, QColor(0xEDEFF2))},
        {hatch(darkColors().activations, QColor(0x33290F)), hatch(darkColors().reserve, QColor(0x2A2E35))},
    };
    if (part == MemoryPart::Logits)
        return hatches[c.dark ? 1 : 0][0];
    if (part == MemoryPart::Reserve)
        return hatches[c.dark ? 1 : 0][1];
    return partColor(part, c);
}

QBrush phaseBrush(StepPhase phase, const Colors& c) {
    static const QBrush recompute[2] = {hatch(lightColors().backward, QColor(0xD5D9DF)),
                                        hatch(darkColors().forward, QColor(0x3A414C))};
    switch (phase) {
    case StepPhase::Forward:
        return c.forward;
    case StepPhase::Recompute:
        return recompute[c.dark ? 1 : 0];
    case StepPhase::Backward:
        return c.backward;
    case StepPhase::Optimizer:
        return c.optimizer;
    case StepPhase::Gather:
        return c.gather;
    case StepPhase::Reduce:
        return c.reduce;
    }
    return c.other;
}

double contrastRatio(const QColor& a, const QColor& b) {
    const auto luminance = [](const QColor& color) {
        const auto channel = [](double value) {
            return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
        };
        return 0.2126 * channel(color.redF()) + 0.7152 * channel(color.greenF()) + 0.0722 * channel(color.blueF());
    };
    const double la = luminance(a), lb = luminance(b);
    return (std::max(la, lb) + 0.05) / (std::min(la, lb) + 0.05);
}

} // namespace shardscope::app
