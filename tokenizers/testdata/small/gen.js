// SPDX-License-Identifier: Apache-2.0

// Makes the small tokenizers in this folder and asks Hugging Face's tokenizers what they do:
//
//	npm install tokenizers@0.23.2 && node gen.js
//
// Each NAME.json is a tokenizer.json of a kind that mini is not; golden.jsonl has, for each of them and each text,
// ids, ids with frame, both decoded texts of the ids, and the offsets in code points.
"use strict";
const fs = require("fs"), path = require("path");
const T = require("tokenizers");

const corpus = fs.readFileSync(path.join(__dirname, "../../mini/corpus/prose.txt"), "utf8").slice(0, 12000) +
  fs.readFileSync(path.join(__dirname, "../../mini/corpus/go.txt"), "utf8").slice(0, 8000) + " naïve café Größe ÅNGSTRÖM 北京 東京 ";

// train learns n merges from words, which are lists of symbols.
function train(words, n) {
  const list = [...words].map(([w, k]) => [w.split("\u0000"), k]);
  const merges = [];
  while (merges.length < n) {
    const pairs = new Map();
    for (const [w, k] of list) for (let i = 1; i < w.length; i++) {
      const p = w[i - 1] + "\u0000" + w[i];
      pairs.set(p, (pairs.get(p) || 0) + k);
    }
    let best = null, count = 1;
    for (const [p, k] of pairs) if (k > count || (k === count && best !== null && p < best)) { best = p; count = k; }
    if (best === null) break;
    const [a, b] = best.split("\u0000");
    merges.push([a, b]);
    for (const e of list) {
      const out = [];
      for (const s of e[0]) {
        if (out.length && out[out.length - 1] === a && s === b) out[out.length - 1] = a + b;
        else out.push(s);
      }
      e[0] = out;
    }
  }
  return merges;
}

const count = (words) => words.reduce((m, w) => m.set(w, (m.get(w) || 0) + 1), new Map());
const added = (id, content, more) => ({ id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true, ...more });
const frame = (single, tokens) => ({
  type: "TemplateProcessing", single: single.map((x) => (x === "A" ? { Sequence: { id: "A", type_id: 0 } } : { SpecialToken: { id: x, type_id: 0 } })),
  pair: [{ Sequence: { id: "A", type_id: 0 } }, { Sequence: { id: "B", type_id: 1 } }],
  special_tokens: Object.fromEntries(Object.entries(tokens).map(([t, id]) => [t, { id: t, ids: [id], tokens: [t] }])),
});
const file = (o) => ({ version: "1.0", truncation: null, padding: null, added_tokens: [], normalizer: null, pre_tokenizer: null, post_processor: null, decoder: null, ...o });
const index = (tokens) => Object.fromEntries([...new Set(tokens)].map((t, i) => [t, i]));

const kinds = {};

