// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/launch/Sample.h"

#include "runtime/contract/Json.h"
#include "runtime/device/HostMemory.h"
#include "runtime/execute/Checkpoint.h"
#include "runtime/launch/RunDirectory.h"
#include "runtime/launch/RunOptions.h"
#include "runtime/network/Initializer.h"
#include "runtime/ops/CrossEntropy.h"
#include "runtime/ops/Linear.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string_view>
#include <vector>

namespace shardscope::engine {

namespace {

constexpr std::int64_t kByteIds = 256;

/// What ids stand for: the tokens of a tokenizer, or bytes without one.
class Words {
public:
    explicit Words(std::unique_ptr<Tokenizer> tokenizer) : m_tokenizer(std::move(tokenizer)) {
        for (std::size_t byte = 0; byte < m_bytes.size(); ++byte)
            m_bytes[byte] = static_cast<char>(byte);
    }

    contract::Result<std::vector<std::int32_t>> encode(const std::string& text) const {
        std::vector<std::int32_t> ids;
        if (m_tokenizer == nullptr)
            for (const char byte : text)
                ids.push_back(static_cast<unsigned char>(byte));
        else if (auto encoded = m_tokenizer->encode(text, ids); !encoded)
            return tl::unexpected(encoded.error());
        return ids;
    }
    /// Whether an id stands for anything; networks may have more than their tokenizer.
    bool has(std::int64_t id) const { return m_tokenizer == nullptr ? id < kByteIds : m_tokenizer->hasToken(id); }
    std::string_view text(std::int64_t id) const {
        return m_tokenizer == nullptr ? std::string_view(&m_bytes[static_cast<std::size_t>(id)], 1)
                                      : m_tokenizer->bytesOf(id);
    }

private:
    std::unique_ptr<Tokenizer> m_tokenizer;
    std::array<char, kByteIds> m_bytes{};
};

/// The ids so far, as the one sample there is; what is longer than a sequence begins later.
class PromptData final : public Dataset {
public:
    PromptData(std::vector<std::int32_t> ids, std::int64_t sequence) : m_ids(std::move(ids)), m_sequence(sequence) {}

    void append(std::int32_t id) { m_ids.push_back(id); }
    /// Where in the sequence the last id stands.
    std::int64_t lastPosition() const { return std::min(m_sequence, length()) - 1; }

