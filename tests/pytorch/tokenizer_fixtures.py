#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Token ids that the tokenizers library gives, for small byte-level BPEs of the kinds in use.

    tokenizer_fixtures.py FOLDER OUT.json     encodes the texts below with FOLDER/NAME/tokenizer.json
    tokenizer_fixtures.py --train FOLDER      trains those tokenizers on text of this repository
    tokenizer_fixtures.py --check             says whether the library can be imported

OUT.json holds, for each tokenizer and text, the ids and what they decode to. Nothing is fetched.
"""
import json
import pathlib
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
# Cuts at changes between lower and upper case, with lookaround and a possessive repetition.
CAMEL = r"(?=\p{Lu}\p{Ll})|(?<=[a-z])(?=\p{Lu})|\d++|[\w\u00e9]+?(?=_)|[^\S\n]+"

SCRIPTS = [
    "The quick brown fox can't jump; they'll say it's HE'S, I'VE and 'ſ. ", "Zwölf Boxkämpfer jagen Viktor quer über den Deich.",
    "Les sanglots longs des violons de l'automne", "Съешь же ещё этих мягких французских булок",
    "Ξεσκεπάζω τὴν ψυχοφθόρα βδελυγμία", "הקליפה של מילה", "نص حكيم له سر قاطع", "हिन्दी में लिखा हुआ वाक्य",
    "ภาษาไทยไม่มีช่องว่าง", "我能吞下玻璃而不伤身体。", "いろはにほへと チリヌルヲ", "키스의 고유조건은", "Tiếng Việt có dấu",
    "ŉ ǅ ﬁ ½ ² ⅷ Ⓐ ٣٤٥ १२३", "😀 👩‍👩‍👧‍👦 🇩🇪 👍🏽 ♥️",
]


def texts():
    yield from SCRIPTS
    yield from ["a", " ", "\n", "  \n \n\t x", "    indented\n\tcode();\r\n\r\n", "trailing   ", "a  b   c    d", "\n\n\n", "\t\t"]
    yield from ["0", "12345678901234567890", "3.14159 -2e10 0x1F 1,000,000", "٣٤٥٦٧", "v1.2.3-rc4"]
    # White space of many kinds, and what looks like it.
    yield "a\u00a0b\u1680c\u180ed\u2003e\u200bf\u2028g\u2029h\u202fi\u205fj\u3000k\ufeffl\u0085m\u001cn\u001fo\u000bp\u000cq"
    yield "".join(map(chr, range(128)))
    yield "".join(map(chr, range(128, 600)))
    # The same letters composed and not; marks out of order; Hangul in parts; what NFC takes apart.
    yield "e\u0301 \u00e9 a\u0323\u0302 a\u0302\u0323 \u1ead \u1112\u1161\u11ab \ud55c \u212b \u2126 \u0958 \u1e9b\u0323"
    yield "\u0301begins with a mark, q\u0307\u0323 has two"
    yield "Zalgo: z\u0334\u0351\u0322a\u0315\u0334\u0327l\u0321\u0300g\u0336\u0350o\u0337\u0357"
    yield "<|endoftext|>begin<|endoftext|><|endoftext|> end <|im_start|>user\n<|im_end|><|im_|>|endoftext|>"
    yield "<|endoftext"
    yield "x<mask>y  <mask>  z <mask>\n\n<mask><mask>"
    yield "word wordy sword word. (word) wördword \u00e9word word\u0301 word_"
    yield "café cafe\u0301 CAFÉ"
    yield "camelCaseHTTPServer snake_case_name ABCdef  GhIj"
    yield "http://example.org/?q=%20&x=[1]{2}(3)#!$^*~`\\|\"'"
    yield "a" * 700 + " " + "ab" * 300 + "-" * 200 + " " * 300 + "x" + "\n" * 100
    yield ("std::size_t validPrefix(std::string_view text) {\n    std::size_t at = 0;\n\n    while (at < text.size()) {\n"
           "\tif (characterBytes(text.substr(at)) == 0)\r\n            break; // 0x80..0xBF\n        ++at;\n    }\n}\n")
    yield ("It loads a network's graph and a description of a cluster, shows memory and communication of every operator, "
           "and decides for\neach operator whether its state is **replicated** (plain data parallel), **kept** (weights "
           "whole, gradients and optimizer\nsharded: ZeRO-2) or **sharded** (gathered before use, freed after).\n\n") * 3
    yield "\U0010ffff\ue000\ufffd\u0378\U0001f9ff\U00020000"


def build():
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

    def make(name, size, specials, split=None, behaviour="isolated", invert=False, normalizer=None, prefix=False,
             ignore_merges=False, use_regex=None):
        tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
        last = pre_tokenizers.ByteLevel(add_prefix_space=prefix,
                                        use_regex=split is None if use_regex is None else use_regex)
        tokenizer.pre_tokenizer = last if split is None else pre_tokenizers.Sequence(
            [pre_tokenizers.Split(Regex(split), behaviour, invert), last])
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
        if normalizer:
            tokenizer.normalizer = normalizer
        trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=specials, show_progress=False,
                                      initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
        tokenizer.train_from_iterator(list(corpus()), trainer)
        return name, tokenizer

    def corpus():
        yield (REPOSITORY / "README.md").read_text()
        for _ in range(4):
            yield from SCRIPTS

    yield make("gpt2", 700, ["<|endoftext|>"])
    name, llama = make("llama3", 800, ["<|begin_of_text|>", "<|endoftext|>"], LLAMA3, ignore_merges=True)
    llama.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    llama.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True), processors.TemplateProcessing(
        single="<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>", llama.token_to_id("<|begin_of_text|>"))])])
    yield name, llama
    name, qwen = make("qwen2", 800, [], QWEN2, normalizer=normalizers.NFC())
    qwen.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    qwen.add_tokens([AddedToken("cafe\u0301", normalized=True), AddedToken("<|im_|>", normalized=False)])
    yield name, qwen
    name, roberta = make("roberta", 500, ["<s>", "</s>"], prefix=True)
    roberta.add_special_tokens([AddedToken("<mask>", lstrip=True, rstrip=True)])
    roberta.add_tokens([AddedToken("word", single_word=True)])
    yield name, roberta
    yield make("camel", 500, ["<|endoftext|>"], CAMEL, use_regex=True, prefix=True)
    yield make("inverted", 400, [], QWEN2, behaviour="removed", invert=True)


def as_pairs(path):
    """One file spells its merges as pairs, as the library does today, the others as text, as it did for years."""
    document = json.loads(path.read_text())
    if path.parent.name != "llama3":
        document["model"]["merges"] = [" ".join(pair) for pair in document["model"]["merges"]]
    if path.parent.name == "gpt2":  # files of the first years
        del document["model"]["type"], document["pre_tokenizer"]["use_regex"]
    lines = json.dumps(document, ensure_ascii=True, separators=(",", ":")).replace('},{"id"', '},\n{"id"')
    path.write_text(lines.replace('"model":', '\n"model":').replace('"merges":', '\n"merges":') + "\n")


def main(arguments):
    if arguments == ["--check"]:
        import tokenizers
        print(f"tokenizers {tokenizers.__version__}")
        return 0
    if arguments[0] == "--train":
        for name, tokenizer in build():
            path = pathlib.Path(arguments[1]) / name / "tokenizer.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            tokenizer.save(str(path), pretty=False)
            as_pairs(path)
        return 0
    import tokenizers
    folder, out = map(pathlib.Path, arguments)
    inputs = list(texts())
    cases = []
    for path in sorted(folder.glob("*/tokenizer.json")):
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
        for number, text in enumerate(inputs):
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            cases.append({"tokenizer": path.parent.name, "text": number, "ids": ids,
                          "decoded": tokenizer.decode(ids, skip_special_tokens=False)})
    for case in cases:
        if case["decoded"] == inputs[case["text"]]:
            del case["decoded"]  # the usual case
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    out.write_text(f'{{"library":"tokenizers {tokenizers.__version__}",\n"texts":{json.dumps(inputs)},\n"cases":[\n{lines}\n]}}\n')
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
