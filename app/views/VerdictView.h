// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/document/Verdict.h"
#include "app/views/Card.h"

class QPushButton;

namespace shardscope::app {

class PartsLabel;
class PeakBarView;

/// The sentence that answers the question, its numbers, and one stacked bar of a device's peak.
class VerdictView : public Card {
    Q_OBJECT
public:
    explicit VerdictView(QWidget* parent = nullptr);
    void setAnswer(const AnswerPointer& answer, const ComparisonPointer& comparison);
    const Verdict& verdict() const { return m_verdict; }
    /// Whether a step can be tried on this machine, which a tight answer then offers.
    void setCanTest(bool canTest);

Q_SIGNALS:
    void smallestRequested(qint64 bytes);
    void testStepRequested();

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    void showButton();
    bool m_canTest = false;
    Verdict m_verdict;
    QLabel* m_headline;
    PartsLabel* m_detail;
    QLabel* m_rate;
    PartsLabel* m_numbers;
    QPushButton* m_remedy;
    PeakBarView* m_bar;
};

} // namespace shardscope::app
