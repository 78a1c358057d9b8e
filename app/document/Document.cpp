// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/document/Document.h"

#include "app/document/SessionFile.h"
#include "app/look/Units.h"
#include "app/work/Planning.h"
#include "planner/cluster/Clusters.h"
#include "planner/readers/Readers.h"
#include "runtime/contract/Json.h"

#include <QFileInfo>
#include <QMetaObject>
#include <QUndoCommand>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace shardscope::app {

/// One step of the history: the choices before and after.
class ChoicesCommand : public QUndoCommand {
public:
    ChoicesCommand(Document& document, ChoicesPointer before, ChoicesPointer after, const QString& text, int mergeKey)
        : QUndoCommand(text), m_document(document), m_before(std::move(before)), m_after(std::move(after)),
          m_mergeKey(mergeKey) {}
    /// Nothing is applied while a whole history is taken over.
    void undo() override {
        if (!m_document.m_isRestoring)
            m_document.apply(m_before);
    }
    void redo() override {
        if (!m_document.m_isRestoring)
            m_document.apply(m_after);
    }
    const ChoicesPointer& before() const { return m_before; }
    const ChoicesPointer& after() const { return m_after; }
    int id() const override { return 1; }
    bool mergeWith(const QUndoCommand* other) override {
        const auto* next = static_cast<const ChoicesCommand*>(other);
        if (m_mergeKey == 0 || next->m_mergeKey != m_mergeKey)
            return false;
        m_after = next->m_after;
        return true;
    }

private:
    Document& m_document;
    ChoicesPointer m_before;
    ChoicesPointer m_after;
    int m_mergeKey;
};

Document::Document(QObject* parent)
    : QObject(parent), m_choices(std::make_shared<Choices>()), m_planning(new Planning(this)) {
    connect(m_planning, &Planning::answered, this, [this](const AnswerPointer& answer) {
        m_answer = answer;
        Q_EMIT answered();
    });
    connect(m_planning, &Planning::surrounded, this, [this](const SurroundingsPointer& surroundings) {
        m_surroundings = surroundings;
        Q_EMIT surroundingsChanged();
    });
    connect(m_planning, &Planning::compared, this, [this](const ComparisonPointer& comparison) {
        m_comparison = comparison;
        Q_EMIT comparisonChanged();
    });
    connect(m_planning, &Planning::keptAnswered, this, [this](const AnswerPointer& answer) {
        for (SavedPlan& saved : m_saved)
            if (saved.choices == answer->choices)
                saved.answer = answer;
        Q_EMIT savedPlansChanged();
    });
    connect(m_planning, &Planning::remedied, this, [this](const RemediesPointer& remedies) {
        m_remedies = remedies;
        Q_EMIT remediesChanged();
    });
}

Document::~Document() {
    m_undo.disconnect();
    m_opener.cancel();
}

void Document::apply(const ChoicesPointer& choices) {
    const bool isOtherGraph = m_choices->graph != choices->graph;
    const bool isOtherQuestion = !m_choices->asksTheSame(*choices);
    m_choices = choices;
    if (isOtherGraph && !m_selection.empty()) {
        m_selection.clear();
        Q_EMIT selectionChanged();
    }
    if (isOtherQuestion)
        m_surroundings = nullptr;
    Q_EMIT choicesChanged();
    if (isOtherQuestion)
        Q_EMIT surroundingsChanged();
    if (isOpen())
        m_planning->ask(m_choices, m_dragging);
}

void Document::change(const QString& text, const std::function<void(Choices&)>& edit, int mergeKey) {
    auto after = std::make_shared<Choices>(*m_choices);
    edit(*after);
    if (after->asksTheSame(*m_choices) && after->budgetBytes == m_choices->budgetBytes &&
        after->clusterArgument == m_choices->clusterArgument && after->devices == m_choices->devices)
        return;
    m_undo.push(new ChoicesCommand(*this, m_choices, std::move(after), text, mergeKey));
}

void Document::setBudget(std::int64_t bytes, int mergeKey) {
    change(
        tr("Budget %1").arg(gibText(bytes, 2)), [bytes](Choices& choices) { choices.budgetBytes = bytes; }, mergeKey);
}

void Document::setGranularity(planner::Granularity granularity) {
    change(granularity == planner::Granularity::Block ? tr("Place blocks alike")
                                                      : tr("Place every operator on its own"),
           [granularity](Choices& choices) { choices.granularity = granularity; });
}

