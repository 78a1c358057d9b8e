// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/device/cuda/CudnnAttention.h"

#ifdef SHARDSCOPE_HAS_CUDNN

#include "runtime/device/Library.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <cudnn_frontend.h>
#include <exception>
#include <map>
#include <tuple>
#include <unordered_map>

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr; // what the headers want of a program that loads cuDNN itself
}

namespace shardscope::engine::cuda {

namespace {

namespace fe = cudnn_frontend;

enum Tensor : std::int64_t {
    kQuery = 1,
    kKey,
    kValue,
    kOutput,
    kStats,
    kOutputGradient,
    kQueryGradient,
    kKeyGradient,
    kValueGradient
};

/// Everything that decides a graph.
struct Form {
    AttentionShape shape;
    std::int64_t queryStride = 0, keyStride = 0, queryGradientStride = 0, keyGradientStride = 0;
    bool isBackward = false;

    auto key() const {
        return std::tuple(shape.batch, shape.sequence, shape.heads, shape.kvHeads, shape.headDim, queryStride,
                          keyStride, queryGradientStride, keyGradientStride, isBackward);
    }
};

/// (B, heads, S, d) of rows of tokens, with `stride` elements from one token to the next.
fe::graph::Tensor_attributes rowsOf(const AttentionShape& s, std::int64_t heads, std::int64_t stride, Tensor id,
                                    const char* name) {
    fe::graph::Tensor_attributes tensor;
    tensor.set_name(name)
        .set_uid(id)
        .set_dim({s.batch, heads, s.sequence, s.headDim})
        .set_stride({s.sequence * stride, s.headDim, stride, 1});
    return tensor;
}
fe::graph::Tensor_attributes statsOf(const AttentionShape& s) {
    fe::graph::Tensor_attributes tensor;
    tensor.set_name("stats")
        .set_uid(kStats)
        .set_dim({s.batch, s.heads, s.sequence, 1})
        .set_stride({s.heads * s.sequence, s.sequence, 1, 1})
        .set_data_type(fe::DataType_t::FLOAT);
    return tensor;
}

void markOutput(const std::shared_ptr<fe::graph::Tensor_attributes>& tensor, const fe::graph::Tensor_attributes& like) {
    tensor->set_output(true).set_uid(like.get_uid()).set_dim(like.get_dim()).set_stride(like.get_stride());
}

std::shared_ptr<fe::graph::Graph> graphOf(const Form& form) {
    const AttentionShape& s = form.shape;
    auto graph = std::make_shared<fe::graph::Graph>();
    graph->set_io_data_type(fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    const auto query = graph->tensor(rowsOf(s, s.heads, form.queryStride, kQuery, "query"));
    const auto key = graph->tensor(rowsOf(s, s.kvHeads, form.keyStride, kKey, "key"));
    const auto value = graph->tensor(rowsOf(s, s.kvHeads, form.keyStride, kValue, "value"));
    const float scale = 1.0F / std::sqrt(static_cast<float>(s.headDim));
    if (!form.isBackward) {
        auto attributes = fe::graph::SDPA_attributes();
        attributes.set_name("attention").set_generate_stats(true).set_attn_scale(scale);
        attributes.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT).set_diagonal_band_right_bound(0);
        const auto [output, stats] = graph->sdpa(query, key, value, attributes);
        markOutput(output, rowsOf(s, s.heads, s.width(), kOutput, "output"));
        markOutput(stats, statsOf(s));
        stats->set_data_type(fe::DataType_t::FLOAT);
        return graph;
    }
    const auto output = graph->tensor(rowsOf(s, s.heads, s.width(), kOutput, "output"));
    const auto gradient = graph->tensor(rowsOf(s, s.heads, s.width(), kOutputGradient, "output_gradient"));
    const auto stats = graph->tensor(statsOf(s));
    auto attributes = fe::graph::SDPA_backward_attributes();
    attributes.set_name("attention_backward").set_attn_scale(scale).set_deterministic_algorithm(true);
    attributes.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT).set_diagonal_band_right_bound(0);
    const auto [dquery, dkey, dvalue] = graph->sdpa_backward(query, key, value, output, gradient, stats, attributes);
    markOutput(dquery, rowsOf(s, s.heads, form.queryGradientStride, kQueryGradient, "query_gradient"));
    markOutput(dkey, rowsOf(s, s.kvHeads, form.keyGradientStride, kKeyGradient, "key_gradient"));
    markOutput(dvalue, rowsOf(s, s.kvHeads, form.keyGradientStride, kValueGradient, "value_gradient"));
    return graph;
}

/// cuDNN is loaded once. Empty: it was; else why not.
const std::string& loadCudnn() {
    static const std::string kFault = [] {
        const auto library = Library::load({"libcudnn.so.9"});
        if (!library)
            return library.error().message;
        // The headers call the CUDA runtime through a shared library of its own, of which they would take an older one.
        const std::string runtime = fmt::format("libcudart.so.{}", CUDART_VERSION / 1000);
        const auto cudart = Library::load({runtime});
        if (!cudart)
            return cudart.error().message;
        setenv("CUDNN_FRONTEND_CUDART_LIB_NAME", runtime.c_str(), 0);
        fe::cudnn_dlhandle = library->handle();
        return std::string();
    }();
    return kFault;
}

class Attention final : public CudnnAttention {
public:
    Attention(cudnnHandle_t handle, Allocate allocate) : m_handle(handle), m_allocate(std::move(allocate)) {}
    ~Attention() override { fe::detail::destroy_handle(m_handle); }

