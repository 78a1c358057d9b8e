// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/contract/Sizing.h"

#include "runtime/contract/Bytes.h"

#include <algorithm>

namespace shardscope::contract {

namespace {

std::int32_t effectiveSlices(const Operator& op, const Placement& placement) {
    if (!placement.isSharded())
        return 1;
    return static_cast<std::int32_t>(std::min<std::int64_t>(placement.slices, op.maximumSlices()));
}

struct OptimizerBytes {
    std::int64_t master, firstMoment, secondMoment;
};

/// How a preset's optimizer bytes are laid out: an fp32 master copy where there is one, then the moments.
OptimizerBytes optimizerBytes(const Preset& preset) {
    const bool hasMaster = preset.weightBytes < 4 && preset.optimizerBytes > 4;
    const std::int64_t master = hasMaster ? 4 : 0;
    const std::int64_t moments = preset.optimizerBytes - master;
    const bool oneMoment = preset.optimizer() == "sgd";
    return {master, oneMoment ? moments : moments / 2, oneMoment ? 0 : moments / 2};
}

/// Calls visit(kind, tensor, part, elements, bytes per element) for each state buffer, in storage order.
template<typename Visit>
void forEachStateBuffer(const Operator& op, const Placement& placement, std::int64_t ranks, const Preset& preset,
                        const std::vector<SlicePart>& parts, Visit visit) {
    if (op.isTied())
        return;
    const OptimizerBytes optimizer = optimizerBytes(preset);
    const bool keep = placement.kind == PlacementKind::Keep;
    for (std::size_t p = 0; p < parts.size(); ++p) {
        for (std::size_t t = 0; t < op.tensors.size(); ++t) {
            const std::int64_t whole = partElements(op, op.tensors[t], parts[p]);
            const std::int64_t shard = shardElements(whole, ranks);
            const std::int64_t weight = parts[p].sharded ? shard : whole;
            const std::int64_t gradient = parts[p].sharded || (keep && !holdsGradient(op, placement)) ? shard : whole;
            const std::int64_t moments = parts[p].sharded || keep ? shard : whole;
            const std::int64_t weightBytes =
                keep ? std::max(preset.weightBytes, preset.gatheredBytes) : preset.weightBytes;
            const auto emit = [&](BufferKind kind, std::int64_t elements, std::int64_t bytesPerElement) {
                if (bytesPerElement > 0)
                    visit(kind, t, p, elements, bytesPerElement);
            };
            emit(BufferKind::Weight, weight, weightBytes);
            emit(BufferKind::Gradient, gradient, preset.gradientBytes);
            emit(BufferKind::Master, moments, optimizer.master);
            emit(BufferKind::FirstMoment, moments, optimizer.firstMoment);
            emit(BufferKind::SecondMoment, moments, optimizer.secondMoment);
        }
    }
}

std::string_view bufferSuffix(BufferKind kind) {
    switch (kind) {
    case BufferKind::Weight:
        return "";
    case BufferKind::Gradient:
        return ".gradient";
    case BufferKind::FirstMoment:
        return ".moment1";
    case BufferKind::SecondMoment:
        return ".moment2";
    case BufferKind::Master:
        return ".master";
    }
    return "";
}

Category bufferCategory(BufferKind kind) {
    switch (kind) {
    case BufferKind::Weight:
        return Category::Parameters;
    case BufferKind::Gradient:
        return Category::Gradients;
    default:
        return Category::Optimizer;
    }
}

SlotSize slotOfPart(const Operator& op, const Placement& placement, const SlicePart& part, std::int64_t ranks,
                    const Preset& preset) {
    const bool keep = placement.kind == PlacementKind::Keep && !holdsGradient(op, placement);
    SlotSize size;
    if (!part.sharded && !keep)
        return size;
    for (const TensorSpec& tensor : op.tensors) {
        const std::int64_t padded = shardElements(partElements(op, tensor, part), ranks) * ranks;
        if (part.sharded)
            size.gatheredBytes += alignUp(padded * preset.gatheredBytes);
        size.unreducedBytes += alignUp(padded * preset.gradientBytes);
    }
    return size;
}

} // namespace

bool holdsGradient(const Operator& op, const Placement& placement) {
    return placement.held || op.sharedStorage || op.isTied();
}

std::vector<SlicePart> sliceParts(const Operator& op, const Placement& placement) {
    const std::int64_t rows = op.maximumSlices();
    const std::int64_t slices = effectiveSlices(op, placement);
    const std::int64_t sharded = placement.isSharded() ? std::min<std::int64_t>(placement.shardedSlices, slices) : 0;
    std::vector<SlicePart> parts;
    for (std::int64_t t = 0; t < sharded; ++t)
        parts.push_back({{t * rows / slices, (t + 1) * rows / slices}, true});
    if (sharded < slices)
        parts.push_back({{sharded * rows / slices, rows}, false});
    return parts;
}

std::int64_t partElements(const Operator& op, const TensorSpec& tensor, const SlicePart& part) {
    // An operator that cannot be split counts as one row, whatever its tensors' own rows are.
    const std::int64_t rows = op.maximumSlices() == tensor.rows ? part.rows.rows() : tensor.rows;
    return rows * tensor.columns;
}

std::vector<StateBuffer> sizeState(const Operator& op, const Placement& placement, std::int64_t ranks,
                                   const Preset& preset) {
    const std::vector<SlicePart> parts = sliceParts(op, placement);
    std::vector<StateBuffer> buffers;
    forEachStateBuffer(op, placement, ranks, preset, parts,
                       [&](BufferKind kind, std::size_t tensor, std::size_t part, std::int64_t elements,
                           std::int64_t bytesPerElement) {
                           std::string suffix = op.tensors[tensor].name;
                           if (parts.size() > 1)
                               suffix += "." + std::to_string(part);
                           suffix += bufferSuffix(kind);
                           buffers.push_back({std::move(suffix), kind, static_cast<std::int32_t>(tensor),
                                              static_cast<std::int32_t>(part), elements,
                                              alignUp(elements * bytesPerElement), bytesPerElement,
                                              bufferCategory(kind)});
                       });
    return buffers;
}

StateSize sumState(const Operator& op, const Placement& placement, std::int64_t ranks, const Preset& preset) {
    StateSize size;
    forEachStateBuffer(
        op, placement, ranks, preset, sliceParts(op, placement),
        [&](BufferKind kind, std::size_t, std::size_t, std::int64_t elements, std::int64_t bytesPerElement) {
            const std::int64_t bytes = alignUp(elements * bytesPerElement);
            switch (bufferCategory(kind)) {
            case Category::Parameters:
                size.parameters += bytes;
                break;
            case Category::Gradients:
                size.gradients += bytes;
                break;
            default:
                size.optimizer += bytes;
                break;
            }
        });
    return size;
}

SlotSize sizeSlotOfPart(const Operator& op, const Placement& placement, std::int32_t part, std::int64_t ranks,
                        const Preset& preset) {
    return slotOfPart(op, placement, sliceParts(op, placement).at(static_cast<std::size_t>(part)), ranks, preset);
}

SlotSize sizeSlot(const Operator& op, const Placement& placement, std::int64_t ranks, const Preset& preset) {
    SlotSize largest;
    for (const SlicePart& part : sliceParts(op, placement)) {
        const SlotSize size = slotOfPart(op, placement, part, ranks, preset);
        if (size.total() > largest.total())
            largest = size;
    }
    return largest;
}

std::int64_t activationBytes(const ActivationSpec& spec, const Preset& preset, std::int64_t samples) {
    return alignUp(spec.elementsPerSample * samples * (spec.isByte ? 1 : spec.isFloat32 ? 4 : preset.gatheredBytes));
}

std::int64_t keptBytes(const Operator& op, const Preset& preset, std::int64_t samples, bool recomputed) {
    std::int64_t bytes = 0;
    for (const ActivationSpec& spec : op.kept) {
        if (!recomputed || spec.blockInput || op.block < 0)
            bytes += activationBytes(spec, preset, samples);
    }
    return bytes;
}

std::int64_t recomputeBytes(const std::vector<Operator>& operators, std::int32_t block, const Preset& preset,
                            std::int64_t samples) {
    std::int64_t bytes = 0;
    for (const Operator& op : operators) {
        if (op.block == block && block >= 0)
            bytes += keptBytes(op, preset, samples, false) - keptBytes(op, preset, samples, true);
    }
    return bytes;
}

LiveRegions sizeLive(const std::vector<Operator>& operators, const Preset& preset, std::int64_t samples,
                     const std::vector<bool>& recomputedBlocks) {
    LiveRegions regions;
    const auto bytesOf = [&](std::int64_t elements) { return alignUp(elements * samples * preset.gatheredBytes); };
    std::vector<std::int64_t> intermediates(recomputedBlocks.size(), 0);
    for (const Operator& op : operators) {
        if (op.role == OperatorRole::FinalNorm)
            regions.residualGradient = bytesOf(op.liveActivationElements);
        regions.activationGradient = std::max(regions.activationGradient, bytesOf(op.liveActivationElements));
        if (op.liveWideElements > 0 || op.liveScratchBytes > 0)
            regions.wideGradient =
                std::max(regions.wideGradient, bytesOf(op.liveWideElements) + alignUp(op.liveScratchBytes));
        const auto block = static_cast<std::size_t>(op.block);
        if (op.block >= 0 && block < recomputedBlocks.size() && recomputedBlocks[block])
            intermediates[block] += keptBytes(op, preset, samples, false) - keptBytes(op, preset, samples, true);
    }
    for (const std::int64_t bytes : intermediates)
        regions.recompute = std::max(regions.recompute, bytes);
    return regions;
}

BaseSize sizeBase(const std::vector<Operator>& operators, std::int64_t sequence, std::int64_t samples,
                  std::int64_t lossChunks, std::int64_t ranks, const Preset& preset) {
    BaseSize base;
    const std::int64_t tokens = sequence * samples;
    base.tokens = alignUp(tokens * 4);
    base.targets = alignUp(tokens * 4);
    const bool isChunked = ceilDivide(tokens, lossChunks) < tokens;
    base.losses = alignUp(tokens * 4 * (isChunked ? 3 : 1));
    for (const Operator& op : operators) {
        if (op.role == OperatorRole::Head)
            base.logits = alignUp(ceilDivide(tokens, lossChunks) * op.tensors.front().rows * preset.gatheredBytes);
    }
    base.collective = ranks > 1 ? kCollectiveScratchBytes : 0;
    return base;
}

} // namespace shardscope::contract
