// SPDX-License-Identifier: Apache-2.0

package normal_test

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/normal"
	"github.com/weft-go/weft/tokenizers/internal/testsize"
)

// at is a matcher with the given matches.
type at [][2]int

func (a at) Find(_ string, from int) (start, end int, ok bool) {
	for _, m := range a {
		if m[0] >= from {
			return m[0], m[1], true
		}
	}
	return 0, 0, false
}

var (
	bert  = normal.Bert(true, true, true, true)
	small = precompiled(charsmap(smallRules))
)

func precompiled(charsmap []byte) normal.Step {
	s, _, err := normal.Precompiled(charsmap)
	if err != nil {
		panic(err)
	}
	return s
}

// Texts and origins (of each character, in bytes) were returned by Hugging Face tokenizers 0.23.2: the text by
// normalizeString, the origins as the offsets of a tokenizer that makes each character a token.
var reference = []struct {
	name     string
	step     normal.Step
	in, want string
	from     string
}{
	{"NFC/joined", normal.NFC(), "e\u0301a", "\u00e9a", "0-1 3-4"},
	{"NFC/reordered", normal.NFC(), "xa\u0301\u0323b", "x\u1ea1\u0301b", "0-1 1-2 4-6 6-7"},
	{"NFC/split and joined anew", normal.NFC(), "\u00e9\u0323!", "\u1eb9\u0301!", "0-2 2-4 4-5"},
	{"NFC/hangul", normal.NFC(), "\u1112\u1161\u11ab\uac00\u11a8", "\ud55c\uac01", "0-3 9-12"},
	{"NFC/excluded", normal.NFC(), "\u0958\u0301", "\u0915\u093c\u0301", "0-3 0-3 3-5"},
	{"NFC/newer than the tables", normal.NFC(), "a\u0898\u0323", "a\u0898\u0323", "0-1 1-4 4-6"},
	{"NFD/letter and marks", normal.NFD(), "\u00e9\u0323\u00e0", "e\u0323\u0301a\u0300", "0-2 2-4 2-4 4-6 4-6"},
	{"NFD/marks alone", normal.NFD(), "\u0301\u0323\u0f73\u0344", "\u0f71\u0f72\u0323\u0301\u0308\u0301", "0-2 0-2 2-4 4-7 7-9 7-9"},
	{"NFD/hangul", normal.NFD(), "\uac01!", "\u1100\u1161\u11a8!", "0-3 0-3 0-3 3-4"},
	{"NFKC/ligature and accent", normal.NFKC(), "\ufb01\u0301x", "f\u00edx", "0-3 3-5 5-6"},
	{"NFKC/fraction, width, space", normal.NFKC(), "\u00bd\uff21\uff9e\u00a0", "1\u20442A\u3099 ", "0-2 0-2 0-2 2-5 5-8 8-10"},
	{"NFKD/long s with dot", normal.NFKD(), "\u1e9b\u0323\u3392", "s\u0323\u0307MHz", "0-3 3-5 3-5 5-8 5-8 5-8"},
	{"Lowercase/no final sigma, two characters", normal.Lowercase(), "\u03a3\u03a3 \u0130\u1e9e\u01c5Z", "\u03c3\u03c3 i\u0307\u00df\u01c6z", "0-2 2-4 4-5 5-7 5-7 7-10 10-12 12-13"},
	{"StripAccents/marks of every kind", normal.StripAccents(), "\u00e9e\u0301\u0903\u20dd\u0898", "\u00e9e\u0898", "0-2 2-3 11-14"},
	{"Strip/both", normal.Strip(true, true), " \t\u00a0\u2028a b\u3000\u0085 ", "a b", "7-8 8-9 9-10"},
	{"Strip/left", normal.Strip(true, false), " a ", "a ", "1-2 2-3"},
	{"Strip/right", normal.Strip(false, true), " a\u00e9 ", " a\u00e9", "0-1 1-2 2-4"},
	{"Strip/all", normal.Strip(true, true), " \n", "", ""},
	{"Strip/no white space", normal.Strip(true, true), "\u200ba\ufeff", "\u200ba\ufeff", "0-3 3-4 4-7"},
	{"Prepend/text", normal.Prepend("\u2581a"), "\u00e9b", "\u2581a\u00e9b", "0-2 0-2 0-2 2-3"},
	{"Prepend/empty text", normal.Prepend("a"), "", "", ""},
	{"Prepend/nothing", normal.Prepend(""), "ab", "ab", "0-0 1-2"},
	{"Replace/longer", normal.Replace("ab", "xyz"), "abcab", "xyzcxyz", "1-2 1-2 1-2 2-3 4-5 4-5 4-5"},
	{"Replace/removed", normal.Replace(" ", ""), " a b", "ab", "1-2 3-4"},
	{"Replace/overlapping", normal.Replace("aa", "b"), "aaaaa", "bba", "1-2 3-4 4-5"},
	{"Replace/nothing", normal.Replace("", "-"), "a\u00e9", "-a-\u00e9-", "0-0 0-1 0-1 1-3 1-3"},
	{"Replace/nothing in nothing", normal.Replace("", "-"), "", "", ""},
	{"Replace/empty match at the start", normal.ReplaceMatches(at{{0, 0}}, "X"), "abc", "Xabc", "0-0 0-1 1-2 2-3"},
	{"Replace/empty match at the end", normal.ReplaceMatches(at{{3, 3}}, "X"), "abc", "abcX", "0-1 1-2 2-3 2-3"},
	{"Replace/empty match after a match", normal.ReplaceMatches(at{{0, 0}, {1, 3}, {3, 3}, {4, 4}}, "X"), "baac", "XbXcX", "0-0 0-1 2-3 3-4 3-4"},
	{"Nmt/controls", normal.Nmt(), "\x01a\x7f\tb\x0b\n\x00\u008f\u0085\u200b\u2581\ufffd\ufeff", "a b \x00\u0085    ", "1-2 3-4 4-5 6-7 7-8 10-12 12-15 15-18 18-21 21-24"},
	{"ByteLevel/bytes", normal.ByteLevel(), "a \u00e9\n\U0001f600", "a\u0120\u00c3\u00a9\u010a\u00f0\u0141\u013a\u0122", "0-1 1-2 2-4 2-4 4-5 5-9 5-9 5-9 5-9"},
	{"Bert/accents", bert, "H\u00e9llo E\u0301\u0323 \u0130", "hello e i", "0-1 1-3 3-4 4-5 5-6 6-7 7-8 12-13 13-15"},
	{"Bert/chinese", bert, "a\u4e2d\u6587b\uf900\u3042", "a \u4e2d  \u6587 b \u8c48 \u3042", "0-1 1-4 1-4 1-4 4-7 4-7 4-7 7-8 8-11 8-11 8-11 11-14"},
	{"Bert/controls", bert, "\x00a\x01\u200d\tb\u0085\u00a0\u2028\ufffdc\ufeff\x0b", "a b  c", "1-2 6-7 7-8 10-12 12-15 18-19"},
	{"Bert/hangul", bert, "\ud55c\uae00", "\u1112\u1161\u11ab\u1100\u1173\u11af", "0-3 0-3 0-3 3-6 3-6 3-6"},
	{"Bert/marks that stay, moved before ones that go", bert, "a\u0301\u302e\u0323b", "a\u302eb", "0-1 3-6 8-9"},
	{"Bert/control between marks", bert, "a\u302e\u200d\u0323\u302eb", "a\u302e\u302eb", "0-1 7-9 9-12 12-13"},
	{"Bert/cased", normal.Bert(true, true, false, false), "H\u00e9 E\u0301 \u0130", "H\u00e9 E\u0301 \u0130", "0-1 1-3 3-4 4-5 5-7 7-8 8-10"},
	{"Bert/lower case with accents", normal.Bert(true, true, false, true), "H\u00c9 E\u0301 \u0130", "h\u00e9 e\u0301 i\u0307", "0-1 1-3 3-4 4-5 5-7 7-8 8-10 8-10"},
	{"Bert/accents alone", normal.Bert(false, false, true, false), "\u00c9\t\u4e2d\u0915\u0941", "E\t\u4e2d\u0915", "0-2 2-3 3-6 6-9"},
	{"Precompiled/kept", small, "plain text \u4e2d", "plain text \u4e2d", "0-1 1-2 2-3 3-4 4-5 5-6 6-7 7-8 8-9 9-10 10-11 11-14"},
	{"Precompiled/rules", small, "a\tb\ufb01\u00bd\u2026e\u0301z", "a bfi1\u20442...\u00e9z", "0-1 1-2 2-3 3-6 3-6 6-8 6-8 6-8 8-11 8-11 8-11 11-12 14-15"},
	{"Precompiled/removed later", small, "a\u00adb\u200bc\x01", "abc", "0-1 3-4 7-8"},
	{"Precompiled/removed after an insertion", small, "\u2026\u00adb", "...b", "0-3 0-3 3-5 5-6"},
	{"Precompiled/removed at the start", small, "\u00ad\u00e9bc", "\u00e9bc", "0-2 2-4 4-5"},
	{"Precompiled/only removed", small, "\u00ad", "", ""},
	{"Precompiled/cluster of five bytes", small, "\ufb01\u0300x", "fix", "0-3 3-5 5-6"},
	{"Precompiled/cluster of six bytes", small, "\u304b\u3099x", "\u304b\u3099x", "0-3 3-6 6-7"},
	{"Precompiled/cluster by its first part", small, "\t\u0300\u00a9\u0301", " \u0300(c)", "0-1 1-3 3-5 5-7 5-7"},
	{"Precompiled/longer key", small, "a\u0300\u0301b", "2b", "0-1 5-6"},
	{"Precompiled/line end", small, "a\r\nb\rc", "a b c", "0-1 1-2 3-4 4-5 5-6"},
	{"Precompiled/characters do not make a key", small, "ab", "ab", "0-1 1-2"},
	{"Precompiled/pictographs joined", small, "\u00a9\u200d\u00a9\u0300", "(c)\u200d(c)\u0300", "0-2 0-2 0-2 2-5 5-7 5-7 5-7 7-9"},
	{"Precompiled/pictograph and joiner", small, "\u00a9\u200d!", "(c)!", "0-2 2-5 2-5 5-6"},
	{"Precompiled/consonants linked", small, "\u0915\u094d\u0915\u0300", "k\u094dk\u0300", "0-3 3-6 6-9 9-11"},
	{"Precompiled/consonants not linked", small, "\u0915\u200c\u0915\u0300", "k\u200ck", "0-3 3-6 6-9"},
	{"Precompiled/hangul", small, "\u1100\u1161\u11a8\u0300 \u11a8\u0300", "\u1100\u1161g\u0300 g", "0-3 3-6 6-9 9-11 11-12 12-15"},
	{"Precompiled/prepended mark", small, "\u0600a\u0600\n", "NN\n", "0-2 3-5 5-6"},
}

