// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/launch/Worker.h"

#include "runtime/collective/KeyValueServer.h"
#include "runtime/device/HostDevice.h"
#include "runtime/device/HostMemory.h"
#include "runtime/device/cuda/OpenCuda.h"
#include "runtime/execute/Trainer.h"
#include "runtime/execute/Watchdog.h"
#include "runtime/launch/DeviceMonitor.h"
#include "runtime/launch/Rendezvous.h"
#include "runtime/launch/RunDirectory.h"
#include "runtime/launch/TelemetryWriter.h"
#include "runtime/ops/Linear.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <optional>
#include <signal.h>
#include <unistd.h>

namespace shardscope::engine {

namespace {

std::atomic<bool> stopRequested{false};

/// Once: finish the step. Twice: at once.
void onStopSignal(int) {
    if (stopRequested.exchange(true))
        _exit(130);
}

void catchStopSignals() {
    struct sigaction action {};
    action.sa_handler = onStopSignal;
    action.sa_flags = SA_RESTART;
    for (const int signal : {SIGINT, SIGTERM})
        sigaction(signal, &action, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGXFSZ, SIG_IGN); // a file that reaches the limit of its size is an error like a full disk
}

class Worker {
public:
    Worker(RunOptions options, Rendezvous rendezvous)
        : m_options(std::move(options)), m_rendezvous(std::move(rendezvous)) {}

    int run() {
        auto ended = trainToTheEnd();
        int code = 0;
        contract::ByeEvent bye{"done", 0, ""};
        if (!ended) {
            std::fprintf(stderr, "rank %d: %s\n", m_rendezvous.rank, ended.error().message.c_str());
            const std::string phase = m_executor ? m_executor->phase() : "start";
            event(contract::FailureEvent{m_lastStep + 1, phase, ended.error().message, true});
            bye = {"failed", m_lastStep, ended.error().message};
            code = contract::exitCode(ended.error().kind);
        } else {
            bye.steps = ended->steps;
            if (ended->stopped) {
                bye.status = "stopped";
                bye.reason = "stopped by a signal";
                code = contract::exitCode(contract::ErrorKind::Interrupted);
            }
        }
        if (!m_rendezvous.hasCoordinator && m_rendezvous.rank == 0)
            event(bye);
        m_executor.reset();
        return code;
    }

private:
    contract::Result<TrainingEnd> trainToTheEnd() {
        if (auto device = checkDevice(m_options.device); !device)
            return tl::unexpected(device.error());
        const auto text = contract::readTextFile(m_options.planPath);
        if (!text)
            return tl::unexpected(text.error());
        const auto plan = contract::parsePlan(*text, m_options.planPath);
        if (!plan)
            return tl::unexpected(plan.error());
        auto setup = preparePlan(*plan, {m_rendezvous.world, m_options.learningRate, m_options.deviceKind()});
        if (!setup)
            return tl::unexpected(namePlan(setup.error(), m_options.planPath));
        m_setup = std::move(*setup);
        if (m_options.runDirectory.empty())
            m_options.runDirectory = "./runs/" + plan->graph.name;
        TrainingRequest request;
        request.steps = m_options.steps;
        request.seed = m_options.seed;
        request.runDirectory = m_options.runDirectory;
        request.resume = m_options.resume;
        request.checkpointEvery = m_options.checkpointEvery;
        request.checkpointsKept = m_options.checkpointsKept;
        if (m_options.resume)
            request.resumeFrom = findCheckpoint(m_setup, m_options.runDirectory, request.passedOver);
        std::optional<WeightFiles> initial;
        if (!m_options.init.empty() && !request.resumeFrom) {
            auto files = WeightFiles::open(m_options.init);
            if (!files)
                return tl::unexpected(files.error());
            initial = std::move(*files);
            request.initialWeights = &*initial;
        }
        if (request.resumeFrom) // the seed is part of the data position
            request.seed = request.resumeFrom->state.seed;
        if (auto same = checkSettings(); !same)
            return tl::unexpected(same.error());
        auto data = openData(request.seed);
        if (!data)
            return tl::unexpected(data.error());
        m_dataset = std::move(*data);
        if (auto opened = openTelemetry(*text); !opened)
            return tl::unexpected(opened.error());
        prepareBlas();
        if (auto connected = connect(); !connected)
            return tl::unexpected(connected.error());
        std::unique_ptr<Device> device = std::make_unique<HostDevice>();
        if (m_options.deviceKind() == DeviceKind::Cuda) {
            auto opened = openCuda(m_rendezvous.localRank, m_options.timeout());
            if (!opened)
                return tl::unexpected(opened.error());
            device = std::move(*opened);
        }
        event(contract::ReadyEvent{getpid(), device->name()});
        request.residentAtStart = residentBytes();
        auto executor = Executor::create(m_setup, *m_group, *m_dataset, std::move(device));
        if (!executor)
            return tl::unexpected(executor.error());
        m_executor = std::move(*executor);
        if (const Communication& communication = m_executor->communication();
            m_options.deviceKind() == DeviceKind::Cuda && m_rendezvous.rank == 0 && m_rendezvous.world > 1)
            event(contract::LogEvent{
                "info", fmt::format("tensors travel by {}{}", communication.collectivesName(),
                                    communication.whyNotOwn().empty() ? "" : ": " + communication.whyNotOwn())});
        const Watchdog watchdog(*m_executor, m_options.timeout(),
                                [this](const std::string& phase, double seconds) { giveUp(phase, seconds); });
        const DeviceMonitor monitor(m_executor->device().statusReader(),
                                    [this](const contract::DeviceEvent& status) { event(status); });
        auto ended = train(*m_executor, m_setup, request, stopRequested, *m_telemetry);
        if (!ended)
            m_lastStep = m_executor->currentStep() - 1;
        m_telemetry->flush();
        return ended;
    }

