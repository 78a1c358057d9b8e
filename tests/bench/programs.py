# SPDX-License-Identifier: GPL-3.0-or-later
"""What the benchmarks in Python have in common: networks, and running the programs of this project."""
import json
import os
import subprocess

TIME_LIMIT = 600  # seconds of one run

GPT2 = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "activation_function": "gelu_new"}
LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_act": "silu", "rms_norm_eps": 1e-5,
         "rope_theta": 10000.0, "attention_bias": False, "mlp_bias": False}
GPT2_SMALL = GPT2 | {"vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12}


def run(command, environment=None):
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def finish(processes):
    """Standard outputs; raises when a process failed."""
    outputs = []
    for process in processes:
        try:
            out, err = process.communicate(timeout=TIME_LIMIT)
        except subprocess.TimeoutExpired:
            for each in processes:
                each.kill()
            raise
        if process.returncode != 0:
            for each in processes:
                each.kill()
            raise RuntimeError(f"{process.args}: exit code {process.returncode}: {err.strip()[-400:]}")
        outputs.append(out)
    return outputs


def make_plan(programs, folder, name, config, options):
    """Plans a network given by its configuration; the path of the plan file and its content."""
    source = folder / name
    source.mkdir(exist_ok=True)
    (source / "config.json").write_text(json.dumps(config))
    plan = folder / f"{name}-{len(list(folder.iterdir()))}.plan.json"
    finish([run([programs / "shardscope-plan", "solve", source, "-o", plan, *map(str, options)])])
    return plan, json.loads(plan.read_text())


def start_training(programs, plan, folder, steps, options=()):
    """A run on builtin:addition, one BLAS thread a rank."""
    command = [programs / "shardscope-train", "run", plan, "--data", "builtin:addition", "--steps", str(steps),
               "--run-dir", folder, *map(str, options)]
    return run(command, os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"})


def train(programs, plan, folder, steps, options=()):
    """Telemetry of such a run."""
    output = finish([start_training(programs, plan, folder, steps, options)])[0]
    return [json.loads(line) for line in output.splitlines()]
