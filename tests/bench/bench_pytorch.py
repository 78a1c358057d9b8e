#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Training throughput on CPU cores beside PyTorch: same networks, batch and sequence, fp32, one thread a rank.

    bench_pytorch.py --bin build/release/bin

PyTorch trains the transformers implementation with fused attention (SDPA), fused AdamW and clipping: on one rank eagerly
and compiled, on two ranks with DDP and with FSDP2 (fully_shard on every block and the root) over Gloo. Ours trains all
replicated, all sharded, coalesced by block, and what the planner prefers. The programs take turns, several rounds of a few steps
each, and the quickest step of a row counts, since other load on the machine only ever adds.
Exit codes: 0 done, 77 torch or transformers is not installed (skipped).
"""
import argparse
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

from programs import GPT2, GPT2_SMALL, LLAMA, finish, make_plan, run, train

SKIPPED = 77
WARM_UP = 1  # steps that do not count

NETWORKS = {  # name: configuration, batch per rank, sequence
    "gpt2-30m": (GPT2 | {"vocab_size": 8192, "n_positions": 256, "n_embd": 512, "n_layer": 8, "n_head": 8}, 4, 256),
    "llama-60m": (LLAMA | {"vocab_size": 8192, "max_position_embeddings": 256, "hidden_size": 640,
                           "intermediate_size": 1728, "num_hidden_layers": 10, "num_attention_heads": 10,
                           "num_key_value_heads": 5, "tie_word_embeddings": False}, 4, 256),
    "gpt2-124m": (GPT2_SMALL, 2, 256),
}
OUR_PLANS = {
    1: {"ours": []},
    2: {"ours, replicated": ["--pin", "*=replicate"], "ours, sharded": ["--pin", "*=shard:1", "--coalescing", "never"],
        "ours, sharded by block": ["--pin", "*=shard:1", "--coalescing", "always"], "ours, planned": []},
}
TORCH_ROWS = {1: ["eager", "compiled"], 2: ["DDP", "FSDP2"]}


def train_with_torch(row, config, batch, sequence, steps):
    """One rank; prints seconds of every step on rank 0."""
    import torch
    import torch.distributed as dist
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.set_num_threads(1)
    torch.manual_seed(1)
    settings = dict(config, use_cache=False)
    if config["model_type"] == "gpt2":
        settings |= {"attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0}
    model = AutoModelForCausalLM.from_config(
        AutoConfig.for_model(**{k: v for k, v in settings.items() if k != "architectures"}), attn_implementation="sdpa")
    rank = int(os.environ.get("RANK", 0))
    if row in ("DDP", "FSDP2"):
        dist.init_process_group("gloo")
    trained = model
    if row == "DDP":
        trained = torch.nn.parallel.DistributedDataParallel(model)
    elif row == "FSDP2":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        for block in model.transformer.h if config["model_type"] == "gpt2" else model.model.layers:
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
    elif row == "compiled":
        trained = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    tokens = torch.randint(0, config["vocab_size"], (batch, sequence))
    for step in range(steps + WARM_UP):
        begin = time.perf_counter()
        trained(input_ids=tokens, labels=tokens).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0 and step >= WARM_UP:
            print(json.dumps({"seconds": time.perf_counter() - begin}), flush=True)
    if dist.is_initialized():
        dist.destroy_process_group()


def torch_seconds(row, ranks, name, steps):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    processes = []
    for rank in range(ranks):
        environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "RANK": str(rank),
                                    "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1",
                                    "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo"}
        processes.append(run([sys.executable, __file__, "--worker", row, name, "--steps", str(steps)], environment))
    lines = finish(processes)[0].splitlines()
    return min(json.loads(line)["seconds"] for line in lines if line.startswith("{"))


def our_seconds(programs, plan, folder, steps):
    events = train(programs, plan, folder, steps + WARM_UP)
    return min(e["step_seconds"] for e in events if e["type"] == "step" and e["rank"] == 0 and e["step"] > WARM_UP)


def make_plans(programs, folder, name, ranks):
    config, batch, sequence = NETWORKS[name]
    common = ["--cluster", "local-cpu", "--devices", ranks, "--sequence", sequence, "--batch", batch, "--recompute", "off"]
    return {row: make_plan(programs, folder, name, config, common + options)[0] for row, options in OUR_PLANS[ranks].items()}


def compare(programs, name, ranks, rounds, steps):
    _, batch, sequence = NETWORKS[name]
    best = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        plans = make_plans(programs, folder, name, ranks)
        for turn in range(rounds):
            for row in TORCH_ROWS[ranks]:
                best["PyTorch, " + row] = min(best.get("PyTorch, " + row, 1e9), torch_seconds(row, ranks, name, steps))
            for row, plan in plans.items():
                seconds = our_seconds(programs, plan, folder / f"run-{turn}-{plan.name}", steps)
                best[row] = min(best.get(row, 1e9), seconds)
    fastest = min(seconds for row, seconds in best.items() if row.startswith("PyTorch"))
    for row, seconds in best.items():
        tokens = ranks * batch * sequence / seconds
        print(f"{name:<12} {ranks:>5}  {row:<24} {seconds:>9.3f} {tokens:>10.0f} {fastest / seconds:>7.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, help="folder of shardscope-plan and shardscope-train")
    parser.add_argument("--networks", nargs="*", default=list(NETWORKS), choices=list(NETWORKS))
    parser.add_argument("--ranks", nargs="*", type=int, default=[1, 2], choices=[1, 2])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--worker", nargs=2, metavar=("ROW", "NETWORK"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    try:
        import torch
        import transformers
    except ImportError as error:
        print(f"skipped: {error.name} is not installed for this Python (pip install torch transformers)")
        return SKIPPED
    if options.worker:
        row, name = options.worker
        train_with_torch(row, *NETWORKS[name], options.steps)
        return 0
    print(f"PyTorch {torch.__version__}, transformers {transformers.__version__}, one thread a rank")
    print(f"{'network':<12} {'ranks':>5}  {'row':<24} {'step s':>9} {'tokens/s':>10} {'ratio':>7}")
    for name in options.networks:
        for ranks in options.ranks:
            compare(options.bin.resolve(), name, ranks, options.rounds, options.steps)
    return 0


if __name__ == "__main__":
    sys.exit(main())
