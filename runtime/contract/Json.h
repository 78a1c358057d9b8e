// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardscope::contract {

/// Only declared here, since the library is large: files that touch values include <nlohmann/json.hpp> themselves.
using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

inline constexpr int kMaximumJsonDepth = 64;

/// For files of which no kind is known to be large.
inline constexpr std::size_t kMaximumJsonValues = std::size_t{1} << 26;

/// Parses hostile text: nesting and the number of values are bounded, duplicate keys and invalid UTF-8 are refused,
/// numbers must be finite. `file` is only used in messages. Errors: BadInput.
Result<Json> parseJson(std::string_view text, std::string_view file, std::size_t maximumValues = kMaximumJsonValues);

/// Reads a whole regular file. Errors: BadInput when it is missing, a folder, unreadable or larger than `maximumBytes`.
Result<std::string> readTextFile(const std::string& path, std::int64_t maximumBytes = std::int64_t{256} << 20);

/// readTextFile + parseJson.
Result<Json> readJsonFile(const std::string& path, std::int64_t maximumBytes = std::int64_t{256} << 20,
                          std::size_t maximumValues = kMaximumJsonValues);

/// Writes whole or not at all: temporary file beside it, fsync, rename. Errors: RunFailed, naming the path.
Result<void> writeFileAtomically(const std::string& path, std::string_view content);

/// A place in a JSON document that knows its path ("operators[3].name").
///
/// The first failure is remembered by the document and later reads return neutral values, so that a reader can be
/// written straight down and ask failed() once at the end (and before trusting a count).
class JsonCursor {
public:
    JsonCursor(const Json& document, std::string_view file);

    /// The member `key`; a failure when it is absent or this is not an object.
    JsonCursor at(std::string_view key) const;
    /// The member `key`, or nothing when absent or null.
    std::optional<JsonCursor> find(std::string_view key) const;
    /// The number of elements; a failure when this is not an array or has more than `maximum`.
    std::size_t arraySize(std::size_t maximum = 50'000'000) const;
    JsonCursor element(std::size_t index) const;

    std::int64_t integer(std::int64_t minimum = 0, std::int64_t maximum = std::int64_t{1} << 53) const;
    double number(double minimum = 0, double maximum = std::numeric_limits<double>::max()) const;
    bool boolean() const;
    std::string text(std::size_t maximumLength = 4096) const;
    /// An enum by its name; a failure lists what is allowed.
    template<typename E> E choice(std::initializer_list<std::pair<std::string_view, E>> names) const {
        const std::string value = text();
        std::string allowed;
        for (const auto& [name, result] : names) {
            if (name == value)
                return result;
            allowed += (allowed.empty() ? "" : ", ") + std::string(name);
        }
        fail("is \"" + value + "\"; known are " + allowed);
        return names.begin()->second;
    }

    /// Notes every member of this object that is not in `known`: with a typo in it, an optional key would be without
    /// effect and nobody would hear of it. Such a member is no failure, since files of later versions have more.
    void expectOnly(std::initializer_list<std::string_view> known) const;
    /// A sentence for each member noted so far, with file, path and the nearest known key. Those of an array's elements
    /// are one.
    std::vector<std::string> unknownKeys() const;

    bool isNull() const;
    bool isObject() const;
    bool isArray() const;
    bool isString() const;
    bool isNumber() const;
    const Json& raw() const { return *m_value; }
    const std::string& path() const { return m_path; }

    /// Remembers "FILE: PATH message" unless something failed earlier.
    void fail(std::string_view message) const;
    bool failed() const { return m_document->error.has_value(); }
    /// The first failure; only after failed().
    tl::unexpected<Error> error() const { return tl::unexpected<Error>(*m_document->error); }

private:
    struct UnknownKey {
        std::string path;    ///< of the first of its kind
        std::string pattern; ///< its path without the indices
        std::string nearest;
        std::size_t count = 1;
    };
    struct Document {
        std::string file;
        std::optional<Error> error;
        std::vector<UnknownKey> unknown;
        std::size_t unnamed = 0; ///< unknown keys beyond those
    };
    JsonCursor(const Json* value, std::string path, std::shared_ptr<Document> document);

    const Json* m_value;
    std::string m_path;
    std::shared_ptr<Document> m_document;
};

} // namespace shardscope::contract
