// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/TokenizerFile.h"

#include "runtime/contract/Json.h"
#include "runtime/contract/Plan.h"
#include "runtime/data/ByteAlphabet.h"
#include "runtime/data/Utf8.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <string_view>
#include <unordered_map>

namespace shardscope::engine {

namespace {

using contract::Json;
using contract::JsonCursor;

constexpr std::int64_t kMaximumFileBytes = std::int64_t{64} << 20; // the largest in use have 35 MB
constexpr std::int64_t kMaximumIds = std::int64_t{1} << 21;
constexpr std::size_t kMaximumTokenBytes = 4096;
constexpr std::size_t kMaximumAddedTokens = 100'000;
constexpr std::size_t kMaximumSteps = 16;
constexpr std::size_t kMaximumPatternBytes = 8192;
/// What the ByteLevel pre-tokenizer splits by (GPT-2's encoder).
constexpr std::string_view kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// A token in a message: printable and short.
std::string spelled(std::string_view token) {
    constexpr std::size_t kShown = 60;
    std::string text = Json(token).dump(-1, ' ', true, Json::error_handler_t::replace);
    return text.size() > kShown ? text.substr(0, kShown) + "...\"" : text;
}

class Reader {
public:
    Reader(TokenizerFile& file, const JsonCursor& root) : m_file(file), m_root(root) {}

    contract::Result<void> run() {
        readVersion();
        readModel();
        readAddedTokens();
        readNormalizer();
        readDecoder();
        noteWhatIsLeftOut();
        if (m_root.failed())
            return m_root.error();
        return readPreTokenizer();
    }

private:
    contract::Result<void> fault(const JsonCursor& at, std::string_view message) const {
        at.fail(message);
        return m_root.error();
    }

    void readVersion() {
        if (const auto version = m_root.find("version"); version && version->text() != "1.0")
            version->fail("must be \"1.0\"");
    }

    void readModel() {
        const JsonCursor model = m_root.at("model");
        // Files of the first years leave the type out.
        if (const auto type = model.find("type"))
            if (const std::string name = type->text(); name != "BPE")
                type->fail(fmt::format("is {}; only \"BPE\" is read", spelled(name)));
        if (const auto dropout = model.find("dropout"); dropout && dropout->number(0, 1) > 0)
            dropout->fail("must be null or 0: the same text must give the same tokens at every start");
        if (const auto fallback = model.find("byte_fallback"); fallback && fallback->boolean())
            fallback->fail("must be false: only byte-level BPE is read");
        for (const char* const affix : {"continuing_subword_prefix", "end_of_word_suffix"})
            if (const auto text = model.find(affix); text && !text->text().empty())
                text->fail("must be null or empty");
        if (const auto ignores = model.find("ignore_merges"))
            m_file.ignoresMerges = ignores->boolean();
        readVocabulary(model.at("vocab"));
        readMerges(model.at("merges"));
    }

    void readVocabulary(const JsonCursor& vocabulary) {
        if (m_root.failed())
            return;
        if (!vocabulary.isObject())
            return vocabulary.fail("must be an object of tokens and their ids");
        const auto& entries = vocabulary.raw().get_ref<const Json::object_t&>();
        if (entries.size() > static_cast<std::size_t>(kMaximumIds))
            return vocabulary.fail(fmt::format("has {} tokens, more than {}", entries.size(), kMaximumIds));
        m_ids.reserve(entries.size());
        for (const auto& [text, value] : entries) {
            if (text.empty() || text.size() > kMaximumTokenBytes)
                return vocabulary.fail(
                    fmt::format("has a token of {} bytes; they must have 1 to {}", text.size(), kMaximumTokenBytes));
            const bool isId = value.is_number_integer() && value >= 0 && value < kMaximumIds;
            if (!isId)
                return vocabulary.fail(fmt::format("gives {} no id from 0 to {}", spelled(text), kMaximumIds - 1));
            const auto id = value.get<std::int32_t>();
            TokenizerFile::Token& token = tokenAt(id);
            if (token.exists)
                return vocabulary.fail(fmt::format("gives the id {} twice, the second time to {}", id, spelled(text)));
            const auto bytes = bytesOfCharacters(text);
            token = {true, bytes.has_value(), bytes.value_or(text)};
            m_ids.emplace(text, id);
            if (bytes && bytes->size() == 1) {
                m_file.idsOfBytes[static_cast<unsigned char>(bytes->front())] = id;
                m_byteIsThere[static_cast<unsigned char>(bytes->front())] = true;
            }
        }
        for (std::size_t byte = 0; byte < m_byteIsThere.size(); ++byte)
            if (!m_byteIsThere[byte])
                return vocabulary.fail(
                    fmt::format("has no token for the byte 0x{:02X} (U+{:04X}); a byte-level vocabulary has all 256",
                                byte, characterOfByte(static_cast<unsigned char>(byte))));
    }

