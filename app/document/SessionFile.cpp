// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/document/SessionFile.h"

#include "planner/cluster/Clusters.h"
#include "planner/readers/Readers.h"
#include "runtime/contract/Plan.h"

#include <QFileInfo>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace shardscope::app {

namespace {

constexpr const char* kFormat = "shardscope-session";
constexpr int kVersion = 1;

contract::OrderedJson jsonOf(const Choices& choices) {
    contract::OrderedJson json;
    json["graph"] = choices.graphArgument;
    json["cluster"] = choices.clusterArgument;
    json["devices"] = choices.devices;
    contract::OrderedJson training;
    training["sequence"] = choices.sequence;
    training["precision"] = choices.precision;
    training["micro_batch"] = choices.microBatch;
    training["accumulate"] = choices.accumulate;
    training["global_batch"] = choices.globalBatch;
    training["recompute"] = std::string(contract::recomputePolicyName(choices.recompute));
    if (choices.attention)
        training["attention"] = std::string(contract::attentionKernelName(*choices.attention));
    training["slices_up_to"] = choices.slicesUpTo;
    training["loss_chunks"] = choices.lossChunks;
    training["prefetch_depth"] = choices.prefetchDepth;
    training["granularity"] = choices.granularity == planner::Granularity::Block ? "block" : "operator";
    training["replicate"] = choices.allowReplicate;
    training["keep"] = choices.allowKeep;
    training["shard"] = choices.allowShard;
    json["training"] = training;
    json["budget_bytes"] = choices.budgetBytes;
    if (choices.extraReserveBytes > 0)
        json["extra_reserve_bytes"] = choices.extraReserveBytes;
    if (choices.deviceBytes > 0)
        json["device_bytes"] = choices.deviceBytes;
    json["pins"] = contract::OrderedJson::array();
    for (const planner::Pin& pin : choices.pins)
        json["pins"].push_back({{"operators", pin.pattern}, {"placement", contract::formatPlacement(pin.placement)}});
    json["recompute_pins"] = contract::OrderedJson::array();
    for (const planner::RecomputePin& pin : choices.recomputePins)
        json["recompute_pins"].push_back({{"blocks", pin.pattern}, {"recompute", pin.recompute}});
    return json;
}

/// Failures are the document's.
Choices readChoices(const contract::JsonCursor& root) {
    Choices choices;
    choices.graphArgument = root.at("graph").text();
    choices.clusterArgument = root.at("cluster").text();
    choices.devices = root.at("devices").text();
    const auto training = root.at("training");
    choices.sequence = training.at("sequence").integer(0, 1 << 24);
    choices.precision = training.at("precision").text();
    choices.microBatch = training.at("micro_batch").integer(0, 1 << 20);
    choices.accumulate = training.at("accumulate").integer(0, 1 << 20);
    choices.globalBatch = training.at("global_batch").integer(0, 1 << 24);
    choices.recompute =
        training.at("recompute")
            .choice<contract::RecomputePolicy>(
                {{contract::recomputePolicyName(contract::RecomputePolicy::Auto), contract::RecomputePolicy::Auto},
                 {contract::recomputePolicyName(contract::RecomputePolicy::Off), contract::RecomputePolicy::Off},
                 {contract::recomputePolicyName(contract::RecomputePolicy::On), contract::RecomputePolicy::On}});
    if (const auto attention = training.find("attention"))
        choices.attention = attention->choice<contract::AttentionKernel>(
            {{contract::attentionKernelName(contract::AttentionKernel::Fused), contract::AttentionKernel::Fused},
             {contract::attentionKernelName(contract::AttentionKernel::Materialised),
              contract::AttentionKernel::Materialised}});
    choices.slicesUpTo = static_cast<std::int32_t>(training.at("slices_up_to").integer(1, 1024));
    // Sessions written before these were chosen in the window lack them.
    if (const auto chunks = training.find("loss_chunks"))
        choices.lossChunks = chunks->integer(1, 1 << 20);
    if (const auto depth = training.find("prefetch_depth"))
        choices.prefetchDepth = static_cast<std::int32_t>(depth->integer(0, 1024));
    if (const auto granularity = training.find("granularity"))
        choices.granularity = granularity->choice<planner::Granularity>(
            {{"operator", planner::Granularity::Operator}, {"block", planner::Granularity::Block}});
    choices.allowReplicate = training.at("replicate").boolean();
    choices.allowKeep = training.at("keep").boolean();
    choices.allowShard = training.at("shard").boolean();
    choices.budgetBytes = root.at("budget_bytes").integer();
    if (const auto extra = root.find("extra_reserve_bytes"))
        choices.extraReserveBytes = extra->integer();
    if (const auto device = root.find("device_bytes"))
        choices.deviceBytes = device->integer();
    const auto pins = root.at("pins");
    const std::size_t count = pins.arraySize(100'000);
    for (std::size_t i = 0; i < count && !root.failed(); ++i) {
        const auto pin = pins.element(i);
        const auto placement = contract::parsePlacement(pin.at("placement").text());
        if (!placement)
            pin.at("placement").fail(placement.error().message);
        else
            choices.pins.push_back({pin.at("operators").text(), *placement});
    }
    const auto recomputePins = root.at("recompute_pins");
    const std::size_t recomputeCount = recomputePins.arraySize(100'000);
    for (std::size_t i = 0; i < recomputeCount && !root.failed(); ++i)
        choices.recomputePins.push_back(
            {recomputePins.element(i).at("blocks").text(), recomputePins.element(i).at("recompute").boolean()});
    return choices;
}

contract::OrderedJson sessionOf(const Choices& choices) {
    contract::OrderedJson json{{"format", kFormat}, {"version", kVersion}};
    json.update(jsonOf(choices));
    return json;
}

void checkFormat(const contract::JsonCursor& root) {
    if (root.at("format").text() != kFormat)
        root.at("format").fail("is not \"shardscope-session\"");
    root.at("version").integer(kVersion, kVersion);
}

/// What a session shows; graph and cluster are not opened yet.
contract::Result<Choices> readShown(const contract::JsonCursor& root) {
    checkFormat(root);
    Choices choices = readChoices(root);
    if (root.failed())
        return root.error();
    return choices;
}

} // namespace

std::string formatSession(const Choices& choices) {
    return sessionOf(choices).dump(2) + '\n';
}

std::string formatSession(const History& history, const std::vector<KeptPlan>& kept) {
    contract::OrderedJson json = sessionOf(*history.states[history.current]);
    for (const KeptPlan& plan : kept) {
        contract::OrderedJson entry{{"name", plan.name}};
        if (plan.measuredSeconds > 0)
            entry["measured_step_seconds"] = plan.measuredSeconds;
        if (plan.measuredBytes > 0)
            entry["measured_peak_bytes"] = plan.measuredBytes;
        entry["choices"] = jsonOf(*plan.choices);
        json["kept_plans"].push_back(std::move(entry));
    }
    // The steps nearest to what is shown, as many back as forth where there are too many.
    const std::size_t first = history.current > kMostSteps / 2 ? history.current - kMostSteps / 2 : 0;
    const std::size_t last = std::min(history.steps.size(), first + kMostSteps);
    if (last == first)
        return json.dump(2) + '\n';
    contract::OrderedJson& steps = json["history"];
    steps["current"] = history.current - first;
    for (std::size_t i = first; i < last; ++i)
        steps["steps"].push_back(history.steps[i]);
    for (std::size_t i = first; i <= last; ++i)
        steps["states"].push_back(jsonOf(*history.states[i]));
    return json.dump(2) + '\n';
}

contract::Result<Choices> parseSession(std::string_view text, std::string_view file) {
    const auto json = contract::parseJson(text, file);
    if (!json)
        return tl::unexpected(json.error());
    const contract::JsonCursor root(*json, file);
    return readShown(root);
}

namespace {

/// Opens what a session holds besides what it shows; most of it shares graph and cluster with something before.
class StateOpener {
public:
    explicit StateOpener(ChoicesPointer shown) : m_opened{std::move(shown)} {}

    /// Null when graph or cluster do not open any more.
    ChoicesPointer open(Choices choices) {
        const auto isSame = [&](const ChoicesPointer& other) {
            return other->graphArgument == choices.graphArgument && other->clusterArgument == choices.clusterArgument &&
                   other->devices == choices.devices && other->extraReserveBytes == choices.extraReserveBytes &&
                   other->deviceBytes == choices.deviceBytes;
        };
        if (const auto same = std::find_if(m_opened.begin(), m_opened.end(), isSame); same != m_opened.end()) {
            choices.graph = (*same)->graph;
            choices.cluster = (*same)->cluster;
            return std::make_shared<const Choices>(std::move(choices));
        }
        auto found = openChoices(std::move(choices));
        if (!found)
            return nullptr;
        m_opened.push_back(std::make_shared<const Choices>(std::move(*found)));
        return m_opened.back();
    }

private:
    std::vector<ChoicesPointer> m_opened; ///< no two alike in graph and cluster
};

/// Empty when the session has none, or none that opens as it did.
History readHistory(const contract::JsonCursor& root, const ChoicesPointer& current, StateOpener& opener) {
    const auto kept = root.find("history");
    if (!kept)
        return {};
    History history;
    const std::size_t steps = kept->at("steps").arraySize(kMostSteps);
    const std::size_t states = kept->at("states").arraySize(kMostSteps + 1);
    history.current = static_cast<std::size_t>(kept->at("current").integer(0, kMostSteps));
    if (root.failed() || states != steps + 1 || history.current >= states)
        return {};
    for (std::size_t i = 0; i < steps; ++i)
        history.steps.push_back(kept->at("steps").element(i).text());
    for (std::size_t i = 0; i < states && !root.failed(); ++i) {
        ChoicesPointer state = i == history.current ? current : opener.open(readChoices(kept->at("states").element(i)));
        if (!state)
            return {};
        history.states.push_back(std::move(state));
    }
    return root.failed() ? History() : history;
}

constexpr std::size_t kMostKept = 100;

/// Those that can be opened.
std::vector<KeptPlan> readKept(const contract::JsonCursor& root, StateOpener& opener) {
    const auto list = root.find("kept_plans");
    if (!list || root.failed())
        return {};
    std::vector<KeptPlan> kept;
    const std::size_t count = list->arraySize(kMostKept);
    for (std::size_t i = 0; i < count && !root.failed(); ++i) {
        const auto entry = list->element(i);
        KeptPlan plan;
        plan.name = entry.at("name").text();
        if (const auto seconds = entry.find("measured_step_seconds"))
            plan.measuredSeconds = seconds->number(0, 1e6);
        if (const auto bytes = entry.find("measured_peak_bytes"))
            plan.measuredBytes = bytes->integer(0, std::int64_t{1} << 50);
        Choices choices = readChoices(entry.at("choices"));
        if (root.failed())
            return {};
        plan.choices = opener.open(std::move(choices));
        if (plan.choices)
            kept.push_back(std::move(plan));
    }
    return root.failed() ? std::vector<KeptPlan>() : kept;
}

} // namespace

contract::Result<Session> openSession(std::string_view text, std::string_view file) {
    const auto json = contract::parseJson(text, file);
    if (!json)
        return tl::unexpected(json.error());
    const contract::JsonCursor root(*json, file);
    auto opened = readShown(root).and_then(openChoices);
    if (!opened)
        return tl::unexpected(opened.error());
    const auto current = std::make_shared<const Choices>(std::move(*opened));
    StateOpener opener(current);
    std::vector<KeptPlan> kept = readKept(root, opener);
    // A cursor that failed says nothing more: the history is read with another one.
    const contract::JsonCursor again(*json, file);
    History history = readHistory(again, current, opener);
    if (history.states.empty())
        history = {{current}, {}, 0};
    return Session{std::move(history), std::move(kept)};
}

contract::Result<Choices> openChoices(Choices choices) {
    const auto graph = planner::openGraph(choices.graphArgument);
    if (!graph)
        return tl::unexpected(graph.error());
    const auto cluster = planner::openCluster(choices.clusterArgument, choices.devices);
    if (!cluster)
        return tl::unexpected(cluster.error());
    choices.graph = *graph;
    choices.cluster = *cluster;
    choices.teachCluster();
    return choices;
}

namespace {

/// With the attention that the plan was made for: the bundled graph of that name when it is the same one, else the
/// graph that the plan's architecture lowers to.
contract::Result<planner::GraphPointer> graphOfPlan(const contract::Plan& plan, const std::string& path) {
    const auto bundled = planner::openGraph(plan.graph.name, plan.training.sequence);
    if (bundled && (*bundled)->sha256() == plan.graph.sha256)
        return planner::withAttentionOf(*bundled, plan.training);
    if (!plan.graph.architecture)
        return contract::badInput(path + ": graph.architecture is missing and \"" + plan.graph.name +
                                  "\" is not a bundled graph; open the graph's folder and plan it again");
    auto operators = contract::lowerArchitecture(*plan.graph.architecture, plan.training.sequence);
    if (!operators)
        return tl::unexpected(operators.error());
    auto graph = std::make_shared<planner::Graph>();
    graph->name = graph->title = plan.graph.name;
    graph->family = plan.graph.family;
    graph->source = path;
    graph->sequence = plan.training.sequence;
    graph->maximumSequence = plan.graph.architecture->positions;
    graph->architecture = plan.graph.architecture;
    graph->operators = std::move(*operators);
    return planner::withAttentionOf(graph, plan.training);
}

} // namespace

namespace {

/// Whether the planner, asked these choices, answers exactly this plan; then it needs no pins.
bool answersPlan(const Choices& choices, const contract::Plan& plan) {
    const auto request = choices.request();
    if (!request)
        return false;
    const auto planner = planner::Planner::create(*request);
    if (!planner)
        return false;
    planner::SearchBudget budget;
    budget.timeLimitSeconds = 2;
    const auto answer = (*planner)->solve(choices.budget(), budget);
    if (!answer->feasible || answer->operators.size() != plan.operators.size() ||
        answer->training.microBatch != plan.training.microBatch ||
        answer->training.accumulate != plan.training.accumulate)
        return false;
    for (std::size_t i = 0; i < plan.operators.size(); ++i)
        if (answer->operators[i].placement != plan.operators[i].placement ||
            answer->operators[i].recompute != plan.operators[i].recompute)
            return false;
    return true;
}

} // namespace

contract::Result<Choices> choicesOfPlan(const std::string& path) {
    const auto plan = contract::readPlanFile(path);
    if (!plan)
        return tl::unexpected(plan.error());
    const auto graph = graphOfPlan(*plan, path);
    if (!graph)
        return tl::unexpected(graph.error());
    Choices choices;
    choices.graphArgument = plan->graph.name;
    choices.graph = *graph;
    choices.sequence = plan->training.sequence;
    choices.cluster = plan->cluster;
    choices.clusterArgument = plan->cluster.name;
    choices.precision = plan->training.precision;
    choices.microBatch = plan->training.microBatch;
    choices.accumulate = plan->training.accumulate;
    choices.recompute = plan->training.recompute;
    choices.lossChunks = plan->training.lossChunks;
    choices.prefetchDepth = plan->prefetchDepth;
    choices.budgetBytes = plan->limitBytes;
    Choices open = choices;
    open.microBatch = 0;
    open.accumulate = 0;
    open.globalBatch = plan->training.globalBatch;
    for (const Choices& candidate : {open, choices})
        if (answersPlan(candidate, *plan))
            return candidate;
    for (const contract::PlanOperator& op : plan->operators)
        if (op.tiedTo.empty())
            choices.pins.push_back({op.name, op.placement});
    std::string block;
    for (std::size_t i = 0; i < plan->operators.size() && i < (*graph)->operators.size(); ++i) {
        const std::string& name = (*graph)->operators[i].blockName;
        if (name.empty() || name == block)
            continue;
        block = name;
        choices.recomputePins.push_back({name, plan->operators[i].recompute});
    }
    return choices;
}

contract::Result<FileKind> kindOfFile(const std::string& path) {
    const QFileInfo info(QString::fromStdString(path));
    if (!info.exists())
        return contract::badInput(path + " does not exist");
    if (info.isDir())
        return FileKind::Graph;
    if (info.suffix() != QLatin1String("json") && info.suffix() != QLatin1String("shardscope"))
        return FileKind::Graph;
    const auto json = contract::readJsonFile(path);
    if (!json)
        return tl::unexpected(json.error());
    const auto format = json->is_object() ? json->value("format", contract::Json()) : contract::Json();
    if (format == kFormat)
        return FileKind::Session;
    if (format == "shardscope-plan")
        return FileKind::Plan;
    if (format == "shardscope-cluster")
        return FileKind::Cluster;
    return FileKind::Graph;
}

} // namespace shardscope::app
