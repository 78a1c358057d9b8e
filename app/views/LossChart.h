// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/layout/LossCurve.h"
#include "app/layout/MemoryParts.h"
#include "app/run/RunRecord.h"

#include <QWidget>

class QChart;
class QChartView;
class QLabel;
class QLineSeries;
class QScatterSeries;
class QValueAxis;

namespace shardscope::app {

/// Loss over steps, with evaluations as points. Decimated to two points a pixel.
class LossChart : public QWidget {
    Q_OBJECT
public:
    explicit LossChart(QWidget* parent = nullptr);
    ~LossChart() override;
    void setRecord(const RunRecord& record);

protected:
    void changeEvent(QEvent* event) override;

private:
    void applyColors();
    /// Takes the steps that are new since the last time.
    void grow(const RunRecord& record);
    LossCurve m_curve;
    std::size_t m_taken = 0;     ///< steps of the record that are in the curve
    std::int64_t m_rewrites = 0; ///< RunRecord::rewrites() then
    QLabel* m_empty;
    QChart* m_chart;
    QChartView* m_view;
    QLineSeries* m_loss;
    QScatterSeries* m_evaluations;
    QValueAxis* m_steps;
    QValueAxis* m_values;
};

/// At most two points for each of `pixels` equal parts of the range: the smallest and the largest, in order.
QList<QPointF> decimate(const QList<QPointF>& points, int pixels);

/// Memory of every rank: measured over predicted, by category.
class MemoryBars : public QWidget {
    Q_OBJECT
public:
    explicit MemoryBars(QWidget* parent = nullptr);
    void setWorkers(const std::vector<RunWorker>& workers);
    /// The largest bytes of every category, for the legend.
    MemoryParts present() const;
    QSize minimumSizeHint() const override { return {200, 120}; }

protected:
    void paintEvent(QPaintEvent* event) override;
    bool event(QEvent* event) override;

private:
    QRectF plot() const;
    std::vector<RunWorker> m_workers;
};

} // namespace shardscope::app
