// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/contract/KernelRates.h"

#include <nlohmann/json.hpp>

#include <utility>

namespace shardscope::contract {

namespace {

constexpr std::pair<const char*, double KernelRates::*> kFields[] = {
    {"product_seconds_per_flop", &KernelRates::productSecondsPerFlop},
    {"product_seconds_per_element", &KernelRates::productSecondsPerElement},
    {"product_seconds", &KernelRates::productSeconds},
    {"attention_seconds_per_flop", &KernelRates::attentionSecondsPerFlop},
    {"attention_seconds_per_element", &KernelRates::attentionSecondsPerElement},
    {"norm_seconds_per_element", &KernelRates::normSecondsPerElement},
    {"gelu_seconds_per_element", &KernelRates::geluSecondsPerElement},
    {"silu_gate_seconds_per_element", &KernelRates::siluGateSecondsPerElement},
    {"rotary_seconds_per_element", &KernelRates::rotarySecondsPerElement},
    {"embedding_seconds_per_element", &KernelRates::embeddingSecondsPerElement},
    {"loss_seconds_per_logit", &KernelRates::lossSecondsPerLogit},
    {"update_seconds_per_byte", &KernelRates::updateSecondsPerByte},
};

} // namespace

OrderedJson toJson(const KernelRates& rates) {
    OrderedJson json;
    for (const auto& [name, field] : kFields)
        json[name] = rates.*field;
    return json;
}

KernelRates readKernelRates(const JsonCursor& cursor) {
    constexpr double kSlowest = 1e3; // seconds of one element
    KernelRates rates;
    for (const auto& [name, field] : kFields)
        rates.*field = cursor.at(name).number(0, kSlowest);
    return rates;
}

} // namespace shardscope::contract
