// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/export/Exporter.h"
#include "app/look/Theme.h"
#include "app/look/Units.h"
#include "app/window/MainWindow.h"
#include "app/window/Startup.h"

#include <CLI/CLI.hpp>
#include <QApplication>
#include <QIcon>
#include <QStandardPaths>

#include <cstdio>

namespace {

struct Arguments {
    std::string source, cluster, memory, exportDirectory, runDirectory;
};

int exportOnly(const Arguments& arguments) {
    const auto written = shardscope::app::exportPictures({QString::fromStdString(arguments.exportDirectory),
                                                          QString::fromStdString(arguments.source),
                                                          QString::fromStdString(arguments.runDirectory)});
    if (!written) {
        std::fprintf(stderr, "shardscope: %s\n", written.error().message.c_str());
        return shardscope::contract::exitCode(written.error().kind);
    }
    for (const QString& path : *written)
        std::printf("%s\n", qPrintable(path));
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    Arguments arguments;
    CLI::App command{"Plans, shows and runs sharded training of neural networks."};
    command.set_version_flag("--version", std::string("shardscope ") + SHARDSCOPE_VERSION);
    command.add_option("source", arguments.source,
                       "A session, a plan, or a graph: a folder, a config.json or a bundled name");
    command.add_option("--cluster", arguments.cluster, "A cluster file, a bundled name, or local");
    command.add_option("--memory", arguments.memory, "The memory budget of a device: 16GiB, 500MiB, 24GB");
    auto* exporting = command.add_option("--export", arguments.exportDirectory,
                                         "Write pictures of SOURCE into this folder, without a display");
    command.add_option("--run", arguments.runDirectory, "With --export: a run folder of which to write pictures too")
        ->needs(exporting);
    try {
        command.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        const int code = command.exit(error);
        return code == 0 ? 0 : 2;
    }
    const bool isExport = !arguments.exportDirectory.empty();
    if (isExport && arguments.source.empty()) {
        std::fprintf(stderr, "shardscope: --export needs a session or a plan\n");
        return 2;
    }
    if (isExport)
        qputenv("QT_QPA_PLATFORM", "offscreen");
    QApplication application(argc, argv);
    QApplication::setApplicationName(QStringLiteral("shardscope"));
    QApplication::setOrganizationName(QStringLiteral("shardscope"));
    QApplication::setApplicationVersion(QStringLiteral(SHARDSCOPE_VERSION));
    QApplication::setWindowIcon(QIcon(QStringLiteral(":/look/shardscope.svg")));
    if (isExport)
        return exportOnly(arguments);

    shardscope::app::Theme theme(application);
    shardscope::app::MainWindow window(theme);
    window.setAutosavePath(QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation) +
                           QStringLiteral("/last.shardscope"));
    window.restoreSettings();
    window.show();
    const auto opened = shardscope::app::openAtStart(window, QString::fromStdString(arguments.source),
                                                     QString::fromStdString(arguments.cluster),
                                                     QString::fromStdString(arguments.memory));
    if (!opened) {
        std::fprintf(stderr, "shardscope: %s\n", opened.error().message.c_str());
        return shardscope::contract::exitCode(opened.error().kind);
    }
    return QApplication::exec();
}
