#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""PyTorch's side of the comparison: GPT-2 as a plan describes it, compiled, fused attention, fused AdamW, clipping.

    torch_gpt2.py PLAN --rendezvous DIR --name gpt2-xl [--device cuda] [--lane big]

Weights, gradients and moments in float32 under bf16 autocast (float32 throughout where the plan is), loss in float32.
Compiling takes minutes and little of the GPU, so it is done ahead: the program compiles, trains a few steps, gives
activations back, writes DIR/NAME.ready and waits for DIR/NAME.go; then it trains and writes DIR/NAME.json: seconds of
every step, peak bytes, loss. What goes wrong is in that file too, as "failed". Programs in one lane compile one after
the other: together, their activations would not fit.
"""
import argparse
import fcntl
import json
import pathlib
import statistics
import sys
import time
import traceback

WAIT_SECONDS = 480  # for the sign to begin


def build(torch, a, sequence, autocast):
    """The network with its loss; names and initial weights as in GPT-2."""
    from torch import nn
    from torch.nn import functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1 = nn.LayerNorm(a["hidden"], eps=a["norm"]["epsilon"])
            self.c_attn = nn.Linear(a["hidden"], 3 * a["hidden"])
            self.attn_proj = nn.Linear(a["hidden"], a["hidden"])
            self.ln_2 = nn.LayerNorm(a["hidden"], eps=a["norm"]["epsilon"])
            self.c_fc = nn.Linear(a["hidden"], a["intermediate"])
            self.mlp_proj = nn.Linear(a["intermediate"], a["hidden"])

        def forward(self, x):
            batch, length, width = x.shape
            q, k, v = (part.view(batch, length, a["heads"], a["head_dim"]).transpose(1, 2)
                       for part in self.c_attn(self.ln_1(x)).split(width, dim=2))
            attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.attn_proj(attended.transpose(1, 2).reshape(batch, length, width))
            return x + self.mlp_proj(functional.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))

    class Gpt2(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte = nn.Embedding(a["vocabulary"], a["hidden"])
            self.wpe = nn.Embedding(a["positions"], a["hidden"])
            self.h = nn.ModuleList(Block() for _ in range(a["layers"]))
            self.ln_f = nn.LayerNorm(a["hidden"], eps=a["norm"]["epsilon"])

        def forward(self, tokens, targets):
            with torch.autocast(tokens.device.type, torch.bfloat16, enabled=autocast):
                x = self.wte(tokens) + self.wpe(torch.arange(sequence, device=tokens.device))
                for block in self.h:
                    x = block(x)
                logits = functional.linear(self.ln_f(x), self.wte.weight)
            return functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten())

    model = Gpt2()
    scale = 0.02 / (2 * a["layers"]) ** 0.5
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2:
            nn.init.normal_(parameter, std=scale if "_proj." in name else 0.02)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)
    return model


class Trainer:
    def __init__(self, torch, plan, device, compiled):
        training = plan["training"]
        adam = training["optimizer"]
        self.torch, self.device, self.clip = torch, device, adam["clip_norm"]
        self.autocast = training["precision"].startswith("bf16")
        architecture, shape = plan["graph"]["architecture"], (training["micro_batch"], training["sequence"])
        torch.manual_seed(1)
        with torch.device(device):
            self.model = build(torch, architecture, training["sequence"], self.autocast)
            tokens = torch.randint(0, architecture["vocabulary"], (shape[0], shape[1] + 1))
        self.tokens, self.targets = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
        self.loss_of = torch.compile(self.model) if compiled else self.model
        decayed = [p for p in self.model.parameters() if p.dim() == 2]
        others = [p for p in self.model.parameters() if p.dim() != 2]
        self.optimizer = torch.optim.AdamW(
            [{"params": decayed, "weight_decay": adam["weight_decay"]}, {"params": others, "weight_decay": 0.0}],
            lr=adam["learning_rate"], betas=tuple(adam["betas"]), eps=adam["epsilon"], fused=True)

    def step(self):
        loss = self.loss_of(self.tokens, self.targets)
        loss.backward()
        self.torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def finish(self):
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def measure(self, steps):
        """Seconds of steps: between events on the GPU, so that no step waits for the host."""
        cuda = self.device == "cuda"
        marks, losses = [], []
        self.finish()
        for _ in range(steps + 1):
            if cuda:
                marks.append(self.torch.cuda.Event(enable_timing=True))
                marks[-1].record()
            else:
                marks.append(time.perf_counter())
            losses.append(self.step())
        self.finish()
        if cuda:
            seconds = [a.elapsed_time(b) / 1e3 for a, b in zip(marks, marks[1:])]
        else:
            seconds = [b - a for a, b in zip(marks, marks[1:])]
        return seconds, [loss.item() for loss in losses]


def prepare(torch, plan, device, steps, wanted):
    """A trainer that has trained `steps`, and how it computes; without compiling where that fails."""
    notes = []
    if wanted:
        try:
            trainer = Trainer(torch, plan, device, True)
            for _ in range(steps):
                trainer.step()
            trainer.finish()
            return trainer, ["compiled"]
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            traceback.print_exc()
            notes = [f"not compiled: {type(error).__name__}"]
    trainer = Trainer(torch, plan, device, False)
    for _ in range(steps):
        trainer.step()
    trainer.finish()
    return trainer, notes or ["not compiled"]


def work(options, write):
    begin = time.monotonic()
    try:
        import torch
    except ImportError:
        write({"failed": f"PyTorch is not installed for {sys.executable}"})
        return 77
    if options.device == "cuda" and not torch.cuda.is_available():
        write({"failed": f"PyTorch {torch.__version__} finds no GPU"})
        return 1
    from torch._inductor import config as inductor
    if hasattr(inductor, "force_shape_pad"):
        inductor.force_shape_pad = True  # instead of timing both ways on a GPU that others use just now
    plan = json.loads(options.plan.read_text())
    with open(options.rendezvous / f"{options.lane}.lane", "w") as lane:
        fcntl.flock(lane, fcntl.LOCK_EX)
        trainer, how = prepare(torch, plan, options.device, 3, not options.eager)
        if options.device == "cuda":
            torch.cuda.empty_cache()
    (options.rendezvous / f"{options.name}.ready").write_text(f"{time.monotonic() - begin:.0f}\n")
    go = options.rendezvous / f"{options.name}.go"
    while not go.exists():
        if time.monotonic() - begin > WAIT_SECONDS:
            write({"failed": "nobody asked for its steps"})
            return 1
        time.sleep(0.05)
    for _ in range(options.warm_up):
        trainer.step()
    if options.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    seconds, losses = trainer.measure(options.steps)
    how += ["bf16 autocast" if trainer.autocast else "float32", "fused attention and AdamW"]
    peak = torch.cuda.max_memory_allocated() if options.device == "cuda" else None
    write({"version": torch.__version__, "how": ", ".join(how), "seconds": seconds, "losses": losses,
           "peak_bytes": peak, "median": statistics.median(seconds)})
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", type=pathlib.Path)
    parser.add_argument("--rendezvous", type=pathlib.Path, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--lane", default="any")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warm-up", type=int, default=5)
    parser.add_argument("--eager", action="store_true", help="without compiling")
    options = parser.parse_args()
    options.rendezvous.mkdir(parents=True, exist_ok=True)

    def write(result):
        target = options.rendezvous / f"{options.name}.json"
        unfinished = target.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(result) + "\n")
        unfinished.replace(target)

    try:
        return work(options, write)
    except Exception as error:
        traceback.print_exc()
        said = (str(error).strip().splitlines() or [""])[0]
        write({"failed": f"{type(error).__name__}: {said[:200]}"})
        return 1


if __name__ == "__main__":
    sys.exit(main())
