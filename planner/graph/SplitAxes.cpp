// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/graph/SplitAxes.h"

#include <algorithm>

namespace shardscope::planner {

void alignSplitAxes(contract::Operator& op) {
    const bool alike = std::all_of(op.tensors.begin(), op.tensors.end(), [&](const contract::TensorSpec& tensor) {
        return tensor.rows == op.tensors.front().rows;
    });
    if (alike || op.kind == contract::OperatorKind::Norm)
        return;
    for (contract::TensorSpec& tensor : op.tensors) {
        tensor.columns = tensor.elements();
        tensor.rows = 1;
    }
}

std::string blockOf(const std::string& module) {
    std::size_t begin = module.find('.');
    while (begin != std::string::npos) {
        ++begin;
        const std::size_t end = module.find('.', begin);
        if (end == std::string::npos)
            return {};
        const bool isNumber =
            end > begin && end - begin < 8 &&
            std::all_of(module.begin() + static_cast<std::ptrdiff_t>(begin),
                        module.begin() + static_cast<std::ptrdiff_t>(end), [](char c) { return c >= '0' && c <= '9'; });
        if (isNumber)
            return module.substr(0, end);
        begin = end;
    }
    return {};
}

} // namespace shardscope::planner
