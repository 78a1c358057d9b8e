// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Json.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::contract {

enum class NormKind { LayerNorm, RmsNorm };
enum class Activation { GeluTanh, Gelu, SiluGated };
enum class AttentionLayout {
    Fused,    ///< one query-key-value projection (GPT-2)
    Separate, ///< query, key and value projections (Llama-like)
};

/// Rotary position embedding. `scaling` is kept as it was read; kinds the engine does not run are refused there.
struct Rope {
    double theta = 10000.0;
    std::string scalingKind; ///< "" when none, else for example "llama3", "linear", "yarn"
    std::string scaling;     ///< the whole scaling object of the configuration as JSON text, "" when none
    bool operator==(const Rope&) const = default;
};

/// In some layers a query sees its last `keys` keys alone, itself among them.
struct SlidingWindow {
    std::int64_t keys = 0;
    std::vector<std::int64_t> layers; ///< ascending, at least one
    bool operator==(const SlidingWindow&) const = default;
};

/// The networks that our own engine speaks of: decoders of the GPT-2 and Llama families.
struct Architecture {
    std::string family; ///< "gpt2", "llama", "mistral", "qwen2", "qwen3"
    std::int64_t layers = 0;
    std::int64_t hidden = 0;
    std::int64_t heads = 0;
    std::int64_t kvHeads = 0;
    std::int64_t headDim = 0;
    std::int64_t intermediate = 0;
    std::int64_t vocabulary = 0;
    std::int64_t positions = 0; ///< context length; learned positions have this many rows
    NormKind norm = NormKind::LayerNorm;
    double normEpsilon = 1e-5;
    Activation activation = Activation::GeluTanh;
    AttentionLayout attention = AttentionLayout::Fused;
    std::optional<Rope> rope;   ///< nothing: learned positions
    bool attentionBias = false; ///< bias of query, key and value projections
    bool attentionOutputBias = false;
    bool mlpBias = false;
    std::optional<SlidingWindow> window; ///< nothing: every query sees the whole context
    bool qkNorm = false;                 ///< RMS norm over each head of query and key (Qwen3)
    bool tied = true;                    ///< the head shares the token embedding's storage

    bool isGpt2() const { return family == "gpt2"; }
    /// Keys that a query of `layer` sees among `tokens`.
    std::int64_t seenKeys(std::int64_t layer, std::int64_t tokens) const;
    bool operator==(const Architecture&) const = default;
};

OrderedJson toJson(const Architecture& architecture);
Architecture readArchitecture(const JsonCursor& cursor);

/// Says what is inconsistent ("heads 12 does not divide hidden 770"), or nothing. Bounds every field so that products
/// of any of them fit 63 bits.
std::optional<std::string> checkArchitecture(const Architecture& architecture);

} // namespace shardscope::contract
