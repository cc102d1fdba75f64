// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/parsers/internal/args"
)

// many returns the length of inputs that exceed a limit: more with WEFT_TEST=long.
func many() int {
	if os.Getenv("WEFT_TEST") == "long" {
		return 1 << 20
	}
	return 1 << 15
}

// result is the result of a decoder for an input.
type result struct {
	JSON   string
	Taken  int
	Status grammar.Status
}

// run passes chunks to d as the machine does: bytes that were not taken are passed again with more after them, src and
// dst are not the decoder's, and the last call is final. It returns the result and the most bytes that were left
// untaken.
func run(t testing.TB, d grammar.Decoder, schema *args.Schema, chunks ...string) (r result, left int) {
	d.Begin(schema)
	var window, text []byte
	defer func() { r.JSON = string(text) }()
	for i, c := range chunks {
		window = append(window, c...)
		src := append([]byte(nil), window...)
		dst := append(make([]byte, 0, 64), "dst"...)
		out, n, st := d.Append(dst, src, i == len(chunks)-1)
		if n < 0 || n > len(src) || len(out) < 3 || string(out[:3]) != "dst" || string(src) != string(window) {
			t.Fatalf("%d of %d bytes taken, dst is %q", n, len(src), out)
		}
		text = append(text, out[3:]...)
		r.Taken += n
		r.Status = st
		window = window[n:]
		for i := range src {
			src[i] = '~' // it must not keep src
		}
		for i := range out {
			out[i] = '~'
		}
		if st != grammar.More {
			break
		}
		left = max(left, len(window))
	}
	if r.Status == grammar.Done && !json.Valid(text) {
		t.Fatalf("%q gives %s", strings.Join(chunks, ""), text)
	}
	return r, left
}

// same decodes text whole and cut in many ways, expects the same of all, and returns it.
func same(t testing.TB, d grammar.Decoder, schema *args.Schema, text string, r *rand.Rand) result {
	want, _ := run(t, d, schema, text)
	check := func(chunks ...string) {
		got, left := run(t, d, schema, chunks...)
		if got != want {
			t.Fatalf("%.600q (-whole +cut):\n%s", chunks, cmp.Diff(want, got))
		}
		if left > 7 { // what may be <escape> or a character
			t.Fatalf("%.600q: %d bytes left untaken", chunks, left)
		}
	}
	check(append(split(text, func() int { return 1 }), "")...)
	for range 3 {
		check(split(text, func() int { return 1 + r.IntN(9) })...)
	}
	if len(text) <= 400 {
		for i := 1; i < len(text); i++ {
			check(text[:i], text[i:])
		}
	}
	return want
}

func split(text string, size func() int) (chunks []string) {
	for len(text) > 0 {
		n := min(size(), len(text))
		chunks = append(chunks, text[:n])
		text = text[n:]
	}
	if chunks == nil {
		chunks = []string{""}
	}
	return chunks
}

// rounds returns the number of rounds of a random test, n with WEFT_TEST=long.
func rounds(n uint64) uint64 {
	switch {
	case testing.Short() || raceEnabled:
		return n / 10
	case os.Getenv("WEFT_TEST") != "long":
		return n / 3
	}
	return n
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// decodeCase is a row of a table: the output for an input, or the failure and the number of bytes before it.
type decodeCase struct {
	in   string
	json string
	st   grammar.Status
	at   int // if not Done: bytes taken; else bytes not taken
}

func runCases(t *testing.T, d grammar.Decoder, schema *args.Schema, cases []decodeCase) {
	for _, c := range cases {
		t.Run(fmt.Sprintf("%.40q", c.in), func(t *testing.T) {
			got := same(t, d, schema, c.in, newRand(uint64(len(c.in))))
			want := result{c.json, c.at, c.st}
			if c.st == grammar.Done {
				want.Taken = len(c.in) - c.at
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
		})
	}
}

// requireLinear feeds text one byte at a time and counts what the decoder is shown.
func requireLinear(t *testing.T, d grammar.Decoder, text string, st grammar.Status) {
	d.Begin(args.Compile(nil))
	var window []byte
	shown, end := 0, grammar.More
	dst := make([]byte, 0, 1<<10)
	for i := 0; i < len(text) && end == grammar.More; i++ {
		window = append(window, text[i])
		shown += len(window)
		_, n, s := d.Append(dst, window, i == len(text)-1)
		window = window[:copy(window, window[n:])]
		end = s
	}
	require.Equal(t, st, end)
	require.LessOrEqual(t, shown, 3*len(text))
}

// requireNoAllocs decodes chunks of 4 bytes with room in dst.
func requireNoAllocs(t *testing.T, d grammar.Decoder, schema *args.Schema, text string) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	dst := make([]byte, 0, 8*len(text)+64)
	src := []byte(text)
	st := grammar.More
	require.Zero(t, testing.AllocsPerRun(5, func() {
		d.Begin(schema)
		out := dst
		for i, end := 0, 0; i < len(src); {
			var n int
			end = min(end+4, len(src))
			if out, n, st = d.Append(out, src[i:end], end == len(src)); st != grammar.More {
				break
			}
			i += n
		}
	}))
	require.Equal(t, grammar.Done, st)
}

// benchDecode measures text in chunks of the given size.
func benchDecode(b *testing.B, d grammar.Decoder, text string, size int) {
	schema := args.Compile(nil)
	src := []byte(text)
	dst := make([]byte, 0, 2*len(text))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		d.Begin(schema)
		st := grammar.More
		for i, end := 0, 0; end < len(src); {
			var n int
			end = min(end+size, len(src))
			_, n, st = d.Append(dst, src[i:end], end == len(src))
			i += n
		}
		if st != grammar.Done {
			b.Fatal(st)
		}
	}
	chunks := (len(text) + size - 1) / size
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*chunks), "ns/chunk")
}
