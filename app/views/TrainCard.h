// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/run/Trainer.h"
#include "app/views/Card.h"

class QComboBox;
class QLineEdit;
class QPushButton;
class QSpinBox;

namespace shardscope::app {

/// A card over the window in which a run is started; not a dialog.
class TrainCard : public Card {
    Q_OBJECT
public:
    explicit TrainCard(QWidget* parent = nullptr);
    void open(const TrainSettings& settings, const QString& buttonText);
    TrainSettings settings() const;

Q_SIGNALS:
    void startRequested(const shardscope::app::TrainSettings& settings);

protected:
    void keyPressEvent(QKeyEvent* event) override;

private:
    void start();
    QComboBox* m_data;
    QSpinBox* m_steps;
    QLineEdit* m_rate;
    QSpinBox* m_seed;
    QSpinBox* m_every;
    QLineEdit* m_directory;
    QPushButton* m_start;
};

} // namespace shardscope::app
