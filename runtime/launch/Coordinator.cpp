// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/launch/Coordinator.h"

#include "runtime/collective/KeyValueServer.h"
#include "runtime/contract/Bytes.h"
#include "runtime/contract/Json.h"
#include "runtime/contract/Telemetry.h"
#include "runtime/data/Dataset.h"
#include "runtime/device/HostMemory.h"
#include "runtime/execute/InitialWeights.h"
#include "runtime/execute/PlanSetup.h"
#include "runtime/launch/FirstCause.h"
#include "runtime/launch/PlanBook.h"
#include "runtime/launch/Rendezvous.h"
#include "runtime/launch/RunDirectory.h"
#include "runtime/launch/TelemetryWriter.h"
#include "runtime/launch/WorkerProcess.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace shardscope::engine {

namespace {

std::atomic<int> stopSignals{0};
void onStopSignal(int) {
    ++stopSignals;
}

constexpr int kPollMilliseconds = 50;
/// How long the reports of other ranks are awaited after the first sign of a failure.
constexpr double kGatherReportsSeconds = 0.7;

/// Set by the coordinator for each worker, whatever it inherited.
constexpr std::array<std::string_view, 7> kOwnVariables{"RANK=",
                                                        "WORLD_SIZE=",
                                                        "LOCAL_RANK=",
                                                        "MASTER_ADDR=",
                                                        "MASTER_PORT=",
                                                        "OPENBLAS_NUM_THREADS=",
                                                        "TORCHELASTIC_USE_AGENT_STORE="};

class Coordinator {
public:
    explicit Coordinator(RunOptions options) : m_options(std::move(options)), m_epoch(monotonicSeconds()) {}

    contract::Result<void> prepare();
    int run();

private:
    enum class Outcome { Done, Stopped, Failed };

    contract::Result<void> takeTokenizerOfResumed();
    contract::Result<void> checkInit() const;
    contract::Result<void> openRunDirectory();
    contract::Result<void> prepareRestart();
    contract::Result<void> startWorkers();
    Outcome superviseWorkers();
    void readStreams();
    void passOn(const std::string& line);
    void forwardStop();
    void noteEnds();
    void endWorkers();
    void emit(int rank, const contract::EventBody& body);
    void log(const std::string& level, const std::string& message);
    int finish(Outcome outcome);

