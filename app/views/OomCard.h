// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/run/OomReport.h"
#include "app/views/Card.h"

class QGridLayout;
class QPushButton;

namespace shardscope::app {

/// A card over the window: an out-of-memory message of elsewhere laid against the plan.
class OomCard : public Card {
    Q_OBJECT
public:
    explicit OomCard(QWidget* parent = nullptr);
    /// `planTitle`: what the plan is of.
    void open(const OomReport& report, const OomComparison& comparison, const QString& planTitle);
    const OomComparison& comparison() const { return m_comparison; }

Q_SIGNALS:
    /// Plan again with so many more bytes in the reserve.
    void reserveRequested(qint64 bytes);
    /// Plan again for devices of so many bytes.
    void capacityRequested(qint64 bytes);

protected:
    void keyPressEvent(QKeyEvent* event) override;

private:
    OomComparison m_comparison;
    QLabel* m_headline;
    QGridLayout* m_grid;
    QWidget* m_table;
    QLabel* m_request;
    QPushButton* m_reserve;
    QPushButton* m_capacity;
};

} // namespace shardscope::app
