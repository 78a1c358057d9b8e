// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/launch/Sample.h"

#include "runtime/contract/Json.h"
#include "runtime/device/HostMemory.h"
#include "runtime/execute/Checkpoint.h"
#include "runtime/launch/RunOptions.h"
#include "runtime/network/Initializer.h"
#include "runtime/ops/CrossEntropy.h"
#include "runtime/ops/Linear.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace shardscope::engine {

namespace {

constexpr std::int64_t kByteIds = 256;

/// The text so far, as the one sample there is; what is longer than a sequence begins later.
class PromptData final : public Dataset {
public:
    PromptData(std::string text, std::int64_t sequence) : m_text(std::move(text)), m_sequence(sequence) {}

    void append(char byte) { m_text += byte; }
    const std::string& text() const { return m_text; }
    /// Where in the sequence the last byte stands.
    std::int64_t lastPosition() const { return std::min(m_sequence, length()) - 1; }

    void trainingSample(std::int64_t /*step*/, std::int64_t index, std::int32_t* tokens,
                        std::int32_t* targets) const override {
        heldOutSample(index, tokens, targets);
    }
    void heldOutSample(std::int64_t /*index*/, std::int32_t* tokens, std::int32_t* targets) const override {
        const std::int64_t first = length() - 1 - lastPosition();
        for (std::int64_t i = 0; i < m_sequence; ++i) {
            // Attention is causal: what stands behind the text does not matter.
            const bool inText = i <= lastPosition();
            tokens[i] = inText ? static_cast<unsigned char>(m_text[static_cast<std::size_t>(first + i)]) : 0;
            targets[i] = kIgnoredTarget;
        }
    }

private:
    std::int64_t length() const { return static_cast<std::int64_t>(m_text.size()); }
    std::string m_text;
    std::int64_t m_sequence;
};

/// One byte from the softmax of logits / temperature.
char drawByte(const std::vector<float>& logits, double temperature, std::uint64_t random) {
    const auto end = logits.begin() + std::min<std::ptrdiff_t>(kByteIds, static_cast<std::ptrdiff_t>(logits.size()));
    const auto best = std::max_element(logits.begin(), end);
    if (temperature <= 0)
        return static_cast<char>(best - logits.begin());
    std::vector<double> weights;
    double sum = 0;
    for (auto logit = logits.begin(); logit != end; ++logit) {
        weights.push_back(std::exp(static_cast<double>(*logit - *best) / temperature));
        sum += weights.back();
    }
    double left = static_cast<double>(random >> 11) * 0x1p-53 * sum;
    for (std::size_t id = 0; id < weights.size(); ++id) {
        left -= weights[id];
        if (left < 0)
            return static_cast<char>(id);
    }
    return static_cast<char>(best - logits.begin()); // what rounding leaves over
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
    if (setup->architecture.vocabulary < kByteIds)
        return contract::badInput(fmt::format("{}: graph.architecture.vocabulary is {}; byte ids need {}", planPath,
                                              setup->architecture.vocabulary, kByteIds));
    std::vector<std::string> skipped;
    const auto found = findCheckpoint(*setup, options.runDirectory, skipped);
    for (const std::string& reason : skipped)
        std::fprintf(stderr, "warning: checkpoint passed over: %s\n", reason.c_str());
    if (!found)
        return contract::badInput(fmt::format("{}: holds no checkpoint to sample from", options.runDirectory));
    prepareBlas();
    PromptData data(options.prompt, setup->training.sequence);
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
    for (std::int64_t i = 0; i < options.tokens; ++i) {
        const auto logits = (*executor)->predict(data.lastPosition());
        if (!logits)
            return tl::unexpected(logits.error());
        const char byte =
            drawByte(*logits, options.temperature, mixBits(options.seed ^ mixBits(static_cast<std::uint64_t>(i))));
        data.append(byte);
        if (!options.json) {
            std::fputc(byte, stdout);
            std::fflush(stdout);
        }
    }
    if (options.json)
        std::fputs((contract::OrderedJson{{"step", found->state.step},
                                          {"prompt", options.prompt},
                                          {"text", data.text().substr(options.prompt.size())}}
                        .dump(2, ' ', false, contract::OrderedJson::error_handler_t::replace) +
                    "\n")
                       .c_str(),
                   stdout);
    else
        std::fputc('\n', stdout);
    return {};
}

} // namespace shardscope::engine