void Document::setDragging(bool dragging) {
    if (m_dragging == dragging)
        return;
    m_dragging = dragging;
    if (!dragging && isOpen())
        m_planning->ask(m_choices, false);
}

void Document::openLater(const std::function<contract::Result<Opened>(const Choices&)>& opener) {
    m_opener.submit([this, opener, choices = m_choices](const std::stop_token& stop) {
        auto result = std::make_shared<contract::Result<Opened>>(opener(*choices));
        if (stop.stop_requested())
            return;
        const auto deliver = [this, result] {
            if (!*result) {
                Q_EMIT openFailed(QString::fromStdString(result->error().message));
                return;
            }
            Opened& found = **result;
            if (found.isFresh || !isOpen()) {
                const bool hasHistory = !found.history.states.empty();
                replaceChoices(hasHistory ? found.history.states[found.history.current]
                                          : std::make_shared<const Choices>(std::move(found.choices)),
                               found.sessionPath, found.history, found.kept);
                return;
            }
            m_undo.push(new ChoicesCommand(*this, m_choices, std::make_shared<Choices>(std::move(found.choices)),
                                           found.text, 0));
            Q_EMIT opened();
        };
        QMetaObject::invokeMethod(this, deliver, Qt::QueuedConnection);
    });
}

void Document::replaceChoices(ChoicesPointer choices, const QString& sessionPath, const History& history,
                              const std::vector<KeptPlan>& kept) {
    m_sessionPath = sessionPath;
    m_selection.clear();
    m_answer = nullptr;
    m_comparison = nullptr;
    m_remedies = nullptr;
    m_saved.clear();
    for (const KeptPlan& plan : kept)
        m_saved.push_back(
            {QString::fromStdString(plan.name), plan.choices, nullptr, plan.measuredSeconds, plan.measuredBytes});
    m_planning->answerKept(kept);
    apply(choices);
    m_undo.clear();
    m_isRestoring = true;
    for (std::size_t i = 0; i < history.steps.size(); ++i)
        m_undo.push(new ChoicesCommand(*this, history.states[i], history.states[i + 1],
                                       QString::fromStdString(history.steps[i]), 0));
    m_undo.setIndex(static_cast<int>(history.current));
    m_undo.setClean();
    m_isRestoring = false;
    Q_EMIT selectionChanged();
    Q_EMIT savedPlansChanged();
    Q_EMIT opened();
}

History Document::history() const {
    History history;
    for (int i = 0; i < m_undo.count(); ++i) {
        const auto* command = static_cast<const ChoicesCommand*>(m_undo.command(i));
        if (i == 0)
            history.states.push_back(command->before());
        history.states.push_back(command->after());
        history.steps.push_back(command->text().toStdString());
    }
    if (history.states.empty())
        history.states.push_back(m_choices);
    history.current = static_cast<std::size_t>(m_undo.index());
    return history;
}

std::vector<KeptPlan> Document::keptPlans() const {
    std::vector<KeptPlan> kept;
    for (const SavedPlan& saved : m_saved)
        kept.push_back({saved.name.toStdString(), saved.choices, saved.measuredSeconds, saved.measuredBytes});
    return kept;
}

namespace {

/// Where a graph alone is opened, it is planned for the first bundled cluster of several cards.
constexpr const char* kFirstCluster = "8x-titan-pcie3";

contract::Result<Choices> withGraph(Choices choices, const std::string& argument) {
    auto graph = planner::openGraph(argument);
    if (!graph)
        return tl::unexpected(graph.error());
    choices.graph = *graph;
    choices.graphArgument = argument;
    choices.sequence = 0;
    choices.pins.clear();
    if (choices.cluster.name.empty()) {
        auto cluster = planner::openCluster(kFirstCluster);
        if (!cluster)
            return tl::unexpected(cluster.error());
        choices.cluster = *cluster;
        choices.clusterArgument = kFirstCluster;
    }
    return choices;
}

/// Memory alone would allow steps of minutes on a few cores; this keeps them at seconds.
constexpr std::int64_t kSamplesPerCore = 16;

Choices withBatch(Choices choices, std::int64_t samplesPerDevice) {
    choices.globalBatch = samplesPerDevice * choices.cluster.devices();
    choices.accumulate = 0;
    return choices;
}

contract::Result<Choices> withCluster(Choices choices, const std::string& argument) {
    auto cluster = planner::openCluster(argument);
    if (!cluster)
        return tl::unexpected(cluster.error());
    choices.cluster = *cluster;
    choices.clusterArgument = argument;
    choices.devices.clear();
    choices.budgetBytes = 0;
    choices.extraReserveBytes = 0;
    choices.deviceBytes = 0;
    return choices;
}

} // namespace

