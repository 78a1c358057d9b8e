// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/layout/MapRows.h"
#include "app/views/Card.h"
#include "app/work/Answer.h"

class QCheckBox;
class QComboBox;
class QStackedWidget;

namespace shardscope::app {

class Document;
class PlacementCard;
class ValueRows;

/// The right column: the selected operator's placement, the reason for it, its memory and its time.
class Inspector : public Card {
    Q_OBJECT
public:
    explicit Inspector(Document& document, QWidget* parent = nullptr);

protected:
    void changeEvent(QEvent* event) override;

private:
    QWidget* buildSelectionPage();
    QWidget* buildOverviewPage();
    void refresh();
    void showSelection(const std::vector<const MapRow*>& rows);
    void showOverview();
    void showReasons(const Explanation& explanation);
    void place(contract::PlacementKind kind);

    Document& m_document;
    std::vector<MapRow> m_rows;
    QStackedWidget* m_pages;
    // One or several operators selected.
    QLabel* m_name;
    QLabel* m_facts;
    PlacementCard* m_placements[3] = {};
    QComboBox* m_slices;
    QCheckBox* m_pin;
    QLabel* m_why;
    ValueRows* m_memory;
    ValueRows* m_time;
    // Nothing selected.
    ValueRows* m_costliest;
    QLabel* m_overviewText;
};

} // namespace shardscope::app
