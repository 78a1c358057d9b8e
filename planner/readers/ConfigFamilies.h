// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Architecture.h"

#include <string>
#include <string_view>
#include <vector>

namespace shardscope::planner {

/// "gpt2, llama, mistral, qwen2, qwen3": the values of `model_type` that this version reads.
std::string supportedFamilies();

/// Reads the fields of a Hugging Face config.json, with the defaults that the transformers library applies to fields
/// that are left out. Adds readable notes to `warnings`. The first fault is remembered by the cursor; what is returned
/// then must not be used.
contract::Architecture readFamily(const contract::JsonCursor& config, std::vector<std::string>& warnings);

/// The field that holds the context length of a family: "n_positions" or "max_position_embeddings".
std::string_view contextField(std::string_view family);

} // namespace shardscope::planner
