// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/SplitPattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>

#include <ctime>
#include <pcre2.h>

namespace shardscope::engine {

namespace {

/// Steps of one match. A run of white space as long as this can still be given back space by space.
constexpr std::uint32_t kMatchLimit = 10'000'000;
constexpr std::uint32_t kHeapLimitKib = 64 * 1024;
constexpr std::size_t kJitStackBytes = std::size_t{16} << 20;
/// Sensible patterns take a hundredth of this.
constexpr double kSecondsToBegin = 5;
constexpr double kSecondsPerByte = 20e-6;
constexpr std::uint32_t kAttemptsBetweenChecks = 256;

/// Of this thread alone: a busy machine, or a process that was stopped, is not a slow pattern.
double processorSeconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::string errorText(int code) {
    PCRE2_UCHAR buffer[256] = {};
    pcre2_get_error_message(code, buffer, sizeof buffer);
    return reinterpret_cast<const char*>(buffer);
}

/// Bytes of the character that begins with this one, in valid UTF-8.
std::size_t characterBytes(char lead) {
    const auto byte = static_cast<unsigned char>(lead);
    return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

} // namespace

struct SplitPattern::Compiled {
    Compiled() = default;
    Compiled(const Compiled&) = delete;
    Compiled& operator=(const Compiled&) = delete;
    ~Compiled() {
        pcre2_match_data_free(data);
        pcre2_jit_stack_free(stack);
        pcre2_match_context_free(context);
        pcre2_code_free(code);
    }

    pcre2_code* code = nullptr;
    pcre2_match_context* context = nullptr;
    pcre2_jit_stack* stack = nullptr;
    pcre2_match_data* data = nullptr;
};

SplitPattern::SplitPattern(std::unique_ptr<Compiled> compiled, std::string where)
    : m_compiled(std::move(compiled)), m_where(std::move(where)) {}
SplitPattern::SplitPattern(SplitPattern&&) noexcept = default;
SplitPattern& SplitPattern::operator=(SplitPattern&&) noexcept = default;
SplitPattern::~SplitPattern() = default;

contract::Result<SplitPattern> SplitPattern::compile(std::string_view pattern, const std::string& where) {
    const auto text = translatePattern(pattern);
    if (!text)
        return contract::badInput(fmt::format("{} {}", where, text.error().message));
    auto compiled = std::make_unique<Compiled>();
    const std::unique_ptr<pcre2_compile_context, void (*)(pcre2_compile_context*)> settings(
        pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
    pcre2_set_newline(settings.get(), PCRE2_NEWLINE_LF);
    pcre2_set_parens_nest_limit(settings.get(), 50);
    int error = 0;
    PCRE2_SIZE at = 0;
    // Anchored: places are tried one after the other by us, so that what a pattern costs can be counted in between.
    compiled->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text->data()), text->size(),
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_ANCHORED | PCRE2_NEVER_BACKSLASH_C,
                                   &error, &at, settings.get());
    if (compiled->code == nullptr)
        return contract::badInput(
            fmt::format("{} is no regular expression that can be read: {} (at byte {})", where, errorText(error), at));
    pcre2_jit_compile(compiled->code, PCRE2_JIT_COMPLETE); // without it the same is slower
    compiled->context = pcre2_match_context_create(nullptr);
    pcre2_set_match_limit(compiled->context, kMatchLimit);
    pcre2_set_heap_limit(compiled->context, kHeapLimitKib);
    compiled->stack = pcre2_jit_stack_create(32 * 1024, kJitStackBytes, nullptr);
    pcre2_jit_stack_assign(compiled->context, nullptr, compiled->stack);
    compiled->data = pcre2_match_data_create_from_pattern(compiled->code, nullptr);
    SplitPattern made(std::move(compiled), where);
    if (auto tried = made.tryOut(); !tried)
        return tl::unexpected(tried.error());
    return made;
}

/// Runs of one kind of character, with something else at their end, are what makes patterns explode.
contract::Result<void> SplitPattern::tryOut() {
    constexpr std::size_t kRun = 1024;
    constexpr std::uint32_t kLimit = 200 * kRun; // linear backtracking needs a few steps per character
    pcre2_set_match_limit(m_compiled->context, kLimit);
    // All of ASCII behind the run: a match that is refused because a character it needs is nowhere would show nothing.
    std::string others;
    for (char c = 1; c > 0 && c < 0x7F; ++c)
        others += c;
    const std::string begun = "!" + others;
    for (const std::string_view unit : {"a", "A", "1", " ", "\n", "!", "aA", "a1", "a ", "\xC3\xA9", "\xE4\xB8\xAD"})
        for (const std::string_view end : {std::string_view(), std::string_view(others), std::string_view(begun)}) {
            std::string text;
            while (text.size() < kRun)
                text += unit;
            text += end;
            if (auto attempt = matchAt(text, 0); !attempt)
                return contract::badInput(fmt::format("{} backtracks without bound: more than {} steps on {} bytes",
                                                      m_where, kLimit, text.size()));
        }
    pcre2_set_match_limit(m_compiled->context, kMatchLimit);
    return {};
}

contract::Result<SplitPattern::Attempt> SplitPattern::matchAt(std::string_view text, std::size_t at) {
    const auto* const subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    int found = pcre2_match(m_compiled->code, subject, text.size(), at, PCRE2_NO_UTF_CHECK, m_compiled->data,
                            m_compiled->context);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT)
        found = pcre2_match(m_compiled->code, subject, text.size(), at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                            m_compiled->data, m_compiled->context);
    if (found == PCRE2_ERROR_NOMATCH)
        return Attempt{};
    if (found < 0)
        return contract::badInput(fmt::format("{} cannot be matched to the text: {}", m_where, errorText(found)));
    const PCRE2_SIZE* const range = pcre2_get_ovector_pointer(m_compiled->data);
    // A lookbehind cannot move the begin of a match, and \K, which could, is not read.
    return Attempt{true, range[1]};
}

