// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/launch/MeasureKernels.h"

#include "runtime/contract/Operator.h"
#include "runtime/launch/TelemetryWriter.h"
#include "runtime/ops/AdamW.h"
#include "runtime/ops/Attention.h"
#include "runtime/ops/CrossEntropy.h"
#include "runtime/ops/Embedding.h"
#include "runtime/ops/Gelu.h"
#include "runtime/ops/LayerNorm.h"
#include "runtime/ops/Linear.h"
#include "runtime/ops/Rotary.h"
#include "runtime/ops/SiluGate.h"

#include <algorithm>
#include <array>
#include <barrier>
#include <cmath>
#include <thread>
#include <utility>

namespace shardscope::engine {

namespace {

constexpr double kSeconds = 0.08; ///< of one measurement

/// Numbers for one operation of one worker; not all alike, and small enough that nothing overflows.
std::vector<float> numbers(std::int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(i % 29) / 64.0F - 0.2F;
    return values;
}

/// Seconds of one call of `work`, the memory of which `make` makes for each worker.
template<typename Make> double secondsOf(std::int64_t workers, Make make) {
    std::vector<std::function<void()>> calls;
    for (std::int64_t i = 0; i < workers; ++i)
        calls.push_back(make());
    return 1.0 / slowestRate(workers, kSeconds, [&](std::int64_t worker) {
               calls[static_cast<std::size_t>(worker)]();
               return 1.0;
           });
}

/// Operations that are measured in turn, several times over: a machine's speed changes from second to second, and
/// moments apart tell more of it than one longer moment.
class Series {
public:
    using Make = std::function<std::function<void()>()>;
    explicit Series(std::int64_t workers) : m_workers(workers) {}
    std::size_t add(Make make) {
        m_operations.push_back({std::move(make), {}});
        return m_operations.size() - 1;
    }
    void run() {
        for (std::size_t round = 0; round < kRounds; ++round) {
            for (Operation& operation : m_operations)
                operation.seconds[round] = secondsOf(m_workers, operation.make);
        }
    }
    /// One call's: the lower quartile, since other programs only ever make it slower.
    double seconds(std::size_t index) const {
        const auto& seconds = m_operations[index].seconds;
        return quantile({seconds.begin(), seconds.end()}, 0.25);
    }

private:
    static constexpr std::size_t kRounds = 5;
    struct Operation {
        Make make;
        std::array<double, kRounds> seconds{};
    };
    std::int64_t m_workers;
    std::vector<Operation> m_operations;
};

struct ProductShape {
    std::int64_t rows, outputs, inputs;
};

/// A linear operator with a bias, forward and backward.
std::function<void()> makeProduct(ProductShape s) {
    return [s, x = numbers(s.rows * s.inputs), w = numbers(s.outputs * s.inputs), b = numbers(s.outputs),
            y = numbers(s.rows * s.outputs), dx = numbers(s.rows * s.inputs), dw = numbers(s.outputs * s.inputs),
            db = numbers(s.outputs)]() mutable {
        const ConstMatrix in{x.data(), s.rows, s.inputs, s.inputs};
        linearForward(in, w.data(), b.data(), {}, {y.data(), s.rows, s.outputs, s.outputs});
        const ConstMatrix dy{y.data(), s.rows, s.outputs, s.outputs};
        linearBackwardInput(dy, w.data(), {dx.data(), s.rows, s.inputs, s.inputs}, Write::Overwrite);
        linearBackwardWeight(dy, in, dw.data(), Write::Add);
        linearBackwardBias(dy, db.data(), Write::Add);
        std::fill(dw.begin(), dw.end(), 0.0F); // it must not grow without end, and a step clears gradients too
    };
}

std::function<void()> makeAttention(AttentionShape s) {
    const std::int64_t width = s.width();
    return [s, qkv = numbers(3 * s.tokens() * width), gradients = numbers(3 * s.tokens() * width),
            output = numbers(s.tokens() * width), doutput = numbers(s.tokens() * width),
            logsumexp = numbers(s.tokens() * s.heads),
            scratch = numbers(2 * contract::kAttentionTileRows * s.sequence)]() mutable {
        const AttentionRows<const float> rows = fusedRows<const float>(s, qkv.data());
        attentionForward(s, rows, output.data(), logsumexp.data(), scratch.data());
        attentionBackward(s, rows, output.data(), logsumexp.data(), doutput.data(), fusedRows(s, gradients.data()),
                          scratch.data());
    };
}

constexpr std::int64_t kTokens = 512;
constexpr std::int64_t kWidth = 1024;

std::function<void()> makeNorm() {
    return [x = numbers(kTokens * kWidth), gain = numbers(kWidth), bias = numbers(kWidth),
            y = numbers(kTokens * kWidth), statistics = numbers(2 * kTokens), dx = numbers(kTokens * kWidth),
            dgain = numbers(kWidth), dbias = numbers(kWidth)]() mutable {
        const NormShape shape{kTokens, kWidth};
        layerNormForward(shape, x.data(), gain.data(), bias.data(), 1e-5F, y.data(), statistics.data());
        layerNormBackward(shape, y.data(), x.data(), gain.data(), statistics.data(), dx.data(), Write::Overwrite,
                          dgain.data(), dbias.data(), Write::Overwrite);
    };
}

std::function<void()> makeGelu() {
    return [x = numbers(kTokens * kWidth), y = numbers(kTokens * kWidth), dx = numbers(kTokens * kWidth)]() mutable {
        const ConstMatrix in{x.data(), kTokens, kWidth, kWidth};
        geluTanhForward(in, {y.data(), kTokens, kWidth, kWidth});
        geluTanhBackward(in, {y.data(), kTokens, kWidth, kWidth}, {dx.data(), kTokens, kWidth, kWidth});
    };
}

std::function<void()> makeSiluGate() {
    return [gate = numbers(kTokens * kWidth), up = numbers(kTokens * kWidth), y = numbers(kTokens * kWidth),
            dgate = numbers(kTokens * kWidth), dup = numbers(kTokens * kWidth)]() mutable {
        const ConstMatrix g{gate.data(), kTokens, kWidth, kWidth};
        const ConstMatrix u{up.data(), kTokens, kWidth, kWidth};
        siluGateForward(g, u, {y.data(), kTokens, kWidth, kWidth});
        siluGateBackward(g, u, {y.data(), kTokens, kWidth, kWidth}, {dgate.data(), kTokens, kWidth, kWidth},
                         {dup.data(), kTokens, kWidth, kWidth});
    };
}

std::function<void()> makeRotary() {
    constexpr std::int64_t kHeadDim = 64;
    const auto rotary = Rotary::create(contract::Rope{}, kHeadDim);
    return [rotary = *rotary, x = numbers(kTokens * kWidth)]() mutable {
        for (const auto direction : {Rotary::Direction::Forward, Rotary::Direction::Backward})
            rotary.apply(x.data(), kTokens, kTokens, kWidth / kHeadDim, direction);
    };
}

std::function<void()> makeEmbedding() {
    constexpr std::int64_t kRows = 4096;
    std::vector<std::int32_t> ids(kTokens);
    for (std::size_t i = 0; i < ids.size(); ++i)
        ids[i] = static_cast<std::int32_t>(i * 1999 % kRows);
    return [ids, table = numbers(kRows * kWidth), y = numbers(kTokens * kWidth),
            gradient = numbers(kRows * kWidth)]() mutable {
        embeddingForward(ids.data(), {0, kRows}, table.data(), {y.data(), kTokens, kWidth, kWidth}, Write::Overwrite);
        embeddingBackward(ids.data(), {0, kRows}, {y.data(), kTokens, kWidth, kWidth}, gradient.data());
    };
}

std::function<void()> makeLoss() {
    constexpr std::int64_t kVocabulary = 8192;
    return [logits = numbers(kTokens * kVocabulary), losses = numbers(kTokens),
            targets = std::vector<std::int32_t>(kTokens, 7)]() mutable {
        crossEntropyWithGradient(logits.data(), targets.data(), kTokens, kVocabulary, losses.data());
    };
}

constexpr std::int64_t kParameters = 4 << 20; ///< beyond what caches hold
constexpr double kUpdateBytes = 28;           ///< reads gradient, weight and moments, writes weight and moments

std::function<void()> makeUpdate() {
    return [gradient = numbers(kParameters), weight = numbers(kParameters), first = numbers(kParameters),
            second = std::vector<float>(kParameters, 1.0F)]() mutable {
        const double squares = sumOfSquares(gradient.data(), kParameters); // of the gradient norm
        AdamWStep step;
        step.gradientScale = squares > 0 ? 1e-3F : 0.0F;
        step.learningRate = 1e-6F;
        adamW(step, 0.1F, kParameters, gradient.data(), weight.data(), first.data(), second.data());
    };
}

/// Solves the normal equations of the features in use, by Gaussian elimination with pivoting; they are few.
std::vector<double> solveFit(const std::vector<FitSample>& samples, const std::vector<std::size_t>& used) {
    const std::size_t n = used.size();
    std::vector<std::vector<double>> a(n, std::vector<double>(n + 1, 0.0));
    for (const FitSample& sample : samples) {
        const double weight = 1.0 / (sample.seconds * sample.seconds);
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t j = 0; j < n; ++j)
                a[i][j] += weight * sample.features[used[i]] * sample.features[used[j]];
            a[i][n] += weight * sample.features[used[i]] * sample.seconds;
        }
    }
    for (std::size_t i = 0; i < n; ++i) {
        std::size_t pivot = i;
        for (std::size_t r = i + 1; r < n; ++r)
            pivot = std::abs(a[r][i]) > std::abs(a[pivot][i]) ? r : pivot;
        std::swap(a[i], a[pivot]);
        for (std::size_t r = 0; r < n && a[i][i] != 0; ++r) {
            const double factor = r == i ? 0.0 : a[r][i] / a[i][i];
            for (std::size_t c = i; c <= n && factor != 0; ++c)
                a[r][c] -= factor * a[i][c];
        }
    }
    std::vector<double> solution(n);
    for (std::size_t i = 0; i < n; ++i)
        solution[i] = a[i][i] != 0 ? a[i][n] / a[i][i] : 0.0;
    return solution;
}

} // namespace

