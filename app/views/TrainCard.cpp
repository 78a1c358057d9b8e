// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/TrainCard.h"

#include "app/look/Theme.h"

#include <QComboBox>
#include <QFileDialog>
#include <QGraphicsDropShadowEffect>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QStyle>
#include <QVBoxLayout>

namespace shardscope::app {

TrainCard::TrainCard(QWidget* parent)
    : Card(tr("Train"), parent), m_data(new QComboBox(this)), m_steps(new QSpinBox(this)), m_rate(new QLineEdit(this)),
      m_seed(new QSpinBox(this)), m_every(new QSpinBox(this)), m_directory(new QLineEdit(this)),
      m_start(new QPushButton(this)) {
    setFixedWidth(380);
    m_data->setEditable(true);
    m_data->addItem(QStringLiteral("builtin:addition"));
    m_data->setToolTip(tr("builtin:addition, a text file or a folder of text files"));
    m_steps->setRange(1, 10'000'000);
    m_seed->setRange(0, 1'000'000'000);
    m_every->setRange(1, 1'000'000);
    m_start->setObjectName("primary");
    m_start->setMinimumHeight(30);
    m_start->setAccessibleName(tr("Start the run"));

    auto* grid = new QGridLayout;
    grid->setVerticalSpacing(7);
    grid->setHorizontalSpacing(10);
    grid->setColumnStretch(1, 1);
    const auto add = [&](const QString& name, QWidget* field, QWidget* extra = nullptr) {
        const int row = grid->rowCount();
        auto* label = makeLabel(name, "secondary", this);
        label->setBuddy(field);
        field->setAccessibleName(name);
        grid->addWidget(label, row, 0);
        grid->addWidget(field, row, 1);
        if (extra)
            grid->addWidget(extra, row, 2);
    };
    const auto folderButton = [this](const QString& hint, auto choose) {
        auto* button = new QPushButton(this);
        button->setIcon(glyphIcon(Glyph::Folder, colorsOf(this).secondary));
        button->setObjectName("flat");
        button->setToolTip(hint);
        button->setAccessibleName(hint);
        connect(button, &QPushButton::clicked, this, choose);
        return button;
    };
    const auto pick = [this](QFileDialog::FileMode mode, const QString& title,
                             const std::function<void(const QString&)>& take) {
        auto* dialog = new QFileDialog(this, title);
        dialog->setAttribute(Qt::WA_DeleteOnClose);
        dialog->setFileMode(mode);
        connect(dialog, &QFileDialog::fileSelected, this, take);
        dialog->open();
    };
    add(tr("Data"), m_data, folderButton(tr("Choose a text file"), [this, pick] {
            pick(QFileDialog::ExistingFile, tr("Training data"),
                 [this](const QString& path) { m_data->setCurrentText(path); });
        }));
    add(tr("Steps"), m_steps);
    add(tr("Learning rate"), m_rate);
    add(tr("Seed"), m_seed);
    add(tr("Checkpoint every"), m_every);
    add(tr("Run folder"), m_directory, folderButton(tr("Choose a run folder"), [this, pick] {
            pick(QFileDialog::Directory, tr("Run folder"), [this](const QString& path) { m_directory->setText(path); });
        }));
    body()->addLayout(grid);
    body()->addSpacing(10);
    auto* buttons = new QHBoxLayout;
    auto* cancel = new QPushButton(tr("Cancel"), this);
    connect(cancel, &QPushButton::clicked, this, &QWidget::hide);
    buttons->addStretch();
    buttons->addWidget(cancel);
    buttons->addWidget(m_start);
    body()->addLayout(buttons);
    connect(m_start, &QPushButton::clicked, this, &TrainCard::start);

    setProperty("overlay", true);
    auto* shadow = new QGraphicsDropShadowEffect(this);
    shadow->setBlurRadius(28);
    shadow->setOffset(0, 6);
    shadow->setColor(QColor(0, 0, 0, 70));
    setGraphicsEffect(shadow);
    hide();
}

void TrainCard::open(const TrainSettings& settings, const QString& buttonText) {
    m_data->setCurrentText(settings.data);
    m_steps->setValue(static_cast<int>(settings.steps));
    m_rate->setText(QString::number(settings.learningRate, 'g', 6));
    m_seed->setValue(static_cast<int>(settings.seed));
    m_every->setValue(static_cast<int>(settings.checkpointEvery));
    m_directory->setText(settings.runDirectory);
    m_directory->setCursorPosition(0);
    m_start->setText(buttonText);
    show();
    adjustSize();
    raise();
    m_steps->setFocus(Qt::PopupFocusReason);
    m_steps->selectAll();
}

TrainSettings TrainCard::settings() const {
    TrainSettings settings;
    settings.data = m_data->currentText().trimmed();
    settings.steps = m_steps->value();
    settings.learningRate = m_rate->text().toDouble();
    settings.seed = m_seed->value();
    settings.checkpointEvery = m_every->value();
    settings.runDirectory = m_directory->text().trimmed();
    return settings;
}

void TrainCard::start() {
    const TrainSettings chosen = settings();
    const bool isRateGood = chosen.learningRate > 0 && chosen.learningRate < 10;
    m_rate->setProperty("invalid", !isRateGood);
    m_directory->setProperty("invalid", chosen.runDirectory.isEmpty());
    for (QLineEdit* field : {m_rate, m_directory}) {
        field->style()->unpolish(field);
        field->style()->polish(field);
    }
    if (!isRateGood || chosen.runDirectory.isEmpty() || chosen.data.isEmpty())
        return;
    hide();
    Q_EMIT startRequested(chosen);
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
