// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/views/Card.h"

#include <functional>
#include <vector>

class QLineEdit;
class QListWidget;

namespace shardscope::app {

/// Finds commands and operators by typing parts of their names (Ctrl+K).
class CommandPalette : public Card {
    Q_OBJECT
public:
    struct Entry {
        QString name;
        QString hint; ///< a shortcut, or "operator"
        std::function<void()> act;
    };
    explicit CommandPalette(QWidget* parent = nullptr);
    void open(std::vector<Entry> entries);
    QLineEdit& field() { return *m_field; }

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void filter(const QString& text);
    void run();
    QLineEdit* m_field;
    QListWidget* m_list;
    std::vector<Entry> m_entries;
};

/// How well `text` matches `query`: parts in any order; negative when it does not.
int matchScore(const QString& query, const QString& text);

} // namespace shardscope::app
