// SPDX-License-Identifier: Apache-2.0

// Asks Hugging Face's tokenizers about every code point and prints hf.txt:
//
//	npm install tokenizers@0.23.2 && node probe.js > hf.txt
"use strict";
const T = require("tokenizers");

const nfd = T.nfdNormalizer(), nfc = T.nfcNormalizer();
const str = (...c) => String.fromCodePoint(...c);
const cps = (s) => [...s].map((c) => c.codePointAt(0));
const hex = (c) => c.toString(16).toUpperCase();
const all = function* () {
  for (let c = 0; c < 0x110000; c++) if (c < 0xd800 || c > 0xdfff) yield c;
};

// One mark of each canonical combining class. A mark swaps places with one of another class and with none
// of its own.
const marks = { 1: 0x334, 7: 0x93C, 8: 0x3099, 9: 0x94D, 10: 0x5B0, 11: 0x5B1, 12: 0x5B2, 13: 0x5B3, 14: 0x5B4, 15: 0x5B5, 16: 0x5B6, 17: 0x5B7, 18: 0x5B8, 19: 0x5B9, 20: 0x5BB, 21: 0x5BC, 22: 0x5BD, 23: 0x5BF, 24: 0x5C1, 25: 0x5C2, 26: 0xFB1E, 27: 0x64B, 28: 0x64C, 29: 0x64D, 30: 0x618, 31: 0x619, 32: 0x61A, 33: 0x651, 34: 0x652, 35: 0x670, 36: 0x711, 84: 0xC55, 91: 0xC56, 103: 0xE38, 107: 0xE48, 118: 0xEB8, 122: 0xEC8, 129: 0xF71, 130: 0xF72, 132: 0xF74, 202: 0x321, 214: 0x1DCE, 216: 0x31B, 218: 0x302A, 220: 0x316, 222: 0x59A, 224: 0x302E, 226: 0x1D16D, 228: 0x5AE, 230: 0x300, 232: 0x315, 233: 0x35C, 234: 0x35D, 240: 0x345 };
const swaps = (a, b) => nfd.normalizeString("a" + str(a, b)) !== "a" + str(a, b);

const ccc = new Map(), dec = new Map();
for (const c of all()) {
  if (c < 0x80 || (c >= 0xac00 && c <= 0xd7a3)) continue;
  const d = nfd.normalizeString(str(c));
  if (d !== str(c)) {
    dec.set(c, [nfc.normalizeString(str(c)) === str(c), cps(d)]);
  } else if (swaps(c, marks[1]) || swaps(marks[240], c)) {
    ccc.set(c, +Object.keys(marks).find((k) => !swaps(c, marks[k]) && !swaps(marks[k], c)));
  }
}

// Properties, each as a set of code points. split(x) finds the characters that pre-tokenizer x cuts off from
// the letters around them; drop(n, ...) those that normalizer n makes into the given text.
const chunk = function* () {
  const chars = [...all()];
  for (let i = 0; i < chars.length; i += 4096) yield chars.slice(i, i + 4096);
};
const split = (x) => {
  const out = new Map();
  for (const part of chunk()) {
    const inside = new Uint8Array(part.length);
    for (const [, [a, b]] of x.preTokenizeString("a" + part.map((c) => str(c) + "a").join(""))) {
      for (let k = a; k < b; k++) if (k % 2 && b - a > 1) inside[(k - 1) / 2] = 1;
    }
    part.forEach((c, k) => { if (!inside[k]) out.set(c, 0); });
  }
  return out;
};
const drop = (n, to) => new Map([...all()].filter((c) => n.normalizeString("a" + str(c) + "b") === "a" + to + "b").map((c) => [c, 0]));
const bert = (o) => T.bertNormalizer({ cleanText: false, handleChineseChars: false, stripAccents: false, lowercase: false, ...o });
const props = {
  punct: split(T.punctuationPreTokenizer("isolated")),
  numeric: split(T.digitsPreTokenizer(true)),
  white: split(T.whitespaceSplitPreTokenizer()),
  other: drop(bert({ cleanText: true }), ""),
  clean: drop(bert({ cleanText: true }), " "),
  mn: drop(bert({ stripAccents: true }), ""),
  mark: drop(T.stripAccentsNormalizer(), ""),
};

// What compatibility decomposition adds to the canonical one, and the lower case of each character.
const compat = new Map(), lower = new Map();
const nfkd = T.nfkdNormalizer(), low = T.lowercase();
for (const c of all()) {
  const k = nfkd.normalizeString(str(c));
  if (k !== nfd.normalizeString(str(c))) compat.set(c, cps(k));
  const l = low.normalizeString(str(c));
  if (l !== str(c)) lower.set(c, cps(l));
}

