// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/device/cuda/Matmul.h"

#include "runtime/device/Library.h"

#include <fmt/format.h>

#include <cublasLt.h>
#include <map>
#include <tuple>

namespace shardscope::engine::cuda {

namespace {

cudaDataType typeOf(ElementType type) {
    return type == ElementType::BFloat16 ? CUDA_R_16BF : CUDA_R_32F;
}

/// The functions that are used, found when the library is loaded.
struct Functions {
    decltype(cublasLtCreate)* create = nullptr;
    decltype(cublasLtDestroy)* destroy = nullptr;
    decltype(cublasLtGetStatusString)* statusString = nullptr;
    decltype(cublasLtMatmul)* matmul = nullptr;
    decltype(cublasLtMatmulAlgoGetHeuristic)* heuristic = nullptr;
    decltype(cublasLtMatmulDescCreate)* descriptionCreate = nullptr;
    decltype(cublasLtMatmulDescDestroy)* descriptionDestroy = nullptr;
    decltype(cublasLtMatmulDescSetAttribute)* descriptionSet = nullptr;
    decltype(cublasLtMatrixLayoutCreate)* layoutCreate = nullptr;
    decltype(cublasLtMatrixLayoutDestroy)* layoutDestroy = nullptr;
    decltype(cublasLtMatmulPreferenceCreate)* preferenceCreate = nullptr;
    decltype(cublasLtMatmulPreferenceDestroy)* preferenceDestroy = nullptr;
    decltype(cublasLtMatmulPreferenceSetAttribute)* preferenceSet = nullptr;

    contract::Result<void> resolve(const Library& library) {
        contract::Result<void> result;
        const auto find = [&](auto*& function, const char* symbol) {
            if (result)
                result = library.resolve(function, symbol);
        };
        find(create, "cublasLtCreate");
        find(destroy, "cublasLtDestroy");
        find(statusString, "cublasLtGetStatusString");
        find(matmul, "cublasLtMatmul");
        find(heuristic, "cublasLtMatmulAlgoGetHeuristic");
        find(descriptionCreate, "cublasLtMatmulDescCreate");
        find(descriptionDestroy, "cublasLtMatmulDescDestroy");
        find(descriptionSet, "cublasLtMatmulDescSetAttribute");
        find(layoutCreate, "cublasLtMatrixLayoutCreate");
        find(layoutDestroy, "cublasLtMatrixLayoutDestroy");
        find(preferenceCreate, "cublasLtMatmulPreferenceCreate");
        find(preferenceDestroy, "cublasLtMatmulPreferenceDestroy");
        find(preferenceSet, "cublasLtMatmulPreferenceSetAttribute");
        return result;
    }
};

/// Everything that decides which algorithm is the right one.
using Key = std::tuple<std::array<std::int64_t, 11>, std::array<std::uint32_t, 4>, std::array<int, 7>>;

Key keyOf(const Product& p, const void* c) {
    return {{p.a.rows, p.a.columns, p.a.leading, p.b.rows, p.b.columns, p.b.leading, p.rows, p.columns, p.leading,
             p.c.leading, 0},
            {alignmentOf(p.a.data.at), alignmentOf(p.b.data.at), alignmentOf(c), alignmentOf(p.d.at)},
            {p.a.transposed, p.b.transposed, p.accumulate || p.c.data, static_cast<bool>(p.bias),
             static_cast<bool>(p.beforeGelu), static_cast<int>(p.a.data.type), static_cast<int>(p.d.type)}};
}

} // namespace

struct Matmul::Implementation {
    /// A product that has been seen, with its algorithm, or without one.
    struct Seen {
        cublasLtMatmulDesc_t description = nullptr;
        cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr, d = nullptr;
        cublasLtMatmulAlgo_t algorithm{};
        bool found = false;
    };

    explicit Implementation(Library loaded) : library(std::move(loaded)) {}
    ~Implementation() {
        for (const auto& [key, seen] : products) {
            for (const cublasLtMatrixLayout_t layout : {seen.a, seen.b, seen.c, seen.d})
                if (layout != nullptr)
                    functions.layoutDestroy(layout);
            if (seen.description != nullptr)
                functions.descriptionDestroy(seen.description);
        }
        if (handle != nullptr)
            functions.destroy(handle);
    }

    contract::Result<void> check(cublasStatus_t status, const char* what) const {
        if (status == CUBLAS_STATUS_SUCCESS)
            return {};
        return contract::runFailed(fmt::format("cuBLASLt: {}: {}", what, functions.statusString(status)));
    }
    template<typename T>
    contract::Result<void> set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute,
                               T value) const {
        return check(functions.descriptionSet(description, attribute, &value, sizeof value), "an attribute");
    }

    contract::Result<void> describe(const Product& p, Seen& seen) const;
    contract::Result<void> choose(const Product& p, const void* c, Seen& seen) const;
    contract::Result<void> setPointers(const Product& p, const Seen& seen) const;

    Library library;
    Functions functions;
    cublasLtHandle_t handle = nullptr;
    cudaStream_t stream = nullptr;
    std::byte* workspace = nullptr;
    std::size_t workspaceBytes = 0;
    std::map<Key, Seen> products;
};

