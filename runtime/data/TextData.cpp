// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/TextData.h"

#include "runtime/contract/Json.h"
#include "runtime/network/Initializer.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <utility>

namespace shardscope::engine {

namespace {

constexpr std::int64_t kMaximumBytes = std::int64_t{1} << 30;

contract::Result<std::vector<std::string>> filesUnder(const std::string& path) {
    namespace fs = std::filesystem;
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status))
        return contract::badInput(fmt::format("--data \"{}\": there is no such file or folder", path));
    if (!fs::is_directory(status))
        return std::vector<std::string>{path};
    std::vector<std::string> files;
    for (fs::recursive_directory_iterator it(path, error), end; !error && it != end; it.increment(error))
        if (it->is_regular_file(error))
            files.push_back(it->path().string());
    if (error)
        return contract::badInput(fmt::format("--data \"{}\": {}", path, error.message()));
    std::sort(files.begin(), files.end());
    return files;
}

} // namespace

contract::Result<std::unique_ptr<Dataset>> TextData::open(const std::string& path, std::uint64_t seed,
                                                          std::int64_t sequence) {
    const auto files = filesUnder(path);
    if (!files)
        return tl::unexpected(files.error());
    std::string bytes;
    for (const std::string& file : *files) {
        auto content = contract::readTextFile(file, kMaximumBytes - static_cast<std::int64_t>(bytes.size()));
        if (!content)
            return tl::unexpected(content.error());
        bytes += *content;
    }
    // Both parts need a window of S tokens and the target of the last one.
    if (static_cast<std::int64_t>(bytes.size()) / 10 < sequence + 1)
        return contract::badInput(
            fmt::format("--data \"{}\": holds {} bytes; sequences of {} tokens need at least {} (a tenth is held out)",
                        path, bytes.size(), sequence, 10 * (sequence + 1)));
    return std::unique_ptr<Dataset>(new TextData(std::move(bytes), seed, sequence));
}

TextData::TextData(std::string bytes, std::uint64_t seed, std::int64_t sequence)
    : m_bytes(std::move(bytes)), m_seed(seed), m_sequence(sequence),
      m_heldOutBegin(static_cast<std::int64_t>(m_bytes.size()) - static_cast<std::int64_t>(m_bytes.size()) / 10) {}

void TextData::write(std::int64_t begin, std::int32_t* tokens, std::int32_t* targets) const {
    for (std::int64_t t = 0; t < m_sequence; ++t) {
        tokens[t] = static_cast<unsigned char>(m_bytes[static_cast<std::size_t>(begin + t)]);
        targets[t] = static_cast<unsigned char>(m_bytes[static_cast<std::size_t>(begin + t + 1)]);
    }
}

void TextData::trainingSample(std::int64_t step, std::int64_t index, std::int32_t* tokens,
                              std::int32_t* targets) const {
    const std::uint64_t stepKey = mixBits(mixBits(m_seed) ^ static_cast<std::uint64_t>(step));
    const auto places = static_cast<std::uint64_t>(m_heldOutBegin - m_sequence);
    write(static_cast<std::int64_t>(mixBits(stepKey ^ static_cast<std::uint64_t>(index)) % places), tokens, targets);
}

void TextData::heldOutSample(std::int64_t index, std::int32_t* tokens, std::int32_t* targets) const {
    const auto places =
        static_cast<std::uint64_t>(static_cast<std::int64_t>(m_bytes.size()) - m_heldOutBegin - m_sequence);
    write(m_heldOutBegin + static_cast<std::int64_t>(mixBits(static_cast<std::uint64_t>(index)) % places), tokens,
          targets);
}

} // namespace shardscope::engine
