// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/readers/SlidingWindows.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace shardscope::planner {

namespace {

/// The layers with a window where `layer_types` does not name them.
enum class Rule { Every, FromLayer, AllButEachNth };

struct FamilyWindow {
    std::string_view family;
    std::int64_t keys; ///< when left out; 0: no window
    Rule rule;
    bool hasSwitch;     ///< `use_sliding_window` turns it on
    bool hasLayerTypes; ///< `layer_types` comes first
};
constexpr std::array kWindows{
    FamilyWindow{"mistral", 4096, Rule::Every, false, false},
    FamilyWindow{"mixtral", 0, Rule::Every, false, false},
    FamilyWindow{"phi3", 0, Rule::Every, false, false},
    FamilyWindow{"qwen2", 4096, Rule::FromLayer, true, true},
    FamilyWindow{"qwen3", 4096, Rule::FromLayer, true, true},
    FamilyWindow{"qwen2_moe", 4096, Rule::FromLayer, true, false},
    FamilyWindow{"qwen3_moe", 4096, Rule::Every, true, false},
    FamilyWindow{"gemma2", 4096, Rule::AllButEachNth, false, true},
    FamilyWindow{"gemma3_text", 4096, Rule::AllButEachNth, false, true},
};

/// The first layer with a window, or the period of those without.
std::int64_t readPlace(const Fields& fields, Rule rule) {
    if (rule == Rule::FromLayer)
        return fields.count("max_window_layers", kMaximumLayers, 28);
    return fields.family() == "gemma3_text" ? fields.optionalSize("sliding_window_pattern", kMaximumLayers).value_or(6)
                                            : 2;
}

bool readType(const contract::JsonCursor& type) {
    return type.choice<bool>({{"sliding_attention", true}, {"full_attention", false}});
}

} // namespace

LayerWindows readLayerWindows(const Fields& fields, std::int64_t layers) {
    LayerWindows windows;
    for (const FamilyWindow& entry : kWindows) {
        if (entry.family != fields.family())
            continue;
        const bool isOn = !entry.hasSwitch || fields.flag("use_sliding_window", false);
        const std::int64_t keys = entry.keys > 0
                                      ? fields.nullableSize("sliding_window", kMaximumPositions, entry.keys).value_or(0)
                                      : fields.optionalSize("sliding_window", kMaximumPositions).value_or(0);
        const std::int64_t place = entry.rule == Rule::Every ? 0 : readPlace(fields, entry.rule);
        const auto types = entry.hasLayerTypes ? fields.config().find("layer_types") : std::nullopt;
        if (types && types->arraySize(static_cast<std::size_t>(kMaximumLayers)) != static_cast<std::size_t>(layers) &&
            !fields.failed())
            types->fail(fmt::format("must name the attention of {} layers", layers));
        if (fields.failed())
            return windows;
        windows.keys = isOn ? keys : 0;
        // gemma3 sees both ways then, half a window each.
        if (fields.family() == "gemma3_text" && fields.flag("use_bidirectional_attention", false))
            windows.keys = windows.keys > 0 ? 2 * (windows.keys / 2 + 1) - 1 : 0;
        for (std::int64_t layer = 0; layer < layers && !fields.failed(); ++layer) {
            const bool byRule = entry.rule == Rule::Every ||
                                (entry.rule == Rule::FromLayer ? layer >= place : (layer + 1) % place != 0);
            windows.windowed.push_back(types ? readType(types->element(static_cast<std::size_t>(layer))) : byRule);
        }
    }
    return windows;
}

} // namespace shardscope::planner
