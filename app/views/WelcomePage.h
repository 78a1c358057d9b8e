// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

class QVBoxLayout;

namespace shardscope::app {

/// What stands in the window when nothing is open.
class WelcomePage : public QWidget {
    Q_OBJECT
public:
    explicit WelcomePage(QWidget* parent = nullptr);
    void setRecentFiles(const QStringList& files);

Q_SIGNALS:
    void exampleChosen(const QString& graph, const QString& cluster, bool train);
    void openRequested();
    void recentChosen(const QString& path);

private:
    QVBoxLayout* m_recent;
};

} // namespace shardscope::app
