// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/export/Exporting.h"

#include "app/export/CsvTables.h"

#include <QFileInfo>
#include <QMetaObject>
#include <QSaveFile>
#include <QTimer>

#include <algorithm>
#include <map>

namespace shardscope::app {

struct Exporting::Work {
    ExportJob job;
    std::map<ViewKind, Figure> figures;
    std::vector<ViewKind> toDraw;
    ReportContent report;
    QStringList written;
    QString error;

    bool hasReport() const {
        return std::any_of(job.files.begin(), job.files.end(), [](const ExportFile& file) { return !file.view; });
    }
    bool needsStep() const {
        return std::any_of(job.files.begin(), job.files.end(), [](const ExportFile& file) {
            return !file.view || file.view == ViewKind::Timeline || file.view == ViewKind::MemoryOverTime;
        });
    }
};

namespace {

QString suffixOf(const QString& path) {
    return QFileInfo(path).suffix().toLower();
}

std::optional<PictureFormat> formatOf(const QString& suffix) {
    if (suffix == QLatin1String("png"))
        return PictureFormat::Png;
    if (suffix == QLatin1String("svg"))
        return PictureFormat::Svg;
    if (suffix == QLatin1String("pdf"))
        return PictureFormat::Pdf;
    return std::nullopt;
}

constexpr ViewKind kReportViews[] = {ViewKind::Map, ViewKind::Frontier, ViewKind::Ledger, ViewKind::MemoryOverTime,
                                     ViewKind::Timeline};

} // namespace

QString writeExportFile(const QString& path, const QByteArray& bytes) {
    QSaveFile file(path);
    if (file.open(QIODevice::WriteOnly) && file.write(bytes) == bytes.size() && file.commit())
        return {};
    return QStringLiteral("%1: %2").arg(path, file.errorString());
}

Exporting::Exporting(QObject* parent) : QObject(parent) {}
Exporting::~Exporting() = default;

void Exporting::start(ExportJob job) {
    auto work = std::make_shared<Work>();
    work->job = std::move(job);
    m_waiting.push_back(std::move(work));
    if (!m_isBusy)
        next();
}

void Exporting::cancel() {
    m_waiting.clear();
    m_current = nullptr;
    m_isBusy = false;
    m_worker.cancel();
    Q_EMIT progressed();
}

QString Exporting::progressText() const {
    if (!m_current)
        return {};
    const auto all = m_current->job.files.size();
    return all > 1 ? tr("exporting %1 of %2").arg(std::min<std::size_t>(m_done + 1, all)).arg(all) : tr("exporting");
}

void Exporting::next() {
    m_current = nullptr;
    m_isBusy = !m_waiting.empty();
    m_done = 0;
    if (!m_isBusy) {
        Q_EMIT progressed();
        return;
    }
    m_current = m_waiting.front();
    m_waiting.pop_front();
    Q_EMIT progressed();
    prepare(m_current);
}

void Exporting::prepare(const std::shared_ptr<Work>& work) {
    ExportJob& job = work->job;
    for (const ExportFile& file : job.files) {
        const QString suffix = suffixOf(file.path);
        const bool isKnown =
            file.view ? formatOf(suffix) || suffix == QLatin1String("csv") : suffix == QLatin1String("pdf");
        if (!isKnown) {
            end(work, file.view ? tr("%1: write a .png, .svg, .pdf or .csv file").arg(file.path)
                                : tr("%1: a report is a .pdf file").arg(file.path));
            return;
        }
        const QString missing = file.view               ? job.content.missing(*file.view)
                                : job.content.hasPlan() ? QString()
                                                        : tr("There is no plan to report: nothing fits this budget");
        if (!missing.isEmpty() && !job.skipMissing) {
            end(work, missing);
            return;
        }
        if (file.view && missing.isEmpty() && suffix != QLatin1String("csv"))
            work->toDraw.push_back(*file.view);
    }
    if (job.skipMissing)
        std::erase_if(job.files, [&job](const ExportFile& file) {
            return file.view ? !job.content.missing(*file.view).isEmpty() : !job.content.hasPlan();
        });
    std::sort(work->toDraw.begin(), work->toDraw.end());
    work->toDraw.erase(std::unique(work->toDraw.begin(), work->toDraw.end()), work->toDraw.end());
    m_worker.submit([this, work](const std::stop_token& stop) {
        ExportContent& content = work->job.content;
        if (work->needsStep() && content.hasPlan() && (!content.step || content.step->plan != content.answer->plan))
            content.step = stepPictureOf(content.answer->plan, stop);
        if (work->hasReport() && content.hasPlan())
            work->report.reasons = explainCostliest(*content.answer, stop);
        if (stop.stop_requested())
            return;
        QMetaObject::invokeMethod(
            this, [this, work] { draw(work, 0); }, Qt::QueuedConnection);
    });
}

void Exporting::draw(const std::shared_ptr<Work>& work, std::size_t index) {
    if (!isCurrent(work))
        return;
    const std::size_t views = work->toDraw.size();
    const std::size_t reports = work->hasReport() ? std::size(kReportViews) : 0;
    if (index >= views + reports) {
        writeAll(work);
        return;
    }
    // One view in a turn, so that the window stays quick however much is exported.
    if (index < views) {
        work->figures[work->toDraw[index]] = drawFigure(work->toDraw[index], work->job.content, true, work->job.width);
    } else {
        ReportContent& report = work->report;
        Figure* const places[] = {&report.map, &report.frontier, &report.ledger, &report.memory, &report.timeline};
        *places[index - views] = drawFigure(kReportViews[index - views], work->job.content, false);
    }
    QTimer::singleShot(0, this, [this, work, index] { draw(work, index + 1); });
}

void Exporting::writeAll(const std::shared_ptr<Work>& work) {
    work->report.content = work->job.content;
    work->report.headline = work->job.headline;
    work->report.numbers = work->job.numbers;
    m_worker.submit([this, work](const std::stop_token& stop) {
        for (const ExportFile& file : work->job.files) {
            if (stop.stop_requested())
                return;
            QByteArray bytes;
            const QString suffix = suffixOf(file.path);
            if (!file.view)
                bytes = writeReport(work->report);
            else if (const auto format = formatOf(suffix))
                bytes = encodeFigure(work->figures.at(*file.view), *format, viewTitle(*file.view));
            else
                bytes = csvOf(*file.view, work->job.content);
            // A step that cannot be simulated has no timeline.
            if (bytes.isEmpty() && work->job.skipMissing)
                continue;
            const QString error = bytes.isEmpty() ? tr("%1: there is nothing to write").arg(file.path)
                                                  : writeExportFile(file.path, bytes);
            if (!error.isEmpty()) {
                work->error = tr("Cannot write %1").arg(error);
                break;
            }
            work->written << file.path;
            QMetaObject::invokeMethod(
                this,
                [this, work, done = static_cast<int>(work->written.size())] {
                    if (!isCurrent(work))
                        return;
                    m_done = done;
                    Q_EMIT progressed();
                },
                Qt::QueuedConnection);
        }
        QMetaObject::invokeMethod(
            this, [this, work] { end(work, work->error); }, Qt::QueuedConnection);
    });
}

void Exporting::end(const std::shared_ptr<Work>& work, const QString& error) {
    if (!isCurrent(work))
        return;
    if (error.isEmpty())
        Q_EMIT finished(work->written);
    else
        Q_EMIT failed(error);
    next();
}

} // namespace shardscope::app