func TestReference(t *testing.T) {
	var b normal.Buffer
	for _, c := range reference {
		t.Run(c.name, func(t *testing.T) {
			check(t, c.step, c.in, c.want, c.from, &b)
		})
	}
}

// What the reference does not take: bytes that are not UTF-8.
func TestInvalid(t *testing.T) {
	var b normal.Buffer
	for _, c := range []struct {
		name     string
		step     normal.Step
		in, want string
		from     string
	}{
		{"NFC", normal.NFC(), "e\xff\u0301\xe4\xb8", "e\xff\u0301\xe4\xb8", "0-1 1-2 2-4 4-5 5-6"},
		{"NFD", normal.NFD(), "\u00e9\xff\u0323", "e\u0301\xff\u0323", "0-2 0-2 2-3 3-5"},
		{"Lowercase", normal.Lowercase(), "A\xffB", "a\xffb", "0-1 1-2 2-3"},
		{"StripAccents", normal.StripAccents(), "\u0301\xff\u0301", "\xff", "2-3"},
		{"Strip", normal.Strip(true, true), " \xff ", "\xff", "1-2"},
		{"Prepend", normal.Prepend("a"), "\xff\xfe", "a\xff\xfe", "0-1 0-1 1-2"},
		{"Replace", normal.Replace("a", "b"), "\xffa\xfe", "\xffb\xfe", "0-1 1-2 2-3"},
		{"Replace nothing", normal.Replace("", "-"), "\xffa", "-\xff-a-", "0-0 0-1 0-1 1-2 1-2"},
		{"Nmt", normal.Nmt(), "\ufffd\xff\x01\x8f", " \xff\x8f", "0-3 3-4 5-6"},
		{"ByteLevel", normal.ByteLevel(), "\xffa", "\u00ffa", "0-1 1-2"},
		{"Bert", bert, "A\ufffd\xffE\u0301\xe4\xb8\u302e\xff\u0327", "a\xffe\xe4\xb8\u302e\xff", "0-1 4-5 5-6 8-9 9-10 10-13 13-14"},
		{"Precompiled", small, "e\xff\u0301\t\xff\u0301\u00ad\xc2", "e\xff \xff\xc2", "0-1 1-2 4-5 5-6 10-11"},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, c.step, c.in, c.want, c.from, &b) })
	}
}

