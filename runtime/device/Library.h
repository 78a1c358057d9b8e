// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"

#include <string>
#include <vector>

namespace shardscope::engine {

/// A shared library that is loaded when it is needed: the program starts, and trains on CPU cores, where it is missing.
/// Stays loaded as long as the process lives, since GPU libraries do not survive being unloaded.
class Library {
public:
    /// Tries each name in the system's places, then beside this program and in the folders that were known when it was
    /// built. Errors: RunFailed, with what the loader says of the first name.
    static contract::Result<Library> load(const std::vector<std::string>& names);

    /// Null where the library does not have it.
    void* find(const char* symbol) const;
    /// Fills in a function pointer. Errors: RunFailed, naming the function.
    template<typename Function> contract::Result<void> resolve(Function*& function, const char* symbol) const {
        function = reinterpret_cast<Function*>(find(symbol));
        return function != nullptr ? contract::Result<void>() : missing(symbol);
    }
    const std::string& name() const { return m_name; }
    void* handle() const { return m_handle; }

private:
    Library(void* handle, std::string name) : m_handle(handle), m_name(std::move(name)) {}
    contract::Result<void> missing(const char* symbol) const;
    void* m_handle;
    std::string m_name;
};

} // namespace shardscope::engine
