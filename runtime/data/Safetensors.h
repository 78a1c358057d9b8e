// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::engine {

struct TensorShape {
    std::string name;
    std::vector<std::int64_t> shape;
    std::int64_t elements() const;
};

/// The JSON header of a file of tensors that lie one after the other, padded so that they begin aligned. `dtype`:
/// "F32".
std::string safetensorsHeader(const std::vector<TensorShape>& tensors, const char* dtype, std::int64_t elementBytes);

/// A safetensors file of fp32 tensors, mapped into memory: 8 bytes header length, a JSON header, the tensors.
class SafetensorsFile {
public:
    /// Creates the file in its full size, tensors all zero. Errors: RunFailed.
    static contract::Result<std::unique_ptr<SafetensorsFile>> create(const std::string& path,
                                                                     const std::vector<TensorShape>& tensors);
    /// Opens a file that must hold exactly `tensors`. Errors: BadInput.
    static contract::Result<std::unique_ptr<SafetensorsFile>> open(const std::string& path,
                                                                   const std::vector<TensorShape>& tensors);
    ~SafetensorsFile();
    SafetensorsFile(const SafetensorsFile&) = delete;
    SafetensorsFile& operator=(const SafetensorsFile&) = delete;

    /// The tensor's values; null when there is no such tensor.
    float* tensor(const std::string& name) const;
    /// The whole file.
    std::string_view content() const {
        return {reinterpret_cast<const char*>(m_base), static_cast<std::size_t>(m_bytes)};
    }
    /// Waits until the content is on the disk. Errors: RunFailed.
    contract::Result<void> sync();

private:
    SafetensorsFile() = default;
    std::string m_path;
    int m_descriptor = -1;
    std::byte* m_base = nullptr;
    std::int64_t m_bytes = 0;
    std::map<std::string, std::int64_t> m_offsets; ///< from the start of the file
};

} // namespace shardscope::engine
