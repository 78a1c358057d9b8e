// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/TextFiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace shardscope::engine {

contract::Result<std::vector<std::string>> textFilesUnder(const std::string& path) {
    namespace fs = std::filesystem;
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status))
        return contract::badInput(fmt::format("--data \"{}\": there is no such file or folder", path));
    if (!fs::is_directory(status))
        return std::vector<std::string>{path};
    std::vector<std::string> files;
    for (fs::recursive_directory_iterator it(path, error), end; !error && it != end; it.increment(error))
        if (it->is_regular_file(error))
            files.push_back(it->path().string());
    if (error)
        return contract::badInput(fmt::format("--data \"{}\": {}", path, error.message()));
    std::sort(files.begin(), files.end());
    return files;
}

} // namespace shardscope::engine
