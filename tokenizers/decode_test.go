// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A run of byte tokens waits for the token that ends it: only then is it known to be text.
func TestStreamByteFallback(t *testing.T) {
	tok := smallTokenizer(t, "spm-prepend")
	id := func(s string) uint32 {
		t.Helper()
		n, ok := tok.TokenID(s)
		if !ok {
			t.Fatalf("no token %q", s)
		}
		return n
	}
	type step struct {
		token, out string
		held       int
	}
	for name, steps := range map[string][]step{
		"text":        {{"▁a", "a", 0}, {"<0xC3>", "", 1}, {"<0xA9>", "", 2}, {"b", "éb", 0}},
		"no text":     {{"a", "a", 0}, {"<0x41>", "", 1}, {"<0xFF>", "", 2}, {"b", "\uFFFD\uFFFDb", 0}},
		"at the end":  {{"<0xE4>", "", 1}, {"<0xBD>", "", 2}, {"<0xA0>", "", 3}, {"", "你", 0}},
		"cut":         {{"<0xE4>", "", 1}, {"<0xBD>", "", 2}, {"", "\uFFFD\uFFFD", 0}},
		"first space": {{"▁▁", " ", 0}, {"▁", " ", 0}, {"a", "a", 0}},
		"only space":  {{"▁", "", 0}, {"▁a", " a", 0}},
	} {
		s := tok.NewStream(false, nil)
		var ids []uint32
		var whole []byte
		for _, st := range steps {
			var got []byte
			if st.token == "" {
				got = s.Finish(nil)
			} else {
				ids = append(ids, id(st.token))
				got = s.Append(nil, id(st.token))
			}
			if string(got) != st.out || s.Held() != st.held {
				t.Errorf("%s: %s gives %q and holds %d, want %q and %d", name, st.token, got, s.Held(), st.out, st.held)
			}
			whole = append(whole, got...)
		}
		whole = s.Finish(whole)
		if got := tok.AppendDecode(nil, ids, false); string(got) != string(whole) {
			t.Errorf("%s: whole %q, streamed %q", name, got, whole)
		}
	}
}

// Streams of all kinds of tokenizers add up to the whole, for any ids, also when they are used again.
func TestStreamKinds(t *testing.T) {
	for _, kind := range smallKinds(t) {
		tok := smallTokenizer(t, kind)
		r := rand.New(rand.NewPCG(7, 7))
		s := tok.NewStream(true, nil)
		for range 2000 {
			ids := make([]uint32, r.IntN(12))
			for i := range ids {
				ids[i] = uint32(r.IntN(tok.VocabSize() + 5))
				if r.IntN(3) == 0 {
					ids[i] = uint32(r.IntN(300)) // bytes, in some of them
				}
			}
			var got []byte
			for _, id := range ids {
				got = s.Append(got, id)
			}
			got = s.Finish(got)
			if want := tok.AppendDecode(nil, ids, true); string(got) != string(want) {
				t.Fatalf("%s: %v streamed is %q, whole %q", kind, ids, got, want)
			}
		}
	}
}

// The decoders that no small tokenizer has.
func TestDecoders(t *testing.T) {
	wordlevel := func(decoder any, tokens ...string) (*Tokenizer, []uint32) {
		t.Helper()
		vocab := object{}
		var ids []uint32
		for i, s := range tokens {
			vocab[s] = i
			ids = append(ids, uint32(i))
		}
		tok, err := parseTree(t, object{"decoder": decoder, "model": object{"type": "WordLevel", "vocab": vocab, "unk_token": tokens[0]}})
		if err != nil {
			t.Fatal(err)
		}
		return tok, ids
	}
	strip := object{"type": "Sequence", "decoders": []any{object{"type": "Fuse"}, object{"type": "Strip", "content": "x", "start": 2, "stop": 3}}}
	for name, c := range map[string]struct {
		decoder any
		tokens  []string
		want    string // as the reference has it
	}{
		"none":          {nil, []string{"a", "b", "##c"}, "a b ##c"},
		"suffix":        {object{"type": "BPEDecoder", "suffix": "</w>"}, []string{"a</w>", "b", "c</w>"}, "a bc"},
		"suffix inside": {object{"type": "BPEDecoder", "suffix": "</w>"}, []string{"a</w>b", "c"}, "a bc"},
		"strip both":    {strip, []string{"x", "xxa", "xx", "bx", "xxx"}, "xaxxbx"},
		"strip less":    {strip, []string{"xa", "bxx"}, "ab"},
		"strip each":    {object{"type": "Strip", "content": "x", "start": 1, "stop": 1}, []string{"xxax", "bx"}, "xab"},
		"replace":       {object{"type": "Replace", "pattern": object{"String": "a"}, "content": "bb"}, []string{"a", "cac"}, "bbcbbc"},
		"metaspace":     {object{"type": "Metaspace", "replacement": "_", "prepend_scheme": "never"}, []string{"_a", "b_c"}, " ab c"},
		"wordpiece":     {object{"type": "WordPiece", "prefix": "##", "cleanup": false}, []string{"##a", "b", "##c", "."}, "##a bc ."},
	} {
		tok, ids := wordlevel(c.decoder, c.tokens...)
		if got := string(tok.AppendDecode(nil, ids, false)); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
		if got := streamed(t, tok, ids, false); got != c.want {
			t.Errorf("%s: streamed %q, want %q", name, got, c.want)
		}
	}
}

// Decoding does not allocate when warm, with any decoder that works token by token.
func TestDecodeAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, kind := range smallKinds(t) {
		tok := smallTokenizer(t, kind)
		ids := tok.AppendEncode(nil, "Hello, world! It's the user's 北京 é 🙂 end.")
		ids = slices.Concat(ids, ids, ids)
		out := make([]byte, 0, 1<<12)
		s := tok.NewStream(true, nil)
		step := func() {
			for _, id := range ids {
				out = s.Append(out[:0], id)
			}
			out = s.Finish(out[:0])
		}
		step()
		rewrites := len(tok.dec.whole)+len(tok.dec.late) > 0 // steps after ByteFallback, Fuse or ByteLevel make strings
		if n := testing.AllocsPerRun(20, step); n != 0 && !rewrites {
			t.Errorf("%s: %v allocations", kind, n)
		}
		whole := func() { out = tok.AppendDecode(out[:0], ids, true) }
		whole()
		if n := testing.AllocsPerRun(20, whole); n != 0 && kind != "falcon-gaps" && !rewrites { // its ids are not UTF-8
			t.Errorf("%s: %v allocations to decode at once", kind, n)
		}
		enc := func() { ids = tok.AppendEncode(ids[:0], "Hello, world! It's the user's 北京 é 🙂 end.") }
		enc()
		if n := testing.AllocsPerRun(20, enc); n != 0 {
			t.Errorf("%s: %v allocations to encode", kind, n)
		}
	}
}
