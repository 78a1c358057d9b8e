// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/layout/MapRows.h"
#include "app/work/Answer.h"

#include <QWidget>

class QLabel;

class QStackedWidget;

namespace shardscope::app {

class BudgetField;
class Card;
class DataTable;
class Document;
class FrontierView;
class Legend;
class OperatorMap;
class OperatorTable;
class RemediesView;
class PlanTabs;
class SegmentedSwitch;

/// The centre of the window while planning: map, budget, and tables below.
class PlanPage : public QWidget {
    Q_OBJECT
public:
    explicit PlanPage(Document& document, QWidget* parent = nullptr);
    OperatorMap& map() { return *m_map; }
    FrontierView& frontier() { return *m_frontier; }
    PlanTabs& tabs() { return *m_tabs; }
    void showTableTwin(bool shown);
    bool isTableTwinShown() const;
    void setFolded(bool folded);

Q_SIGNALS:
    void tableTwinShown(bool shown);

private:
    QWidget* buildMap();
    QWidget* buildBudget();
    void connectMap();
    void showAnswer();
    void showFrontier();
    void showFlip();
    void setCompared(bool held);
    QWidget* buildGranularity(Card* card);
    void showGranularity();

    Document& m_document;
    Card* m_mapCard = nullptr;
    OperatorMap* m_map;
    Legend* m_legend = nullptr;
    SegmentedSwitch* m_granularity = nullptr;
    OperatorTable* m_operatorTable;
    DataTable* m_operatorView = nullptr;
    QWidget* m_twin = nullptr;
    RemediesView* m_remedies = nullptr;
    QStackedWidget* m_mapPages = nullptr;
    FrontierView* m_frontier;
    BudgetField* m_budget = nullptr;
    QLabel* m_flip = nullptr;
    PlanTabs* m_tabs;
    int m_dragKey = 0;
    bool m_isComparing = false;
    bool m_isTable = false;
};

} // namespace shardscope::app