func check(t *testing.T, step normal.Step, in, want, from string, b *normal.Buffer) {
	t.Helper()
	steps := []normal.Step{step}
	if got := normal.Run(steps, normal.Text{B: []byte(in)}, b); string(got.B) != want || got.From != nil {
		t.Errorf("%+q -> %+q %v, want %+q", in, got.B, got.From, want)
	}
	got := normal.Run(steps, normal.Text{B: []byte(in), From: normal.Origins([]normal.Span{}, []byte(in))}, b)
	if string(got.B) != want || len(got.From) != len(got.B) || got.From == nil {
		t.Fatalf("with origins: %+q -> %+q, %d origins, want %+q", in, got.B, len(got.From), want)
	}
	var spans []string
	for i := 0; i < len(got.B); {
		_, n := utf8.DecodeRune(got.B[i:])
		for k := range n {
			if got.From[i+k] != got.From[i] {
				t.Errorf("byte %d of %+q: %v", i+k, got.B, got.From)
			}
		}
		spans = append(spans, fmt.Sprintf("%d-%d", got.From[i].Start, got.From[i].End))
		i += n
	}
	if s := strings.Join(spans, " "); s != from {
		t.Errorf("%+q -> %+q from %s, want %s", in, got.B, s, from)
	}
}

func TestRun(t *testing.T) {
	var b normal.Buffer
	in := []byte("``Ｅ\u0301t\u00e9'' \ufb01n")
	steps := []normal.Step{normal.Replace("``", `"`), normal.Replace("''", `"`), normal.NFKD(), normal.StripAccents(), normal.Lowercase(), small}
	got := normal.Run(steps, normal.Text{B: in, From: normal.Origins(nil, in)}, &b)
	if want := `"ete" fin`; string(got.B) != want {
		t.Errorf("got %q, want %q", got.B, want)
	}
	want := []normal.Span{{1, 2}, {2, 5}, {7, 8}, {8, 10}, {11, 12}, {12, 13}, {13, 16}, {13, 16}, {16, 17}}
	if !slices.Equal(got.From, want) {
		t.Errorf("got %v, want %v", got.From, want)
	}

	plain := []byte("nothing to do")
	if got := normal.Run(steps, normal.Text{B: plain}, &b); &got.B[0] != &plain[0] {
		t.Error("a text that stays was copied")
	}
	if got := normal.Run(nil, normal.Text{}, &b); len(got.B) != 0 {
		t.Error("no steps, no text:", got)
	}
}

