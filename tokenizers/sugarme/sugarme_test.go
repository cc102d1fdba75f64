// SPDX-License-Identifier: Apache-2.0

package sugarme

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/mini"
)

const wordLevel = "testdata/wordlevel"

// needEngine skips a test where the engine does not compile.
func needEngine(t *testing.T) {
	t.Helper()
	if strconv.IntSize == 32 {
		t.Skip("not on 32-bit systems")
	}
}

func golden(tb testing.TB) map[string][]uint32 {
	tb.Helper()
	out := map[string][]uint32{}
	data, err := os.ReadFile(wordLevel + "/golden.jsonl")
	if err != nil {
		tb.Fatal(err)
	}
	for d := json.NewDecoder(bytes.NewReader(data)); d.More(); {
		var v struct {
			Text string
			IDs  []uint32
		}
		if err := d.Decode(&v); err != nil {
			tb.Fatal(err)
		}
		out[v.Text] = v.IDs
	}
	return out
}

func verified(t *Tokenizer) [2]int {
	probes, vectors := t.Verified()
	return [2]int{probes, vectors}
}

// edited returns a file system with the JSON file at name after change.
func edited(t *testing.T, fsys fs.FS, change func(m map[string]any)) fs.FS {
	t.Helper()
	data, err := fs.ReadFile(fsys, file)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	change(m)
	if data, err = json.Marshal(m); err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{file: {Data: data}}
}

// A model the engine serves exactly: the vectors are Hugging Face's (npm tokenizers 0.23.2), which the engine
// also equals on 2,000 random texts of this kind.
func TestServed(t *testing.T) {
	needEngine(t)
	vectors := golden(t)
	vectors["the router"] = []uint32{1, 2}
	tok, err := Load(os.DirFS(wordLevel), &Options{Enable: true, Vectors: vectors})
	if err != nil {
		t.Fatal(err)
	}
	if n := verified(tok); n[1] != 104 {
		t.Errorf("verified by %v", n)
	}
	ids, err := tok.AppendEncode([]uint32{7}, "the  router[UNK]sends\n日本")
	if want := []uint32{7, 1, 2, 0, 3, 9}; err != nil || !equal(ids, want) {
		t.Errorf("got %v, %v", ids, err)
	}
	if _, err = tok.AppendEncode(nil, strings.Repeat("x", maxText+1)); !errors.Is(err, tokenizers.ErrLimit) {
		t.Errorf("a long text: %v", err)
	}
	if _, err = tok.AppendEncode(nil, "a\xff"); !errors.Is(err, tokenizers.ErrFormat) {
		t.Errorf("no UTF-8: %v", err)
	}
}

func equal(a, b []uint32) bool {
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

func TestRefused(t *testing.T) {
	needEngine(t)
	words := os.DirFS(wordLevel)
	whitespace := func(m map[string]any) { m["pre_tokenizer"] = map[string]any{"type": "Whitespace"} }
	two := []any{
		map[string]any{"id": 0, "content": "[UNK]", "normalized": false, "special": true, "single_word": false, "lstrip": false, "rstrip": false},
		map[string]any{"id": 13, "content": "<s>", "normalized": false, "special": true, "single_word": false, "lstrip": false, "rstrip": false},
	}
	nothing := func(map[string]any) {}
	for _, c := range []struct {
		name   string
		fsys   fs.FS
		change func(m map[string]any)
		opt    Options
		kind   error
		reason string
	}{
		{"off", words, nothing, Options{}, ErrUnverified, "Options.Enable"},
		// The pattern has (?!\S), on which the engine panics.
		{"panic on load", mini.FS(), nothing, Options{Enable: true}, ErrEngine, "(?!"},
		// GPT-2's cutting rule: the engine loads it and cuts white space elsewhere.
		{"other ids than native", mini.FS(), func(m map[string]any) {
			m["pre_tokenizer"] = map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}
		}, Options{Enable: true}, ErrDisagrees, "the native tokenizer returned"},
		// \w is ASCII there, so héllo falls apart; Hugging Face gives one id.
		{"other ids than a vector", words, whitespace, Options{Enable: true, Vectors: map[string][]uint32{"the": {1}, "Grüße": {10}}}, ErrDisagrees, ""},
		// Two added tokens in one text: the first is lost, all before the second becomes one unknown word.
		{"two added tokens", words, func(m map[string]any) { m["added_tokens"] = two },
			Options{Enable: true, Vectors: map[string][]uint32{"router<s>request\u3000[UNK]": {2, 13, 0, 0}}}, ErrDisagrees, ""},
		{"truncation", words, func(m map[string]any) { m["truncation"] = map[string]any{"max_length": 3} }, Options{Enable: true}, tokenizers.ErrUnsupported, "truncation or padding"},
		{"byte fallback", words, func(m map[string]any) { m["model"].(map[string]any)["byte_fallback"] = true }, Options{Enable: true}, tokenizers.ErrUnsupported, "byte_fallback"},
		{"unknown words without a token", words, func(m map[string]any) { m["model"].(map[string]any)["unk_token"] = "?" }, Options{Enable: true}, tokenizers.ErrUnsupported, `"?"`},
		{"no model", words, func(m map[string]any) { m["model"] = map[string]any{"type": "Magic"} }, Options{Enable: true, Vectors: map[string][]uint32{"the": {1}}}, ErrEngine, ""},
		{"damaged file", fstest.MapFS{file: {Data: []byte(`{"model":`)}}, nil, Options{Enable: true}, tokenizers.ErrFormat, ""},
		{"no file", fstest.MapFS{}, nil, Options{Enable: true}, fs.ErrNotExist, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := c.fsys
			if c.change != nil {
				fsys = edited(t, fsys, c.change)
			}
			tok, err := Load(fsys, &c.opt)
			if !strings.HasPrefix(fmt.Sprint(err), "sugarme: ") || !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.reason) {
				t.Fatalf("got %v, error %v", tok, err)
			}
		})
	}
}

