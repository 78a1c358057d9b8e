// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/launch/WorkerProcess.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace shardscope::engine {

namespace {

constexpr int kStartFailed = 127;

std::vector<char*> pointersTo(const std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (const std::string& text : texts)
        pointers.push_back(const_cast<char*>(text.c_str())); // execve's signature
    pointers.push_back(nullptr);
    return pointers;
}

} // namespace

contract::Result<WorkerProcess> WorkerProcess::start(int rank, const std::vector<std::string>& arguments,
                                                     const std::vector<std::string>& environment) {
    int output[2];
    int error[2];
    if (pipe2(output, O_CLOEXEC) != 0 || pipe2(error, O_CLOEXEC) != 0)
        return contract::runFailed(fmt::format("cannot make a pipe for rank {}: {}", rank, std::strerror(errno)));
    // Everything is prepared before fork(): a child of a process with threads may only make system calls.
    const std::vector<char*> argv = pointersTo(arguments);
    const std::vector<char*> envp = pointersTo(environment);
    const pid_t parent = getpid();
    // Until the child is itself, a stop must not be swallowed by the handlers it has from us.
    sigset_t stops;
    sigset_t before;
    sigemptyset(&stops);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &stops, &before);
    const pid_t pid = fork();
    if (pid == 0) {
        ::signal(SIGINT, SIG_DFL);
        ::signal(SIGTERM, SIG_DFL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(kStartFailed);
        setpgid(0, 0);
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, nullptr);
        dup2(output[1], STDOUT_FILENO);
        dup2(error[1], STDERR_FILENO);
        execve("/proc/self/exe", argv.data(), envp.data());
        _exit(kStartFailed);
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    close(output[1]);
    close(error[1]);
    if (pid < 0)
        return contract::runFailed(fmt::format("cannot start rank {}: {}", rank, std::strerror(errno)));
    for (const int descriptor : {output[0], error[0]})
        fcntl(descriptor, F_SETFL, O_NONBLOCK);
    WorkerProcess process;
    process.m_rank = rank;
    process.m_pid = pid;
    process.m_output.descriptor = output[0];
    process.m_error.descriptor = error[0];
    return process;
}

bool WorkerProcess::read(Stream& stream, std::vector<std::string>& lines) {
    if (stream.descriptor < 0)
        return false;
    char buffer[65536];
    for (;;) {
        const ssize_t count = ::read(stream.descriptor, buffer, sizeof buffer);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0 && errno == EAGAIN)
            return true;
        if (count <= 0) {
            close(stream.descriptor);
            stream.descriptor = -1;
            return false;
        }
        stream.rest.append(buffer, static_cast<std::size_t>(count));
        std::size_t begin = 0;
        for (std::size_t end = stream.rest.find('\n'); end != std::string::npos; end = stream.rest.find('\n', begin)) {
            lines.push_back(stream.rest.substr(begin, end - begin));
            begin = end + 1;
        }
        stream.rest.erase(0, begin);
    }
}

void WorkerProcess::poll() {
    int status = 0;
    if (!m_status && waitpid(m_pid, &status, WNOHANG) == m_pid)
        m_status = status;
}

bool WorkerProcess::isStopped() const {
    if (m_status)
        return false;
    std::ifstream file(fmt::format("/proc/{}/stat", m_pid));
    std::string text;
    std::getline(file, text);
    // "pid (name) S ...": the name may hold anything, so the state follows the last parenthesis.
    const std::size_t at = text.rfind(") ");
    return at != std::string::npos && at + 2 < text.size() && text[at + 2] == 'T';
}

void WorkerProcess::signal(int number) const {
    if (!m_status)
        kill(m_pid, number);
}

} // namespace shardscope::engine
