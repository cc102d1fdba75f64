# SPDX-License-Identifier: Apache-2.0
"""Writes harmony.jsonl and deepseek.jsonl: what the published renderers print for conversations of ours.

    python3 gen_formats.py DIR

DIR holds what this repository does not: gpt-oss.jinja (chat_template.jinja of openai/gpt-oss-20b),
dsv32.py (encoding_dsv32.py of DeepSeek-V3.2) and dsv4.py (encoding_dsv4.py of DeepSeek-V4). Jinja runs with the settings of
transformers. Arguments and schemas are Python values there, as engines hand them to templates.
"""
import json
import sys

sys.path.insert(0, sys.argv[1])

tools = [
    {"type": "function", "function": {"name": "get_time", "description": "The time now."}},
    {"type": "function", "function": {"name": "get_weather", "description": "Wetter für einen Ort: 天气 <b>&\n2nd line.", "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "City, e.g. \"Zürich\""},
            "unit": {"type": "string", "enum": ["c", "f"], "default": "c"},
            "days": {"type": "integer", "default": 3},
            "exact": {"type": "boolean", "default": False},
            "note": {"type": "string", "nullable": True, "default": "a \"b\""},
            "ids": {"type": "array", "items": {"type": "integer"}},
            "tags": {"type": "array", "items": {"type": "string"}, "nullable": True},
            "any": {"type": "array"},
            "box": {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "array", "items": {"type": "object"}}}, "required": ["x"]},
            "boxes": {"type": "array", "items": {"type": "object", "properties": {"left": {"type": "number"}, "right": {"type": "number"}, "up": {"type": "number"}}}},
            "grid": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
            "pair": {"type": ["number", "string"]},
            "one": {"type": ["null"]},
            "alt": {"oneOf": [{"type": "string", "description": "by name", "default": "x"}, {"type": "number"}, {"type": "object", "properties": {"k": {"type": "string"}}}]},
            "odd": {"type": "null"},
            "free": {},
        },
        "required": ["city", "box"]}}},
]
short = [tools[0], {"type": "function", "function": {"name": "run", "description": "Runs.", "parameters": {
    "type": "object", "properties": {"cmd": {"type": "string", "description": "Command."}, "n": {"type": "number", "default": 1.5}}, "required": ["cmd"]}}}]


def call(name, args, id=None):
    c = {"type": "function", "function": {"name": name, "arguments": args}}
    if id:
        c["id"] = id
    return c


sys_ = {"role": "system", "content": "Be brief. Größe 尺寸 <b>"}
dev = {"role": "developer", "content": "Talk like a pirate."}
hi = {"role": "user", "content": "Hi"}
yo = {"role": "assistant", "content": "Hello!"}
thought = {"role": "assistant", "content": "4", "reasoning_content": "2+2\nis 4"}
step = {"role": "assistant", "content": "", "reasoning_content": "I must look.", "tool_calls": [call("run", {"cmd": "ls \"a\"", "n": 2, "o": {"k": [1, 2.5, None, True, "é"]}}, "c1")]}
plain = {"role": "assistant", "content": "", "tool_calls": [call("get_time", {}, "c2")]}
said = {"role": "assistant", "content": "Let me see.", "tool_calls": [call("run", {"cmd": "pwd"}, "c3")]}
both = {"role": "assistant", "content": None, "reasoning_content": "Two.", "tool_calls": [call("run", {"cmd": "a"}, "p1"), call("run", {"cmd": "b"}, "p2")]}
r1 = {"role": "tool", "tool_call_id": "c1", "content": "a.txt\n\"b\".txt ü"}
r2 = {"role": "tool", "tool_call_id": "c2", "content": "{\"t\": \"12:00\"}"}
r3 = {"role": "tool", "tool_call_id": "c3", "content": ""}
p1 = {"role": "tool", "tool_call_id": "p1", "content": "A"}
p2 = {"role": "tool", "tool_call_id": "p2", "content": "B"}
more = {"role": "user", "content": "And\nnow? ✓"}

cases = {
    "user": [hi],
    "system": [sys_, hi],
    "developer": [dev, hi],
    "turns": [sys_, hi, yo, more],
    "ends with assistant": [sys_, hi, yo],
    "reasoning past": [hi, thought, more],
    "reasoning last": [hi, thought, more, dict(thought, reasoning_content="Again.")],
    "call": [sys_, hi, step, r1],
    "call without reasoning": [hi, plain, r2],
    "call with text": [hi, said, r3],
    "calls in a row": [sys_, hi, step, r1, plain, r2],
    "calls, then answer": [hi, step, r1, thought],
    "calls, answer, user": [hi, step, r1, thought, more],
    "calls, answer, calls": [hi, step, r1, thought, more, dict(step, reasoning_content="Once more."), r1],
    "several systems": [sys_, hi, yo, {"role": "system", "content": "Now shout."}, more],
    "two users": [hi, more],
    "empty system": [{"role": "system", "content": ""}, hi],
    "parallel": [hi, both, p1, p2],
    "parallel, sorted": [hi, both, p2, p1],
    "parallel, then answer": [hi, both, p1, p2, thought, more],
    "reminder": [sys_, {"role": "latest_reminder", "content": "2025-06-28, Zürich"}, hi, thought, more],
    "developer twice": [sys_, dev, thought, dev],
}


