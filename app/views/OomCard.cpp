// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/OomCard.h"

#include "app/look/Units.h"

#include <QGridLayout>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QPushButton>
#include <QVBoxLayout>

namespace shardscope::app {

OomCard::OomCard(QWidget* parent)
    : Card(tr("Out of memory, beside the plan"), parent), m_headline(makeLabel({}, "value", this)),
      m_grid(new QGridLayout), m_table(nullptr), m_request(makeLabel({}, "secondary", this)),
      m_reserve(new QPushButton(this)), m_capacity(new QPushButton(this)) {
    setFixedWidth(480);
    m_headline->setWordWrap(true);
    m_request->setWordWrap(true);
    m_reserve->setObjectName("primary");
    m_reserve->setAccessibleName(tr("Plan with more in reserve"));
    m_capacity->setAccessibleName(tr("Plan for devices of this size"));
    m_grid->setHorizontalSpacing(14);
    m_grid->setVerticalSpacing(3);
    m_grid->setColumnStretch(0, 1);
    auto* close = new QPushButton(tr("Close"), this);
    connect(close, &QPushButton::clicked, this, &QWidget::hide);
    connect(m_reserve, &QPushButton::clicked, this, [this] {
        hide();
        Q_EMIT reserveRequested(m_comparison.surplusBytes);
    });
    connect(m_capacity, &QPushButton::clicked, this, [this] {
        hide();
        Q_EMIT capacityRequested(m_comparison.capacityBytes);
    });
    body()->addWidget(m_headline);
    body()->addSpacing(6);
    body()->addLayout(m_grid);
    body()->addSpacing(6);
    body()->addWidget(m_request);
    body()->addSpacing(10);
    auto* buttons = new QHBoxLayout;
    buttons->addStretch();
    buttons->addWidget(close);
    buttons->addWidget(m_capacity);
    buttons->addWidget(m_reserve);
    body()->addLayout(buttons);
    setProperty("overlay", true);
    castShadow(*this);
    hide();
}

void OomCard::open(const OomReport& report, const OomComparison& comparison, const QString& planTitle) {
    m_comparison = comparison;
    QString headline = report.device ? tr("GPU %1 asked for %2").arg(*report.device).arg(bytesText(report.requested))
                                     : tr("A device asked for %1").arg(bytesText(report.requested));
    if (report.free)
        headline += tr(" with %1 free").arg(bytesText(*report.free));
    m_headline->setText(headline + '.');
    delete m_table;
    m_table = new QWidget(this);
    auto* grid = new QGridLayout(m_table);
    grid->setContentsMargins(0, 0, 0, 0);
    grid->setHorizontalSpacing(16);
    grid->setVerticalSpacing(4);
    grid->setColumnStretch(0, 1);
    const auto put = [&](int row, int column, const QString& text, const char* role) {
        auto* label = makeLabel(text, role, m_table);
        if (column > 0)
            label->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
        grid->addWidget(label, row, column);
    };
    put(0, 1, tr("message"), "small");
    put(0, 2, tr("plan"), "small");
    put(0, 3, tr("difference"), "small");
    int row = 1;
    for (const OomLine& line : comparison.lines) {
        put(row, 0, line.what, "secondary");
        put(row, 1, bytesText(line.measured), "body");
        put(row, 2, line.planned >= 0 ? bytesText(line.planned) : QStringLiteral("–"), "body");
        put(row, 3, line.planned >= 0 ? signedBytesText(line.measured - line.planned) : QString(), "body");
        ++row;
    }
    m_grid->addWidget(m_table, 0, 0);
    m_request->setText(tr("%1 Laid against the plan of %2.").arg(comparison.request, planTitle));
    m_reserve->setText(tr("Plan with %1 more in reserve").arg(bytesText(comparison.surplusBytes)));
    m_reserve->setVisible(comparison.surplusBytes > 0);
    m_capacity->setText(tr("Plan for %1").arg(bytesText(comparison.capacityBytes)));
    m_capacity->setVisible(comparison.capacityBytes > 0);
    setAccessibleDescription(m_headline->text() + ' ' + m_request->text());
    show();
    adjustSize();
    raise();
    (m_reserve->isVisible() ? m_reserve : m_capacity)->setFocus(Qt::PopupFocusReason);
}

void OomCard::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Escape)
        hide();
    else
        Card::keyPressEvent(event);
}

} // namespace shardscope::app
