// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/work/Reviewing.h"

#include <QWidget>

class QLabel;
class QProgressBar;
class QPushButton;

namespace shardscope::app {

class DataTable;
class LogTable;
class Legend;
class LossChart;
class MemoryBars;
class RunRecord;
class Trainer;
class WorkersTable;

/// A run: loss, memory measured over predicted, workers and log.
class RunPage : public QWidget {
    Q_OBJECT
public:
    explicit RunPage(Trainer& trainer, QWidget* parent = nullptr);
    /// Shows a record without a trainer: for pictures.
    void showRecord(const RunRecord& record);
    LossChart& lossChart() { return *m_loss; }
    QPushButton& resumeButton() { return *m_resume; }
    QPushButton& recalibrateButton() { return *m_recalibrate; }
    MemoryBars& memoryBars() { return *m_memory; }

    /// What the newest traced step says of the prediction; null: nothing yet.
    void setReview(const RunReviewPointer& review);

Q_SIGNALS:
    void recalibrateRequested();
    void resumeRequested();

private:
    void refresh();

    Trainer& m_trainer;
    QLabel* m_headline;
    QLabel* m_folder;
    QProgressBar* m_progress;
    QPushButton* m_stop;
    QPushButton* m_resume;
    QPushButton* m_recalibrate;
    QPushButton* m_kill;
    LossChart* m_loss;
    MemoryBars* m_memory;
    Legend* m_memoryLegend = nullptr;
    QLabel* m_devices; ///< how busy, warm and hungry they are
    WorkersTable* m_workers;
    LogTable* m_log;
    DataTable* m_logView;
};

} // namespace shardscope::app
