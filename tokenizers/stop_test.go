// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func stopsOf(tb testing.TB, opt StopOptions) *Stops {
	tb.Helper()
	s, err := NewStops(&opt)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// slowStop is the obvious search: after each byte, the longest string that ends there.
func slowStop(text string, opt StopOptions) (out, stop string, end int) {
	for i := 1; i <= len(text); i++ {
		best, hidden := "", false
		for k, list := range [][]string{opt.Hidden, opt.Visible} {
			for _, x := range list {
				if strings.HasSuffix(text[:i], x) && len(x) > len(best) {
					best, hidden = x, k == 0
				}
			}
		}
		if best != "" {
			if hidden {
				return text[:i-len(best)], best, i
			}
			return text[:i], best, i
		}
	}
	return text, "", len(text)
}

// slowHold is the longest end of text that is a proper beginning of a hidden string.
func slowHold(text string, hidden []string) int {
	best := 0
	for _, x := range hidden {
		for k := 1; k < len(x); k++ {
			if strings.HasSuffix(text, x[:k]) {
				best = max(best, k)
			}
		}
	}
	return best
}

func TestStopText(t *testing.T) {
	for _, c := range []struct {
		name            string
		hidden, visible string // separated by spaces
		text, want      string
		stop            string
	}{
		{"none", "", "", "hello", "hello", ""},
		{"not found", "END", "", "hello EN", "hello EN", ""},
		{"in the middle", "END", "", "one END two", "one ", "END"},
		{"visible", "", "END", "one END two", "one END", "END"},
		{"first end counts", "abcd bc", "", "xabcd", "xa", "bc"},
		{"longest of one end", "c abc bc", "", "xabc", "x", "abc"},
		{"visible inside hidden", "abcd", "bc", "xabcd", "xabc", "bc"},
		{"hidden wins", "END", "END", "one END", "one ", "END"},
		{"overlapping beginnings", "aab", "", "aaab", "a", "aab"},
		{"not ASCII", "世界", "", "世世界 x", "世", "世界"},
		{"whole text", "a", "", "a", "", "a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := stopsOf(t, StopOptions{Hidden: strings.Fields(c.hidden), Visible: strings.Fields(c.visible)})
			m := s.NewText()
			for i := range len(c.text) + 1 {
				m.Reset()
				out := m.Append(nil, c.text[:i])
				out = m.Finish(m.Append(out, c.text[i:]))
				r, stopped := m.Stopped()
				if string(out) != c.want || r.Text != c.stop || stopped != (c.stop != "") {
					t.Errorf("cut at %d: %q, %+v, want %q, %q", i, out, r, c.want, c.stop)
				}
			}
		})
	}
}

// Any cut into pieces gives what the obvious search gives, and never holds more than it must.
func TestStopRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	word := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "aab"[r.IntN(3)]
		}
		return string(b)
	}
	for range 5000 {
		var opt StopOptions
		for range r.IntN(4) {
			opt.Hidden = append(opt.Hidden, word(1+r.IntN(6)))
		}
		for range r.IntN(3) {
			opt.Visible = append(opt.Visible, word(2+r.IntN(6)))
		}
		text := word(r.IntN(30))
		m := stopsOf(t, opt).NewText()
		want, stop, end := slowStop(text, opt)
		var out []byte
		for at := 0; at < len(text); {
			n := 1 + r.IntN(len(text)-at)
			out = m.Append(out, text[at:at+n])
			at += n
			held := 0
			if at < end || stop == "" {
				held = slowHold(text[:at], opt.Hidden)
				if string(out) != text[:at-held] {
					t.Fatalf("%+v: %q of %q, to hold %d", opt, out, text[:at], held)
				}
			}
			if m.Held() != held {
				t.Fatalf("%+v: holds %d after %q, want %d", opt, m.Held(), text[:at], held)
			}
		}
		out = m.Finish(out)
		if why, stopped := m.Stopped(); string(out) != want || why.Text != stop || stopped != (stop != "") || m.Ignored() != len(text)-end {
			t.Fatalf("%+v on %q: %q, %+v, ignored %d; want %q, %q", opt, text, out, why, m.Ignored(), want, stop)
		}
	}
}

