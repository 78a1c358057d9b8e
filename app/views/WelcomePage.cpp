// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/WelcomePage.h"

#include "app/look/Theme.h"
#include "app/views/Card.h"

#include <QAbstractButton>
#include <QDateTime>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QLabel>
#include <QLocale>
#include <QPainter>
#include <QPainterPath>
#include <QPushButton>
#include <QVBoxLayout>

namespace shardscope::app {

namespace {

/// An example that opens with one click: a title, what it shows, and a small picture of bars.
class ExampleCard : public QAbstractButton {
public:
    ExampleCard(const QString& title, const QString& text, int picture, QWidget* parent)
        : QAbstractButton(parent), m_body(text), m_picture(picture) {
        setText(title);
        setFixedSize(240, 196);
        setCursor(Qt::PointingHandCursor);
        setAccessibleName(title);
        setAccessibleDescription(text);
    }

protected:
    void paintEvent(QPaintEvent*) override {
        const Colors& colors = colorsOf(this);
        QPainter painter(this);
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(QPen(hasFocus() || underMouse() ? colors.accent : colors.line, hasFocus() ? 2 : 1));
        painter.setBrush(colors.card);
        painter.drawRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), kCorner, kCorner);
        paintPicture(painter, QRectF(18, 18, width() - 36.0, 62), colors);
        painter.setPen(colors.text);
        painter.setFont(titleFont());
        painter.drawText(QRectF(18, 92, width() - 36.0, 20), Qt::AlignLeft | Qt::AlignVCenter, text());
        painter.setPen(colors.secondary);
        painter.setFont(bodyFont());
        painter.drawText(QRectF(18, 114, width() - 36.0, height() - 120.0), Qt::AlignLeft | Qt::TextWordWrap, m_body);
    }
    void enterEvent(QEnterEvent*) override { update(); }
    void leaveEvent(QEvent*) override { update(); }

private:
    /// A sign for the example, not data: bars of a map, two groups of bars, a falling line.
    void paintPicture(QPainter& painter, const QRectF& box, const Colors& colors) const {
        painter.setPen(Qt::NoPen);
        if (m_picture == 2) {
            QPainterPath path(QPointF(box.left(), box.top() + 6));
            path.cubicTo(box.left() + box.width() * 0.25, box.bottom() - 8, box.center().x(), box.bottom() - 10,
                         box.right(), box.bottom() - 5);
            painter.strokePath(path, QPen(colors.accent, 2.5, Qt::SolidLine, Qt::RoundCap));
            painter.fillRect(QRectF(box.left(), box.bottom() - 1, box.width(), 1), colors.line);
            return;
        }
        const int bars = m_picture == 0 ? 14 : 16;
        const double step = box.width() / bars;
        for (int i = 0; i < bars; ++i) {
            const bool isTall = m_picture == 0 ? i > 7 : i % 8 > 4;
            double y = box.bottom();
            const QColor fills[4] = {colors.parameters, colors.gradients, colors.optimizer, colors.activations};
            const double heights[4] = {isTall ? 18.0 : 7, isTall ? 9.0 : 4, isTall ? 12.0 : 5, isTall ? 20.0 : 22};
            const double shift = m_picture == 1 && i >= 8 ? 6 : 0;
            for (int part = 0; part < 4; ++part) {
                painter.fillRect(
                    QRectF(box.left() + i * (step - 0.4) + shift, y - heights[part], step - 2.4, heights[part]),
                    fills[part]);
                y -= heights[part];
            }
        }
    }
    QString m_body;
    int m_picture;
};

} // namespace

WelcomePage::WelcomePage(QWidget* parent) : QWidget(parent) {
    setObjectName("page");
    auto* title = new QLabel(tr("Does it fit, how fast will it be, and which part costs what?"), this);
    title->setStyleSheet(QStringLiteral("font-size: 24px; font-weight: 600;"));
    auto* text = makeLabel(tr("Open a folder with a config.json, or start with an example. Everything works offline."),
                           "secondary", this);

    struct Example {
        QString title, text, graph, cluster;
        bool train;
    };
    const Example examples[] = {
        {tr("Plan GPT-2 XL for 8 cards"),
         tr("1.6 billion parameters on eight TITANs over PCIe 3. Drag the memory budget."), "gpt2-xl", "8x-titan-pcie3",
         false},
        {tr("Plan Llama 3.1 8B for 2 × 8"), tr("Two nodes of eight H100 with a slower link between them."),
         "llama-3.1-8b", "2x8-h100", false},
        {tr("Train a small GPT here"),
         tr("Plans a small network for this machine's cores and trains it in about a minute."), "demo-small", "local",
         true},
    };
    auto* cards = new QHBoxLayout;
    cards->setSpacing(kGap);
    int index = 0;
    for (const Example& example : examples) {
        auto* card = new ExampleCard(example.title, example.text, index++, this);
        connect(card, &QAbstractButton::clicked, this,
                [this, example] { Q_EMIT exampleChosen(example.graph, example.cluster, example.train); });
        cards->addWidget(card);
    }
    cards->addStretch();
    auto* open = new QPushButton(tr("Open a folder…"), this);
    open->setObjectName("primary");
    open->setMinimumHeight(32);
    connect(open, &QPushButton::clicked, this, &WelcomePage::openRequested);
    auto* actions = new QHBoxLayout;
    actions->addWidget(open);
    actions->addSpacing(8);
    actions->addWidget(makeLabel(tr("or drop a folder, a config.json, a plan or a session here"), "secondary", this));
    actions->addStretch();
    m_recent = new QVBoxLayout;
    m_recent->setSpacing(2);

    auto* column = new QVBoxLayout;
    column->setSpacing(8);
    column->addStretch(2);
    column->addWidget(title);
    column->addWidget(text);
    column->addSpacing(16);
    column->addLayout(cards);
    column->addSpacing(16);
    column->addLayout(actions);
    column->addSpacing(16);
    column->addLayout(m_recent);
    column->addStretch(3);
    auto* row = new QHBoxLayout(this);
    row->addStretch(1);
    row->addLayout(column);
    row->addStretch(1);
}

void WelcomePage::setRecentFiles(const QStringList& files) {
    while (QLayoutItem* item = m_recent->takeAt(0)) {
        if (item->widget())
            item->widget()->deleteLater();
        delete item;
    }
    if (files.isEmpty())
        return;
    m_recent->addWidget(makeLabel(tr("Recent"), "title", this));
    for (const QString& file : files.mid(0, 5)) {
        const bool isLast = QFileInfo(file).fileName() == QLatin1String("last.shardscope");
        auto* button = new QPushButton(
            isLast
                ? tr("Last session, %1").arg(QLocale().toString(QFileInfo(file).lastModified(), QLocale::ShortFormat))
                : QFileInfo(file).fileName(),
            this);
        button->setObjectName("link");
        button->setToolTip(file);
        button->setCursor(Qt::PointingHandCursor);
        connect(button, &QPushButton::clicked, this, [this, file] { Q_EMIT recentChosen(file); });
        m_recent->addWidget(button, 0, Qt::AlignLeft);
    }
}

} // namespace shardscope::app
