// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/readers/ConfigFields.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace shardscope::planner {

bool Fields::has(std::string_view key) const {
    return m_config.raw().contains(std::string(key));
}

void Fields::fail(std::string_view key, std::string_view message) const {
    if (has(key))
        m_config.at(key).fail(message);
    else
        m_config.fail(fmt::format("leaves {} to its default, which {}", key, message));
}

std::int64_t Fields::size(std::string_view key, std::int64_t maximum, std::int64_t fallback) const {
    if (has(key))
        return m_config.at(key).integer(1, maximum);
    m_warnings.push_back(fmt::format("{} is not given; the default {} of {} is used", key, fallback, m_family));
    return fallback;
}

std::optional<std::int64_t> Fields::optionalSize(std::string_view key, std::int64_t maximum) const {
    if (const auto field = m_config.find(key))
        return field->integer(1, maximum);
    return std::nullopt;
}

std::optional<std::int64_t> Fields::nullableSize(std::string_view key, std::int64_t maximum,
                                                 std::int64_t fallback) const {
    if (isNull(key))
        return std::nullopt;
    return optionalSize(key, maximum).value_or(fallback);
}

void Fields::checkHeads(std::string_view headsKey, std::int64_t heads, std::string_view hiddenKey,
                        std::int64_t hidden) const {
    if (hidden % heads == 0)
        return;
    // A head count that was left out has no place of its own in the file.
    if (has(headsKey))
        fail(headsKey, fmt::format("{} does not divide {} {}", heads, hiddenKey, hidden));
    else
        fail(hiddenKey, fmt::format("{} is not a multiple of the default {} {}", hidden, headsKey, heads));
}

void Fields::checkKvHeads(std::string_view headsKey, std::int64_t heads, std::string_view kvKey,
                          std::int64_t kvHeads) const {
    if (heads % kvHeads == 0)
        return;
    if (has(kvKey))
        fail(kvKey, fmt::format("{} does not divide {} {}", kvHeads, headsKey, heads));
    else
        fail(headsKey, fmt::format("{} is not a multiple of the default {} {}", heads, kvKey, kvHeads));
}

} // namespace shardscope::planner
