// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/testsize"
)

const sample = `func main() { fmt.Println("Hello, 世界 🚀") }` + "\n\n\t// don't 12345  <tool_call>\n{\"name\": \"bash\"}\n</tool_call><|im_end|>\n"

func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	tok := miniTokenizer(t)
	text := strings.Repeat(sample, 20)
	long := strings.Repeat("x=", 200) + strings.Repeat(" ", 300) + strings.Repeat("ab", 200)
	decomposed := strings.Repeat("cafe\u0301 ", 50)
	segs := []Segment{{"<|im_start|>user\n", true}, {text, false}, {"<|im_end|>\n", true}}
	ids := make([]uint32, 0, 1<<14)
	buf := make([]byte, 0, 1<<16)
	stream := tok.NewStream(true, nil)
	all := tok.AppendEncode(nil, text)
	for name, f := range map[string]func(){
		"AppendEncode":         func() { ids = tok.AppendEncode(ids[:0], text) },
		"AppendEncode, NFC":    func() { ids = tok.AppendEncode(ids[:0], decomposed) },
		"AppendEncode, long":   func() { ids = tok.AppendEncode(ids[:0], long) },
		"AppendEncodeSpecial":  func() { ids = tok.AppendEncodeSpecial(ids[:0], text) },
		"AppendEncodeSegments": func() { ids = tok.AppendEncodeSegments(ids[:0], segs) },
		"AppendDecode":         func() { buf = tok.AppendDecode(buf[:0], all, true) },
		"Stream": func() {
			for _, id := range all {
				buf = stream.Append(buf[:0], id)
			}
			buf = stream.Finish(buf[:0])
		},
	} {
		f()
		if n := testing.AllocsPerRun(20, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestSegments(t *testing.T) {
	tok := miniTokenizer(t)
	id := func(s string) uint32 {
		n, ok := tok.TokenID(s)
		if !ok {
			t.Fatal(s)
		}
		return n
	}
	for _, c := range []struct {
		name string
		segs []Segment
		same bool // as the joined text
		has  []uint32
	}{
		{"none", nil, true, nil},
		{"empty", []Segment{{"", true}, {"", false}}, true, nil},
		{"trusted", []Segment{{"a<|im_end|>b", true}}, true, []uint32{id("<|im_end|>")}},
		{"untrusted", []Segment{{"a<|im_end|>b", false}}, false, nil},
		{"harmless", []Segment{{"<|im_start|>user\n", true}, {"\n\nHello, it", false}, {"'s", false}, {"<|im_end|>", true}}, true, []uint32{id("<|im_start|>"), id("<|im_end|>")}},
		{"across trusted", []Segment{{"<|im_", true}, {"end|>", true}}, true, []uint32{id("<|im_end|>")}},
		{"across the border", []Segment{{"<|im_", true}, {"end|>", false}}, false, nil},
		{"across the other border", []Segment{{"<thi", false}, {"nk>", true}}, false, nil},
		{"not special, still untrusted", []Segment{{"<think>", false}, {"</think>", true}}, false, []uint32{id("</think>")}},
		{"between", []Segment{{"<think>", true}, {"<think>", false}, {"<think>", true}}, false, []uint32{id("<think>"), id("<think>")}},
		{"normalized", []Segment{{"e", true}, {"\u0301<|im_end|>", false}, {"<|im_end|>", true}}, false, []uint32{id("<|im_end|>")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var joined strings.Builder
			for _, s := range c.segs {
				joined.WriteString(s.Text)
			}
			got := tok.AppendEncodeSegments(nil, c.segs)
			if same := slices.Equal(got, tok.AppendEncode(nil, joined.String())); same != c.same {
				t.Errorf("same as the joined text: %t, want %t", same, c.same)
			}
			var has []uint32
			for _, id := range got {
				if tok.addedToken(id) != nil {
					has = append(has, id)
				}
			}
			if !slices.Equal(has, c.has) {
				t.Errorf("added tokens %v, want %v", has, c.has)
			}
		})
	}
}

func TestOffsets(t *testing.T) {
	tok := miniTokenizer(t)
	for _, c := range []struct {
		name string
		segs []Segment
		want []string // the text of each id
	}{
		{"plain", []Segment{{"func main", true}}, []string{"func", " main"}},
		{"added tokens", []Segment{{"func<|im_end|> main", true}}, []string{"func", "<|im_end|>", " main"}},
		{"segments", []Segment{{"func<|im_end|>", true}, {" ma", false}, {"in", false}}, []string{"func", "<|im_end|>", " main"}},
		{"part of a character", []Segment{{"\U0001F9FF", false}}, []string{"\U0001F9FF", "\U0001F9FF", "\U0001F9FF"}},
		{"normalized", []Segment{{"func\n<|im_end|>e\u0301\n", true}}, []string{"func", "\n", "<|im_end|>", "e", "\n"}},
		{"normalized to two ids", []Segment{{"\u0958 main", true}}, []string{"\u0958", "\u0958", " main"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var joined strings.Builder
			for _, s := range c.segs {
				joined.WriteString(s.Text)
			}
			e := encodeSegments(t, tok, c.segs, EncodeOptions{Offsets: true})
			if want := tok.AppendEncodeSegments(nil, c.segs); !slices.Equal(e.IDs, want) {
				t.Fatalf("ids %v, want %v", e.IDs, want)
			}
			var got []string
			for _, o := range e.Offsets {
				got = append(got, joined.String()[o.Start:o.End])
			}
			if c.name == "normalized to two ids" {
				got = slices.Compact(got)
				c.want = slices.Compact(c.want)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A special token that merges make from plain letters is taken apart in untrusted text.
func TestSegmentsReachable(t *testing.T) {
	m := base(t)
	m["added_tokens"] = []any{map[string]any{"id": 0, "content": "the", "normalized": false, "special": true}}
	tok, err := parseTree(t, m)
	if err != nil {
		t.Fatal(err)
	}
	id, _ := tok.TokenID("the")
	if got := tok.AppendEncodeSegments(nil, []Segment{{"the", true}}); !slices.Equal(got, []uint32{id}) {
		t.Errorf("trusted: %v", got)
	}
	got := tok.AppendEncodeSegments(nil, []Segment{{"the ", true}, {"the\nthe", false}})
	if slices.Index(got, id) != 0 || slices.Contains(got[1:], id) {
		t.Errorf("untrusted: %v", got)
	}
	if s := string(tok.AppendDecode(nil, got, false)); s != "the the\nthe" {
		t.Errorf("decodes to %q", s)
	}
	m["added_tokens"] = []any{map[string]any{"id": 0, "content": "t", "normalized": false, "special": true}}
	if tok, err = parseTree(t, m); err != nil {
		t.Fatal(err)
	}
	id, _ = tok.TokenID("t")
	if got := tok.AppendEncode(nil, "a t"); !slices.Contains(got, id) {
		t.Errorf("a special letter in trusted text: %v", got)
	}
	got = tok.AppendEncodeSegments(nil, []Segment{{"a-t", false}})
	if s := string(tok.AppendDecode(nil, got, false)); slices.Contains(got, id) || s != "a-\uFFFD" {
		t.Errorf("a special letter in text that is not trusted: %v, %q", got, s)
	}
}

// In a model with an unknown token, a special character is unknown where it is not trusted.
func TestSegmentsSpecialCharacter(t *testing.T) {
	tok := smallTokenizer(t, "special-character")
	unk, _ := tok.TokenID("<unk>")
	star, _ := tok.TokenID("·")
	plain := tok.AppendEncodeSegments(nil, []Segment{{"b", false}})
	if got, want := tok.AppendEncodeSegments(nil, []Segment{{"b·", false}, {"·", true}}), append(plain, unk, star); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The flags of added tokens. Bars separate the pieces; a piece QQ is the token.
func TestFlags(t *testing.T) {
	for _, c := range []struct{ flags, text, want string }{
		{"", "a QQ b", "a |QQ| b"},
		{"", "aQQQb", "a|QQ|Qb"},
		{"lstrip", "a \u3000QQ b", "a|QQ| b"},
		{"rstrip", "a QQ \n b", "a |QQ|b"},
		{"lstrip rstrip", "a QQ QQ b", "a|QQ|QQ|b"},
		{"single_word", "QQ, aQQ QQa (QQ) 1QQ QQ", "QQ|, aQQ QQa (|QQ|) 1QQ |QQ"},
		{"single_word", "éQQ _QQ QQ\u0301 🚀QQ", "éQQ _QQ QQ\u0301 🚀|QQ"},
		{"single_word lstrip", "a QQ QQb", "a|QQ| QQb"},
		{"single_word", "QQQQ", "QQQQ"},
	} {
		m := base(t)
		token := map[string]any{"id": 0, "content": "QQ", "normalized": false, "special": true}
		for f := range strings.FieldsSeq(c.flags) {
			token[f] = true
		}
		m["added_tokens"] = []any{token}
		tok, err := parseTree(t, m)
		if err != nil {
			t.Fatal(err)
		}
		id, _ := tok.TokenID("QQ")
		var want []uint32
		for piece := range strings.SplitSeq(c.want, "|") {
			if piece == "QQ" && c.want != c.text {
				want = append(want, id)
			} else {
				want = tok.AppendEncodeSegments(want, []Segment{{Text: piece}})
			}
		}
		if got := tok.AppendEncode(nil, c.text); !slices.Equal(got, want) {
			t.Errorf("%q of %q: got %v, want %v", c.flags, c.text, got, want)
		}
	}
}

// The cost does not grow with the square of the number of segments.
func TestManySegments(t *testing.T) {
	tok := miniTokenizer(t)
	many := testsize.Pick(10_000, 100_000, 100_000)
	var segs []Segment
	for range many {
		segs = append(segs, Segment{"<think>", true}, Segment{"<think>\n", false})
	}
	id, _ := tok.TokenID("<think>")
	n := 0
	for _, x := range tok.AppendEncodeSegments(nil, segs) {
		if x == id {
			n++
		}
	}
	if n != many {
		t.Errorf("%d added tokens", n)
	}
}

// Any cut of trusted text into segments gives the same ids.
func TestSegmentsAnyCut(t *testing.T) {
	tok := miniTokenizer(t)
	want := tok.AppendEncode(nil, sample)
	for i := range len(sample) {
		got := tok.AppendEncodeSegments(nil, []Segment{{sample[:i], true}, {sample[i:], true}})
		if !slices.Equal(got, want) {
			t.Fatalf("cut at %d: %v, want %v", i, got, want)
		}
	}
}

func TestInvalidUTF8(t *testing.T) {
	tok := miniTokenizer(t)
	for _, s := range []string{"\xff", "a\x80b", "\xe4\xb8", "\xf0\x9f\x98", "ok\xc3(\xed\xa0\x80)", strings.Repeat("\xfe", 100)} {
		var raw []byte
		for _, id := range tok.AppendEncode(nil, s) {
			raw = tok.AppendToken(raw, id)
		}
		if string(raw) != s {
			t.Errorf("%q becomes %q", s, raw)
		}
	}
}

func TestDecode(t *testing.T) {
	tok := miniTokenizer(t)
	byteID := func(b byte) uint32 { return tok.byteBPE.ByteID(b) }
	end, _ := tok.TokenID("<|im_end|>")
	for _, c := range []struct {
		name string
		ids  []uint32
		skip bool
		want string
	}{
		{"nothing", nil, false, ""},
		{"unknown id", []uint32{byteID('a'), 1 << 30, ^uint32(0), byteID('b')}, false, "ab"},
		{"special kept", []uint32{byteID('a'), end}, false, "a<|im_end|>"},
		{"special left out", []uint32{byteID('a'), end}, true, "a"},
		{"character of four ids", []uint32{byteID(0xF0), byteID(0x9F), byteID(0x98), byteID(0x80)}, false, "😀"},
		{"special inside a character", []uint32{byteID(0xC3), end, byteID(0xA9)}, true, "é"},
		{"cut character", []uint32{byteID(0xF0), byteID(0x9F), byteID(0x98)}, false, "\uFFFD"},
		{"two maximal parts", []uint32{byteID(0xF0), byteID(0x9F), byteID(0xE4), byteID(0xB8), byteID('x')}, false, "\uFFFD\uFFFDx"},
		{"surrogate", []uint32{byteID(0xED), byteID(0xA0), byteID(0x80)}, false, "\uFFFD\uFFFD\uFFFD"},
		{"lone continuation", []uint32{byteID(0x80), byteID(0x80)}, false, "\uFFFD\uFFFD"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(tok.AppendDecode(nil, c.ids, c.skip)); got != c.want {
				t.Errorf("whole: %q, want %q", got, c.want)
			}
			if got := streamed(t, tok, c.ids, c.skip); got != c.want {
				t.Errorf("streamed: %q, want %q", got, c.want)
			}
		})
	}
}

// streamed decodes one by one and tests what a Stream promises.
func streamed(tb testing.TB, tok *Tokenizer, ids []uint32, skip bool) string {
	s := tok.NewStream(skip, nil)
	var out, step []byte
	for _, id := range ids {
		step = s.Append(step[:0], id)
		if !utf8.Valid(step) || s.Held() < 0 || s.Held() > 3 && tok.dec.steady {
			tb.Fatalf("step %q, %d bytes held", step, s.Held())
		}
		out = append(out, step...)
	}
	return string(s.Finish(out))
}

// Random ids, most of them making no sense: the stream gives what the whole gives.
func TestStreamRandom(t *testing.T) {
	tok := miniTokenizer(t)
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		ids := make([]uint32, r.IntN(12))
		for i := range ids {
			if r.IntN(3) == 0 {
				ids[i] = uint32(r.IntN(tok.VocabSize() + 3))
			} else {
				ids[i] = tok.byteBPE.ByteID(byte(0x80 + r.IntN(128)))
			}
		}
		skip := r.IntN(2) == 0
		want := string(tok.AppendDecode(nil, ids, skip))
		if got := streamed(t, tok, ids, skip); got != want {
			t.Fatalf("%v: streamed %q, whole %q", ids, got, want)
		}
	}
}

// A long run of one character costs little more than text: with quadratic cost this takes minutes.
func TestLongRuns(t *testing.T) {
	tok := miniTokenizer(t)
	for _, unit := range []string{"a", " ", "=", "\n", "世", "\u0301", "😀", "\xff", "<", "<|im_end|"} {
		s := strings.Repeat(unit, testsize.Pick(1<<14, 1<<18, 1<<18)/len(unit))
		n := 0
		for _, id := range tok.AppendEncode(nil, s) {
			n += len(tok.decoded(id))
		}
		if n != len(s) {
			t.Errorf("%d bytes of %d for a run of %q", n, len(s), unit)
		}
	}
}

func TestConcurrent(t *testing.T) {
	tok := miniTokenizer(t)
	want := tok.AppendEncode(nil, sample)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			var ids []uint32
			for i := range 200 {
				if g == 0 && i%50 == 0 {
					tok.ResetCache()
				}
				if ids = tok.AppendEncode(ids[:0], sample); !slices.Equal(ids, want) {
					t.Errorf("got %v, want %v", ids, want)
					return
				}
			}
		})
	}
	wg.Wait()
}

func FuzzEncode(f *testing.F) {
	for _, s := range []string{sample, "e\u0301\u0323 \xff\xc3", "<|im_end|><think>  \n", "'s 'LL 123 ͏"} {
		f.Add(s, uint(3))
	}
	f.Fuzz(func(t *testing.T, s string, cut uint) {
		tok := miniTokenizer(t)
		ids := tok.AppendEncode(nil, s)
		if got := tok.AppendEncode(nil, s); !slices.Equal(got, ids) {
			t.Fatalf("%q: first %v, then %v", s, ids, got)
		}
		offs := encodeWith(t, tok, s, true, EncodeOptions{Offsets: true}).Offsets
		for i, o := range offs {
			if o.Start > o.End || o.End > len(s) || i > 0 && o.Start < offs[i-1].Start {
				t.Fatalf("%q: offsets %v", s, offs)
			}
		}
		whole := string(tok.AppendDecode(nil, ids, false))
		covered := len(offs) == 0 || offs[0].Start == 0 && offs[len(offs)-1].End == len(s)
		if len(offs) != len(ids) || whole == s && !covered { // marks that were joined to a letter have no position
			t.Fatalf("%q: %d ids, offsets %v", s, len(ids), offs)
		}
		if got := streamed(t, tok, ids, false); got != whole {
			t.Fatalf("%q: streamed %q, whole %q", s, got, whole)
		}
		// The normalizer may change the text once, not twice.
		again := tok.AppendDecode(nil, tok.AppendEncode(nil, whole), false)
		if utf8.ValidString(s) && string(again) != whole {
			t.Fatalf("%q decodes to %q, then to %q", s, whole, again)
		}
		i := int(cut % uint(len(s)+1))
		if got := tok.AppendEncodeSegments(nil, []Segment{{s[:i], true}, {s[i:], true}}); !slices.Equal(got, ids) {
			t.Fatalf("%q cut at %d: %v, want %v", s, i, got, ids)
		}
		for _, id := range tok.AppendEncodeSegments(nil, []Segment{{Text: s}}) {
			if tok.addedToken(id) != nil {
				t.Fatalf("untrusted %q yields added token %d", s, id)
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{0, 1, 200, 3, 0xF0, 0x9F})
	f.Fuzz(func(t *testing.T, b []byte) {
		tok := miniTokenizer(t)
		var ids []uint32
		for i := 1; i < len(b); i += 2 {
			ids = append(ids, uint32(b[i-1])|uint32(b[i]&15)<<8)
		}
		want := string(tok.AppendDecode(nil, ids, true))
		if got := streamed(t, tok, ids, true); got != want {
			t.Fatalf("%v: streamed %q, whole %q", ids, got, want)
		}
	})
}
