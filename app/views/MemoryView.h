// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/views/TimeChart.h"

namespace shardscope::app {

/// Bytes in use on a device over one step, stacked by category, under the planned peak and the limit.
class MemoryView : public TimeChart {
    Q_OBJECT
public:
    explicit MemoryView(QWidget* parent = nullptr);
    void setPicture(const StepPicturePointer& picture) override;
    /// What the legend shows.
    const MemoryParts& present() const { return m_present; }
    /// "at most 15.2 GiB in use at 131 ms · 15.9 GiB planned"
    QString summary() const;
    QSize sizeHint() const override { return {800, 110}; }
    QSize minimumSizeHint() const override { return {300, 70}; }

protected:
    void paintChart(QPainter& painter, const Colors& colors) override;
    QString describe(const QPointF& position) const override;

private:
    double topBytes() const;
    void paintLine(QPainter& painter, const Colors& colors, double y, const QColor& color, const QString& text,
                   bool isLimit) const;
    MemoryParts m_present{};
};

} // namespace shardscope::app
