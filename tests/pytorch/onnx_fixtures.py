#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Exports networks with PyTorch as ONNX fixtures, and writes what a reader must find in them.

    onnx_fixtures.py FOLDER [NAME...]    writes FOLDER/NAME.onnx and FOLDER/expected.json
    onnx_fixtures.py --check             says whether the libraries can be imported

Graphs of real size are kept without their weights: the elements of every large initialiser are external data in a file
that is then deleted. Only `tied-tiny` has its weights, since a tied head is recognised by its elements.
Expected are the parameters that PyTorch counts, and for each linear or convolutional module the FLOPs of one sample
(2 for each multiplied pair), counted here from the shapes that pass through the module.
"""
import json
import pathlib
import sys
import warnings

warnings.filterwarnings("ignore")


def networks():
    import torch
    import transformers
    from torch import nn

    class Bottleneck(nn.Module):
        def __init__(self, inputs, width, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(width)
            self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(width)
            self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
            self.bn3 = nn.BatchNorm2d(4 * width)
            self.downsample = (nn.Sequential(nn.Conv2d(inputs, 4 * width, 1, stride, bias=False),
                                             nn.BatchNorm2d(4 * width))
                               if stride != 1 or inputs != 4 * width else None)

        def forward(self, x):
            y = torch.relu(self.bn1(self.conv1(x)))
            y = torch.relu(self.bn2(self.conv2(y)))
            y = self.bn3(self.conv3(y))
            return torch.relu(y + (self.downsample(x) if self.downsample else x))

    class ResNet50(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
            self.bn1 = nn.BatchNorm2d(64)
            self.maxpool = nn.MaxPool2d(3, 2, 1)
            inputs = 64
            for i, (blocks, width) in enumerate([(3, 64), (4, 128), (6, 256), (3, 512)]):
                layers = []
                for j in range(blocks):
                    layers.append(Bottleneck(inputs, width, 2 if i > 0 and j == 0 else 1))
                    inputs = 4 * width
                setattr(self, f"layer{i + 1}", nn.Sequential(*layers))
            self.fc = nn.Linear(2048, 1000)

        def forward(self, x):
            x = self.maxpool(torch.relu(self.bn1(self.conv1(x))))
            x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
            return self.fc(x.mean((2, 3)))

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(10000, 256)
            self.lstm = nn.LSTM(256, 512, num_layers=2, batch_first=True, bidirectional=True)
            self.fc = nn.Linear(1024, 50)

        def forward(self, tokens):
            return self.fc(self.lstm(self.embedding(tokens))[0])

    class Logits(nn.Module):
        """The first output alone: the logits of a network with a head, the hidden states of one without."""
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, x, mask=None):
            options = dict(self.options) if mask is None else {"attention_mask": mask, **self.options}
            return self.model(x, return_dict=False, **options)[0]

    def wrapped(model, **options):
        logits = Logits(model)
        logits.options = options
        return logits

    def causal(length, vocabulary):
        """Tokens, and a mask of four axes: it is taken as it is, the library's own cannot be traced."""
        lowest = torch.finfo(torch.float32).min
        return tokens(length, vocabulary), torch.triu(torch.full((1, 1, length, length), lowest), diagonal=1)

    def tokens(length, vocabulary):
        return torch.randint(0, vocabulary, (1, length))

    t = transformers
    three = {"num_hidden_layers": 3}  # of the real width: more of the same say nothing new
    llama = t.LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=3, num_attention_heads=16,
                          num_key_value_heads=4, vocab_size=32000, attn_implementation="eager")
    gpt2 = dict(attn_implementation="eager")
    return {
        "resnet50": lambda: (ResNet50(), torch.randn(1, 3, 224, 224), False),
        "gpt2": lambda: (wrapped(t.GPT2LMHeadModel(t.GPT2Config(n_layer=3, n_positions=256, **gpt2)), use_cache=False), causal(256, 50257), False),
        "bert-base": lambda: (wrapped(t.BertModel(t.BertConfig(**three, **gpt2), add_pooling_layer=False)), tokens(128, 30522), False),
        "vit-base": lambda: (wrapped(t.ViTForImageClassification(t.ViTConfig(num_labels=1000, **three, **gpt2))),
                             torch.randn(1, 3, 224, 224), False),
        "llama-stack": lambda: (wrapped(t.LlamaModel(llama), use_cache=False), causal(256, 32000), False),
        "lstm": lambda: (Tagger(), tokens(64, 10000), False),
        "tied-tiny": lambda: (wrapped(t.GPT2LMHeadModel(t.GPT2Config(n_embd=32, n_layer=1, n_head=2, n_positions=32,
                                                                     vocab_size=80, **gpt2)), use_cache=False),
                              causal(16, 80), True),
    }


