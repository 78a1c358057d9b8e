// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"

#include <cstdint>
#include <onnx/onnx_pb.h>
#include <string>
#include <unordered_map>
#include <vector>

namespace shardscope::planner {

/// Where the elements of an initialiser lie.
struct OnnxData {
    std::string file; ///< the graph's own or an external one; empty when the elements are in the parsed text itself
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
};

/// A parsed graph whose large initialisers stay on the disk: their shapes are known, their elements are not read.
struct OnnxFile {
    std::string path;
    onnx::ModelProto proto;
    std::unordered_map<std::string, OnnxData> data; ///< by initialiser
    std::vector<std::string> notes;
};

/// Reads a file of any size. Refused, by file and tensor: what is no ONNX graph, shapes that overflow, elements that do
/// not fit the shape, external data outside the folder or beyond the end of its file. External files that are not
/// there are noted: shapes do not need them.
contract::Result<OnnxFile> openOnnxFile(const std::string& path);

/// Bytes of an element of an ONNX tensor type; 0 for text and unknown types.
std::int64_t onnxElementBytes(std::int32_t type);
/// Elements of a tensor; checked by openOnnxFile() for every initialiser.
std::int64_t onnxElements(const onnx::TensorProto& tensor);

} // namespace shardscope::planner
