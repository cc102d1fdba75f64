// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/cache"
	"github.com/weft-go/weft/tokenizers/mini"
)

// A sampler writes texts as ids that the tokenizer does not choose.
type sampler struct {
	tok    *tokenizers.Tokenizer
	rand   *rand.Rand
	added  map[uint32]bool
	byText map[string]uint32 // without added tokens
}

func newSampler(tok *tokenizers.Tokenizer, seed uint64) *sampler {
	s := &sampler{tok: tok, rand: rand.New(rand.NewPCG(seed, 1)), added: map[uint32]bool{}, byText: map[string]uint32{}}
	for _, a := range tok.AddedTokens() {
		s.added[a.ID] = true
	}
	for id := range uint32(tok.VocabSize()) {
		if text := tok.AppendToken(nil, id); len(text) > 0 && !s.added[id] {
			s.byText[string(text)] = id
		}
	}
	return s
}

// sample returns ids with the bytes of text.
func (s *sampler) sample(text string) (ids []uint32) {
	for text != "" {
		n := 1 + s.rand.IntN(min(len(text), 4))
		for s.byText[text[:n]] == 0 && n > 1 {
			n--
		}
		if id, ok := s.byText[text[:n]]; ok {
			ids = append(ids, id)
		}
		text = text[n:]
	}
	return ids
}

// spell returns the bytes of ids.
func (s *sampler) spell(ids []uint32) string {
	var text []byte
	for _, id := range ids {
		text = s.tok.AppendToken(text, id)
	}
	return string(text)
}

// places returns the added tokens among ids, with their offsets in the text.
func (s *sampler) places(ids []uint32) (list []string) {
	at := 0
	for _, id := range ids {
		if s.added[id] {
			list = append(list, fmt.Sprint(at, " ", id))
		}
		at += len(s.tok.AppendToken(nil, id))
	}
	return list
}

// TestSampled encodes conversations whose responses an engine has written as other ids than the tokenizer. The right ones are
// always used.
func TestSampled(t *testing.T) {
	tok, err := tokenizers.Load(mini.FS(), nil)
	if err != nil {
		t.Fatal(err)
	}
	used := encodeSampled(t, tok, "<|im_start|>", "<|im_end|>", "<think>", true)
	for _, kind := range []string{"right", "inserted", "removed", "cut", "trimmed"} {
		if used[kind] == 0 {
			t.Errorf("no response was %s", kind)
		}
	}
}

func TestSampledReferences(t *testing.T) {
	references(t, func(t *testing.T, tok *tokenizers.Tokenizer, _ []string) {
		r := rand.New(rand.NewPCG(3, 1))
		for range 4 {
			marks := markers(tok, r)
			mark := func() string { return marks[r.IntN(len(marks))] }
			encodeSampled(t, tok, mark(), mark(), mark(), false)
		}
	})
}

// encodeSampled plays conversations whose turns begin and end with trusted markers. Some of the engine's ids are wrong, and
// some texts change. The result always has the text and the added tokens of the tokenizer's ids, which callers without the
// prefix get. encodeSampled returns how often ids were used. If exact is set, right ids must be.
func encodeSampled(t *testing.T, tok *tokenizers.Tokenizer, start, end, other string, exact bool) map[string]int {
	s := newSampler(tok, 1)
	words := []string{"some", " words", "ing", "\n", "\n\n", " ", "é", "🙂", "你好", start, end, other, ".", "  x", "\ufffd", "e\u0301", "\xff"}
	changed := 0 // of the last words: those that the tokenizer changes
	text := func(n int) string {
		var b strings.Builder
		for range s.rand.IntN(n) {
			b.WriteString(words[s.rand.IntN(len(words)-2+changed)])
		}
		return b.String()
	}
	used := map[string]int{}
	conversations := 400
	if testing.Short() || !exact {
		conversations = 40
	}
	for range conversations {
		c := newCache(t, tok, &cache.Options{Spacing: 64})
		changed = max(0, s.rand.IntN(6)-3)
		user, reply := tokenizers.Segment{Text: end + "\n" + start + "user\n", Trusted: true}, tokenizers.Segment{Text: end + "\n" + start + "assistant\n" + other, Trusted: true}
		segs := []tokenizers.Segment{user, {Text: text(30)}, reply}
		ids, cuts, _ := c.AppendEncodeAfter(nil, nil, nil, 0, "", "", segs)
		for range 4 {
			said := text(40)
			sampled, kind := s.sample(said), "right"
			switch i := s.rand.IntN(len(sampled) + 1); s.rand.IntN(8) {
			case 0:
				sampled, kind = slices.Insert(sampled, i, uint32(s.rand.IntN(tok.VocabSize()+9))), "inserted"
			case 1:
				sampled, kind = tok.AppendEncode(nil, said), "trusted"
			case 2:
				sampled, kind = append(sampled[:i:i], sampled[min(i+1, len(sampled)):]...), "removed"
			case 3:
				sampled, kind = sampled[:i], "cut"
			case 4:
				sampled, kind = append(sampled, s.sample("\n\n")...), "trimmed"
			case 5:
				sampled, kind = append(sampled, s.sample(user.Text)...), "spelled"
			}
			last := len(segs)
			segs = append(segs[:last:last], tokenizers.Segment{Text: said}, user, tokenizers.Segment{Text: text(60)}, reply)
			switch i := s.rand.IntN(last); s.rand.IntN(10) {
			case 0:
				segs[i].Text, kind = "changed", "changed"
			case 1:
				segs[i].Trusted, kind = !segs[i].Trusted, "trust"
			}
			plain := tok.AppendEncodeSegments(nil, segs)
			more, next, skipped := c.AppendEncodeAfter(nil, nil, cuts, 0, "", "", segs)
			encoded := slices.Concat(ids[:skipped], more)
			from := 0
			if len(cuts) > 0 {
				from = cuts[len(cuts)-1].Tokens
			}
			got := encoded
			p, own, ok := c.Sampled(cuts, 0, "", []string{"", joined(segs)}[s.rand.IntN(2)], segs, slices.Concat(ids[from:], sampled), encoded[min(from, len(encoded)):])
			if ok {
				used[kind]++
				more, next, skipped = c.AppendEncodeAfter(nil, nil, append(slices.Clip(cuts), p), 0, "", "", segs)
				if skipped != p.Tokens || p.Tokens != from+len(own) {
					t.Fatalf("%d ids are left out, want %d: the %d of the prefix", skipped, from+len(own), p.Tokens)
				}
				got = slices.Concat(ids[:from], own, more)
			}
			if s.spell(got) != s.spell(plain) || string(tok.AppendDecode(nil, got, false)) != string(tok.AppendDecode(nil, plain, false)) {
				t.Fatalf("%s: text %q, want %q", kind, s.spell(got), s.spell(plain))
			}
			if !slices.Equal(s.places(got), s.places(plain)) {
				t.Fatalf("%s: added tokens %v, want %v", kind, s.places(got), s.places(plain))
			}
			if whole := slices.Concat(ids, sampled); exact && kind == "right" && changed == 0 && !slices.Equal(got[:len(whole)], whole) {
				t.Errorf("%s: %v, want %v", kind, got, whole)
			}
			if others, _ := c.AppendEncodePrefixes(nil, nil, "", segs); !slices.Equal(others, plain) {
				t.Fatal("another caller has the engine's ids")
			}
			ids, cuts = got, next
		}
	}
	t.Log(used)
	return used
}
