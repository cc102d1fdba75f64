# SPDX-License-Identifier: Apache-2.0
#
# constraint.py FILE: for each structural tag in FILE, prints random outputs that xgrammar permits, as token ids in JSON.
# See constraint_live_test.go.
import base64
import json
import random
import sys

import torch
import xgrammar

LONGEST = 12000  # tokens

def sample(rnd, compiled, ends, closers, special, stops, size):
    matcher = xgrammar.GrammarMatcher(compiled, override_stop_tokens=sorted(stops))
    mask = xgrammar.allocate_token_bitmask(1, size)
    out = []
    while len(out) < LONGEST:
        matcher.fill_next_token_bitmask(mask)
        words = mask[0].tolist()
        allowed = [i for i in range(size) if words[i >> 5] >> (i & 31) & 1]
        if rnd.random() < 0.15:  # an end of a free part or of the calls, token by token
            end, trial = rnd.choice(ends if len(allowed) > 128 else closers or ends), matcher.fork()
            if all(trial.accept_token(token) for token in end):
                matcher = trial
                out += end
                continue
        stop = [i for i in allowed if i in stops]
        rest = [i for i in allowed if i not in stops]
        if stop and (not rest or rnd.random() < 0.5):
            return out
        rest = [i for i in rest if i not in special] or rest
        few = [i for i in rest if i < 128 and chr(i) in '"}],:0123456789\n']
        token = rnd.choice(few if few and rnd.random() < 0.5 else rest)
        if not matcher.accept_token(token):
            raise RuntimeError("the mask permits %d, the grammar does not" % token)
        out.append(token)
    raise RuntimeError("the output does not end: " + repr(out[-60:]))

def main():
    work = json.load(open(sys.argv[1]))
    for model in work["models"]:
        vocab = [base64.b64decode(t) for t in model["vocab"]]
        info = xgrammar.TokenizerInfo(vocab, xgrammar.VocabType.RAW, vocab_size=len(vocab), stop_token_ids=model["stops"])
        # The cache of 0.2.8 mixes up rules that differ only in token ids.
        compiler = xgrammar.GrammarCompiler(info, cache_enabled=False)
        for case in model["cases"]:
            rnd = random.Random(case["seed"])
            try:
                compiled = compiler.compile_structural_tag(json.dumps(case["tag"]))
                case["out"] = [sample(rnd, compiled, case["ends"], case["closers"] or [], set(model["special"]), set(model["stops"]), len(vocab)) for _ in range(case["runs"])]
            except Exception as e:
                case["error"] = repr(e)[:500]
            del case["tag"], case["ends"], case["closers"]
        model["vocab"] = None
    json.dump(work, sys.stdout)

torch.set_num_threads(1)
main()