void Document::openGraph(const QString& argument) {
    openLater([argument](const Choices& now) -> contract::Result<Opened> {
        auto choices = withGraph(now, argument.toStdString());
        if (!choices)
            return tl::unexpected(choices.error());
        return Opened{std::move(*choices), tr("Open %1").arg(argument), false};
    });
}

void Document::openCluster(const QString& argument) {
    openLater([argument](const Choices& now) -> contract::Result<Opened> {
        auto choices = withCluster(now, argument.toStdString());
        if (!choices)
            return tl::unexpected(choices.error());
        return Opened{std::move(*choices), tr("Cluster %1").arg(argument), false};
    });
}

void Document::openPath(const QString& path) {
    openLater([path](const Choices& now) -> contract::Result<Opened> {
        const std::string file = path.toStdString();
        const auto kind = kindOfFile(file);
        if (!kind)
            return tl::unexpected(kind.error());
        if (*kind == FileKind::Session)
            return openSession(path);
        auto choices = *kind == FileKind::Plan      ? choicesOfPlan(file)
                       : *kind == FileKind::Cluster ? withCluster(now, file)
                                                    : withGraph(now, file);
        if (!choices)
            return tl::unexpected(choices.error());
        return Opened{std::move(*choices), tr("Open %1").arg(QFileInfo(path).fileName()), *kind == FileKind::Plan};
    });
}

contract::Result<Document::Opened> Document::openSession(const QString& path) {
    const std::string file = path.toStdString();
    const auto text = contract::readTextFile(file);
    if (!text)
        return tl::unexpected(text.error());
    auto session = app::openSession(*text, file);
    if (!session)
        return tl::unexpected(session.error());
    History& history = session->history;
    return Opened{
        *history.states[history.current], tr("Open %1").arg(QFileInfo(path).fileName()), true, path, std::move(history),
        std::move(session->kept)};
}

void Document::open(const QString& graph, const QString& cluster, std::int64_t budgetBytes,
                    std::int64_t samplesPerDevice) {
    openLater([graph, cluster, budgetBytes, samplesPerDevice](const Choices&) -> contract::Result<Opened> {
        Choices fresh;
        fresh.graphArgument = graph.toStdString();
        fresh.clusterArgument = cluster.toStdString();
        fresh.budgetBytes = budgetBytes;
        auto choices = openChoices(std::move(fresh));
        if (!choices)
            return tl::unexpected(choices.error());
        return Opened{samplesPerDevice > 0 ? withBatch(std::move(*choices), samplesPerDevice) : std::move(*choices),
                      tr("Open")};
    });
}

void Document::replanForThisMachine() {
    openLater([](const Choices& now) -> contract::Result<Opened> {
        auto local = withCluster(now, "local");
        if (!local)
            return tl::unexpected(local.error());
        return Opened{local->globalBatch == 0 ? withBatch(std::move(*local), kSamplesPerCore) : std::move(*local),
                      tr("Plan for this machine"), false};
    });
}

bool Document::saveSession(const QString& path) {
    const auto written = contract::writeFileAtomically(path.toStdString(), formatSession(history(), keptPlans()));
    if (!written) {
        Q_EMIT openFailed(QString::fromStdString(written.error().message));
        return false;
    }
    m_sessionPath = path;
    m_undo.setClean();
    return true;
}

void Document::close() {
    replaceChoices(std::make_shared<const Choices>(), {});
}

void Document::select(std::vector<std::int32_t> operators) {
    std::sort(operators.begin(), operators.end());
    operators.erase(std::unique(operators.begin(), operators.end()), operators.end());
    if (operators == m_selection)
        return;
    m_selection = std::move(operators);
    Q_EMIT selectionChanged();
}

void Document::placeSelection(const contract::Placement& placement) {
    if (m_selection.empty() || !isOpen())
        return;
    const QString what =
        m_selection.size() == 1
            ? QString::fromStdString(m_choices->graph->operators[static_cast<std::size_t>(m_selection.front())].name)
            : tr("%1 operators").arg(m_selection.size());
    change(tr("Place %1: %2").arg(what, placementWord(placement)), [&](Choices& choices) {
        choices.pins = withPins(std::move(choices.pins), *choices.graph, m_selection, placement);
    });
}