double quantile(std::vector<double> values, double share) {
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

double slowestRate(std::int64_t workers, double seconds, const std::function<double(std::int64_t)>& work) {
    // As long as an operator of a step takes: ranks wait for each other about so often.
    constexpr double kTurnSeconds = 12e-3;
    const auto count = static_cast<std::size_t>(workers);
    std::vector<double> done(count), callSeconds(count);
    std::int64_t calls = 1; // of a turn
    bool isOver = false;
    double begin = 0, end = 0;
    std::barrier warm(workers, [&]() noexcept {
        const double slowest = *std::max_element(callSeconds.begin(), callSeconds.end());
        calls = std::max<std::int64_t>(1, static_cast<std::int64_t>(kTurnSeconds / std::max(slowest, 1e-9)));
        begin = monotonicSeconds();
    });
    std::barrier turn(workers, [&]() noexcept {
        end = monotonicSeconds();
        isOver = end - begin >= seconds;
    });
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < count; ++i)
        threads.emplace_back([&, i] {
            const auto worker = static_cast<std::int64_t>(i);
            work(worker); // warm
            const double first = monotonicSeconds();
            work(worker);
            callSeconds[i] = monotonicSeconds() - first;
            warm.arrive_and_wait();
            do {
                for (std::int64_t call = 0; call < calls; ++call)
                    done[i] += work(worker);
                turn.arrive_and_wait();
            } while (!isOver);
        });
    for (std::thread& thread : threads)
        thread.join();
    return *std::min_element(done.begin(), done.end()) / (end - begin);
}

