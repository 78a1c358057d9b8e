// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"

#include <QString>

namespace shardscope::app {

class MainWindow;

/// Opens what the command line named; nothing named leaves the welcome page. Errors: Usage for a size that is none.
/// Files that cannot be opened are shown in the window.
contract::Result<void> openAtStart(MainWindow& window, const QString& source, const QString& cluster,
                                   const QString& memory);

} // namespace shardscope::app
