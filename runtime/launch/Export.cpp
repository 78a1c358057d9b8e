// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/launch/Export.h"

#include "runtime/contract/Json.h"
#include "runtime/contract/Plan.h"
#include "runtime/data/SafetensorsWriter.h"
#include "runtime/execute/Checkpoint.h"
#include "runtime/launch/RunDirectory.h"
#include "runtime/network/HuggingFace.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

namespace shardscope::engine {

namespace fs = std::filesystem;

namespace {

std::atomic<bool> g_stopped{false};
static_assert(std::atomic<bool>::is_always_lock_free); // a signal handler sets it

/// A folder under a name of its own, removed unless it was put in place.
class PartialFolder {
public:
    explicit PartialFolder(const fs::path& final)
        : m_final(final),
          m_path(final.parent_path() / fmt::format(".{}.partial-{}", final.filename().string(), ::getpid())) {}
    ~PartialFolder() {
        std::error_code ignored;
        fs::remove_all(m_path, ignored);
    }
    PartialFolder(const PartialFolder&) = delete;
    PartialFolder& operator=(const PartialFolder&) = delete;

    const fs::path& path() const { return m_path; }
    contract::Result<void> create() const {
        std::error_code error;
        fs::remove_all(m_path, error);
        fs::create_directories(m_path, error);
        if (error)
            return contract::runFailed(fmt::format("{}: cannot be created: {}", m_path.string(), error.message()));
        return {};
    }
    /// `replace`: what is there is exchanged with it, and then removed.
    contract::Result<void> putInPlace(bool replace) const {
        bool done = ::rename(m_path.c_str(), m_final.c_str()) == 0; // over nothing, or an empty folder
        if (!done && replace && (errno == ENOTEMPTY || errno == EEXIST))
            done = ::renameat2(AT_FDCWD, m_path.c_str(), AT_FDCWD, m_final.c_str(), RENAME_EXCHANGE) == 0;
        if (!done)
            return contract::runFailed(
                fmt::format("{}: cannot be put in place: {}", m_final.string(), std::strerror(errno)));
        if (const int parent = ::open(m_final.parent_path().c_str(), O_RDONLY | O_CLOEXEC); parent >= 0) {
            ::fsync(parent);
            ::close(parent);
        }
        return {};
    }

private:
    fs::path m_final;
    fs::path m_path;
};

/// Where the folder is to stand. A folder that holds folders is more than an export, whatever is said.
contract::Result<fs::path> checkOutput(const ExportOptions& options) {
    std::error_code error;
    fs::path final = fs::weakly_canonical(fs::absolute(options.output, error), error);
    if (!final.has_filename())
        final = final.parent_path();
    const fs::file_status status = fs::status(final, error);
    if (!fs::exists(status))
        return final;
    const auto refuse = [&](std::string_view why) {
        return contract::usageError(fmt::format("-o \"{}\": {}", options.output, why));
    };
    if (!fs::is_directory(status))
        return refuse("is not a folder");
    bool isEmpty = true, hasFolders = false;
    for (fs::directory_iterator it(final, error), end; !error && it != end; it.increment(error)) {
        isEmpty = false;
        std::error_code unknown;
        hasFolders = hasFolders || fs::is_directory(it->symlink_status(unknown));
    }
    if (error)
        return refuse("cannot be read: " + error.message());
    if (isEmpty || (options.force && !hasFolders))
        return final;
    if (options.force)
        return refuse("holds folders, so it is no export; it is not replaced. Name another folder");
    return refuse("is not empty; name another folder, or add --force to replace it");
}

contract::Result<FoundCheckpoint> chooseCheckpoint(const PlanSetup& setup, const ExportOptions& options) {
    std::vector<std::string> skipped;
    const auto found = findCheckpoint(setup, options.runDirectory, skipped, options.step);
    if (options.step && !found) {
        if (!skipped.empty())
            return contract::badInput(fmt::format("--step {}: {}", *options.step, skipped.front()));
        std::string others;
        for (const std::int64_t step : checkpointSteps(options.runDirectory))
            others += fmt::format("{}{}", others.empty() ? "; there are those of steps " : ", ", step);
        return contract::badInput(
            fmt::format("{}: holds no checkpoint of step {}{}", options.runDirectory, *options.step, others));
    }
    for (const std::string& reason : skipped)
        std::fprintf(stderr, "warning: checkpoint passed over: %s\n", reason.c_str());
    if (!found)
        return contract::badInput(fmt::format("{}: holds no checkpoint to export", options.runDirectory));
    return *found;
}

/// Copies the run's tokenizer; whether there is one. What keeps it from being copied is a warning.
contract::Result<bool> copyTokenizer(const std::string& runDirectory, const fs::path& folder) {
    const auto settings = readRunSettings(runDirectory);
    if (!settings)
        return tl::unexpected(settings.error());
    if (!*settings || !(*settings)->tokenizer)
        return false;
    const RunSettings::UsedTokenizer& used = *(*settings)->tokenizer;
    const auto warn = [&](const std::string& why) {
        std::fprintf(stderr, "warning: the tokenizer is left out: %s\n", why.c_str());
        return false;
    };
    const auto text = contract::readTextFile(used.path);
    if (!text)
        return warn(text.error().message);
    if (contract::sha256(*text) != used.sha256)
        return warn(used.path + ": was changed since the run was made with it");
    if (auto written = contract::writeFileAtomically((folder / "tokenizer.json").string(), *text); !written)
        return tl::unexpected(written.error());
    return true;
}

} // namespace

contract::Result<void> runExport(const ExportOptions& options) {
    const std::string planPath = options.runDirectory + "/plan.json";
    const auto plan = contract::readPlanFile(planPath);
    if (!plan)
        return tl::unexpected(plan.error());
    const auto setup = prepareReading(*plan);
    if (!setup)
        return tl::unexpected(namePlan(setup.error(), planPath));
    const auto final = checkOutput(options);
    if (!final)
        return tl::unexpected(final.error());
    const auto found = chooseCheckpoint(*setup, options);
    if (!found)
        return tl::unexpected(found.error());
    const auto weights = openWeights(*setup, *found);
    if (!weights)
        return tl::unexpected(weights.error());

    for (const int signal : {SIGINT, SIGTERM})
        std::signal(signal, [](int) { g_stopped = true; });
    const PartialFolder partial(*final);
    if (auto created = partial.create(); !created)
        return created;
    const bool isHalf = options.dtype == "bf16";
    const std::vector<TensorShape> shapes = weightShapes(*setup);
    if (auto written = writeSafetensors((partial.path() / "model.safetensors").string(), shapes,
                                        isHalf ? StoredType::BFloat16 : StoredType::Float32,
                                        [&](const std::string& tensor) { return (*weights)->tensor(tensor); },
                                        [] { return g_stopped.load(); });
        !written)
        return written;
    contract::OrderedJson config = huggingFaceConfig(setup->architecture);
    config["torch_dtype"] = isHalf ? "bfloat16" : "float32";
    if (auto written = contract::writeFileAtomically((partial.path() / "config.json").string(), config.dump(2) + "\n");
        !written)
        return written;
    const auto tokenizer = copyTokenizer(options.runDirectory, partial.path());
    if (!tokenizer)
        return tl::unexpected(tokenizer.error());
    if (auto placed = partial.putInPlace(options.force); !placed)
        return placed;

    std::int64_t parameters = 0;
    for (const TensorShape& shape : shapes)
        parameters += shape.elements();
    const std::string text =
        options.json
            ? contract::OrderedJson{{"folder", final->string()}, {"checkpoint", found->path},
                                    {"step", found->state.step}, {"dtype", options.dtype},
                                    {"parameters", parameters},  {"tokenizer", *tokenizer}}
                  .dump(2, ' ', false, contract::OrderedJson::error_handler_t::replace)
            : fmt::format("step {} of {} is in {}: {} parameters in {}{}", found->state.step, options.runDirectory,
                          options.output, parameters, options.dtype, *tokenizer ? ", with the tokenizer" : "");
    std::printf("%s\n", text.c_str());
    return {};
}

} // namespace shardscope::engine
