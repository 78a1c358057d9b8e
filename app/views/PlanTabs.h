// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/views/Card.h"
#include "app/work/Simulating.h"

class QComboBox;
class QStackedWidget;

namespace shardscope::app {

class CommunicationTable;
class DataTable;
class Document;
class Legend;
class MemoryView;
class PlansTable;
class TabStrip;
class TimelineView;
class WaterfallView;

/// The lower part of the plan page: one step over time, what is sent, and how other plans compare.
class PlanTabs : public Card {
    Q_OBJECT
public:
    enum Tab { TimelineTab, MemoryTab, CommunicationTab, PlansTab, DifferenceTab };
    explicit PlanTabs(Document& document, QWidget* parent = nullptr);
    void showTab(int tab);
    /// A traced step of a run, shown under the simulated one as long as the plan is that of the run. Null: none.
    void setMeasured(const RunReviewPointer& review);
    int currentTab() const;
    TimelineView& timeline() { return *m_timeline; }
    MemoryView& memory() { return *m_memory; }
    WaterfallView& waterfall() { return *m_waterfall; }
    DataTable& communicationView() { return *m_communicationView; }
    DataTable& plansView() { return *m_plansView; }
    const PlansTable& plansTable() const { return *m_plansTable; }

private:
    QWidget* buildTimeline();
    QWidget* buildMemory();
    QWidget* buildTables();
    QWidget* buildDifference();
    void showAnswer();
    void showPicture(const StepPicturePointer& picture);
    void showPlans();
    void showNote();
    void simulateWhenSeen();
    void compareWhenSeen();

    Document& m_document;
    Simulating m_simulating;
    TabStrip* m_tabs;
    QStackedWidget* m_pages;
    TimelineView* m_timeline = nullptr;
    MemoryView* m_memory = nullptr;
    Legend* m_memoryLegend = nullptr;
    CommunicationTable* m_communicationTable;
    PlansTable* m_plansTable;
    DataTable* m_communicationView = nullptr;
    DataTable* m_plansView = nullptr;
    QComboBox* m_other = nullptr;
    WaterfallView* m_waterfall = nullptr;
    RunReviewPointer m_measured;
    planner::PlanResultPointer m_simulatedPlan;
    std::pair<planner::PlanResultPointer, planner::PlanResultPointer> m_comparedPlans;
};

} // namespace shardscope::app
