// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/Startup.h"

#include "app/document/SessionFile.h"
#include "app/window/MainWindow.h"
#include "runtime/contract/Bytes.h"

#include <QFileInfo>

namespace shardscope::app {

contract::Result<void> openAtStart(MainWindow& window, const QString& source, const QString& cluster,
                                   const QString& memory) {
    std::int64_t budget = 0;
    if (!memory.isEmpty()) {
        const auto bytes = contract::parseBytes(memory.toStdString());
        if (!bytes)
            return tl::unexpected(bytes.error());
        budget = *bytes;
    }
    if (source.isEmpty())
        return {};
    if (QFileInfo::exists(source)) {
        const auto kind = kindOfFile(source.toStdString());
        if (!kind || *kind != FileKind::Graph) {
            window.document().openPath(source);
            return {};
        }
    }
    window.document().open(source, cluster.isEmpty() ? QStringLiteral("8x-titan-pcie3") : cluster, budget);
    return {};
}

} // namespace shardscope::app
