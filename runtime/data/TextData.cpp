// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/TextData.h"

#include "runtime/contract/Json.h"
#include "runtime/data/TextFiles.h"
#include "runtime/data/Tokenizer.h"
#include "runtime/network/Initializer.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <utility>

namespace shardscope::engine {

namespace {

/// Windows of a row of ids, which a container of characters or of unsigned integers holds.
template<typename Row> class Windows final : public Dataset {
public:
    Windows(Row row, std::uint64_t seed, std::int64_t sequence)
        : m_row(std::move(row)), m_seed(seed), m_sequence(sequence), m_heldOutBegin(length() - length() / 10) {}

    void trainingSample(std::int64_t step, std::int64_t index, std::int32_t* tokens,
                        std::int32_t* targets) const override {
        const std::uint64_t stepKey = mixBits(mixBits(m_seed) ^ static_cast<std::uint64_t>(step));
        const auto places = static_cast<std::uint64_t>(m_heldOutBegin - m_sequence);
        write(static_cast<std::int64_t>(mixBits(stepKey ^ static_cast<std::uint64_t>(index)) % places), tokens,
              targets);
    }
    void heldOutSample(std::int64_t index, std::int32_t* tokens, std::int32_t* targets) const override {
        const auto places = static_cast<std::uint64_t>(length() - m_heldOutBegin - m_sequence);
        write(m_heldOutBegin + static_cast<std::int64_t>(mixBits(static_cast<std::uint64_t>(index)) % places), tokens,
              targets);
    }

private:
    std::int64_t length() const { return static_cast<std::int64_t>(m_row.size()); }
    std::int32_t at(std::int64_t place) const {
        using Id = std::make_unsigned_t<typename Row::value_type>;
        return static_cast<std::int32_t>(static_cast<Id>(m_row[static_cast<std::size_t>(place)]));
    }
    void write(std::int64_t begin, std::int32_t* tokens, std::int32_t* targets) const {
        for (std::int64_t t = 0; t < m_sequence; ++t) {
            tokens[t] = at(begin + t);
            targets[t] = at(begin + t + 1);
        }
    }

    Row m_row;
    std::uint64_t m_seed;
    std::int64_t m_sequence;
    std::int64_t m_heldOutBegin;
};

/// Both parts need a window of S tokens and the target of the last one.
std::int64_t neededIds(const DatasetRequest& request) {
    return 10 * (request.sequence + 1);
}

contract::Result<std::unique_ptr<Dataset>> tooShort(const DatasetRequest& request, std::size_t held, const char* unit) {
    return contract::badInput(
        fmt::format("--data \"{}\": holds {} {}; sequences of {} tokens need at least {} (a tenth is held out)",
                    request.name, held, unit, request.sequence, neededIds(request)));
}

bool isTooShort(const DatasetRequest& request, std::size_t held) {
    return static_cast<std::int64_t>(held) < neededIds(request);
}

/// Says from time to time how far the encoding of a long text is, and at the end what it gave.
class EncodingReport {
public:
    explicit EncodingReport(const DatasetRequest& request) : m_request(request), m_begin(Clock::now()) {}

    bool progress(std::size_t bytesDone) {
        if (m_request.isStopped && m_request.isStopped())
            return false;
        const auto now = Clock::now();
        if (m_request.say && now - m_said > std::chrono::seconds(2)) {
            m_said = now;
            m_request.say(
                fmt::format("encoding text: {:.1f} MB after {:.0f} s", megabytes(m_before + bytesDone), seconds()));
        }
        return true;
    }
    void endFile(std::size_t bytes) { m_before += bytes; }
    void end(std::size_t tokens) const {
        if (m_request.say)
            m_request.say(fmt::format("encoded {:.1f} MB of text as {} tokens in {:.1f} s", megabytes(m_before), tokens,
                                      seconds()));
    }

private:
    using Clock = std::chrono::steady_clock;
    static double megabytes(std::size_t bytes) { return static_cast<double>(bytes) * 1e-6; }
    double seconds() const { return std::chrono::duration<double>(Clock::now() - m_begin).count(); }

