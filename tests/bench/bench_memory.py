#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory of GPT-2 (124 M parameters) on two ranks under ten plans: predicted, and measured by the runtime.

    bench_memory.py --bin build/release/bin

"handed out" is the high water of the arenas; "categories" says in how many ledger categories that is not the predicted bytes.
"resident" is what the process grew by since it started, the largest of the ranks, and "beyond" how far that is above the plan.
Red zones between buffers and allocations in later steps: SHARDSCOPE_LARGE=1 tst_memory.
"""
import argparse
import json
import pathlib
import sys
import tempfile

from programs import GPT2_SMALL, make_plan, start_training

MIB = 1 << 20
PLANS = {
    "replicated": ["--pin", "*=replicate"],
    "kept": ["--pin", "*=keep", "--coalescing", "never"],
    "kept, coalesced": ["--pin", "*=keep", "--coalescing", "always"],
    "sharded": ["--pin", "*=shard:1", "--coalescing", "never"],
    "sharded, coalesced": ["--pin", "*=shard:1", "--coalescing", "always"],
    "sharded, recomputed": ["--pin", "*=shard:1", "--recompute", "on"],
    "MLP sharded in 4 slices": ["--pin", "*.mlp.*=shard:4", "--pin", "wte=shard:16"],
    "half of 8 slices sharded": ["--pin", "*.mlp.*=shard:8:4", "--pin", "*.attn.*=keep"],
    "planned, fastest": [],
    "planned, 80 % of that": None,
}


def memory_of(programs, plan, folder):
    """Memory events of both ranks, which come after the first step; the run ends after the second."""
    process = start_training(programs, plan, folder, 1000)
    memory = []
    for line in process.stdout:
        event = json.loads(line)
        if event["type"] == "memory":
            memory.append(event)
        if len(memory) == 2 and event["type"] == "step" and event["step"] >= 2:
            break
    process.kill()
    process.communicate()
    if len(memory) < 2:
        raise RuntimeError(f"{plan}: the run ended before its second step")
    return memory


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of shardscope-plan and shardscope-train")
    options = parser.parse_args()
    programs = options.bin.resolve()
    common = ["--cluster", "local-cpu", "--devices", 2, "--sequence", 256, "--batch", 1]
    print(f"{'plan':<26} {'predicted MiB':>13} {'handed out':>11} {'categories':>10} {'resident':>9} {'beyond':>7}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        fastest = 0
        for index, (name, pins) in enumerate(PLANS.items()):
            if pins is None:
                pins = ["--memory", f"{int(fastest * 0.8)}B"]
            path, plan = make_plan(programs, folder, "gpt2", GPT2_SMALL, common + pins)
            memory = memory_of(programs, path, folder / f"run-{index}")
            predicted = sum(memory[0]["predicted"]["ledger"].values())
            if name == "planned, fastest":
                fastest = plan["predicted"]["peak_bytes"]
            wrong = sum(
                event["allocated"]["ledger"][key] != value
                for event in memory for key, value in event["predicted"]["ledger"].items())
            resident = max(event["resident"] for event in memory)
            print(f"{name:<26} {predicted / MIB:>13.1f} {max(e['peak_allocated'] for e in memory) / MIB:>11.1f} {wrong:>10} "
                  f"{resident / MIB:>9.1f} {100 * (resident / predicted - 1):>6.2f}%", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
