// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include <vector>

class QStackedWidget;

namespace shardscope::app {

/// Headings in a row, the chosen one underlined; a text at the end of the row belongs to the chosen page.
class TabStrip : public QWidget {
    Q_OBJECT
public:
    explicit TabStrip(QWidget* parent = nullptr);
    void addTab(const QString& title);
    void setNote(const QString& note);
    int current() const { return m_current; }
    void setCurrent(int index);
    QSize sizeHint() const override { return {300, 32}; }
    QSize minimumSizeHint() const override { return {200, 32}; }

Q_SIGNALS:
    void currentChanged(int index);

protected:
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    QRectF tabRect(int index) const;
    double gap() const;
    QStringList m_titles;
    std::vector<double> m_widths; ///< of the titles, which are measured once
    QString m_note;
    int m_current = 0;
};

/// Two choices in one control, as in the toolbar; a small one fits into the heading of a card.
class SegmentedSwitch : public QWidget {
    Q_OBJECT
public:
    enum class Size { Normal, Small };
    explicit SegmentedSwitch(const QStringList& titles, QWidget* parent = nullptr, Size size = Size::Normal);
    void setTitles(const QStringList& titles);
    const QStringList& titles() const { return m_titles; }
    int current() const { return m_current; }
    void setCurrent(int index);
    QSize sizeHint() const override;

Q_SIGNALS:
    void currentChanged(int index);

protected:
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    double segmentWidth(int index) const;
    QStringList m_titles;
    Size m_size;
    int m_current = 0;
};

} // namespace shardscope::app
