// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/layout/MapRows.h"
#include "app/look/Colors.h"

#include <QWidget>

#include <functional>
#include <vector>

namespace shardscope::app {

struct LegendItem {
    enum class Mark { Square, Line, Dashes, Bracket };
    QString text;
    QBrush brush;
    Mark mark = Mark::Square;
};

/// What the colours of a painted view mean; as many lines as its width needs.
class Legend : public QWidget {
    Q_OBJECT
public:
    /// Items are asked for again when the lightness changes.
    using Items = std::function<std::vector<LegendItem>(const Colors&)>;
    explicit Legend(QWidget* parent = nullptr);
    void setItems(Items items);
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return {120, kLine}; }
    static constexpr int kLine = 16;

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    int linesFor(int width) const;
    void takeHeight();
    Items m_items;
};

/// The categories of the ledger that these bytes have, in stacking order.
std::vector<LegendItem> memoryLegend(const MemoryParts& present, const Colors& colors);
/// What an operator map of these rows shows.
Legend::Items mapLegend(const std::vector<MapRow>& rows);
/// What a timeline shows.
std::vector<LegendItem> timelineLegend(const Colors& colors);

} // namespace shardscope::app
