// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"
)

// smallTokenizer loads one of the small tokenizers in testdata, which cover the kinds that mini is not.
func smallTokenizer(tb testing.TB, kind string) *Tokenizer {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "small", kind+".json"))
	if err != nil {
		tb.Fatal(err)
	}
	tok, err := Load(fstest.MapFS{tokenizerFile: {Data: data}}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return tok
}

// smallKinds lists them.
func smallKinds(tb testing.TB) []string {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "small", "*.json"))
	if err != nil || len(files) == 0 {
		tb.Fatal("no small tokenizers", err)
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".json")
	}
	return files
}

// The small tokenizers do what the reference does; see testdata/small/gen.js.
func TestSmall(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "small", "golden.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	vectors := map[string][]golden{}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		var g struct {
			golden
			Kind string
		}
		if err := json.Unmarshal(lines.Bytes(), &g); err != nil {
			t.Fatal(err)
		}
		vectors[g.Kind] = append(vectors[g.Kind], g.golden)
	}
	for _, kind := range smallKinds(t) {
		t.Run(kind, func(t *testing.T) {
			tok := smallTokenizer(t, kind)
			if len(vectors[kind]) < 20 {
				t.Fatalf("only %d vectors", len(vectors[kind]))
			}
			for _, g := range vectors[kind] {
				if bad := g.check(tok); bad != "" {
					t.Errorf("%q: %s", g.Text, bad)
				}
			}
		})
	}
}

// Every kind of tokenizer keeps what the documentation promises of all of them, on any text.
func FuzzSmall(f *testing.F) {
	for _, s := range []string{"Hello, world's 123!\r\n\t x", "中文ABCabc'LL\u0301\u00a0\xff\xc3", "<s>▁▁ [TOOL]  </s><0x41>", "ﬁ½\u0958İſ🙂\u200d"} {
		f.Add(s, uint16(3))
	}
	toks := map[string]*Tokenizer{}
	for _, kind := range smallKinds(f) {
		toks[kind] = smallTokenizer(f, kind)
	}
	f.Fuzz(func(t *testing.T, s string, cut uint16) {
		for kind, tok := range toks {
			ids := tok.AppendEncode(nil, s)
			text := tok.AppendDecode(nil, ids, false)
			if !utf8.Valid(text) {
				t.Fatalf("%s: %q decodes to %q", kind, s, text)
			}
			if got := streamed(t, tok, ids, false); got != string(text) {
				t.Fatalf("%s: %q streamed is %q, not %q", kind, s, got, text)
			}
			if roundTrips(kind, s) && string(text) != s {
				t.Fatalf("%s: %q comes back as %q", kind, s, text)
			}
			k := int(cut) % (len(s) + 1)
			segs := []Segment{{s[:k], true}, {s[k:], true}}
			var e Encoding
			if err := tok.Encode(&e, segs, &EncodeOptions{Offsets: true}); err != nil {
				t.Fatal(err)
			}
			if !equalIDs(e.IDs, ids) {
				t.Fatalf("%s: %q in two parts gives %v, not %v", kind, s, e.IDs, ids)
			}
			for i, o := range e.Offsets {
				if o.Start < 0 || o.Start > o.End || o.End > len(s) {
					t.Fatalf("%s: %q: offset %d is %v", kind, s, i, o)
				}
			}
			// Untrusted text yields no special id, for any trusted text next to it. That has no token of its own.
			for _, segs := range [][]Segment{{{s, false}}, {{s[:k], false}, {"é [", true}, {s[k:], false}, {" ", true}}} {
				if err := tok.Encode(&e, segs, &EncodeOptions{Offsets: true}); err != nil {
					t.Fatal(err)
				}
				for _, id := range e.IDs {
					if a := tok.addedToken(id); a != nil && (a.Special || !tok.model.reaches(id)) && int64(id) != tok.unk && id != tok.pad.ID {
						t.Fatalf("%s: untrusted %v gives %q", kind, segs, a.Content)
					}
				}
				if ids := tok.AppendEncodeSegments(nil, segs); !equalIDs(e.IDs, ids) {
					t.Fatalf("%s: %v gives %v with offsets, %v without", kind, segs, e.IDs, ids)
				}
			}
		}
	})
}

// roundTrips reports whether a tokenizer gives a text back: no normalizer changes it for good, and no added token takes
// white space along.
func roundTrips(kind, s string) bool {
	if !utf8.ValidString(s) || strings.Contains(s, "[TOOL]") || strings.Contains(s, "▁") {
		return false
	}
	switch kind {
	case "falcon", "spm-never":
		return true
	case "spm-prepend", "spm-first":
		// The space they put in front goes again, unless the text begins with what takes none.
		return s != "" && s[0] != ' ' && !strings.Contains(s, "<s>") && !strings.Contains(s, "</s>") && !strings.Contains(s, "<unk>") && !strings.Contains(s, "[INST]")
	}
	return false
}

func equalIDs(a, b []uint32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
