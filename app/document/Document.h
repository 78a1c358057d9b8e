// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/document/Choices.h"
#include "app/work/Answer.h"
#include "app/work/LatestWins.h"

#include <QObject>
#include <QUndoStack>

#include <functional>

namespace shardscope::app {

class Planning;

/// A plan that was saved to look at beside others.
struct SavedPlan {
    QString name;
    ChoicesPointer choices;
    AnswerPointer answer;           ///< null until a session's plan is found again
    double measuredSeconds = 0;     ///< of a step, measured elsewhere; 0: not said
    std::int64_t measuredBytes = 0; ///< peak of a device, measured elsewhere; 0: not said
};

/// What is open: the choices with their undo history, the newest answer and what is selected.
class Document : public QObject {
    Q_OBJECT
public:
    explicit Document(QObject* parent = nullptr);
    ~Document() override;

    const Choices& choices() const { return *m_choices; }
    ChoicesPointer choicesPointer() const { return m_choices; }
    bool isOpen() const { return m_choices->isComplete(); }
    QUndoStack& undoStack() { return m_undo; }
    Planning& planning() { return *m_planning; }
    AnswerPointer answer() const { return m_answer; }
    SurroundingsPointer surroundings() const { return m_surroundings; }
    ComparisonPointer comparison() const { return m_comparison; }
    RemediesPointer remedies() const { return m_remedies; }
    const std::vector<std::int32_t>& selection() const { return m_selection; }
    const std::vector<SavedPlan>& savedPlans() const { return m_saved; }
    const QString& sessionPath() const { return m_sessionPath; }

    /// Changes the choices as one undo step named `text`. Steps with the same `mergeKey` (not 0) are one step.
    void change(const QString& text, const std::function<void(Choices&)>& edit, int mergeKey = 0);
    /// A key for a new gesture (one drag, one held key).
    int newMergeKey() { return ++m_lastMergeKey; }
    void setBudget(std::int64_t bytes, int mergeKey = 0);
    /// What is placed alike.
    void setGranularity(planner::Granularity granularity);
    /// While dragging, answers may be incumbents; the end of the drag asks for the exact answer.
    void setDragging(bool dragging);

    // Opening happens on a thread; failures come as openFailed() and change nothing.
    void openGraph(const QString& argument);
    void openCluster(const QString& argument);
    /// A session, plan, cluster, graph file or folder.
    void openPath(const QString& path);
    /// Replaces everything: a bundled example, or what the command line named. `samplesPerDevice` fixes the global
    /// batch; 0 leaves it free.
    void open(const QString& graph, const QString& cluster, std::int64_t budgetBytes,
              std::int64_t samplesPerDevice = 0);
    /// Plans for this machine's cores, with a batch that such cores train in moments.
    void replanForThisMachine();
    /// `history`, if not empty, is what can be undone and redone then; its current state is that of the choices.
    void replaceChoices(ChoicesPointer choices, const QString& sessionPath, const History& history = {},
                        const std::vector<KeptPlan>& kept = {});
    /// What can be undone and redone.
    History history() const;
    /// The saved plans as a session remembers them.
    std::vector<KeptPlan> keptPlans() const;
    /// Errors are openFailed().
    bool saveSession(const QString& path);
    void close();

    void select(std::vector<std::int32_t> operators);
    /// Pins the selection to a placement. Operators of all blocks under one name become one pattern.
    void placeSelection(const contract::Placement& placement);
    void unpinSelection();
    bool isSelectionPinned() const;
    /// Plans with more memory set aside than the cluster says; undone like any choice.
    void reserveMore(std::int64_t bytes);
    /// Plans for devices of another size than the cluster says.
    void setDeviceBytes(std::int64_t bytes);
    /// Makes the change that a remedy of the current answer proposes.
    void applyRemedy(int index);
    void savePlan();
    void removeSavedPlan(int index);
    /// What a run elsewhere took; 0: not said.
    void setMeasured(int savedIndex, double stepSeconds, std::int64_t peakBytes);

Q_SIGNALS:
    void choicesChanged();
    void answered();
    void surroundingsChanged();
    void comparisonChanged();
    void remediesChanged();
    void selectionChanged();
    void savedPlansChanged();
    void openFailed(const QString& message);
    void opened();

private:
    friend class ChoicesCommand;
    void apply(const ChoicesPointer& choices);
    /// What a thread opened.
    struct Opened {
        Choices choices;
        QString text;        ///< names the undo step
        bool isFresh = true; ///< replaces everything instead of being a step
        QString sessionPath{};
        History history{}; ///< of a session
        std::vector<KeptPlan> kept{};
    };
    static contract::Result<Opened> openSession(const QString& path);
    void openLater(const std::function<contract::Result<Opened>(const Choices&)>& opener);

    ChoicesPointer m_choices;
    QUndoStack m_undo;
    Planning* m_planning;
    AnswerPointer m_answer;
    SurroundingsPointer m_surroundings;
    ComparisonPointer m_comparison;
    RemediesPointer m_remedies;
    std::vector<std::int32_t> m_selection;
    std::vector<SavedPlan> m_saved;
    QString m_sessionPath;
    int m_lastMergeKey = 0;
    bool m_dragging = false;
    bool m_isRestoring = false;
    LatestWins m_opener;
};

/// Removes pins of exactly these names and patterns that match nothing else, then adds the placement.
std::vector<planner::Pin> withPins(std::vector<planner::Pin> pins, const planner::Graph& graph,
                                   const std::vector<std::int32_t>& operators,
                                   const std::optional<contract::Placement>& placement);
/// `*` stands for any run of characters.
bool matchesGlob(std::string_view pattern, std::string_view name);

} // namespace shardscope::app
