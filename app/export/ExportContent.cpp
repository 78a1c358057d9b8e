// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/export/ExportContent.h"

#include "app/document/EquivalentCommand.h"
#include "app/look/Units.h"

#include <QCoreApplication>
#include <QRegularExpression>

namespace shardscope::app {

namespace {

QString translate(const char* text) {
    return QCoreApplication::translate("Export", text);
}

struct ViewWords {
    const char* title;
    const char* stem;
    bool ofRun;
};

constexpr ViewWords kWords[kViewKindCount] = {
    {QT_TRANSLATE_NOOP("Export", "Operator map"), "map", false},
    {QT_TRANSLATE_NOOP("Export", "Frontier"), "frontier", false},
    {QT_TRANSLATE_NOOP("Export", "Memory ledger"), "ledger", false},
    {QT_TRANSLATE_NOOP("Export", "Timeline"), "timeline", false},
    {QT_TRANSLATE_NOOP("Export", "Memory over time"), "memory-over-time", false},
    {QT_TRANSLATE_NOOP("Export", "Communication"), "communication", false},
    {QT_TRANSLATE_NOOP("Export", "Plans"), "plans", false},
    {QT_TRANSLATE_NOOP("Export", "Difference"), "difference", false},
    {QT_TRANSLATE_NOOP("Export", "Loss of the run"), "loss", true},
    {QT_TRANSLATE_NOOP("Export", "Memory of the run"), "memory", true},
    {QT_TRANSLATE_NOOP("Export", "Workers of the run"), "workers", true},
    {QT_TRANSLATE_NOOP("Export", "Log of the run"), "log", true},
};

const ViewWords& wordsOf(ViewKind kind) {
    return kWords[static_cast<std::size_t>(kind)];
}

} // namespace

QString viewTitle(ViewKind kind) {
    return translate(wordsOf(kind).title);
}
QString viewStem(ViewKind kind) {
    return QString::fromLatin1(wordsOf(kind).stem);
}
bool isOfRun(ViewKind kind) {
    return wordsOf(kind).ofRun;
}

QString ExportContent::missing(ViewKind kind) const {
    if (isOfRun(kind)) {
        if (!run)
            return translate("There is no run to export");
        if (kind == ViewKind::Loss && run->steps().empty())
            return translate("The run has no step yet");
        if ((kind == ViewKind::RunMemory || kind == ViewKind::Workers) && run->workers().empty())
            return translate("The run's workers have not reported yet");
        return {};
    }
    if (!hasPlan() && kind != ViewKind::Frontier)
        return translate("There is no plan to export: nothing fits this budget");
    if (kind == ViewKind::Frontier && frontier.frontier.points.empty())
        return translate("The frontier is still being computed");
    if (kind == ViewKind::Difference && (!difference || !difference->error.isEmpty()))
        return translate("There is no plan to compare with: open the Difference tab and choose one");
    return {};
}

QString ExportContent::caption(ViewKind kind) const {
    QStringList parts;
    if (isOfRun(kind)) {
        parts << translate("measured");
        if (run && run->hello())
            parts << translate("%1 workers").arg(run->hello()->world);
        if (!runDirectory.isEmpty())
            parts << runDirectory;
    } else if (answer && answer->choices && answer->choices->graph) {
        const Choices& choices = *answer->choices;
        parts << translate("modelled") << QString::fromStdString(choices.graph->title)
              << QString::fromStdString(choices.cluster.title);
        if (answer->plan && answer->plan->request.graph && hasPlan()) {
            const contract::Training& training = answer->plan->training;
            parts << QString::fromStdString(training.precision) << translate("sequence %1").arg(training.sequence)
                  << translate("global batch %1").arg(training.globalBatch)
                  << translate("budget %1 a device").arg(gibText(answer->plan->limitBytes, 2));
        }
    }
    parts << QStringLiteral("shardscope " SHARDSCOPE_VERSION);
    QString text = parts.join(QStringLiteral(" · "));
    if (!isOfRun(kind) && answer && answer->choices && answer->choices->graph)
        text += '\n' + equivalentCommand(*answer->choices);
    return text;
}

QString ExportContent::stem() const {
    QString name = answer && answer->choices && answer->choices->graph
                       ? QString::fromStdString(answer->choices->graph->name)
                       : QStringLiteral("shardscope");
    static const QRegularExpression unsafe(QStringLiteral("[^A-Za-z0-9._-]+"));
    return name.replace(unsafe, QStringLiteral("-"));
}

} // namespace shardscope::app
