// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/LossChart.h"

#include "app/layout/Ticks.h"
#include "app/look/Theme.h"
#include "app/views/Card.h"

#include <QChart>
#include <QChartView>
#include <QEvent>
#include <QGraphicsLayout>
#include <QLegend>
#include <QLineSeries>
#include <QScatterSeries>
#include <QVBoxLayout>
#include <QValueAxis>

#include <algorithm>
#include <cmath>

namespace shardscope::app {

QList<QPointF> decimate(const QList<QPointF>& points, int pixels) {
    if (pixels < 1 || points.size() <= 2 * static_cast<qsizetype>(pixels))
        return points;
    const double first = points.first().x(), span = std::max(points.last().x() - first, 1e-12);
    QList<QPointF> result;
    for (qsizetype i = 0; i < points.size();) {
        const int bucket = std::min(pixels - 1, static_cast<int>((points[i].x() - first) / span * pixels));
        qsizetype low = i, high = i, end = i;
        while (end < points.size() &&
               std::min(pixels - 1, static_cast<int>((points[end].x() - first) / span * pixels)) == bucket) {
            if (points[end].y() < points[low].y())
                low = end;
            if (points[end].y() > points[high].y())
                high = end;
            ++end;
        }
        result << points[std::min(low, high)];
        if (low != high)
            result << points[std::max(low, high)];
        i = end;
    }
    return result;
}

LossChart::LossChart(QWidget* parent)
    : QWidget(parent), m_empty(makeLabel(tr("The loss appears with the first step"), "small", this)),
      m_chart(new QChart), m_view(new QChartView(m_chart, this)), m_loss(new QLineSeries(m_chart)),
      m_evaluations(new QScatterSeries(m_chart)), m_steps(new QValueAxis(m_chart)), m_values(new QValueAxis(m_chart)) {
    setAccessibleName(tr("Loss over steps"));
    m_chart->addSeries(m_loss);
    m_chart->addSeries(m_evaluations);
    m_chart->addAxis(m_steps, Qt::AlignBottom);
    m_chart->addAxis(m_values, Qt::AlignLeft);
    m_loss->setName(tr("training"));
    m_evaluations->setName(tr("evaluation"));
    m_evaluations->setMarkerSize(8);
    for (QAbstractSeries* series :
         {static_cast<QAbstractSeries*>(m_loss), static_cast<QAbstractSeries*>(m_evaluations)}) {
        series->attachAxis(m_steps);
        series->attachAxis(m_values);
    }
    m_chart->legend()->setAlignment(Qt::AlignTop);
    m_chart->legend()->setMarkerShape(QLegend::MarkerShapeCircle);
    m_chart->setMargins({6, 0, 10, 0});
    m_chart->layout()->setContentsMargins(0, 0, 0, 0);
    m_chart->setBackgroundRoundness(0);
    m_steps->setLabelsFont(smallFont());
    m_values->setLabelsFont(smallFont());
    m_steps->setTitleText(tr("step"));
    m_steps->setTitleFont(smallFont());
    m_steps->setLabelFormat(QStringLiteral("%d"));
    m_chart->legend()->setFont(smallFont());
    m_view->setRenderHint(QPainter::Antialiasing);
    m_view->setFrameShape(QFrame::NoFrame);
    m_view->setFocusPolicy(Qt::NoFocus);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_view);
    layout->addWidget(m_empty);
    m_empty->setAlignment(Qt::AlignCenter);
    m_view->hide();
    m_steps->setRange(0, 1);
    m_values->setRange(0, 1);
    m_chart->setVisible(false);
    applyColors();
}

LossChart::~LossChart() = default;

void LossChart::applyColors() {
    const Colors& colors = colorsOf(this);
    m_chart->setBackgroundBrush(colors.card);
    m_chart->setBackgroundPen(Qt::NoPen);
    m_view->setBackgroundBrush(colors.card);
    m_loss->setPen(QPen(colors.accent, 2));
    m_evaluations->setColor(colors.activations);
    m_evaluations->setBorderColor(colors.card);
    m_chart->legend()->setLabelColor(colors.secondary);
    for (QValueAxis* axis : {m_steps, m_values}) {
        axis->setLabelsColor(colors.secondary);
        axis->setTitleBrush(colors.secondary);
        axis->setGridLineColor(colors.grid);
        axis->setLinePenColor(colors.line);
    }
}

void LossChart::changeEvent(QEvent* event) {
    if (event->type() == QEvent::PaletteChange)
        applyColors();
    QWidget::changeEvent(event);
}

void LossChart::grow(const RunRecord& record) {
    if (record.rewrites() != m_rewrites || record.steps().size() < m_taken) {
        m_curve.clear();
        m_taken = 0;
        m_rewrites = record.rewrites();
    }
    for (; m_taken < record.steps().size(); ++m_taken)
        if (const contract::StepEvent& step = record.steps()[m_taken]; std::isfinite(step.loss))
            m_curve.append(static_cast<double>(step.step), step.loss);
}

void LossChart::setRecord(const RunRecord& record) {
    grow(record);
    const QList<QPointF> points = m_curve.points();
    double low = m_curve.lowest(), high = m_curve.highest();
    QList<QPointF> evaluations;
    for (const contract::EvaluationEvent& evaluation : record.evaluations()) {
        if (!std::isfinite(evaluation.loss))
            continue;
        evaluations << QPointF(static_cast<double>(evaluation.step), evaluation.loss);
        low = std::min(low, evaluation.loss);
        high = std::max(high, evaluation.loss);
    }
    m_chart->setVisible(!points.isEmpty());
    m_view->setVisible(!points.isEmpty());
    m_empty->setVisible(points.isEmpty());
    m_chart->legend()->setVisible(!evaluations.isEmpty());
    if (points.isEmpty())
        return;
    m_loss->replace(decimate(points, std::max(50, m_view->width())));
    // A line of one point would not be seen.
    m_loss->setPointsVisible(m_curve.size() == 1);
    m_evaluations->replace(decimate(evaluations, std::max(50, m_view->width())));
    const double last = std::max(m_curve.last().x(), static_cast<double>(record.stepsAsked()));
    const Ticks steps = niceTicks(0, std::max(1.0, last), 8);
    m_steps->setRange(0, std::max(1.0, last));
    m_steps->setTickType(QValueAxis::TicksDynamic);
    m_steps->setTickInterval(std::max(1.0, steps.step));
    // The axis ends on round values, so that its labels are round.
    // A flat loss gets an axis that reads, not one of rounding errors.
    const double margin = std::max({1e-6, (high - low) * 0.08, (high - low) < 1e-3 * high ? 0.1 * high : 0.0});
    const Ticks values = niceTicks(std::max(0.0, low - margin), high + margin, 6);
    m_values->setTickType(QValueAxis::TicksDynamic);
    m_values->setTickInterval(values.step);
    m_values->setRange(std::floor(std::max(0.0, low - margin) / values.step) * values.step,
                       std::ceil((high + margin) / values.step) * values.step);
    m_values->setLabelFormat(QStringLiteral("%.%1f").arg(values.decimals));
    setAccessibleDescription(tr("Loss %1 at step %2").arg(m_curve.last().y(), 0, 'f', 3).arg(m_curve.last().x()));
}

} // namespace shardscope::app
