// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unicode/utf8"
)

// sharedDir returns the folder with the reference's vectors, or skips.
func sharedDir(tb testing.TB) string {
	tb.Helper()
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

// golden is one line of golden.jsonl. A field that is absent equals what the comment says.
type golden struct {
	C          string
	Text       string
	IDs        []uint32
	IDsSpecial *[]uint32 `json:"ids_special"` // IDs
	Dec        *string   // Text
	DecSkip    *string   `json:"dec_skip"` // Text
	trimmed    bool      // offsets leave white space out, which ours do not
	Offsets    []int     // start and end of each id, in code points; absent for long texts
}

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
	for sc.Scan() {
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

// Every folder of reference vectors either loads and agrees on all of them, or is refused by name.
func TestGolden(t *testing.T) {
	refused := map[string]string{
		"bert-base-cased":   `normalizer: unsupported: normalizer "BertNormalizer"`,
		"bert-base-uncased": `normalizer: unsupported: normalizer "BertNormalizer"`,
		"minilm-l6-v2":      `truncation: unsupported: only null`,
		"clip":              `normalizer.normalizers[1]: unsupported: normalizer "Replace"`,
		"falcon":            `pre_tokenizer.pretokenizers[0]: unsupported: pre-tokenizer "Punctuation"`,
		"mistral-v1-spm":    `pre_tokenizer: unsupported: pre-tokenizer "Metaspace"`,
		"mistral-v3-spm":    `pre_tokenizer: unsupported: pre-tokenizer "Metaspace"`,
		"tinyllama":         `normalizer.normalizers[0]: unsupported: normalizer "Prepend"`,
		"t5-small-unigram":  `normalizer: unsupported: normalizer "Precompiled"`,
		"xlnet-unigram":     `normalizer.normalizers[0]: unsupported: normalizer "Replace"`,
	}
	files, err := filepath.Glob(filepath.Join(sharedDir(t), "*", "golden.jsonl"))
	if err != nil || len(files) == 0 {
		t.Skip("no vectors:", err)
	}
	for _, file := range files {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			tok, err := Load(dir)
			if want, ok := refused[filepath.Base(dir)]; ok {
				e, isError := errors.AsType[*Error](err)
				if !isError || !errors.Is(err, ErrUnsupported) {
					t.Fatalf("got %v, want %s", err, want)
				}
				if got := e.Place + ": unsupported: " + e.Reason; got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			failed := 0
			for i, g := range readGolden(t, file) {
				g.trimmed = filepath.Base(dir) == "roberta"
				if bad := g.check(tok); bad != "" {
					if failed++; failed < 10 {
						t.Errorf("line %d (%s) %.200q: %s", i+1, g.C, g.Text, bad)
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
	if !slices.Equal(tok.AppendEncodeFramed(nil, g.Text), framed) {
		return "ids with frame"
	}
	// The reference decodes the framed ids.
	for skip, want := range map[bool]*string{false: g.Dec, true: g.DecSkip} {
		text := g.Text
		if want != nil {
			text = *want
		}
		if got := string(tok.AppendDecode(nil, ids, skip)); got != text {
			return "decoded text"
		}
		s := tok.NewStream(skip)
		var out []byte
		for _, id := range ids {
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

// checkOffsets compares offsets, where the reference does not trim them and nothing was normalized.
func (g *golden) checkOffsets(tok *Tokenizer) string {
	ids, offs := tok.AppendEncodeOffsets(nil, nil, []Segment{{Text: g.Text, Trusted: true}})
	if !slices.Equal(ids, g.IDs) || len(offs) != len(ids) {
		return "ids with offsets"
	}
	if g.Offsets == nil || g.trimmed || g.Dec != nil {
		return ""
	}
	// The reference counts characters and gives a token that is part of one the whole.
	char := make([]int, len(g.Text)+1)
	n := -1
	for i := range len(g.Text) {
		if utf8.RuneStart(g.Text[i]) {
			n++
		}
		char[i] = n
	}
	char[len(g.Text)] = n + 1
	for i, o := range offs {
		start, end := char[o.Start], char[o.Start]
		if o.End > o.Start {
			end = char[o.End-1] + 1
		}
		if start != g.Offsets[2*i] || end != g.Offsets[2*i+1] {
			return fmt.Sprintf("offset of id %d: [%d, %d), want %v", i, start, end, g.Offsets[2*i:2*i+2])
		}
	}
	return ""
}
