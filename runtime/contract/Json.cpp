// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/contract/Json.h"

#include "runtime/contract/Spelling.h"
#include "runtime/contract/Utf8.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace shardscope::contract {

namespace {

const Json kNull = nullptr;

constexpr std::size_t kKeyShown = 64;     ///< bytes of a key of a file in a message
constexpr std::size_t kUnknownNamed = 16; ///< that many unknown keys are said one by one

/// "operators[17].kept[2].x" -> "operators[].kept[].x"
std::string withoutIndices(std::string_view path) {
    std::string pattern;
    bool inside = false;
    for (const char letter : path) {
        inside = inside && letter != ']';
        if (!inside)
            pattern += letter;
        inside = inside || letter == '[';
    }
    return pattern;
}

/// A member that was probably meant as `key`, which is not there: " (there is "flops_foward")"; else nothing.
std::string misspelt(const Json& object, std::string_view key) {
    constexpr std::size_t kMostLetters = 2;
    constexpr int kMembersSeen = 256; // objects of ours have fewer
    int seen = 0;
    for (const auto& [name, value] : object.items()) {
        if (++seen > kMembersSeen || key.size() <= 2 * kMostLetters)
            break;
        const std::size_t shorter = std::min(name.size(), key.size());
        if (std::max(name.size(), key.size()) - shorter <= kMostLetters && editDistance(name, key) <= kMostLetters)
            return fmt::format(" (there is \"{}\")", name);
    }
    return {};
}

} // namespace

JsonCursor::JsonCursor(const Json& document, std::string_view file)
    : m_value(&document), m_document(std::make_shared<Document>()) {
    m_document->file = file;
}

JsonCursor::JsonCursor(const Json* value, std::string path, std::shared_ptr<Document> document)
    : m_value(value), m_path(std::move(path)), m_document(std::move(document)) {}

void JsonCursor::fail(std::string_view message) const {
    if (m_document->error)
        return;
    const std::string place = m_path.empty() ? "the document" : m_path;
    m_document->error =
        Error{ErrorKind::BadInput, fmt::format("{}: {} {}", m_document->file, place, withoutMiddle(message))};
}

JsonCursor JsonCursor::at(std::string_view key) const {
    const std::string path = m_path.empty() ? std::string(key) : m_path + "." + std::string(key);
    if (!m_value->is_object()) {
        if (!failed())
            fail("must be an object");
        return {&kNull, path, m_document};
    }
    const auto member = m_value->find(std::string(key));
    if (member == m_value->end()) {
        if (!failed())
            JsonCursor(&kNull, path, m_document).fail("is missing" + misspelt(*m_value, key));
        return {&kNull, path, m_document};
    }
    return {&*member, path, m_document};
}

std::optional<JsonCursor> JsonCursor::find(std::string_view key) const {
    if (!m_value->is_object())
        return std::nullopt;
    const auto member = m_value->find(std::string(key));
    if (member == m_value->end() || member->is_null())
        return std::nullopt;
    return JsonCursor(&*member, m_path.empty() ? std::string(key) : m_path + "." + std::string(key), m_document);
}

std::size_t JsonCursor::arraySize(std::size_t maximum) const {
    if (!m_value->is_array()) {
        fail("must be an array");
        return 0;
    }
    if (m_value->size() > maximum) {
        fail(fmt::format("has {} elements, more than {}", m_value->size(), maximum));
        return 0;
    }
    return m_value->size();
}

JsonCursor JsonCursor::element(std::size_t index) const {
    const std::string path = fmt::format("{}[{}]", m_path, index);
    if (!m_value->is_array() || index >= m_value->size()) {
        fail("must be an array");
        return {&kNull, path, m_document};
    }
    return {&(*m_value)[index], path, m_document};
}

std::int64_t JsonCursor::integer(std::int64_t minimum, std::int64_t maximum) const {
    const auto range = [&] { return fmt::format("must be an integer from {} to {}", minimum, maximum); };
    if (!m_value->is_number_integer()) {
        fail(m_value->is_number() ? fmt::format("is {}; it {}", m_value->dump(), range()) : range());
        return minimum;
    }
    const bool tooLarge =
        m_value->is_number_unsigned() &&
        m_value->get<std::uint64_t>() > static_cast<std::uint64_t>(std::max<std::int64_t>(maximum, 0));
    const std::int64_t value = tooLarge ? maximum : m_value->get<std::int64_t>();
    if (tooLarge || value < minimum || value > maximum) {
        fail(fmt::format("is {}; it {}", m_value->dump(), range()));
        return minimum;
    }
    return value;
}

double JsonCursor::number(double minimum, double maximum) const {
    if (!m_value->is_number()) {
        fail("must be a number");
        return minimum;
    }
    const double value = m_value->get<double>();
    if (!std::isfinite(value) || value < minimum || value > maximum) {
        fail(fmt::format("is {}; it must be a number from {} to {}", m_value->dump(), minimum, maximum));
        return minimum;
    }
    return value;
}

bool JsonCursor::boolean() const {
    if (!m_value->is_boolean()) {
        fail("must be true or false");
        return false;
    }
    return m_value->get<bool>();
}

std::string JsonCursor::text(std::size_t maximumLength) const {
    if (!m_value->is_string()) {
        fail("must be a string");
        return {};
    }
    const auto& value = m_value->get_ref<const std::string&>();
    if (value.size() > maximumLength) {
        fail(fmt::format("has {} characters, more than {}", value.size(), maximumLength));
        return {};
    }
    return value;
}

void JsonCursor::expectOnly(std::initializer_list<std::string_view> known) const {
    if (!m_value->is_object())
        return;
    for (auto member = m_value->begin(); member != m_value->end(); ++member) {
        const std::string& key = member.key();
        if (std::find(known.begin(), known.end(), key) != known.end())
            continue;
        const std::string path = (m_path.empty() ? "" : m_path + ".") + shortened(key, kKeyShown);
        std::string pattern = withoutIndices(path);
        auto& unknown = m_document->unknown;
        const auto again = std::find_if(unknown.begin(), unknown.end(),
                                        [&](const UnknownKey& other) { return other.pattern == pattern; });
        if (again != unknown.end()) {
            ++again->count;
        } else if (unknown.size() == kUnknownNamed) {
            ++m_document->unnamed;
        } else {
            unknown.push_back({path, std::move(pattern), std::string(nearestWord(key, known))});
        }
    }
}

std::vector<std::string> JsonCursor::unknownKeys() const {
    std::vector<std::string> sentences;
    for (const UnknownKey& unknown : m_document->unknown) {
        const std::string others = unknown.count > 1 ? fmt::format(", as are {} more like it", unknown.count - 1) : "";
        sentences.push_back(
            fmt::format("{}: {} is not a key that is known here and is ignored{}; the nearest known key is \"{}\"",
                        m_document->file, unknown.path, others, unknown.nearest));
    }
    if (m_document->unnamed > 0)
        sentences.push_back(fmt::format("{}: {} more keys are ignored, since they are not known here", m_document->file,
                                        m_document->unnamed));
    return sentences;
}

bool JsonCursor::isNull() const {
    return m_value->is_null();
}
bool JsonCursor::isObject() const {
    return m_value->is_object();
}
bool JsonCursor::isArray() const {
    return m_value->is_array();
}
bool JsonCursor::isString() const {
    return m_value->is_string();
}
bool JsonCursor::isNumber() const {
    return m_value->is_number();
}

} // namespace shardscope::contract