    const DatasetRequest& m_request;
    Clock::time_point m_begin;
    Clock::time_point m_said = m_begin;
    std::size_t m_before = 0;
};

/// Gives the ids of each file to `take`, which says whether to go on. Only one file's text and wide ids are held.
template<typename Take>
contract::Result<void> encodeFiles(const DatasetRequest& request, Tokenizer& tokenizer,
                                   const std::function<bool(std::size_t bytesDone, std::size_t ids)>& progress,
                                   const Take& take) {
    const auto files = textFilesUnder(request.name);
    if (!files)
        return tl::unexpected(files.error());
    std::int64_t bytes = 0;
    for (const std::string& file : *files) {
        const auto text = contract::readTextFile(file, kMaximumTextBytes - bytes);
        if (!text)
            return tl::unexpected(text.error());
        bytes += static_cast<std::int64_t>(text->size());
        std::vector<std::int32_t> ids;
        auto encoded = tokenizer.encode(*text, ids, [&](std::size_t done) { return progress(done, ids.size()); });
        if (!encoded && encoded.error().kind == contract::ErrorKind::BadInput)
            return contract::badInput(fmt::format("{} (text of {})", encoded.error().message, file));
        if (!encoded)
            return encoded;
        if (!take(*text, ids))
            break;
    }
    return {};
}

template<typename Id>
contract::Result<std::unique_ptr<Dataset>> encodeAs(const DatasetRequest& request, Tokenizer& tokenizer) {
    EncodingReport report(request);
    std::vector<Id> row;
    auto encoded = encodeFiles(
        request, tokenizer, [&](std::size_t done, std::size_t) { return report.progress(done); },
        [&](const std::string& text, const std::vector<std::int32_t>& ids) {
            row.insert(row.end(), ids.begin(), ids.end());
            report.endFile(text.size());
            return true;
        });
    if (!encoded && encoded.error().kind == contract::ErrorKind::Cancelled)
        return contract::failure(contract::ErrorKind::Interrupted, encoded.error().message);
    if (!encoded)
        return tl::unexpected(encoded.error());
    report.end(row.size());
    if (isTooShort(request, row.size()))
        return tooShort(request, row.size(), "tokens");
    row.shrink_to_fit();
    return std::make_unique<Windows<std::vector<Id>>>(std::move(row), request.seed, request.sequence);
}

} // namespace

contract::Result<std::unique_ptr<Dataset>> TextData::open(const DatasetRequest& request) {
    const auto files = textFilesUnder(request.name);
    if (!files)
        return tl::unexpected(files.error());
    std::string bytes;
    for (const std::string& file : *files) {
        auto content = contract::readTextFile(file, kMaximumTextBytes - static_cast<std::int64_t>(bytes.size()));
        if (!content)
            return tl::unexpected(content.error());
        bytes += *content;
    }
    if (isTooShort(request, bytes.size()))
        return tooShort(request, bytes.size(), "bytes");
    return std::make_unique<Windows<std::string>>(std::move(bytes), request.seed, request.sequence);
}

contract::Result<std::unique_ptr<Dataset>> TextData::encode(const DatasetRequest& request, Tokenizer& tokenizer) {
    constexpr std::int64_t kIds16 = 1 << 16;
    return tokenizer.vocabulary() <= kIds16 ? encodeAs<std::uint16_t>(request, tokenizer)
                                            : encodeAs<std::uint32_t>(request, tokenizer);
}

contract::Result<void> TextData::check(const DatasetRequest& request, Tokenizer& tokenizer) {
    std::size_t before = 0;
    const auto encoded = encodeFiles(
        request, tokenizer, [&](std::size_t, std::size_t ids) { return isTooShort(request, before + ids); },
        [&](const std::string&, const std::vector<std::int32_t>& ids) {
            before += ids.size();
            return isTooShort(request, before);
        });
    if (!encoded && encoded.error().kind == contract::ErrorKind::Cancelled)
        return {}; // it was enough
    if (!encoded)
        return encoded;
    if (isTooShort(request, before))
        return tl::unexpected(tooShort(request, before, "tokens").error());
    return {};
}

} // namespace shardscope::engine