contract::Result<void> SplitPattern::checkTime(std::size_t bytes) {
    m_bytes += static_cast<double>(bytes);
    if (++m_uncheckedAttempts < kAttemptsBetweenChecks && m_startSeconds > 0)
        return {};
    m_uncheckedAttempts = 0;
    const double now = processorSeconds();
    if (m_startSeconds == 0)
        m_startSeconds = now;
    if (const double seconds = now - m_startSeconds; seconds > kSecondsToBegin + kSecondsPerByte * m_bytes)
        return contract::badInput(
            fmt::format("{} is too slow: {:.0f} s for {:.0f} bytes of text", m_where, seconds, m_bytes));
    return {};
}

contract::Result<void> SplitPattern::split(std::string_view text, const Sink& sink) {
    std::size_t pending = 0; // where what has not been given to the sink begins
    std::size_t at = 0;
    const auto giveBetween = [&](std::size_t end) {
        const std::string_view between = text.substr(pending, end - pending);
        pending = end;
        return between.empty() ? contract::Result<void>() : sink(between, Piece::Between);
    };
    while (at < text.size()) {
        const auto attempt = matchAt(text, at);
        if (!attempt)
            return tl::unexpected(attempt.error());
        const bool isEmpty = attempt->end <= at;
        if (attempt->matches) {
            if (auto given = giveBetween(at); !given)
                return given;
            if (!isEmpty) {
                if (auto given = sink(text.substr(at, attempt->end - at), Piece::Match); !given)
                    return given;
                pending = attempt->end;
            }
        }
        const std::size_t end = attempt->matches && !isEmpty ? attempt->end : at + characterBytes(text[at]);
        if (auto inTime = checkTime(end - at); !inTime)
            return inTime;
        at = end;
    }
    return giveBetween(text.size());
}

} // namespace shardscope::engine
