// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/TokenData.h"

#include "runtime/network/Initializer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace shardscope::engine {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".bin";
constexpr std::size_t kHeaderBytes = 1024;
constexpr std::int32_t kMagic16 = 20240520;
constexpr std::int32_t kMagic32 = 20240801;
constexpr std::int64_t kIds16 = 1 << 16;

std::vector<std::string> tokenFiles(const std::string& path) {
    std::error_code error;
    if (!fs::is_directory(path, error))
        return path.ends_with(kEnding) && fs::is_regular_file(path, error) ? std::vector{path}
                                                                           : std::vector<std::string>{};
    std::vector<std::string> files;
    for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
        if (it->is_regular_file(error) && it->path().string().ends_with(kEnding))
            files.push_back(it->path().string());
    std::sort(files.begin(), files.end());
    return files;
}

} // namespace

/// One mapped file.
class TokenData::Shard {
public:
    static contract::Result<std::shared_ptr<const Shard>> open(const std::string& path, std::int64_t vocabulary) {
        auto shard = std::make_shared<Shard>();
        const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        struct stat status {};
        if (descriptor < 0 || fstat(descriptor, &status) != 0)
            return contract::badInput(fmt::format("{}: {}", path, std::strerror(errno)));
        shard->m_bytes = static_cast<std::size_t>(status.st_size);
        void* const base =
            shard->m_bytes > 0 ? mmap(nullptr, shard->m_bytes, PROT_READ, MAP_SHARED, descriptor, 0) : MAP_FAILED;
        close(descriptor);
        if (base == MAP_FAILED)
            return contract::badInput(fmt::format("{}: is empty or cannot be mapped", path));
        shard->m_base = static_cast<const std::byte*>(base);
        std::int32_t magic = 0;
        if (shard->m_bytes >= kHeaderBytes)
            std::memcpy(&magic, shard->m_base, sizeof magic);
        const bool hasHeader = magic == kMagic16 || magic == kMagic32;
        shard->m_wide = hasHeader ? magic == kMagic32 : vocabulary > kIds16;
        shard->m_ids = shard->m_base + (hasHeader ? kHeaderBytes : 0);
        const std::size_t bytes = shard->m_bytes - (hasHeader ? kHeaderBytes : 0);
        const std::size_t width = shard->m_wide ? 4 : 2;
        if (bytes % width != 0)
            return contract::badInput(
                fmt::format("{}: {} bytes are no whole number of ids of {} bytes", path, bytes, width));
        shard->m_count = static_cast<std::int64_t>(bytes / width);
        for (std::int64_t i = 0; i < shard->m_count; ++i)
            if (const std::uint32_t id = shard->at(i); id >= vocabulary)
                return contract::badInput(
                    fmt::format("{}: token {} is {}; the vocabulary has {}", path, i, id, vocabulary));
        shard->m_isHeldOut = fs::path(path).filename().string().find("val") != std::string::npos;
        return shard;
    }
    Shard() = default;
    Shard(const Shard&) = delete;
    Shard& operator=(const Shard&) = delete;
    ~Shard() {
        if (m_base != nullptr)
            munmap(const_cast<std::byte*>(m_base), m_bytes); // munmap's signature
    }

    std::int64_t count() const { return m_count; }
    bool isHeldOut() const { return m_isHeldOut; }
    std::uint32_t at(std::int64_t index) const {
        if (m_wide) {
            std::uint32_t id = 0;
            std::memcpy(&id, m_ids + index * 4, sizeof id);
            return id;
        }
        std::uint16_t id = 0;
        std::memcpy(&id, m_ids + index * 2, sizeof id);
        return id;
    }

private:
    const std::byte* m_base = nullptr;
    const std::byte* m_ids = nullptr;
    std::size_t m_bytes = 0;
    std::int64_t m_count = 0;
    bool m_wide = false;
    bool m_isHeldOut = false;
};

bool TokenData::isTokenData(const std::string& path) {
    return !tokenFiles(path).empty();
}

contract::Result<std::unique_ptr<Dataset>> TokenData::open(const std::string& path, std::uint64_t seed,
                                                           std::int64_t sequence, std::int64_t vocabulary) {
    std::unique_ptr<TokenData> data(new TokenData(seed, sequence));
    for (const std::string& file : tokenFiles(path)) {
        auto shard = Shard::open(file, vocabulary);
        if (!shard)
            return tl::unexpected(shard.error());
        Part& part = (*shard)->isHeldOut() ? data->m_heldOut : data->m_training;
        part.end += (*shard)->count();
        part.shards.push_back(std::move(*shard));
    }
    data->split();
    // Each part needs a window of S tokens and the target of the last one.
    for (const auto& [part, name] : {std::pair(&data->m_training, "training"), {&data->m_heldOut, "held-out"}})
        if (part->count() < sequence + 1)
            return contract::badInput(
                fmt::format("--data \"{}\": the {} part has {} tokens; sequences of {} tokens need {}", path, name,
                            part->count(), sequence, sequence + 1));
    return data;
}

/// Where no file is held out, the last tenth of the tokens is.
void TokenData::split() {
    if (!m_heldOut.shards.empty())
        return;
    m_heldOut = m_training;
    m_training.end -= m_training.end / 10;
    m_heldOut.begin = m_training.end;
}

void TokenData::write(const Part& part, std::uint64_t key, std::int32_t* tokens, std::int32_t* targets) const {
    const auto places = static_cast<std::uint64_t>(part.count() - m_sequence);
    std::int64_t at = part.begin + static_cast<std::int64_t>(key % places);
    auto shard = part.shards.begin();
    while (at >= (*shard)->count())
        at -= (*shard++)->count();
    for (std::int64_t t = 0; t <= m_sequence; ++t) {
        const auto id = static_cast<std::int32_t>((*shard)->at(at));
        if (t < m_sequence)
            tokens[t] = id;
        if (t > 0)
            targets[t - 1] = id;
        for (++at; t < m_sequence && at >= (*shard)->count(); ++shard)
            at -= (*shard)->count();
    }
}

void TokenData::trainingSample(std::int64_t step, std::int64_t index, std::int32_t* tokens,
                               std::int32_t* targets) const {
    const std::uint64_t stepKey = mixBits(mixBits(m_seed) ^ static_cast<std::uint64_t>(step));
    write(m_training, mixBits(stepKey ^ static_cast<std::uint64_t>(index)), tokens, targets);
}

void TokenData::heldOutSample(std::int64_t index, std::int32_t* tokens, std::int32_t* targets) const {
    write(m_heldOut, mixBits(static_cast<std::uint64_t>(index)), tokens, targets);
}

} // namespace shardscope::engine
