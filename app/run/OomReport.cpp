// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/run/OomReport.h"

#include "app/look/Units.h"
#include "runtime/contract/Bytes.h"
#include "runtime/contract/Plan.h"

#include <QCoreApplication>
#include <QRegularExpression>

#include <algorithm>
#include <cmath>

namespace shardscope::app {

namespace {

QString translate(const char* text) {
    return QCoreApplication::translate("OomReport", text);
}

const QString kSize = QStringLiteral("([0-9]+(?:\\.[0-9]+)?)\\s*(bytes|B|KiB|MiB|GiB|TiB|KB|MB|GB)");

/// Three sizes rounded to hundredths of a GiB differ by so much from what they are of.
constexpr std::int64_t kRounding = 16 * contract::kMiB;

/// PyTorch rounds to two decimals in binary units, whatever it calls them.
std::int64_t bytesOf(const QString& number, const QString& unit) {
    const double value = number.toDouble();
    const QChar first = unit.isEmpty() ? QChar('B') : unit[0].toUpper();
    if (unit == QLatin1String("bytes") || unit == QLatin1String("B"))
        return std::llround(value);
    const double factor = first == 'K'   ? 1024.0
                          : first == 'M' ? 1048576.0
                          : first == 'G' ? 1073741824.0
                                         : 1099511627776.0;
    return std::llround(value * factor);
}

/// The size in the first match of a pattern that contains kSize.
std::optional<std::int64_t> sizeIn(const QString& text, const QString& pattern) {
    const auto match = QRegularExpression(pattern, QRegularExpression::CaseInsensitiveOption).match(text);
    if (!match.hasMatch())
        return std::nullopt;
    return bytesOf(match.captured(1), match.captured(2));
}

/// How far two sizes may differ and still be the same thing, given the message's rounding.
bool isAbout(std::int64_t a, std::int64_t b) {
    return std::abs(static_cast<double>(a - b)) <= 0.02 * static_cast<double>(std::max(a, b));
}

QString categoryWords(contract::Category category) {
    switch (category) {
    case contract::Category::Parameters:
        return translate("the parameters of %1");
    case contract::Category::Gradients:
        return translate("the gradient of %1");
    case contract::Category::Optimizer:
        return translate("the optimizer state of %1");
    case contract::Category::Activations:
        return translate("activations of %1");
    case contract::Category::Logits:
        return translate("logits and loss (%1)");
    case contract::Category::Gathered:
        return translate("the gathered weights of %1");
    case contract::Category::Unreduced:
        return translate("the unreduced gradient of %1");
    default:
        return translate("%1");
    }
}

/// The buffer of the plan, or the whole operator, that is about as large as the request.
QString requestText(std::int64_t requested, const planner::PlanResult& plan) {
    struct Candidate {
        QString text;
        std::int64_t bytes = 0;
    };
    std::vector<Candidate> candidates;
    const auto& operators = plan.request.graph->operators;
    for (const planner::PlannedOperator& planned : plan.operators) {
        const QString name = QString::fromStdString(operators[static_cast<std::size_t>(planned.op)].name);
        for (int i = 0; i < contract::kCategoryCount; ++i) {
            const auto category = static_cast<contract::Category>(i);
            if (const std::int64_t bytes = planned.cost.memory[category]; bytes > 0)
                candidates.push_back({categoryWords(category).arg(name), bytes});
        }
    }
    for (const contract::Buffer& buffer : planner::emitPlan(plan, "shardscope").buffers.buffers)
        candidates.push_back({QString::fromStdString(buffer.name), buffer.bytes});
    const auto best = std::min_element(candidates.begin(), candidates.end(), [requested](const auto& a, const auto& b) {
        return std::abs(a.bytes - requested) < std::abs(b.bytes - requested);
    });
    if (best == candidates.end() || !isAbout(best->bytes, requested))
        return translate(
            "No single buffer of the plan is that large: a temporary of the framework, or another size of batch.");
    const auto equal = std::count_if(candidates.begin(), candidates.end(),
                                     [&](const Candidate& other) { return other.bytes == best->bytes; });
    return equal > 1 ? translate("As large as %1 (%2 planned), or %3 others of that size.")
                           .arg(best->text, bytesText(best->bytes))
                           .arg(equal - 1)
                     : translate("As large as %1 (%2 planned).").arg(best->text, bytesText(best->bytes));
}

} // namespace

std::optional<std::int64_t> OomReport::outside() const {
    if (!inUse || !allocated)
        return std::nullopt;
    return std::max<std::int64_t>(0, *inUse - *allocated - cached.value_or(0));
}

std::optional<std::int64_t> OomReport::others() const {
    if (!capacity || !free || !inUse)
        return std::nullopt;
    const std::int64_t rest = *capacity - *free - *inUse;
    return rest > kRounding ? rest : 0;
}

std::optional<OomReport> parseOom(const QString& text) {
    // A terminal may have broken the message into lines.
    QString flat = text.left(1 << 20).simplified();
    const qsizetype begin = flat.indexOf(QStringLiteral("out of memory"), 0, Qt::CaseInsensitive);
    if (begin < 0)
        return std::nullopt;
    flat = flat.mid(begin, 4000);
    const auto requested = sizeIn(flat, QStringLiteral("tried to allocate ") + kSize);
    if (!requested)
        return std::nullopt;
    OomReport report;
    report.requested = *requested;
    if (const auto match = QRegularExpression(QStringLiteral("GPU ([0-9]+)")).match(flat); match.hasMatch())
        report.device = match.captured(1).toLongLong();
    report.capacity = sizeIn(flat, QStringLiteral("total capacity of ") + kSize);
    if (!report.capacity)
        report.capacity = sizeIn(flat, kSize + QStringLiteral(" total capacity"));
    report.free = sizeIn(flat, QStringLiteral("of which ") + kSize + QStringLiteral(" is free"));
    if (!report.free)
        report.free = sizeIn(flat, kSize + QStringLiteral(" free"));
    report.inUse = sizeIn(flat, QStringLiteral("this process has ") + kSize + QStringLiteral(" memory in use"));
    report.allocated = sizeIn(flat, QStringLiteral("of the allocated memory ") + kSize);
    if (!report.allocated)
        report.allocated = sizeIn(flat, kSize + QStringLiteral(" already allocated"));
    report.cached = sizeIn(flat, kSize + QStringLiteral(" is reserved by PyTorch but unallocated"));
    if (!report.cached)
        if (const auto reserved = sizeIn(flat, kSize + QStringLiteral(" reserved in total"));
            reserved && report.allocated)
            report.cached = std::max<std::int64_t>(0, *reserved - *report.allocated);
    return report;
}

OomComparison compareOom(const OomReport& report, const planner::PlanResult& plan) {
    using contract::Category;
    OomComparison result;
    const contract::Ledger& ledger = plan.ledger;
    const std::int64_t reserve = ledger[Category::Collective] + ledger[Category::Context];
    const std::int64_t tensors = plan.peakBytes - reserve - ledger[Category::Slack];
    const std::int64_t device = plan.request.cluster.device.memoryBytes;
    const auto add = [&result](const QString& what, const std::optional<std::int64_t>& measured, std::int64_t planned) {
        if (measured)
            result.lines.push_back({what, *measured, planned});
    };
    add(translate("memory of the device"), report.capacity, device);
    add(translate("tensors, with the request"),
        report.allocated ? std::optional(*report.allocated + report.requested) : std::nullopt, tensors);
    add(translate("cached by the allocator, not in use"), report.cached, ledger[Category::Slack]);
    add(translate("context, libraries and collective buffers"), report.outside(), reserve);
    add(translate("other processes"), report.others(), -1);
    add(translate("free"), report.free, -1);
    result.request = requestText(report.requested, plan);
    if (report.capacity &&
        std::abs(static_cast<double>(*report.capacity - device)) > 0.01 * static_cast<double>(device))
        result.capacityBytes = *report.capacity;
    // Tensors beyond the plan's mean another network or batch; what surrounds them can be reserved.
    std::int64_t surplus = 0;
    if (report.outside())
        surplus += std::max<std::int64_t>(0, *report.outside() - reserve);
    if (report.cached)
        surplus += std::max<std::int64_t>(0, *report.cached - ledger[Category::Slack]);
    surplus += report.others().value_or(0);
    result.surplusBytes = surplus;
    return result;
}

} // namespace shardscope::app
