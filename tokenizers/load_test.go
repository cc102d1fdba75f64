// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/weft-go/weft/tokenizers/internal/testsize"
)

// base is the mini tokenizer's file as a tree, to be changed by tests.
func base(tb testing.TB) map[string]any {
	tb.Helper()
	data, err := os.ReadFile("mini/tokenizer.json")
	if err != nil {
		tb.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		tb.Fatal(err)
	}
	return m
}

func parseTree(tb testing.TB, m map[string]any) (*Tokenizer, error) {
	tb.Helper()
	data, err := json.Marshal(m)
	if err != nil {
		tb.Fatal(err)
	}
	return parse(data)
}

type object = map[string]any

// Unknown names are refused with an error that contains the name and its path.
func TestRefused(t *testing.T) {
	split := func(m object) object {
		return m["pre_tokenizer"].(object)["pretokenizers"].([]any)[0].(object)
	}
	level := func(m object) object {
		return m["pre_tokenizer"].(object)["pretokenizers"].([]any)[1].(object)
	}
	model := func(m object) object { return m["model"].(object) }
	token := func(m object) object { return m["added_tokens"].([]any)[0].(object) }
	for i, c := range []struct {
		name   string
		change func(m object)
		want   string
		kind   error
	}{
		{"unknown part", func(m object) { m["extra"] = 1 }, "extra: unsupported: is not known", ErrUnsupported},
		{"truncation", func(m object) { m["truncation"] = object{"max_length": 3, "strategy": "OnlySecond"} }, `truncation: unsupported: strategy "OnlySecond"`, ErrUnsupported},
		{"truncation to nothing", func(m object) { m["truncation"] = object{"max_length": 0} }, "truncation: unsupported: max_length 0", ErrUnsupported},
		{"truncation field", func(m object) { m["truncation"] = object{"max_length": 3, "magic": 1} }, `truncation: unsupported: field "magic"`, ErrUnsupported},
		{"padding", func(m object) { m["padding"] = object{"strategy": object{"Fixed": -1}} }, "padding: unsupported: strategy map[Fixed:-1]", ErrUnsupported},
		{"huge padding", func(m object) { m["padding"] = object{"strategy": object{"Fixed": int64(1 << 40)}} }, "", ErrUnsupported},
		{"no padding strategy", func(m object) { m["padding"] = object{"pad_id": 0} }, "padding: has no strategy", ErrFormat},
		{"version", func(m object) { m["version"] = "2.0" }, `version: unsupported: only "1.0", not "2.0"`, ErrUnsupported},
		{"normalizer", func(m object) { m["normalizer"] = object{"type": "Magic"} }, `normalizer: unsupported: normalizer "Magic"`, ErrUnsupported},
		{"nested normalizer", func(m object) {
			m["normalizer"] = object{"type": "Sequence", "normalizers": []any{object{"type": "NFC"}, object{"type": "Magic"}}}
		}, `normalizer.normalizers[1]: unsupported: normalizer "Magic"`, ErrUnsupported},
		{"normalizer field", func(m object) { m["normalizer"] = object{"type": "NFC", "strict": true} }, `normalizer: unsupported: field "strict"`, ErrUnsupported},
		{"pre-tokenizer", func(m object) { m["pre_tokenizer"] = object{"type": "Magic"} }, `pre_tokenizer: unsupported: pre-tokenizer "Magic"`, ErrUnsupported},
		{"charsmap", func(m object) { m["normalizer"] = object{"type": "Precompiled", "precompiled_charsmap": "AAA="} }, "", ErrFormat},
		{"pattern", func(m object) { split(m)["pattern"] = object{"Regex": `(a)\1`} }, "", ErrUnsupported},
		{"behavior", func(m object) { split(m)["behavior"] = "Magic" }, `pre_tokenizer.pretokenizers[0]: unsupported: Split with behavior "Magic"`, ErrUnsupported},
		{"unknown flag", func(m object) { level(m)["magic"] = true }, `pre_tokenizer.pretokenizers[1]: unsupported: field "magic"`, ErrUnsupported},
		{"decoder", func(m object) { m["decoder"] = object{"type": "Magic"} }, `decoder: unsupported: decoder "Magic"`, ErrUnsupported},
		{"post-processor", func(m object) { m["post_processor"] = object{"type": "Magic"} }, `post_processor: unsupported: post-processor "Magic"`, ErrUnsupported},
		{"model", func(m object) { model(m)["type"] = "Magic" }, `model.type: unsupported: model "Magic"`, ErrUnsupported},
		{"model field", func(m object) { model(m)["magic"] = 1 }, `model.magic: unsupported: field "magic"`, ErrUnsupported},
		{"dropout", func(m object) { model(m)["dropout"] = 0.1 }, `model.dropout: unsupported: dropout 0.1`, ErrUnsupported},
		{"unknown unknown", func(m object) { model(m)["byte_fallback"], model(m)["unk_token"] = true, "magic" }, `model.unk_token: "magic" is not in the vocabulary`, ErrFormat},
		{"WordPiece field", func(m object) { model(m)["type"] = "WordPiece" }, "", ErrUnsupported},
		{"WordLevel without unknown", func(m object) { m["model"] = object{"type": "WordLevel", "vocab": object{"a": 0}, "unk_token": "b"} }, `model.unk_token: unsupported: "b" is not in the vocabulary`, ErrUnsupported},
		{"Unigram without unknown", func(m object) { m["model"] = object{"type": "Unigram", "vocab": []any{[]any{"a", 0}}} }, "model: unsupported: a Unigram model without unk_id", ErrUnsupported},
		{"Unigram unknown", func(m object) { m["model"] = object{"type": "Unigram", "unk_id": 7, "vocab": []any{[]any{"a", 0}}} }, "model.unk_id: 7 is not in the vocabulary", ErrFormat},
		{"Unigram score", func(m object) { m["model"] = object{"type": "Unigram", "unk_id": 0, "vocab": []any{[]any{"a", "0"}}} }, "model.vocab[0][1]: is no score", ErrFormat},
		{"two ByteLevels", func(m object) {
			m["pre_tokenizer"] = object{"type": "Sequence", "pretokenizers": []any{level(m), level(m)}}
		}, "pre_tokenizer.pretokenizers[1]: unsupported: a second ByteLevel", ErrUnsupported},
		{"order of decoders", func(m object) {
			m["decoder"] = object{"type": "Sequence", "decoders": []any{object{"type": "Fuse"}, object{"type": "ByteFallback"}}}
		}, "decoder.decoders[1]: unsupported: ByteFallback after Fuse, ByteLevel or ByteFallback", ErrUnsupported},
		{"strip", func(m object) { m["decoder"] = object{"type": "Strip", "content": "  ", "start": 1, "stop": 0} }, "decoder: content is not one character", ErrFormat},
		{"large id", func(m object) { model(m)["vocab"].(object)["x y"] = 1 << 30 }, `model.vocab.x y: vocab: token id 1073741824 is above the limit 2097151`, ErrFormat},
		{"id twice", func(m object) { model(m)["vocab"].(object)["x y"] = 5 }, ``, ErrFormat},
		{"unknown merge", func(m object) { model(m)["merges"] = []any{[]any{"h", "ello, world"}} }, `model.merges[0]: names "ello, world", which is not in the vocabulary`, ErrFormat},
		{"odd merge", func(m object) { model(m)["merges"] = []any{"a b", "a b c"} }, ``, ErrFormat},
		{"added token field", func(m object) { token(m)["magic"] = 1 }, `added_tokens[0]: unsupported: field "magic"`, ErrUnsupported},
		{"tokens that normalize to one", func(m object) {
			m["normalizer"] = object{"type": "Lowercase"}
			for _, content := range []string{"Hi there", "hi THERE"} {
				m["added_tokens"] = append(m["added_tokens"].([]any), object{"content": content, "normalized": true, "special": content[0] == 'H'})
			}
		}, `added_tokens: unsupported: tokens "Hi there" and "hi THERE", which normalize to the same text`, ErrUnsupported},
		{"no type", func(m object) { m["normalizer"] = object{} }, "normalizer: is no object with a type", ErrFormat},
		{"wrong type", func(m object) { level(m)["use_regex"] = 7 }, "", ErrFormat},
		{"sequence field", func(m object) { m["normalizer"] = object{"type": "Sequence", "magic": 1} }, `normalizer.magic: unsupported: field "magic"`, ErrUnsupported},
		{"ByteLevel after a decoder", func(m object) {
			m["decoder"] = object{"type": "Sequence", "decoders": []any{object{"type": "Fuse"}, object{"type": "ByteLevel"}}}
		}, "decoder.decoders[1]: unsupported: ByteLevel after another decoder", ErrUnsupported},
		{"CTC among decoders", func(m object) {
			m["decoder"] = object{"type": "Sequence", "decoders": []any{object{"type": "Fuse"}, object{"type": "CTC", "pad_token": "a", "word_delimiter_token": "b"}}}
		}, "decoder.decoders[1]: unsupported: CTC among other decoders or without its tokens", ErrUnsupported},
		{"field of a template", func(m object) { m["post_processor"] = object{"type": "TemplateProcessing", "trim": true} }, `post_processor: unsupported: field "trim"`, ErrUnsupported},
		{"many frames", func(m object) {
			frame := object{"type": "BertProcessing", "sep": []any{"a", 1}, "cls": []any{"b", 2}}
			m["post_processor"] = object{"type": "Sequence", "processors": slices.Repeat([]any{frame}, 600)}
		}, "post_processor.processors[512]: limit exceeded: 1026 ids around a text, the limit is 1024", ErrLimit},
		{"odd frame", func(m object) {
			m["post_processor"] = object{"type": "BertProcessing", "sep": []any{"a"}, "cls": []any{"b", 2}}
		}, "post_processor: cls and sep must be a token and its id", ErrFormat},
		{"frame beyond the vocabulary", func(m object) {
			m["post_processor"] = object{"type": "BertProcessing", "sep": []any{"a", 1}, "cls": []any{"b", int64(4000000000)}}
		}, "post_processor: limit exceeded: adds the id 4000000000, the limit is 2097151", ErrLimit},
		{"undeclared frame", func(m object) {
			m["post_processor"] = object{"type": "TemplateProcessing", "single": []any{object{"SpecialToken": object{"id": "a", "type_id": 0}}}, "pair": []any{}, "special_tokens": object{}}
		}, `post_processor: special token "a" is not declared`, ErrFormat},
		{"template without text", func(m object) {
			m["post_processor"] = object{"type": "TemplateProcessing", "single": []any{}, "pair": []any{}, "special_tokens": object{}}
		}, "post_processor: unsupported: a template for one text without A", ErrUnsupported},
		{"template of two texts", func(m object) {
			m["post_processor"] = object{"type": "TemplateProcessing", "single": []any{object{"Sequence": object{"id": "B", "type_id": 0}}}, "pair": []any{}, "special_tokens": object{}}
		}, "post_processor: unsupported: a template for one text other than special tokens around A", ErrUnsupported},
		{"no merges and no type", func(m object) { delete(model(m), "type"); delete(model(m), "merges") }, "model: unsupported: a model without type and merges", ErrUnsupported},
		{"no flag", func(m object) { model(m)["ignore_merges"] = 1 }, "model.ignore_merges: is not as expected: 1", ErrFormat},
		{"merge of three", func(m object) { model(m)["merges"] = []any{[]any{"a", "b", "c"}} }, "model.merges[0]: has 3 parts, not 2", ErrFormat},
		{"added token without content", func(m object) { delete(token(m), "content") }, "added_tokens[0]: has no content or no normalized flag", ErrFormat},
		{"key in two spellings", func(m object) { split(m)["Behavior"] = "Removed" }, `pre_tokenizer.pretokenizers[0].behavior: appears twice`, ErrFormat},
		{"flag in two spellings", func(m object) { token(m)["SPECIAL"] = false }, "added_tokens[0].special: appears twice", ErrFormat},
		{"no model", func(m object) { delete(m, "model") }, `model: is missing`, ErrFormat},
	} {
		if i%testsize.Pick(4, 1, 1) != 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			m := base(t)
			c.change(m)
			_, err := parseTree(t, m)
			e, ok := errors.AsType[*Error](err)
			if !ok || !errors.Is(err, c.kind) {
				t.Fatalf("got %v", err)
			}
			got := strings.TrimPrefix(err.Error(), "tokenizers: tokenizer.json: ")
			got = strings.TrimSuffix(got, fmt.Sprintf(" (offset %d)", e.Offset))
			if c.want != "" && got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if e.file != tokenizerFile || e.field == "" {
				t.Errorf("no field: %+v", e)
			}
		})
	}
}