    RunOptions m_options;
    double m_epoch;
    std::string m_planText;
    PlanSetup m_setup;
    std::string m_planCopy;
    int m_telemetryFile = -1;
    std::int64_t m_sequence = 0;
    std::unique_ptr<KeyValueServer> m_server;
    std::vector<WorkerProcess> m_workers;
    std::vector<int> m_logFiles;
    FirstCause m_cause;
    std::vector<double> m_stoppedSince; ///< by rank; 0: it runs
    double m_failedAt = 0;              ///< 0: nothing has failed
    int m_forwardedStops = 0;
    bool m_endedBeforeSteps = false; ///< a stop ended a worker that had not begun
    bool m_stopped = false;          ///< a worker ended early because it was asked to
    std::int64_t m_lastStep = 0;
    std::int64_t m_checkpointStep = 0;
    int m_failureCode = 5;
    std::string m_failureReason;
};

contract::Result<void> Coordinator::prepare() {
    if (auto device = checkDevice(m_options.device); !device)
        return device;
    auto text = contract::readTextFile(m_options.planPath);
    if (!text)
        return tl::unexpected(text.error());
    m_planText = std::move(*text);
    const auto plan = contract::parsePlan(m_planText, m_options.planPath);
    if (!plan)
        return tl::unexpected(plan.error());
    auto setup = preparePlan(*plan, {m_options.workers, m_options.learningRate, m_options.deviceKind()});
    if (!setup)
        return tl::unexpected(namePlan(setup.error(), m_options.planPath));
    m_setup = std::move(*setup);
    if (auto tokenizer = takeTokenizerOfResumed(); !tokenizer)
        return tokenizer;
    if (auto data = checkDataset({m_options.data, m_options.seed, m_setup.training.sequence,
                                  m_setup.architecture.vocabulary, m_options.tokenizer});
        !data)
        return data;
    if (auto checked = checkInit(); !checked)
        return checked;
    // Each worker knows what its own GPU has free.
    const bool isCpu = m_options.deviceKind() == DeviceKind::Cpu;
    const std::int64_t needed = isCpu ? m_setup.table.totalBytes() * m_setup.ranks : 0;
    if (const std::int64_t available = availableMemoryBytes(); needed > available)
        return contract::runFailed(
            fmt::format("{} workers need {} ({} bytes), more than the {} ({} bytes) of memory available", m_setup.ranks,
                        contract::describeBytes(needed), needed, contract::describeBytes(available), available));
    // Occupied ports are found before anything is written.
    const auto port = requestedPort();
    if (!port)
        return tl::unexpected(port.error());
    auto server = KeyValueServer::listen("127.0.0.1", *port);
    if (!server)
        return tl::unexpected(server.error());
    m_server = std::move(*server);
    if (m_options.runDirectory.empty())
        m_options.runDirectory = defaultRunDirectory(*plan);
    return openRunDirectory();
}

/// A resumed run goes on with the tokenizer it has: its data are checked with that one.
contract::Result<void> Coordinator::takeTokenizerOfResumed() {
    if (!m_options.resume)
        return {};
    const auto settings = readRunSettings(m_options.runDirectory);
    if (!settings)
        return tl::unexpected(settings.error());
    if (!*settings || !(*settings)->tokenizer)
        return {};
    const auto tokenizer = openRunTokenizer(**settings, m_options.tokenizer, m_setup.architecture.vocabulary);
    if (!tokenizer)
        return tl::unexpected(tokenizer.error());
    m_options.tokenizer = (*tokenizer)->path();
    return {};
}

contract::Result<void> Coordinator::checkInit() const {
    if (m_options.init.empty())
        return {};
    const auto files = WeightFiles::open(m_options.init);
    if (!files)
        return tl::unexpected(files.error());
    return checkInitialWeights(m_setup, *files);
}

contract::Result<void> Coordinator::openRunDirectory() {
    namespace fs = std::filesystem;
    std::error_code error;
    const fs::path folder = fs::absolute(m_options.runDirectory, error).lexically_normal();
    fs::create_directories(folder, error);
    if (error)
        return contract::runFailed(
            fmt::format("--run-dir \"{}\": cannot be created: {}", m_options.runDirectory, error.message()));
    m_options.runDirectory = folder.string();
    if (auto checked = checkRunDirectory(m_options); !checked)
        return checked;
    m_planCopy = (folder / "plan.json").string();
    if (auto copied = contract::writeFileAtomically(m_planCopy, m_planText); !copied)
        return copied;
    const std::string lines = (folder / "run.ndjson").string();
    m_telemetryFile =
        open(lines.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (m_options.resume ? 0 : O_TRUNC), 0644);
    if (m_telemetryFile < 0)
        return contract::runFailed(lines + ": cannot be written: " + std::strerror(errno));
    for (std::int64_t rank = 0; rank < m_setup.ranks; ++rank) {
        const std::string log = (folder / fmt::format("rank-{}.log", rank)).string();
        m_logFiles.push_back(open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    }
    return {};
}

void Coordinator::emit(int rank, const contract::EventBody& body) {
    passOn(contract::formatEvent({{monotonicSeconds() - m_epoch, rank, m_sequence++}, body}));
}

void Coordinator::passOn(const std::string& line) {
    const std::string whole = line + "\n";
    writeAll(STDOUT_FILENO, whole);
    writeAll(m_telemetryFile, whole);
}

void Coordinator::log(const std::string& level, const std::string& message) {
    std::fprintf(stderr, "%s: %s\n", level.c_str(), message.c_str());
    emit(-1, contract::LogEvent{level, message});
}

contract::Result<void> Coordinator::startWorkers() {
    std::vector<std::string> environment;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        const bool ours = std::any_of(kOwnVariables.begin(), kOwnVariables.end(),
                                      [&](std::string_view name) { return text.starts_with(name); });
        if (!ours)
            environment.emplace_back(text);
    }
    environment.push_back(fmt::format("WORLD_SIZE={}", m_setup.ranks));
    environment.push_back("MASTER_ADDR=127.0.0.1");
    environment.push_back(fmt::format("MASTER_PORT={}", m_server->port()));
    environment.push_back("OPENBLAS_NUM_THREADS=1");
    environment.push_back(fmt::format("{}={:.9f}", kEpochVariable, m_epoch));
    const std::vector<std::string> arguments = workerArguments(m_options, m_planCopy, m_setup.ranks);
    m_workers.clear();
    for (int rank = 0; rank < m_setup.ranks; ++rank) {
        std::vector<std::string> own = environment;
        own.push_back(fmt::format("RANK={}", rank));
        own.push_back(fmt::format("LOCAL_RANK={}", rank));
        auto worker = WorkerProcess::start(rank, arguments, own);
        if (!worker)
            return tl::unexpected(worker.error());
        m_workers.push_back(std::move(*worker));
    }
    return {};
}

void Coordinator::readStreams() {
    for (WorkerProcess& worker : m_workers) {
        std::vector<std::string> lines;
        worker.readOutput(lines);
        for (const std::string& line : lines) {
            const auto event = contract::parseEvent(line);
            if (!event) {
                log("warning", fmt::format("rank {} wrote a line that is not telemetry: {}", worker.rank(), line));
                continue;
            }
            if (const auto* failure = std::get_if<contract::FailureEvent>(&event->body)) {
                m_cause.addReport({worker.rank(), failure->step, failure->phase, failure->cause});
                if (m_failedAt == 0)
                    m_failedAt = monotonicSeconds();
                continue; // told once the first cause is known
            }
            if (const auto* step = std::get_if<contract::StepEvent>(&event->body))
                m_lastStep = step->step;
            if (const auto* checkpoint = std::get_if<contract::CheckpointEvent>(&event->body))
                m_checkpointStep = checkpoint->step;
            passOn(line);
        }
        lines.clear();
        worker.readError(lines);
        for (const std::string& line : lines) {
            std::fprintf(stderr, "%s\n", line.c_str());
            writeAll(m_logFiles[static_cast<std::size_t>(worker.rank())], line + "\n");
            m_cause.addLastWords(worker.rank(), line);
        }
    }
}

void Coordinator::forwardStop() {
    const int stops = stopSignals;
    if (stops == m_forwardedStops)
        return;
    m_forwardedStops = stops;
    if (stops == 1)
        log("info", "stopping: the step is finished and a checkpoint written; a second signal ends the run at once");
    for (const WorkerProcess& worker : m_workers)
        worker.signal(stops == 1 ? SIGTERM : SIGKILL);
}

/// Looks for workers that ended, or are stopped while others wait for them.
void Coordinator::noteEnds() {
    for (WorkerProcess& worker : m_workers) {
        const bool wasRunning = worker.isRunning();
        worker.poll();
        if (!wasRunning || worker.isRunning())
            continue;
        const int status = worker.status();
        const bool finishedItsStep = WIFEXITED(status) && WEXITSTATUS(status) == 130; // whoever asked for the stop
        // One that we end by the first signal had not come to catching it: there is nothing to save yet.
        const bool endedByUs =
            m_forwardedStops > 0 && WIFSIGNALED(status) && (WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGKILL);
        m_stopped = m_stopped || finishedItsStep || endedByUs;
        m_endedBeforeSteps = m_endedBeforeSteps || endedByUs;
        if ((WIFEXITED(status) && WEXITSTATUS(status) == 0) || finishedItsStep || endedByUs)
            continue;
        m_cause.addEnd(worker.rank(), status, m_lastStep + 1);
        if (m_failedAt == 0)
            m_failedAt = monotonicSeconds();
    }
    // A rank that computes for long is not lost; one that the kernel does not run is, whatever the others notice of it.
    const double now = monotonicSeconds();
    m_stoppedSince.resize(m_workers.size(), 0);
    for (const WorkerProcess& worker : m_workers) {
        double& since = m_stoppedSince[static_cast<std::size_t>(worker.rank())];
        if (!worker.isStopped()) {
            since = 0;
            continue;
        }
        since = since == 0 ? now : since;
        if (m_failedAt > 0 || now - since > m_options.timeout()) {
            m_cause.addStopped(worker.rank(), m_lastStep + 1);
            m_failedAt = m_failedAt == 0 ? now : m_failedAt;
        }
    }
}

void Coordinator::endWorkers() {
    for (const WorkerProcess& worker : m_workers)
        worker.signal(SIGKILL);
    for (WorkerProcess& worker : m_workers)
        while (worker.isRunning()) {
            usleep(2000);
            worker.poll();
        }
    readStreams();
}

Coordinator::Outcome Coordinator::superviseWorkers() {
    for (;;) {
        std::vector<pollfd> waiting;
        for (const WorkerProcess& worker : m_workers)
            for (const int descriptor : {worker.outputDescriptor(), worker.errorDescriptor()})
                if (descriptor >= 0)
                    waiting.push_back({descriptor, POLLIN, 0});
        poll(waiting.data(), waiting.size(), kPollMilliseconds);
        readStreams();
        forwardStop();
        noteEnds();
        const bool allEnded = std::none_of(m_workers.begin(), m_workers.end(),
                                           [](const WorkerProcess& worker) { return worker.isRunning(); });
        if (m_failedAt > 0 && (allEnded || monotonicSeconds() - m_failedAt > kGatherReportsSeconds)) {
            endWorkers();
            // A rank may miss one that a stop ended before its first step, and say so first.
            return m_forwardedStops > 1 || m_endedBeforeSteps ? Outcome::Stopped : Outcome::Failed;
        }
        if (m_endedBeforeSteps && !allEnded) {
            endWorkers(); // they would wait for the one that is gone
            return Outcome::Stopped;
        }
        if (allEnded) {
            readStreams();
            return m_stopped ? Outcome::Stopped : Outcome::Done;
        }
    }
}

int Coordinator::run() {
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGXFSZ, SIG_IGN);
    emit(-1, contract::HelloEvent{contract::kTelemetryVersion, contract::sha256(m_planText),
                                  static_cast<std::int32_t>(m_setup.ranks), m_options.runDirectory, getpid(),
                                  m_options.steps});
    if (m_setup.resized)
        log("info", fmt::format("re-sized for {} workers: micro-batch {}, accumulate {}, predicted {} per worker",
                                m_setup.ranks, m_setup.training.microBatch, m_setup.training.accumulate,
                                contract::describeBytes(m_setup.predicted.total())));
    for (std::int32_t attempt = 0;; ++attempt) {
        if (auto started = startWorkers(); !started) {
            m_cause.addReport({-1, 0, "start", started.error().message});
            endWorkers();
            return finish(Outcome::Failed);
        }
        const Outcome outcome = superviseWorkers();
        if (outcome != Outcome::Failed)
            return finish(outcome);
        const FirstCause::Verdict verdict = m_cause.verdict();
        m_failureReason = fmt::format("rank {}: {}", verdict.first.rank, verdict.first.cause);
        m_failureCode = verdict.exitCode;
        emit(verdict.first.rank,
             contract::FailureEvent{verdict.first.step, verdict.first.phase, verdict.first.cause, true});
        for (const FirstCause::Report& report : verdict.others)
            emit(report.rank, contract::FailureEvent{report.step, report.phase, report.cause, false});
        std::fprintf(stderr, "failed: %s (step %lld, %s)\n", m_failureReason.c_str(),
                     static_cast<long long>(verdict.first.step), verdict.first.phase.c_str());
        if (attempt >= m_options.maxRestarts || stopSignals > 0)
            return finish(outcome);
        if (auto prepared = prepareRestart(); !prepared) {
            m_failureReason = prepared.error().message;
            return finish(outcome);
        }
        emit(-1, contract::RestartEvent{m_checkpointStep, attempt + 1, static_cast<std::int32_t>(m_setup.ranks)});
    }
}

