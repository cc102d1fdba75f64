// SPDX-License-Identifier: Apache-2.0
//
// Prints added_ids.jsonl: what npm tokenizers 0.23.2 makes of odd lists of added tokens. Run it in a folder where that package
// is installed:
//
//	node added_ids.js ../mini/tokenizer.json > added_ids.jsonl
//
// A case may have "more", tokens that are added after loading, as transformers does with those of
// tokenizer_config.json.
const fs = require('fs');
const T = require(require.resolve('tokenizers', { paths: [process.cwd()] }));
const mini = fs.readFileSync(process.argv[2], 'utf8');
const N = Object.keys(JSON.parse(mini).model.vocab).length;
const tok = (content, id, flags = {}) =>
  Object.assign({ id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: false }, flags);
const S = { special: true };
const cases = {
  'a gap after the vocabulary': { added: [tok('<a>', N + 100), tok('<b>', N + 200)] },
  'ids of others': { added: [tok('<a>', 3), tok('<b>', 0)] },
  'the largest id': { added: [tok('<a>', 4294967295)] },
  'not in order': { added: [tok('<b>', N + 1), tok('<a>', N)] },
  'not in order, special ones between': { added: [tok('<b>', N + 2, S), tok('<a>', N), tok('<c>', N + 1, S)] },
  'in the vocabulary': { added: [tok('the', 7), tok('Ġthe', N + 3), tok('a', N), tok('<a>', N + 5)] },
  'empty': { added: [tok('', N), tok('<a>', N + 1)] },
  'one text begins another': { added: [tok('<a>', N), tok('<a>b', N + 1), tok('a>', N + 2)] },
  'a hole in the vocabulary': { vocab: { 'far away': N + 50 }, added: [tok('<a>', N), tok('<b>', N + 1, S)] },
  'a free id that the vocabulary has': { vocab: { far: N + 1 }, added: [tok('<a>', N), tok('<b>', N + 1)] },
  'beyond a hole, first': { vocab: { '<far>': N + 50 }, added: [tok('<far>', N + 50), tok('<a>', N), tok('<b>', N + 1)] },
  'beyond a hole, between': { vocab: { '<far>': N + 50 }, added: [tok('<a>', N), tok('<far>', N + 50), tok('<b>', N + 1)] },
  'beyond a hole, special': { vocab: { '<far>': N + 50 }, added: [tok('<a>', N), tok('<far>', N + 50, S), tok('<b>', N + 1), tok('<c>', N + 2, S)] },
  'twice, the same': { added: [tok('<a>', N), tok('<a>', N), tok('<b>', N + 1)] },
  'twice, then special': { added: [tok('<a>', N), tok('<a>', N + 1, S), tok('<b>', N + 2)] },
  'twice, special first': { added: [tok('<a>', N, S), tok('<a>', N + 1), tok('<b>', N + 2)] },
  'twice, then lstrip': { added: [tok('<a>', N), tok('<a>', N, { lstrip: true }), tok('<b>', N + 1)] },
  'twice, then normalized': { added: [tok('e\u0301x', N), tok('e\u0301x', N, { normalized: true }), tok('<b>', N + 1)] },
  'more: nothing new': { added: [tok('<a>', N), tok('<b>', N + 1, S)], more: [tok('<a>', N), tok('<b>', N + 1, S)] },
  'more: new ones': { added: [tok('<a>', N)], more: [tok('<b>', N + 7, S), tok('<c>', N + 9)] },
  'more: other flags': { added: [tok('<a>', N), tok('<b>', N + 1, S)], more: [tok('<a>', N, { special: true, rstrip: true }), tok('<b>', N + 1)] },
  'more: in the vocabulary': { added: [tok('<a>', N)], more: [tok('the', 5, S), tok('<b>', N + 1)] },
  'more: beyond a hole': { vocab: { '<far>': N + 50 }, added: [tok('<a>', N)], more: [tok('<far>', N + 50), tok('<b>', N + 1)] },
  'more: after one beyond a hole': { vocab: { '<far>': N + 50 }, added: [tok('<far>', N + 50)], more: [tok('<b>', N + 1), tok('<c>', N + 2, S)] },
};
const texts = ['<a><b> <c> <far> the a far e\u0301x', 'x <a> y  <a>b ', 'the the', 'far away <far>', ' <b>  e\u0301x'];
(async () => {
  for (const [name, c] of Object.entries(cases)) {
    const m = JSON.parse(mini);
    m.added_tokens = c.added;
    Object.assign(m.model.vocab, c.vocab || {});
    const t = T.Tokenizer.fromString(JSON.stringify(m));
    if (c.more) t.addAddedTokens(c.more.map((a) => new T.AddedToken(a.content, a.special, { singleWord: a.single_word, leftStrip: a.lstrip, rightStrip: a.rstrip, normalized: a.normalized })));
    const out = { name, ...c, ids: {}, texts: [] };
    for (const a of c.added.concat(c.more || [])) out.ids[a.content] = t.tokenToId(a.content);
    for (const text of texts) {
      const ids = (await t.encode(text, null, { addSpecialTokens: false })).getIds();
      out.texts.push({ text, ids, dec: await t.decode(ids, false), skip: await t.decode(ids, true) });
    }
    console.log(JSON.stringify(out));
  }
})();
