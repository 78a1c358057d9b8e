#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counts and tensor names of public configurations, as the transformers library builds them on the meta device.

    transformers_fixtures.py CONFIGS.json OUT.json     builds every configuration and writes what it has
    transformers_fixtures.py --check                   says whether the libraries can be imported

CONFIGS.json lists {"name", "config"}; a config may be a path to a config.json relative to the list. No weights are
made and nothing is fetched. OUT.json holds, for each, the count of unique parameters and of those one token passes
through, the tensors as [name with every index as *, shape, how many] and the SHA-256 of all "NAME SHAPE" lines.
Names are those of the state dict without a leading "transformer." or "model.".
"""
import collections
import hashlib
import json
import pathlib
import re
import sys


def build(config):
    import torch
    import transformers
    import transformers.modeling_utils

    config = dict(config)
    inner = config.get("text_config")
    if inner is not None and config["model_type"] not in ("gemma3_text",):
        config = {"model_type": "gemma3_text", **inner}
    family = config.pop("model_type")
    architectures = config.get("architectures")
    made = transformers.AutoConfig.for_model(family, **config)
    if "id2label" not in config and "num_labels" in config:
        made.num_labels = config["num_labels"]
    usual = {"t5": "T5ForConditionalGeneration"}.get(family)
    if architectures:
        cls = getattr(transformers, architectures[0])
    elif usual:
        cls = getattr(transformers, usual)
    else:
        cls = transformers.MODEL_FOR_CAUSAL_LM_MAPPING[type(made)]
    # Tensors on the meta device have a shape and no elements, so there is nothing to initialise.
    with torch.device("meta"), transformers.modeling_utils.no_init_weights():
        network = cls(made)
        network.tie_weights()
    return network, made


def strip(name):
    for prefix in ("transformer.", "model."):
        if name.startswith(prefix):
            return name[len(prefix):]
    return name


def describe(name, config):
    network, made = build(config)
    tensors = [(strip(n), list(p.shape), p.numel()) for n, p in network.named_parameters()]
    unique = sum(count for _, _, count in tensors)
    routed = sum(count for n, _, count in tensors if re.search(r"\.experts\.\d", n))
    experts = next((getattr(made, k) for k in ("num_local_experts", "n_routed_experts", "num_experts")
                    if getattr(made, k, None)), 1)
    active = unique - routed + routed // experts * (getattr(made, "num_experts_per_tok", 1) or 1)
    lines = sorted(f"{n} {'x'.join(map(str, shape))}" for n, shape, _ in tensors)
    groups = collections.Counter((re.sub(r"(?<=\.)\d+(?=\.)", "*", n), tuple(shape)) for n, shape, _ in tensors)
    return {"name": name, "config": config, "unique": unique, "active": active if routed else unique,
            "tensors": [[n, list(shape), count] for (n, shape), count in sorted(groups.items())],
            "sha256": hashlib.sha256("\n".join(lines).encode()).hexdigest()}


def main(arguments):
    if arguments == ["--check"]:
        import torch
        import transformers
        print(f"torch {torch.__version__}, transformers {transformers.__version__}")
        return 0
    listing, out = map(pathlib.Path, arguments)
    import transformers
    entries = []
    for entry in json.loads(listing.read_text())["configurations"]:
        config = entry["config"]
        if isinstance(config, str):
            config = json.loads((listing.parent / config).read_text())
        described = describe(entry["name"], config)
        described["config"] = entry["config"]
        entries.append(described)
        print(f"{entry['name']}: {described['unique']}", file=sys.stderr, flush=True)
    text = ",\n".join("  " + json.dumps(entry, separators=(",", ":")) for entry in entries)
    out.write_text('{"library":"transformers %s","networks":[\n%s\n]}\n' % (transformers.__version__, text))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
