// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"

#include <QString>

namespace shardscope::app {

/// What `shardscope --export` writes.
struct ExportRequest {
    QString directory;    ///< created when missing
    QString source;       ///< a session or plan
    QString runDirectory; ///< empty: no pictures of a run
};

/// Writes map.png, frontier.png and window.png, and of a run loss.png and memory.png; always light. Needs a
/// QApplication (the offscreen platform is enough). Errors: those of the readers, and Infeasible.
contract::Result<QStringList> exportPictures(const ExportRequest& request);

} // namespace shardscope::app
