# SPDX-License-Identifier: Apache-2.0
"""Makes the goldens of tokenizers/chat and of its template engine.

    python3 golden.py [SHARED]

needs jinja2 3.1.6 (Debian's python3-jinja2) and nothing else. SHARED is the folder with tok/_templates and
tok/*/chat_template.jinja; without it their lines are kept as they are. It reads conversations.jsonl and
templates/ beside this folder and writes jinja.jsonl there and expr.jsonl in internal/jinja/testdata.

The environment and what happens around it follow apply_chat_template of Hugging Face transformers
(src/transformers/utils/chat_template_utils.py, 4.5x; continue_final_message as in 5.x).
"""
import copy
import datetime
import glob
import hashlib
import json
import os
import sys
import warnings

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.dirname(HERE)
NOW = datetime.datetime(2025, 3, 4, 5, 6, 7)
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
TAG = "CONTINUE_FINAL_MESSAGE_TAG "

warnings.simplefilter("ignore")


class Generation(jinja2.ext.Extension):
    """The tag generation; records character ranges while rendering."""

    tags = {"generation"}

    def __init__(self, environment):
        super().__init__(environment)
        environment.blocks, environment.ranges = [], []

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("record"), [], [], body).set_lineno(line)

    def record(self, caller):
        text = caller()
        start = len("".join(self.environment.blocks))
        self.environment.ranges.append((start, start + len(text)))
        return text


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def refuse(message):
    raise jinja2.exceptions.TemplateError(message)


def environment():
    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = refuse
    env.globals["strftime_now"] = NOW.strftime
    return env


def render(source, variables):
    """Returns text and ranges of generation blocks in UTF-8 bytes; raises where jinja2 does."""
    env = environment()
    template = env.from_string(source)
    for block in template.generate(**copy.deepcopy(variables)):
        env.blocks.append(block)
    text = "".join(env.blocks)
    text.encode()
    return text, [(len(text[:a].encode()), len(text[:b].encode())) for a, b in env.ranges]


def apply(source, c):
    """apply_chat_template for a line of conversations.jsonl."""
    messages = copy.deepcopy(c["messages"])
    final = None
    if c.get("continue_final_message"):
        final = messages[-1].get("content")
        if final is None or "content" not in source:
            raise ValueError("nothing to continue")
        if isinstance(final, list):
            for part in reversed(final):
                if "text" in part:
                    final = part["text"]
                    part["text"] += TAG
                    break
            else:
                raise ValueError("no text")
        else:
            messages[-1]["content"] = final + TAG
    text, ranges = render(source, {
        "messages": messages, "tools": c.get("tools") or None, "documents": c.get("documents"),
        "add_generation_prompt": c.get("add_generation_prompt", False), **TOKENS, **c.get("kwargs", {})})
    if final is not None:
        if final.strip() not in text or TAG.strip() not in text:
            raise ValueError("the final message is not printed")
        at = text.rindex(TAG.strip())
        text = text[:at] if text[at:at + len(TAG)] == TAG else text[:at].rstrip()
        ranges = []
    return text, ranges


def read(name):
    with open(name, encoding="utf-8", newline="") as f:
        return f.read()


def write(name, lines):
    with open(name, "w", encoding="utf-8", newline="\n") as f:
        for line in lines:
            f.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
    print(name, len(lines), "lines", sum("error" in x for x in lines), "errors")


def conversations(shared):
    talks = [json.loads(x) for x in read(os.path.join(DATA, "conversations.jsonl")).split("\n") if x]
    out = []
    for path in sorted(glob.glob(os.path.join(DATA, "templates", "*.jinja"))):
        for c in talks:
            line = {"template": os.path.basename(path), "conversation": c["name"]}
            try:
                line["text"], ranges = apply(read(path), c)
                if ranges:
                    line["generations"] = ranges
            except Exception:
                line["error"] = True
            out.append(line)
    goldens = os.path.join(DATA, "jinja.jsonl")
    if shared is None:
        out += [x for x in map(json.loads, filter(None, read(goldens).split("\n"))) if x["template"].startswith("tok/")]
    else:
        paths = glob.glob(os.path.join(shared, "tok", "_templates", "*")) + glob.glob(os.path.join(shared, "tok", "*", "chat_template.jinja"))
        for path in sorted(paths):
            for c in talks:
                # Texts of templates that are not ours are kept as their hash.
                line = {"template": os.path.relpath(path, shared), "conversation": c["name"]}
                try:
                    text, _ = apply(read(path), c)
                    line["len"], line["sha256"] = len(text.encode()), hashlib.sha256(text.encode()).hexdigest()
                except Exception:
                    line["error"] = True
                out.append(line)
    write(goldens, out)


VALUES = {
    "s": "Hello <World> \"it's\" & é\n  b\tß", "e": "", "w": "  spaced out  \n", "n": 42, "neg": -7, "f": 2.5, "f2": 1e22,
    "big": 123456789012345678901234567890, "t": True, "z": None, "l": [3, 1, 2], "ls": ["b", "A", "c", "a", "ab"],
    "d": {"b": 1, "a": [1, 2], "c": {"x": "y"}}, "ds": [{"name": "x", "v": 2}, {"name": "Y", "v": 1}, {"name": "a", "v": 2}],
    "mix": [1, "a", None, 2.0, True, [1], {"k": 1}], "u": "ÀÉÎ ﬁΣΑΣ İi 日本語😀", "num": "12", "fl": " 3.50 ",
    "lines": "a\r\nb\n\nc\x0bd\u2028e", "p": "%s-%05d|{}|{0}", "nums": [1.0, 1e16, 0.1, 1e-5, -0.0, 100000000000000000000],
    "tree": [{"n": "r", "k": [{"n": "x", "k": []}, {"n": "y", "k": [{"n": "z", "k": []}]}]}],
}


def expressions():
    """Small templates of every feature: lines of exprs.txt, each with \\n for a line end."""
    out = []
    for source in read(os.path.join(HERE, "exprs.txt")).split("\n"):
        if not source or source.startswith("##"):
            continue
        source = source.replace("⏎", "\n")
        line = {"template": source}
        try:
            line["text"] = render(source, VALUES)[0]
        except Exception:
            line["error"] = True
        out.append(line)
    path = os.path.join(DATA, "..", "internal", "jinja", "testdata")
    write(os.path.join(path, "expr.jsonl"), out)
    with open(os.path.join(path, "values.json"), "w", encoding="utf-8") as f:
        json.dump(VALUES, f, ensure_ascii=False, indent=1)
        f.write("\n")


if __name__ == "__main__":
    conversations(sys.argv[1] if len(sys.argv) > 1 else None)
    expressions()
