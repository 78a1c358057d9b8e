// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/graph/NetworkBuilder.h"
#include "planner/readers/ConfigFields.h"
#include "runtime/contract/Architecture.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::planner {

/// What a family makes of a configuration: either an architecture that the training runtime speaks of, or how to build
/// the operators for a length.
struct Network {
    std::string family;
    std::optional<contract::Architecture> architecture;
    /// Used where there is no architecture.
    std::function<void(NetworkBuilder&)> build;
    /// The architecture whose operators `adapt` changes (another task head); used where there is neither of the above.
    std::optional<contract::Architecture> body;
    std::function<void(std::vector<contract::Operator>&, NetworkBuilder&)> adapt;

    bool attentionDropout = false; ///< probabilities of attention are dropped out
    std::int64_t context = 0;      ///< the longest sequence; 0: unlimited
    std::int64_t usual = 4096;     ///< the default sequence is at most this
    bool fixedSequence = false;    ///< `context` is the only sequence (images)
    std::string_view contextField; ///< that gives the context
};

/// "gpt2, llama, ...": the values of `model_type` that this version reads.
std::string supportedFamilies();

/// Reads the fields of a Hugging Face config.json, with the defaults that the transformers library applies to fields
/// that are left out. Adds readable notes to `warnings`. The first fault is remembered by the cursor; what is returned
/// then must not be used.
Network readFamily(const contract::JsonCursor& config, std::vector<std::string>& warnings);

// The families, by the shape of their networks. Each reads its fields and says how to build the operators.
Network readGpt2(const Fields& fields);
Network readLlamaLike(const Fields& fields); ///< llama, mistral, qwen2, qwen3
Network readOpt(const Fields& fields);
Network readBloom(const Fields& fields);
Network readGptNeox(const Fields& fields);
Network readGptj(const Fields& fields);
Network readFalcon(const Fields& fields);
Network readPhi(const Fields& fields);
Network readPhi3(const Fields& fields);
Network readGemma(const Fields& fields); ///< gemma, gemma2, gemma3_text
Network readMixtral(const Fields& fields);
Network readQwenMoe(const Fields& fields);  ///< qwen2_moe, qwen3_moe
Network readDeepseek(const Fields& fields); ///< deepseek_v2, deepseek_v3
Network readBert(const Fields& fields);     ///< bert, roberta
Network readDistilbert(const Fields& fields);
Network readVit(const Fields& fields);
Network readT5(const Fields& fields);

} // namespace shardscope::planner
