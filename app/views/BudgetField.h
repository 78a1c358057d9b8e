// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLineEdit>

#include <cstdint>

namespace shardscope::app {

/// A size in GiB that is typed, stepped with the arrow keys and the wheel, or taken from a card that people have.
class BudgetField : public QLineEdit {
    Q_OBJECT
public:
    explicit BudgetField(QWidget* parent = nullptr);
    void setBytes(std::int64_t bytes);
    std::int64_t bytes() const { return m_bytes; }

Q_SIGNALS:
    void bytesPicked(qint64 bytes);

protected:
    void keyPressEvent(QKeyEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    void step(int steps);
    void openCards();
    void take();
    QAction* m_cards;
    std::int64_t m_bytes = 0;
};

} // namespace shardscope::app