{ // SentencePiece: spaces become ▁, bytes stand for what is unknown
  const words = count(corpus.split(/(?= )/).map((w) => [...w.replaceAll(" ", "▁")].join("\u0000")));
  const merges = train(words, 260).filter(([a, b]) => !(a + b).slice(1).includes("▁"));
  merges.push(["▁", "▁"], ["▁▁", "▁▁"], ["\n", "\n"]);
  const chars = [...new Set("▁\n\t !\"#%&'()*+,-./0123456789:;<=>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]_`abcdefghijklmnopqrstuvwxyz{|}éü")];
  const bytes = [...Array(256).keys()].map((b) => "<0x" + b.toString(16).toUpperCase().padStart(2, "0") + ">");
  const vocab = index(["<unk>", "<s>", "</s>", ...bytes, ...chars, ...merges.flatMap(([a, b]) => [a, b, a + b])]);
  const model = { type: "BPE", dropout: null, unk_token: "<unk>", continuing_subword_prefix: null, end_of_word_suffix: null, fuse_unk: true, byte_fallback: true, ignore_merges: false, vocab, merges: merges.map((m) => m.join(" ")) };
  const common = {
    added_tokens: [added(0, "<unk>"), added(1, "<s>"), added(2, "</s>"), added(900, "[INST]", { normalized: true }), added(901, "[TOOL]", { special: false, lstrip: true, rstrip: true })],
    post_processor: frame(["<s>", "A"], { "<s>": 1 }),
    decoder: { type: "Sequence", decoders: [{ type: "Replace", pattern: { String: "▁" }, content: " " }, { type: "ByteFallback" }, { type: "Fuse" }, { type: "Strip", content: " ", start: 1, stop: 0 }] },
    model,
  };
  kinds["spm-prepend"] = file({ ...common, normalizer: { type: "Sequence", normalizers: [{ type: "Prepend", prepend: "▁" }, { type: "Replace", pattern: { String: " " }, content: "▁" }] } });
  kinds["spm-first"] = file({ ...common, pre_tokenizer: { type: "Metaspace", replacement: "▁", prepend_scheme: "first", split: false } });
  // Here a word is the first one if it stands at the start of the text, white space included.
  kinds["spm-words"] = file({ ...common, normalizer: { type: "Sequence", normalizers: [{ type: "Strip", strip_left: true, strip_right: true }, { type: "NFKC" }] },
    pre_tokenizer: { type: "Sequence", pretokenizers: [{ type: "Whitespace" }, { type: "Metaspace", replacement: "▁", prepend_scheme: "first", split: true }] } });
  const gemma = { ...model, unk_token: "<unk>", fuse_unk: false };
  kinds["spm-never"] = file({ ...common, model: gemma, normalizer: { type: "Replace", pattern: { String: " " }, content: "▁" }, pre_tokenizer: { type: "Split", pattern: { String: " " }, behavior: "MergedWithPrevious", invert: false },
    decoder: { type: "Sequence", decoders: [{ type: "Replace", pattern: { String: "▁" }, content: " " }, { type: "ByteFallback" }, { type: "Fuse" }] } });
}

const words = corpus.normalize("NFD").replace(/\p{Mn}/gu, "").toLowerCase().match(/[a-z]+|[0-9]+|[^\sa-z0-9]/g);
{ // WordPiece
  const merges = train(count(words.map((w) => [...w].map((c, i) => (i ? "##" : "") + c).join("\u0000"))), 0);
  const plain = train(count(words.map((w) => [...w].join("\u0000"))), 250);
  const pieces = [...new Set(plain.map(([a, b]) => a + b))];
  const chars = [..."!\"#%&'()*+,-./0123456789:;<=>?[]_`abcdefghijklmnopqrstuvwxyz{|}京"];
  const vocab = index(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ...chars, ...chars.map((c) => "##" + c), ...pieces, ...pieces.map((p) => "##" + p), ...merges]);
  const common = {
    added_tokens: ["[PAD]", "[UNK]", "[CLS]", "[SEP]"].map((t, i) => added(i, t)).concat([added(4, "[MASK]", { lstrip: true })]),
    pre_tokenizer: { type: "BertPreTokenizer" }, post_processor: frame(["[CLS]", "A", "[SEP]"], { "[CLS]": 2, "[SEP]": 3 }),
    model: { type: "WordPiece", unk_token: "[UNK]", continuing_subword_prefix: "##", max_input_chars_per_word: 20, vocab },
    decoder: { type: "WordPiece", prefix: "##", cleanup: true },
  };
  kinds.wordpiece = file({ ...common, normalizer: { type: "BertNormalizer", clean_text: true, handle_chinese_chars: true, strip_accents: null, lowercase: true } });
  kinds["wordpiece-padded"] = file({ ...common, normalizer: { type: "BertNormalizer", clean_text: true, handle_chinese_chars: true, strip_accents: false, lowercase: true },
    truncation: { direction: "Left", max_length: 12, strategy: "LongestFirst", stride: 0 },
    padding: { strategy: { Fixed: 6 }, direction: "Left", pad_to_multiple_of: 4, pad_id: 0, pad_type_id: 0, pad_token: "[PAD]" } });
}

