// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/work/Answer.h"

#include <QString>
#include <QStringList>

namespace shardscope::app {

enum class VerdictKind { Waiting, Fits, Tight, Beyond, DoesNotFit, Contradiction };

/// One of the verdict's numbers; where there is little room the least important ones give way.
struct VerdictNumber {
    QString text;
    int importance = 0;
};

/// What the window says about an answer, in words.
struct Verdict {
    VerdictKind kind = VerdictKind::Waiting;
    QString headline;                   ///< "Fits"
    QString detail;                     ///< "peak 22.6 of 23.6 GiB, 1.0 spare"
    QString rate;                       ///< "203,100 tokens/s"
    QString proof;                      ///< "proven", "at most 0.4 % from the best, still proving"
    std::vector<VerdictNumber> numbers; ///< "25,400 per GPU", "MFU 37 %", ...
    std::int64_t remedyBytes = 0;       ///< the smallest budget that works, when this one does not
};

/// `comparison` may be null or of an older answer; then nothing is said about FSDP.
Verdict verdictOf(const Answer& answer, const Comparison* comparison);

/// "Best plan, proven for this cost model" or the certified gap.
QString proofText(const Answer& answer);

/// What the memory of a device belongs to, in a sentence: "card", or "device" where workers share a machine's memory.
QString memoryOwnerWord(const contract::Cluster& cluster);

/// "GPU", "CPU worker": what a device of the cluster is called.
QString deviceWord(const contract::Cluster& cluster, std::int64_t count);

/// "tokens/s", or "images/s" for graphs without text.
QString rateUnit(const planner::Graph& graph);
double unitsPerSample(const planner::Graph& graph);

} // namespace shardscope::app
