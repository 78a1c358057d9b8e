// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/layout/TimeWindow.h"
#include "app/work/Simulating.h"

#include <QWidget>

namespace shardscope::app {

struct Colors;

/// What charts over one step share: the time axis, zoom by the wheel, panning by dragging, and the states of having
/// nothing to show.
class TimeChart : public QWidget {
    Q_OBJECT
public:
    explicit TimeChart(QWidget* parent = nullptr);
    /// Null while there is no plan.
    virtual void setPicture(const StepPicturePointer& picture);
    /// The picture is of an older plan; the new one is being simulated.
    void setBusy(bool busy);
    void setWindow(const TimeWindow& window);
    const TimeWindow& window() const { return m_window; }
    const StepPicturePointer& picture() const { return m_picture; }
    /// Where time runs, in widget coordinates.
    QRectF plot() const;

Q_SIGNALS:
    void windowChanged(const shardscope::app::TimeWindow& window);

protected:
    virtual void paintChart(QPainter& painter, const Colors& colors) = 0;
    virtual QString describe(const QPointF& position) const = 0;
    virtual void clicked(const QPointF& position, bool extend);

    bool hasPicture() const { return m_picture && m_picture->error.isEmpty() && m_picture->stepPicoseconds > 0; }
    double beginPicoseconds() const;
    double endPicoseconds() const;
    double xOf(double picoseconds) const;
    double picosecondsAt(double x) const;

    void paintEvent(QPaintEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    bool event(QEvent* event) override;

private:
    void takeWindow(const TimeWindow& window);
    void paintAxis(QPainter& painter, const Colors& colors) const;
    StepPicturePointer m_picture;
    TimeWindow m_window;
    QPointF m_pressed;
    TimeWindow m_pressedWindow;
    bool m_isBusy = false;
    bool m_isPanning = false;
};

} // namespace shardscope::app