// A truncated file is an error with a position.
func TestTruncated(t *testing.T) {
	data, err := os.ReadFile("mini/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(data)-2; n += 1 + n/97 {
		_, err := parse(data[:n])
		e, ok := errors.AsType[*Error](err)
		if !ok || !errors.Is(err, ErrFormat) || e.Offset < 0 || e.Offset > int64(n) || e.field == "" {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
}

// A hostile file cannot ask for more memory than a multiple of its size.
func TestBoundedMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("large input")
	}
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for name, file := range map[string]string{
		"deep":       strings.Repeat(`{"model":`, 100_000),
		"deep array": `{"model":{"vocab":` + strings.Repeat("[", 100_000),
		"large id":   `{"pre_tokenizer":{"type":"ByteLevel"},"decoder":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":{"a":4294967295},"merges":[]}}`,
		"gap":        `{"pre_tokenizer":{"type":"ByteLevel"},"decoder":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":{"a":2097151},"merges":[]}}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := parse([]byte(file))
		runtime.ReadMemStats(&after)
		if _, ok := errors.AsType[*Error](err); !ok && name != "gap" { // a vocabulary of one character is one
			t.Errorf("%s: %v", name, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 96<<20 {
			t.Errorf("%s: %d bytes allocated", name, n)
		}
	}
	m := base(t)
	m["model"].(object)["vocab"].(object)["far"] = 2097151
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = parse(data)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; err != nil || n > 96<<20 {
		t.Errorf("far: %d bytes allocated, error %v", n, err)
	}
}

// Ids of added tokens continue after the vocabulary, regardless of the ids in the file.
func TestAddedIDs(t *testing.T) {
	m := base(t)
	size := len(m["model"].(object)["vocab"].(object))
	added := func(content string, id int) object {
		return object{"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": false}
	}
	m["added_tokens"] = []any{added("<first>", size+100), added("a", 3), added("<second>", 0), added("", 7)}
	tok, err := parseTree(t, m)
	if err != nil {
		t.Fatal(err)
	}
	letter, _ := tok.modelID("a")
	for token, want := range map[string]uint32{"<first>": uint32(size), "a": letter, "<second>": uint32(size + 1)} {
		if id, ok := tok.TokenID(token); !ok || id != want {
			t.Errorf("%s has id %d, want %d", token, id, want)
		}
	}
	if tok.VocabSize() != size+2 {
		t.Errorf("VocabSize() = %d, want %d", tok.VocabSize(), size+2)
	}
}

func TestFrames(t *testing.T) {
	template := object{
		"type":   "TemplateProcessing",
		"single": []any{object{"SpecialToken": object{"id": "<s>", "type_id": 0}}, object{"Sequence": object{"id": "A", "type_id": 0}}},
		"pair":   []any{},
		"special_tokens": object{
			"<s>": object{"id": "<s>", "ids": []any{7, 8}, "tokens": []any{"<s>", "<t>"}},
		},
	}
	for name, c := range map[string]struct {
		post          any
		before, after []uint32
	}{
		"none":     {nil, nil, nil},
		"template": {template, []uint32{7, 8}, nil},
		"roberta":  {object{"type": "RobertaProcessing", "sep": []any{"</s>", 2}, "cls": []any{"<s>", 1}}, []uint32{1}, []uint32{2}},
		"sequence": {object{"type": "Sequence", "processors": []any{object{"type": "ByteLevel"}, template}}, []uint32{7, 8}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := base(t)
			m["post_processor"] = c.post
			tok, err := parseTree(t, m)
			if err != nil {
				t.Fatal(err)
			}
			before, after := tok.AddedSpecial()
			if !slices.Equal(before, c.before) || !slices.Equal(after, c.after) {
				t.Errorf("frame %v %v", before, after)
			}
			want := slices.Concat(c.before, tok.AppendEncode(nil, "x"), c.after)
			if got := tok.AppendEncodeSpecial(nil, "x"); !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestFiles(t *testing.T) {
	data, err := os.ReadFile("mini/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	fsys := fstest.MapFS{
		"tokenizer.json":         file(string(data)),
		"tokenizer_config.json":  file(`{"eos_token":{"content":"<|im_end|>"},"bos_token":null,"pad_token":"<|endoftext|>","model_max_length":1000000000000000019884624838656,"chat_template":"inline"}`),
		"generation_config.json": file(`{"eos_token_id":[5,6]}`),
	}
	tok, err := Load(fsys, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c := tok.config; tok.NamedToken("eos_token") != "<|im_end|>" || tok.NamedToken("pad_token") != "<|endoftext|>" || tok.NamedToken("bos_token") != "" ||
		tok.NamedToken("unk_token") != "" || tok.MaxLength() != 0 || !slices.Equal(tok.EOS(), []uint32{5, 6}) {
		t.Errorf("%+v", c)
	}
	for _, bad := range []string{`{"eos_token_id":[5,-2]}`, `{"eos_token_id":"<|im_end|>"}`, `{"eos_token_id":[null]}`, `{"eos_token_id":1.5}`} {
		fsys["generation_config.json"] = file(bad)
		if tok, err := Load(fsys, nil); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: got %v, error %v", bad, tok.EOS(), err)
		}
	}
	delete(fsys, "generation_config.json")
	if tok, err = Load(fsys, nil); err != nil {
		t.Fatal(err)
	}
	end, _ := tok.TokenID("<|im_end|>")
	if !slices.Equal(tok.EOS(), []uint32{end}) {
		t.Errorf("%+v", tok.config)
	}
	fsys["tokenizer_config.json"] = file(`{"eos_token":`)
	if _, err = Load(fsys, nil); !errors.Is(err, ErrFormat) {
		t.Errorf("got %v", err)
	}
	if _, err = Load(os.DirFS(t.TempDir()), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// Spellings and ids are two sides of one table.
func TestSpellings(t *testing.T) {
	tok := miniTokenizer(t)
	for id := range uint32(tok.VocabSize()) {
		s, ok := tok.Token(id)
		if !ok {
			t.Fatalf("no token %d", id)
		}
		if back, ok := tok.TokenID(s); !ok || back != id {
			t.Fatalf("token %d is %q, which is %d", id, s, back)
		}
	}
	if _, ok := tok.Token(uint32(tok.VocabSize())); ok {
		t.Error("a token beyond the last")
	}
	if _, ok := tok.TokenID("no such token"); ok {
		t.Error("found a token that is not there")
	}
	if s, _ := tok.Token(tok.AppendEncode(nil, " the")[0]); s != "Ġthe" {
		t.Errorf("got %q", s)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(`{"pre_tokenizer":{"type":"ByteLevel"},"decoder":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":{"a":0},"merges":["a a"]},"added_tokens":[{"id":1,"content":"x","normalized":false}]}`))
	f.Add([]byte(`{"version":"1.0","normalizer":{"type":"Sequence","normalizers":[]},"post_processor":{"type":"TemplateProcessing"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := parse(data); err != nil {
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Fatalf("%T: %v", err, err)
			}
		}
	})
}
