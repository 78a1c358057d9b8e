// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/device/cuda/CudaKernels.h"
#include "runtime/device/cuda/CudaLauncher.h"
#include "runtime/ops/shared/ProductBodies.h"
#include "runtime/ops/shared/SharedKernels.h"

#include <utility>

namespace shardscope::engine::cuda {

namespace {

using shared::DeviceSums;

static_assert(2 * sizeof(DeviceSums) + shared::kPartialSums * sizeof(double) <= kKernelMemoryBytes);

class CudaKernels final : public shared::SharedKernels<CudaLauncher> {
public:
    CudaKernels(KernelContext context, Matmul& matmul, CudnnAttention* attention)
        : SharedKernels(CudaLauncher{context.stream}), m_context(std::move(context)), m_matmul(matmul),
          m_attention(attention) {
        m_partials = reinterpret_cast<double*>(m_context.memory);
        m_sums = reinterpret_cast<DeviceSums*>(m_context.memory + shared::kPartialSums * sizeof(double));
    }

    void linearForward(ConstElementMatrix x, ConstElements weight, ConstElements bias, ConstElementMatrix residual,
                       ElementMatrix y) override {
        Product product = forwardProduct(x, weight, y);
        product.bias = bias;
        if (residual.data)
            product.c = {residual.data, y.columns, y.rows, residual.stride, false};
        multiply(product);
    }
    void linearGeluForward(ConstElementMatrix x, ConstElements weight, ConstElements bias, ElementMatrix before,
                           ElementMatrix y) override {
        Product product = forwardProduct(x, weight, y);
        product.bias = bias;
        product.beforeGelu = before.data;
        if (before.stride == y.stride && canFuseGelu(product) && tryMultiply(product))
            return;
        linearForward(x, weight, bias, {}, before);
        const ConstElementMatrix from{before.data, before.rows, before.columns, before.stride};
        shared::byType(x.data.type, [&](auto e) { this->template geluForward<decltype(e)>(from, y); });
    }
    void linearBackwardInput(ConstElementMatrix dy, ConstElements weight, ElementMatrix dx, Write write) override {
        multiply(inputProduct(dy, weight, dx, write));
    }
    void linearBackwardWeight(ConstElementMatrix dy, ConstElementMatrix x, Elements gradient, Write write) override {
        multiply(weightProduct(dy, x, gradient, write));
    }
    void attentionForward(AttentionShape shape, AttentionElements rows, Elements output, Elements logsumexp,
                          Elements scratch) override {
        if (!usesCudnn(rows) || !isDone(m_attention->forward(shape, rows, output, logsumexp)))
            SharedKernels::attentionForward(shape, rows, output, logsumexp, scratch);
    }
    void attentionBackward(AttentionShape shape, AttentionElements rows, ConstElements output, ConstElements logsumexp,
                           ConstElements doutput, AttentionGradients gradients, Elements scratch) override {
        if (!usesCudnn(rows) || !isDone(m_attention->backward(shape, rows, output, logsumexp, doutput, gradients)))
            SharedKernels::attentionBackward(shape, rows, output, logsumexp, doutput, gradients, scratch);
    }
    void prepareRotary(const Rotary& rotary, std::int64_t sequence) override {
        const std::vector<float> table = shared::rotaryTable(rotary, sequence);
        const std::size_t bytes = table.size() * sizeof(float);
        const auto memory = m_context.allocate(static_cast<std::int64_t>(bytes));
        if (!memory)
            return m_context.fail(memory.error());
        cudaError_t status = cudaMemcpyAsync(*memory, table.data(), bytes, cudaMemcpyHostToDevice, m_context.stream);
        if (status == cudaSuccess)
            status = cudaStreamSynchronize(m_context.stream);
        if (status != cudaSuccess)
            return m_context.fail({contract::ErrorKind::RunFailed, cudaGetErrorString(status)});
        m_rotaryTable = reinterpret_cast<const float*>(*memory);
    }

protected:
    contract::Result<DeviceSums> fetch(const DeviceSums* sums) override {
        // First: a copy to memory that is not pinned waits inside the driver, where nobody looks after collectives.
        if (auto waited = m_context.wait(); !waited)
            return tl::unexpected(waited.error());
        DeviceSums result{};
        cudaError_t status = cudaMemcpyAsync(&result, sums, sizeof result, cudaMemcpyDeviceToHost, m_context.stream);
        if (status == cudaSuccess)
            status = cudaStreamSynchronize(m_context.stream);
        if (status != cudaSuccess)
            return contract::runFailed(std::string("reading sums: ") + cudaGetErrorString(status));
        return result;
    }

private:
    /// False where cuBLASLt has no algorithm, or failed: that is remembered.
    bool tryMultiply(const Product& product) { return isDone(m_matmul.run(product)); }
    bool isDone(const contract::Result<bool>& done) {
        if (!done)
            m_context.fail(done.error());
        return !done || *done;
    }
    bool usesCudnn(const AttentionElements& rows) const {
        return m_attention != nullptr && rows.query.type == ElementType::BFloat16;
    }
    void multiply(const Product& product) {
        if (!tryMultiply(product))
            shared::byTypes(product.a.data.type, product.d.type,
                            [&](auto e, auto d) { multiplyByKernel<decltype(e), decltype(d)>(m_launcher, product); });
    }