    /// Under a coordinator that has done it, nothing.
    contract::Result<void> checkSettings() {
        if (m_rendezvous.hasCoordinator || !m_options.resume)
            return {};
        const auto settings = readRunSettings(m_options.runDirectory);
        if (!settings)
            return tl::unexpected(settings.error());
        // Ranks may have no disk in common: the one that finds the settings must not train on other ids than the
        // others.
        if (*settings && (*settings)->tokenizer && m_options.tokenizer.empty())
            return contract::usageError(fmt::format(
                "the run to resume was started with --tokenizer \"{}\"; name it again", (*settings)->tokenizer->path));
        return *settings ? checkResumed(m_options, **settings) : contract::Result<void>();
    }

    contract::Result<std::unique_ptr<Dataset>> openData(std::uint64_t seed) {
        DatasetRequest request{m_options.data, seed, m_setup.training.sequence, m_setup.architecture.vocabulary,
                               m_options.tokenizer};
        request.isStopped = [] { return stopRequested.load(); };
        if (m_rendezvous.rank == 0)
            request.say = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
        return openDataset(request);
    }

    contract::Result<void> openTelemetry(const std::string& planText) {
        const char* const epoch = std::getenv(kEpochVariable);
        std::vector<int> descriptors{STDOUT_FILENO};
        const bool keepsFile = !m_rendezvous.hasCoordinator && m_rendezvous.rank == 0;
        if (keepsFile) {
            std::error_code error;
            std::filesystem::create_directories(m_options.runDirectory, error);
            const std::string path = m_options.runDirectory + "/run.ndjson";
            const int file =
                open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (m_options.resume ? 0 : O_TRUNC), 0644);
            if (file < 0)
                return contract::runFailed(path + ": cannot be written");
            descriptors.push_back(file);
            if (auto copied = contract::writeFileAtomically(m_options.runDirectory + "/plan.json", planText); !copied)
                return copied;
            if (auto written = m_options.resume ? contract::Result<void>() : writeRunSettings(m_options); !written)
                return written;
        }
        std::vector<std::string> names;
        for (const contract::Operator& op : m_setup.operators)
            names.push_back(op.name);
        m_telemetry = std::make_unique<TelemetryWriter>(
            m_rendezvous.rank, epoch != nullptr ? std::atof(epoch) : monotonicSeconds(), descriptors, names);
        if (keepsFile)
            event(contract::HelloEvent{contract::kTelemetryVersion, contract::sha256(planText), m_rendezvous.world,
                                       m_options.runDirectory, getpid(), m_options.steps});
        return {};
    }

    contract::Result<void> connect() {
        if (!m_rendezvous.hasCoordinator && m_rendezvous.rank == 0 && m_rendezvous.world > 1) {
            auto server = KeyValueServer::listen(m_rendezvous.host, m_rendezvous.port);
            if (!server)
                return tl::unexpected(server.error());
            m_server = std::move(*server);
        }
        GroupAddress address;
        address.rank = m_rendezvous.rank;
        address.size = m_rendezvous.world;
        address.host = m_rendezvous.host;
        address.port = m_rendezvous.port;
        // The coordinator finds stopped processes by itself; under it, a silent rank is most likely a slow one.
        constexpr double kPatienceForSlowRanks = 12;
        const double seconds = m_options.timeout() * (m_rendezvous.hasCoordinator ? kPatienceForSlowRanks : 1);
        const auto milliseconds = [](double s) {
            return std::chrono::milliseconds(static_cast<std::int64_t>(s * 1000));
        };
        address.timeout = milliseconds(seconds);
        // Launchers may take their time; whoever names a timeout means it. Under the coordinator all start at once.
        if (m_options.timeoutSeconds && !m_rendezvous.hasCoordinator)
            address.patience = milliseconds(*m_options.timeoutSeconds);
        auto group = Group::connect(address);
        if (!group)
            return tl::unexpected(group.error());
        m_group = std::move(*group);
        return {};
    }

    /// On the watchdog's thread: the compute thread will not return, so the process ends here.
    [[noreturn]] void giveUp(const std::string& phase, double seconds) {
        const std::string cause = fmt::format("no progress for {:.1f} s", seconds);
        std::fprintf(stderr, "rank %d: %s in %s\n", m_rendezvous.rank, cause.c_str(), phase.c_str());
        event(contract::FailureEvent{m_executor->currentStep(), phase, cause, true});
        _exit(contract::exitCode(contract::ErrorKind::RunFailed));
    }

    void event(const contract::EventBody& body) {
        if (m_telemetry)
            m_telemetry->onEvent(body);
    }

    RunOptions m_options;
    Rendezvous m_rendezvous;
    PlanSetup m_setup;
    std::int64_t m_lastStep = 0;
    std::unique_ptr<KeyValueServer> m_server;
    std::unique_ptr<TelemetryWriter> m_telemetry;
    std::unique_ptr<Group> m_group;
    std::unique_ptr<Dataset> m_dataset;
    std::unique_ptr<Executor> m_executor;
};

} // namespace

int runWorker(RunOptions options) {
    catchStopSignals();
    const auto rendezvous = readRendezvous();
    if (!rendezvous) {
        std::fprintf(stderr, "shardscope-train: %s\n", rendezvous.error().message.c_str());
        return contract::exitCode(rendezvous.error().kind);
    }
    return Worker(std::move(options), *rendezvous).run();
}

} // namespace shardscope::engine