{ // Unigram
  const pieces = train(count(corpus.split(/\s+/).map((w) => ["▁", ...w].join("\u0000"))), 300).map(([a, b]) => a + b);
  const tokens = [...new Set(["<pad>", "</s>", "<unk>", ...pieces, "▁", ..."!\"#%&'()*+,-./0123456789:;<=>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]_`abcdefghijklmnopqrstuvwxyzéüö{|}"])];
  const vocab = tokens.map((t, i) => [t, i < 3 ? 0 : -(2 + Math.log(i) + 1 / (1 + t.length))]);
  kinds.unigram = file({
    added_tokens: [added(0, "<pad>"), added(1, "</s>"), added(2, "<unk>"), added(1000, "<extra>", { special: false, rstrip: true })],
    normalizer: { type: "Sequence", normalizers: [{ type: "Replace", pattern: { Regex: " {2,}" }, content: " " }, { type: "NFKC" }] },
    pre_tokenizer: { type: "Sequence", pretokenizers: [{ type: "WhitespaceSplit" }, { type: "Metaspace", replacement: "▁", prepend_scheme: "always", split: true }] },
    post_processor: frame(["A", "</s>"], { "</s>": 1 }),
    decoder: { type: "Metaspace", replacement: "▁", prepend_scheme: "always", split: true },
    model: { type: "Unigram", unk_id: 2, vocab, byte_fallback: false },
  });
  // Bytes stand for what is unknown, and an added token begins in the space that another one takes along.
  const bytes = [...Array(256).keys()].map((b) => ["<0x" + b.toString(16).toUpperCase().padStart(2, "0") + ">", -20]);
  kinds["unigram-bytes"] = file({
    added_tokens: [added(0, "<pad>"), added(1, "</s>"), added(2, "<unk>"), added(1000, "<extra>", { special: false, rstrip: true }), added(1001, " y", { special: false })],
    pre_tokenizer: { type: "Metaspace", replacement: "▁", prepend_scheme: "always", split: true },
    decoder: { type: "Sequence", decoders: [{ type: "Replace", pattern: { String: "▁" }, content: " " }, { type: "ByteFallback" }, { type: "Fuse" }, { type: "Strip", content: " ", start: 1, stop: 0 }] },
    model: { type: "Unigram", unk_id: 2, vocab: [...vocab, ...bytes], byte_fallback: true },
  });
}

const spelled = (s) => { // GPT-2's characters for bytes
  let out = "";
  for (const b of Buffer.from(s)) {
    const plain = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    out += String.fromCodePoint(plain ? b : b < 33 ? 256 + b : b === 173 ? 323 : 256 + 33 + b - 127);
  }
  return out;
};
const alphabet = [...Array(256).keys()].map((b) => {
  const plain = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
  return String.fromCodePoint(plain ? b : b < 33 ? 256 + b : b === 173 ? 323 : 256 + 33 + b - 127);
});
{ // CLIP: the last letter of a word is another one
  const merges = train(count(words.map((w) => { const c = [...spelled(w)]; c[c.length - 1] += "</w>"; return c.join("\u0000"); })), 200);
  const vocab = index([...alphabet, ...alphabet.map((c) => c + "</w>"), ...merges.map(([a, b]) => a + b), "<|start|>", "<|end|>"]);
  kinds.clip = file({
    added_tokens: [added(vocab["<|start|>"], "<|start|>"), added(vocab["<|end|>"], "<|end|>")],
    normalizer: { type: "Sequence", normalizers: [{ type: "NFC" }, { type: "Replace", pattern: { Regex: "\\s+" }, content: " " }, { type: "Lowercase" }] },
    pre_tokenizer: { type: "Sequence", pretokenizers: [{ type: "Split", pattern: { Regex: "<\\|start\\|>|<\\|end\\|>|'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+" }, behavior: "Removed", invert: true }, { type: "ByteLevel", add_prefix_space: false, trim_offsets: true }] },
    post_processor: { type: "RobertaProcessing", sep: ["<|end|>", vocab["<|end|>"]], cls: ["<|start|>", vocab["<|start|>"]], trim_offsets: false, add_prefix_space: false },
    decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true },
    model: { type: "BPE", dropout: null, unk_token: "<|end|>", continuing_subword_prefix: "", end_of_word_suffix: "</w>", fuse_unk: false, vocab, merges: merges.map((m) => m.join(" ")) },
  });
}
{ // Falcon: steps behind ByteLevel; RoBERTa: offsets without spaces, a space in front
  const merges = train(count(corpus.match(/ ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+/gu).map((w) => [...spelled(w)].join("\u0000"))), 200);
  const vocab = index([...alphabet, ...merges.map(([a, b]) => a + b)]);
  const n = Object.keys(vocab).length;
  const model = { type: "BPE", dropout: null, unk_token: null, continuing_subword_prefix: "", end_of_word_suffix: "", fuse_unk: false, vocab, merges: merges.map((m) => m.join(" ")) };
  kinds.falcon = file({
    added_tokens: [added(n, "<|end|>")], model, decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
    pre_tokenizer: { type: "Sequence", pretokenizers: [{ type: "Punctuation", behavior: "Contiguous" }, { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true }, { type: "Digits", individual_digits: false }, { type: "Split", pattern: { Regex: "[0-9][0-9][0-9]" }, behavior: "Isolated", invert: false }] },
  });
  const gaps = index(Object.keys(vocab).filter((t) => !/[Āðz]/.test(t))); // characters without a token vanish
  kinds["falcon-gaps"] = file({ ...kinds.falcon, added_tokens: [added(Object.keys(gaps).length, "<|end|>")], model: { ...model, vocab: gaps, merges: model.merges.filter((m) => !/[Āðz]/.test(m)) } });
  kinds.roberta = file({
    added_tokens: [added(n, "<s>"), added(n + 1, "</s>"), added(n + 2, "<mask>", { lstrip: true })], model,
    pre_tokenizer: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true }, decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true },
    post_processor: { type: "RobertaProcessing", sep: ["</s>", n + 1], cls: ["<s>", n], trim_offsets: true, add_prefix_space: true },
  });
}
{ // WordLevel
  const vocab = index(["<unk>", ...[...count(corpus.match(/\w+|[^\w\s]+/g)).keys()].slice(0, 200)]);
  kinds.wordlevel = file({
    normalizer: { type: "Sequence", normalizers: [{ type: "Strip", strip_left: true, strip_right: true }, { type: "NFD" }, { type: "StripAccents" }] },
    pre_tokenizer: { type: "Sequence", pretokenizers: [{ type: "Whitespace" }, { type: "Digits", individual_digits: true }] },
    model: { type: "WordLevel", vocab, unk_token: "<unk>" }, added_tokens: [added(0, "<unk>")],
  });
}

