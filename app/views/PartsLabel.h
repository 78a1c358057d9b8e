// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include <vector>

namespace shardscope::app {

/// Short texts in a row with dots between them. Where they do not all fit, the least important are left out whole;
/// hovering shows all.
class PartsLabel : public QWidget {
    Q_OBJECT
public:
    struct Part {
        QString text;
        int importance = 0;
    };
    explicit PartsLabel(QWidget* parent = nullptr);
    void setParts(std::vector<Part> parts);
    /// The parts that `width` pixels have room for, joined; the most important one is elided where even it does not
    /// fit.
    QString textFor(double width) const;
    QString fullText() const;
    void setStrong(bool strong); ///< in text colour instead of secondary
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return {40, sizeHint().height()}; }

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    std::vector<Part> m_parts;
    bool m_isStrong = false;
};

} // namespace shardscope::app