Fit fitSeconds(const std::vector<FitSample>& samples) {
    Fit fit;
    if (samples.empty())
        return fit;
    std::vector<std::size_t> used(samples.front().features.size());
    for (std::size_t i = 0; i < used.size(); ++i)
        used[i] = i;
    fit.coefficients.assign(used.size(), 0.0);
    while (!used.empty()) {
        const std::vector<double> solution = solveFit(samples, used);
        const auto least = std::min_element(solution.begin(), solution.end());
        if (*least < 0) {
            used.erase(used.begin() + (least - solution.begin()));
            continue;
        }
        for (std::size_t i = 0; i < used.size(); ++i)
            fit.coefficients[used[i]] = solution[i];
        break;
    }
    double mean = 0, residual = 0, total = 0;
    for (const FitSample& sample : samples)
        mean += sample.seconds / static_cast<double>(samples.size());
    for (const FitSample& sample : samples) {
        double predicted = 0;
        for (std::size_t i = 0; i < fit.coefficients.size(); ++i)
            predicted += fit.coefficients[i] * sample.features[i];
        residual += (predicted - sample.seconds) * (predicted - sample.seconds);
        total += (sample.seconds - mean) * (sample.seconds - mean);
    }
    fit.r2 = total > 0 ? 1.0 - residual / total : 0;
    return fit;
}

