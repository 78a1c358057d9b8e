#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory and speed of GPT-2 of three sizes on one GPU: predicted by the plan, measured, and PyTorch on the same card.

    speed.py plans --bin BIN --plans DIR [--cpu]       writes the plans and what a token costs by the graph
    speed.py start --plans DIR --report DIR            starts PyTorch, which compiles while other parts run
    speed.py run --bin BIN --plans DIR --report DIR    measures; prints rows of check.sh's table

One GPU trains 1,024 tokens a sample in bf16-adam (bf16 weights and gradients, float32 masters and moments). Plans are
made again with the rates and the context that `shardscope-train measure` found, where it did. A run is stopped after
its last measured step, before it would write a checkpoint. Utilisation counts three times the forward FLOPs of the
graph (6 per weight and token, and attention) over the card's dense peak. Reaching PyTorch and 45 % at 1.5B are goals:
missing them is told and is no failure.
"""
import argparse
import contextlib
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import table
from programs import GPT2, finish, run, start_training

NETWORKS = {  # name: title, batch, lane in which PyTorch compiles; in order of worth
    "gpt2-xl": ("GPT-2 1.5B", 16, "large"),
    "gpt2": ("GPT-2 124M", 16, "small"),
    "gpt2-medium": ("GPT-2 350M", 16, "small"),
}
REHEARSED = {
    "rehearsed": (GPT2 | {"vocab_size": 512, "n_positions": 64, "n_embd": 64, "n_layer": 2, "n_head": 2},
                  "tiny network", 2, "small"),
}
SEQUENCE = 1024
GOALS = {"gpt2-xl": 0.45}
WARM_UP = 5  # steps that do not count
STEPS = 24  # in all, the last before the first evaluation
SAMPLED = "memory.used,power.draw,utilization.gpu,clocks.sm,temperature.gpu"


def solve(options, graph, path, more):
    command = [options.bin / "shardscope-plan", "solve", graph, "--devices", 1, "--recompute", "off", "-o", path, *more]
    finish([run(list(map(str, command)))])
    return json.loads(path.read_text())


def choices(batch, cpu):
    return ["--batch", batch, *(["--sequence", 64, "--precision", "fp32-adam"] if cpu else
                                ["--sequence", SEQUENCE, "--precision", "bf16-adam"])]


def write_plans(options):
    options.plans.mkdir(parents=True, exist_ok=True)
    facts = {}
    with tempfile.TemporaryDirectory() as temporary:
        networks = {name: (name, *rest) for name, rest in NETWORKS.items()}
        if options.cpu:
            networks = {}
            for name, (config, *rest) in REHEARSED.items():
                graph = options.plans / name
                graph.mkdir(exist_ok=True)
                (graph / "config.json").write_text(json.dumps(config))
                networks[name] = (graph, *rest)
        for name, (graph, title, batch, lane) in networks.items():
            plan = solve(options, graph, options.plans / f"{name}.plan.json",
                         ["--cluster", "local-cpu" if options.cpu else "1x-h200", *choices(batch, options.cpu)])
            sequence = plan["training"]["sequence"]
            inspected = json.loads(finish([run([options.bin / "shardscope-plan", "inspect", str(graph), "--sequence",
                                                str(sequence), "--json"])])[0])
            forward = sum(operator["flops_forward"] for operator in inspected["operators"])
            facts[name] = {"title": title, "batch": batch, "lane": lane, "flops_per_token": 3 * forward / sequence,
                           "parameters": inspected["parameters"]["unique"]}
    (options.plans / "networks.json").write_text(json.dumps(facts, indent=1) + "\n")
    return 0


def start_torch(options):
    """Leaves PyTorch running, detached from this part's time limit; their process numbers on standard output."""
    rendezvous = options.report / "pytorch"
    rendezvous.mkdir(parents=True, exist_ok=True)
    threads = "1" if options.device == "cpu" else "4"
    environment = os.environ | {"TORCHINDUCTOR_COMPILE_THREADS": threads, "OMP_NUM_THREADS": threads}
    for name, fact in json.loads((options.plans / "networks.json").read_text()).items():
        for suffix in (".ready", ".go", ".json", ".pid"):
            (rendezvous / (name + suffix)).unlink(missing_ok=True)
        plan = options.plans / f"{name}.plan.json"
        command = [sys.executable, pathlib.Path(__file__).with_name("torch_gpt2.py"), plan, "--rendezvous", rendezvous,
                   "--name", name, "--device", options.device, "--lane", fact["lane"],
                   *(["--steps", "3", "--warm-up", "1"] if options.device == "cpu" else [])]
        with open(rendezvous / f"{name}.log", "w") as log:
            process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       env=environment, start_new_session=True)
        (rendezvous / f"{name}.pid").write_text(f"{process.pid}\n")
        print(process.pid, flush=True)
    return 0


