// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace shardscope::testing {

/// A TCP port of the loopback address that nobody uses just now; `taken`, if given, receives a socket that occupies it.
int freePort(int* taken = nullptr);

} // namespace shardscope::testing
