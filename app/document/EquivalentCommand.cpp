// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/document/EquivalentCommand.h"

#include "runtime/contract/Bytes.h"

#include <QRegularExpression>
#include <QStringList>

namespace shardscope::app {

namespace {

QString quoted(const QString& text) {
    static const QRegularExpression plain(QStringLiteral("^[A-Za-z0-9_./:=,@+-]+$"));
    if (plain.match(text).hasMatch())
        return text;
    QString inner = text;
    inner.replace('\'', QStringLiteral("'\\''"));
    return '\'' + inner + '\'';
}

/// "16GiB" where that is exact, else "12345MiB" or bytes.
QString sizeText(std::int64_t bytes) {
    if (bytes % contract::kGiB == 0)
        return QStringLiteral("%1GiB").arg(bytes / contract::kGiB);
    if (bytes % contract::kMiB == 0)
        return QStringLiteral("%1MiB").arg(bytes / contract::kMiB);
    return QString::number(bytes);
}

} // namespace

QString equivalentCommand(const Choices& choices) {
    QStringList words{QStringLiteral("shardscope-plan"), QStringLiteral("solve"),
                      quoted(QString::fromStdString(choices.graphArgument))};
    const auto add = [&words](const char* option, const QString& value) {
        words << QString::fromLatin1(option) << quoted(value);
    };
    add("--cluster", QString::fromStdString(choices.clusterArgument));
    if (!choices.devices.empty())
        add("--devices", QString::fromStdString(choices.devices));
    add("--memory", sizeText(choices.budget()));
    if (choices.sequence > 0)
        add("--sequence", QString::number(choices.sequence));
    if (!choices.precision.empty())
        add("--precision", QString::fromStdString(choices.precision));
    if (choices.microBatch > 0)
        add("--batch", QString::number(choices.microBatch));
    if (choices.globalBatch > 0)
        add("--global-batch", QString::number(choices.globalBatch));
    // Without a global batch the command line's own default is one micro-step, with one it is open.
    if (choices.accumulate != (choices.globalBatch > 0 ? 0 : 1))
        add("--accumulate", choices.accumulate == 0 ? QStringLiteral("auto") : QString::number(choices.accumulate));
    if (choices.recompute != contract::RecomputePolicy::Auto)
        add("--recompute", QString::fromUtf8(contract::recomputePolicyName(choices.recompute).data()));
    if (choices.attention)
        add("--attention", QString::fromUtf8(contract::attentionKernelName(*choices.attention).data()));
    if (choices.slicesUpTo != 16) {
        QStringList counts;
        for (std::int32_t slices = 1; slices <= choices.slicesUpTo; slices *= 2)
            counts << QString::number(slices);
        add("--slices", counts.join(','));
    }
    if (choices.lossChunks != 1)
        add("--loss-chunks", QString::number(choices.lossChunks));
    if (choices.granularity == planner::Granularity::Block)
        add("--granularity", QStringLiteral("block"));
    for (const planner::Pin& pin : choices.pins)
        add("--pin", QString::fromStdString(pin.pattern + '=' + contract::formatPlacement(pin.placement)));
    for (const planner::RecomputePin& pin : choices.recomputePins)
        add("--pin-recompute", QString::fromStdString(pin.pattern) + (pin.recompute ? "=on" : "=off"));
    QStringList unsaid;
    if (!choices.allowReplicate)
        unsaid << QStringLiteral("replicate forbidden");
    if (!choices.allowKeep)
        unsaid << QStringLiteral("keep forbidden");
    if (!choices.allowShard)
        unsaid << QStringLiteral("shard forbidden");
    if (choices.prefetchDepth != 1)
        unsaid << QStringLiteral("prefetch depth %1").arg(choices.prefetchDepth);
    if (choices.extraReserveBytes > 0)
        unsaid << QStringLiteral("%1 more in reserve").arg(sizeText(choices.extraReserveBytes));
    if (choices.deviceBytes > 0)
        unsaid << QStringLiteral("devices of %1").arg(sizeText(choices.deviceBytes));
    const QString command = words.join(' ');
    return unsaid.isEmpty() ? command : command + QStringLiteral("  # and: ") + unsaid.join(QStringLiteral(", "));
}

} // namespace shardscope::app
