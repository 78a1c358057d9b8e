// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractButton>

namespace shardscope::app {

/// A radio button with a title and the name people know it by.
class PlacementCard : public QAbstractButton {
    Q_OBJECT
public:
    PlacementCard(const QString& title, const QString& known, QWidget* parent = nullptr);
    QSize sizeHint() const override { return {200, 42}; }
    QSize minimumSizeHint() const override { return {120, 42}; }
    /// Some of the selected operators are placed like this, not all.
    void setPartly(bool partly);

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    QString m_known;
    bool m_partly = false;
};

/// Rows of "colour, name, value" with a total line; painted.
class ValueRows : public QWidget {
    Q_OBJECT
public:
    struct Row {
        QString name;
        QString value;
        QBrush swatch; ///< none: no swatch
        bool isTotal = false;
        int key = -1; ///< reported when clicked; -1: not clickable
        QString hint;
    };
    explicit ValueRows(QWidget* parent = nullptr);
    void setRows(std::vector<Row> rows);
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return {120, sizeHint().height()}; }

Q_SIGNALS:
    void clicked(int key);

protected:
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;

private:
    int rowAt(double y) const;
    std::vector<Row> m_rows;
    int m_hovered = -1;
};

} // namespace shardscope::app
