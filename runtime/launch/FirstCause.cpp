// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/launch/FirstCause.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <sys/wait.h>
#include <utility>

namespace shardscope::engine {

namespace {

/// The rank that a report complains about: "... rank 2 closed its connection", "... rank 2 did not send".
std::optional<int> accused(const FirstCause::Report& report) {
    const std::size_t at = report.cause.find(": rank ");
    int rank = 0;
    if (at != std::string::npos && std::sscanf(report.cause.c_str() + at, ": rank %d", &rank) == 1)
        return rank;
    return std::nullopt;
}

} // namespace

void FirstCause::addReport(Report report) {
    m_reports.push_back(std::move(report));
}
void FirstCause::addLastWords(int rank, std::string line) {
    m_lastWords[rank] = std::move(line);
}

void FirstCause::addEnd(int rank, int status, std::int64_t step) {
    m_step = std::max(m_step, step);
    if (WIFSIGNALED(status))
        m_killed[rank] =
            fmt::format("the process was killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        m_exitCodes[rank] = WEXITSTATUS(status);
}

void FirstCause::addStopped(int rank, std::int64_t step) {
    m_step = std::max(m_step, step);
    m_stopped[rank] = true;
}

FirstCause::Verdict FirstCause::verdict() const {
    Verdict verdict;
    // Where the run was: any rank's report knows the phase.
    std::string phase = !m_reports.empty() ? m_reports.front().phase : m_step > 1 ? "step" : "start";
    std::int64_t step = m_reports.empty() ? m_step : m_reports.front().step;
    const auto isOwnFault = [](const Report& report) { return !accused(report); };
    if (!m_killed.empty()) {
        verdict.first = {m_killed.begin()->first, step, phase, m_killed.begin()->second};
    } else if (!m_stopped.empty()) {
        verdict.first = {m_stopped.begin()->first, step, phase,
                         "the process is stopped and does not take part any more"};
    } else if (const auto own = std::find_if(m_reports.begin(), m_reports.end(), isOwnFault); own != m_reports.end()) {
        verdict.first = *own;
        if (const auto code = m_exitCodes.find(own->rank); code != m_exitCodes.end() && code->second > 0)
            verdict.exitCode = code->second;
    } else if (!m_exitCodes.empty() && m_reports.empty()) {
        const auto& [rank, code] = *m_exitCodes.begin();
        const auto words = m_lastWords.find(rank);
        verdict.first = {rank, m_step, "start",
                         words != m_lastWords.end() ? words->second
                                                    : fmt::format("the process ended with exit code {}", code)};
        verdict.exitCode = code > 0 && code < 127 ? code : 5;
    } else if (!m_reports.empty()) {
        // Everybody complains about a neighbour: the first to be complained about that does not complain itself.
        Report first = m_reports.front();
        for (const Report& report : m_reports) {
            const int blamed = *accused(report);
            if (std::none_of(m_reports.begin(), m_reports.end(), [&](const Report& r) { return r.rank == blamed; })) {
                first = {blamed, report.step, report.phase, report.cause};
                break;
            }
        }
        verdict.first = first;
    } else {
        verdict.first = {-1, m_step, "start", "a worker ended without a word"};
    }
    for (const Report& report : m_reports)
        if (report.rank != verdict.first.rank)
            verdict.others.push_back(report);
    return verdict;
}

} // namespace shardscope::engine