// Grapheme cluster breaks show in Precompiled: with a rule for every byte but newline, each cluster of fewer than six
// bytes becomes one Z, and so does each character of a longer one.
const trie = new Array(1024).fill(0);
trie[0] = 256 << 10;
for (let b = 1; b < 256; b++) if (b !== 10) trie[256 + b] = (768 << 10) | (1 << 8) | b;
const u32 = (n) => [n & 255, (n >> 8) & 255, (n >> 16) & 255, (n >> 24) & 255];
const count = T.precompiled([...u32(4 * trie.length), ...trie.flatMap(u32), 0x5a, 0]);
// clusters(f) counts the Zs of f(character) for every character.
const clusters = (f) => {
  const out = new Map();
  for (const part of chunk()) {
    count.normalizeString(part.map((c) => (c === 10 || c === 13 ? "" : f(str(c)))).join("\n")).split("\n").forEach((s, k) => out.set(part[k], s.length));
  }
  return out;
};
const graphemes = () => {
  const acute = "\u0301", zwj = "\u200d", ka = "\u0915", virama = "\u094d", gl = "\u1100", gv = "\u1161", gt = "\u11a8", ec = "\u00a9";
  const n = {
    afterA: clusters((c) => "a" + c), // 1: c extends
    beforeA: clusters((c) => c + "a"), // 1: c is a prepended mark
    marks: clusters((c) => c + acute + acute), // 2: c is a control
    pict: clusters((c) => ec + zwj + c), // 3: c is a pictograph
    extend: clusters((c) => ec + c + zwj + ec + acute), // 5: c may stand before the joiner
    linker: clusters((c) => ka + c + ka + acute), // 4: c links consonants
    linked: clusters((c) => ka + c + virama + ka + acute), // 5: c may stand beside the linker
    consonant: clusters((c) => c + virama + ka + acute), // 4: c is a consonant
    toL: clusters((c) => c + gl + acute), toV: clusters((c) => c + gv + acute), toT: clusters((c) => c + gt + acute), // 3: c goes before it
  };
  const out = new Map();
  for (const c of all()) {
    const is = (k, v) => n[k].get(c) === v;
    let g = "";
    if (c === 10 || c === 13) continue;
    if (c === 0x200d) g = "ZWJ";
    else if (is("afterA", 1)) g = (is("linker", 4) ? "Linker" : is("extend", 5) ? (is("linked", 5) ? "Extend" : "Unlinked") : "Spacing");
    else if (is("marks", 2)) g = "Control";
    else if (is("beforeA", 1)) g = "Prepend";
    else if (is("pict", 3)) g = "Pictographic";
    else if (is("toL", 3)) g = "L";
    else if (c >= 0xac00 && c < 0xd7a4) continue; // syllables: by arithmetic
    else if (is("toV", 3) && is("toT", 3)) g = "V";
    else if (is("toT", 3)) g = "T";
    else if (is("consonant", 4)) g = "Consonant";
    if (g) out.set(c, g);
  }
  return out;
};

async function words() {
  const token = { id: 1, content: "Q", single_word: true, lstrip: false, rstrip: false, normalized: false, special: false };
  const tok = T.Tokenizer.fromString(JSON.stringify({
    version: "1.0", truncation: null, padding: null, added_tokens: [token], normalizer: null, pre_tokenizer: null,
    post_processor: null, decoder: null, model: { type: "WordLevel", vocab: { "[UNK]": 0 }, unk_token: "[UNK]" },
  }));
  const chars = [...all()], out = new Map();
  for (let i = 0; i < chars.length; i += 20000) {
    const part = chars.slice(i, i + 20000);
    const got = await tok.encodeBatch(part.map((c) => "Q" + str(c)));
    got.forEach((e, k) => { if (e.getIds()[0] !== 1) out.set(part[k], 0); });
  }
  return out;
}

// ranges joins neighbours with the same value.
function ranges(map) {
  const out = [];
  for (const [c, v] of [...map].sort((a, b) => a[0] - b[0])) {
    const last = out[out.length - 1];
    if (last && last[1] === c - 1 && last[2] === v) last[1] = c;
    else out.push([c, c, v]);
  }
  return out;
}

words().then((word) => {
  console.log(`# Unicode facts that onig_classes.json does not hold, as Hugging Face tokenizers 0.23.2 shows them from outside.
# Found by asking its NFD and NFC normalizers, and an added token with single_word, about every code point.
# The normalizer's tables are old (about Unicode 9): combining marks assigned later have class 0 in it.
# ccc FIRST..LAST CLASS    canonical combining class, where not 0
# dec CP = CP...           full canonical decomposition; ! instead of = when NFC does not put it back together
# word FIRST..LAST         \\w of Rust's regex crate
# compat CP CP...          full compatibility decomposition, where not the canonical one
# lower CP CP...           what the Lowercase normalizer makes of it
# punct|numeric|white FIRST..LAST   what the Punctuation, Digits and WhitespaceSplit pre-tokenizers cut at
# other|clean FIRST..LAST  what BertNormalizer's clean_text removes and makes a space
# mn|mark FIRST..LAST      what BertNormalizer's strip_accents and StripAccents remove
# grapheme FIRST..LAST CLASS   role in grapheme clusters, as far as Precompiled shows it`);
  for (const [a, b, k] of ranges(ccc)) console.log(`ccc ${hex(a)}..${hex(b)} ${k}`);
  for (const [c, [back, d]] of dec) console.log(`dec ${hex(c)} ${back ? "=" : "!"} ${d.map(hex).join(" ")}`);
  for (const [a, b] of ranges(word)) console.log(`word ${hex(a)}..${hex(b)}`);
  for (const [c, d] of compat) console.log(`compat ${hex(c)} ${d.map(hex).join(" ")}`);
  for (const [c, d] of lower) console.log(`lower ${hex(c)} ${d.map(hex).join(" ")}`);
  for (const p of Object.keys(props)) for (const [a, b] of ranges(props[p])) console.log(`${p} ${hex(a)}..${hex(b)}`);
  for (const [a, b, g] of ranges(graphemes())) console.log(`grapheme ${hex(a)}..${hex(b)} ${g}`);
});
