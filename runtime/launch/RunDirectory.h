// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"
#include "runtime/launch/RunOptions.h"

namespace shardscope::engine {

/// A fresh run needs a folder without one, in which its settings are then written down; a resumed one the same data and
/// seed. Errors: Usage or BadInput, naming the option.
contract::Result<void> checkRunDirectory(const RunOptions& options);

} // namespace shardscope::engine
