// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/PartsLabel.h"

#include "app/look/Theme.h"

#include <QPainter>

#include <algorithm>

namespace shardscope::app {

namespace {

QString joined(const std::vector<PartsLabel::Part>& parts) {
    QStringList texts;
    for (const PartsLabel::Part& part : parts)
        texts << part.text;
    return texts.join(QStringLiteral(" · "));
}

} // namespace

PartsLabel::PartsLabel(QWidget* parent) : QWidget(parent) {
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void PartsLabel::setParts(std::vector<Part> parts) {
    m_parts = std::move(parts);
    setAccessibleName(fullText());
    setToolTip(textFor(width()) == fullText() ? QString() : fullText());
    updateGeometry();
    update();
}

void PartsLabel::setStrong(bool strong) {
    m_isStrong = strong;
    update();
}

QString PartsLabel::fullText() const {
    return joined(m_parts);
}

QString PartsLabel::textFor(double width) const {
    const QFontMetricsF metrics(bodyFont());
    std::vector<Part> shown = m_parts;
    while (shown.size() > 1 && metrics.horizontalAdvance(joined(shown)) > width)
        shown.erase(std::min_element(shown.begin(), shown.end(),
                                     [](const Part& a, const Part& b) { return a.importance < b.importance; }));
    return metrics.elidedText(joined(shown), Qt::ElideRight, width);
}

QSize PartsLabel::sizeHint() const {
    const QFontMetricsF metrics(bodyFont());
    return {static_cast<int>(metrics.horizontalAdvance(fullText())) + 2, static_cast<int>(metrics.height()) + 2};
}

void PartsLabel::resizeEvent(QResizeEvent*) {
    setToolTip(textFor(width()) == fullText() ? QString() : fullText());
}

void PartsLabel::paintEvent(QPaintEvent*) {
    const Colors& colors = colorsOf(this);
    QPainter painter(this);
    painter.setFont(bodyFont());
    painter.setPen(m_isStrong ? colors.text : colors.secondary);
    painter.drawText(QRectF(rect()), Qt::AlignLeft | Qt::AlignVCenter, textFor(width()));
}

} // namespace shardscope::app
