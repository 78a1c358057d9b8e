// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace shardscope::engine {

/// How much text may be held, by each rank.
inline constexpr std::int64_t kMaximumTextBytes = std::int64_t{1} << 30;

/// A file itself, or the files of a folder (and its folders) in the order of their names. Errors: BadInput.
contract::Result<std::vector<std::string>> textFilesUnder(const std::string& path);

} // namespace shardscope::engine
