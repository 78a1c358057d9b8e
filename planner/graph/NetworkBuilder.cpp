// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/graph/NetworkBuilder.h"

#include "planner/graph/SplitAxes.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace shardscope::planner {

using contract::Operator;
using contract::OperatorKind;
using contract::OperatorRole;

namespace {

constexpr std::size_t kMaximumOperators = 1 << 17;
constexpr double kMaximumTotal = 0x1p50; // of parameters, and of activation elements of a sample

double real(std::int64_t value) {
    return static_cast<double>(value);
}

} // namespace

std::int64_t NetworkBuilder::whole(double elements) {
    if (!(elements <= kMaximumTotal)) {
        m_tooLarge = true;
        return 0;
    }
    return static_cast<std::int64_t>(std::ceil(elements));
}

std::int64_t NetworkBuilder::tokens() const {
    return static_cast<std::int64_t>(std::ceil(m_tokens));
}

void NetworkBuilder::enterBlock(const std::string& name) {
    m_block = m_blocks++;
    m_blockName = name;
    m_blockStarts = true;
}

void NetworkBuilder::leaveBlock() {
    m_block = -1;
    m_blockName.clear();
    m_blockStarts = false;
}

void NetworkBuilder::enterExperts(std::int64_t experts, std::int64_t active) {
    m_experts = experts;
    m_activeExperts = active;
    m_tokensOutsideExperts = m_tokens;
    m_tokens *= real(active) / real(experts);
}

void NetworkBuilder::leaveExperts() {
    m_tokens = m_tokensOutsideExperts;
    m_experts = m_activeExperts = 0;
}

void NetworkBuilder::keep(Operator& op, const char* name, double elements, bool isFloat32) {
    m_kept += elements;
    const bool isInput = std::string_view(name) == "input";
    op.kept.push_back({name, whole(elements), isFloat32, isInput && m_blockStarts && m_block >= 0});
    m_blockStarts = m_blockStarts && !isInput;
    m_tooLarge = m_tooLarge || m_kept > kMaximumTotal;
}

Operator& NetworkBuilder::add(Operator op) {
    m_tooLarge = m_tooLarge || m_operators.size() >= kMaximumOperators;
    // Nothing may be returned empty-handed: the last operator then stands for what is not added.
    if (m_tooLarge && !m_operators.empty())
        return m_operators.back();
    for (const contract::TensorSpec& tensor : op.tensors)
        m_parameters += op.isTied() ? 0 : real(tensor.rows) * real(tensor.columns);
    m_tooLarge = m_tooLarge || m_parameters > kMaximumTotal;
    op.block = m_block;
    op.blockName = m_blockName;
    if (m_block >= 0)
        op.name = m_blockName + "." + op.name;
    op.experts = static_cast<std::int32_t>(m_experts);
    op.activeExperts = static_cast<std::int32_t>(m_activeExperts);
    m_operators.push_back(std::move(op));
    return m_operators.back();
}

Operator& NetworkBuilder::embedding(const std::string& name, std::int64_t rows, std::int64_t width) {
    Operator op;
    op.name = name;
    op.kind = OperatorKind::Embedding;
    op.tensors = {{"weight", {rows, width}, rows, width}};
    op.liveActivationElements = whole(m_tokens * real(width));
    return add(std::move(op));
}

Operator& NetworkBuilder::norm(const std::string& name, std::int64_t width, Norm kind) {
    Operator op;
    op.name = name;
    op.kind = OperatorKind::Norm;
    op.tensors = {{"weight", {width}, width, 1}};
    if (kind == Norm::LayerNorm)
        op.tensors.push_back({"bias", {width}, width, 1});
    op.flopsForward = m_tokens * real(width) * (kind == Norm::RmsNorm ? 5 : 8);
    keep(op, "input", m_tokens * real(width));
    keep(op, "statistics", m_tokens * (kind == Norm::RmsNorm ? 1 : 2), true);
    op.liveActivationElements = whole(m_tokens * real(width));
    return add(std::move(op));
}

Operator& NetworkBuilder::headNorm(const std::string& name, std::int64_t heads, std::int64_t headDim, Norm kind) {
    Operator op;
    op.name = name;
    op.kind = OperatorKind::Norm;
    op.tensors = {{"weight", {headDim}, headDim, 1}};
    if (kind == Norm::LayerNorm)
        op.tensors.push_back({"bias", {headDim}, headDim, 1});
    const double elements = m_tokens * real(heads) * real(headDim);
    op.flopsForward = elements * (kind == Norm::RmsNorm ? 5 : 8);
    keep(op, "input", elements);
    keep(op, "statistics", m_tokens * real(heads) * (kind == Norm::RmsNorm ? 1 : 2), true);
    return add(std::move(op));
}

Operator& NetworkBuilder::linear(const std::string& name, std::int64_t outputs, std::int64_t inputs, bool bias,
                                 Input input) {
    Operator op;
    op.name = name;
    op.kind = OperatorKind::Linear;
    op.tensors = {{"weight", {outputs, inputs}, outputs, inputs}};
    if (bias)
        op.tensors.push_back({"bias", {outputs}, outputs, 1});
    op.flopsForward = 2 * m_tokens * real(outputs) * real(inputs);
    if (input == Input::Own)
        keep(op, "input", m_tokens * real(inputs));
    op.liveActivationElements = whole(m_tokens * real(inputs));
    return add(std::move(op));
}