    void trainingSample(std::int64_t /*step*/, std::int64_t index, std::int32_t* tokens,
                        std::int32_t* targets) const override {
        heldOutSample(index, tokens, targets);
    }
    void heldOutSample(std::int64_t /*index*/, std::int32_t* tokens, std::int32_t* targets) const override {
        const std::int64_t first = length() - 1 - lastPosition();
        for (std::int64_t i = 0; i < m_sequence; ++i) {
            // Attention is causal: what stands behind the text does not matter.
            tokens[i] = i <= lastPosition() ? m_ids[static_cast<std::size_t>(first + i)] : 0;
            targets[i] = kIgnoredTarget;
        }
    }

private:
    std::int64_t length() const { return static_cast<std::int64_t>(m_ids.size()); }
    std::vector<std::int32_t> m_ids;
    std::int64_t m_sequence;
};

/// One id from the softmax of logits / temperature, of those that stand for something.
std::int32_t drawId(const std::vector<float>& logits, const Words& words, double temperature, std::uint64_t random) {
    std::size_t best = logits.size();
    for (std::size_t id = 0; id < logits.size(); ++id)
        if (words.has(static_cast<std::int64_t>(id)) && (best == logits.size() || logits[id] > logits[best]))
            best = id;
    if (temperature <= 0)
        return static_cast<std::int32_t>(best);
    std::vector<double> weights;
    double sum = 0;
    for (std::size_t id = 0; id < logits.size(); ++id) {
        weights.push_back(words.has(static_cast<std::int64_t>(id))
                              ? std::exp(static_cast<double>(logits[id] - logits[best]) / temperature)
                              : 0);
        sum += weights.back();
    }
    double left = static_cast<double>(random >> 11) * 0x1p-53 * sum;
    for (std::size_t id = 0; id < weights.size(); ++id) {
        left -= weights[id];
        if (left < 0)
            return static_cast<std::int32_t>(id);
    }
    return static_cast<std::int32_t>(best); // what rounding leaves over
}

/// The words of a run. Runs of earlier versions have no settings when another launcher started them; they are bytes.
contract::Result<Words> openWords(const SampleOptions& options, const std::string& planPath, std::int64_t vocabulary) {
    const auto settings = readRunSettings(options.runDirectory);
    if (!settings)
        return tl::unexpected(settings.error());
    RunSettings without;
    without.file = options.runDirectory + "/run.json is missing";
    auto tokenizer = openRunTokenizer(settings->value_or(without), options.tokenizer, vocabulary);
    if (!tokenizer)
        return tl::unexpected(tokenizer.error());
    if (*tokenizer == nullptr && vocabulary < kByteIds)
        return contract::badInput(
            fmt::format("{}: graph.architecture.vocabulary is {}; byte ids need {}", planPath, vocabulary, kByteIds));
    return Words(std::move(*tokenizer));
}

} // namespace

contract::Result<void> runSample(const SampleOptions& options) {
    if (options.prompt.empty())
        return contract::usageError("--prompt: must hold at least one byte");
    const std::string planPath = options.runDirectory + "/plan.json";
    const auto plan = contract::readPlanFile(planPath);
    if (!plan)
        return tl::unexpected(plan.error());
    const auto setup = prepareSampling(*plan);
    if (!setup)
        return tl::unexpected(namePlan(setup.error(), planPath));
    const auto words = openWords(options, planPath, setup->architecture.vocabulary);
    if (!words)
        return tl::unexpected(words.error());
    auto prompt = words->encode(options.prompt);
    if (!prompt)
        return tl::unexpected(prompt.error());
    if (prompt->empty())
        return contract::usageError("--prompt: the run's tokenizer makes no token of it");
    std::vector<std::string> skipped;
    const auto found = findCheckpoint(*setup, options.runDirectory, skipped);
    for (const std::string& reason : skipped)
        std::fprintf(stderr, "warning: checkpoint passed over: %s\n", reason.c_str());
    if (!found)
        return contract::badInput(fmt::format("{}: holds no checkpoint to sample from", options.runDirectory));
    prepareBlas();
    PromptData data(std::move(*prompt), setup->training.sequence);
    auto group = Group::connect({});
    if (!group)
        return tl::unexpected(group.error());
    auto executor = Executor::create(*setup, **group, data);
    if (!executor)
        return tl::unexpected(executor.error());
    if (auto loaded = loadCheckpoint(**executor, *setup, *found); !loaded)
        return loaded;
    if (!options.json)
        std::fputs(options.prompt.c_str(), stdout);
    std::string text;
    for (std::int64_t i = 0; i < options.tokens; ++i) {
        const auto logits = (*executor)->predict(data.lastPosition());
        if (!logits)
            return tl::unexpected(logits.error());
        const std::int32_t id = drawId(*logits, *words, options.temperature,
                                       mixBits(options.seed ^ mixBits(static_cast<std::uint64_t>(i))));
        data.append(id);
        text += words->text(id);
        if (!options.json) {
            std::fwrite(words->text(id).data(), 1, words->text(id).size(), stdout);
            std::fflush(stdout);
        }
    }
    if (options.json)
        std::fputs((contract::OrderedJson{{"step", found->state.step}, {"prompt", options.prompt}, {"text", text}}.dump(
                        2, ' ', false, contract::OrderedJson::error_handler_t::replace) +
                    "\n")
                       .c_str(),
                   stdout);
    else
        std::fputc('\n', stdout);
    return {};
}

} // namespace shardscope::engine