    template<typename E, typename D> static void multiplyByKernel(const CudaLauncher& launcher, const Product& p);

    KernelContext m_context;
    Matmul& m_matmul;
    CudnnAttention* m_attention;
};

/// A product whose shape or alignment no algorithm takes.
template<typename E, typename D> struct PlainProduct {
    shared::Stepped<E> a, b;
    const E* bias;
    const D* c;
    D* d;
    std::int64_t inner, leadingC, leadingD;
    bool accumulate;

    __device__ void operator()(std::int64_t column, std::int64_t row) const {
        float sum = shared::productAt(a, b, inner, row, column);
        if (bias != nullptr)
            sum += shared::load(bias + row);
        if (c != nullptr)
            sum += shared::load(c + column * leadingC + row);
        shared::write(d + column * leadingD + row, sum, accumulate);
    }
};

template<typename E> shared::Stepped<E> steppedOf(const Product::Stored& m) {
    const auto* const data = shared::as<E>(m.data);
    return m.transposed ? shared::Stepped<E>{data, m.leading, 1} : shared::Stepped<E>{data, 1, m.leading};
}

template<typename E, typename D> void CudaKernels::multiplyByKernel(const CudaLauncher& launcher, const Product& p) {
    const std::int64_t inner = p.a.transposed ? p.a.rows : p.a.columns;
    launcher.matrix(p.columns, p.rows,
                    PlainProduct<E, D>{steppedOf<E>(p.a), steppedOf<E>(p.b), shared::as<E>(p.bias),
                                       shared::as<D>(p.c.data), shared::as<D>(p.d), inner, p.c.leading, p.leading,
                                       p.accumulate});
}

template<typename I, typename F> struct AddTo {
    I* into;
    const F* from;
    __device__ void operator()(std::int64_t, std::int64_t i) const {
        shared::write(into + i, shared::load(from + i), true);
    }
};

template<typename I, typename F>
void launchAdd(cudaStream_t stream, Elements into, ConstElements from, std::int64_t n) {
    CudaLauncher{stream}.matrix(1, n, AddTo<I, F>{shared::as<I>(into), shared::as<F>(from)});
}

} // namespace

std::unique_ptr<Kernels> makeKernels(KernelContext context, Matmul& matmul, CudnnAttention* attention) {
    return std::make_unique<CudaKernels>(std::move(context), matmul, attention);
}

void addElements(cudaStream_t stream, Elements into, ConstElements from, std::int64_t count) {
    shared::byType(into.type, [&](auto i) {
        shared::byType(from.type, [&](auto f) { launchAdd<decltype(i), decltype(f)>(stream, into, from, count); });
    });
}

bool canRunKernels(std::string& why) {
    cudaFuncAttributes attributes{};
    const cudaError_t status =
        cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(&matrixKernel<AddTo<float, float>>));
    why = cudaGetErrorString(status);
    return status == cudaSuccess;
}

} // namespace shardscope::engine::cuda
