// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/document/ReasonText.h"

#include "app/look/Units.h"

#include <QCoreApplication>
#include <QStringList>

namespace shardscope::app {

namespace {

QString translate(const char* text) {
    return QCoreApplication::translate("ReasonText", text);
}

QString capitalised(QString text) {
    if (!text.isEmpty())
        text[0] = text[0].toUpper();
    return text;
}

/// What the chosen placement does against one alternative.
QString tradeText(const planner::Reason& reason) {
    const QString other = placementWord(reason.alternative);
    const std::int64_t bytes = reason.stateDeltaBytes;
    const double seconds = reason.stepDeltaSeconds;
    QString memory, time;
    if (bytes > 0)
        memory = translate("saves %1").arg(bytesText(bytes));
    else if (bytes < 0)
        memory = translate("takes %1 more").arg(bytesText(-bytes));
    else
        memory = translate("takes the same memory");
    if (seconds < 0)
        time = translate("costs %1 a step").arg(secondsText(-seconds));
    else if (seconds > 0)
        time = translate("saves %1 a step").arg(secondsText(seconds));
    else
        time = translate("is as fast");
    return translate("%1 and %2 against %3").arg(memory, time, other);
}

} // namespace

QString reasonText(const planner::PlannedOperator& planned, const std::vector<planner::Reason>& reasons,
                   std::int64_t accumulate) {
    QStringList sentences;
    if (planned.pinned)
        sentences << translate("Pinned by you.");
    bool isFirst = true;
    bool flips = false;
    for (const planner::Reason& reason : reasons) {
        const QString placed = reason.wholeBlock ? translate("Its block %1") : QStringLiteral("%1");
        sentences << (isFirst ? translate("%1: %2.").arg(capitalised(placed.arg(placementWord(planned.placement))),
                                                         tradeText(reason))
                              : capitalised(tradeText(reason)) + '.');
        isFirst = false;
    }
    for (const planner::Reason& reason : reasons) {
        if (!reason.flipBytes || !reason.flipPlacement)
            continue;
        sentences << translate("%1 from %2 up.")
                         .arg(capitalised(placementWord(*reason.flipPlacement)), gibText(*reason.flipBytes, 2));
        flips = true;
        break;
    }
    // Nothing said would read as if a larger budget had not been tried.
    if (!reasons.empty() && !flips && !planned.pinned)
        sentences << translate(
            "Stays so at every larger budget tried; equal operators of other blocks may change first.");
    if (planned.placement.held)
        sentences
            << (accumulate > 1
                    ? translate("Its gradient stays whole over the %1 micro-steps and is reduced once.").arg(accumulate)
                    : translate("Its gradient stays whole and is reduced once."));
    if (planned.coalesced)
        sentences << translate("Gathered and reduced in one collective with its block.");
    return sentences.join(' ');
}

} // namespace shardscope::app
