// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/export/Report.h"
#include "app/work/LatestWins.h"

#include <QObject>
#include <QStringList>

#include <deque>
#include <optional>
#include <vector>

namespace shardscope::app {

/// One file to write; its suffix says how: png, svg, pdf or csv.
struct ExportFile {
    std::optional<ViewKind> view; ///< nothing: the report, always PDF
    QString path;
};

/// What is asked of one export.
struct ExportJob {
    ExportContent content;
    QString headline; ///< the verdict, for the report
    QString numbers;
    std::vector<ExportFile> files;
    FigureWidth width = FigureWidth::Screen; ///< of pictures
    bool skipMissing = false;                ///< what cannot be written now is left out instead of failing
};

/// Writes views to files. Simulating, explaining, encoding and writing run on a thread; only the drawing commands are
/// recorded on the thread this lives on, one view in a turn of its event loop. Jobs wait for each other.
class Exporting : public QObject {
    Q_OBJECT
public:
    explicit Exporting(QObject* parent = nullptr);
    ~Exporting() override;

    void start(ExportJob job);
    /// Drops what runs and what waits; files already written stay.
    void cancel();
    bool isBusy() const { return m_isBusy; }
    /// "exporting 3 of 24"; empty when idle.
    QString progressText() const;

Q_SIGNALS:
    /// Everything of a job is written.
    void finished(const QStringList& paths);
    /// A job ended with this; the files written before are kept.
    void failed(const QString& message);
    void progressed();

private:
    struct Work;
    void next();
    void prepare(const std::shared_ptr<Work>& work);
    void draw(const std::shared_ptr<Work>& work, std::size_t index);
    void writeAll(const std::shared_ptr<Work>& work);
    void end(const std::shared_ptr<Work>& work, const QString& error);
    bool isCurrent(const std::shared_ptr<Work>& work) const { return m_current == work; }

    std::deque<std::shared_ptr<Work>> m_waiting;
    std::shared_ptr<Work> m_current;
    bool m_isBusy = false;
    int m_done = 0;
    LatestWins m_worker;
};

/// Replaces the file at once or leaves the old one. Empty when written, else the reason: "map.png: No space left on
/// device".
QString writeExportFile(const QString& path, const QByteArray& bytes);

} // namespace shardscope::app
