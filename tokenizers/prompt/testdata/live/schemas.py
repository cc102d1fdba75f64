# SPDX-License-Identifier: Apache-2.0
#
# schemas.py sample FILE: for each structural tag in FILE, random outputs that xgrammar permits, and where it refuses
# valid ones. schemas.py validate FILE: what is wrong with arguments. See schemas_live_test.go.
import base64
import json
import random
import sys

LONGEST = 1500  # tokens


def sample(xgrammar, rnd, compiled, ends, stops, size):
    matcher = xgrammar.GrammarMatcher(compiled, override_stop_tokens=sorted(stops))
    mask = xgrammar.allocate_token_bitmask(1, size)
    out = []
    while len(out) < LONGEST:
        matcher.fill_next_token_bitmask(mask)
        words = mask[0].tolist()
        allowed = [i for i in range(size) if words[i >> 5] >> (i & 31) & 1]
        if rnd.random() < 0.2 and len(allowed) > 1:
            end, trial = rnd.choice(ends), matcher.fork()
            if all(trial.accept_token(token) for token in end):
                matcher = trial
                out += end
                continue
        stop = [i for i in allowed if i in stops]
        rest = [i for i in allowed if i not in stops]
        if stop and (not rest or rnd.random() < 0.5):
            return out
        if not rest:
            raise RuntimeError("nothing can follow " + repr(out[-40:]))
        if rnd.random() < 0.1:  # a character of several bytes
            char, trial = rnd.choice("é日😀").encode(), matcher.fork()
            if all(trial.accept_token(token) for token in char):
                matcher = trial
                out += char
                continue
        rest = [i for i in rest if i < 128] or rest
        few = [i for i in rest if i < 128 and chr(i) in '"}],:0123456789\n']
        token = rnd.choice(few if few and rnd.random() < 0.4 else rest)
        if not matcher.accept_token(token):
            raise RuntimeError("the mask permits %d, the grammar does not" % token)
        out.append(token)
    return None


def refused(xgrammar, compiled, ids, stops):
    matcher = xgrammar.GrammarMatcher(compiled, override_stop_tokens=sorted(stops))
    for i, token in enumerate(ids):
        if not matcher.accept_token(token):
            return i
    return -1 if matcher.is_terminated() or any(matcher.fork().accept_token(s) for s in stops) else len(ids)


def samples(work):
    import xgrammar

    for model in work["models"]:
        vocab = [base64.b64decode(t) for t in model["vocab"]]
        info = xgrammar.TokenizerInfo(vocab, xgrammar.VocabType.RAW, vocab_size=len(vocab), stop_token_ids=model["stops"])
        compiler = xgrammar.GrammarCompiler(info, cache_enabled=False, max_threads=1)
        stops = set(model["stops"])
        for case in model["cases"]:
            rnd = random.Random(case["seed"])
            try:
                compiled = compiler.compile_structural_tag(json.dumps(case["tag"]))
                case["refused"] = [refused(xgrammar, compiled, ids, stops) for ids in case["valid"]]
                case["out"] = [out for out in (sample(xgrammar, rnd, compiled, case["ends"], stops, len(vocab)) for _ in range(case["runs"])) if out is not None]
            except Exception as e:
                case["error"] = repr(e)[:500]


def problem(validator, text):
    try:
        args = json.loads(text)
    except Exception as e:
        return "not JSON: " + repr(e)
    if not isinstance(args, dict):
        return "not an object"
    return "; ".join(e.message[:200] for e in validator.iter_errors(args))


def validate(work):
    import jsonschema

    for model in work["models"]:
        for case in model["cases"]:
            validator = jsonschema.Draft202012Validator(case["schema"], format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
            case["problems"] = [problem(validator, text) for text in case.get("args") or []]


work = json.load(open(sys.argv[2]))
{"sample": samples, "validate": validate}[sys.argv[1]](work)
for model in work["models"]:
    model["vocab"] = None
    for case in model["cases"]:
        case["ends"] = case["valid"] = None
json.dump(work, sys.stdout)
