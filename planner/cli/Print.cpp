// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cli/Print.h"

#include <nlohmann/json.hpp>

#include <cstddef>

namespace shardscope::planner::cli {

std::string withoutControls(std::string_view text) {
    std::string shown;
    shown.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
        if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f) {
            shown += fmt::format("\\x{:02x}", byte);
        } else if (byte == 0xc2 && next >= 0x80 && next < 0xa0) { // U+0080 to U+009F, controls as well
            shown += fmt::format("\\x{:02x}", next);
            ++i;
        } else {
            shown += text[i];
        }
    }
    return shown;
}

void printJson(const contract::OrderedJson& document) {
    fmt::print("{}\n", document.dump(2, ' ', false, contract::OrderedJson::error_handler_t::replace));
}

} // namespace shardscope::planner::cli
