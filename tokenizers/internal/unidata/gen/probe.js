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
# word FIRST..LAST         \\w of Rust's regex crate`);
  for (const [a, b, k] of ranges(ccc)) console.log(`ccc ${hex(a)}..${hex(b)} ${k}`);
  for (const [c, [back, d]] of dec) console.log(`dec ${hex(c)} ${back ? "=" : "!"} ${d.map(hex).join(" ")}`);
  for (const [a, b] of ranges(word)) console.log(`word ${hex(a)}..${hex(b)}`);
});
