// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/execute/Checkpoint.h"

#include "runtime/contract/Json.h"
#include "runtime/contract/Plan.h"
#include "runtime/data/Safetensors.h"
#include "runtime/network/HuggingFace.h"
#include "runtime/network/Initializer.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <thread>
#include <unistd.h>

namespace shardscope::engine {

namespace {

namespace fs = std::filesystem;

constexpr int kCheckpointVersion = 2;
constexpr const char* kWeightsFile = "model.safetensors";
constexpr const char* kMomentsFile = "optimizer.safetensors";
constexpr std::string_view kFormat = "shardscope-checkpoint";
constexpr std::string_view kFolderPrefix = "step-";

std::string folderName(std::int64_t step) {
    return fmt::format("{}{:08}", kFolderPrefix, step);
}

/// What an optimizer keeps for a weight, named as PyTorch's optimizers name it; the second is empty where there is one.
struct MomentNames {
    std::string first, second;
};
MomentNames momentNames(const PlanSetup& setup, const std::string& weight) {
    if (setup.preset.optimizer() == "sgd")
        return {weight + ".momentum_buffer", ""};
    return {weight + ".exp_avg", weight + ".exp_avg_sq"};
}

std::vector<TensorShape> momentShapes(const PlanSetup& setup) {
    std::vector<TensorShape> shapes;
    for (const TensorShape& weight : weightShapes(setup)) {
        const MomentNames moments = momentNames(setup, weight.name);
        shapes.push_back({moments.first, weight.shape});
        if (!moments.second.empty())
            shapes.push_back({moments.second, weight.shape});
    }
    return shapes;
}

/// One value array of a tensor part on this rank: weights or a moment.
struct Values {
    Elements memory;
    bool sharded = false;
    std::string name; ///< in its file
    SafetensorsFile* file = nullptr;
};

/// Calls visit(tensor state, order, values) for everything a checkpoint holds.
template<typename Visit>
contract::Result<void> forEachValues(const PlanSetup& setup, const StateLayout& layout, SafetensorsFile* weights,
                                     SafetensorsFile* moments, Visit visit) {
    for (std::int32_t i = 0; i < layout.count(); ++i) {
        const contract::Operator& op = setup.operators[static_cast<std::size_t>(i)];
        if (op.isTied())
            continue;
        for (const PartState& part : layout.of(i).parts)
            for (std::size_t t = 0; t < part.tensors.size(); ++t) {
                const TensorState& tensor = part.tensors[t];
                const StateDictOrder order(setup.architecture, op, op.tensors[t]);
                const std::string name = stateDictName(setup.architecture, op, op.tensors[t]);
                const MomentNames names = momentNames(setup, name);
                for (const Values& values : {Values{tensor.exactWeight(), tensor.exactWeightSharded(), name, weights},
                                             Values{tensor.firstMoment, tensor.updateSharded, names.first, moments},
                                             Values{tensor.secondMoment, tensor.updateSharded, names.second, moments}})
                    if (!values.name.empty())
                        if (auto visited = visit(tensor, order, values); !visited)
                            return visited;
            }
    }
    return {};
}

/// Puts `count` elements, starting at element `begin` of the part, where they belong in the file.
void scatter(const TensorState& tensor, const StateDictOrder& order, const Values& values, std::int64_t begin,
             std::int64_t count, const float* from) {
    float* const to = values.file->tensor(values.name);
    const std::int64_t base = tensor.firstRow * tensor.columns + begin;
    for (std::int64_t e = 0; e < count; ++e)
        to[order.indexOf(base + e)] = from[e];
}

contract::Result<void> gatherValues(Ring& ring, const TensorState& tensor, const StateDictOrder& order,
                                    const Values& values, Device& device) {
    const std::int64_t capacity = ring.pieceCapacity();
    std::vector<float> own;
    const auto read = [&](std::int64_t at, std::int64_t count) {
        own.resize(static_cast<std::size_t>(count));
        device.downloadOnLane(own.data(), values.memory + at, count);
        return own.data();
    };
    if (!values.sharded) {
        for (std::int64_t at = 0; ring.rank() == 0 && at < tensor.elements; at += capacity) {
            const std::int64_t count = std::min(capacity, tensor.elements - at);
            scatter(tensor, order, values, at, count, read(at, count));
        }
        return {};
    }
    for (std::int64_t at = 0; at < tensor.shard; at += capacity) {
        const std::int64_t count = std::min(capacity, tensor.shard - at);
        const auto pieces = ring.gatherPieces(read(at, count), count);
        if (!pieces)
            return tl::unexpected(pieces.error());
        for (int r = 0; ring.rank() == 0 && r < tensor.group; ++r) {               // the other nodes have copies
            const std::int64_t valid = std::min(count, tensor.shardCount(r) - at); // the rest is padding
            if (valid > 0)
                scatter(tensor, order, values, tensor.shardBegin(r) + at, valid, *pieces + r * count);
        }
    }
    return {};
}

fs::path checkpointsFolder(const std::string& runDirectory) {
    return fs::path(runDirectory) / "checkpoints";
}

/// Finished checkpoints, the newest first.
std::vector<fs::path> checkpointFolders(const std::string& runDirectory) {
    std::vector<fs::path> folders;
    std::error_code error;
    for (fs::directory_iterator it(checkpointsFolder(runDirectory), error), end; !error && it != end;
         it.increment(error))
        if (it->path().filename().string().starts_with(kFolderPrefix))
            folders.push_back(it->path());
    std::sort(folders.rbegin(), folders.rend());
    return folders;
}

contract::Result<void> finishFolder(const fs::path& partial, const fs::path& final, const std::string& runDirectory,
                                    SafetensorsFile& weights, SafetensorsFile& moments, const PlanSetup& setup,
                                    CheckpointState state, std::int64_t kept) {
    for (SafetensorsFile* file : {&weights, &moments})
        if (auto synced = file->sync(); !synced)
            return synced;
    const contract::OrderedJson description{
        {"format", kFormat},
        {"version", kCheckpointVersion},
        {"step", state.step},
        {"seed", state.seed},
        {"global_batch", setup.training.globalBatch},
        {"sequence", setup.training.sequence},
        {"graph_sha256", setup.graphSha256},
        {"sha256",
         {{kWeightsFile, contract::sha256(weights.content())}, {kMomentsFile, contract::sha256(moments.content())}}}};
    for (const auto& [name, json] :
         {std::pair("config.json", huggingFaceConfig(setup.architecture)), std::pair("state.json", description)})
        if (auto written = contract::writeFileAtomically((partial / name).string(), json.dump(1) + "\n"); !written)
            return written;
    std::error_code error;
    fs::remove_all(final, error);
    fs::rename(partial, final, error);
    if (error)
        return contract::runFailed(
            fmt::format("{}: cannot be moved into place: {}", partial.string(), error.message()));
    if (const int folder = ::open(checkpointsFolder(runDirectory).c_str(), O_RDONLY | O_CLOEXEC); folder >= 0) {
        fsync(folder);
        close(folder);
    }
    // Later ones are damaged, or this run would have begun with them: they are no reason to remove good ones.
    std::int64_t seen = 0;
    for (const fs::path& folder : checkpointFolders(runDirectory))
        if (folder.filename() <= final.filename() && ++seen > kept)
            fs::remove_all(folder, error);
    return {};
}

} // namespace

struct CheckpointWriter::Files {
    fs::path partial;
    fs::path final;
    std::unique_ptr<SafetensorsFile> weights;
    std::unique_ptr<SafetensorsFile> moments;
};

/// A checkpoint on its way to the disk.
struct CheckpointWriter::Task {
    CheckpointState state;
    Files files;
    contract::Result<void> result;
    std::atomic<bool> done = false;
    std::thread thread;
};

CheckpointWriter::CheckpointWriter(Executor& executor, const PlanSetup& setup, std::string runDirectory,
                                   std::int64_t kept)
    : m_executor(executor), m_setup(setup), m_runDirectory(std::move(runDirectory)), m_kept(kept) {}

CheckpointWriter::~CheckpointWriter() {
    if (m_task)
        m_task->thread.join();
}

/// Takes over what a task that is done has to say.
void CheckpointWriter::collect() {
    if (!m_task || !m_task->done)
        return;
    m_task->thread.join();
    if (m_task->result)
        m_written.push_back({m_task->state.step, m_task->files.final.string()});
    else
        m_failure = m_task->result.error();
    m_task.reset();
}

/// While rank 0 waits for its disk, its communication thread tells the others that it is alive.
contract::Result<void> CheckpointWriter::awaitDisk() {
    auto awaited = m_executor.onLane([this](Ring& ring) -> contract::Result<void> {
        for (;;) {
            const auto waiting = ring.stillWaiting(m_task && !m_task->done);
            if (!waiting)
                return tl::unexpected(waiting.error());
            if (!*waiting)
                return {};
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
    });
    collect();
    return awaited;
}

contract::Result<void> CheckpointWriter::begin(CheckpointState state) {
    if (auto awaited = awaitDisk(); !awaited)
        return awaited;
    // All ranks learn whether rank 0 can write, and has written, before they send.
    contract::Result<void> writing;
    if (m_failure)
        writing = tl::unexpected(*m_failure);
    Files files;
    if (m_executor.rank() == 0 && writing) {
        const std::string name = folderName(state.step);
        files.final = checkpointsFolder(m_runDirectory) / name;
        files.partial = checkpointsFolder(m_runDirectory) / ("." + name + ".partial");
        std::error_code error;
        fs::remove_all(files.partial, error);
        fs::create_directories(files.partial, error);
        auto weights = SafetensorsFile::create((files.partial / kWeightsFile).string(), weightShapes(m_setup));
        auto moments = SafetensorsFile::create((files.partial / kMomentsFile).string(), momentShapes(m_setup));
        if (weights && moments) {
            files.weights = std::move(*weights);
            files.moments = std::move(*moments);
        } else {
            writing = tl::unexpected(weights ? moments.error() : weights.error());
            fs::remove_all(files.partial, error); // it takes the room that others may need
        }
    }
    double failed = writing ? 0 : 1;
    if (auto summed = m_executor.onLane([&](Ring& ring) { return ring.sumScalars(&failed, 1); }); !summed)
        return summed;
    if (failed > 0)
        return writing ? contract::runFailed("checkpoint: rank 0 cannot write it") : writing;
    auto gathered = m_executor.onLane([&](Ring& ring) {
        return forEachValues(m_setup, m_executor.layout(), files.weights.get(), files.moments.get(),
                             [&](const TensorState& tensor, const StateDictOrder& order, const Values& values) {
                                 return gatherValues(ring, tensor, order, values, m_executor.device());
                             });
    });
    if (!gathered || m_executor.rank() != 0)
        return gathered;
    m_task = std::make_unique<Task>();
    m_task->state = state;
    m_task->files = std::move(files);
    m_task->thread = std::thread([this, task = m_task.get()] {
        const Files& written = task->files;
        task->result = finishFolder(written.partial, written.final, m_runDirectory, *written.weights, *written.moments,
                                    m_setup, task->state, m_kept);
        std::error_code ignored;
        if (!task->result)
            fs::remove_all(written.partial, ignored);
        task->done = true;
    });
    return {};
}

contract::Result<void> CheckpointWriter::finish() {
    if (auto awaited = awaitDisk(); !awaited)
        return awaited;
    if (m_failure)
        return tl::unexpected(*m_failure);
    return {};
}

contract::Result<std::optional<CheckpointWriter::Written>> CheckpointWriter::poll() {
    collect();
    if (m_failure)
        return tl::unexpected(*m_failure);
    if (m_written.empty())
        return std::nullopt;
    Written first = m_written.front();
    m_written.erase(m_written.begin());
    return first;
}

contract::Result<std::string> saveCheckpoint(Executor& executor, const PlanSetup& setup,
                                             const std::string& runDirectory, CheckpointState state,
                                             std::int64_t kept) {
    CheckpointWriter writer(executor, setup, runDirectory, kept);
    if (auto begun = writer.begin(state); !begun)
        return tl::unexpected(begun.error());
    if (auto finished = writer.finish(); !finished)
        return tl::unexpected(finished.error());
    return (checkpointsFolder(runDirectory) / folderName(state.step)).string();
}

std::vector<TensorShape> weightShapes(const PlanSetup& setup) {
    std::vector<TensorShape> shapes;
    for (const contract::Operator& op : setup.operators)
        if (!op.isTied())
            for (const contract::TensorSpec& tensor : op.tensors)
                shapes.push_back({stateDictName(setup.architecture, op, tensor), tensor.shape});
    return shapes;
}

contract::Result<std::unique_ptr<SafetensorsFile>> openWeights(const PlanSetup& setup, const FoundCheckpoint& found) {
    return SafetensorsFile::open((fs::path(found.path) / kWeightsFile).string(), weightShapes(setup));
}

std::vector<std::int64_t> checkpointSteps(const std::string& runDirectory) {
    std::vector<std::int64_t> steps;
    for (const fs::path& folder : checkpointFolders(runDirectory))
        steps.insert(steps.begin(), std::strtoll(folder.filename().c_str() + kFolderPrefix.size(), nullptr, 10));
    return steps;
}

std::optional<FoundCheckpoint> findCheckpoint(const PlanSetup& setup, const std::string& runDirectory,
                                              std::vector<std::string>& skipped, std::optional<std::int64_t> step) {
    for (const fs::path& folder : checkpointFolders(runDirectory)) {
        if (step && folder.filename() != folderName(*step))
            continue;
        const std::string file = (folder / "state.json").string();
        const auto json = contract::readJsonFile(file);
        if (!json) {
            skipped.push_back(json.error().message);
            continue;
        }
        const contract::JsonCursor cursor(*json, file);
        FoundCheckpoint found{folder.string(), {}};
        if (cursor.at("format").text() != kFormat)
            cursor.at("format").fail("is not a checkpoint's");
        cursor.at("version").integer(kCheckpointVersion, kCheckpointVersion);
        found.state.step = cursor.at("step").integer();
        found.state.seed = static_cast<std::uint64_t>(cursor.at("seed").integer());
        const contract::JsonCursor sums = cursor.at("sha256");
        const std::string weightsSum = sums.at(kWeightsFile).text();
        const std::string momentsSum = sums.at(kMomentsFile).text();
        if (cursor.failed()) {
            skipped.push_back(cursor.error().value().message);
            continue;
        }
        const auto weights = SafetensorsFile::open((folder / kWeightsFile).string(), weightShapes(setup));
        const auto moments = SafetensorsFile::open((folder / kMomentsFile).string(), momentShapes(setup));
        if (!weights || !moments) {
            skipped.push_back(weights ? moments.error().message : weights.error().message);
            continue;
        }
        const auto damaged = [&](const char* name, const SafetensorsFile& content, const std::string& expected) {
            const bool differs = contract::sha256(content.content()) != expected;
            if (differs)
                skipped.push_back(
                    fmt::format("{}: its checksum is not the one in state.json; it was changed after it was written",
                                (folder / name).string()));
            return differs;
        };
        if (!damaged(kWeightsFile, **weights, weightsSum) && !damaged(kMomentsFile, **moments, momentsSum))
            return found;
    }
    return std::nullopt;
}

contract::Result<void> loadCheckpoint(Executor& executor, const PlanSetup& setup, const FoundCheckpoint& found) {
    const auto weights = openWeights(setup, found);
    const auto moments = SafetensorsFile::open((fs::path(found.path) / kMomentsFile).string(), momentShapes(setup));
    if (!weights || !moments)
        return tl::unexpected(weights ? moments.error() : weights.error());
    return forEachValues(
        setup, executor.layout(), weights->get(), moments->get(),
        [&](const TensorState& tensor, const StateDictOrder& order, const Values& values) -> contract::Result<void> {
            const float* const from = values.file->tensor(values.name);
            const auto valueAt = [&](std::int64_t element) { return from[order.indexOf(element)]; };
            if (values.file == weights->get())
                fillWeights(tensor, executor.rank(), executor.device(), valueAt);
            else
                fillElements(tensor, executor.rank(), executor.device(), values.memory, values.sharded, valueAt);
            return {};
        });
}

} // namespace shardscope::engine
