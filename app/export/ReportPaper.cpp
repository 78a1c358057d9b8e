// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/export/ReportPaper.h"

#include "app/look/Theme.h"

#include <QPageSize>

#include <algorithm>

namespace shardscope::app {

namespace {

constexpr double kMargin = 52;
constexpr double kFoot = 26;
constexpr double kCellGap = 10;
constexpr int kDotsPerInch = 96;

QFont cellFont() {
    QFont font = smallFont();
    font.setPixelSize(10);
    return font;
}
QFont headerFont() {
    QFont font = smallBoldFont();
    font.setPixelSize(10);
    return font;
}

constexpr int kWrapped = Qt::TextWordWrap;

} // namespace

ReportPaper::ReportPaper(QIODevice& device, const QString& title, const QString& footer)
    : m_pdf(&device), m_footer(footer) {
    m_pdf.setTitle(title);
    m_pdf.setCreator(QStringLiteral("shardscope " SHARDSCOPE_VERSION));
    m_pdf.setResolution(kDotsPerInch);
    m_pdf.setPageSize(QPageSize(QPageSize::A4));
    m_pdf.setPageMargins(QMarginsF());
    m_painter.begin(&m_pdf);
    m_page = 1;
    m_y = kMargin;
}

ReportPaper::~ReportPaper() {
    foot();
    m_painter.end();
}

double ReportPaper::width() const {
    return m_pdf.width() - 2 * kMargin;
}

double ReportPaper::bottom() const {
    return m_pdf.height() - kMargin - kFoot;
}

void ReportPaper::foot() {
    m_painter.setFont(cellFont());
    m_painter.setPen(lightColors().secondary);
    const QRectF box(kMargin, m_pdf.height() - kMargin - 4, width(), 16);
    m_painter.drawText(box, Qt::AlignLeft | Qt::AlignVCenter, m_footer);
    m_painter.drawText(box, Qt::AlignRight | Qt::AlignVCenter, QString::number(m_page));
}

void ReportPaper::newPage() {
    foot();
    m_pdf.newPage();
    ++m_page;
    m_y = kMargin;
}

void ReportPaper::makeRoom(double height) {
    if (m_y + height > bottom() && m_y > kMargin + 1)
        newPage();
}

void ReportPaper::heading(const QString& text) {
    // A heading alone at the end of a page belongs to nothing.
    makeRoom(90);
    m_y += m_y > kMargin + 1 ? 14 : 0;
    m_painter.setFont(titleFont());
    m_painter.setPen(lightColors().text);
    m_painter.drawText(QRectF(kMargin, m_y, width(), 20), Qt::AlignLeft | Qt::AlignVCenter, text);
    m_y += 26;
}

void ReportPaper::text(const QString& text, const QFont& font, bool isSecondary) {
    const QRectF room(0, 0, width(), 10000);
    const double height =
        QFontMetricsF(font, &m_pdf).boundingRect(room, kWrapped | Qt::AlignLeft | Qt::AlignTop, text).height();
    makeRoom(height);
    m_painter.setFont(font);
    m_painter.setPen(isSecondary ? lightColors().secondary : lightColors().text);
    m_painter.drawText(QRectF(kMargin, m_y, width(), height + 2), kWrapped | Qt::AlignLeft | Qt::AlignTop, text);
    m_y += height + 4;
}

void ReportPaper::figure(const Figure& figure) {
    if (figure.size.isEmpty())
        return;
    makeRoom(width() * figure.size.height() / figure.size.width() + 8);
    m_painter.save();
    m_painter.translate(kMargin, m_y);
    m_y += playFigure(m_painter, figure, width()) + 8;
    m_painter.restore();
}

double ReportPaper::rowHeight(const std::vector<Column>& columns, const QStringList& cells, const QFont& font) const {
    double height = 0;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const QRectF room(0, 0, columns[i].share * width() - kCellGap, 10000);
        height = std::max(height, QFontMetricsF(font, m_painter.device())
                                      .boundingRect(room, kWrapped | Qt::AlignLeft | Qt::AlignTop,
                                                    cells.value(static_cast<qsizetype>(i)))
                                      .height());
    }
    return height + 5;
}

void ReportPaper::row(const std::vector<Column>& columns, const QStringList& cells, const QFont& font, bool isHeader) {
    const Colors& colors = lightColors();
    const double height = rowHeight(columns, cells, font);
    double x = kMargin;
    m_painter.setFont(font);
    m_painter.setPen(isHeader ? colors.secondary : colors.text);
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const double wide = columns[i].share * width();
        m_painter.drawText(QRectF(x, m_y + 2, wide - kCellGap, height),
                           kWrapped | (columns[i].isNumber ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignTop,
                           cells.value(static_cast<qsizetype>(i)));
        x += wide;
    }
    m_y += height;
    m_painter.setPen(QPen(isHeader ? colors.line : colors.grid, 0.7));
    m_painter.drawLine(QPointF(kMargin, m_y), QPointF(kMargin + width(), m_y));
}

void ReportPaper::table(const std::vector<Column>& columns, const std::vector<QStringList>& rows) {
    QStringList titles;
    for (const Column& column : columns)
        titles << column.title;
    const auto header = [&] { row(columns, titles, headerFont(), true); };
    makeRoom(60);
    header();
    for (const QStringList& cells : rows) {
        if (m_y + rowHeight(columns, cells, cellFont()) > bottom()) {
            newPage();
            header();
        }
        row(columns, cells, cellFont(), false);
    }
    m_y += 6;
}

void ReportPaper::facts(const std::vector<std::pair<QString, QString>>& facts, int columns) {
    const double wide = (width() - (columns - 1) * 24.0) / columns;
    const int lines = (static_cast<int>(facts.size()) + columns - 1) / columns;
    constexpr double kLine = 15;
    makeRoom(lines * kLine);
    for (int i = 0; i < static_cast<int>(facts.size()); ++i) {
        const auto& [name, value] = facts[static_cast<std::size_t>(i)];
        const QRectF box(kMargin + i / lines * (wide + 24), m_y + i % lines * kLine, wide, kLine);
        m_painter.setFont(cellFont());
        m_painter.setPen(lightColors().secondary);
        m_painter.drawText(box, Qt::AlignLeft | Qt::AlignVCenter, name);
        m_painter.setPen(lightColors().text);
        const QFontMetricsF metrics(cellFont(), &m_pdf);
        const double room = wide - metrics.horizontalAdvance(name) - 8;
        m_painter.drawText(box, Qt::AlignRight | Qt::AlignVCenter, metrics.elidedText(value, Qt::ElideMiddle, room));
    }
    m_y += lines * kLine + 4;
}

} // namespace shardscope::app
