// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"

#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace shardscope::engine {

/// A worker process with its output pipes. It dies with the coordinator, however that ends.
class WorkerProcess {
public:
    /// Starts this very program with `arguments`, in a process group of its own, so that a terminal's Ctrl-C reaches
    /// the coordinator alone. Errors: RunFailed.
    static contract::Result<WorkerProcess> start(int rank, const std::vector<std::string>& arguments,
                                                 const std::vector<std::string>& environment);

    int rank() const { return m_rank; }
    pid_t pid() const { return m_pid; }
    int outputDescriptor() const { return m_output.descriptor; }
    int errorDescriptor() const { return m_error.descriptor; }

    /// Reads what is there; complete lines are appended to `lines`. False at the end of the stream.
    bool readOutput(std::vector<std::string>& lines) { return read(m_output, lines); }
    bool readError(std::vector<std::string>& lines) { return read(m_error, lines); }

    /// Notes its end if it has ended.
    void poll();
    bool isRunning() const { return !m_status; }
    /// The status of waitpid().
    int status() const { return *m_status; }
    /// Whether the kernel says that it is stopped (SIGSTOP).
    bool isStopped() const;
    void signal(int number) const;

private:
    struct Stream {
        int descriptor = -1;
        std::string rest;
    };
    static bool read(Stream& stream, std::vector<std::string>& lines);

    int m_rank = 0;
    pid_t m_pid = -1;
    Stream m_output;
    Stream m_error;
    std::optional<int> m_status;
};

} // namespace shardscope::engine
