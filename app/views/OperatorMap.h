// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/layout/MapRows.h"

#include <QWidget>

namespace shardscope::app {

struct Colors;

/// The whole network as bars: memory up, communication down, placements as a stripe between.
class OperatorMap : public QWidget {
    Q_OBJECT
public:
    explicit OperatorMap(QWidget* parent = nullptr);

    void setRows(std::vector<MapRow> rows, std::int32_t peakOperator);
    /// Shown in a corner while the map shows another plan than the current one; empty otherwise.
    void setNotice(const QString& notice);
    void setSelection(const std::vector<std::int32_t>& operators);
    void setFolded(bool folded);
    bool isFolded() const { return m_folded; }
    void fit();

    const MapColumns& columns() const { return m_columns; }
    /// Where a column is painted, in widget coordinates.
    QRectF columnRect(int column) const;
    QSize sizeHint() const override { return {800, 210}; }
    QSize minimumSizeHint() const override { return {300, 124}; }

Q_SIGNALS:
    void selectionPicked(const std::vector<std::int32_t>& operators);
    void placeRequested(const shardscope::contract::Placement& placement);
    void pinToggled();
    void compareHeld(bool held);

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void keyReleaseEvent(QKeyEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;
    bool event(QEvent* event) override;

private:
    struct Geometry {
        QRectF plot;          ///< bars
        QRectF stripe;        ///< placements
        QRectF communication; ///< bars going down
        double nameY = 0;     ///< operators' names
        double groupY = 0;    ///< runs' names
    };
    /// Columns, both ends included.
    struct Run {
        std::int32_t first = 0;
        std::int32_t last = 0;
    };
    const MapRow& rowOf(std::int32_t column) const {
        return m_rows[static_cast<std::size_t>(m_columns.columns[static_cast<std::size_t>(column)].rows.front())];
    }
    void gatherFacts();
    Geometry geometry() const;
    void relayout();
    static constexpr double kLeftAxis = 40;
    Span screenSpan(int column) const {
        const Span& span = m_spans[static_cast<std::size_t>(column)];
        return {kLeftAxis + span.begin * m_zoom - m_offset, kLeftAxis + span.end * m_zoom - m_offset};
    }
    std::vector<std::int32_t> operatorsOf(int firstColumn, int lastColumn) const;
    int columnUnder(double x) const;
    /// The first column from `from` on that begins at x or after it, in widget coordinates.
    int firstBeginningAt(double x, int from) const;
    void moveCurrent(int step, bool extend);
    QString describe(int column) const;

    void paintAxes(QPainter& painter, const Geometry& g, const Colors& colors) const;
    void paintBars(QPainter& painter, const Geometry& g, const Colors& colors) const;
    void paintCoalescing(QPainter& painter, const Geometry& g, const Colors& colors) const;
    void paintStripe(QPainter& painter, const Geometry& g, const Colors& colors) const;
    void paintLabels(QPainter& painter, const Geometry& g, const Colors& colors) const;
    void paintMarks(QPainter& painter, const Geometry& g, const Colors& colors) const;
    void paintPeak(QPainter& painter, const Geometry& g, const Colors& colors, const Span& span) const;
    /// Returns how wide the label is, painted or not; `groupEnd` is where the last painted one ends.
    double paintGroupLabel(QPainter& painter, const Geometry& g, const Colors& colors, const MapGroup& group,
                           double left, double right, double& groupEnd) const;
    struct BarBatch;
    void addBar(BarBatch& batch, const Geometry& g, const MapRow& row, double left, double right) const;
    void paintBatch(QPainter& painter, const Colors& colors, const BarBatch& batch) const;
    /// Of columns as narrow as a pixel.
    void paintPixels(QPainter& painter, const Geometry& g, const Colors& colors, const BarBatch& batch) const;
    void paintCuts(QPainter& painter, const Geometry& g, const Colors& colors, std::int32_t column) const;

    std::vector<MapRow> m_rows;
    MapColumns m_columns;
    std::vector<CoalescedRun> m_coalesced;
    std::vector<Span> m_spans; ///< unzoomed, from 0
    MapScale m_scale;
    // What a paint looks at for every column lies together, so that 100,000 of them take no time.
    std::vector<std::int64_t> m_heights;       ///< by column: memory of its operators
    std::vector<Run> m_cells;                  ///< columns of one placement that share a cell of the stripe
    std::vector<std::int32_t> m_pinnedColumns; ///< ascending
    std::vector<Run> m_selectedRuns;           ///< ascending
    std::int32_t m_peakColumn = -1;
    std::vector<bool> m_isSelected; ///< by row
    std::int32_t m_peakOperator = -1;
    QString m_notice;
    bool m_folded = true;
    double m_zoom = 1;
    double m_offset = 0; ///< pixels scrolled at this zoom
    int m_current = -1;  ///< column with the keyboard's attention
    int m_anchor = -1;   ///< where a range selection began
    int m_hovered = -1;
    bool m_isComparing = false;
};

} // namespace shardscope::app
