// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFrame>
#include <QLabel>

class QHBoxLayout;
class QVBoxLayout;

namespace shardscope::app {

/// A rounded surface with a title row and a body.
class Card : public QFrame {
    Q_OBJECT
public:
    explicit Card(const QString& title = {}, QWidget* parent = nullptr);

    /// The row of the title; more can be added at its end.
    QHBoxLayout* header() { return m_header; }
    QVBoxLayout* body() { return m_body; }
    void setTitle(const QString& title);

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    QLabel* m_title;
    QHBoxLayout* m_header;
    QVBoxLayout* m_body;
};

/// A label that gives way when there is little room and shows the rest on hover.
class ElidedLabel : public QLabel {
    Q_OBJECT
public:
    using QLabel::QLabel;
    QSize minimumSizeHint() const override { return {20, QLabel::minimumSizeHint().height()}; }

protected:
    void paintEvent(QPaintEvent* event) override;
};

/// A label in secondary text, or another role of the style sheet ("title", "value", "small").
QLabel* makeLabel(const QString& text, const char* role, QWidget* parent = nullptr);

/// For what floats over the window; text under the shadow stays readable.
void castShadow(QWidget& widget);

/// The rounded ground of a card, in the theme's colours.
void paintCard(QPainter& painter, const QWidget& widget);

} // namespace shardscope::app
