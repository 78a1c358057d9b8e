#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Loads an exported folder with the transformers library and says what it makes of a window of token ids.

    load_export.py FOLDER IDS.bin    prints JSON: class, dtype, parameters, tied, loss of the window, and whether
                                     AutoTokenizer opens the folder and what it makes of a few words
    load_export.py --check           says whether the libraries can be imported

IDS.bin holds 16-bit ids: one window of tokens, and the target of the last.
"""
import json
import pathlib
import sys
import warnings

warnings.filterwarnings("ignore")

import numpy
import torch
import transformers


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    model, report = transformers.AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True, dtype="auto")
    model.eval()
    ids = torch.from_numpy(numpy.fromfile(sys.argv[2], dtype="<u2").astype("int64"))
    with torch.no_grad():
        logits = model(ids[None, :-1]).logits[0].float()
    said = {"class": type(model).__name__, "dtype": str(model.dtype),
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "tied": model.get_input_embeddings().weight is model.get_output_embeddings().weight,
            "missing": sorted(report["missing_keys"]), "unexpected": sorted(report["unexpected_keys"]),
            "loss": torch.nn.functional.cross_entropy(logits, ids[1:]).item()}
    if (folder / "tokenizer.json").exists():
        said["words"] = transformers.AutoTokenizer.from_pretrained(folder)("Les violons")["input_ids"]
    print(json.dumps(said))


if sys.argv[1:] != ["--check"]:
    main()