func TestPrecompiledErrors(t *testing.T) {
	good := charsmap(map[string]string{"a": "b"})
	for _, c := range []struct {
		name string
		in   []byte
		want string
	}{
		{"empty", nil, "shorter than the 4 bytes of its first field"},
		{"cut in the size", good[:3], "shorter than the 4 bytes of its first field"},
		{"cut in the trie", good[:100], "trie of 1024 bytes exceeds the remaining 96 bytes"},
		{"no trie", []byte{0, 0, 0, 0, 'a', 0}, "no trie"},
		{"texts", append(slices.Clip(good), 0xff), "texts are not UTF-8"},
	} {
		if _, _, err := normal.Precompiled(c.in); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	// A trie that points anywhere must not stop the program.
	var b normal.Buffer
	for i := 4; i < len(good)-2; i += testsize.Pick(16, 4, 1) {
		bad := slices.Clone(good)
		bad[i] ^= 0xFF
		step, _, err := normal.Precompiled(bad)
		if err != nil {
			t.Fatal(err)
		}
		normal.Run([]normal.Step{step}, normal.Text{B: []byte("ab\u00e9a\u0301\xff")}, &b)
	}
}

// No text is slow.
func TestLinear(t *testing.T) {
	var b normal.Buffer
	n := testsize.Pick(1<<14, 1<<15, 1<<18)
	for _, unit := range []string{"a", "A", " ", "\u0301", "\u0301\u0323", "\u00e9", "\uac01", "\u1100", "\u4e2d", "\u200d", "\u00a9\u200d", "\u0915\u094d", "\u0600", "\u00ad", "\u302e\u0323", "\xff", "\ufdfa", "``"} {
		text := []byte(strings.Repeat(unit, n/len(unit)))
		from := normal.Origins(nil, text)
		for _, c := range all {
			start := time.Now()
			normal.Run([]normal.Step{c.step}, normal.Text{B: text}, &b)
			normal.Run([]normal.Step{c.step}, normal.Text{B: text, From: from}, &b)
			if d := time.Since(start); d > 3*time.Second {
				t.Errorf("%s of %d times %+q took %s", c.name, n/len(unit), unit, d)
			}
		}
	}
}

// all has a step of each kind.
var all = []struct {
	name string
	step normal.Step
}{
	{"NFC", normal.NFC()}, {"NFD", normal.NFD()}, {"NFKC", normal.NFKC()}, {"NFKD", normal.NFKD()}, {"Lowercase", normal.Lowercase()},
	{"StripAccents", normal.StripAccents()}, {"Strip", normal.Strip(true, true)}, {"Prepend", normal.Prepend("\u2581")},
	{"Replace", normal.Replace(" ", "\u2581")}, {"ReplaceNothing", normal.Replace("", "-")}, {"Nmt", normal.Nmt()}, {"ByteLevel", normal.ByteLevel()},
	{"Bert", bert}, {"BertCased", normal.Bert(true, true, false, false)}, {"BertAccents", normal.Bert(false, false, true, false)}, {"Precompiled", small},
}

func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	text := []byte(strings.Repeat("Plain text, d\u00e9j\u00e0 vu, e\u0301\u0323\u302e \u4e2d\u6587 \ud55c\uae00 \ufb01 \u0130\t\u2026 ``x'' ", 20))
	from := normal.Origins(nil, text)
	for _, c := range all {
		var b normal.Buffer
		steps := []normal.Step{c.step, c.step}
		for _, in := range []normal.Text{{B: text}, {B: text, From: from}} {
			defer debug.SetGCPercent(debug.SetGCPercent(-1))
			if n := testing.AllocsPerRun(5, func() { normal.Run(steps, in, &b) }); n != 0 {
				t.Errorf("%s allocates %v times", c.name, n)
			}
		}
	}
}

