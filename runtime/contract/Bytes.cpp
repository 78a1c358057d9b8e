// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/contract/Bytes.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace shardscope::contract {

std::optional<std::int64_t> checkedMultiply(std::int64_t a, std::int64_t b) {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(a, b, &product))
        return std::nullopt;
    return product;
}

Result<std::int64_t> parseBytes(std::string_view text) {
    constexpr std::array<std::pair<std::string_view, double>, 9> kUnits{{{"KiB", 0x1p10},
                                                                         {"MiB", 0x1p20},
                                                                         {"GiB", 0x1p30},
                                                                         {"TiB", 0x1p40},
                                                                         {"kB", 1e3},
                                                                         {"MB", 1e6},
                                                                         {"GB", 1e9},
                                                                         {"TB", 1e12},
                                                                         {"B", 1}}};
    const auto wrong = [&] {
        return usageError(
            fmt::format("\"{}\" is not a size; write for example 16GiB, 500MiB, 24GB or plain bytes", text));
    };
    double number = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (status != std::errc{} || !std::isfinite(number) || number < 0)
        return wrong();
    std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    while (!unit.empty() && unit.front() == ' ')
        unit.remove_prefix(1);
    double scale = unit.empty() ? 1 : 0;
    for (const auto& [name, factor] : kUnits) {
        if (unit == name)
            scale = factor;
    }
    if (scale == 0)
        return wrong();
    const double bytes = std::floor(number * scale);
    if (bytes > 0x1p62)
        return usageError(fmt::format("\"{}\" is more memory than can be addressed", text));
    return static_cast<std::int64_t>(bytes);
}

std::string describeBytes(std::int64_t bytes) {
    const double value = static_cast<double>(bytes);
    if (std::abs(value) >= 0x1p30)
        return fmt::format("{:.2f} GiB", value / 0x1p30);
    if (std::abs(value) >= 0x1p20)
        return fmt::format("{:.1f} MiB", value / 0x1p20);
    if (std::abs(value) >= 0x1p10)
        return fmt::format("{:.1f} KiB", value / 0x1p10);
    return fmt::format("{} B", bytes);
}

} // namespace shardscope::contract