Operator& NetworkBuilder::parameters(const std::string& name, std::vector<contract::TensorSpec> tensors,
                                     std::int64_t width) {
    Operator op;
    op.name = name;
    op.tensors = std::move(tensors);
    alignSplitAxes(op);
    op.flopsForward = m_tokens * real(width);
    op.liveActivationElements = whole(m_tokens * real(width));
    return add(std::move(op));
}

Operator& NetworkBuilder::tied(const std::string& name, std::int64_t outputs, std::int64_t inputs,
                               const std::string& owner) {
    share(owner);
    Operator op;
    op.name = name;
    op.kind = OperatorKind::Linear;
    op.tensors = {{"weight", {outputs, inputs}, outputs, inputs}};
    op.tiedTo = owner;
    op.flopsForward = 2 * m_tokens * real(outputs) * real(inputs);
    keep(op, "input", m_tokens * real(inputs));
    op.liveActivationElements = whole(m_tokens * real(inputs));
    return add(std::move(op));
}

void NetworkBuilder::share(const std::string& name) {
    for (Operator& op : m_operators)
        op.sharedStorage = op.sharedStorage || op.name == name;
}

void NetworkBuilder::keepOutput(std::int64_t width) {
    if (m_tooLarge)
        return;
    Operator& op = m_operators.back();
    keep(op, "output", m_tokens * real(width));
    op.liveWideElements = std::max(op.liveWideElements, whole(m_tokens * real(width)));
}

void NetworkBuilder::chargeAttention(const Attention& attention) {
    if (m_tooLarge)
        return;
    Operator& op = m_operators.back();
    const double all = attention.keyTokens > 0 ? real(attention.keyTokens) : m_tokens;
    const double keys = attention.window > 0 ? std::min(all, real(attention.window)) : all;
    keep(op, "logsumexp", m_tokens * real(attention.heads), true);
    op.liveScratchBytes = 2 * contract::kAttentionTileRows * whole(keys) * static_cast<std::int64_t>(sizeof(float));
    op.attention = {
        attention.heads, attention.kvHeads, attention.headDim, whole(keys), attention.outputWidth() / attention.heads,
        tokens(),        whole(all)};
    op.flopsForward += op.attention->flops(whole(keys));
}

void NetworkBuilder::attentionProjections(const ProjectionNames& names, std::int64_t hidden, const Attention& attention,
                                          bool bias, bool outputBias, HeadNorm headNormKind, Input input) {
    const double queryTokens = m_tokens;
    const double keyTokens = attention.keyTokens > 0 ? real(attention.keyTokens) : m_tokens;
    const std::int64_t wide = whole(queryTokens * real(attention.queryWidth()) +
                                    keyTokens * real(attention.keyWidth() + attention.valueWidth()));
    const auto project = [&](std::string_view name, std::int64_t width, double tokens, Input kept) {
        m_tokens = tokens;
        Operator& op = linear(std::string(name), width, hidden, bias, kept);
        keep(op, "output", tokens * real(width));
        op.liveWideElements = wide;
        m_tokens = queryTokens;
    };
    project(names.query, attention.queryWidth(), queryTokens, input);
    // Keys of cross-attention read the encoder's output, which is not what the query has kept.
    project(names.key, attention.keyWidth(), keyTokens, attention.keyTokens > 0 ? Input::Own : Input::Shared);
    if (headNormKind != HeadNorm::None) {
        const Norm kind = headNormKind == HeadNorm::RmsNorm ? Norm::RmsNorm : Norm::LayerNorm;
        headNorm(std::string(names.queryNorm), attention.heads, attention.headDim, kind);
        headNorm(std::string(names.keyNorm), attention.kvHeads, attention.headDim, kind);
    }
    project(names.value, attention.valueWidth(), keyTokens, Input::Shared);
    chargeAttention(attention);
    linear(std::string(names.output), hidden, attention.outputWidth(), outputBias);
}

void NetworkBuilder::fusedAttention(const std::string& projection, const std::string& output, std::int64_t hidden,
                                    const Attention& attention, bool bias, bool outputBias, Input input) {
    const std::int64_t width = attention.queryWidth() + attention.keyWidth() + attention.valueWidth();
    linear(projection, width, hidden, bias, input);
    keepOutput(width);
    chargeAttention(attention);
    linear(output, hidden, attention.outputWidth(), outputBias);
}

void NetworkBuilder::mlp(const std::string& up, const std::string& down, std::int64_t hidden, std::int64_t inner,
                         bool bias, Input input) {
    const std::int64_t wide = whole(m_tokens * real(inner));
    Operator& first = linear(up, inner, hidden, bias, input);
    keep(first, "pre_activation", m_tokens * real(inner));
    first.liveWideElements = wide;
    Operator& second = linear(down, hidden, inner, bias);
    second.liveActivationElements = 0;
    second.liveWideElements = wide;
}

void NetworkBuilder::gatedMlp(const std::string& gate, const std::string& up, const std::string& down,
                              std::int64_t hidden, std::int64_t inner, bool bias, Input input) {
    const std::int64_t wide = whole(2 * m_tokens * real(inner));
    for (const auto& [name, kept] : {std::pair(gate, input), std::pair(up, Input::Shared)}) {
        Operator& op = linear(name, inner, hidden, bias, kept);
        keep(op, "output", m_tokens * real(inner));
        op.liveWideElements = wide;
    }
    Operator& last = linear(down, hidden, inner, bias);
    last.liveActivationElements = 0;
    last.liveWideElements = wide;
}

} // namespace shardscope::planner