MeasuredKernels measureKernels(std::int64_t workers) {
    Series series(workers);
    constexpr ProductShape kProducts[] = {{256, 256, 256},   {512, 1024, 256}, {256, 256, 1024}, {1024, 512, 512},
                                          {512, 2048, 512},  {512, 512, 2048}, {512, 768, 768},  {1024, 3072, 768},
                                          {256, 1024, 1024}, {512, 8192, 512}, {64, 512, 512}};
    std::vector<std::size_t> products, attentions;
    for (const ProductShape& shape : kProducts)
        products.push_back(series.add([shape] { return makeProduct(shape); }));
    constexpr std::int64_t kSequences[] = {128, 256, 512, 1024};
    for (const std::int64_t sequence : kSequences)
        attentions.push_back(series.add([sequence] { return makeAttention({1, sequence, 8, 8, 64}); }));
    const std::size_t norm = series.add(makeNorm), gelu = series.add(makeGelu), siluGate = series.add(makeSiluGate),
                      rotary = series.add(makeRotary), embedding = series.add(makeEmbedding),
                      loss = series.add(makeLoss), update = series.add(makeUpdate);
    series.run();

    MeasuredKernels measured;
    contract::KernelRates& rates = measured.rates;
    std::vector<FitSample> samples;
    for (std::size_t i = 0; i < products.size(); ++i) {
        const auto rows = static_cast<double>(kProducts[i].rows), outputs = static_cast<double>(kProducts[i].outputs),
                   inputs = static_cast<double>(kProducts[i].inputs);
        samples.push_back({{2 * rows * outputs * inputs, rows * (inputs + outputs) + inputs * outputs, 1.0},
                           series.seconds(products[i])});
    }
    const Fit product = fitSeconds(samples);
    rates.productSecondsPerFlop = product.coefficients[0];
    rates.productSecondsPerElement = product.coefficients[1];
    rates.productSeconds = product.coefficients[2];
    measured.productR2 = product.r2;
    samples.clear();
    for (std::size_t i = 0; i < attentions.size(); ++i) {
        const std::int64_t sequence = kSequences[i];
        const contract::AttentionShape counted{8, 8, 64, sequence, 64, sequence, sequence};
        const AttentionShape shape{1, sequence, 8, 8, 64};
        samples.push_back(
            {{counted.flops(sequence), static_cast<double>(sequence * shape.width())}, series.seconds(attentions[i])});
    }
    const Fit attention = fitSeconds(samples);
    rates.attentionSecondsPerFlop = attention.coefficients[0];
    rates.attentionSecondsPerElement = attention.coefficients[1];
    measured.attentionR2 = attention.r2;
    constexpr double kElements = static_cast<double>(kTokens * kWidth);
    rates.normSecondsPerElement = series.seconds(norm) / kElements;
    rates.geluSecondsPerElement = series.seconds(gelu) / kElements;
    rates.siluGateSecondsPerElement = series.seconds(siluGate) / kElements;
    rates.rotarySecondsPerElement = series.seconds(rotary) / kElements;
    rates.embeddingSecondsPerElement = series.seconds(embedding) / kElements;
    rates.lossSecondsPerLogit = series.seconds(loss) / (static_cast<double>(kTokens) * 8192);
    rates.updateSecondsPerByte = series.seconds(update) / (kUpdateBytes * static_cast<double>(kParameters));
    return measured;
}

} // namespace shardscope::engine
