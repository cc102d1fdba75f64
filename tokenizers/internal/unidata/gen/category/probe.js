// SPDX-License-Identifier: Apache-2.0

// Asks Hugging Face's tokenizers (their Oniguruma, and the pre-tokenizer UnicodeScripts) about every code
// point and prints props.txt:
//
//	npm install tokenizers@0.23.2 && node probe.js Adlam,Ahom,... > props.txt
//
// The argument names all scripts of Unicode 16, with _ for spaces.
"use strict";
const T = require("tokenizers");

const pre = (o) => T.Tokenizer.fromString(JSON.stringify({
  version: "1.0", truncation: null, padding: null, added_tokens: [], normalizer: null, pre_tokenizer: o,
  post_processor: null, decoder: null, model: { type: "WordLevel", vocab: { "[UNK]": 0 }, unk_token: "[UNK]" },
})).getPreTokenizer();
const find = (re) => pre({ type: "Split", pattern: { Regex: re }, behavior: "Removed", invert: true });
const hex = (c) => c.toString(16).toUpperCase();
const str = (c) => String.fromCodePoint(c);

const all = [];
for (let c = 0; c < 0x110000; c++) if (c < 0xd800 || c > 0xdfff) all.push(c);
const assigned = all.filter((c) => c < 0x33500 || (c >= 0xe0000 && c < 0xe0200));
const text = (cps) => { let s = ""; for (const c of cps) s += str(c); return s; };
const allText = text(all), assignedText = text(assigned);

// ranges returns the runs of code points that the class matches.
function ranges(cls, cps, s) {
  const out = [];
  for (const [, [a, b]] of find(`${cls}+`).preTokenizeString(s)) {
    let start = a;
    for (let i = a + 1; i <= b; i++) {
      if (i === b || cps[i] !== cps[i - 1] + 1) { out.push([cps[start], cps[i - 1]]); start = i; }
    }
  }
  return out;
}
const put = (kind, name, r) => { for (const [a, b] of r) console.log(`${kind} ${name} ${hex(a)}..${hex(b)}`); };

console.log(`# Unicode 16 as the Oniguruma of Hugging Face tokenizers 0.23.2 shows it from outside.
# gc NAME FIRST..LAST      \\p{NAME}, general category (surrogates and unassigned are not asked)
# script NAME FIRST..LAST  \\p{NAME}, script
# prop NAME FIRST..LAST    \\p{NAME}, where it does not follow from the categories
# fold CP CP...            the single characters that (?i:CP) matches, each such set once
# multi CP CP...           (?i:FIRST) also matches the other characters in a row
# hf N FIRST..LAST         UnicodeScripts (an old table): characters with the same N do not cut`);
for (const n of "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co".split(" ")) put("gc", n, ranges(`\\p{${n}}`, all, allText));
const scripts = process.argv[2].split(",");
for (const n of scripts) put("script", n, ranges(`\\p{${n}}`, assigned, assignedText));
for (const n of ["Alphabetic", "Lowercase", "Uppercase", "Emoji", "Extended_Pictographic", "Ideographic"]) put("prop", n, ranges(`\\p{${n}}`, all, allText));

const cased = new Set();
for (const n of ["Changes_When_Casefolded", "Changes_When_Casemapped", "Cased"]) for (const [a, b] of ranges(`\\p{${n}}`, all, allText)) for (let c = a; c <= b; c++) cased.add(c);
const list = [...cased].sort((a, b) => a - b), sample = list.map((c) => str(c)).join("\n");
const seen = new Set(), multi = new Map();
for (const c of list) {
  const got = find(`(?i:\\x{${hex(c)}})`).preTokenizeString(sample).map((x) => x[0]);
  const cps = got.map((x) => x.codePointAt(0));
  if (cps.length > 1 && !seen.has(c)) {
    console.log(`fold ${cps.map(hex).join(" ")}`);
    cps.forEach((x) => seen.add(x));
  }
  for (const f of [str(c).toUpperCase().toLowerCase(), str(c).toLowerCase(), str(c).toUpperCase()]) {
    if ([...f].length < 2) continue;
    const m = find(`(?i:\\x{${hex(c)}})`).preTokenizeString(f);
    if (m.length === 1 && m[0][0] === f && !multi.has(c)) multi.set(c, f);
  }
}
for (const [c, f] of multi) console.log(`multi ${[c, ...[...f].map((x) => x.codePointAt(0))].map(hex).join(" ")}`);

// UnicodeScripts.
const us = pre({ type: "UnicodeScripts" });
const cuts = (a, b) => us.preTokenizeString(str(a) + str(b)).length === 2;
const reps = [0x61, 0x4e2d];
let run = null;
for (const c of all) {
  let k = -1;
  if (run && run[1] === c - 1 && !cuts(run[1], c) && !(cuts(0x61, c) === false && run[2] !== 0) && !(cuts(0x4e2d, c) === false && run[2] !== 1)) {
    k = run[2];
  } else if (cuts(0x61, c) || cuts(0x4e2d, c)) {
    k = reps.findIndex((r) => !cuts(r, c));
    if (k < 0) k = reps.push(c) - 1;
  }
  if (run && run[1] === c - 1 && run[2] === k) run[1] = c;
  else {
    if (run) console.log(`hf ${run[2]} ${hex(run[0])}..${hex(run[1])}`);
    run = k < 0 ? null : [c, c, k];
  }
}
if (run) console.log(`hf ${run[2]} ${hex(run[0])}..${hex(run[1])}`);
