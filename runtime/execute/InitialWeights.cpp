// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/execute/InitialWeights.h"

#include "runtime/network/HuggingFace.h"
#include "runtime/network/Initializer.h"

#include <string>

namespace shardscope::engine {

namespace {

/// The name under which the files hold a tensor; the full state-dict name when they hold it under none.
std::string nameInFiles(const PlanSetup& setup, const contract::Operator& op, const contract::TensorSpec& tensor,
                        const WeightFiles& files) {
    const std::string full = stateDictName(setup.architecture, op, tensor);
    const std::string bare = op.name + "." + tensor.name;
    if (files.has(full) || files.has(bare))
        return files.has(full) ? full : bare;
    if (op.role == contract::OperatorRole::Head)
        for (const contract::Operator& other : setup.operators)
            if (other.role == contract::OperatorRole::TokenEmbedding)
                return nameInFiles(setup, other, other.tensors.front(), files);
    return full;
}

} // namespace

contract::Result<void> checkInitialWeights(const PlanSetup& setup, const WeightFiles& files) {
    for (const contract::Operator& op : setup.operators)
        for (const contract::TensorSpec& tensor : op.tensors)
            if (!op.isTied())
                if (auto checked = files.check(nameInFiles(setup, op, tensor, files), tensor.shape); !checked)
                    return checked;
    return {};
}

contract::Result<void> loadInitialWeights(Executor& executor, const PlanSetup& setup, const WeightFiles& files) {
    if (auto checked = checkInitialWeights(setup, files); !checked)
        return checked;
    const StateLayout& layout = executor.layout();
    for (std::int32_t i = 0; i < layout.count(); ++i) {
        const contract::Operator& op = setup.operators[static_cast<std::size_t>(i)];
        if (op.isTied())
            continue;
        for (std::size_t t = 0; t < op.tensors.size(); ++t) {
            const WeightFiles::Tensor& source = files.at(nameInFiles(setup, op, op.tensors[t], files));
            const StateDictOrder order(setup.architecture, op, op.tensors[t]);
            for (const PartState& part : layout.of(i).parts) {
                fillWeights(part.tensors[t], executor.rank(), executor.device(),
                            [&](std::int64_t element) { return WeightFiles::valueAt(source, order.indexOf(element)); });
            }
        }
    }
    return {};
}

} // namespace shardscope::engine
