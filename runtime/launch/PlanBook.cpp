// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/launch/PlanBook.h"

#include "runtime/contract/Json.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

namespace shardscope::engine {

namespace {

/// What must not change when a run goes on with another plan; nothing when all is well.
std::optional<std::string> whatDiffers(const PlanSetup& page, std::int64_t workers, const PlanSetup& running) {
    if (page.ranks != workers)
        return fmt::format("plan: parallel.data is {}; its file name says {}", page.ranks, workers);
    if (!(page.architecture == running.architecture))
        return "plan: graph.architecture is another network's";
    if (page.training.sequence != running.training.sequence)
        return fmt::format("plan: training.sequence is {}; the run has {}", page.training.sequence,
                           running.training.sequence);
    if (page.training.globalBatch != running.training.globalBatch)
        return fmt::format("plan: training.global_batch is {}; the run has {}", page.training.globalBatch,
                           running.training.globalBatch);
    return std::nullopt;
}

} // namespace

std::optional<BookPage> findSmallerPlan(const RunOptions& options, const PlanSetup& running,
                                        std::vector<std::string>& skipped) {
    for (std::int64_t workers = running.ranks - 1; workers >= 1; --workers) {
        BookPage page;
        page.path = (std::filesystem::path(options.book) / fmt::format("plan-{}.json", workers)).string();
        std::error_code error;
        if (!std::filesystem::exists(page.path, error))
            continue;
        auto text = contract::readTextFile(page.path);
        const auto plan = text ? contract::parsePlan(*text, page.path)
                               : contract::Result<contract::Plan>(tl::unexpected(text.error()));
        if (!plan) {
            skipped.push_back(plan.error().message);
            continue;
        }
        auto setup = preparePlan(*plan, {std::nullopt, options.learningRate, options.deviceKind()});
        if (!setup) {
            skipped.push_back(namePlan(setup.error(), page.path).message);
            continue;
        }
        if (const auto differs = whatDiffers(*setup, workers, running)) {
            skipped.push_back(namePlan({contract::ErrorKind::BadInput, *differs}, page.path).message);
            continue;
        }
        page.text = std::move(*text);
        page.setup = std::move(*setup);
        return page;
    }
    return std::nullopt;
}

} // namespace shardscope::engine