def count_flops(network):
    """Fills the returned table with the FLOPs of every module that multiplies by a weight, once it runs."""
    from torch import nn

    counted = {}

    def hook(name):
        def count(module, inputs, output):
            if isinstance(module, nn.Conv2d):
                per = module.weight[0].numel()
            elif isinstance(module, nn.Linear):
                per = module.in_features
            else:
                per = module.weight.shape[0]  # Conv1D of GPT-2: (in, out)
            counted[name] = int(2 * output.numel() * per)
        return count

    for name, module in network.named_modules():
        if isinstance(module, (nn.Linear, nn.Conv2d)) or type(module).__name__ == "Conv1D":
            module.register_forward_hook(hook(name))
    return counted


def strip(name):
    for prefix in ("model.", "model.", "transformer."):
        if name.startswith(prefix):
            name = name[len(prefix):]
    return name


def main(arguments):
    import onnx
    import torch
    import transformers

    torch.set_num_threads(1)
    if arguments == ["--check"]:
        print(f"torch {torch.__version__}, transformers {transformers.__version__}, onnx {onnx.__version__}")
        return 0
    folder = pathlib.Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    record = folder / "expected.json"
    expected = json.loads(record.read_text()) if record.exists() else {}
    for name, make in networks().items():
        if arguments[1:] and name not in arguments[1:]:
            continue
        torch.manual_seed(0)
        # Weights that are not kept need no values: pages that nobody writes.
        with torch.device("meta" if name != "tied-tiny" else "cpu"):
            network, example, keep_weights = make()
        if not keep_weights:
            network = network.to_empty(device="cpu")
            for buffer in network.buffers():
                buffer.zero_()
        else:
            # The exporter stores equal tensors once, and fresh norms and biases are all equal.
            for parameter in network.parameters():
                torch.nn.init.normal_(parameter)
        if getattr(network, "model", None) is not None:
            network.model.tie_weights()
        example = example if isinstance(example, tuple) else (example,)
        example = tuple(torch.zeros(x.shape, dtype=x.dtype) for x in example)
        network.eval()
        flops = count_flops(network)
        path = folder / f"{name}.onnx"
        # The exporter that traces keeps the paths of modules as names of nodes; folding would merge norms into
        # convolutions, which is not what is trained.
        torch.onnx.export(network, example, str(path), opset_version=17, dynamo=False,
                          training=torch.onnx.TrainingMode.PRESERVE if keep_weights else torch.onnx.TrainingMode.TRAINING,
                          do_constant_folding=keep_weights)
        proto = onnx.load(str(path))
        proto.doc_string = ""
        for node in proto.graph.node:
            node.doc_string = ""
        if not keep_weights:
            data = f"{name}.data"
            onnx.save(proto, str(path), save_as_external_data=True, all_tensors_to_one_file=True, location=data,
                      size_threshold=256)
            (folder / data).unlink()
        else:
            onnx.save(proto, str(path))
        parameters = sum(p.numel() for p in network.parameters())
        expected[name] = {"parameters": parameters, "flops": {strip(n): f for n, f in flops.items()}}
        if config := getattr(getattr(network, "model", None), "config", None):
            # Of one layer: scores and weighted values, 2 x 2 tokens^2 width; scaling and softmax, 6 for each score.
            width = config.hidden_size
            length = 197 if "vit" in name else int(example[0].shape[1])
            expected[name]["attention_flops"] = length * length * (4 * width + 6 * config.num_attention_heads)
        record.write_text(json.dumps(expected, indent=1) + "\n")
        print(f"{name}: {parameters} parameters, {path.stat().st_size} bytes", file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
