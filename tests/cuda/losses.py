#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Losses on the GPU beside those of one CPU rank that shards nothing: six plans, 1, 2 and 4 ranks, two kinds.

    losses.py plans --bin BIN --plans DIR [--cpu]     writes the plans, and the losses of CPU runs as expected.json
    losses.py run --bin BIN --plans DIR --report DIR --device cuda --seconds 90

All ranks share the first GPU where there is one, so that sharded plans can be exercised there. float32 has to agree
within 1e-5 over 10 steps and 1e-4 over 50, bf16 within 1e-2 over 50. Every rank's arenas have to be what the plan says.
Prints rows of check.sh's table, one per plan and precision; runs that there was no time for are counted in it.
"""
import argparse
import concurrent.futures
import json
import math
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import table
from programs import GPT2, LLAMA, make_plan, start_training, train

SEQUENCE = 64
GLOBAL_BATCH = 8
RANKS = (2, 4, 1)  # in order of worth
KINDS = {
    "gpt2": GPT2 | {"vocab_size": 512, "n_positions": SEQUENCE, "n_embd": 128, "n_layer": 3, "n_head": 2},
    "llama": LLAMA | {"vocab_size": 512, "max_position_embeddings": SEQUENCE, "hidden_size": 128,
                      "intermediate_size": 352, "num_hidden_layers": 3, "num_attention_heads": 2,
                      "num_key_value_heads": 1, "tie_word_embeddings": False},
}
APART = ["--coalescing", "never", "--recompute", "off"]
PLANS = {
    "replicated": ["--pin", "*=replicate", *APART],
    "kept": ["--pin", "*=keep", *APART],
    "sharded": ["--pin", "*=shard:1", *APART],
    "sharded, coalesced": ["--pin", "*=shard:1", "--coalescing", "always", "--recompute", "off"],
    "sliced and mixed": ["--pin", "*=shard:2", "--pin", "*.mlp.*=shard:4:2", "--pin", "*attn*=keep", *APART],
    "recomputed, accumulated": ["--pin", "*=shard:1", "--coalescing", "never", "--recompute", "on"],
}
LIMITS = {"fp32-adam": ((10, 1e-5), (50, 1e-4)), "bf16-adam": ((50, 1e-2),)}
STEPS = 50


def file_name(name, kind, ranks, precision):
    return f"{name.replace(', ', '-').replace(' ', '-')}.{kind}.{ranks}.{precision}.plan.json"


def options_of(pins, ranks, precision, recomputed, cluster):
    micro_batch = GLOBAL_BATCH // ranks // (2 if recomputed else 1)
    return ["--cluster", cluster, "--devices", ranks, "--sequence", SEQUENCE, "--global-batch", GLOBAL_BATCH, "--batch",
            micro_batch, "--accumulate", 2 if recomputed else 1, "--precision", precision, *pins]


def finite(loss):
    """Infinity for what is no number, so that it is worst of all."""
    return loss if loss is not None and math.isfinite(loss) else math.inf


def losses_of(events):
    """By step; what a repeated step said last counts."""
    return {event["step"]: finite(event["loss"]) for event in events if event["type"] == "step"}


def write_plans(options):
    cluster = "local-cpu" if options.cpu else "1x-h200"
    precisions = ["fp32-adam"] if options.cpu else list(LIMITS)
    options.plans.mkdir(parents=True, exist_ok=True)
    expected = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for kind, config in KINDS.items():
            for name, pins in PLANS.items():
                for ranks in RANKS:
                    for precision in precisions:
                        made, _ = make_plan(options.bin, folder, kind, config, options_of(
                            pins, ranks, precision, name.startswith("recomputed"), cluster))
                        made.replace(options.plans / file_name(name, kind, ranks, precision))
            alone, _ = make_plan(options.bin, folder, kind, config, options_of(
                PLANS["replicated"], 1, "fp32-adam", False, "local-cpu"))
            losses = losses_of(train(options.bin, alone, folder / f"run-{kind}", options.steps))
            expected[kind] = [losses[step] for step in range(1, options.steps + 1)]
    (options.plans / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
    return 0


class Outcome:
    """What the runs of one plan in one precision have shown."""

    def __init__(self, limits, steps):
        self.limits = limits
        self.steps = steps
        self.worst = {steps: (0.0, "") for steps, _ in limits}  # relative difference, where
        self.done, self.missing, self.failures, self.ways = 0, 0, [], set()

    def add(self, losses, expected, where):
        if sorted(losses) != list(range(1, self.steps + 1)):
            self.failures.append(f"{where}: {len(losses)} of {self.steps} steps told")
            return
        self.done += 1
        for limit_steps, _ in self.limits:
            for step in range(1, min(limit_steps, self.steps) + 1):
                difference = abs(losses[step] / expected[step - 1] - 1)
                if difference > self.worst[limit_steps][0]:
                    self.worst[limit_steps] = (difference, f"{where}, step {step}")

    def show(self, what):
        wanted = "; ".join(f"{limit:.0e} in {min(steps, self.steps)} steps" for steps, limit in self.limits)
        shown = "; ".join(f"{self.worst[steps][0]:.1e}" for steps, _ in self.limits) if self.done else "-"
        notes = [f"{self.done} of {self.done + self.missing + len(self.failures)} runs"]
        if any(self.worst[steps][0] > limit for steps, limit in self.limits):
            self.failures.append("losses differ")
        if self.missing:
            notes.append(f"no time for {self.missing}")
        if self.done:
            notes.append("worst " + self.worst[self.limits[-1][0]][1])
        notes += sorted(self.ways)
        verdict = table.failed(self.failures) if self.failures else "incomplete" if self.missing else "ok"
        table.row(what, wanted, shown, "; ".join([verdict, *notes]))


def run_one(options, name, kind, ranks, precision, deadline):
    """Losses and memory events of one run, or the reason why there are none; nothing when it was too late."""
    seconds = deadline - time.monotonic()
    if seconds < 3:
        return None
    plan = options.plans / file_name(name, kind, ranks, precision)
    folder = options.report / plan.name.removesuffix(".plan.json")
    process = start_training(options.bin, plan, folder, options.steps, ["--device", options.device, "--timeout", 30])
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return None if seconds < 45 else f"no end within {seconds:.0f} s"
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)  # the report is to be small
    if process.returncode != 0:
        return f"exit code {process.returncode}: {table.last_line(err)}"
    return [json.loads(line) for line in out.splitlines()]


def run_plans(options):
    deadline = time.monotonic() + options.seconds
    expected = json.loads((options.plans / "expected.json").read_text())
    options.report.mkdir(parents=True, exist_ok=True)
    cpu = options.device == "cpu"
    outcomes, runs = {}, []
    for precision in ["fp32-adam"] if cpu else list(LIMITS):
        for name in PLANS:
            outcomes[name, precision] = Outcome(LIMITS[precision], options.steps)
    for ranks in options.ranks:
        for kind in options.kinds:
            runs += [(name, kind, ranks, precision) for name, precision in outcomes]
    arenas, wrong = (0.0, 0), []
    ranks_seen = 0
    with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
        results = pool.map(lambda each: run_one(options, *each, deadline), runs)
        for (name, kind, ranks, precision), result in zip(runs, results):
            outcome, where = outcomes[name, precision], f"{kind} on {ranks}"
            if result is None:
                outcome.missing += 1
                continue
            if isinstance(result, str):
                outcome.failures.append(f"{where}: {result}")
                continue
            outcome.add(losses_of(result), expected[kind], where)
            outcome.ways |= {e["message"] for e in result if e["type"] == "log" and "tensors travel" in e["message"]}
            for event in result:
                if event["type"] == "memory":
                    ranks_seen += 1
                    predicted = sum(event["predicted"]["ledger"].values())
                    difference = abs(event["peak_allocated"] / predicted - 1)
                    arenas = max(arenas, (difference, predicted))
                    if difference > table.MEMORY_TOLERANCE:
                        wrong.append(f"{name}, {where}")
    for (name, precision), outcome in outcomes.items():
        outcome.show(f"losses {precision.split('-')[0]}: {name}")
    if ranks_seen:
        verdict = table.failed(wrong) if wrong else "ok"
        table.row("arenas of the ranks of these runs", "2 %", f"{100 * arenas[0]:.2f} %",
                  f"{verdict}; {ranks_seen} ranks")
    else:
        table.row("arenas of the ranks of these runs", "2 %", "-", "incomplete: no run came to its end")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["plans", "run"])
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of the two programs")
    parser.add_argument("--plans", type=pathlib.Path, required=True)
    parser.add_argument("--cpu", action="store_true", help="plans for CPU cores, float32 only")
    parser.add_argument("--report", type=pathlib.Path, help="folder of the runs")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument("--at-once", type=int, default=4, help="runs at a time")
    parser.add_argument("--ranks", type=int, nargs="*", default=list(RANKS))
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    options = parser.parse_args()
    table.use_carried_libraries()
    options.bin = options.bin.resolve()
    return write_plans(options) if options.command == "plans" else run_plans(options)


if __name__ == "__main__":
    sys.exit(main())
