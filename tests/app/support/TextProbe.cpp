// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/support/TextProbe.h"

#include "app/look/Colors.h"

#include <QAbstractScrollArea>
#include <QFontMetricsF>
#include <QGraphicsEffect>
#include <QHeaderView>
#include <QLineEdit>
#include <QLineF>
#include <QPaintDevice>
#include <QPaintEngine>
#include <QPainter>
#include <QPainterPath>
#include <QScrollBar>
#include <QWidget>

#include <algorithm>
#include <cmath>
#include <map>

namespace shardscope::test {

namespace {

/// Texts nearer than this on one line read as one.
constexpr double kThinSpace = 2;
/// A colour is part of a text's ground from this share of the pixels around it.
constexpr double kGroundShare = 0.2;

class TextEngine : public QPaintEngine {
public:
    TextEngine() : QPaintEngine(QPaintEngine::AllFeatures) {}
    bool begin(QPaintDevice*) override { return true; }
    bool end() override { return true; }
    void updateState(const QPaintEngineState&) override {}
    Type type() const override { return QPaintEngine::User; }

    void drawPixmap(const QRectF& box, const QPixmap& pixmap, const QRectF&) override {
        if (!pixmap.hasAlpha())
            cover(pathOf(box));
    }
    void drawImage(const QRectF& box, const QImage& image, const QRectF&, Qt::ImageConversionFlags) override {
        if (!image.hasAlphaChannel())
            cover(pathOf(box));
    }
    void drawRects(const QRectF* boxes, int count) override {
        for (int i = 0; i < count; ++i)
            fill(pathOf(boxes[i]));
    }
    void drawRects(const QRect* boxes, int count) override {
        for (int i = 0; i < count; ++i)
            fill(pathOf(QRectF(boxes[i])));
    }
    void drawPath(const QPainterPath& path) override {
        for (const QPolygonF& polygon : path.toSubpathPolygons())
            stroke(polygon.constData(), static_cast<int>(polygon.size()));
        fill(path);
    }
    void drawPolygon(const QPointF* points, int count, PolygonDrawMode mode) override {
        stroke(points, count);
        if (mode == PolylineMode)
            return;
        QPainterPath path;
        path.addPolygon(QPolygonF(QList<QPointF>(points, points + count)));
        fill(path);
    }
    void drawTextItem(const QPointF& at, const QTextItem& item) override {
        if (item.text().trimmed().isEmpty() || painter()->opacity() < 0.05)
            return;
        const QFontMetricsF metrics(item.font());
        // Selected words are drawn first, and then the others with those words cut out.
        if (painter()->hasClipping()) {
            const QRect box = metrics.tightBoundingRect(item.text()).translated(at).toAlignedRect();
            if ((painter()->clipRegion() & box.adjusted(1, 1, -1, -1)).isEmpty())
                return;
        }
        const QTransform& map = state->transform();
        PaintedText text;
        text.text = item.text();
        text.line = map.mapRect(QRectF(at.x(), at.y() - item.ascent(), item.width(), item.ascent() + item.descent()));
        text.box = map.mapRect(metrics.tightBoundingRect(item.text()).translated(at));
        text.clip = clip();
        text.color = painter()->pen().color();
        text.order = ++m_order;
        text.ground = groundUnder(text.box);
        const double size = item.font().pixelSize() > 0 ? item.font().pixelSize() : item.font().pointSizeF() * 96 / 72;
        text.isLarge = size >= 24 || (size >= 18.5 && item.font().weight() >= QFont::DemiBold);
        // Selected text is painted once more, in its own colour.
        std::erase_if(m_texts, [&text](const PaintedText& other) {
            return other.text == text.text && (other.line.topLeft() - text.line.topLeft()).manhattanLength() < 1;
        });
        if (!m_texts.empty() && continues(m_texts.back(), text)) {
            PaintedText& before = m_texts.back();
            before.text += text.text;
            before.line |= text.line;
            before.box |= text.box;
            return;
        }
        m_texts.push_back(text);
    }
    std::vector<PaintedText> m_texts;
    std::vector<PaintedLine> m_lines;
    /// Where cards lie over the window: what they cover on purpose.
    std::vector<QRectF> m_overlays;

private:
    /// One call draws a string in pieces where the font or the script changes.
    static bool continues(const PaintedText& before, const PaintedText& next) {
        return before.color == next.color && std::abs(before.line.right() - next.line.left()) < 0.6 &&
               before.line.top() < next.box.bottom() && next.line.top() < before.box.bottom() &&
               before.clip == next.clip;
    }
    static QPainterPath pathOf(const QRectF& box) {
        QPainterPath path;
        path.addRect(box);
        return path;
    }
    /// Straight parts longer than a letter; what is clipped away altogether is none.
    void stroke(const QPointF* points, int count) {
        const QPen pen = painter()->pen();
        if (pen.style() == Qt::NoPen || pen.color().alphaF() < 0.4 || painter()->opacity() < 0.4)
            return;
        for (int i = 1; i < count; ++i) {
            const QLineF line = state->transform().map(QLineF(points[i - 1], points[i]));
            const QRectF bounds = QRectF(line.p1(), line.p2()).normalized().adjusted(-1, -1, 1, 1);
            if (line.length() > 4 && bounds.intersects(clip()))
                m_lines.push_back({line, pen.color(), ++m_order});
        }
    }
    int groundUnder(const QRectF& box) const {
        for (auto ground = m_grounds.rbegin(); ground != m_grounds.rend(); ++ground)
            if (ground->second.contains(box))
                return ground->first;
        return 0;
    }
    QRectF clip() const {
        QRectF area(-1e6, -1e6, 2e6, 2e6);
        if (!systemClip().isEmpty())
            area &= QRectF(systemClip().boundingRect());
        if (painter()->hasClipping())
            area &= state->transform().mapRect(painter()->clipBoundingRect());
        return area;
    }
    void fill(const QPainterPath& path) {
        const QBrush brush = painter()->brush();
        const bool isOpaque = brush.style() == Qt::TexturePattern
                                  ? !brush.textureImage().hasAlphaChannel()
                                  : brush.style() == Qt::SolidPattern && brush.isOpaque();
        if (isOpaque)
            cover(path);
    }
    /// Everything already painted under the path is out of sight; measured on a raster of points.
    void cover(const QPainterPath& path) {
        if (painter()->opacity() < 0.95)
            return;
        const QPainterPath mapped = state->transform().map(path);
        const QRectF bounds = mapped.boundingRect() & clip();
        if (bounds.isEmpty())
            return;
        // Of other shapes only a part is ground.
        if (path.elementCount() <= 5 || bounds.height() > 24)
            m_grounds.emplace_back(++m_order, bounds);
        for (const QRectF& overlay : m_overlays)
            if (bounds.width() > overlay.width() - 4 && bounds.height() > overlay.height() - 4 &&
                overlay.adjusted(-1, -1, 1, 1).contains(bounds)) {
                std::erase_if(m_texts,
                              [&bounds](const PaintedText& text) { return bounds.intersects(text.visible()); });
                return;
            }
        // Most of what is filled is a rectangle, and its bounds say all.
        const bool isBox = path.elementCount() <= 5;
        for (PaintedText& text : m_texts) {
            const QRectF visible = text.visible();
            if (!bounds.intersects(visible))
                continue;
            constexpr int kColumns = 16, kRows = 5;
            int under = 0;
            for (int column = 0; column < kColumns; ++column)
                for (int row = 0; row < kRows; ++row) {
                    const QPointF point(visible.left() + (column + 0.5) / kColumns * visible.width(),
                                        visible.top() + (row + 0.5) / kRows * visible.height());
                    under += bounds.contains(point) && (isBox || mapped.contains(point)) ? 1 : 0;
                }
            text.hidden = std::max(text.hidden, under / static_cast<double>(kColumns * kRows));
        }
        std::erase_if(m_texts, [](const PaintedText& text) { return text.hidden > 0.98; });
    }
    int m_order = 0;
    std::vector<std::pair<int, QRectF>> m_grounds;
};

class TextDevice : public QPaintDevice {
public:
    explicit TextDevice(const QSize& size) : m_size(size) {}
    QPaintEngine* paintEngine() const override { return &m_engine; }
    mutable TextEngine m_engine;

protected:
    int metric(PaintDeviceMetric metric) const override {
        switch (metric) {
        case PdmWidth:
            return m_size.width();
        case PdmHeight:
            return m_size.height();
        case PdmWidthMM:
            return m_size.width() * 254 / 960;
        case PdmHeightMM:
            return m_size.height() * 254 / 960;
        case PdmDpiX:
        case PdmDpiY:
        case PdmPhysicalDpiX:
        case PdmPhysicalDpiY:
            return 96;
        case PdmDevicePixelRatio:
            return 1;
        case PdmDevicePixelRatioScaled:
            return static_cast<int>(devicePixelRatioFScale());
        default:
            return QPaintDevice::metric(metric);
        }
    }

private:
    QSize m_size;
};

/// Effects paint through a pixmap, in which texts are no longer texts.
class WithoutEffects {
public:
    explicit WithoutEffects(QWidget& widget) {
        for (QWidget* child : widget.findChildren<QWidget*>())
            if (child->graphicsEffect() && child->graphicsEffect()->isEnabled()) {
                child->graphicsEffect()->setEnabled(false);
                m_effects.push_back(child->graphicsEffect());
            }
    }
    ~WithoutEffects() {
        for (QGraphicsEffect* effect : m_effects)
            effect->setEnabled(true);
    }
    WithoutEffects(const WithoutEffects&) = delete;
    WithoutEffects& operator=(const WithoutEffects&) = delete;

private:
    std::vector<QGraphicsEffect*> m_effects;
};

/// The viewports whose hidden part a visible scroll bar brings into sight.
struct Scrolled {
    QRectF box;
    bool across = false, down = false;
};
std::vector<Scrolled> scrolledAreas(const QWidget& widget) {
    std::vector<Scrolled> areas;
    for (const auto* area : widget.findChildren<QAbstractScrollArea*>()) {
        if (!area->isVisible())
            continue;
        const QWidget* viewport = area->viewport();
        // The header of a table moves with the table's own bars.
        const auto* table = qobject_cast<const QHeaderView*>(area)
                                ? qobject_cast<const QAbstractScrollArea*>(area->parentWidget())
                                : nullptr;
        const QAbstractScrollArea* moved = table ? table : area;
        areas.push_back({QRectF(QPointF(viewport->mapTo(&widget, QPoint(0, 0))), QSizeF(viewport->size())),
                         moved->horizontalScrollBar()->isVisible(), moved->verticalScrollBar()->isVisible()});
    }
    // A field scrolls with its cursor.
    for (const auto* field : widget.findChildren<QLineEdit*>())
        if (field->isVisible())
            areas.push_back({QRectF(QPointF(field->mapTo(&widget, QPoint(0, 0))), QSizeF(field->size())), true, false});
    return areas;
}

/// Between a field's edge and where its text is cut: frame and padding.
constexpr double kFrame = 12;

/// How much of the text is cut off and by which edge: empty when nothing is.
QString cutOff(const PaintedText& text, const std::vector<Scrolled>& areas) {
    const QRectF visible = text.visible();
    const auto isScrolled = [&](bool across, double edge, auto edgeOf) {
        return std::any_of(areas.begin(), areas.end(), [&](const Scrolled& area) {
            return (across ? area.across : area.down) && area.box.adjusted(-2, -2, 2, 2).intersects(visible) &&
                   std::abs(edgeOf(area.box) - edge) < kFrame;
        });
    };
    // Letters are measured without their antialiasing, hence a little tolerance.
    constexpr double kTolerance = 1.2;
    if (text.clip.left() > text.box.left() + kTolerance &&
        !isScrolled(true, text.clip.left(), [](const QRectF& box) { return box.left(); }))
        return QStringLiteral("left");
    if (text.clip.right() < text.box.right() - kTolerance &&
        !isScrolled(true, text.clip.right(), [](const QRectF& box) { return box.right(); }))
        return QStringLiteral("right");
    if (text.clip.top() > text.box.top() + kTolerance &&
        !isScrolled(false, text.clip.top(), [](const QRectF& box) { return box.top(); }))
        return QStringLiteral("top");
    if (text.clip.bottom() < text.box.bottom() - kTolerance &&
        !isScrolled(false, text.clip.bottom(), [](const QRectF& box) { return box.bottom(); }))
        return QStringLiteral("bottom");
    return {};
}

/// The colours around a text, outside its letters.
std::vector<QColor> groundsOf(const QRectF& box, const QImage& image) {
    const double scale = image.devicePixelRatio();
    const QRect inner = QRectF(box.topLeft() * scale, box.size() * scale).toAlignedRect();
    const QRect outer = inner.adjusted(-2, -2, 2, 2) & image.rect();
    std::map<QRgb, int> counts;
    int all = 0;
    for (int y = outer.top(); y <= outer.bottom(); ++y)
        for (int x = outer.left(); x <= outer.right(); ++x)
            // Above and below: beside a selected word the field is not selected.
            if (y < inner.top() || y > inner.bottom()) {
                ++counts[image.pixel(x, y)];
                ++all;
            }
    std::vector<QColor> grounds;
    for (const auto& [color, count] : counts)
        if (count >= kGroundShare * all)
            grounds.emplace_back(color);
    return grounds;
}

/// Over each other, or side by side on one line with less than a thin space between.
bool touches(const PaintedText& a, const PaintedText& b) {
    const QRectF common = a.visible() & b.visible();
    if (common.width() > 1 && common.height() > 1)
        return true;
    const double together = std::min(a.box.bottom(), b.box.bottom()) - std::max(a.box.top(), b.box.top());
    if (together < 0.5 * std::min(a.box.height(), b.box.height()))
        return false;
    const double apart =
        std::max(a.visible().left(), b.visible().left()) - std::min(a.visible().right(), b.visible().right());
    return apart >= -1 && apart < kThinSpace;
}

/// Runs through the middle of the letters, not along an edge of their box.
bool strikes(const QLineF& line, const QRectF& box) {
    const QRectF core = box.adjusted(1.5, 1.5, -1.5, -1.5);
    if (core.width() < 2 || core.height() < 2)
        return false;
    if (core.contains(line.p1()) || core.contains(line.p2()))
        return true;
    for (const QLineF& side :
         {QLineF(core.topLeft(), core.topRight()), QLineF(core.topRight(), core.bottomRight()),
          QLineF(core.bottomRight(), core.bottomLeft()), QLineF(core.bottomLeft(), core.topLeft())})
        if (line.intersects(side, nullptr) == QLineF::BoundedIntersection)
            return true;
    return false;
}

} // namespace

QImage render(QWidget& widget, double scale) {
    QImage image(widget.size() * scale, QImage::Format_RGB32);
    image.setDevicePixelRatio(scale);
    image.fill(widget.palette().color(QPalette::Window));
    widget.render(&image);
    return image;
}

Painted painted(QWidget& widget) {
    const WithoutEffects without(widget);
    TextDevice device(widget.size());
    for (const QWidget* child : widget.findChildren<QWidget*>())
        if (child->isVisible() && child->property("overlay").toBool())
            device.m_engine.m_overlays.push_back(
                QRectF(QPointF(child->mapTo(&widget, QPoint(0, 0))), QSizeF(child->size())));
    widget.render(&device);
    return {device.m_engine.m_texts, device.m_engine.m_lines};
}

QStringList textFaults(QWidget& widget) {
    const std::vector<Scrolled> areas = scrolledAreas(widget);
    const QImage image = render(widget, 1);
    Painted found = painted(widget);
    std::vector<PaintedText>& texts = found.texts;
    // What is scrolled out of sight altogether is not a fault.
    std::erase_if(texts,
                  [](const PaintedText& text) { return text.visible().width() < 1 || text.visible().height() < 1; });
    QStringList faults;
    const auto where = [](const QRectF& box) {
        return QStringLiteral("at %1,%2").arg(qRound(box.left())).arg(qRound(box.top()));
    };
    for (std::size_t i = 0; i < texts.size(); ++i) {
        const PaintedText& text = texts[i];
        if (const QString edge = cutOff(text, areas); !edge.isEmpty())
            faults << QStringLiteral("clipped: \"%1\" %2, its %3").arg(text.text, where(text.box), edge);
        if (text.hidden > 0.1)
            faults << QStringLiteral("covered: \"%1\" %2, %3 %")
                          .arg(text.text, where(text.box))
                          .arg(qRound(text.hidden * 100));
        const std::vector<QColor> grounds = groundsOf(text.visible(), image);
        for (const PaintedLine& line : found.lines)
            if (line.order > text.ground && !grounds.empty() && strikes(line.line, text.visible()) &&
                app::contrastRatio(line.color, grounds.front()) > 2) {
                faults << QStringLiteral("struck: \"%1\" %2 by %3").arg(text.text, where(text.box), line.color.name());
                break;
            }
        // What is scrolled half out of sight lies beside a scroll bar.
        const bool isScrolledOut = text.visible().width() < 0.6 * text.box.width();
        for (const QColor& ground : isScrolledOut ? std::vector<QColor>() : grounds)
            if (const double ratio = app::contrastRatio(text.color, ground); ratio < (text.isLarge ? 3 : 4.5)) {
                faults << QStringLiteral("low contrast: \"%1\" %2, %3 on %4, %5")
                              .arg(text.text, where(text.box), text.color.name(), ground.name())
                              .arg(ratio, 0, 'f', 2);
                break;
            }
        for (std::size_t j = i + 1; j < texts.size(); ++j)
            if (touches(text, texts[j]))
                faults << QStringLiteral("touching: \"%1\" and \"%2\" %3")
                              .arg(text.text, texts[j].text, where(texts[j].box));
    }
    return faults;
}

} // namespace shardscope::test
