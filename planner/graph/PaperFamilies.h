// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/graph/Graph.h"

#include <cstdint>
#include <string>
#include <vector>

namespace shardscope::planner {

/// The families that OSDP (IJCAI 2023, section 4) is measured on: decoders in the manner of GPT-2 that are narrow and
/// deep, wide and shallow, or inconsistent, which means that the width changes along the depth.
struct PaperFamily {
    std::string name;                 ///< "narrow-deep", "wide-shallow", "inconsistent"
    std::int64_t layers = 0;          ///< 0: the family's usual number
    std::vector<std::int64_t> hidden; ///< one width, or the widths of an inconsistent network; empty: the usual ones
    std::int64_t vocabulary = 50257;
    std::int64_t positions = 1024;
};

/// "narrow-deep, wide-shallow, inconsistent".
std::string paperFamilyNames();

/// Heads are 64 wide; `layers` of an inconsistent network are shared out evenly among its widths, and a projection
/// without bias leads from one width to the next. Errors: Usage.
contract::Result<GraphPointer> makePaperFamily(const PaperFamily& family, std::int64_t sequence);

} // namespace shardscope::planner