func FuzzSteps(f *testing.F) {
	for _, c := range reference {
		f.Add([]byte(c.in))
	}
	f.Add([]byte("e\xff\u0301\xe4\xb8 A"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var b normal.Buffer
		if len(in) > 1<<12 {
			return
		}
		keep := slices.Clone(in)
		for i, c := range all {
			steps := []normal.Step{c.step, all[(i+3)%len(all)].step}
			for _, steps := range [][]normal.Step{steps[:1], steps} {
				plain := string(normal.Run(steps, normal.Text{B: in}, &b).B)
				got := normal.Run(steps, normal.Text{B: in, From: normal.Origins([]normal.Span{}, in)}, &b)
				if string(got.B) != plain {
					t.Fatalf("%s: %+q with origins, %+q without", c.name, got.B, plain)
				}
				if len(got.From) != len(got.B) || got.From == nil {
					t.Fatalf("%s: %d origins of %d bytes", c.name, len(got.From), len(got.B))
				}
				last := normal.Span{}
				for _, s := range got.From {
					if s.Start < last.Start || s.End < last.End || s.Start > s.End || int(s.End) > len(in) {
						t.Fatalf("%s: %v after %v", c.name, s, last)
					}
					last = s
				}
				if utf8.Valid(in) && !utf8.ValidString(plain) {
					t.Fatalf("%s: %+q", c.name, plain)
				}
			}
			n := c.step.Prefix(string(in))
			if out := normal.Run(steps[:1], normal.Text{B: in}, &b).B; n < 0 || n > len(in) || c.name != "Strip" && string(out[:min(n, len(out))]) != string(in[:n]) || n == len(in) && string(out) != string(in) {
				t.Fatalf("%s: prefix %d of %+q, result %+q", c.name, n, in, out)
			}
		}
		if string(in) != string(keep) {
			t.Fatal("the input was changed")
		}
	})
}
