// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/weft-go/weft/tokenizers/internal/testsize"
)

// Ids, encoding and decoding with unusual lists of added tokens equal the reference's, as recorded by
// testdata/added_ids.js. Lists under "more" come from tokenizer_config.json.
func TestAddedReference(t *testing.T) {
	data, err := os.ReadFile("testdata/added_ids.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for line := range bytes.Lines(data) {
		if at++; at%testsize.Pick(4, 1, 1) != 0 {
			continue
		}
		var c struct {
			Name        string
			Added, More []any
			Vocab       object
			IDs         map[string]*uint32
			Texts       []struct {
				Text, Dec, Skip string
				IDs             []uint32
			}
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		t.Run(c.Name, func(t *testing.T) {
			m := base(t)
			m["added_tokens"] = c.Added
			for k, id := range c.Vocab {
				m["model"].(object)["vocab"].(object)[k] = id
			}
			wrong := func() []string {
				var bad []string
				fail := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
				tok, err := parseTree(t, m)
				if err == nil && c.More != nil {
					decoder := object{}
					for _, a := range c.More {
						decoder[fmt.Sprint(int(a.(object)["id"].(float64)))] = a
					}
					config, _ := json.Marshal(object{"added_tokens_decoder": decoder}) // it came from JSON
					err = tok.mergeConfig(fstest.MapFS{configFile: {Data: config}})
				}
				if err != nil {
					return []string{err.Error()}
				}
				for s, want := range c.IDs {
					if id, ok := tok.TokenID(s); ok != (want != nil) || ok && id != *want {
						fail("%q is %d (%t)", s, id, ok)
					}
				}
				for _, x := range c.Texts {
					if ids := tok.AppendEncode(nil, x.Text); !slices.Equal(ids, x.IDs) {
						fail("%q gives %v, want %v", x.Text, ids, x.IDs)
					}
					if s := string(tok.AppendDecode(nil, x.IDs, false)); s != x.Dec {
						fail("%v is %q, want %q", x.IDs, s, x.Dec)
					}
					if s := string(tok.AppendDecode(nil, x.IDs, true)); s != x.Skip {
						fail("%v without special tokens is %q, want %q", x.IDs, s, x.Skip)
					}
				}
				return bad
			}()
			for _, s := range wrong {
				t.Error(s)
			}
		})
	}
}

// TestDeclared checks which declarations of tokenizer_config.json add tokens.
func TestDeclared(t *testing.T) {
	file := `{
		"tokenizer_class": "X", "auto_map": {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", null]},
		"added_tokens_decoder": {
			"3200": {"content": "<late>", "special": false, "__type": "AddedToken"},
			"3126": {"content": "<image>", "special": true},
			"3113": {"content": "<|endoftext|>", "special": true, "normalized": false}
		},
		"bos_token": null, "eos_token": {"content": "<|im_end|>", "lstrip": true}, "pad_token": "<pad>", "unk_token": "<late>",
		"additional_special_tokens": ["<x>", "<image>"], "extra_special_tokens": {"video_token": "<video>"}, "added": [1, {"a": "b"}]
	}`
	tok, err := parseTree(t, base(t))
	if err != nil {
		t.Fatal(err)
	}
	fsys := fstest.MapFS{configFile: {Data: []byte(file)}}
	d, err := readDeclared(fsys)
	if err != nil || !d.kimi {
		t.Fatalf("%+v, %v", d, err)
	}
	before := len(tok.AddedTokens())
	if err := tok.mergeConfig(fsys); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range tok.AddedTokens()[before:] {
		got = append(got, fmt.Sprintf("%d %s %t %t", a.ID, a.Content, a.Special, a.normalized))
	}
	want := []string{"3126 <image> true false", "3127 <late> true true", "3128 <pad> true false", "3129 <x> true false", "3130 <video> true false"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if ids := tok.AppendEncode(nil, "<|im_end|> <image>"); len(ids) != 3 || ids[2] != 3126 {
		t.Errorf("got %v", ids)
	}
	// A second time nothing is new.
	if list, changed := mergeDeclared(tok.added, uint32(tok.vocab.Count()), tok.modelID, d); changed {
		t.Errorf("changed to %v", list)
	}
}

// The published files declare nothing beyond tokenizer.json, so that merging changes no vector.
func TestDeclaredPublished(t *testing.T) {
	testsize.Long(t)
	for _, name := range []string{"gpt-oss", "kimi-k2", "phi-4", "qwen2.5", "qwen3", "qwen3.5-renum"} {
		dir := sharedDir(t) + "/" + name
		tok, err := Load(os.DirFS(dir), nil)
		if err != nil {
			t.Fatal(err)
		}
		d, err := readDeclared(os.DirFS(dir))
		if err != nil || len(d.added) == 0 {
			t.Fatalf("%s: %d tokens, %v", name, len(d.added), err)
		}
		if list, changed := mergeDeclared(tok.added, uint32(tok.vocab.Count()), tok.modelID, d); changed {
			t.Errorf("%s: changed to %v", name, list)
		}
	}
}

func TestDeclaredRefused(t *testing.T) {
	var many strings.Builder
	for i := range maxDeclared + 1 {
		fmt.Fprintf(&many, `,"<%d>"`, i)
	}
	for _, c := range []struct{ name, file, want string }{
		{"empty file", ``, "document: ends where an object should be (offset 0)"},
		{"cut", `{"added_tokens_decoder":{"5":{"content":"<a`, "added_tokens_decoder.5.content: ends inside a string (offset 43)"},
		{"cut elsewhere", `{"chat_template":"abc`, "chat_template: ends inside a string (offset 21)"},
		{"no id", `{"added_tokens_decoder":{"-5":{"content":"a"}}}`, "added_tokens_decoder.-5: is no id (offset 30)"},
		{"giant id", `{"added_tokens_decoder":{"99999999999999999999":{"content":"a"}}}`, "added_tokens_decoder.99999999999999999999: is no id (offset 48)"},
		{"large id", `{"added_tokens_decoder":{"4000000000":{"content":"a"}}}`, "added_tokens_decoder.4000000000: exceeds the limit 2097151 (offset 38)"},
		{"id twice", `{"added_tokens_decoder":{"5":{"content":"a"},"5":{"content":"b"}}}`, "added_tokens_decoder.5: appears twice (offset 49)"},
		{"part twice", `{"added_tokens_decoder":{},"added_tokens_decoder":{}}`, "added_tokens_decoder: appears twice (offset 50)"},
		{"no content", `{"added_tokens_decoder":{"5":{"special":true}}}`, "added_tokens_decoder.5: a token without content (offset 45)"},
		{"no object", `{"added_tokens_decoder":{"5":"a"}}`, "added_tokens_decoder.5: is no object (offset 29)"},
		{"no flag", `{"added_tokens_decoder":{"5":{"content":"a","special":1}}}`, "added_tokens_decoder.5.special: is neither true nor false (offset 55)"},
		{"flag twice", `{"added_tokens_decoder":{"5":{"content":"a","special":true,"special":false}}}`, "added_tokens_decoder.5.special: appears twice (offset 69)"},
		{"no token", `{"pad_token":7}`, "pad_token: is no token (offset 14)"},
		{"no list", `{"additional_special_tokens":"a"}`, "additional_special_tokens: is no list of tokens (offset 32)"},
		{"deep", `{"x":` + strings.Repeat("[", 1000), "x[0]"},
		{"half a surrogate pair", `{"x":"\ud800"}`, "x: has half a surrogate pair in a string (offset 12)"},
		{"many", `{"additional_special_tokens":["a"` + many.String() + `]}`, "additional_special_tokens[131072]: is one of more than 131072 tokens"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := readDeclared(fstest.MapFS{configFile: {Data: []byte(c.file)}})
			e, ok := errors.AsType[*Error](err)
			if !ok || !errors.Is(err, ErrFormat) || e.Offset < 0 || e.Offset > int64(len(c.file)) {
				t.Fatalf("got %v", err)
			}
			if got := strings.TrimPrefix(err.Error(), "tokenizers: tokenizer_config.json: "); !strings.HasPrefix(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func FuzzDeclared(f *testing.F) {
	f.Add([]byte(`{"added_tokens_decoder":{"5":{"content":"<a>","special":true}},"pad_token":"<p>","extra_special_tokens":["x"]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		fsys := fstest.MapFS{configFile: {Data: data}}
		d, err := readDeclared(fsys)
		if err != nil {
			if e, ok := errors.AsType[*Error](err); !ok || e.file != configFile || e.field == "" || e.Offset < 0 {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		if !json.Valid(data) {
			t.Fatalf("%q is no JSON", data)
		}
		for i := 1; i < len(d.added); i++ {
			if d.added[i-1].ID >= d.added[i].ID {
				t.Fatal("ids are not in order")
			}
		}
		list, _ := mergeDeclared(nil, 10, func(string) (uint32, bool) { return 0, false }, d)
		if again, changed := mergeDeclared(list, 10, func(string) (uint32, bool) { return 0, false }, d); changed {
			t.Fatalf("merged twice: %v, %v", list, again)
		}
	})
}

// A second table of decoded texts, for the first token, is made again after tokenizer_config.json has added tokens.
func TestConfigAddedDecodes(t *testing.T) {
	fsys := fstest.MapFS{
		"tokenizer.json": {Data: []byte(`{"added_tokens":[],"decoder":{"type":"WordPiece","prefix":"##","cleanup":true},
			"model":{"type":"WordPiece","unk_token":"[UNK]","vocab":{"[UNK]":0,"a":1,"##b":2}}}`)},
		configFile: {Data: []byte(`{"pad_token":"[PAD]"}`)},
	}
	tok, err := Load(fsys, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(tok.AppendDecode(nil, []uint32{1, 2, 1}, false)); got != "ab a" {
		t.Errorf("got %q", got)
	}
}