def wait_for_torch(options, names, deadline):
    """Until PyTorch has compiled everything: it would disturb what is measured. What is late is ended."""
    rendezvous = options.report / "pytorch"
    started = [name for name in names if (rendezvous / f"{name}.pid").exists()]
    for name in started:
        while not (rendezvous / f"{name}.ready").exists() and not (rendezvous / f"{name}.json").exists():
            if time.monotonic() > deadline:
                with contextlib.suppress(ProcessLookupError):  # it may have ended without a word
                    os.killpg(int((rendezvous / f"{name}.pid").read_text()), signal.SIGKILL)
                (rendezvous / f"{name}.json").write_text(json.dumps({"failed": "PyTorch took too long to compile"}))
                break
            time.sleep(0.1)


class Sampler:
    """What nvidia-smi says of the GPU while a run lasts."""

    def __init__(self, path):
        self.path = path
        self.process = None
        query = ["nvidia-smi", f"--query-gpu={SAMPLED}", "--format=csv,noheader,nounits", "-i", "0"]
        self.before = None
        try:
            self.before = self.read_line(finish([run(query)])[0])
            with open(path, "w") as log:
                self.process = subprocess.Popen([*query, "-lms", "200"], stdout=log, stderr=subprocess.DEVNULL)
        except (OSError, RuntimeError) as error:
            self.reason = "nvidia-smi is not there" if isinstance(error, OSError) else table.reason(error)

    @staticmethod
    def read_line(line):
        values = []
        for cell in line.strip().split(","):
            try:
                values.append(float(cell))
            except ValueError:
                values.append(None)  # [N/A]
        return values

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait()

    def column(self, index):
        lines = self.path.read_text().splitlines() if self.process else []
        cells = [self.read_line(line) for line in lines]
        return [row[index] for row in cells if len(row) == len(SAMPLED.split(",")) and row[index] is not None]


def train_and_stop(options, plan, folder, steps, seconds):
    """Telemetry up to a step; the run is then stopped at once. Raises RuntimeError when it does not get there."""
    process = start_training(options.bin, plan, folder, 1000, ["--device", options.device, "--timeout", 120])
    errors = []
    reader = threading.Thread(target=lambda: errors.append(process.stderr.read()), daemon=True)
    reader.start()
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    events, steps_seen, memory_seen = [], 0, False
    for line in process.stdout:
        events.append(json.loads(line))
        steps_seen = max(steps_seen, events[-1].get("step", 0) if events[-1]["type"] == "step" else 0)
        memory_seen = memory_seen or events[-1]["type"] == "memory"
        if steps_seen >= steps and memory_seen:
            break
    arrived = steps_seen >= steps
    late = not timer.is_alive()
    if arrived:
        for _ in range(2):  # twice: without a checkpoint
            process.terminate()
            time.sleep(0.2)
        timer.cancel()
        timer = threading.Timer(20, process.kill)
        timer.start()
    process.stdout.read()
    process.wait()
    timer.cancel()
    reader.join(5)
    if not arrived:
        raise RuntimeError(f"step {steps_seen} of {steps} after {seconds:.0f} s" if late else
                           f"exit code {process.returncode}: {table.last_line(''.join(errors))}")
    return events