    contract::Result<bool> forward(AttentionShape shape, const AttentionElements& rows, Elements output,
                                   Elements logsumexp) override {
        return run({shape, rows.queryStride, rows.keyStride, 0, 0, false}, {{kQuery, pointer(rows.query)},
                                                                            {kKey, pointer(rows.key)},
                                                                            {kValue, pointer(rows.value)},
                                                                            {kOutput, output.at},
                                                                            {kStats, logsumexp.at}});
    }
    contract::Result<bool> backward(AttentionShape shape, const AttentionElements& rows, ConstElements output,
                                    ConstElements logsumexp, ConstElements doutput,
                                    const AttentionGradients& gradients) override {
        return run({shape, rows.queryStride, rows.keyStride, gradients.queryStride, gradients.keyStride, true},
                   {{kQuery, pointer(rows.query)},
                    {kKey, pointer(rows.key)},
                    {kValue, pointer(rows.value)},
                    {kOutput, pointer(output)},
                    {kStats, pointer(logsumexp)},
                    {kOutputGradient, pointer(doutput)},
                    {kQueryGradient, gradients.query.at},
                    {kKeyGradient, gradients.key.at},
                    {kValueGradient, gradients.value.at}});
    }

private:
    using Pointers = std::unordered_map<std::int64_t, void*>;
    /// cuDNN takes what it only reads as void* as well.
    static void* pointer(ConstElements elements) { return const_cast<std::byte*>(elements.at); }

    contract::Result<bool> run(const Form& form, Pointers pointers) {
        try {
            const auto [at, isNew] = m_graphs.try_emplace(form.key());
            std::shared_ptr<fe::graph::Graph>& graph = at->second;
            if (isNew) {
                graph = graphOf(form);
                if (graph->build(m_handle, {fe::HeurMode_t::A}).is_bad())
                    graph.reset(); // no kernel for it
                else if (auto room = reserve(*graph); !room)
                    return tl::unexpected(room.error());
            }
            if (!graph)
                return false;
            if (auto status = graph->execute(m_handle, pointers, m_workspace); status.is_bad())
                return contract::runFailed("cuDNN: attention: " + status.get_message());
            return true;
        } catch (const std::exception& error) {
            return contract::runFailed(std::string("cuDNN: attention: ") + error.what());
        }
    }

    contract::Result<void> reserve(const fe::graph::Graph& graph) {
        std::int64_t bytes = 0;
        if (auto status = graph.get_workspace_size(bytes); status.is_bad())
            return contract::runFailed("cuDNN: workspace: " + status.get_message());
        if (bytes <= m_workspaceBytes)
            return {};
        const auto memory = m_allocate(bytes);
        if (!memory)
            return tl::unexpected(memory.error());
        m_workspace = *memory;
        m_workspaceBytes = bytes;
        return {};
    }

    cudnnHandle_t m_handle;
    Allocate m_allocate;
    std::byte* m_workspace = nullptr;
    std::int64_t m_workspaceBytes = 0;
    std::map<decltype(Form{}.key()), std::shared_ptr<fe::graph::Graph>> m_graphs;
};

} // namespace

std::unique_ptr<CudnnAttention> CudnnAttention::open(cudaStream_t stream, Allocate allocate, std::string& why) {
    why = loadCudnn();
    if (!why.empty())
        return nullptr;
    try {
        cudnnHandle_t handle = nullptr;
        if (fe::detail::create_handle(&handle) != CUDNN_STATUS_SUCCESS) {
            why = "cuDNN does not start on this GPU";
            return nullptr;
        }
        auto attention = std::make_unique<Attention>(handle, std::move(allocate));
        if (fe::detail::set_stream(handle, stream) == CUDNN_STATUS_SUCCESS)
            return attention;
        why = "cuDNN does not take the stream";
    } catch (const std::exception& error) {
        why = error.what();
    }
    return nullptr;
}

} // namespace shardscope::engine::cuda

#else

namespace shardscope::engine::cuda {

std::unique_ptr<CudnnAttention> CudnnAttention::open(cudaStream_t, Allocate, std::string& why) {
    why = "this program was built without cuDNN's frontend headers";
    return nullptr;
}

} // namespace shardscope::engine::cuda

#endif