void Document::unpinSelection() {
    if (m_selection.empty() || !isOpen())
        return;
    change(tr("Unpin"), [&](Choices& choices) {
        choices.pins = withPins(std::move(choices.pins), *choices.graph, m_selection, std::nullopt);
    });
}

bool Document::isSelectionPinned() const {
    if (!isOpen() || m_selection.empty())
        return false;
    return std::any_of(m_selection.begin(), m_selection.end(), [this](std::int32_t op) {
        const std::string& name = m_choices->graph->operators[static_cast<std::size_t>(op)].name;
        return std::any_of(m_choices->pins.begin(), m_choices->pins.end(),
                           [&](const planner::Pin& pin) { return matchesGlob(pin.pattern, name); });
    });
}

void Document::reserveMore(std::int64_t bytes) {
    if (!isOpen() || bytes <= 0)
        return;
    change(tr("Reserve %1 more").arg(bytesText(bytes)), [bytes](Choices& choices) {
        // One line for all that was seen, however often.
        std::erase_if(choices.cluster.reserve, [&](const contract::ReserveLine& line) {
            return line.bytes == choices.extraReserveBytes && line.source == "measured" &&
                   line.what == "seen beyond the plan";
        });
        choices.extraReserveBytes += bytes;
        choices.teachCluster();
    });
}

void Document::setDeviceBytes(std::int64_t bytes) {
    if (!isOpen() || bytes <= 0)
        return;
    change(tr("Devices of %1").arg(bytesText(bytes)), [bytes](Choices& choices) {
        choices.deviceBytes = bytes;
        choices.cluster.device.memoryBytes = bytes;
    });
}

void Document::applyRemedy(int index) {
    if (!m_remedies || index < 0 || index >= static_cast<int>(m_remedies->list.size()))
        return;
    const planner::Remedy remedy = m_remedies->list[static_cast<std::size_t>(index)];
    change(QString::fromStdString(remedy.change), [&](Choices& choices) {
        const planner::PlanRequest& request = remedy.request;
        choices.cluster = request.cluster;
        if (request.cluster.devices() != m_choices->cluster.devices())
            choices.devices =
                std::to_string(request.cluster.nodes) + 'x' + std::to_string(request.cluster.devicesPerNode);
        choices.sequence = request.graph->sequence == choices.graph->sequence ? 0 : request.graph->sequence;
        choices.precision = request.precision;
        choices.microBatch = request.microBatch;
        choices.accumulate = request.accumulate;
        choices.globalBatch = request.globalBatch;
        choices.recompute = request.recompute;
        choices.slicesUpTo =
            request.slices.empty() ? 1 : *std::max_element(request.slices.begin(), request.slices.end());
        choices.lossChunks = request.lossChunks;
        choices.prefetchDepth = request.prefetchDepth;
        choices.granularity = request.granularity;
        choices.allowReplicate = request.allowReplicate;
        choices.allowKeep = request.allowKeep;
        choices.allowShard = request.allowShard;
        choices.pins = request.pins;
        choices.recomputePins = request.recomputePins;
    });
}

void Document::savePlan() {
    if (!m_answer || !m_answer->plan || !m_answer->plan->feasible)
        return;
    // The first letter that is free.
    QString name;
    for (int i = 0; name.isEmpty(); ++i) {
        const QString letter = i < 26 ? QString(QChar('A' + i)) : QString::number(i - 24);
        name = tr("plan %1").arg(letter);
        if (std::any_of(m_saved.begin(), m_saved.end(), [&](const SavedPlan& saved) { return saved.name == name; }))
            name.clear();
    }
    m_saved.push_back({name, m_answer->choices, m_answer, 0, 0});
    Q_EMIT savedPlansChanged();
}

void Document::removeSavedPlan(int index) {
    if (index < 0 || index >= static_cast<int>(m_saved.size()))
        return;
    m_saved.erase(m_saved.begin() + index);
    Q_EMIT savedPlansChanged();
}

void Document::setMeasured(int savedIndex, double stepSeconds, std::int64_t peakBytes) {
    if (savedIndex < 0 || savedIndex >= static_cast<int>(m_saved.size()))
        return;
    SavedPlan& saved = m_saved[static_cast<std::size_t>(savedIndex)];
    saved.measuredSeconds = stepSeconds;
    saved.measuredBytes = peakBytes;
    Q_EMIT savedPlansChanged();
}

} // namespace shardscope::app
