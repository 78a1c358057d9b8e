#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Step times predicted from `shardscope-train measure` beside those of runs, for ten plans of networks it has not seen.

    bench_prediction.py --bin build/release/bin

Needs a quiet machine. The machine is measured anew before every plan, since the speed of a virtual one changes by more
than the error within minutes. One BLAS thread a rank; the quickest and the median of the steps are shown, and the error is
that of the median.
"""
import argparse
import pathlib
import statistics
import sys
import tempfile

from programs import GPT2, LLAMA, finish, make_plan, run, train

NARROW = GPT2 | {"vocab_size": 4096, "n_positions": 256, "n_embd": 384, "n_layer": 10, "n_head": 6}
WIDE = GPT2 | {"vocab_size": 8192, "n_positions": 512, "n_embd": 896, "n_layer": 3, "n_head": 14}
GROUPED = LLAMA | {"vocab_size": 6000, "max_position_embeddings": 512, "hidden_size": 576, "intermediate_size": 1536,
                   "num_hidden_layers": 6, "num_attention_heads": 9, "num_key_value_heads": 3, "tie_word_embeddings": True}
QWEN = GROUPED | {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "head_dim": 64, "hidden_size": 448,
                  "num_attention_heads": 7, "num_key_value_heads": 1, "tie_word_embeddings": False}
SHARDED = ["--pin", "*=shard:1", "--coalescing", "never"]
PLANS = [  # network, its name, ranks, options
    ("gpt2 10 x 384", NARROW, 1, ["--sequence", 256, "--batch", 4]),
    ("gpt2 3 x 896, recomputed", WIDE, 1, ["--sequence", 256, "--batch", 4, "--recompute", "on"]),
    ("llama 6 x 576", GROUPED, 1, ["--sequence", 512, "--batch", 2]),
    ("qwen3 6 x 448, accumulated", QWEN, 1, ["--sequence", 128, "--batch", 4, "--accumulate", 2]),
    ("gpt2 10 x 384, replicated", NARROW, 2, ["--sequence", 256, "--batch", 4, "--pin", "*=replicate"]),
    ("gpt2 10 x 384, sharded", NARROW, 2, ["--sequence", 256, "--batch", 4, *SHARDED]),
    ("gpt2 3 x 896, planned", WIDE, 2, ["--sequence", 256, "--batch", 4]),
    ("llama 6 x 576, kept", GROUPED, 2, ["--sequence", 512, "--batch", 2, "--pin", "*=keep"]),
    ("llama 6 x 576, by block", GROUPED, 2, ["--sequence", 256, "--batch", 4, "--pin", "*=shard:1", "--coalescing", "always"]),
    ("qwen3 6 x 448, sharded", QWEN, 2, ["--sequence", 256, "--batch", 4, *SHARDED]),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of shardscope-plan and shardscope-train")
    parser.add_argument("--steps", type=int, default=8)
    options = parser.parse_args()
    programs = options.bin.resolve()
    print(f"{'plan':<28} {'ranks':>5} {'predicted s':>11} {'median s':>9} {'quickest':>9} {'error':>7}")
    errors = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for index, (name, config, ranks, more) in enumerate(PLANS):
            measured = folder / f"measured-{index}.cluster.json"
            finish([run([programs / "shardscope-train", "measure", "--workers", str(ranks), "-o", measured])])
            more = more if "--recompute" in more else [*more, "--recompute", "off"]
            path, plan = make_plan(programs, folder, name.split(",")[0].replace(" ", "-"), config,
                                   ["--cluster", measured, *more])
            events = train(programs, path, folder / f"run-{index}", options.steps + 1)
            seconds = [e["step_seconds"] for e in events if e["type"] == "step" and e["step"] > 1]
            predicted = plan["predicted"]["step_seconds"]
            median = statistics.median(seconds)
            errors.append(abs(predicted / median - 1))
            print(f"{name:<28} {ranks:>5} {predicted:>11.3f} {median:>9.3f} {min(seconds):>9.3f} "
                  f"{100 * (predicted / median - 1):>6.1f}%", flush=True)
    print(f"largest error {100 * max(errors):.1f} %, mean {100 * statistics.mean(errors):.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
