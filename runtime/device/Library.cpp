// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/device/Library.h"

#include <fmt/format.h>

#include <climits>
#include <dlfcn.h>
#include <unistd.h>

#ifndef SHARDSCOPE_CUDA_LIBRARY_FOLDER
#define SHARDSCOPE_CUDA_LIBRARY_FOLDER ""
#endif

namespace shardscope::engine {

namespace {

/// The folder of this program, with a slash at its end; empty when it cannot be told.
std::string programFolder() {
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    const std::string whole(path, length > 0 ? static_cast<std::size_t>(length) : 0);
    return whole.substr(0, whole.rfind('/') + 1);
}

} // namespace

contract::Result<Library> Library::load(const std::vector<std::string>& names) {
    const std::string beside = programFolder();
    std::vector<std::string> folders{""};
    if (!beside.empty()) {
        folders.push_back(beside);
        folders.push_back(beside + "../lib/");
    }
    if (const std::string known = SHARDSCOPE_CUDA_LIBRARY_FOLDER; !known.empty())
        folders.push_back(known + "/");
    std::string reason;
    for (const std::string& name : names)
        for (const std::string& folder : folders) {
            if (void* const handle = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL))
                return Library(handle, name);
            const char* const said = dlerror();
            if (reason.empty())
                reason = said != nullptr ? said : "unknown error";
        }
    return contract::runFailed(fmt::format("{} cannot be loaded: {}", names.front(), reason));
}

void* Library::find(const char* symbol) const {
    return dlsym(m_handle, symbol);
}

contract::Result<void> Library::missing(const char* symbol) const {
    return contract::runFailed(fmt::format("{} has no function {}: it is another version", m_name, symbol));
}

} // namespace shardscope::engine