// Without anything to compare with, a file is refused.
func TestUnverified(t *testing.T) {
	needEngine(t)
	words := os.DirFS(wordLevel)
	if _, err := tokenizers.Load(words, nil); err == nil {
		// The native loader vouches for this file. A file with an unknown field cannot be verified.
		words = edited(t, words, func(m map[string]any) { m["model"].(map[string]any)["note"] = 1 })
	}
	if _, err := Load(words, &Options{Enable: true}); !errors.Is(err, ErrUnverified) {
		t.Errorf("got %v", err)
	}
}

// stuck is an engine that runs until its channel is closed.
type stuck chan struct{}

func (s stuck) encode(text string) ([]int, error) {
	if text == "wait" {
		<-s
	}
	return []int{1}, nil
}

func TestTime(t *testing.T) {
	e := make(stuck)
	tok := &Tokenizer{engine: e, running: make(chan struct{}, 1), maxText: 10, maxTime: 20 * time.Millisecond}
	for _, text := range []string{"wait", "next"} {
		if ids, err := tok.AppendEncode(nil, text); !errors.Is(err, context.DeadlineExceeded) || ids != nil {
			t.Errorf("%s: %v, %v", text, ids, err)
		}
	}
	close(e)
	tok.maxTime = 10 * time.Second
	if ids, err := tok.AppendEncode(nil, "again"); err != nil || !equal(ids, []uint32{1}) {
		t.Errorf("afterwards: %v, %v", ids, err)
	}
}

// broken is an engine with every kind of fault.
type broken struct{}

func (broken) encode(text string) ([]int, error) {
	switch text {
	case "nil":
		var p *int
		return []int{*p}, nil
	case "bounds":
		return []int{1}[len(text):], nil
	case "error":
		return nil, errors.New("no")
	}
	return []int{-1}, nil
}

func TestFence(t *testing.T) {
	tok := &Tokenizer{engine: broken{}, running: make(chan struct{}, 1), maxText: 10, maxTime: 10 * time.Second}
	for _, text := range []string{"nil", "bounds", "error", "id"} {
		if ids, err := tok.AppendEncode([]uint32{9}, text); !errors.Is(err, ErrEngine) || !equal(ids, []uint32{9}) {
			t.Errorf("%s: %v, %v", text, ids, err)
		}
	}
}

func FuzzEncode(f *testing.F) {
	tok, err := Load(os.DirFS(wordLevel), &Options{Enable: true, Vectors: golden(f)})
	if err != nil {
		f.Skip(err)
	}
	f.Add("the router[UNK] \xff\u2028")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := tok.AppendEncode(nil, text); err != nil {
			if !strings.HasPrefix(err.Error(), "sugarme: encode: ") || errors.Unwrap(err) == nil {
				t.Fatalf("%T: %v", err, err)
			}
		}
	})
}
