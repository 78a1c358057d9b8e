// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

class QStackedWidget;
class QTextBrowser;

namespace shardscope::app {

class TabStrip;
class ValidationView;

/// How to use the window, its keys, its words, and the published tables that its formulas reproduce.
class HelpPage : public QWidget {
    Q_OBJECT
public:
    enum Topic { Using, Keys, Words, Published, TopicCount };
    explicit HelpPage(QWidget* parent = nullptr);
    void showTopic(int topic);
    int topic() const;
    /// Names and keys of all commands, by menu.
    struct KeyLine {
        QString group, name, keys;
    };
    void setKeys(const std::vector<KeyLine>& lines);
    QString text(int topic) const;
    ValidationView& validation() { return *m_validation; }

Q_SIGNALS:
    void closeRequested();

protected:
    void keyPressEvent(QKeyEvent* event) override;
    void changeEvent(QEvent* event) override;
    void showEvent(QShowEvent* event) override;
    void hideEvent(QHideEvent* event) override;

private:
    void fill();
    TabStrip* m_tabs;
    QStackedWidget* m_pages;
    QTextBrowser* m_texts[Published] = {};
    ValidationView* m_validation;
    QString m_keys; ///< Markdown
};

} // namespace shardscope::app
