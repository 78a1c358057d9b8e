// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/run/RunTarget.h"
#include "app/views/Card.h"

#include <functional>
#include <vector>

class QComboBox;
class QGridLayout;
class QLineEdit;
class QPushButton;
class QSpinBox;

namespace shardscope::app {

/// A card over the window in which a run is started; not a dialog.
class TrainCard : public Card {
    Q_OBJECT
public:
    explicit TrainCard(QWidget* parent = nullptr);
    /// `buttonText` is for this machine. Where that has not the plan's devices, `isElsewhere`, other targets are
    /// offered only.
    void open(const TrainSettings& settings, const QString& buttonText, bool isElsewhere = false);
    TrainSettings settings() const;
    RunTarget target() const;
    /// The machine that was chosen last, kept with the settings of the program.
    void keepTarget() const;

Q_SIGNALS:
    void startRequested(const shardscope::app::TrainSettings& settings, const shardscope::app::RunTarget& target);

protected:
    void keyPressEvent(QKeyEvent* event) override;

private:
    using Rows = std::vector<QWidget*>;
    void start();
    void buildFields(QGridLayout* grid);
    void restoreTarget();
    void showKind();
    void choose(const QString& title, bool folder, const std::function<void(const QString&)>& take);
    QComboBox* m_kind;
    QLineEdit* m_host;
    QLineEdit* m_program;
    QLineEdit* m_prelude;
    QLineEdit* m_partition;
    QLineEdit* m_time;
    QLineEdit* m_there;
    QComboBox* m_data;
    QLineEdit* m_tokenizer;
    QSpinBox* m_steps;
    QLineEdit* m_rate;
    QSpinBox* m_seed;
    QSpinBox* m_every;
    QSpinBox* m_restarts;
    QLineEdit* m_directory;
    QLabel* m_problem;
    QPushButton* m_start;
    Rows m_elsewhereRows; ///< shown for other machines
    Rows m_slurmRows;     ///< shown for Slurm
    Rows m_hereRows;      ///< shown for this machine
    QLabel* m_hostLabel = nullptr;
    QString m_buttonText;
};

} // namespace shardscope::app
