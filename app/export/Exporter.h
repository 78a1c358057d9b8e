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

/// Writes every view as a picture (map.png), a drawing (map.svg) and a table (map.csv), report.pdf and window.png; of a
/// run also loss, memory, workers, log and run.png. Always light. Needs a QApplication (the offscreen platform is
/// enough). Errors: those of the readers, Infeasible, and RunFailed for what cannot be written.
contract::Result<QStringList> exportPictures(const ExportRequest& request);

} // namespace shardscope::app
