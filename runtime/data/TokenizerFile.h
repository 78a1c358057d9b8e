// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/data/AddedTokens.h"
#include "runtime/data/BytePairs.h"
#include "runtime/data/SplitPattern.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::engine {

/// What a Hugging Face tokenizer.json says, where it describes a byte-level BPE.
struct TokenizerFile {
    /// One step from text to words.
    struct Step {
        bool addsSpace = false; ///< before text that does not begin with one
        std::optional<SplitPattern> pattern;
        bool keepsMatches = true;
        bool keepsBetween = true;
    };
    struct Token {
        bool exists = false;
        bool isOfBytes = false; ///< of the vocabulary, and may be made of pairs
        std::string bytes;      ///< what it decodes to
    };

    std::string path; ///< of the file itself, absolute
    std::string sha256;
    std::vector<Token> tokens; ///< by id
    std::array<std::int32_t, 256> idsOfBytes{};
    std::vector<BytePairs::Merge> merges;
    bool ignoresMerges = false; ///< a word that is a token is that token, whatever its pairs are
    bool normalizesNfc = false;
    std::vector<AddedToken> addedTokens;
    std::vector<Step> steps;
    std::vector<std::string> notes; ///< what the file asks for and training leaves out
};

/// Reads a tokenizer.json, or that of a folder. Errors: BadInput, naming file and field: everything that is not BPE
/// over bytes, and every contradiction.
contract::Result<TokenizerFile> readTokenizerFile(const std::string& fileOrFolder);

} // namespace shardscope::engine
