# SPDX-License-Identifier: GPL-3.0-or-later
"""Trains small decoders with PyTorch and the transformers library and writes what our runtime must reproduce.

For each network: NAME.safetensors (the weights to begin with, fp16, which fp32 represents exactly) and NAME.json (our
architecture, the optimizer, the losses of 50 steps). Usage: parity_fixtures.py FOLDER
"""
import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

STEPS, BATCH, SEQUENCE, VOCABULARY = 50, 4, 12, 97
OPTIMIZER = {"learning_rate": 3e-3, "betas": [0.9, 0.95], "epsilon": 1e-8, "weight_decay": 0.1, "clip_norm": 1.0}


def token(step: int, sample: int, position: int) -> int:
    return (step * 31 + sample * 17 + position * position * 7 + step * position * 3) % VOCABULARY


def decoder(family: str, **fields) -> dict:
    base = {"family": family, "layers": 2, "hidden": 16, "heads": 4, "kv_heads": 4, "head_dim": 4, "intermediate": 24,
            "vocabulary": VOCABULARY, "positions": 16}
    return base | fields


def gpt2():
    config = GPT2Config(vocab_size=VOCABULARY, n_positions=16, n_embd=16, n_layer=2, n_head=4, n_inner=24,
                        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    architecture = decoder("gpt2", norm={"kind": "layer_norm", "epsilon": 1e-5}, activation="gelu_tanh",
                           attention="fused", rope=None, qk_norm=False, tied=True,
                           biases={"attention": True, "attention_output": True, "mlp": True})
    return GPT2LMHeadModel(config), architecture


def llama(tied: bool, scaled: bool):
    scaling = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 3.0,
               "original_max_position_embeddings": 8} if scaled else None
    config = LlamaConfig(vocab_size=VOCABULARY, max_position_embeddings=16, hidden_size=16, num_hidden_layers=2,
                         num_attention_heads=4, num_key_value_heads=2, head_dim=4, intermediate_size=24,
                         rms_norm_eps=1e-6, rope_theta=100.0, rope_scaling=scaling, tie_word_embeddings=tied)
    rope = {"theta": 100.0, "scaling_kind": "llama3" if scaled else "", "scaling": scaling}
    architecture = decoder("llama", kv_heads=2, norm={"kind": "rms_norm", "epsilon": 1e-6}, activation="silu_gated",
                           attention="separate", rope=rope, qk_norm=False, tied=tied,
                           biases={"attention": False, "attention_output": False, "mlp": False})
    return LlamaForCausalLM(config), architecture


def train(model) -> list:
    decayed, others = [], []
    for name, parameter in model.named_parameters():
        (decayed if parameter.dim() > 1 and not name.endswith("wpe.weight") else others).append(parameter)
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": OPTIMIZER["weight_decay"]},
                                   {"params": others, "weight_decay": 0.0}],
                                  lr=OPTIMIZER["learning_rate"], betas=OPTIMIZER["betas"], eps=OPTIMIZER["epsilon"])
    losses = []
    for step in range(1, STEPS + 1):
        rows = torch.tensor([[token(step, b, t) for t in range(SEQUENCE + 1)] for b in range(BATCH)])
        logits = model(rows[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, VOCABULARY), rows[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), OPTIMIZER["clip_norm"])
        optimizer.step()
        losses.append(loss.item())
    return losses


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    networks = {"gpt2": gpt2, "llama-untied": lambda: llama(False, True), "llama-tied": lambda: llama(True, False)}
    for name, build in networks.items():
        torch.manual_seed(7)
        model, architecture = build()
        model.train()
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() > 1:
                    parameter.mul_(5.0)  # so that every path matters
                parameter.copy_(parameter.half().float())
        state = {key: value.half().contiguous() for key, value in model.state_dict().items()
                 if not (architecture["tied"] and key == "lm_head.weight") and not key.endswith(".attn.bias")}
        save_file(state, folder / f"{name}.safetensors")
        losses = train(model)
        text = {"architecture": architecture, "optimizer": OPTIMIZER, "sequence": SEQUENCE, "batch": BATCH,
                "losses": [round(loss, 7) for loss in losses]}
        (folder / f"{name}.json").write_text(json.dumps(text, indent=1) + "\n")


main()
