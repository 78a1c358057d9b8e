// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/Inspector.h"

#include "app/document/Document.h"
#include "app/document/ReasonText.h"
#include "app/look/Theme.h"
#include "app/look/Units.h"
#include "app/views/PlacementCard.h"
#include "app/work/Planning.h"

#include <QCheckBox>
#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QScrollArea>
#include <QSignalBlocker>
#include <QStackedWidget>

#include <map>

namespace shardscope::app {

namespace {

void addSection(QVBoxLayout* column, const QString& text, QWidget* parent) {
    column->addSpacing(9);
    column->addWidget(makeLabel(text, "title", parent));
    column->addSpacing(2);
}

QString shapeText(const contract::Operator& op) {
    for (const contract::TensorSpec& tensor : op.tensors) {
        if (tensor.shape.size() < 2)
            continue;
        QStringList sizes;
        for (const std::int64_t size : tensor.shape)
            sizes << countText(size);
        return sizes.join(QStringLiteral(" × "));
    }
    return {};
}

} // namespace

Inspector::Inspector(Document& document, QWidget* parent)
    : Card({}, parent), m_document(document), m_pages(new QStackedWidget(this)) {
    setFixedWidth(248);
    setAccessibleName(tr("Inspector"));
    m_pages->addWidget(buildOverviewPage());
    m_pages->addWidget(buildSelectionPage());
    auto* nothing = makeLabel({}, "secondary", this);
    nothing->setWordWrap(true);
    nothing->setAlignment(Qt::AlignTop | Qt::AlignLeft);
    nothing->setContentsMargins(0, 8, 0, 0);
    nothing->setText(tr("Nothing is placed yet. The map's place lists changes that fit; applying one can be undone."));
    m_pages->addWidget(nothing);
    auto* scroll = new QScrollArea(this);
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    scroll->setWidget(m_pages);
    scroll->viewport()->setAutoFillBackground(false);
    m_pages->setObjectName("scrolled");
    m_pages->setContentsMargins(0, 0, 7, 0); // beside the scroll bar
    body()->addWidget(scroll);
    layout()->setContentsMargins(kCardMargin, 6, kCardMargin - 9, 10);

    connect(&document, &Document::answered, this, &Inspector::refresh);
    connect(&document, &Document::selectionChanged, this, &Inspector::refresh);
    connect(&document.planning(), &Planning::explained, this, [this](const ExplanationPointer& explanation) {
        const auto answer = m_document.answer();
        const auto& selection = m_document.selection();
        if (answer && explanation->generation == answer->generation && !selection.empty() &&
            selection.front() == explanation->op)
            showReasons(*explanation);
    });
}

void Inspector::changeEvent(QEvent* event) {
    Card::changeEvent(event);
    if (event->type() == QEvent::PaletteChange && m_pages)
        refresh(); // swatches are drawn in the colours of the lightness
}

QWidget* Inspector::buildOverviewPage() {
    auto* page = new QWidget(this);
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(2);
    addSection(column, tr("Whole plan"), page);
    m_overviewText = makeLabel({}, "secondary", page);
    m_overviewText->setWordWrap(true);
    column->addWidget(m_overviewText);
    addSection(column, tr("Costliest groups, time in a step"), page);
    auto* rows = new ValueRows(page);
    rows->setAccessibleName(tr("Costliest groups"));
    connect(rows, &ValueRows::clicked, this, [this](int key) {
        const QString name = m_rows[static_cast<std::size_t>(key)].shortName;
        std::vector<std::int32_t> operators;
        for (const MapRow& row : m_rows)
            if (row.shortName == name)
                operators.push_back(row.op);
        m_document.select(std::move(operators));
    });
    m_costliest = rows;
    column->addWidget(rows);
    auto* hint = makeLabel(tr("Click an operator in the map for its placement and the reason for it. "
                              "R, K and S place it, P pins it; hold Space to see everything sharded."),
                           "small", page);
    hint->setWordWrap(true);
    column->addSpacing(14);
    column->addWidget(hint);
    column->addStretch();
    return page;
}

QWidget* Inspector::buildSelectionPage() {
    auto* page = new QWidget(this);
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(0, 6, 0, 0);
    column->setSpacing(2);
    m_name = makeLabel({}, "title", page);
    m_name->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_facts = makeLabel({}, "secondary", page);
    m_facts->setWordWrap(true);
    m_name->setWordWrap(true);
    column->addWidget(m_name);
    column->addWidget(m_facts);
    column->addSpacing(6);
    const QString titles[3] = {tr("replicate"), tr("keep"), tr("shard")};
    const QString known[3] = {tr("DDP"), tr("ZeRO-2, no reshard after forward"), tr("ZeRO-3 / FSDP")};
    for (int i = 0; i < 3; ++i) {
        m_placements[i] = new PlacementCard(titles[i], known[i], page);
        connect(m_placements[i], &QAbstractButton::clicked, this,
                [this, i] { place(static_cast<contract::PlacementKind>(i)); });
        column->addWidget(m_placements[i]);
        column->addSpacing(3);
    }
    auto* options = new QHBoxLayout;
    options->setSpacing(8);
    options->setContentsMargins(0, 2, 0, 0);
    m_slices = new QComboBox(page);
    m_slices->setAccessibleName(tr("Slices"));
    m_slices->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    m_slices->setMinimumContentsLength(3);
    m_slices->setToolTip(tr("Cut the operator so that only one slice is whole in memory at a time"));
    connect(m_slices, &QComboBox::activated, this, [this](int index) {
        contract::Placement placement;
        placement.kind = contract::PlacementKind::Shard;
        placement.slices = placement.shardedSlices = m_slices->itemData(index).toInt();
        m_document.placeSelection(placement);
    });
    m_pin = new QCheckBox(tr("pinned"), page);
    m_pin->setToolTip(tr("A pinned placement survives replanning (P)"));
    connect(m_pin, &QCheckBox::clicked, this, [this](bool on) {
        const auto answer = m_document.answer();
        if (!on) {
            m_document.unpinSelection();
            return;
        }
        if (answer && answer->plan && answer->plan->feasible && !m_document.selection().empty())
            m_document.placeSelection(
                answer->plan->operators[static_cast<std::size_t>(m_document.selection().front())].placement);
    });
    options->addWidget(makeLabel(tr("Slices"), "secondary", page));
    options->addWidget(m_slices, 1);
    options->addWidget(m_pin);
    column->addLayout(options);
    addSection(column, tr("Why"), page);
    m_why = new QLabel(page);
    m_why->setWordWrap(true);
    m_why->setAccessibleName(tr("Why"));
    m_why->setAlignment(Qt::AlignTop | Qt::AlignLeft);
    m_why->setMinimumHeight(50);
    column->addWidget(m_why);
    addSection(column, tr("Memory on a device"), page);
    m_memory = new ValueRows(page);
    m_memory->setAccessibleName(tr("Memory on a device"));
    column->addWidget(m_memory);
    addSection(column, tr("Time in a step"), page);
    m_time = new ValueRows(page);
    m_time->setAccessibleName(tr("Time in a step"));
    column->addWidget(m_time);
    column->addStretch();
    return page;
}

void Inspector::place(contract::PlacementKind kind) {
    contract::Placement placement;
    placement.kind = kind;
    m_document.placeSelection(placement);
    refresh();
}

void Inspector::refresh() {
    const auto answer = m_document.answer();
    if (!answer || !answer->plan || !answer->plan->feasible) {
        m_pages->setVisible(answer != nullptr);
        m_pages->setCurrentIndex(2);
        return;
    }
    m_pages->setVisible(true);
    m_rows = mapRows(*answer->plan);
    std::vector<const MapRow*> selected;
    for (const MapRow& row : m_rows)
        if (std::binary_search(m_document.selection().begin(), m_document.selection().end(), row.op))
            selected.push_back(&row);
    if (selected.empty()) {
        showOverview();
        m_pages->setCurrentIndex(0);
        return;
    }
    showSelection(selected);
    m_pages->setCurrentIndex(1);
    m_document.planning().explain(answer, selected.front()->op);
}

void Inspector::showOverview() {
    const planner::PlanResult& plan = *m_document.answer()->plan;
    QStringList counts;
    if (plan.counts.replicate > 0)
        counts << tr("%1 replicated").arg(plan.counts.replicate);
    if (plan.counts.keep > 0)
        counts << tr("%1 kept").arg(plan.counts.keep);
    if (plan.counts.shard > 0)
        counts << (plan.counts.split > 0
                       ? tr("%1 sharded, %2 of them split").arg(plan.counts.shard).arg(plan.counts.split)
                       : tr("%1 sharded").arg(plan.counts.shard));
    if (plan.counts.coalesced > 0)
        counts << tr("%1 coalesced with their block").arg(plan.counts.coalesced);
    QString text = tr("%1 operators: %2.").arg(plan.operators.size()).arg(counts.join(QStringLiteral(", ")));
    for (const std::string& note : plan.notes)
        text += '\n' + QString::fromStdString(note);
    m_overviewText->setText(text);

    struct Group {
        double seconds = 0;
        int count = 0;
        int key = 0;
    };
    std::map<QString, Group> groups;
    for (std::size_t i = 0; i < m_rows.size(); ++i) {
        Group& group = groups[m_rows[i].shortName];
        group.seconds += m_rows[i].computeSeconds + m_rows[i].exposedSeconds;
        if (group.count++ == 0)
            group.key = static_cast<int>(i);
    }
    std::vector<std::pair<QString, Group>> sorted(groups.begin(), groups.end());
    std::sort(sorted.begin(), sorted.end(),
              [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
    std::vector<ValueRows::Row> rows;
    for (std::size_t i = 0; i < sorted.size() && i < 5; ++i) {
        const auto& [name, group] = sorted[i];
        rows.push_back({group.count > 1 ? QStringLiteral("%1 ×%2").arg(name).arg(group.count) : name,
                        secondsText(group.seconds),
                        {},
                        false,
                        group.key,
                        tr("Select")});
    }
    rows.push_back({tr("step"), secondsText(plan.stepSeconds), {}, true, -1, {}});
    m_costliest->setRows(std::move(rows));
}

void Inspector::showSelection(const std::vector<const MapRow*>& rows) {
    const planner::PlanResult& plan = *m_document.answer()->plan;
    const Colors& colors = colorsOf(this);
    const auto& graphOperators = plan.request.graph->operators;
    const MapRow& first = *rows.front();
    const contract::Operator& op = graphOperators[static_cast<std::size_t>(first.op)];
    const auto count = static_cast<std::int64_t>(rows.size());
    const bool sameName =
        std::all_of(rows.begin(), rows.end(), [&](const MapRow* row) { return row->shortName == first.shortName; });
    m_name->setText(count == 1 ? first.name
                    : sameName ? tr("%1 of %2 blocks").arg(first.shortName).arg(count)
                               : tr("%1 operators").arg(count));
    QStringList facts;
    if (count == 1 || sameName) {
        facts << QString::fromUtf8(contract::operatorKindName(op.kind).data());
        if (const QString shape = shapeText(op); !shape.isEmpty())
            facts << shape;
        facts << (op.isTied() ? tr("tied to %1").arg(QString::fromStdString(op.tiedTo))
                              : tr("%1 parameters").arg(countText(op.parameters())));
    } else {
        std::int64_t parameters = 0;
        for (const MapRow* row : rows)
            parameters += graphOperators[static_cast<std::size_t>(row->op)].parameters();
        facts << tr("%1 parameters").arg(countText(parameters));
    }
    const auto all = [&rows](auto is) { return std::all_of(rows.begin(), rows.end(), is); };
    if (all([](const MapRow* row) { return row->coalesced; }))
        facts << tr("one collective with its block");
    if (all([](const MapRow* row) { return row->placement.held; }))
        facts << tr("gradient held whole");
    m_facts->setText(facts.join(QStringLiteral(", ")));

    int kinds[3] = {};
    for (const MapRow* row : rows)
        ++kinds[static_cast<int>(row->placement.kind)];
    for (int i = 0; i < 3; ++i) {
        m_placements[i]->setChecked(kinds[i] == count);
        m_placements[i]->setPartly(kinds[i] > 0 && kinds[i] < count);
        m_placements[i]->setEnabled(!op.isTied());
    }
    const QSignalBlocker blocker(m_slices);
    m_slices->clear();
    const std::int64_t most = op.maximumSlices();
    for (int slices = 1; slices <= 16 && slices <= most; slices *= 2)
        m_slices->addItem(slices == 1 ? tr("1, whole") : tr("%1, all").arg(slices), slices);
    const contract::Placement& placement = first.placement;
    if (placement.isSharded()) {
        int index = m_slices->findData(placement.slices);
        if (index < 0 || placement.shardedSlices != placement.slices) {
            m_slices->addItem(tr("%1, first %2").arg(placement.slices).arg(placement.shardedSlices), placement.slices);
            index = m_slices->count() - 1;
        }
        m_slices->setCurrentIndex(index);
    }
    m_slices->setEnabled(placement.isSharded() && !op.isTied() && most > 1);
    m_pin->setChecked(m_document.isSelectionPinned());
    m_pin->setEnabled(!op.isTied());
    m_why->setText(op.isTied()
                       ? tr("Uses the storage of %1 and follows its placement.").arg(QString::fromStdString(op.tiedTo))
                       : QString());

    MemoryParts memory{};
    planner::OperatorCost time;
    for (const MapRow* row : rows) {
        for (std::size_t i = 0; i < memory.size(); ++i)
            // Slots are shared: the largest is what they take.
            memory[i] = i == static_cast<std::size_t>(MemoryPart::Slots) ? std::max(memory[i], row->memory[i])
                                                                         : memory[i] + row->memory[i];
        const planner::OperatorCost& cost = plan.operators[static_cast<std::size_t>(row->op)].cost;
        time.computeSeconds += cost.computeSeconds;
        time.recomputeSeconds += cost.recomputeSeconds;
        time.gatherSeconds += cost.gatherSeconds;
        time.reduceSeconds += cost.reduceSeconds;
        time.exposedGatherSeconds += cost.exposedGatherSeconds;
        time.exposedReduceSeconds += cost.exposedReduceSeconds;
        time.optimizerSeconds += cost.optimizerSeconds;
    }
    std::vector<ValueRows::Row> memoryRows;
    std::int64_t total = 0;
    for (int i = 0; i < kMemoryPartCount; ++i) {
        const std::int64_t bytes = memory[static_cast<std::size_t>(i)];
        total += bytes;
        if (bytes > 0)
            memoryRows.push_back({partName(static_cast<MemoryPart>(i)),
                                  bytesText(bytes),
                                  partBrush(static_cast<MemoryPart>(i), colors),
                                  false,
                                  -1,
                                  {}});
    }
    memoryRows.push_back({count > 1 ? tr("together") : tr("total"), bytesText(total), {}, true, -1, {}});
    m_memory->setRows(std::move(memoryRows));

    std::vector<ValueRows::Row> timeRows{{tr("compute"), secondsText(time.computeSeconds), {}, false, -1, {}}};
    const auto add = [&](const QString& name, double seconds) {
        if (seconds > 0)
            timeRows.push_back({name, secondsText(seconds), {}, false, -1, {}});
    };
    add(tr("recompute"), time.recomputeSeconds);
    add(tr("optimizer"), time.optimizerSeconds);
    add(tr("gather"), time.gatherSeconds);
    add(tr("reduce"), time.reduceSeconds);
    const double hidden = std::max(0.0, time.gatherSeconds + time.reduceSeconds - time.exposedSeconds());
    if (hidden > 0)
        timeRows.push_back({tr("hidden by compute"), QStringLiteral("−") + secondsText(hidden), {}, false, -1, {}});
    timeRows.push_back({tr("exposed"), secondsText(time.exposedSeconds()), {}, true, -1, {}});
    m_time->setRows(std::move(timeRows));
}

void Inspector::showReasons(const Explanation& explanation) {
    const auto answer = m_document.answer();
    const auto& operators = answer->plan->operators;
    if (explanation.op < 0 || static_cast<std::size_t>(explanation.op) >= operators.size())
        return;
    const planner::PlannedOperator& planned = operators[static_cast<std::size_t>(explanation.op)];
    if (!answer->plan->request.graph->operators[static_cast<std::size_t>(explanation.op)].isTied())
        m_why->setText(reasonText(planned, explanation.reasons, answer->plan->training.accumulate));
}

} // namespace shardscope::app
