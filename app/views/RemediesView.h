// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/work/Answer.h"

#include <QWidget>

#include <functional>

class QLabel;
class QVBoxLayout;

namespace shardscope::app {

/// What stands in the map's place when nothing fits: what binds, and changes that the solver has verified.
class RemediesView : public QWidget {
    Q_OBJECT
public:
    explicit RemediesView(QWidget* parent = nullptr);
    /// `remedies` may be null while they are looked for.
    void setAnswer(const AnswerPointer& answer, const RemediesPointer& remedies);

Q_SIGNALS:
    void smallestRequested(qint64 bytes);
    void remedyChosen(int index);

private:
    void clearRows();
    void addRow(const QString& what, const QStringList& facts, const QString& button, const std::function<void()>& act);
    void addNote(const QString& text);
    QLabel* m_title;
    QLabel* m_text;
    QWidget* m_list;
    QVBoxLayout* m_rows;
};

} // namespace shardscope::app
