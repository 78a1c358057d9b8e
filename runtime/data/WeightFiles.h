// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace shardscope::engine {

/// Weights from elsewhere: a .safetensors file, or a Hugging Face folder with model.safetensors, or with
/// model.safetensors.index.json and the files it names. Mapped, never copied as a whole; fp32, fp16 and bf16.
class WeightFiles {
public:
    /// Files are hostile: headers are bounded, every tensor must lie in its file and have as many bytes as its shape
    /// says. Errors: BadInput, naming the file and the tensor.
    static contract::Result<WeightFiles> open(const std::string& path);

    bool has(const std::string& tensor) const { return m_tensors.contains(tensor); }
    std::vector<std::string> names() const;
    /// Errors: BadInput, when there is no such tensor or its shape differs.
    contract::Result<void> check(const std::string& tensor, const std::vector<std::int64_t>& shape) const;

    enum class Type { F32, F16, BF16 };
    struct Tensor {
        Type type = Type::F32;
        std::vector<std::int64_t> shape;
        const std::byte* data = nullptr;
        std::string file;
    };
    /// A tensor that has been checked.
    const Tensor& at(const std::string& tensor) const { return m_tensors.at(tensor); }
    /// One element, in the order of the file.
    static float valueAt(const Tensor& tensor, std::int64_t element);

private:
    class Mapping;
    contract::Result<void> add(const std::string& file);

    std::string m_path;
    std::vector<std::shared_ptr<Mapping>> m_mappings;
    std::map<std::string, Tensor> m_tensors;
};

} // namespace shardscope::engine
