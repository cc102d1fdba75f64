// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/testsize"
)

// sharedDir returns the directory with the reference's vectors, or skips the test.
func sharedDir(tb testing.TB) string {
	tb.Helper()
	if testing.Short() {
		tb.Skip("reference vectors are not for -short")
	}
	dir := os.Getenv("WEFT_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared")
	}
	dir = filepath.Join(dir, "tok")
	if _, err := os.Stat(dir); err != nil {
		tb.Skip("no reference vectors (set WEFT_SHARED):", err)
	}
	return dir
}

// golden is one line of golden.jsonl. An absent field equals the value in the comment.
type golden struct {
	C          string
	Text       string
	IDs        []uint32
	IDsSpecial *[]uint32 `json:"ids_special"` // IDs
	Dec        *string   // Text
	DecSkip    *string   `json:"dec_skip"` // Text
	Offsets    []int     // start and end of each id, in code points; absent for long texts
}

// readGolden returns every eighth vector of a file, with WEFT_TEST=long all of them.
func readGolden(tb testing.TB, file string) []golden {
	tb.Helper()
	f, err := os.Open(file)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	var out []golden
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 16<<20)
	for i := 0; sc.Scan(); i++ {
		if i%testsize.Pick(8, 8, 1) != 0 {
			continue
		}
		var g golden
		if err := json.Unmarshal(sc.Bytes(), &g); err != nil {
			tb.Fatal(err)
		}
		out = append(out, g)
	}
	if sc.Err() != nil || len(out) == 0 {
		tb.Fatal("no vectors in", file, sc.Err())
	}
	return out
}

// Every directory of reference vectors up to 6 MB loads and agrees on a sample of them, with WEFT_TEST=long every one on all.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(sharedDir(t), "*", "golden.jsonl"))
	if err != nil || len(files) == 0 {
		t.Skip("no vectors: set WEFT_SHARED:", err)
	}
	for _, file := range files {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			if info, err := os.Stat(filepath.Join(dir, "tokenizer.json")); err == nil && info.Size() > testsize.Pick[int64](6<<20, 6<<20, math.MaxInt64) {
				t.Skip("large: set WEFT_TEST=long")
			}
			tok, err := Load(os.DirFS(dir), nil)
			if err != nil {
				t.Fatal(err)
			}
			failed := 0
			for _, g := range readGolden(t, file) {
				if bad := g.check(tok); bad != "" {
					if failed++; failed < 10 {
						t.Errorf("(%s) %.200q: %s", g.C, g.Text, bad)
					}
				}
			}
			if failed > 0 {
				t.Errorf("%d vectors differ", failed)
			}
		})
	}
}

// check returns the name of the first thing that differs.
func (g *golden) check(tok *Tokenizer) string {
	ids := tok.AppendEncode(nil, g.Text)
	if !slices.Equal(ids, g.IDs) {
		return "ids"
	}
	framed := g.IDs
	if g.IDsSpecial != nil {
		framed = *g.IDsSpecial
	}
	if !slices.Equal(tok.AppendEncodeSpecial(nil, g.Text), framed) {
		return "ids with frame"
	}
	// With skip_special_tokens the vectors decode the framed ids.
	for skip, want := range map[bool]*string{false: g.Dec, true: g.DecSkip} {
		text := g.Text
		if want != nil {
			text = *want
		}
		from := ids
		if skip {
			from = framed
		}
		if got := string(tok.AppendDecode(nil, from, skip)); got != text {
			return "decoded text " + got
		}
		s := tok.NewStream(skip, nil)
		var out []byte
		for _, id := range from {
			out = s.Append(out, id)
		}
		if string(s.Finish(out)) != text {
			return "streamed text"
		}
	}
	if bad := g.checkOffsets(tok); bad != "" {
		return bad
	}
	segs := []Segment{{Text: g.Text[:len(g.Text)/2], Trusted: true}, {Text: g.Text[len(g.Text)/2:], Trusted: true}}
	if !slices.Equal(tok.AppendEncodeSegments(nil, segs), ids) {
		return "ids of two trusted segments"
	}
	return ""
}

// checkOffsets compares offsets; the reference counts characters.
func (g *golden) checkOffsets(tok *Tokenizer) string {
	var e Encoding
	err := tok.Encode(&e, []Segment{{Text: g.Text, Trusted: true}}, &EncodeOptions{Offsets: true})
	if err != nil || !slices.Equal(e.IDs, g.IDs) || len(e.Offsets) != len(e.IDs) {
		return "ids with offsets"
	}
	if g.Offsets == nil {
		return ""
	}
	char := map[int]int{len(g.Text): utf8.RuneCountInString(g.Text)}
	n := 0
	for i := range g.Text {
		char[i] = n
		n++
	}
	for i, o := range e.Offsets {
		start, ok := char[o.Start]
		end, ok2 := char[o.End]
		if !ok || !ok2 || start != g.Offsets[2*i] || end != g.Offsets[2*i+1] {
			return fmt.Sprintf("offset of id %d: %v is [%d, %d), want %v; want all %v", i, o, start, end, g.Offsets[2*i:2*i+2], g.Offsets)
		}
	}
	return ""
}
