// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Architecture.h"
#include "runtime/contract/Json.h"
#include "runtime/contract/Operator.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace shardscope::engine {

/// What comes before an operator's name in the state dict of its family: "transformer." or "model.", nothing for the
/// head.
std::string_view stateDictPrefix(const contract::Architecture& architecture, const contract::Operator& op);
/// "transformer.h.3.mlp.c_fc.weight", "model.layers.3.mlp.up_proj.weight".
std::string stateDictName(const contract::Architecture& architecture, const contract::Operator& op,
                          const contract::TensorSpec& tensor);

/// Where an element of our (rows, columns) storage stands in the state dict's order, which for GPT-2's projections is
/// (columns, rows).
class StateDictOrder {
public:
    StateDictOrder(const contract::Architecture& architecture, const contract::Operator& op,
                   const contract::TensorSpec& tensor);
    std::int64_t indexOf(std::int64_t element) const {
        return m_transposed ? element % m_columns * m_rows + element / m_columns : element;
    }

private:
    bool m_transposed = false;
    std::int64_t m_rows = 0;
    std::int64_t m_columns = 0;
};

/// The config.json with which the transformers library loads such a network.
contract::OrderedJson huggingFaceConfig(const contract::Architecture& architecture);

} // namespace shardscope::engine
