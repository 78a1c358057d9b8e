// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/run/RunRecord.h"
#include "app/tables/PlansTable.h"
#include "app/views/FrontierView.h"
#include "app/work/Simulating.h"

#include <QString>

#include <memory>
#include <vector>

namespace shardscope::app {

/// Everything of the window that can be written to a file by itself.
enum class ViewKind {
    Map,
    Frontier,
    Ledger,
    Timeline,
    MemoryOverTime,
    Communication,
    Plans,
    Difference,
    Loss,
    RunMemory,
    Workers,
    Log,
};
inline constexpr int kViewKindCount = 12;
/// "Operator map": for menus and captions.
QString viewTitle(ViewKind kind);
/// "map": what the file is called, after the graph's name.
QString viewStem(ViewKind kind);
/// Whether it shows a run instead of a plan.
bool isOfRun(ViewKind kind);

/// What the window shows at one moment. Immutable once gathered, so that a thread may write it.
struct ExportContent {
    AnswerPointer answer;
    FrontierPicture frontier;
    StepPicturePointer step; ///< null or of an older plan: simulated again
    StepComparisonPointer difference;
    std::vector<PlansTable::Row> plans;
    std::shared_ptr<const RunRecord> run; ///< null without a run
    QString runDirectory;
    QString proof; ///< the status line's sentence

    bool hasPlan() const { return answer && answer->plan && answer->plan->feasible; }
    /// Why a view cannot be written now; empty when it can.
    QString missing(ViewKind kind) const;
    /// What a reader of the figure must know: graph, cluster, precision, batch, budget, whether modelled or measured.
    QString caption(ViewKind kind) const;
    /// "gpt2-xl", for file names.
    QString stem() const;
};

} // namespace shardscope::app
