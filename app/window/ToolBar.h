// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/run/TrainCheck.h"

#include <QWidget>

class QComboBox;
class QLabel;
class QPushButton;
class QToolButton;

namespace shardscope::app {

class Document;
class SegmentedSwitch;

/// The row of controls under the menu.
class ToolBar : public QWidget {
    Q_OBJECT
public:
    explicit ToolBar(Document& document, QWidget* parent = nullptr);
    void setTrainCheck(const TrainCheck& check, bool isRunning);
    void setMode(int mode);
    QPushButton& trainButton() { return *m_train; }

Q_SIGNALS:
    void modeChosen(int mode);
    void savePlanRequested();
    void paletteRequested();
    void trainRequested();
    void replanRequested();
    void elsewhereRequested();

protected:
    void paintEvent(QPaintEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    void showChoices();
    void setIcons();

    Document& m_document;
    QComboBox* m_graph;
    QComboBox* m_cluster;
    QToolButton* m_undo;
    QToolButton* m_redo;
    SegmentedSwitch* m_mode;
    QPushButton* m_save;
    QPushButton* m_search;
    QLabel* m_reason;
    QPushButton* m_replan;
    QPushButton* m_elsewhere;
    QPushButton* m_train;
};

} // namespace shardscope::app