    TokenizerFile::Token& tokenAt(std::int32_t id) {
        if (static_cast<std::size_t>(id) >= m_file.tokens.size())
            m_file.tokens.resize(static_cast<std::size_t>(id) + 1);
        return m_file.tokens[static_cast<std::size_t>(id)];
    }

    /// Each is "left right", or [left, right].
    void readMerges(const JsonCursor& merges) {
        if (m_root.failed())
            return;
        const std::size_t count = merges.arraySize(static_cast<std::size_t>(kMaximumIds));
        m_file.merges.reserve(count);
        for (std::size_t i = 0; i < count && !m_root.failed(); ++i) {
            const Json& entry = merges.raw()[i];
            std::string left;
            std::string right;
            if (entry.is_string()) {
                const auto& text = entry.get_ref<const std::string&>();
                const std::size_t space = text.find(' ');
                if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos)
                    return merges.element(i).fail("must be two tokens with one space between them");
                left = text.substr(0, space);
                right = text.substr(space + 1);
            } else {
                const JsonCursor pair = merges.element(i);
                if (pair.arraySize(2) != 2)
                    return pair.fail("must be two tokens");
                left = pair.element(0).text(kMaximumTokenBytes);
                right = pair.element(1).text(kMaximumTokenBytes);
            }
            BytePairs::Merge merge;
            for (const auto& [text, id] :
                 {std::pair(left, &merge.left), {right, &merge.right}, {left + right, &merge.merged}}) {
                const auto known = m_ids.find(text);
                if (known == m_ids.end())
                    return merges.element(i).fail(fmt::format("needs {}, which is not in model.vocab", spelled(text)));
                *id = known->second;
            }
            m_file.merges.push_back(merge);
        }
    }

    void readAddedTokens() {
        const auto list = m_root.find("added_tokens");
        if (!list || m_root.failed())
            return;
        const std::size_t count = list->arraySize(kMaximumAddedTokens);
        std::unordered_map<std::string, std::int32_t> seen;
        for (std::size_t i = 0; i < count && !m_root.failed(); ++i) {
            const JsonCursor entry = list->element(i);
            AddedToken token;
            token.id = static_cast<std::int32_t>(entry.at("id").integer(0, kMaximumIds - 1));
            token.content = entry.at("content").text(kMaximumTokenBytes);
            const auto flag = [&](const char* name, bool absent) {
                const auto value = entry.find(name);
                return value ? value->boolean() : absent;
            };
            token.isSingleWord = flag("single_word", false);
            token.stripsLeft = flag("lstrip", false);
            token.stripsRight = flag("rstrip", false);
            token.matchesNormalized = flag("normalized", !flag("special", false));
            if (m_root.failed())
                return;
            if (token.content.empty())
                return entry.at("content").fail("must not be empty");
            if (!seen.emplace(token.content, token.id).second)
                return entry.at("content").fail(fmt::format("is {}, which is added twice", spelled(token.content)));
            const auto known = m_ids.find(token.content);
            if (known != m_ids.end() && known->second != token.id)
                return entry.at("id").fail(fmt::format("is {}; {} is token {} in model.vocab", token.id,
                                                       spelled(token.content), known->second));
            TokenizerFile::Token& place = tokenAt(token.id);
            if (place.exists && known == m_ids.end())
                return entry.at("id").fail(fmt::format("is {}, which another token has", token.id));
            // A special token of ASCII letters is in the vocabulary too; it stays what it is there.
            place = {true, place.isOfBytes, token.content};
            m_file.addedTokens.push_back(std::move(token));
        }
    }

    void readNormalizer() {
        const auto normalizer = m_root.find("normalizer");
        if (!normalizer)
            return;
        const std::string type = normalizer->at("type").text();
        m_file.normalizesNfc = type == "NFC";
        if (type != "NFC")
            normalizer->at("type").fail(fmt::format("is {}; read are no normalizer and \"NFC\"", spelled(type)));
    }

    void readDecoder() {
        const JsonCursor type = m_root.at("decoder").at("type");
        if (const std::string name = type.text(); name != "ByteLevel")
            type.fail(fmt::format("is {}; only \"ByteLevel\" is read", spelled(name)));
    }