/// What the next attempt needs is what a start needs, and the newest checkpoint; with a book, the plan for fewer
/// workers.
contract::Result<void> Coordinator::prepareRestart() {
    m_options.resume = true;
    m_cause = {};
    m_failedAt = 0;
    m_lastStep = m_checkpointStep;
    if (!m_options.book.empty()) {
        std::vector<std::string> skipped;
        auto page = findSmallerPlan(m_options, m_setup, skipped);
        for (const std::string& reason : skipped)
            log("warning", "plan passed over: " + reason);
        if (page) {
            if (auto copied = contract::writeFileAtomically(m_planCopy, page->text); !copied)
                return copied;
            m_setup = std::move(page->setup);
            log("info", fmt::format("going on with {} workers as {} says", m_setup.ranks, page->path));
        } else {
            log("warning", fmt::format("--book \"{}\": holds no plan for fewer than {} workers; going on as before",
                                       m_options.book, m_setup.ranks));
        }
    }
    const int port = m_server->port();
    m_server.reset();
    auto server = KeyValueServer::listen("127.0.0.1", requestedPort().value_or(0) == 0 ? 0 : port);
    if (!server)
        return tl::unexpected(server.error());
    m_server = std::move(*server);
    return {};
}

int Coordinator::finish(Outcome outcome) {
    switch (outcome) {
    case Outcome::Done:
        emit(-1, contract::ByeEvent{"done", m_options.steps, ""});
        return 0;
    case Outcome::Stopped:
        emit(-1,
             contract::ByeEvent{"stopped", m_lastStep, m_forwardedStops > 1 ? "ended at once" : "stopped by a signal"});
        return contract::exitCode(contract::ErrorKind::Interrupted);
    case Outcome::Failed:
        break;
    }
    emit(-1, contract::ByeEvent{"failed", m_lastStep, m_failureReason});
    return m_failureCode;
}

} // namespace

void catchEarlyStops() {
    struct sigaction action {};
    action.sa_handler = onStopSignal;
    for (const int signal : {SIGINT, SIGTERM})
        sigaction(signal, &action, nullptr);
}

int runCoordinator(RunOptions options) {
    Coordinator coordinator(std::move(options));
    if (stopSignals > 0)
        return contract::exitCode(contract::ErrorKind::Interrupted);
    if (auto prepared = coordinator.prepare(); !prepared) {
        std::fprintf(stderr, "shardscope-train: %s\n", prepared.error().message.c_str());
        return contract::exitCode(prepared.error().kind);
    }
    return coordinator.run();
}

} // namespace shardscope::engine
