// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QComboBox>

namespace shardscope::app {

/// A closed list whose field shows as much of its text as there is room for; the rest is in the tooltip.
class ElidedCombo : public QComboBox {
    Q_OBJECT
public:
    explicit ElidedCombo(QWidget* parent = nullptr);

protected:
    void paintEvent(QPaintEvent* event) override;
    bool event(QEvent* event) override;
};

} // namespace shardscope::app
