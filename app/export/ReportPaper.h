// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/export/Figure.h"

#include <QPainter>
#include <QPdfWriter>

#include <vector>

namespace shardscope::app {

/// Pages of A4 that are filled from the top; units are pixels of a screen at scale one (96 an inch).
class ReportPaper {
public:
    ReportPaper(QIODevice& device, const QString& title, const QString& footer);
    ~ReportPaper();
    ReportPaper(const ReportPaper&) = delete;
    ReportPaper& operator=(const ReportPaper&) = delete;

    void heading(const QString& text);
    void text(const QString& text, const QFont& font, bool isSecondary = false);
    void figure(const Figure& figure);
    void space(double height) { m_y += height; }

    struct Column {
        QString title;
        double share = 1; ///< of the width
        bool isNumber = false;
    };
    /// Cells may take several lines. The header is repeated on every page; a row never crosses one.
    void table(const std::vector<Column>& columns, const std::vector<QStringList>& rows);
    /// Name and value pairs, side by side in `columns` columns.
    void facts(const std::vector<std::pair<QString, QString>>& facts, int columns);
    int pages() const { return m_page; }

private:
    double width() const;
    double bottom() const;
    void newPage();
    void makeRoom(double height);
    double rowHeight(const std::vector<Column>& columns, const QStringList& cells, const QFont& font) const;
    void row(const std::vector<Column>& columns, const QStringList& cells, const QFont& font, bool isHeader);
    void foot();

    QPdfWriter m_pdf;
    QPainter m_painter;
    QString m_footer;
    double m_y = 0;
    int m_page = 0;
};

} // namespace shardscope::app
