// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/TrainCard.h"

#include "app/look/Theme.h"

#include <QComboBox>
#include <QFileDialog>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSettings>
#include <QSpinBox>
#include <QStyle>
#include <QVBoxLayout>

namespace shardscope::app {

namespace {

const QString kTargetKey = QStringLiteral("target/");

QPushButton* folderButton(const QString& hint, QWidget* parent) {
    auto* button = new QPushButton(parent);
    button->setIcon(glyphIcon(Glyph::Folder, colorsOf(parent).secondary));
    button->setObjectName("flat");
    button->setToolTip(hint);
    button->setAccessibleName(hint);
    return button;
}

void mark(QWidget* field, bool isInvalid) {
    field->setProperty("invalid", isInvalid);
    field->style()->unpolish(field);
    field->style()->polish(field);
}

} // namespace

TrainCard::TrainCard(QWidget* parent)
    : Card(tr("Train"), parent), m_kind(new QComboBox(this)), m_host(new QLineEdit(this)),
      m_program(new QLineEdit(this)), m_prelude(new QLineEdit(this)), m_partition(new QLineEdit(this)),
      m_time(new QLineEdit(this)), m_there(new QLineEdit(this)), m_data(new QComboBox(this)),
      m_tokenizer(new QLineEdit(this)), m_steps(new QSpinBox(this)), m_rate(new QLineEdit(this)),
      m_seed(new QSpinBox(this)), m_every(new QSpinBox(this)), m_restarts(new QSpinBox(this)),
      m_directory(new QLineEdit(this)), m_problem(makeLabel({}, "secondary", this)), m_start(new QPushButton(this)) {
    setFixedWidth(400);
    m_kind->addItems({tr("This machine"), tr("Another machine (ssh)"), tr("A Slurm cluster")});
    m_data->setEditable(true);
    m_data->addItem(QStringLiteral("builtin:addition"));
    m_data->setToolTip(tr("builtin:addition, token ids (*.bin), a text file or a folder of text files"));
    m_tokenizer->setPlaceholderText(tr("none: text is bytes"));
    m_tokenizer->setToolTip(tr("A tokenizer.json with byte-level BPE, or its folder"));
    m_host->setToolTip(tr("As ssh takes it: a name of its configuration, or user@machine. Keys must be set up; nothing "
                          "is asked"));
    m_program->setToolTip(tr("shardscope-train on that machine: a path, or a name that is found there"));
    m_prelude->setPlaceholderText(tr("nothing"));
    m_prelude->setToolTip(tr("A shell line that is run there first, for example: module load cuda nccl"));
    m_partition->setPlaceholderText(tr("the default one"));
    m_time->setToolTip(tr("Hours:minutes:seconds, or days-hours"));
    m_there->setToolTip(
        tr("A folder on that machine, from the home folder; with Slurm on a disk that all nodes share"));
    m_steps->setRange(1, 10'000'000);
    m_seed->setRange(0, 1'000'000'000);
    m_every->setRange(1, 1'000'000);
    m_restarts->setRange(0, 1000);
    m_restarts->setSpecialValueText(tr("none: a failure ends the run"));
    m_restarts->setToolTip(tr("How often the run goes on from its newest checkpoint after a failure"));
    m_problem->setWordWrap(true);
    m_problem->setObjectName("problem");
    m_start->setObjectName("primary");
    m_start->setMinimumHeight(30);
    m_start->setAccessibleName(tr("Start the run"));

    auto* grid = new QGridLayout;
    grid->setVerticalSpacing(7);
    grid->setHorizontalSpacing(10);
    grid->setColumnStretch(1, 1);
    buildFields(grid);
    body()->addLayout(grid);
    body()->addWidget(m_problem);
    body()->addSpacing(10);
    auto* buttons = new QHBoxLayout;
    buttons->setSpacing(8);
    auto* cancel = new QPushButton(tr("Cancel"), this);
    connect(cancel, &QPushButton::clicked, this, &QWidget::hide);
    buttons->addStretch();
    buttons->addWidget(cancel);
    buttons->addWidget(m_start);
    body()->addLayout(buttons);
    connect(m_start, &QPushButton::clicked, this, &TrainCard::start);
    connect(m_kind, &QComboBox::currentIndexChanged, this, &TrainCard::showKind);

    setProperty("overlay", true);
    castShadow(*this);
    hide();
}

void TrainCard::buildFields(QGridLayout* grid) {
    const auto add = [&](const QString& name, QWidget* field, QWidget* extra = nullptr, Rows* rows = nullptr) {
        const int row = grid->rowCount();
        auto* label = makeLabel(name, "secondary", this);
        label->setBuddy(field);
        field->setAccessibleName(name);
        grid->addWidget(label, row, 0);
        auto* line = new QHBoxLayout;
        line->setSpacing(8);
        line->addWidget(field, 1);
        if (extra)
            line->addWidget(extra);
        grid->addLayout(line, row, 1);
        if (rows)
            rows->insert(rows->end(), {label, field});
        return label;
    };
    const auto pick = [this](const QString& hint, bool folder, auto take) {
        auto* button = folderButton(hint, this);
        connect(button, &QPushButton::clicked, this, [this, hint, folder, take] { choose(hint, folder, take); });
        m_hereRows.push_back(button);
        return button;
    };
    add(tr("Run on"), m_kind);
    m_hostLabel = add(tr("Machine"), m_host, nullptr, &m_elsewhereRows);
    add(tr("Partition"), m_partition, nullptr, &m_slurmRows);
    add(tr("Time limit"), m_time, nullptr, &m_slurmRows);
    add(tr("Program there"), m_program, nullptr, &m_elsewhereRows);
    add(tr("Before it"), m_prelude, nullptr, &m_elsewhereRows);
    add(tr("Folder there"), m_there, nullptr, &m_elsewhereRows);
    add(tr("Data"), m_data,
        pick(tr("Choose a text file"), false, [this](const QString& path) { m_data->setCurrentText(path); }));
    add(tr("Tokenizer"), m_tokenizer,
        pick(tr("Choose a tokenizer.json"), false, [this](const QString& path) { m_tokenizer->setText(path); }));
    add(tr("Steps"), m_steps);
    add(tr("Learning rate"), m_rate);
    add(tr("Seed"), m_seed);
    add(tr("Checkpoint every"), m_every);
    add(tr("Restarts"), m_restarts);
    // Also of a run elsewhere there is a folder here: it is where the window finds it again.
    add(tr("Run folder"), m_directory,
        pick(tr("Choose a run folder"), true, [this](const QString& path) { m_directory->setText(path); }));
}

void TrainCard::choose(const QString& title, bool folder, const std::function<void(const QString&)>& take) {
    auto* dialog = new QFileDialog(this, title);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(folder ? QFileDialog::Directory : QFileDialog::ExistingFile);
    connect(dialog, &QFileDialog::fileSelected, this, take);
    dialog->open();
}

void TrainCard::showKind() {
    const int kind = m_kind->currentIndex();
    for (QWidget* widget : m_elsewhereRows)
        widget->setVisible(kind != 0);
    for (QWidget* widget : m_slurmRows)
        widget->setVisible(kind == 2);
    for (QWidget* widget : m_hereRows)
        widget->setVisible(kind == 0);
    m_hostLabel->setText(kind == 2 ? tr("Login machine") : tr("Machine"));
    m_host->setAccessibleName(m_hostLabel->text());
    m_host->setPlaceholderText(kind == 2 ? tr("this machine") : tr("user@machine"));
    m_start->setText(kind == 2 ? tr("Submit") : kind == 1 ? tr("Train there") : m_buttonText);
    m_problem->hide();
    for (QLineEdit* field : {m_host, m_time, m_partition, m_there, m_program})
        mark(field, false);
    // The layout counts what was just shown or hidden only after its next activation.
    layout()->activate();
    adjustSize();
}

void TrainCard::open(const TrainSettings& settings, const QString& buttonText, bool isElsewhere) {
    m_buttonText = buttonText;
    restoreTarget();
    if (isElsewhere && m_kind->currentIndex() == 0)
        m_kind->setCurrentIndex(1);
    else if (!isElsewhere)
        m_kind->setCurrentIndex(0);
    m_there->setText(QStringLiteral("shardscope-runs/") + settings.runDirectory.section('/', -1));
    m_there->setCursorPosition(0);
    m_data->setCurrentText(settings.data);
    m_tokenizer->setText(settings.tokenizer);
    m_steps->setValue(static_cast<int>(settings.steps));
    m_rate->setText(QString::number(settings.learningRate, 'g', 6));
    m_seed->setValue(static_cast<int>(settings.seed));
    m_every->setValue(static_cast<int>(settings.checkpointEvery));
    m_restarts->setValue(static_cast<int>(settings.restarts));
    m_directory->setText(settings.runDirectory);
    m_directory->setCursorPosition(0);
    show();
    showKind();
    raise();
    QWidget* const first = isElsewhere && m_host->text().isEmpty() ? static_cast<QWidget*>(m_host) : m_steps;
    first->setFocus(Qt::PopupFocusReason);
    m_steps->selectAll();
}

TrainSettings TrainCard::settings() const {
    TrainSettings settings;
    settings.data = m_data->currentText().trimmed();
    settings.tokenizer = m_tokenizer->text().trimmed();
    settings.steps = m_steps->value();
    settings.learningRate = m_rate->text().toDouble();
    settings.seed = m_seed->value();
    settings.checkpointEvery = m_every->value();
    settings.restarts = m_restarts->value();
    settings.runDirectory = m_directory->text().trimmed();
    return settings;
}

RunTarget TrainCard::target() const {
    RunTarget target;
    target.kind = static_cast<RunTarget::Kind>(m_kind->currentIndex());
    if (target.isHere())
        return target;
    target.host = m_host->text().trimmed();
    target.program = m_program->text().trimmed();
    target.prelude = m_prelude->text().trimmed();
    target.folder = m_there->text().trimmed();
    if (target.kind == RunTarget::Kind::Slurm) {
        target.partition = m_partition->text().trimmed();
        target.timeLimit = m_time->text().trimmed();
    }
    return target;
}

void TrainCard::keepTarget() const {
    QSettings settings;
    settings.setValue(kTargetKey + "kind", m_kind->currentIndex());
    for (const auto& [key, field] :
         {std::pair("host", m_host), std::pair("program", m_program), std::pair("prelude", m_prelude),
          std::pair("partition", m_partition), std::pair("time", m_time)})
        settings.setValue(kTargetKey + key, field->text().trimmed());
}

void TrainCard::restoreTarget() {
    const RunTarget usual;
    const QSettings settings;
    m_kind->setCurrentIndex(qBound(0, settings.value(kTargetKey + "kind", 0).toInt(), 2));
    m_host->setText(settings.value(kTargetKey + "host").toString());
    m_program->setText(settings.value(kTargetKey + "program", usual.program).toString());
    m_prelude->setText(settings.value(kTargetKey + "prelude").toString());
    m_partition->setText(settings.value(kTargetKey + "partition").toString());
    m_time->setText(settings.value(kTargetKey + "time", usual.timeLimit).toString());
}

void TrainCard::start() {
    const TrainSettings chosen = settings();
    const RunTarget where = target();
    const bool isRateGood = chosen.learningRate > 0 && chosen.learningRate < 10;
    mark(m_rate, !isRateGood);
    mark(m_directory, chosen.runDirectory.isEmpty());
    m_problem->setText(where.problem());
    m_problem->setVisible(!where.problem().isEmpty());
    mark(m_host, where.kind == RunTarget::Kind::Ssh && where.host.isEmpty());
    layout()->activate();
    adjustSize();
    if (!isRateGood || chosen.runDirectory.isEmpty() || chosen.data.isEmpty() || !where.problem().isEmpty())
        return;
    if (!where.isHere())
        keepTarget();
    hide();
    Q_EMIT startRequested(chosen, where);
}

void TrainCard::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter)
        start();
    else if (event->key() == Qt::Key_Escape)
        hide();
    else
        Card::keyPressEvent(event);
}

} // namespace shardscope::app
