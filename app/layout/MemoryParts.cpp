// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/layout/MemoryParts.h"

#include <QCoreApplication>

namespace shardscope::app {

MemoryPart partOf(contract::Category category) {
    using contract::Category;
    switch (category) {
    case Category::Parameters:
        return MemoryPart::Parameters;
    case Category::Gradients:
        return MemoryPart::Gradients;
    case Category::Optimizer:
        return MemoryPart::Optimizer;
    case Category::Activations:
        return MemoryPart::Activations;
    case Category::Logits:
        return MemoryPart::Logits;
    case Category::Gathered:
    case Category::Unreduced:
        return MemoryPart::Slots;
    case Category::OptimizerTemporary:
    case Category::Data:
        return MemoryPart::Other;
    case Category::Collective:
    case Category::Context:
    case Category::Slack:
        return MemoryPart::Reserve;
    }
    return MemoryPart::Other;
}

MemoryParts partsOf(const contract::Ledger& ledger) {
    MemoryParts parts{};
    for (int i = 0; i < contract::kCategoryCount; ++i) {
        const auto category = static_cast<contract::Category>(i);
        parts[static_cast<std::size_t>(partOf(category))] += ledger[category];
    }
    return parts;
}

QString partName(MemoryPart part) {
    const auto tr = [](const char* text) { return QCoreApplication::translate("MemoryParts", text); };
    switch (part) {
    case MemoryPart::Parameters:
        return tr("parameters");
    case MemoryPart::Gradients:
        return tr("gradients");
    case MemoryPart::Optimizer:
        return tr("optimizer");
    case MemoryPart::Activations:
        return tr("activations");
    case MemoryPart::Logits:
        return tr("logits and loss");
    case MemoryPart::Slots:
        return tr("slots");
    case MemoryPart::Other:
        return tr("other");
    case MemoryPart::Reserve:
        return tr("reserve");
    }
    return {};
}

} // namespace shardscope::app
