// SPDX-License-Identifier: GPL-3.0-or-later
// Stands for the ONNX reader where the onnx library was not found.
#include "planner/readers/OnnxReader.h"

namespace shardscope::planner {

contract::Result<GraphPointer> readOnnx(const std::string& path, const std::string&, std::int64_t) {
    return contract::badInput(path + ": is an ONNX file; this program was built without the onnx library (Debian "
                                     "libonnx-dev)");
}

} // namespace shardscope::planner