func TestStreamStops(t *testing.T) {
	tok := miniTokenizer(t)
	end, _ := tok.TokenID("<|im_end|>")
	think, _ := tok.TokenID("<think>")
	ids := tok.AppendEncode(nil, "Hello, world. naïve 🚀")
	n := len(ids)
	tail := tok.AppendEncode(nil, " more")
	for _, c := range []struct {
		name    string
		opt     StopOptions
		ids     []uint32
		want    string
		stop    StopReason
		stopped bool
		ignored int
	}{
		{"nothing", StopOptions{}, ids, "Hello, world. naïve 🚀", StopReason{}, false, 0},
		{"hidden id", StopOptions{HiddenIDs: []uint32{end}}, append(append(ids[:n:n], end), tail...), "Hello, world. naïve 🚀", StopReason{ID: end, Hidden: true}, true, len(tail)},
		{"visible id", StopOptions{VisibleIDs: []uint32{think}}, append(append(ids[:n:n], think), tail...), "Hello, world. naïve 🚀<think>", StopReason{ID: think}, true, len(tail)},
		{"flushed by an id", StopOptions{Hidden: []string{"🚀!"}, HiddenIDs: []uint32{end}}, append(ids[:n:n], end), "Hello, world. naïve 🚀", StopReason{ID: end, Hidden: true}, true, 0},
		{"half a character", StopOptions{HiddenIDs: []uint32{end}}, append(ids[:n-1:n-1], end), "Hello, world. naïve \uFFFD", StopReason{ID: end, Hidden: true}, true, 0},
		{"string", StopOptions{Hidden: []string{"ld. na"}}, ids, "Hello, wor", StopReason{Text: "ld. na", Hidden: true}, true, -1},
		{"min tokens, id", StopOptions{HiddenIDs: []uint32{end}, MinTokens: 2}, []uint32{end, end, end}, "", StopReason{ID: end, Hidden: true}, true, 1},
		{"min tokens, string", StopOptions{Hidden: []string{"x"}, MinTokens: 2}, []uint32{tok.byteBPE.ByteID('x'), tok.byteBPE.ByteID('x'), tok.byteBPE.ByteID('x')}, "xx", StopReason{Text: "x", Hidden: true, ID: tok.byteBPE.ByteID('x')}, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := tok.NewStream(true, stopsOf(t, c.opt))
			for range 2 { // also after Reset
				var out []byte
				for _, id := range c.ids {
					out = s.Append(out, id)
				}
				out = s.Finish(out)
				why, stopped := s.Stopped()
				if c.ignored < 0 { // the id that completes the string is the tokenizer's business
					c.stop.ID, c.ignored = why.ID, s.Ignored()
				}
				if string(out) != c.want || why != c.stop || stopped != c.stopped || s.Ignored() != c.ignored || s.Held() != 0 {
					t.Errorf("%q, %+v %t, %d ignored, %d held", out, why, stopped, s.Ignored(), s.Held())
				}
				s.Reset()
			}
		})
	}
}

func TestStopLimits(t *testing.T) {
	for _, c := range []struct {
		opt  StopOptions
		want string
	}{
		{StopOptions{Hidden: []string{""}}, "tokenizers: a stop string is empty"},
		{StopOptions{Visible: []string{"\xff"}}, `tokenizers: stop string "\xff" is not UTF-8`},
		{StopOptions{Hidden: []string{strings.Repeat("a", maxStopBytes+1)}}, "tokenizers: stop strings exceed the limit of 4096 bytes"},
		{StopOptions{Hidden: make([]string, maxStopStrings+1)}, "tokenizers: 257 stop strings exceed the limit of 256"},
	} {
		if _, err := NewStops(&c.opt); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

func TestStopAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	tok := miniTokenizer(t)
	ids := tok.AppendEncode(nil, strings.Repeat(sample, 5))
	s := tok.NewStream(true, stopsOf(t, StopOptions{Hidden: []string{"\n\nnever", "Hello!"}, HiddenIDs: []uint32{1 << 30}}))
	out := make([]byte, 0, 1<<12)
	f := func() {
		for _, id := range ids {
			out = s.Append(out[:0], id)
		}
		out = s.Finish(out[:0])
		s.Reset()
	}
	f()
	if n := testing.AllocsPerRun(20, f); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzStop(f *testing.F) {
	f.Add("one END two", "END", "two", uint8(3))
	f.Fuzz(func(t *testing.T, text, hidden, visible string, step uint8) {
		opt := StopOptions{Hidden: strings.Fields(hidden), Visible: strings.Fields(visible)}
		s, err := NewStops(&opt)
		if err != nil {
			return
		}
		m := s.NewText()
		var out []byte
		for at := 0; at < len(text); at += int(step) + 1 {
			out = m.Append(out, text[at:min(len(text), at+int(step)+1)])
		}
		want, stop, _ := slowStop(text, opt)
		if out = m.Finish(out); string(out) != want {
			t.Fatalf("%q, want %q at %q", out, want, stop)
		}
	})
}

func BenchmarkStreamStops(b *testing.B) {
	tok := miniTokenizer(b)
	ids := tok.AppendEncode(nil, strings.Repeat(sample, 50))
	for _, n := range []int{0, 1, 4} {
		b.Run(fmt.Sprintf("strings=%d", n), func(b *testing.B) {
			opt := StopOptions{HiddenIDs: []uint32{1 << 30}}
			opt.Hidden = []string{"</never>", "\n\nUser:", "###", "Observation:"}[:n]
			s := tok.NewStream(false, stopsOf(b, opt))
			var out []byte
			b.ReportAllocs()
			for b.Loop() {
				for _, id := range ids {
					out = s.Append(out[:0], id)
				}
				s.Reset()
			}
			b.ReportMetric(float64(len(ids))*float64(b.N)/b.Elapsed().Seconds(), "tok/s")
		})
	}
}

func ExampleStream_stops() {
	tok, err := miniOnce()
	if err != nil {
		panic(err)
	}
	stops, err := NewStops(&StopOptions{Hidden: []string{"\nUser:"}, HiddenIDs: tok.EOS()})
	if err != nil {
		panic(err)
	}
	s := tok.NewStream(true, stops)
	var out []byte
	for _, id := range tok.AppendEncode(nil, "All tests pass.\nUser: thanks") {
		if out = s.Append(out, id); s.Ignored() > 0 {
			break
		}
	}
	why, _ := s.Stopped()
	fmt.Printf("%q, stopped by %q\n", s.Finish(out), why.Text)
	// Output: "All tests pass.", stopped by "\nUser:"
}