const texts = ["", " ", "  ", "\n", "a", " a", "a ", "Hello, world!", "The quick brown fox jumps over the lazy dog.", "It's the user's; we'll see, don't they've 'tis",
  "func main() {\n\tfmt.Println(\"hi\")\n}\n", "  two  spaces   three\n\n\nlines\r\n", "naïve café Größe cafe\u0301 ÅNGSTRÖM A\u030a", "北京 and 東京, ﾊﾝｶｸ ｶﾅ", "1234567890 12.5% ²³¼ ٣٤٥ x2", "🙂 👩‍👩‍👧 🇩🇪", "<s> hi </s>", "[INST] do [TOOL] it[TOOL]x",
  "<mask> [MASK] [CLS] <|end|> <|start|> <extra> y </s>", "\u00a0nbsp\u2028sep\u0085nel\ufefffeff\u200bzw", "ﬁne ½ ① Ⅷ ㎏", "İstanbul ſtraße ẞ Σίσυφος", "a\u0000b\u0001\u007f", "x".repeat(70) + " y", "\u0301\u0302 starts", "  <mask>  ", "-the-final--countdown--", "don't say 'm or 's , ok ? !"];

const out = fs.createWriteStream(path.join(__dirname, "golden.jsonl"));
(async () => {
  for (const [name, json] of Object.entries(kinds)) {
    const s = JSON.stringify(json, null, 0).replace(/,"(added_tokens|normalizer|pre_tokenizer|post_processor|decoder|model)":/g, ',\n"$1":');
    fs.writeFileSync(path.join(__dirname, name + ".json"), s + "\n");
    const tok = T.Tokenizer.fromString(s);
    for (const text of texts) {
      const e = await tok.encode(text, null, { addSpecialTokens: false });
      const f = await tok.encode(text, null, { addSpecialTokens: true });
      const ids = [...e.getIds()];
      out.write(JSON.stringify({ kind: name, text, ids, ids_special: [...f.getIds()], dec: await tok.decode(ids, false), dec_skip: await tok.decode([...f.getIds()], true), offsets: e.getOffsets().flat() }) + "\n");
    }
  }
  out.end();
})();
