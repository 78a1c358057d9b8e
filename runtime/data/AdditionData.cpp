// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/AdditionData.h"

#include "runtime/network/Initializer.h"
#include "runtime/ops/CrossEntropy.h"

#include <fmt/format.h>

namespace shardscope::engine {

namespace {

constexpr std::int64_t kNumbers = 100;
constexpr std::int64_t kSumLength = 10; // "12+34=046;"
constexpr std::int64_t kAnswerBegin = 6;
constexpr std::int64_t kAnswerEnd = 9;
constexpr std::uint64_t kHeldOutKey = 0x5EED0FADD1710425ULL;

char characterAt(std::int64_t pair, std::int64_t at) {
    const std::int64_t a = pair / kNumbers;
    const std::int64_t b = pair % kNumbers;
    const std::int64_t sum = a + b;
    const std::int64_t digits[kSumLength] = {a / 10,    a % 10,        -1,       b / 10, b % 10, -1,
                                             sum / 100, sum / 10 % 10, sum % 10, -1};
    if (digits[at] >= 0)
        return static_cast<char>('0' + digits[at]);
    return at == 2 ? '+' : at == 5 ? '=' : ';';
}

bool isAnswer(std::int64_t at) {
    return at >= kAnswerBegin && at < kAnswerEnd;
}

} // namespace

contract::Result<std::unique_ptr<Dataset>> AdditionData::create(std::uint64_t seed, std::int64_t sequence) {
    if (sequence < kSumLength)
        return contract::badInput(
            fmt::format("plan: training.sequence is {}; builtin:addition needs at least {} tokens for one sum",
                        sequence, kSumLength));
    return std::unique_ptr<Dataset>(new AdditionData(seed, sequence));
}

bool AdditionData::isHeldOut(std::int64_t pair) {
    return mixBits(static_cast<std::uint64_t>(pair)) % 10 == 0;
}

void AdditionData::write(std::uint64_t key, bool heldOut, std::int32_t* tokens, std::int32_t* targets) const {
    std::uint64_t draw = 0;
    std::int64_t pair = 0;
    for (std::int64_t t = 0; t <= m_sequence; ++t) {
        const std::int64_t at = t % kSumLength;
        if (at == 0)
            do
                pair = static_cast<std::int64_t>(mixBits(key + ++draw) % (kNumbers * kNumbers));
            while (isHeldOut(pair) != heldOut);
        const std::int32_t id = characterAt(pair, at);
        if (t < m_sequence)
            tokens[t] = id;
        if (t > 0)
            targets[t - 1] = isAnswer(at) ? id : kIgnoredTarget;
    }
}

void AdditionData::trainingSample(std::int64_t step, std::int64_t index, std::int32_t* tokens,
                                  std::int32_t* targets) const {
    const std::uint64_t stepKey = mixBits(mixBits(m_seed) ^ static_cast<std::uint64_t>(step));
    write(mixBits(stepKey ^ static_cast<std::uint64_t>(index)), false, tokens, targets);
}

void AdditionData::heldOutSample(std::int64_t index, std::int32_t* tokens, std::int32_t* targets) const {
    write(mixBits(kHeldOutKey ^ static_cast<std::uint64_t>(index)), true, tokens, targets);
}

AnswerCount AdditionData::countAnswers(const std::int32_t* /*tokens*/, const std::vector<bool>& correct,
                                       std::size_t first) const {
    AnswerCount count;
    for (std::int64_t sum = 0; (sum + 1) * kSumLength <= m_sequence; ++sum) {
        bool right = true;
        for (std::int64_t at = kAnswerBegin; at < kAnswerEnd; ++at)
            right = right && correct[first + static_cast<std::size_t>(sum * kSumLength + at - 1)];
        ++count.asked;
        count.right += right ? 1 : 0;
    }
    return count;
}

} // namespace shardscope::engine
