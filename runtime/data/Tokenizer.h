// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/data/TokenizerFile.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace shardscope::engine {

/// Byte-level BPE: text to token ids and back, with the ids that the tokenizers library gives. Text that is not UTF-8,
/// which that library does not take, is encoded byte by byte where it is not, so that nothing is lost.
class Tokenizer {
public:
    /// `path`: a tokenizer.json or a folder that holds one. Errors: BadInput, see readTokenizerFile.
    static contract::Result<std::unique_ptr<Tokenizer>> open(const std::string& path);

    const std::string& path() const { return m_file.path; } ///< of the file itself, absolute
    const std::string& sha256() const { return m_file.sha256; }
    /// What the file asks for and training leaves out.
    const std::vector<std::string>& notes() const { return m_file.notes; }
    /// The largest id and one.
    std::int64_t vocabulary() const { return static_cast<std::int64_t>(m_file.tokens.size()); }
    bool hasToken(std::int64_t id) const {
        return id >= 0 && id < vocabulary() && m_file.tokens[static_cast<std::size_t>(id)].exists;
    }
    /// What a token stands for; nothing for an id that no token has.
    std::string_view bytesOf(std::int64_t id) const {
        return hasToken(id) ? std::string_view(m_file.tokens[static_cast<std::size_t>(id)].bytes) : std::string_view();
    }

    /// Told from time to time how many bytes are encoded; whether to go on.
    using Progress = std::function<bool(std::size_t bytesDone)>;
    /// Appends the tokens of a text. Errors: BadInput, naming file and field, when the text takes more time or memory
    /// than this tokenizer's words should; Cancelled, when `progress` says so.
    contract::Result<void> encode(std::string_view text, std::vector<std::int32_t>& ids, const Progress& progress = {});

private:
    struct TextHash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
    };
    struct CachedWord {
        std::uint32_t begin = 0;
        std::uint32_t count = 0;
    };
    template<typename Value> using ByText = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

    explicit Tokenizer(TokenizerFile file);
    contract::Result<void> encodeValid(std::string_view text);
    contract::Result<void> encodeNormalized(std::string_view text);
    contract::Result<void> cutIntoWords(std::size_t step, std::string_view text);
    contract::Result<void> encodeWord(std::string_view word);

    TokenizerFile m_file;
    BytePairs m_pairs;
    AddedTokens m_addedRaw;            ///< found before the text is normalized
    AddedTokens m_addedNormalized;     ///< and after
    ByText<std::int32_t> m_wholeWords; ///< where merges are ignored for words that are tokens

    /// Most words come again; see encodeWord.
    ByText<CachedWord> m_cache;
    std::vector<std::int32_t> m_cachedIds;

    std::vector<std::int32_t>* m_ids = nullptr; ///< where the text that is being encoded goes
    const Progress* m_progress = nullptr;
    std::size_t m_done = 0;
    std::size_t m_told = 0;
};

} // namespace shardscope::engine
