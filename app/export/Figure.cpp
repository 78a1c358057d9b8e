// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/export/Figure.h"

#include "app/look/Theme.h"
#include "app/tables/OperatorTable.h"
#include "app/tables/RunTables.h"
#include "app/views/Card.h"
#include "app/views/DataTable.h"
#include "app/views/Legend.h"
#include "app/views/LossChart.h"
#include "app/views/MemoryView.h"
#include "app/views/OperatorMap.h"
#include "app/views/PeakBarView.h"
#include "app/views/TimelineView.h"
#include "app/views/WaterfallView.h"

#include <QBuffer>
#include <QHeaderView>
#include <QLabel>
#include <QPainter>
#include <QPdfWriter>
#include <QSvgGenerator>
#include <QVBoxLayout>

#include <algorithm>
#include <cmath>

namespace shardscope::app {

namespace {

constexpr double kScale = 2;
constexpr int kDotsPerInch = 96;
constexpr double kMillimetresPerInch = 25.4;
/// A picture of a table shows its first rows; the CSV has them all.
constexpr int kMostRows = 60;

/// A sheet of paper with a title, one view under it and a caption.
class Sheet : public QWidget {
public:
    Sheet(const QString& title, FigureWidth width)
        : m_column(new QVBoxLayout(this)), m_margin(width == FigureWidth::Screen ? 16 : 6) {
        if (width != FigureWidth::Screen)
            m_paper = static_cast<int>(std::lround(millimetres(width) / kMillimetresPerInch * kDotsPerInch));
        setObjectName("sheet");
        setPalette(paletteOf(lightColors()));
        setStyleSheet(shardscope::app::styleSheet(lightColors()) +
                      QStringLiteral("QWidget#sheet { background: white; }"));
        m_column->setContentsMargins(m_margin, m_margin * 3 / 4, m_margin, m_margin * 3 / 4);
        m_column->setSpacing(6);
        m_column->addWidget(makeLabel(title, "title", this));
    }
    /// What a view of so many pixels on a screen becomes on this sheet.
    QSize sized(const QSize& usual) const {
        if (m_paper == 0)
            return usual;
        constexpr double kLower = 0.72; // a page is narrower than a screen; a view need not be as high either
        return {m_paper - 2 * m_margin, static_cast<int>(std::max(48.0, usual.height() * kLower))};
    }
    void add(QWidget* view, const QSize& usual) {
        const QSize size = sized(usual);
        view->setFixedSize(size);
        m_column->addWidget(view);
        m_width = size.width();
    }
    /// `width`: of the view below; a legend is as tall as that width makes it, also before it is shown.
    void addLegend(const Legend::Items& items, int width) {
        auto* legend = new Legend(this);
        legend->resize(sized({width, 0}).width(), Legend::kLine);
        legend->setItems(items);
        m_column->addWidget(legend);
    }
    void addText(const QString& text) {
        auto* label = makeLabel(text, "small", this);
        label->setWordWrap(true);
        label->setTextFormat(Qt::PlainText);
        m_column->addSpacing(4);
        m_column->addWidget(label);
    }
    QSize settle() {
        ensurePolished();
        const int width = m_width + 2 * m_margin;
        const int height = m_column->hasHeightForWidth() ? m_column->heightForWidth(width) : sizeHint().height();
        resize(width, height);
        m_column->activate();
        return size();
    }

private:
    QVBoxLayout* m_column;
    int m_margin;
    int m_paper = 0; ///< pixels of a print's width
    int m_width = 900;
};

void addTable(Sheet& sheet, QAbstractItemModel* model, int width) {
    model->setParent(&sheet);
    auto* view = new DataTable(model, kSortRole, {}, &sheet);
    view->setSortingEnabled(false);
    view->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    view->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    view->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
    view->horizontalHeader()->setStretchLastSection(true);
    view->ensurePolished();
    const int rows = std::min(kMostRows, model->rowCount());
    const int height =
        view->horizontalHeader()->sizeHint().height() + rows * view->verticalHeader()->defaultSectionSize();
    sheet.add(view, {width, height + 4});
    if (model->rowCount() > rows)
        sheet.addText(
            QCoreApplication::translate("Export", "The first %1 of %2 rows.").arg(rows).arg(model->rowCount()));
}

void addMap(Sheet& sheet, const planner::PlanResult& plan) {
    auto rows = mapRows(plan);
    sheet.addLegend(mapLegend(rows), 1060);
    auto* map = new OperatorMap(&sheet);
    map->setRows(std::move(rows), plan.peakOperator);
    sheet.add(map, {1060, 360});
}

void addRunMemory(Sheet& sheet, const RunRecord& run) {
    auto* bars = new MemoryBars(&sheet);
    bars->setWorkers(run.workers());
    sheet.addLegend([present = bars->present()](const Colors& colors) { return memoryLegend(present, colors); }, 860);
    sheet.add(bars, {860, 300});
}

void addMemoryOverTime(Sheet& sheet, const StepPicturePointer& step) {
    auto* memory = new MemoryView(&sheet);
    memory->setPicture(step);
    sheet.addLegend([present = memory->present()](const Colors& colors) { return memoryLegend(present, colors); },
                    1060);
    sheet.add(memory, {1060, 260});
}

void addView(Sheet& sheet, ViewKind kind, const ExportContent& content) {
    switch (kind) {
    case ViewKind::Map:
        addMap(sheet, *content.answer->plan);
        return;
    case ViewKind::Frontier: {
        auto* frontier = new FrontierView(&sheet);
        frontier->setPicture(content.frontier);
        sheet.add(frontier, {1060, 300});
        return;
    }
    case ViewKind::Ledger: {
        const MemoryParts present = partsOf(content.answer->plan->ledger);
        auto* bar = new PeakBarView(&sheet);
        bar->setMaximumWidth(QWIDGETSIZE_MAX);
        bar->setPlan(content.answer->plan, content.answer->choices->cluster);
        sheet.addLegend([present](const Colors& colors) { return memoryLegend(present, colors); }, 860);
        sheet.add(bar, {860, 48});
        return;
    }
    case ViewKind::Timeline: {
        auto* timeline = new TimelineView(&sheet);
        timeline->setPicture(content.step);
        sheet.addLegend(timelineLegend, 1060);
        sheet.add(timeline, {1060, 180});
        return;
    }
    case ViewKind::MemoryOverTime:
        addMemoryOverTime(sheet, content.step);
        return;
    case ViewKind::Communication: {
        auto* table = new CommunicationTable;
        table->setPlan(content.answer->plan);
        addTable(sheet, table, 860);
        return;
    }
    case ViewKind::Plans: {
        auto* table = new PlansTable;
        table->setRows(content.plans, content.frontier.unit);
        addTable(sheet, table, 1000);
        return;
    }
    case ViewKind::Difference: {
        auto* waterfall = new WaterfallView(&sheet);
        waterfall->setComparison(content.difference);
        sheet.addText(waterfall->sentence());
        sheet.add(waterfall, {860, 260});
        return;
    }
    case ViewKind::Loss: {
        auto* loss = new LossChart(&sheet);
        sheet.add(loss, {860, 300});
        loss->setRecord(*content.run);
        return;
    }
    case ViewKind::RunMemory:
        addRunMemory(sheet, *content.run);
        return;
    case ViewKind::Workers: {
        auto* table = new WorkersTable;
        table->setWorkers(content.run->workers());
        addTable(sheet, table, 860);
        return;
    }
    case ViewKind::Log: {
        auto* table = new LogTable;
        table->setLog(content.run->log());
        addTable(sheet, table, 860);
        return;
    }
    }
}

} // namespace

int millimetres(FigureWidth width) {
    return width == FigureWidth::Column ? 84 : width == FigureWidth::Page ? 174 : 0;
}

bool fitsPrint(ViewKind kind) {
    return kind != ViewKind::Communication && kind != ViewKind::Plans && kind != ViewKind::Workers &&
           kind != ViewKind::Log;
}

Figure drawFigure(ViewKind kind, const ExportContent& content, bool withCaption, FigureWidth width) {
    if (!content.missing(kind).isEmpty())
        return {};
    const bool needsStep = kind == ViewKind::Timeline || kind == ViewKind::MemoryOverTime;
    if (needsStep && (!content.step || !content.step->error.isEmpty()))
        return {};
    Sheet sheet(viewTitle(kind), width);
    addView(sheet, kind, content);
    if (withCaption)
        sheet.addText(content.caption(kind));
    Figure figure;
    figure.size = sheet.settle();
    sheet.render(&figure.picture, {}, {}, QWidget::DrawWindowBackground | QWidget::DrawChildren);
    return figure;
}

double playFigure(QPainter& painter, const Figure& figure, double width) {
    if (figure.size.isEmpty())
        return 0;
    painter.save();
    const double scale = width / figure.size.width();
    painter.scale(scale, scale);
    // The device of a report has its own resolution; the recorded one is a screen's.
    QPicture copy = figure.picture;
    copy.play(&painter);
    painter.restore();
    return figure.size.height() * scale;
}

QByteArray encodeFigure(const Figure& figure, PictureFormat format, const QString& title) {
    QByteArray bytes;
    QBuffer buffer(&bytes);
    if (figure.size.isEmpty() || !buffer.open(QIODevice::WriteOnly))
        return {};
    switch (format) {
    case PictureFormat::Png: {
        QImage image(figure.size * kScale, QImage::Format_RGB32);
        image.setDevicePixelRatio(kScale);
        image.fill(Qt::white);
        QPainter painter(&image);
        playFigure(painter, figure, figure.size.width());
        painter.end();
        image.setText(QStringLiteral("Title"), title);
        image.save(&buffer, "PNG");
        break;
    }
    case PictureFormat::Svg: {
        QSvgGenerator svg;
        svg.setOutputDevice(&buffer);
        svg.setTitle(title);
        svg.setResolution(kDotsPerInch);
        svg.setSize(figure.size);
        svg.setViewBox(QRect(QPoint(), figure.size));
        QPainter painter(&svg);
        playFigure(painter, figure, figure.size.width());
        break;
    }
    case PictureFormat::Pdf: {
        QPdfWriter pdf(&buffer);
        pdf.setTitle(title);
        pdf.setCreator(QStringLiteral("shardscope " SHARDSCOPE_VERSION));
        pdf.setResolution(kDotsPerInch);
        pdf.setPageSize(QPageSize(QSizeF(figure.size) / kDotsPerInch, QPageSize::Inch));
        pdf.setPageMargins(QMarginsF());
        QPainter painter(&pdf);
        playFigure(painter, figure, figure.size.width());
        break;
    }
    }
    return bytes;
}

} // namespace shardscope::app
