// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include <functional>
#include <vector>

class QHBoxLayout;
class QLabel;

namespace shardscope::app {

/// One line in the window that says what went wrong or asks something; never a dialog.
class MessageStrip : public QWidget {
    Q_OBJECT
public:
    explicit MessageStrip(QWidget* parent = nullptr);
    struct Choice {
        QString text;
        std::function<void()> act;
        bool isPrimary = false;
    };
    /// Replaces what is shown. A button that closes the strip comes last.
    void showMessage(const QString& text, const std::vector<Choice>& choices = {});
    QString text() const;

protected:
    void paintEvent(QPaintEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    QLabel* m_text;
    QHBoxLayout* m_buttons;
};

} // namespace shardscope::app