contract::Result<void> Matmul::Implementation::describe(const Product& p, Seen& seen) const {
    auto done = check(functions.descriptionCreate(&seen.description, CUBLAS_COMPUTE_32F, CUDA_R_32F), "a description");
    const auto attribute = [&](cublasLtMatmulDescAttributes_t which, auto value) {
        if (done)
            done = set(seen.description, which, value);
    };
    attribute(CUBLASLT_MATMUL_DESC_TRANSA, p.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    attribute(CUBLASLT_MATMUL_DESC_TRANSB, p.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    const cublasLtEpilogue_t epilogue = p.beforeGelu
                                            ? (p.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX)
                                        : p.bias ? CUBLASLT_EPILOGUE_BIAS
                                                 : CUBLASLT_EPILOGUE_DEFAULT;
    attribute(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    if (p.bias)
        attribute(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, typeOf(p.bias.type));
    if (p.beforeGelu)
        attribute(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, static_cast<std::int64_t>(p.leading));
    const auto layout = [&](cublasLtMatrixLayout_t& into, ElementType type, std::int64_t rows, std::int64_t columns,
                            std::int64_t leading) {
        if (done)
            done = check(functions.layoutCreate(&into, typeOf(type), static_cast<std::uint64_t>(rows),
                                                static_cast<std::uint64_t>(columns), leading),
                         "a layout");
    };
    layout(seen.a, p.a.data.type, p.a.rows, p.a.columns, p.a.leading);
    layout(seen.b, p.b.data.type, p.b.rows, p.b.columns, p.b.leading);
    layout(seen.c, p.d.type, p.rows, p.columns, p.c.data ? p.c.leading : p.leading);
    layout(seen.d, p.d.type, p.rows, p.columns, p.leading);
    return done;
}

/// Bias and gelu input belong to the description, so they change from call to call.
contract::Result<void> Matmul::Implementation::setPointers(const Product& p, const Seen& seen) const {
    contract::Result<void> done;
    if (p.bias)
        done = set(seen.description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(p.bias.at));
    if (done && p.beforeGelu)
        done = set(seen.description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, static_cast<void*>(p.beforeGelu.at));
    return done;
}

contract::Result<void> Matmul::Implementation::choose(const Product& p, const void* c, Seen& seen) const {
    cublasLtMatmulPreference_t preference = nullptr;
    auto done = check(functions.preferenceCreate(&preference), "a preference");
    const auto attribute = [&](cublasLtMatmulPreferenceAttributes_t which, auto value) {
        if (done)
            done = check(functions.preferenceSet(preference, which, &value, sizeof value), "a preference");
    };
    attribute(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspaceBytes);
    // Parts of a split operator begin anywhere; without this the library takes 256 bytes for granted.
    attribute(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignmentOf(p.a.data.at));
    attribute(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignmentOf(p.b.data.at));
    attribute(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignmentOf(c));
    attribute(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignmentOf(p.d.at));
    cublasLtMatmulHeuristicResult_t result{};
    int count = 0;
    if (done) {
        const cublasStatus_t status = functions.heuristic(handle, seen.description, seen.a, seen.b, seen.c, seen.d,
                                                          preference, 1, &result, &count);
        if (status != CUBLAS_STATUS_NOT_SUPPORTED)
            done = check(status, "choosing an algorithm");
    }
    if (preference != nullptr)
        functions.preferenceDestroy(preference);
    seen.found = done && count > 0 && result.state == CUBLAS_STATUS_SUCCESS;
    seen.algorithm = result.algo;
    return done;
}

Matmul::Matmul() = default;
Matmul::~Matmul() = default;

contract::Result<std::unique_ptr<Matmul>> Matmul::create(cudaStream_t stream, std::byte* workspace,
                                                         std::int64_t workspaceBytes) {
    auto library = Library::load({fmt::format("libcublasLt.so.{}", CUDART_VERSION / 1000), "libcublasLt.so"});
    if (!library)
        return tl::unexpected(library.error());
    std::unique_ptr<Matmul> matmul(new Matmul);
    matmul->m_implementation = std::make_unique<Implementation>(std::move(*library));
    Implementation& own = *matmul->m_implementation;
    if (auto resolved = own.functions.resolve(own.library); !resolved)
        return tl::unexpected(resolved.error());
    own.stream = stream;
    own.workspace = workspace;
    own.workspaceBytes = static_cast<std::size_t>(workspaceBytes);
    if (auto created = own.check(own.functions.create(&own.handle), "start"); !created)
        return tl::unexpected(created.error());
    return matmul;
}

contract::Result<bool> Matmul::run(const Product& p) {
    Implementation& own = *m_implementation;
    if (p.rows == 0 || p.columns == 0)
        return true;
    const void* const c = p.c.data ? p.c.data.at : p.d.at;
    const auto [at, isNew] = own.products.try_emplace(keyOf(p, c));
    Implementation::Seen& seen = at->second;
    if (isNew) {
        if (auto described = own.describe(p, seen); !described)
            return tl::unexpected(described.error());
        if (auto set = own.setPointers(p, seen); !set)
            return tl::unexpected(set.error());
        if (auto chosen = own.choose(p, c, seen); !chosen)
            return tl::unexpected(chosen.error());
    }
    if (!seen.found)
        return false;
    if (auto set = own.setPointers(p, seen); !set)
        return tl::unexpected(set.error());
    const float alpha = 1;
    const float beta = p.accumulate || p.c.data ? 1 : 0;
    const auto done = own.check(own.functions.matmul(own.handle, seen.description, &alpha, p.a.data.at, seen.a,
                                                     p.b.data.at, seen.b, &beta, c, seen.c, p.d.at, seen.d,
                                                     &seen.algorithm, own.workspace, own.workspaceBytes, own.stream),
                                "a matrix product");
    if (!done)
        return tl::unexpected(done.error());
    return true;
}

} // namespace shardscope::engine::cuda
