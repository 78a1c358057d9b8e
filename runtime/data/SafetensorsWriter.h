// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/data/Safetensors.h"

#include <functional>
#include <string>
#include <vector>

namespace shardscope::engine {

/// The type of numbers in a file.
enum class StoredType { Float32, BFloat16 };

/// Writes tensors one after the other, whatever memory there is, and waits for the disk. `valuesOf`: the float32 values
/// of a tensor; those of a bf16 file are rounded to the nearest. `isStopped` is asked now and then.
/// Errors: RunFailed, naming the file, when it cannot be created or written (the disk is full); Interrupted.
contract::Result<void> writeSafetensors(const std::string& path, const std::vector<TensorShape>& tensors,
                                        StoredType type,
                                        const std::function<const float*(const std::string& tensor)>& valuesOf,
                                        const std::function<bool()>& isStopped);

} // namespace shardscope::engine
