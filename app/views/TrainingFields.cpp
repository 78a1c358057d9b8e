// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/document/Document.h"
#include "app/look/Theme.h"
#include "app/look/Units.h"
#include "app/views/SetupPanel.h"
#include "runtime/contract/Preset.h"

#include <QCheckBox>
#include <QComboBox>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QSignalBlocker>
#include <QStyle>
#include <QStylePainter>
#include <QToolButton>

namespace shardscope::app {

namespace {

/// Reads "1,024", "48 sequences": the digits of a number.
std::optional<std::int64_t> readCount(const QString& text) {
    QString digits = text.trimmed().section(' ', 0, 0);
    digits.remove(',');
    bool isNumber = false;
    const qlonglong value = digits.toLongLong(&isNumber);
    return isNumber && value > 0 && value < (qlonglong{1} << 24) ? std::optional<std::int64_t>(value) : std::nullopt;
}

bool isAuto(const QString& text) {
    return text.trimmed().isEmpty() || text.trimmed().startsWith(SetupPanel::tr("auto"));
}

void mark(QWidget* widget, const char* property, bool value) {
    if (widget->property(property).isValid() && widget->property(property).toBool() == value)
        return;
    widget->setProperty(property, value);
    widget->style()->unpolish(widget);
    widget->style()->polish(widget);
}

/// The wheel scrolls the column; it must not change a value on the way.
class QuietCombo : public QComboBox {
public:
    using QComboBox::QComboBox;
    /// What the closed field shows; the list keeps its own words.
    void setShown(const QString& text) {
        m_shown = text;
        update();
    }

protected:
    void paintEvent(QPaintEvent* event) override {
        if (isEditable()) {
            QComboBox::paintEvent(event);
            return;
        }
        QStylePainter painter(this);
        QStyleOptionComboBox option;
        initStyleOption(&option);
        option.currentText = m_shown;
        painter.setPen(palette().color(QPalette::Text));
        painter.drawComplexControl(QStyle::CC_ComboBox, option);
        painter.drawControl(QStyle::CE_ComboBoxLabel, option);
    }
    void wheelEvent(QWheelEvent* event) override { event->ignore(); }

private:
    QString m_shown;
};

} // namespace

void SetupPanel::addField(QGridLayout* grid, const QString& name, const QStringList& items, bool isEditable,
                          const std::function<bool(Choices&, const QString&)>& apply,
                          const std::function<void(Choices&)>& reset, const std::function<bool(const Choices&)>& isOwn,
                          const std::function<QString(const Choices&)>& ownText,
                          const std::function<QString()>& automaticText, const QString& hint) {
    auto* editor = new QuietCombo(this);
    editor->addItems(items);
    editor->setEditable(isEditable);
    editor->setMaxVisibleItems(14);
    editor->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    editor->setMinimumContentsLength(4);
    editor->setAccessibleName(name);
    editor->setToolTip(hint);
    if (isEditable) {
        editor->setInsertPolicy(QComboBox::NoInsert);
        editor->setCompleter(nullptr);
    }
    auto* arrow = new QToolButton(this);
    arrow->setObjectName("flat");
    arrow->setIcon(glyphIcon(Glyph::Reset, colorsOf(this).accent));
    arrow->setIconSize({13, 13});
    arrow->setFixedSize(20, 24);
    arrow->setStyleSheet(QStringLiteral("padding: 0; min-height: 20px;"));
    arrow->setToolTip(tr("Back to automatic"));
    arrow->setAccessibleName(tr("%1 back to automatic").arg(name));
    auto* label = makeLabel(name, "secondary", this);
    label->setBuddy(editor);
    label->setToolTip(hint);
    const int row = grid->rowCount();
    grid->addWidget(label, row, 0);
    auto* cell = new QHBoxLayout;
    cell->setSpacing(2);
    cell->addWidget(editor, 1);
    cell->addWidget(arrow);
    grid->addLayout(cell, row, 1);

    const auto take = [this, editor, apply, name](const QString& text) {
        Choices trial = m_document.choices();
        if (!apply(trial, text)) {
            mark(editor, "invalid", true);
            return;
        }
        mark(editor, "invalid", false);
        m_document.change(tr("%1 %2").arg(name, text), [&](Choices& choices) { apply(choices, text); });
        showTraining();
    };
    connect(editor, &QComboBox::activated, this, [editor, take](int index) { take(editor->itemText(index)); });
    if (isEditable)
        connect(editor->lineEdit(), &QLineEdit::editingFinished, this, [editor, take] {
            if (editor->lineEdit()->isModified())
                take(editor->currentText());
        });
    connect(arrow, &QToolButton::clicked, this, [this, reset, name] {
        m_document.change(tr("%1 automatic").arg(name), reset);
        showTraining();
    });
    m_fields.push_back({name, editor, arrow, isOwn, ownText, automaticText});
}

void SetupPanel::buildTraining(Card* card) {
    auto* grid = new QGridLayout;
    grid->setContentsMargins(0, 0, 0, 0);
    grid->setHorizontalSpacing(6);
    grid->setVerticalSpacing(2); // all of the card is seen at 1280 x 800
    grid->setColumnStretch(1, 1);
    card->body()->addLayout(grid);

    const auto plan = [this]() -> const planner::PlanResult* {
        const auto answer = m_document.answer();
        return answer && answer->plan && answer->plan->feasible ? answer->plan.get() : nullptr;
    };
    const auto number = [](const QString& none, auto member, std::int64_t automatic) {
        return [none, member, automatic](Choices& choices, const QString& text) {
            const auto count = readCount(text);
            if (!count && !isAuto(text) && text != none)
                return false;
            choices.*member = count.value_or(automatic);
            return true;
        };
    };
    QStringList presets{tr("auto")};
    for (const contract::Preset& preset : contract::presets())
        presets << QString::fromStdString(preset.name);
    addField(
        grid, tr("Precision"), presets, false,
        [](Choices& c, const QString& text) {
            c.precision = isAuto(text) ? std::string() : text.toStdString();
            return true;
        },
        [](Choices& c) { c.precision.clear(); }, [](const Choices& c) { return !c.precision.empty(); },
        [](const Choices& c) { return QString::fromStdString(c.precision); },
        [plan] { return plan() ? QString::fromStdString(plan()->training.precision) : tr("auto"); },
        tr("Precision and optimizer: bytes stored per parameter"));
    addField(
        grid, tr("Sequence"), {tr("auto"), "512", "1024", "2048", "4096", "8192"}, true,
        number({}, &Choices::sequence, 0), [](Choices& c) { c.sequence = 0; },
        [](const Choices& c) { return c.sequence > 0 && c.graph && c.sequence != c.graph->sequence; },
        [](const Choices& c) { return countText(c.sequence); },
        [this] { return m_document.choices().graph ? countText(m_document.choices().graph->sequence) : QString(); },
        tr("Tokens of one sample"));
    addField(
        grid, tr("Micro-batch"), {tr("auto"), "1", "2", "4", "8", "16"}, true, number({}, &Choices::microBatch, 0),
        [](Choices& c) { c.microBatch = 0; }, [](const Choices& c) { return c.microBatch > 0; },
        [](const Choices& c) { return countText(c.microBatch); },
        [plan] { return plan() ? tr("auto, %1").arg(plan()->training.microBatch) : tr("auto"); },
        tr("Samples per device and micro-step"));
    addField(
        grid, tr("Accumulate"), {tr("auto"), "1", "2", "4", "8"}, true, number({}, &Choices::accumulate, 0),
        [](Choices& c) { c.accumulate = 1; }, [](const Choices& c) { return c.accumulate != 1; },
        [plan](const Choices& c) {
            return c.accumulate > 0 ? countText(c.accumulate)
                                    : (plan() ? tr("auto, %1").arg(plan()->training.accumulate) : tr("auto"));
        },
        [] { return QStringLiteral("1"); }, tr("Micro-steps before one optimizer step"));
    addField(
        grid, tr("Global batch"), {tr("free"), "32", "64", "128", "256", "512"}, true,
        [](Choices& c, const QString& text) {
            const auto count = readCount(text);
            if (!count && !isAuto(text) && !text.startsWith(tr("free")))
                return false;
            c.globalBatch = count.value_or(0);
            c.accumulate = count ? 0 : 1;
            return true;
        },
        [](Choices& c) {
            c.globalBatch = 0;
            c.accumulate = 1;
        },
        [](const Choices& c) { return c.globalBatch > 0; }, [](const Choices& c) { return countText(c.globalBatch); },
        [plan] { return plan() ? tr("free, %1").arg(countText(plan()->training.globalBatch)) : tr("free"); },
        tr("Samples of one optimizer step on all devices; fixing it makes accumulation automatic"));
    addField(
        grid, tr("Recompute"), {tr("auto"), tr("off"), tr("on")}, false,
        [](Choices& c, const QString& text) {
            c.recompute = text == tr("on")    ? contract::RecomputePolicy::On
                          : text == tr("off") ? contract::RecomputePolicy::Off
                                              : contract::RecomputePolicy::Auto;
            return true;
        },
        [](Choices& c) { c.recompute = contract::RecomputePolicy::Auto; },
        [](const Choices& c) { return c.recompute != contract::RecomputePolicy::Auto; },
        [](const Choices& c) { return c.recompute == contract::RecomputePolicy::On ? tr("on") : tr("off"); },
        [plan] {
            if (!plan() || !plan()->request.graph)
                return tr("auto");
            std::int32_t recomputed = 0, last = -1;
            const auto& operators = plan()->request.graph->operators;
            for (const planner::PlannedOperator& op : plan()->operators) {
                const std::int32_t block = operators[static_cast<std::size_t>(op.op)].block;
                recomputed += op.recompute && block >= 0 && block != last ? 1 : 0;
                last = block;
            }
            return tr("auto, %1/%2").arg(recomputed).arg(plan()->request.graph->blockCount());
        },
        tr("Whether blocks are computed again in the backward pass instead of keeping their activations"));

    const auto kernelText = [](contract::AttentionKernel kernel) {
        return kernel == contract::AttentionKernel::Fused ? tr("fused") : tr("unfused");
    };
    addField(
        grid, tr("Attention"), {tr("auto"), tr("fused"), tr("unfused")}, false,
        [](Choices& c, const QString& text) {
            c.attention.reset();
            if (!isAuto(text))
                c.attention =
                    text == tr("fused") ? contract::AttentionKernel::Fused : contract::AttentionKernel::Materialised;
            return true;
        },
        [](Choices& c) { c.attention.reset(); }, [](const Choices& c) { return c.attention.has_value(); },
        [kernelText](const Choices& c) { return kernelText(*c.attention); },
        [this, kernelText] {
            const auto& graph = m_document.choices().graph;
            return graph ? kernelText(graph->attention) : tr("auto");
        },
        tr("Unfused attention keeps its scores: heads x queries x keys of every layer"));
    addField(
        grid, tr("Loss chunks"), {"1", "2", "4", "8", "16"}, true,
        [](Choices& c, const QString& text) {
            const auto count = readCount(text);
            if (!count)
                return false;
            c.lossChunks = *count;
            return true;
        },
        [](Choices& c) { c.lossChunks = 1; }, [](const Choices& c) { return c.lossChunks != 1; },
        [](const Choices& c) { return countText(c.lossChunks); }, [] { return QStringLiteral("1"); },
        tr("Into how many pieces the logits and their loss are cut, so that only one is in memory"));

    auto* allowed = new QHBoxLayout;
    allowed->setSpacing(8);
    const QString letters[3] = {"R", "K", "S"};
    const QString names[3] = {tr("replicate (DDP)"), tr("keep (ZeRO-2)"), tr("shard (ZeRO-3, FSDP)")};
    static constexpr bool Choices::*kMembers[3] = {&Choices::allowReplicate, &Choices::allowKeep, &Choices::allowShard};
    for (int i = 0; i < 3; ++i) {
        m_allowed[i] = new QCheckBox(letters[i], this);
        m_allowed[i]->setToolTip(tr("Allow %1").arg(names[i]));
        m_allowed[i]->setAccessibleName(tr("Allow %1").arg(names[i]));
        connect(m_allowed[i], &QCheckBox::clicked, this, [this, i, names](bool on) {
            m_document.change(on ? tr("Allow %1").arg(names[i]) : tr("Forbid %1").arg(names[i]),
                              [i, on](Choices& choices) { choices.*kMembers[i] = on; });
        });
        allowed->addWidget(m_allowed[i]);
    }
    allowed->addStretch();
    const int row = grid->rowCount();
    grid->addWidget(makeLabel(tr("Placements"), "secondary", this), row, 0);
    grid->addLayout(allowed, row, 1);
    grid->setRowMinimumHeight(row, 24);
    addField(
        grid, tr("Slices up to"), {"1", "2", "4", "8", "16"}, false,
        [](Choices& c, const QString& text) {
            const auto count = readCount(text);
            if (!count)
                return false;
            c.slicesUpTo = static_cast<std::int32_t>(*count);
            return true;
        },
        [](Choices& c) { c.slicesUpTo = 16; }, [](const Choices& c) { return c.slicesUpTo != 16; },
        [](const Choices& c) { return QString::number(c.slicesUpTo); }, [] { return QStringLiteral("16"); },
        tr("Into how many slices an operator may be cut, so that only one is whole in memory"));
}

void SetupPanel::showTraining() {
    const Choices& choices = m_document.choices();
    for (const Field& field : m_fields) {
        const bool own = field.isOwn(choices);
        const QString text = own ? field.ownText(choices) : field.automaticText();
        const QSignalBlocker blocker(field.editor);
        mark(field.editor, "automatic", !own);
        field.reset->setVisible(own);
        field.reset->setIcon(glyphIcon(Glyph::Reset, colorsOf(this).accent));
        if (field.editor->isEditable()) {
            mark(field.editor->lineEdit(), "automatic", !own);
            if (!field.editor->lineEdit()->hasFocus() || !field.editor->lineEdit()->isModified())
                field.editor->lineEdit()->setText(text);
        } else {
            const bool hasAutomatic = field.editor->itemText(0) == tr("auto");
            field.editor->setCurrentIndex(!own && hasAutomatic ? 0 : field.editor->findText(text));
            static_cast<QuietCombo*>(field.editor)->setShown(text);
        }
    }
    const bool allowed[3] = {choices.allowReplicate, choices.allowKeep, choices.allowShard};
    for (int i = 0; i < 3; ++i)
        m_allowed[i]->setChecked(allowed[i]);
}

} // namespace shardscope::app
