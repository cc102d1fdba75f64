// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/weft-go/weft/tokenizers/internal/bytelevel"
)

// byteVocab returns a vocab.json of all bytes and some tokens, which begin at 256.
func byteVocab(tokens ...string) string {
	ids := map[string]int{}
	for b := range 256 {
		ids[string(bytelevel.Encode(nil, []byte{byte(b)}))] = b
	}
	for i, s := range tokens {
		ids[s] = 256 + i
	}
	data, err := json.Marshal(ids)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// Each class has its own rules: what it cuts, adds and normalizes.
func TestVocab(t *testing.T) {
	const merges = "#version: 0.2\n1 2\n12 3\n123 4\na b\nĠ ab\n"
	gpt := byteVocab("12", "123", "1234", "ab", "Ġab", "<|endoftext|>", "<s>", "</s>")
	words := "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nab\n##c\nAB\né\n##é\n"
	for _, c := range []struct {
		name, vocab, config, model, text string
		want                             []uint32
		decoded                          string
	}{
		{"GPT2", gpt, `{"tokenizer_class":"GPT2TokenizerFast"}`, "", "1234 ab<|endoftext|>", []uint32{258, 260, 261}, "1234 ab<|endoftext|>"},
		{"model type", gpt, `{}`, `{"model_type":"gpt2"}`, "1234", []uint32{258}, "1234"},
		{"space and BOS", gpt, `{"tokenizer_class":"GPT2Tokenizer","add_prefix_space":true,"add_bos_token":true}`, "", "ab", []uint32{261, 260}, "<|endoftext|> ab"},
		{"Roberta", gpt, `{"tokenizer_class":"RobertaTokenizer"}`, "", "ab", []uint32{262, 259, 263}, "<s>ab</s>"},
		{"named tokens", gpt, `{"tokenizer_class":"RobertaTokenizer","cls_token":"<cls>","additional_special_tokens":["<t>"]}`, "", "<t>", []uint32{266, 268, 263}, "<cls><t></s>"},
		{"Qwen2", gpt, `{"tokenizer_class":"Qwen2Tokenizer","added_tokens_decoder":{"264":{"content":"<|im_end|>","special":true}}}`, "", "1234e\u0301<|im_end|>", []uint32{'1', '2', '3', '4', 0xC3, 0xA9, 264}, "1234é<|im_end|>"},
		{"Bert", words, `{"tokenizer_class":"BertTokenizer"}`, "", "ABC x é[MASK]", []uint32{2, 5, 6, 1, 1, 4, 3}, "[CLS] abc [UNK] [UNK] [MASK] [SEP]"},
		{"cased", words, `{"tokenizer_class":"DistilBertTokenizer","do_lower_case":false}`, "", "AB é", []uint32{2, 7, 8, 3}, "[CLS] AB é [SEP]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := fstest.MapFS{"tokenizer_config.json": {Data: []byte(c.config)}}
			if c.vocab == words {
				fsys["vocab.txt"] = &fstest.MapFile{Data: []byte(c.vocab)}
			} else {
				fsys["vocab.json"] = &fstest.MapFile{Data: []byte(c.vocab)}
				fsys["merges.txt"] = &fstest.MapFile{Data: []byte(merges)}
			}
			if c.model != "" {
				fsys["config.json"] = &fstest.MapFile{Data: []byte(c.model)}
			}
			tok, err := Load(fsys, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := tok.AppendEncodeSpecial(nil, c.text)
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if text := string(tok.AppendDecode(nil, got, false)); text != c.decoded {
				t.Errorf("decoded %q, want %q", text, c.decoded)
			}
		})
	}
}

// Files that are missing or damaged are named.
func TestVocabRefused(t *testing.T) {
	const gpt, bert = `{"tokenizer_class":"GPT2Tokenizer"}`, `{"tokenizer_class":"BertTokenizer"}`
	vocab := byteVocab("ab", "<|endoftext|>")
	for _, c := range []struct {
		name, want string
		files      map[string]string
	}{
		{"no merges", "merges.txt is missing; found tokenizer_config.json, vocab.json", map[string]string{"vocab.json": vocab, "tokenizer_config.json": gpt}},
		{"no vocabulary", "tokenizer.json (or tokenizer.model, tiktoken.model, tekken.json, vocab.json, vocab.txt) is missing; found merges.txt, tokenizer_config.json", map[string]string{"merges.txt": "", "tokenizer_config.json": gpt}},
		{"no class", `vocab.json: tokenizer_class: unsupported: the rules of this vocabulary: neither tokenizer_config.json names a known tokenizer_class nor config.json a known model_type ("")`, map[string]string{"vocab.json": vocab, "merges.txt": ""}},
		{"another class", `tokenizer_config.json: tokenizer_class: unsupported: "WhisperTokenizer" with vocab.json; convert the model to tokenizer.json`, map[string]string{"vocab.json": vocab, "merges.txt": "", "tokenizer_config.json": `{"tokenizer_class":"WhisperTokenizer"}`}},
		{"class of other files", `tokenizer_config.json: tokenizer_class: unsupported: "BertTokenizer" with vocab.json; convert the model to tokenizer.json`, map[string]string{"vocab.json": vocab, "merges.txt": "", "tokenizer_config.json": bert}},
		{"model type of other files", `config.json: model_type: unsupported: "bart" with vocab.txt; convert the model to tokenizer.json`, map[string]string{"vocab.txt": "a\n", "config.json": `{"model_type":"bart"}`}},
		{"bad merge", "merges.txt: line 2: is not two tokens with a space between", map[string]string{"vocab.json": vocab, "merges.txt": "a b\nab\n", "tokenizer_config.json": gpt}},
		{"unknown merge", `merges.txt: merges[0]: names "bc", which is not in the vocabulary`, map[string]string{"vocab.json": vocab, "merges.txt": "b c\n", "tokenizer_config.json": gpt}},
		{"damaged vocabulary", "vocab.json: document: ends inside a string (offset 3)", map[string]string{"vocab.json": `{"a`, "merges.txt": "", "tokenizer_config.json": gpt}},
		{"more than a vocabulary", "vocab.json: document: has ',' after its end (offset 2)", map[string]string{"vocab.json": `{},"normalizer":{}`, "merges.txt": "", "tokenizer_config.json": gpt}},
		{"token twice", `vocab.txt: vocab: vocab: tokens 1 and 2 have the same bytes "a"`, map[string]string{"vocab.txt": "[UNK]\na\na\n", "tokenizer_config.json": bert}},
		{"no frame", `vocab.txt: model.unk_token: unsupported: "[UNK]" is not in the vocabulary`, map[string]string{"vocab.txt": "a\n", "tokenizer_config.json": bert}},
		{"id differs", `tokenizer_config.json: added_tokens_decoder: "<t>" has the id 258, not 300`, map[string]string{"vocab.json": vocab, "merges.txt": "", "tokenizer_config.json": `{"tokenizer_class":"GPT2Tokenizer","added_tokens_decoder":{"300":{"content":"<t>"}}}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := fstest.MapFS{}
			for name, s := range c.files {
				fsys[name] = &fstest.MapFile{Data: []byte(s)}
			}
			_, err := Load(fsys, nil)
			if err == nil || strings.TrimPrefix(err.Error(), "tokenizers: ") != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// Directories with nothing but the vocabularies of published files yield what those files yield.
func TestVocabGolden(t *testing.T) {
	for _, c := range []struct{ name, class string }{
		{"gpt2", "GPT2Tokenizer"}, {"qwen2.5", "Qwen2Tokenizer"}, {"roberta", "RobertaTokenizer"}, {"clip", "CLIPTokenizer"}, {"bert-base-uncased", "BertTokenizer"}, {"bert-base-cased", "BertTokenizer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(sharedDir(t), c.name)
			data, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
			if err != nil {
				t.Skip(err)
			}
			var f struct {
				Model struct {
					Vocab  map[string]int
					Merges []json.RawMessage
				}
			}
			if err := json.Unmarshal(data, &f); err != nil {
				t.Fatal(err)
			}
			full, err := Load(os.DirFS(dir), nil)
			if err != nil {
				t.Fatal(err)
			}
			decoder := map[string]any{}
			for _, a := range full.AddedTokens() {
				decoder[fmt.Sprint(a.ID)] = map[string]any{"content": a.Content, "special": a.Special, "lstrip": a.lStrip, "rstrip": a.rStrip, "normalized": a.normalized}
			}
			config, err := json.Marshal(map[string]any{"tokenizer_class": c.class, "added_tokens_decoder": decoder, "do_lower_case": c.name != "bert-base-cased"})
			if err != nil {
				t.Fatal(err)
			}
			fsys := fstest.MapFS{"tokenizer_config.json": {Data: config}}
			if len(f.Model.Merges) == 0 {
				lines := make([]string, len(f.Model.Vocab))
				for s, id := range f.Model.Vocab {
					lines[id] = s
				}
				fsys["vocab.txt"] = &fstest.MapFile{Data: []byte(strings.Join(lines, "\n") + "\n")}
			} else {
				vocab, err := json.Marshal(f.Model.Vocab)
				if err != nil {
					t.Fatal(err)
				}
				merges := "#version: 0.2\n"
				var b strings.Builder
				b.WriteString(merges)
				for _, m := range f.Model.Merges {
					var s string
					if json.Unmarshal(m, &s) != nil {
						var pair []string
						if err := json.Unmarshal(m, &pair); err != nil {
							t.Fatal(err)
						}
						s = strings.Join(pair, " ")
					}
					b.WriteString(s + "\n")
				}
				fsys["vocab.json"] = &fstest.MapFile{Data: vocab}
				fsys["merges.txt"] = &fstest.MapFile{Data: []byte(b.String())}
			}
			tok, err := Load(fsys, nil)
			if err != nil {
				t.Fatal(err)
			}
			failed := 0
			for _, g := range readGolden(t, filepath.Join(dir, "golden.jsonl")) {
				if bad := g.check(tok); bad != "" {
					if failed++; failed < 5 {
						t.Errorf("(%s) %.100q: %.300s", g.C, g.Text, bad)
					}
				}
			}
			if failed > 0 {
				t.Errorf("%d vectors differ", failed)
			}
		})
	}
}

// Any files are read or refused. What is read encodes and decodes any text.
func FuzzVocab(f *testing.F) {
	const words = "[UNK]\n[CLS]\n[SEP]\n[PAD]\n[MASK]\nab\n##c\n"
	vocab := byteVocab("ab", "<|endoftext|>", "<s>", "</s>")
	for _, class := range []string{"GPT2Tokenizer", "RobertaTokenizer", "Qwen2Tokenizer", "CLIPTokenizer"} {
		f.Add(vocab, "#version: 0.2\na b\n", `{"tokenizer_class":"`+class+`","add_bos_token":true}`, `{"<t>":260}`, "ab 12é\xff<t>")
	}
	f.Add(words, "", `{"tokenizer_class":"BertTokenizer","do_lower_case":false}`, `{}`, "abc ab [MASK]")
	f.Fuzz(func(t *testing.T, vocab, merges, config, added, text string) {
		if len(vocab)+len(merges)+len(config)+len(added) > 1<<16 {
			return
		}
		fsys := fstest.MapFS{"tokenizer_config.json": {Data: []byte(config)}, "added_tokens.json": {Data: []byte(added)}}
		if strings.HasPrefix(vocab, "{") {
			fsys["vocab.json"] = &fstest.MapFile{Data: []byte(vocab)}
			fsys["merges.txt"] = &fstest.MapFile{Data: []byte(merges)}
		} else {
			fsys["vocab.txt"] = &fstest.MapFile{Data: []byte(vocab)}
		}
		tok, err := Load(fsys, nil)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "tokenizers: ") && !strings.Contains(err.Error(), " is missing") {
				t.Fatal(err)
			}
			return
		}
		ids := tok.AppendEncodeSpecial(nil, text)
		s := tok.NewStream(false, nil)
		var out []byte
		for _, id := range ids {
			out = s.Append(out, id)
		}
		if got, want := string(s.Finish(out)), string(tok.AppendDecode(nil, ids, false)); got != want {
			t.Fatalf("%q streamed, %q at once", got, want)
		}
	})
}
