// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/cost/ActivationConventions.h"
#include "runtime/contract/Ledger.h"
#include "runtime/contract/Preset.h"

#include <cstdint>

namespace shardscope::planner {

enum class PyTorchRecompute {
    None,
    MatrixProducts, ///< torchtitan's selective "op": outputs of every second matrix product and of fused attention are
                    ///< held, the rest of a block is recomputed
    Full,           ///< torch.utils.checkpoint around each block: its input is held
};

struct PyTorchOptions {
    AttentionKernel attention = AttentionKernel::Fused; ///< scaled_dot_product_attention, or matmul and softmax
    bool dropout = false;                               ///< masks of one byte an element; GPT-2-like blocks only
    bool composedActivation = false; ///< gelu_new written out of elementary operations (Hugging Face GPT-2)
    bool composedNorm = true;        ///< RMS norm written out of elementary operations, computed in fp32
    bool repeatedKeyValue = true;    ///< grouped keys and values are copied to every query head before attention
    bool compiled = false;           ///< torch.compile per block: holds no tensor that the backward does not read
    PyTorchRecompute recompute = PyTorchRecompute::None;
};

/// What PyTorch's autograd saves in a forward in the precision of `batch.elementBytes` (fp32, or weights and
/// activations both 16-bit as under FSDP mixed precision; autocast's copies are not modelled).
///
/// Rules (derivatives.yaml of PyTorch: which of its inputs or results an operation saves):
///   layer_norm       input, fp32 mean and rstd         linear      its input (weights are not activations)
///   RMS norm         composed: input in fp32, fp32 rstd, normalised value; fused: input and rstd
///   attention        fused: query, key, value, output, fp32 log-sum-exp. Materialised: query, key, value,
///   probabilities
///                    (GPT-2: in compute precision; Llama-like: softmax in fp32, and its cast), with dropout also its
///                    mask and its output
///   gelu             fused: its input; composed: x, 0.5 x, tanh and 1 + tanh          silu   its input
///   product          both factors (gate times up)      dropout     a mask of one byte an element
/// Sums of the residual stream save nothing. A tensor that two operations save is one storage, counted once.
/// The head's own input counts; what the loss holds is in pytorchLoss().
KeptByOperator pytorchActivations(const contract::Architecture& architecture,
                                  const std::vector<contract::Operator>& operators, const ActivationBatch& batch,
                                  const PyTorchOptions& options);

/// Memory of cross_entropy(logits.float()) over whole logits, the logits being released before the backward begins.
struct PyTorchLoss {
    std::int64_t peakBytes = 0;  ///< largest sum of what is alive
    std::int64_t slackBytes = 0; ///< what the caching allocator needs on top, since a freed block is cut
};
/// In fp32 bytes of tokens x vocabulary: forward holds the logits (e), their fp32 copy (4, none when e is 4) and the
/// log-softmax (4). Backward holds the log-softmax, the gradient of nll_loss and that of log_softmax: 12. The freed
/// logits and copy leave a hole of e + 4 (or 4) which the first gradient fills; the second goes to new memory unless
/// it fits too, so 16-bit logits reserve e + 4 + 4 + 4 = 14.
PyTorchLoss pytorchLoss(std::int64_t tokens, std::int64_t vocabulary, std::int64_t elementBytes);

/// What a step of FSDP2 (fully_shard per block and root, next block prefetched) reserves on one of `ranks` devices when
/// the loss is differentiated, as torch.cuda.max_memory_reserved counts it: each CUDA stream has a pool of its own, so
/// pools add up even if they are full at different times.
///   compute stream     sharded weights and moments, activations, loss, unsharded weights of the root (embedding, norm,
///                      head) and of the last block, which are not resharded after forward
///   reduce stream      sharded gradients (parameters are unsharded and reduced in `preset` precision)
///   gather stream      the root's and a block's gathered buffer: one is held until the next is copied out
/// Source: torch.distributed.fsdp (FSDPParamGroup, foreach_all_gather, foreach_reduce), release 2.6; torchtitan's
/// parallelize_llama.
contract::Ledger fsdp2Reserved(const std::vector<contract::Operator>& operators, const KeptByOperator& kept,
                               const PyTorchLoss& loss, const contract::Preset& preset, std::int64_t ranks);

} // namespace shardscope::planner