    void noteWhatIsLeftOut() {
        if (const auto processor = m_root.find("post_processor"))
            if (const std::string type = processor->at("type").text();
                type != "ByteLevel") // that one moves offsets only
                m_file.notes.push_back(fmt::format("post_processor {} is left out: text is trained on without added "
                                                   "begin and end tokens",
                                                   spelled(type)));
        for (const char* const field : {"truncation", "padding"})
            if (m_root.find(field))
                m_file.notes.push_back(
                    fmt::format("{} is left out: text is cut into windows by the plan's sequence", field));
    }

    contract::Result<void> readPreTokenizer() {
        const JsonCursor whole = m_root.at("pre_tokenizer");
        const std::string type = whole.at("type").text();
        if (m_root.failed())
            return m_root.error();
        if (type != "Sequence")
            return readStep(whole, true);
        const JsonCursor list = whole.at("pretokenizers");
        const std::size_t count = list.arraySize(kMaximumSteps);
        if (count == 0)
            return fault(list, "must hold Split steps and at last ByteLevel");
        for (std::size_t i = 0; i < count; ++i)
            if (auto read = readStep(list.element(i), i + 1 == count); !read)
                return read;
        return {};
    }

    contract::Result<void> readStep(const JsonCursor& step, bool isLast) {
        const std::string type = step.at("type").text();
        if (m_root.failed())
            return m_root.error();
        if (type != (isLast ? "ByteLevel" : "Split"))
            return fault(step.at("type"),
                         fmt::format("is {}; read are ByteLevel, alone or behind Split steps", spelled(type)));
        return isLast ? readByteLevel(step) : readSplit(step);
    }

    contract::Result<void> readByteLevel(const JsonCursor& cursor) {
        TokenizerFile::Step step;
        if (const auto addsSpace = cursor.find("add_prefix_space"))
            step.addsSpace = addsSpace->boolean();
        const auto usesPattern = cursor.find("use_regex");
        if (!usesPattern || usesPattern->boolean()) {
            auto pattern = SplitPattern::compile(kByteLevelPattern, m_file.path + ": pre_tokenizer");
            if (!pattern)
                return tl::unexpected(pattern.error());
            step.pattern = std::move(*pattern);
        }
        m_file.steps.push_back(std::move(step));
        return m_root.failed() ? contract::Result<void>(m_root.error()) : contract::Result<void>();
    }

    contract::Result<void> readSplit(const JsonCursor& cursor) {
        enum class Behaviour { Isolated, Removed };
        const JsonCursor expression = cursor.at("pattern").at("Regex");
        const std::string text = expression.text(kMaximumPatternBytes);
        const auto behaviour =
            cursor.at("behavior")
                .choice<Behaviour>({{"Isolated", Behaviour::Isolated}, {"Removed", Behaviour::Removed}});
        const auto invert = cursor.find("invert");
        const bool isInverted = invert && invert->boolean();
        if (m_root.failed())
            return m_root.error();
        auto pattern = SplitPattern::compile(text, fmt::format("{}: {}", m_file.path, expression.path()));
        if (!pattern)
            return tl::unexpected(pattern.error());
        TokenizerFile::Step step;
        step.pattern = std::move(*pattern);
        step.keepsMatches = behaviour == Behaviour::Isolated || isInverted;
        step.keepsBetween = behaviour == Behaviour::Isolated || !isInverted;
        m_file.steps.push_back(std::move(step));
        return {};
    }

    TokenizerFile& m_file;
    const JsonCursor& m_root;
    std::unordered_map<std::string, std::int32_t> m_ids; ///< of the vocabulary, as it is spelled there
    std::array<bool, 256> m_byteIsThere{};
};

} // namespace

contract::Result<TokenizerFile> readTokenizerFile(const std::string& fileOrFolder) {
    namespace fs = std::filesystem;
    std::error_code error;
    fs::path path = fs::absolute(fileOrFolder, error).lexically_normal();
    if (fs::is_directory(path, error))
        path /= "tokenizer.json";
    TokenizerFile file;
    file.path = path.string();
    const auto text = contract::readTextFile(file.path, kMaximumFileBytes);
    if (!text)
        return tl::unexpected(text.error());
    file.sha256 = contract::sha256(*text);
    const auto document = contract::parseJson(*text, file.path);
    if (!document)
        return tl::unexpected(document.error());
    const JsonCursor root(*document, file.path);
    if (auto read = Reader(file, root).run(); !read)
        return tl::unexpected(read.error());
    return file;
}

} // namespace shardscope::engine
