// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// simpleUnescaped is AppendUnescaped, one byte or escape sequence at a time.
func simpleUnescaped(dst, raw []byte) []byte {
	for len(raw) > 0 {
		if raw[0] != '\\' {
			dst, raw = append(dst, raw[0]), raw[1:]
			continue
		}
		if raw[1] != 'u' {
			dst = append(dst, map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': 8, 'f': 12, 'n': 10, 'r': 13, 't': 9}[raw[1]])
			raw = raw[2:]
			continue
		}
		r := hex4(raw[2:])
		raw = raw[6:]
		if r >= 0xd800 && r < 0xdc00 && bytes.HasPrefix(raw, []byte(`\u`)) {
			if lo := hex4(raw[2:]); lo >= 0xdc00 && lo < 0xe000 {
				r, raw = (r-0xd800)<<10|(lo-0xdc00)+0x10000, raw[6:]
			}
		}
		dst = utf8.AppendRune(dst, r) // U+FFFD for a surrogate
	}
	return dst
}

func TestAppendUnescapedEqualsSimple(t *testing.T) {
	pieces := []string{
		"a", "bc", "0123456", "01234567", "a text of twenty-four c.", "é", "漢", "😀", `\"`, `\\`, `\/`, `\b`, `\f`, `\n`, `\r`, `\t`,
		`\u0000`, `\u00e9`, `\u6F22`, `\ud83d\ude00`, `\ud83d`, `\ude00`, `\uFFFF`, "\x7f", "\u0080",
	}
	rng := rand.New(rand.NewPCG(1, 2))
	rounds := 20000
	if testing.Short() {
		rounds = 2000
	}
	for round := range rounds {
		var raw []byte
		for range rng.IntN(12) << (round % 4) {
			raw = append(raw, pieces[rng.IntN(len(pieces))]...)
		}
		_, _, fault := scanString(append(raw, '"'), 0)
		require.Equal(t, strOK, fault, "%q", raw)
		before := []byte("before")
		dst := make([]byte, len(before), len(before)+len(raw)+1)
		copy(dst, before)
		got := AppendUnescaped(dst, raw)
		require.Equal(t, simpleUnescaped(before, raw), got, "%q", raw)
		if len(raw) > 0 {
			require.Same(t, &dst[0], &got[0], "room for len(raw) bytes suffices")
		}
		require.Zero(t, dst[:cap(dst)][cap(dst)-1], "nothing is written after len(raw) bytes")
	}
}

// TestScanStringEqualsValid compares scanString with utf8.Valid for all starts of sequences and all kinds of bytes after
// them, at the end of the input and before more of it.
func TestScanStringEqualsValid(t *testing.T) {
	kinds := []byte{'a', 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xff}
	for _, tail := range []string{`"`, `a"`, `ab"`, `abcdefgh"`, `é"`} {
		for a := 0x80; a <= 0xff; a++ {
			for _, b := range kinds {
				for _, c := range kinds {
					for _, d := range kinds {
						s := append([]byte{byte(a), b, c, d}, tail...)
						end, escaped, fault := scanString(s, 0)
						good := fault == strOK && end == len(s)-1
						if !utf8.Valid(s) {
							r, n := utf8.DecodeRune(s[end:])
							good = fault == strUTF8 && utf8.Valid(s[:end]) && r == utf8.RuneError && n <= 1
						}
						if escaped || !good {
							t.Fatalf("%q: end %d, escaped %v, fault %d", s, end, escaped, fault)
						}
					}
				}
			}
		}
	}
}

// TestScanStringEqualsScanText compares the way of short and long strings with the way of all.
func TestScanStringEqualsScanText(t *testing.T) {
	good := []string{
		"a", "bc", "0123456", "01234567", "a text of twenty-four c.", "é", "漢", "漢字かな交じり文", "😀", `\"`, `\\`, `\n`, `\u00e9`, `\ud83d\ude00`, "\x7f",
	}
	bad := []string{"\x00", "\x1f", "\n", "\xff", "\xe6\xbc", "\x80", `\x`, `\u12g4`, `\`, `\u12`}
	rng := rand.New(rand.NewPCG(1, 2))
	rounds := 50000
	if testing.Short() {
		rounds = 5000
	}
	faults := map[strFault]int{}
	for round := range rounds {
		var s []byte
		for range rng.IntN(12) << (round % 6) {
			if s = append(s, good[rng.IntN(len(good))]...); rng.IntN(400) == 0 {
				s = append(s, bad[rng.IntN(len(bad))]...)
			}
		}
		if rng.IntN(10) > 0 {
			s = append(s, '"')
		}
		for range rng.IntN(80) * (round % 2) {
			s = append(s, good[rng.IntN(len(good))]...)
		}
		end, escaped, fault := scanText(s, 0)
		gotEnd, gotEscaped, gotFault := scanString(s, 0)
		if gotEnd != end || gotEscaped != escaped || gotFault != fault {
			t.Fatalf("%q: end %d, escaped %v, fault %d; want %d, %v, %d", s, gotEnd, gotEscaped, gotFault, end, escaped, fault)
		}
		if end, escaped, ok := scanLong(s, 0); ok && (end != gotEnd || escaped != gotEscaped || fault != strOK) {
			t.Fatalf("%q: the long way ends at %d, escaped %v", s, end, escaped)
		}
		faults[fault]++
	}
	require.Len(t, faults, 5, "all faults occur: %v", faults)
}

// TestEscapesEqualsSwitch compares the table with the escape sequences of RFC 8259.
func TestEscapesEqualsSwitch(t *testing.T) {
	for c := range 256 {
		end, escaped, fault := scanString([]byte{'\\', byte(c), '0', '0', '4', '1', '"'}, 0)
		switch {
		case bytes.IndexByte([]byte(`"\/bfnrtu`), byte(c)) >= 0:
			require.True(t, escaped && fault == strOK && end == 6, "%q", c)
		default:
			require.True(t, fault == strEscape && end == 1, "%q", c)
		}
	}
}

func BenchmarkUnescape(b *testing.B) {
	raw := bytes.Repeat([]byte(`if err != nil {\n\treturn fmt.Errorf(\"x: %w\", err)\n}\né → 日本 and more text without any.\n`), 100)
	dst := make([]byte, 0, len(raw))
	b.Run("way=words", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		for b.Loop() {
			dst = AppendUnescaped(dst[:0], raw)
		}
	})
	b.Run("way=scan", func(b *testing.B) {
		raw := append(raw, '"')
		b.SetBytes(int64(len(raw)))
		for b.Loop() {
			scanString(raw, 0)
		}
	})
}
