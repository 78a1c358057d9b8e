// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/export/Figure.h"

#include <stop_token>

namespace shardscope::app {

/// Why a group of operators is placed as it is.
struct ReportReason {
    QString operators; ///< "mlp.c_fc ×22"
    QString placement;
    std::int64_t memoryBytes = 0; ///< of all of them
    double stepSeconds = 0;       ///< of all of them
    QString reason;
};

/// Everything a report says; the figures were drawn on the thread of the window.
struct ReportContent {
    ExportContent content;
    QString headline; ///< "Fits: peak 15.9 of 16.0 GiB budget"
    QString numbers;
    Figure map, ledger, frontier, timeline, memory;
    std::vector<ReportReason> reasons;
};

/// The costliest groups of the plan with the planner's reasons; seconds of work, on a thread. Fewer when stopped.
std::vector<ReportReason> explainCostliest(const Answer& answer, const std::stop_token& stop);

/// One PDF on A4: verdict, setup, map, memory, frontier, timeline, reasons, plans, and the plan itself run by run.
/// Empty without a plan.
QByteArray writeReport(const ReportContent& report);

} // namespace shardscope::app