def fresh(v):
    return json.loads(json.dumps(v))


def write(path, rows):
    with open(path, "w") as f:
        for r in rows:
            f.write(json.dumps(r, ensure_ascii=False) + "\n")
    print(path, len(rows))


def harmony():
    import jinja2
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def fail(m):
        raise jinja2.exceptions.TemplateError(m)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    env.filters["tojson"] = lambda x, ensure_ascii=False, indent=None, separators=None, sort_keys=False: json.dumps(
        x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
    env.globals["raise_exception"] = fail
    env.globals["strftime_now"] = lambda f: "2025-06-28"
    tpl = env.from_string(open(sys.argv[1] + "/gpt-oss.jinja").read())
    variants = [
        ("", {}, None, True), (" +tools", {}, short, True), (" closed", {}, short, False),
        (" kwargs", {"reasoning_effort": "high", "model_identity": "You are X.", "builtin_tools": ["python", "browser"]}, tools, True),
        (" python", {"reasoning_effort": "low", "builtin_tools": ["python"]}, None, False),
    ]
    for name, msgs in cases.items():
        if name in ("several systems", "parallel", "parallel, sorted", "parallel, then answer", "reminder", "developer twice"):
            continue  # the template fails or drops something
        for suffix, kwargs, ts, gen in variants:
            if suffix and name not in ("turns", "calls in a row", "calls, answer, user", "reasoning last") or suffix == " kwargs" and name != "turns":
                continue
            ms = fresh(msgs)
            for m in ms:
                if "reasoning_content" in m:
                    m["thinking"] = m.pop("reasoning_content")
            out = tpl.render(messages=ms, tools=ts, add_generation_prompt=gen, **kwargs)
            yield {"name": name + suffix, "template": "gpt-oss", "messages": msgs, "tools": ts, "kwargs": kwargs or None,
                   "add_generation_prompt": gen, "prompt": out}


def deepseek():
    import dsv32
    import dsv4
    for version, script in (("v3.2", dsv32), ("v4", dsv4)):
        for name, msgs in cases.items():
            for ts in (None, short):
                if ts and name not in ("user", "developer", "turns", "call", "parallel, sorted", "calls, answer, user"):
                    continue
                for mode in ("chat", "thinking", "max", "keep"):
                    if mode == "max" and version == "v3.2" or (mode in ("max", "keep") or mode == "chat" and ts) and "parallel" not in name and "answer" not in name:
                        continue
                    ms = fresh(msgs)
                    if ts:
                        if ms[0]["role"] != "system":
                            ms.insert(0, {"role": "system", "content": ""})
                        ms[0]["tools"] = ts
                    for m in ms:
                        for c in m.get("tool_calls") or []:
                            c["function"]["arguments"] = json.dumps(c["function"]["arguments"], ensure_ascii=False)
                    kwargs = {"thinking": mode != "chat"}
                    args = dict(thinking_mode="thinking" if mode != "chat" else "chat")
                    if mode == "max":
                        kwargs["reasoning_effort"] = args["reasoning_effort"] = "max"
                    if mode == "keep":
                        kwargs["drop_thinking"] = args["drop_thinking"] = False
                    try:
                        out = script.encode_messages(ms, **args)
                    except Exception as e:
                        print(version, name, mode, "fails:", repr(e)[:90])
                        continue
                    yield {"name": " ".join([version, name, mode] + (["+tools"] if ts else [])), "template": version,
                           "messages": msgs, "tools": ts, "kwargs": kwargs,
                           "add_generation_prompt": msgs[-1]["role"] != "assistant", "prompt": out}
    # What only messages of the format have.
    fmt = {"type": "json_schema", "schema": {"a": ["ü", 1.0]}}
    extra = {
        "format": [dict(sys_, response_format=fmt), hi],
        "tools of the message": [dict(sys_, tools=short), hi, thought, more],
        "tools of the developer": [dict(dev, tools=short, response_format=fmt)],
    }
    for task in ("action", "query", "title"):
        extra["task " + task] = [sys_, dict(hi, task=task)]
    extra["task title after"] = [hi, dict(thought, task="title")]
    extra["task answered"] = [hi, dict(hi, task="action"), yo, more]
    for version, script in (("v3.2", dsv32), ("v4", dsv4)):
        for name, msgs in extra.items():
            if "task" in name and version == "v3.2":
                continue
            for mode in ("chat", "thinking"):
                out = script.encode_messages(fresh(msgs), thinking_mode=mode)
                yield {"name": " ".join([version, name, mode]), "template": version, "messages": msgs, "tools": None,
                       "kwargs": {"thinking": mode == "thinking"}, "add_generation_prompt": msgs[-1]["role"] != "assistant", "prompt": out}


write("harmony.jsonl", list(harmony()))
write("deepseek.jsonl", list(deepseek()))
