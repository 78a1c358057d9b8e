// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <tl/expected.hpp>

#include <string>
#include <utility>

namespace shardscope::contract {

/// What went wrong, as far as a caller or a shell script must tell cases apart. See exitCode().
enum class ErrorKind {
    Usage,       ///< the command line or a request contradicts itself
    BadInput,    ///< a file or a value in it is wrong; the message names file and field
    Infeasible,  ///< no plan fits the memory limit
    RunFailed,   ///< training started and failed
    Interrupted, ///< ended by the user's signal
    Cancelled,   ///< superseded by newer work; neither a failure nor an answer
};

struct Error {
    ErrorKind kind = ErrorKind::BadInput;
    std::string message; ///< one sentence: where, what, and what would be right
};

/// Expected failures are values. No exception crosses a room, a thread or a process.
template<typename T> using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> failure(ErrorKind kind, std::string message) {
    return tl::unexpected<Error>(Error{kind, std::move(message)});
}
inline tl::unexpected<Error> badInput(std::string message) {
    return failure(ErrorKind::BadInput, std::move(message));
}
inline tl::unexpected<Error> usageError(std::string message) {
    return failure(ErrorKind::Usage, std::move(message));
}
inline tl::unexpected<Error> runFailed(std::string message) {
    return failure(ErrorKind::RunFailed, std::move(message));
}

/// The exit codes of the three programs.
inline int exitCode(ErrorKind kind) {
    switch (kind) {
    case ErrorKind::Usage:
        return 2;
    case ErrorKind::BadInput:
        return 3;
    case ErrorKind::Infeasible:
        return 4;
    case ErrorKind::RunFailed:
        return 5;
    case ErrorKind::Interrupted:
    case ErrorKind::Cancelled:
        return 130;
    }
    return 5;
}

} // namespace shardscope::contract