def peak_flops(options, precision):
    """The dense peak of the card by the cluster files, or nothing for one that is in none of them."""
    if options.device == "cpu":
        return None
    try:
        card = finish([run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader", "-i", "0"])])[0]
    except (OSError, RuntimeError):
        return None
    for path in sorted(table.CLUSTERS.glob("*.cluster.json")):
        device = json.loads(path.read_text())["device"]
        models = [word for word in device["name"].split() if any(c.isdigit() for c in word) and not word.isdigit()]
        if models and models[0] in card.replace("-", " ").split() and "peak_flops" in device:
            return device["peak_flops"][precision.split("-")[0]]
    return None


def show_memory(options, title, plan, events, sampler):
    memory = next(event for event in events if event["type"] == "memory")
    predicted = sum(memory["predicted"]["ledger"].values())
    table.row(f"{title}: bytes of the arenas", predicted, memory["peak_allocated"],
              table.within(memory["peak_allocated"], predicted))
    reserve = plan["cluster"]["reserve"]
    context = sum(each["bytes"] for each in reserve)
    wanted = predicted + context
    what = f"{title}: bytes of the process, context"
    told = f"{wanted}, {context} " + "+".join(sorted({each["source"] for each in reserve}))
    own = memory["allocated"]["ledger"].get("context", 0)
    used = sampler.column(0)
    grown = max(used) - sampler.before[0] if used and sampler.before[0] is not None else None  # MiB
    outside = f"; {grown:.0f} MiB more by nvidia-smi" if grown is not None else ""
    if options.device == "cpu":
        off = table.percent(memory["resident"], wanted)
        table.row(what, told, memory["resident"], f"{off}, not judged on CPU cores")
    elif own > 0:
        table.row(what, told, f"{memory['resident']}, {own}", table.within(memory["resident"], wanted) + outside)
    elif grown is not None:
        grown = int(grown * (1 << 20))
        table.row(what, told, grown, table.within(grown, wanted) + "; by nvidia-smi, NVML does not tell the run")
    else:
        table.row(what, told, "-", "not measured: neither NVML nor nvidia-smi tells")


def show_sampled(title, sampler):
    if not sampler.process:
        table.row(f"{title}: W, % busy, MHz, degrees", "-", "-", f"not measured: {sampler.reason}")
        return
    cells = [f"{max(column):.0f}" if (column := sampler.column(i)) else "?" for i in range(1, 5)]
    table.row(f"{title}: W, % busy, MHz, degrees", "-", ", ".join(cells), "largest while it ran, nvidia-smi")


def torch_result(options, name, deadline):
    """PyTorch's result, or the reason why there is none."""
    rendezvous = options.report / "pytorch"
    result = rendezvous / f"{name}.json"
    if not (rendezvous / f"{name}.pid").exists():
        return None, "PyTorch was not started"
    (rendezvous / f"{name}.go").touch()
    while not result.exists():
        if time.monotonic() > deadline:
            return None, "PyTorch was still training when time was over"
        time.sleep(0.1)
    content = json.loads(result.read_text())
    return (None, content["failed"]) if "failed" in content else (content, "")


def show_network(options, name, fact, deadline):
    title, cpu = fact["title"], options.device == "cpu"
    path = options.plans / f"{name}.plan.json"
    plan = json.loads(path.read_text())
    datasheet = plan["predicted"]["step_seconds"]
    predicted = f"{datasheet:.6f} by {'default' if cpu else 'datasheet'} rates"
    if options.cluster and options.cluster.exists():
        try:
            graph = options.plans / name if (options.plans / name).is_dir() else name
            again = options.report / f"{name}.measured.plan.json"
            plan = solve(options, graph, again, ["--cluster", options.cluster, *choices(fact["batch"], cpu)])
            path, predicted = again, f"{plan['predicted']['step_seconds']:.6f} by measured, {predicted}"
        except (OSError, RuntimeError) as error:
            predicted += f"; no plan with measured rates: {table.reason(error)}"
    tokens = plan["training"]["global_batch"] * plan["training"]["sequence"]
    sampler = Sampler(options.report / f"{name}.nvidia-smi.csv")
    try:
        left = max(5, deadline - time.monotonic())
        events = train_and_stop(options, path, options.report / name, options.steps, left)
    except RuntimeError as error:
        late = time.monotonic() >= deadline - 1
        table.row(f"{title}: training", f"{options.steps} steps", "-",
                  ("incomplete: " if late else "FAILED: ") + str(error))
        return
    finally:
        sampler.stop()
    (options.report / f"{name}.ndjson").write_text("".join(json.dumps(event) + "\n" for event in events))
    show_memory(options, title, plan, events, sampler)
    show_sampled(title, sampler)
    step = {event["step"]: event for event in events if event["type"] == "step"}
    # From line to line, so that nothing between steps is left out.
    seconds = statistics.median(step[i]["t"] - step[i - 1]["t"] for i in range(WARM_UP + 1, options.steps + 1))
    off = table.percent(seconds, plan["predicted"]["step_seconds"])
    table.row(f"{title}: seconds of a step", predicted, f"{seconds:.6f}", f"measured {off} off the plan")
    theirs, reason = torch_result(options, name, deadline)
    if theirs:
        ratio = theirs["median"] / seconds
        verdict = f"{ratio:.3f} times PyTorch" + ("" if ratio >= 1 else ", below the goal")
        verdict += f"; {theirs['version']}, {theirs['how']}, batch {fact['batch']}"
        if theirs["peak_bytes"]:
            verdict += f", peak {theirs['peak_bytes']} bytes"
        wanted = f"goal {tokens / theirs['median']:.0f} of PyTorch"
    else:
        wanted, verdict = "goal 1.0 of PyTorch", f"not compared: {reason}"
    table.row(f"{title}: tokens per second", wanted, f"{tokens / seconds:.0f}", verdict)
    peak = peak_flops(options, plan["training"]["precision"])
    rate = fact["flops_per_token"] * tokens
    goal = f"goal {100 * GOALS[name]:.0f} %" if name in GOALS else "-"
    if not peak:
        table.row(f"{title}: model-FLOPs utilisation", goal, f"{rate / seconds / 1e12:.4g} TFLOP/s",
                  "no peak is known of this device")
        return
    ours = rate / seconds / peak
    verdict = f"{rate / seconds / 1e12:.1f} of {peak / 1e12:.1f} TFLOP/s"
    verdict += ", below the goal" if ours < GOALS.get(name, 0) else ""
    if theirs:
        verdict += f"; PyTorch {100 * rate / theirs['median'] / peak:.1f} %"
    table.row(f"{title}: model-FLOPs utilisation", goal, f"{100 * ours:.1f} %", verdict)


def measure(options):
    deadline = time.monotonic() + options.seconds
    options.report.mkdir(parents=True, exist_ok=True)
    facts = json.loads((options.plans / "networks.json").read_text())
    wait_for_torch(options, facts, time.monotonic() + options.seconds / 2)
    for name, fact in facts.items():
        if deadline - time.monotonic() < 15:
            table.row(f"{fact['title']}: memory and speed", "-", "-", "incomplete: no time was left")
            continue
        show_network(options, name, fact, deadline)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["plans", "start", "run"])
    parser.add_argument("--bin", type=pathlib.Path, help="folder of the two programs")
    parser.add_argument("--plans", type=pathlib.Path, required=True)
    parser.add_argument("--cpu", action="store_true", help="plans for rehearsing on CPU cores")
    parser.add_argument("--report", type=pathlib.Path)
    parser.add_argument("--cluster", type=pathlib.Path, help="what was measured of this machine")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seconds", type=float, default=200)
    options = parser.parse_args()
    if options.bin:  # PyTorch is to find its own
        table.use_carried_libraries()
        options.bin = options.bin.resolve()
    return {"plans": write_plans, "start": start_torch, "run": measure}[options.command](options)


if __name__ == "__main__":
    sys.exit(main())
