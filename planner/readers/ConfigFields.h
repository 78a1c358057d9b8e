// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Json.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::planner {

// Bounds of single fields; what they make together is bounded where a network is lowered.
inline constexpr std::int64_t kMaximumLayers = 1 << 14;
inline constexpr std::int64_t kMaximumWidth = 1 << 20;
inline constexpr std::int64_t kMaximumHeads = 1 << 16;
inline constexpr std::int64_t kMaximumIntermediate = 1 << 22;
inline constexpr std::int64_t kMaximumVocabulary = 1 << 26;
inline constexpr std::int64_t kMaximumPositions = 1 << 24;
inline constexpr std::int64_t kMaximumExperts = 1 << 16;

/// The members of one configuration. A member that is null is not the same as one that is left out: only fields for
/// which the library gives null a meaning accept it.
class Fields {
public:
    Fields(const contract::JsonCursor& config, std::string family, std::vector<std::string>& warnings)
        : m_config(config), m_family(std::move(family)), m_warnings(warnings) {}

    bool has(std::string_view key) const;
    bool isNull(std::string_view key) const { return has(key) && m_config.at(key).isNull(); }
    /// `name`, or the common name that the family answers to as well ("n_embd", "hidden_size").
    std::string_view either(std::string_view name, std::string_view commonName) const {
        return !has(name) && has(commonName) ? commonName : name;
    }

    /// A size that every configuration should state; the default is used with a warning.
    std::int64_t size(std::string_view key, std::int64_t maximum, std::int64_t fallback) const;
    /// A size that may be left out or null.
    std::optional<std::int64_t> optionalSize(std::string_view key, std::int64_t maximum) const;
    /// A size whose absence means `fallback` and whose null means nothing.
    std::optional<std::int64_t> nullableSize(std::string_view key, std::int64_t maximum, std::int64_t fallback) const;
    /// A count that may be 0 and is seldom stated.
    std::int64_t count(std::string_view key, std::int64_t maximum, std::int64_t fallback) const {
        return has(key) ? m_config.at(key).integer(0, maximum) : fallback;
    }
    double number(std::string_view key, double fallback, double minimum, double maximum) const {
        return has(key) ? m_config.at(key).number(minimum, maximum) : fallback;
    }
    bool flag(std::string_view key, bool fallback) const { return has(key) ? m_config.at(key).boolean() : fallback; }
    std::string text(std::string_view key, std::string_view fallback) const {
        return has(key) ? m_config.at(key).text(256) : std::string(fallback);
    }
    /// What is wrong with a field, or with the default of one that was left out.
    void fail(std::string_view key, std::string_view message) const;
    bool failed() const { return m_config.failed(); }
    const contract::JsonCursor& config() const { return m_config; }
    const std::string& family() const { return m_family; }
    void warn(std::string text) const { m_warnings.push_back(std::move(text)); }

    /// Fails unless heads divide `hidden` (head size not given) and key heads divide heads. `heads` and `hidden` are
    /// names of fields, which stand in the message.
    void checkHeads(std::string_view headsKey, std::int64_t heads, std::string_view hiddenKey,
                    std::int64_t hidden) const;
    void checkKvHeads(std::string_view headsKey, std::int64_t heads, std::string_view kvKey,
                      std::int64_t kvHeads) const;

private:
    const contract::JsonCursor& m_config;
    std::string m_family;
    std::vector<std::string>& m_warnings;
};

} // namespace shardscope::planner
