// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/document/SessionFile.h"
#include "app/look/Theme.h"
#include "app/views/MessageStrip.h"
#include "app/views/WelcomePage.h"
#include "app/window/MainWindow.h"
#include "runtime/contract/Json.h"
#include "runtime/contract/Plan.h"

#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QMetaObject>
#include <QSettings>

namespace shardscope::app {

namespace {

constexpr int kMostRecent = 10;
const QString kRecentKey = QStringLiteral("recent");
const QString kSizeKey = QStringLiteral("size");
const QString kMaximizedKey = QStringLiteral("maximized");
const QString kLightnessKey = QStringLiteral("lightness");

/// A file dialog that does not block: it lives in the window until it is answered.
QFileDialog* openDialog(QWidget* parent, const QString& title, QFileDialog::FileMode mode,
                        QFileDialog::AcceptMode accept, const QString& filter) {
    auto* dialog = new QFileDialog(parent, title, {}, filter);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(mode);
    dialog->setAcceptMode(accept);
    dialog->open();
    return dialog;
}

} // namespace

void MainWindow::openPathByDialog(bool folder) {
    auto* dialog = openDialog(this, folder ? tr("Open a graph folder") : tr("Open"),
                              folder ? QFileDialog::Directory : QFileDialog::ExistingFile, QFileDialog::AcceptOpen,
                              folder ? QString()
                                     : tr("Graphs, clusters, plans and sessions (*.json *.shardscope);;All files (*)"));
    connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& path) {
        m_openingPath = path;
        m_document.openPath(path);
    });
}

void MainWindow::saveSessionByDialog(bool askAlways) {
    if (!m_document.isOpen())
        return;
    if (!askAlways && !m_document.sessionPath().isEmpty()) {
        m_document.saveSession(m_document.sessionPath());
        return;
    }
    auto* dialog = openDialog(this, tr("Save session"), QFileDialog::AnyFile, QFileDialog::AcceptSave,
                              tr("Sessions (*.shardscope)"));
    dialog->setDefaultSuffix(QStringLiteral("shardscope"));
    connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& path) {
        if (m_document.saveSession(path))
            addRecent(path);
    });
}

void MainWindow::savePlanByDialog() {
    const auto answer = m_document.answer();
    if (!answer || !answer->plan || !answer->plan->feasible) {
        m_messages->showMessage(tr("There is no plan to save: nothing fits this budget."));
        return;
    }
    auto* dialog =
        openDialog(this, tr("Save plan"), QFileDialog::AnyFile, QFileDialog::AcceptSave, tr("Plans (*.json)"));
    dialog->setDefaultSuffix(QStringLiteral("json"));
    dialog->selectFile(QString::fromStdString(answer->plan->request.graph->name) + QStringLiteral(".plan.json"));
    connect(dialog, &QFileDialog::fileSelected, this, [this, answer](const QString& path) {
        // The buffers of a large plan take a while to list and to write.
        m_writer.submit([this, answer, path](const std::stop_token&) {
            const contract::Plan plan = planner::emitPlan(*answer->plan, "shardscope " SHARDSCOPE_VERSION);
            const auto written = contract::writeFileAtomically(path.toStdString(), contract::formatPlan(plan));
            const QString error = written ? QString() : QString::fromStdString(written.error().message);
            QMetaObject::invokeMethod(
                this,
                [this, path, error] {
                    if (error.isEmpty())
                        addRecent(path);
                    else
                        m_messages->showMessage(error);
                },
                Qt::QueuedConnection);
        });
    });
}

void MainWindow::attachByDialog() {
    auto* dialog = openDialog(this, tr("Attach to a run folder"), QFileDialog::Directory, QFileDialog::AcceptOpen, {});
    connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& path) {
        m_trainer.attach(path);
        showMode(1);
    });
}

QStringList MainWindow::recentFiles() const {
    return QSettings().value(kRecentKey).toStringList();
}

void MainWindow::addRecent(const QString& path) {
    QStringList files = recentFiles();
    files.removeAll(path);
    files.prepend(path);
    QSettings().setValue(kRecentKey, QStringList(files.mid(0, kMostRecent)));
    m_welcome->setRecentFiles(recentFiles());
    Q_EMIT recentFilesChanged();
}

void MainWindow::restoreSettings() {
    m_keepsSettings = true;
    const QSettings settings;
    const QSize size = settings.value(kSizeKey).toSize();
    if (size.isValid())
        resize(size.expandedTo(minimumSize()));
    if (settings.value(kMaximizedKey).toBool())
        setWindowState(windowState() | Qt::WindowMaximized);
    const int lightness = settings.value(kLightnessKey, 0).toInt();
    if (lightness >= static_cast<int>(Lightness::System) && lightness <= static_cast<int>(Lightness::Dark))
        m_theme.choose(static_cast<Lightness>(lightness));
}

void MainWindow::saveSettings() const {
    if (!m_keepsSettings)
        return;
    QSettings settings;
    if (!isMaximized() && !isFullScreen())
        settings.setValue(kSizeKey, size());
    settings.setValue(kMaximizedKey, isMaximized());
    settings.setValue(kLightnessKey, static_cast<int>(m_theme.chosen()));
}

void MainWindow::autosave() {
    if (m_autosavePath.isEmpty() || !m_document.isOpen())
        return;
    // A failure to autosave must not disturb; saving by hand reports its own.
    m_saver.submit(
        [path = m_autosavePath, history = m_document.history(), kept = m_document.keptPlans()](const std::stop_token&) {
            QDir().mkpath(QFileInfo(path).path());
            (void)contract::writeFileAtomically(path.toStdString(), formatSession(history, kept));
        });
}

void MainWindow::saveNow() {
    if (m_autosavePath.isEmpty() || !m_document.isOpen())
        return;
    m_saver.cancel();
    QDir().mkpath(QFileInfo(m_autosavePath).path());
    (void)contract::writeFileAtomically(m_autosavePath.toStdString(),
                                        formatSession(m_document.history(), m_document.keptPlans()));
}

void MainWindow::setAutosavePath(const QString& path) {
    m_autosavePath = path;
    if (QFileInfo::exists(path))
        m_welcome->setRecentFiles(QStringList{path} + recentFiles());
}

} // namespace shardscope::app
