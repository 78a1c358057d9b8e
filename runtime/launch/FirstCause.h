// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace shardscope::engine {

/// Finds the first cause among what is seen of a failure. One failing rank makes all others fail: they see a closed
/// connection or hear nothing. What the operating system says of a process weighs more than what a rank says of itself,
/// and that more than what ranks say of each other.
class FirstCause {
public:
    struct Report {
        int rank = -1;
        std::int64_t step = 0;
        std::string phase;
        std::string cause;
    };
    struct Verdict {
        Report first;
        std::vector<Report> others;
        int exitCode = 5;
    };

    void addReport(Report report);
    /// A worker ended with this waitpid() status.
    void addEnd(int rank, int status, std::int64_t step);
    /// A worker does not run because somebody sent it SIGSTOP.
    void addStopped(int rank, std::int64_t step);
    /// A line of its log: the reason of one that ends without a report.
    void addLastWords(int rank, std::string line);

    Verdict verdict() const;

private:
    std::vector<Report> m_reports;       ///< in the order in which they came
    std::map<int, std::string> m_killed; ///< by a signal
    std::map<int, int> m_exitCodes;      ///< of those that ended by themselves
    std::map<int, bool> m_stopped;
    std::map<int, std::string> m_lastWords;
    std::int64_t m_step = 0;
};

} // namespace shardscope::engine
