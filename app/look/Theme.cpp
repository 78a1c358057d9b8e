// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/look/Theme.h"

#include <QApplication>
#include <QFontDatabase>
#include <QStyleFactory>

// Resources of a static library are found only when somebody asks for them; outside any namespace.
static void initializeResources() {
    Q_INIT_RESOURCE(resources);
}

namespace shardscope::app {

namespace {

QString family() {
    static const QString name = [] {
        for (const QString& wanted : {QStringLiteral("Inter"), QStringLiteral("Inter Variable")})
            if (QFontDatabase::hasFamily(wanted))
                return wanted;
        return QFontDatabase::systemFont(QFontDatabase::GeneralFont).family();
    }();
    return name;
}

QFont makeFont(int pixels, QFont::Weight weight) {
    QFont font(family());
    font.setPixelSize(pixels);
    font.setWeight(weight);
    font.setHintingPreference(QFont::PreferNoHinting);
    return font;
}

} // namespace

QFont bodyFont() {
    return makeFont(13, QFont::Normal);
}
QFont bodyBoldFont() {
    return makeFont(13, QFont::DemiBold);
}
QFont smallFont() {
    return makeFont(11, QFont::Normal);
}
QFont smallBoldFont() {
    return makeFont(11, QFont::DemiBold);
}
QFont titleFont() {
    return makeFont(13, QFont::DemiBold);
}
QFont verdictFont() {
    return makeFont(18, QFont::DemiBold);
}
QFont headingFont() {
    return makeFont(24, QFont::DemiBold);
}

Theme::Theme(QApplication& application) : m_application(application) {
    initializeResources();
    m_systemIsDark = application.palette().color(QPalette::Window).lightness() < 128;
    application.setStyle(QStyleFactory::create(QStringLiteral("Fusion")));
    application.setFont(bodyFont());
    choose(Lightness::System);
}

void Theme::choose(Lightness lightness) {
    m_chosen = lightness;
    const bool dark = lightness == Lightness::Dark || (lightness == Lightness::System && m_systemIsDark);
    const Colors& colors = dark ? darkColors() : lightColors();
    m_application.setPalette(paletteOf(colors));
    m_application.setStyleSheet(styleSheet(colors));
    Q_EMIT changed();
}

QString styleSheet(const Colors& c) {
    QString sheet = QStringLiteral(R"(
* { outline: none; }
QWidget { font-size: 13px; }
QMainWindow, QWidget#page { background: @window; }
QMenuBar { background: @card; color: @text; border: none; padding: 1px 6px; }
QMenuBar::item { padding: 3px 9px; border-radius: 5px; background: transparent; }
QMenuBar::item:selected { background: @grid; }
QMenu { background: @card; color: @text; border: 1px solid @line; padding: 5px; }
QMenu::item { padding: 5px 26px 5px 22px; border-radius: 5px; }
QMenu::item:selected { background: @wash; color: @text; }
QMenu::item:disabled { color: @secondary; }
QMenu::separator { height: 1px; background: @line; margin: 5px 8px; }
QMenu::indicator { width: 12px; height: 12px; left: 5px; }
QToolTip { background: @card; color: @text; border: 1px solid @line; padding: 6px; }
QStatusBar { background: @card; color: @secondary; border-top: 1px solid @line; font-size: 12px; }
QStatusBar::item { border: none; }
QStatusBar QLabel { font-size: 12px; }

QComboBox, QLineEdit, QSpinBox, QDoubleSpinBox {
    background: @field; color: @text; border: 1px solid @line; border-radius: 6px; padding: 0 8px; min-height: 22px;
    selection-background-color: @accent; selection-color: @onAccent; }
QComboBox:hover, QLineEdit:hover, QSpinBox:hover, QDoubleSpinBox:hover { border-color: @secondary; }
QComboBox:focus, QLineEdit:focus, QSpinBox:focus, QDoubleSpinBox:focus { border: 1px solid @accent; }
QComboBox:disabled, QLineEdit:disabled { color: @secondary; }
QComboBox[automatic="true"], QLineEdit[automatic="true"] { color: @secondary; }
QComboBox[automatic="false"], QLineEdit[automatic="false"] { font-weight: 600; }
QLineEdit[invalid="true"] { border: 1px solid @limit; }
QComboBox::drop-down { border: none; width: 18px; }
QComboBox::down-arrow { image: url(:/look/chevron-@mode.svg); width: 14px; height: 14px; }
QComboBox QAbstractItemView { background: @card; color: @text; border: 1px solid @line; padding: 4px;
    selection-background-color: @wash; selection-color: @text; }
QSpinBox::up-button, QDoubleSpinBox::up-button, QSpinBox::down-button, QDoubleSpinBox::down-button { width: 0; border: none; }

QPushButton, QToolButton { background: @card; color: @text; border: 1px solid @line; border-radius: 6px; padding: 0 12px; min-height: 26px; }
QPushButton:hover, QToolButton:hover { background: @grid; }
QPushButton:focus, QToolButton:focus { border: 1px solid @accent; }
QPushButton:disabled, QToolButton:disabled { color: @secondary; background: @window; }
QPushButton#primary { background: @accent; color: @onAccent; border: 1px solid @accent; font-weight: 600; padding: 0 20px; }
QPushButton#primary:hover { background: @accentHover; }
QPushButton#primary:focus { border: 2px solid @text; }
QPushButton#primary:disabled { background: @grid; color: @secondary; border: 1px solid @line; font-weight: 400; }
QLineEdit QToolButton { background: transparent; border: none; padding: 0; min-height: 0; }
QPushButton#flat, QToolButton#flat { background: transparent; border: 1px solid transparent; padding: 0 6px; min-height: 22px; }
QPushButton#flat:hover, QToolButton#flat:hover { background: @grid; }
QPushButton#flat:focus, QToolButton#flat:focus { border: 1px solid @accent; }
QToolButton#flat:disabled { background: transparent; }
QPushButton#link { background: transparent; border: 1px solid transparent; color: @accent; padding: 0 3px; min-height: 18px; }
QPushButton#link:focus { border: 1px solid @accent; border-radius: 4px; }
QPushButton#link:hover { text-decoration: underline; }
QPushButton#search { background: @field; color: @secondary; border-radius: 14px; text-align: left; padding: 0 14px; min-height: 26px; }
QPushButton#search:hover { border-color: @secondary; }

QCheckBox { spacing: 7px; color: @text; }
QCheckBox::indicator { width: 14px; height: 14px; border: 1px solid @secondary; border-radius: 4px; background: @field; }
QCheckBox::indicator:checked { background: @accent; border-color: @accent; image: url(:/look/check-@mode.svg); }
QCheckBox:focus { color: @accent; }

QTableView { background: @card; color: @text; border: none; gridline-color: @grid; selection-background-color: @wash; selection-color: @text;
    alternate-background-color: @card; font-size: 12px; }
QTableView::item { padding: 0 6px; border-bottom: 1px solid @grid; }
QTableView::item:selected { background: @wash; color: @text; }
QHeaderView { background: @card; }
QHeaderView::section { background: @card; color: @secondary; border: none; border-bottom: 1px solid @line; padding: 3px 6px; font-size: 11px; }
QTableCornerButton::section { background: @card; border: none; }
QPlainTextEdit, QListView { background: @card; color: @text; border: none; font-size: 12px; selection-background-color: @wash; selection-color: @text; }

QScrollArea, QScrollArea > QWidget > QWidget#scrolled { background: transparent; border: none; }
QScrollBar:vertical { background: transparent; width: 9px; margin: 0; }
QScrollBar:horizontal { background: transparent; height: 9px; margin: 0; }
QScrollBar::handle { background: @line; border-radius: 4px; min-height: 28px; min-width: 28px; }
QScrollBar::handle:hover { background: @secondary; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }
QProgressBar { background: @grid; border: none; border-radius: 3px; max-height: 6px; min-height: 6px; }
QProgressBar::chunk { background: @accent; border-radius: 3px; }
QSplitter::handle { background: transparent; }
QLabel { color: @text; background: transparent; }
QLabel[role="secondary"] { color: @secondary; }
QLabel[role="title"] { font-weight: 600; }
QLabel[role="value"] { font-weight: 600; }
QLabel[role="small"] { color: @secondary; font-size: 11px; }
)");
    const auto put = [&sheet](const char* key, const QColor& color) {
        sheet.replace(QLatin1String(key), color.name());
    };
    put("@window", c.window);
    put("@card", c.card);
    put("@field", c.field);
    put("@line", c.line);
    put("@grid", c.grid);
    put("@text", c.text);
    put("@secondary", c.secondary);
    put("@accentHover", c.dark ? c.accent.lighter(110) : c.accent.darker(112));
    put("@onAccent", c.onAccent);
    put("@accent", c.accent);
    put("@wash", c.accentWash);
    put("@limit", c.limit);
    sheet.replace(QLatin1String("@mode"), c.dark ? QStringLiteral("dark") : QStringLiteral("light"));
    return sheet;
}

} // namespace shardscope::app
