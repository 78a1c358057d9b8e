// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/tables/PlansTable.h"
#include "app/views/FrontierView.h"
#include "app/views/MessageStrip.h"
#include "app/views/PlanPage.h"
#include "app/views/PlanTabs.h"
#include "app/views/TimelineView.h"
#include "app/views/VerdictView.h"
#include "app/views/WaterfallView.h"
#include "app/window/MainWindow.h"

#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QLabel>
#include <QSettings>
#include <QStandardPaths>

namespace shardscope::app {

namespace {

const QString kFolderKey = QStringLiteral("exportFolder");

/// Where exports went last, if that is still there.
QString lastFolder() {
    const QString folder = QSettings().value(kFolderKey).toString();
    if (!folder.isEmpty() && QFileInfo(folder).isDir())
        return folder;
    return QStandardPaths::writableLocation(QStandardPaths::DocumentsLocation);
}

} // namespace

ExportContent MainWindow::exportContent() {
    ExportContent content;
    const auto answer = m_document.answer();
    if (m_document.isOpen() && answer && answer->choices == m_document.choicesPointer())
        content.answer = answer;
    content.frontier = m_planPage->frontier().picture();
    PlanTabs& tabs = m_planPage->tabs();
    content.step = tabs.timeline().picture();
    content.difference = tabs.waterfall().comparison();
    // A comparison of an older plan must not stand beside this one.
    if (content.difference && (!content.answer || content.difference->a != content.answer->plan))
        content.difference = nullptr;
    content.plans = tabs.plansTable().rows();
    content.proof = m_proof->text();
    if (m_trainer.state() != Trainer::State::Idle) {
        content.run = std::make_shared<RunRecord>(m_trainer.record());
        content.runDirectory = m_trainer.runDirectory();
    }
    return content;
}

namespace {

/// The words of a verdict for a report.
ExportJob jobOf(ExportContent content, const Verdict& verdict, std::vector<ExportFile> files) {
    ExportJob job;
    job.content = std::move(content);
    job.headline = verdict.headline + QStringLiteral(": ") + verdict.detail;
    QStringList numbers{verdict.rate};
    for (const VerdictNumber& number : verdict.numbers)
        numbers << number.text;
    job.numbers = numbers.join(QStringLiteral(" · "));
    job.files = std::move(files);
    return job;
}

} // namespace

void MainWindow::exportFile(const std::optional<ViewKind>& view, const QString& path, FigureWidth width) {
    ExportJob job = jobOf(exportContent(), m_verdict->verdict(), {{view, path}});
    job.width = width;
    m_exporting.start(std::move(job));
}

void MainWindow::exportEverything(ExportContent content, const QString& folder) {
    if (!QDir().mkpath(folder)) {
        m_messages->showMessage(tr("Cannot create the folder %1").arg(folder));
        return;
    }
    std::vector<ExportFile> files;
    for (int i = 0; i < kViewKindCount; ++i)
        for (const char* suffix : {"png", "svg", "csv"})
            files.push_back({static_cast<ViewKind>(i),
                             QStringLiteral("%1/%2.%3").arg(folder, viewStem(static_cast<ViewKind>(i)), suffix)});
    files.push_back({std::nullopt, folder + QStringLiteral("/report.pdf")});
    ExportJob job = jobOf(std::move(content), m_verdict->verdict(), std::move(files));
    job.skipMissing = true;
    m_exporting.start(std::move(job));
}

void MainWindow::exportByDialog(const std::optional<ViewKind>& view) {
    const ExportContent content = exportContent();
    const QString missing = view                ? content.missing(*view)
                            : content.hasPlan() ? QString()
                                                : tr("There is no plan to report: nothing fits this budget");
    if (!missing.isEmpty()) {
        m_messages->showMessage(missing);
        return;
    }
    QStringList filters{tr("PDF (*.pdf)")};
    // What is chosen as the format tells the width too.
    std::vector<std::pair<QString, FigureWidth>> prints;
    if (view) {
        if (fitsPrint(*view))
            for (const FigureWidth width : {FigureWidth::Column, FigureWidth::Page})
                for (const char* suffix : {"pdf", "svg"})
                    prints.emplace_back(tr("Figure for print, %1 mm wide, %2 (*.%3)")
                                            .arg(millimetres(width))
                                            .arg(QString::fromLatin1(suffix).toUpper(), QLatin1String(suffix)),
                                        width);
        filters = QStringList{tr("PNG picture (*.png)"), tr("SVG drawing (*.svg)")} + filters;
        for (const auto& [filter, width] : prints)
            filters << filter;
        filters << tr("Table of the numbers (*.csv)");
    }
    auto* dialog = new QFileDialog(this, view ? tr("Export: %1").arg(viewTitle(*view)) : tr("Export a report"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::AnyFile);
    dialog->setAcceptMode(QFileDialog::AcceptSave);
    dialog->setNameFilters(filters);
    dialog->setDirectory(lastFolder());
    const auto suffixOf = [](const QString& filter) { return filter.section(QStringLiteral("*."), 1).chopped(1); };
    const QString name = content.stem() + '-' + (view ? viewStem(*view) : QStringLiteral("report"));
    dialog->setDefaultSuffix(suffixOf(filters.first()));
    dialog->selectFile(name + '.' + suffixOf(filters.first()));
    connect(dialog, &QFileDialog::filterSelected, dialog, [dialog, suffixOf](const QString& filter) {
        // The name follows the format chosen.
        dialog->setDefaultSuffix(suffixOf(filter));
        const QFileInfo chosen(dialog->selectedFiles().value(0));
        dialog->selectFile(chosen.completeBaseName() + '.' + suffixOf(filter));
    });
    connect(dialog, &QFileDialog::fileSelected, this, [this, view, dialog, prints](const QString& path) {
        QSettings().setValue(kFolderKey, QFileInfo(path).path());
        FigureWidth width = FigureWidth::Screen;
        for (const auto& [filter, printed] : prints)
            if (filter == dialog->selectedNameFilter())
                width = printed;
        exportFile(view, path, width);
    });
    dialog->open();
}

void MainWindow::exportEverythingByDialog() {
    auto* dialog = new QFileDialog(this, tr("Export everything into a folder"), lastFolder());
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::Directory);
    dialog->setOption(QFileDialog::ShowDirsOnly);
    connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& path) {
        QSettings().setValue(kFolderKey, path);
        exportEverything(exportContent(), path);
    });
    dialog->open();
}

} // namespace shardscope::app
