// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/testsize"
)

// tekkenTree is a tekken.json made from mini's vocabulary: the real files cannot be kept here. Its first 256
// tokens are the bytes in order, as in those.
func tekkenTree(tb testing.TB, special int) object {
	tb.Helper()
	tok := miniTokenizer(tb)
	var list []any
	for id := range uint32(tok.vocab.Len()) {
		b := tok.vocab.Bytes(id)
		entry := object{"rank": id, "token_bytes": base64.StdEncoding.EncodeToString(b), "token_str": nil}
		if utf8.Valid(b) {
			entry["token_str"] = string(b)
		}
		list = append(list, entry)
	}
	return object{
		"config": object{
			"pattern": miniCut, "num_vocab_tokens": len(list), "default_vocab_size": len(list) - 10 + special,
			"default_num_special_tokens": special, "version": "v3",
		},
		"vocab": list, "version": 1, "type": "Tekken", "multimodal": object{"image_patch_size": 16},
	}
}

func tekkenFrom(tb testing.TB, m object) (*Tokenizer, error) {
	tb.Helper()
	data, err := json.Marshal(m)
	if err != nil {
		tb.Fatal(err)
	}
	return loadTekken(data, tekkenFile)
}

func TestTekken(t *testing.T) {
	mini := miniTokenizer(t)
	const special = 30
	tok, err := tekkenFrom(t, tekkenTree(t, special))
	if err != nil {
		t.Fatal(err)
	}
	if want := mini.vocab.Len() - 10 + special; tok.VocabSize() != want {
		t.Errorf("%d ids, want %d", tok.VocabSize(), want)
	}
	// mini's last tokens do not count: the text must be free of them.
	const text = "func main() { fmt.Println(\"Hello, 世界\") }\n\n\t// don't 12345\n"
	var want []uint32
	for _, id := range mini.AppendEncode(nil, text) {
		want = append(want, id+special)
	}
	ids := tok.AppendEncode(nil, text)
	if !slices.Equal(ids, want) {
		t.Errorf("got %v, want %v", ids, want)
	}
	if got := tok.AppendEncodeSpecial(nil, text); !slices.Equal(got, append([]uint32{1}, want...)) {
		t.Errorf("framed: %v", got)
	}
	if got := string(tok.AppendDecode(nil, ids, false)); got != text {
		t.Errorf("decoded %q", got)
	}
	for id, name := range map[uint32]string{0: "<unk>", 3: "[INST]", 19: "[TOOL_CONTENT]", 20: "<SPECIAL_20>", 29: "<SPECIAL_29>"} {
		if got, _ := tok.Token(id); got != name || !tok.IsSpecial(id) {
			t.Errorf("id %d is %q, want %q", id, got, name)
		}
	}
	if got := tok.AppendEncode(nil, "[INST]a</s>"); len(got) != 3 || got[0] != 3 || got[2] != 2 {
		t.Errorf("control tokens: %v", got)
	}
	if got := tok.AppendEncodeSegments(nil, []Segment{{Text: "[INST]"}}); slices.Contains(got, 3) {
		t.Errorf("from untrusted text: %v", got)
	}
	if tok.NamedToken("bos_token") != "<s>" || tok.NamedToken("eos_token") != "</s>" || tok.NamedToken("pad_token") != "<pad>" || !slices.Equal(tok.EOS(), []uint32{2}) {
		t.Errorf("%+v", tok.config)
	}
	// A newer file lists its tokens; Load finds it in a directory.
	m := tekkenTree(t, special)
	m["config"].(object)["version"] = "v13"
	m["special_tokens"] = []any{
		object{"rank": 0, "token_str": "<unk>", "is_control": true},
		object{"rank": 1, "token_str": "<s>", "is_control": true},
		object{"rank": 2, "token_str": "[THINK]", "is_control": false},
	}
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if tok, err = Load(fstest.MapFS{tekkenFile: {Data: data}}, nil); err != nil {
		t.Fatal(err)
	}
	if id, _ := tok.TokenID("[THINK]"); id != 2 || !tok.IsSpecial(2) || len(tok.EOS()) != 0 {
		t.Errorf("[THINK] is %d, EOS %v", id, tok.EOS())
	}
	if name, _ := tok.Token(3); name != "<SPECIAL_3>" {
		t.Errorf("id 3 is %q", name)
	}
}

func TestTekkenRefused(t *testing.T) {
	config := func(m object) object { return m["config"].(object) }
	entry := func(m object, i int) object { return m["vocab"].([]any)[i].(object) }
	list := func(tokens ...any) []any { return tokens }
	for i, c := range []struct {
		name   string
		change func(m object)
		want   string
		kind   error
	}{
		{"no config", func(m object) { delete(m, "config") }, "config: is missing", ErrFormat},
		{"no vocab", func(m object) { delete(m, "vocab") }, "vocab: is missing", ErrFormat},
		{"no pattern", func(m object) { delete(config(m), "pattern") }, "config.pattern: is missing", ErrFormat},
		{"unknown pattern", func(m object) { config(m)["pattern"] = `(y)\1` }, "", ErrUnsupported},
		{"unknown version", func(m object) { config(m)["version"] = "v99" }, `config.version: unsupported: version "v99"`, ErrUnsupported},
		{"version is a number", func(m object) { config(m)["version"] = 3 }, "", ErrFormat},
		{"no list in a newer file", func(m object) { config(m)["version"] = "v11" }, "special_tokens: is missing, which v11 does not allow", ErrFormat},
		{"huge size", func(m object) { config(m)["default_vocab_size"] = int64(1 << 31) }, "config.default_vocab_size: exceeds the limit 2097152", ErrFormat},
		{"negative size", func(m object) { config(m)["default_vocab_size"] = -1 }, "config.default_vocab_size: is not an unsigned integer", ErrFormat},
		{"many special", func(m object) {
			config(m)["default_num_special_tokens"] = 1 << 20
			config(m)["default_vocab_size"] = 1<<20 + 300
		}, "config: limit exceeded: 1048576 special tokens, the limit is 16384", ErrLimit},
		{"no room", func(m object) { config(m)["default_vocab_size"] = 285 }, "config: 285 ids do not hold 30 special tokens and all bytes", ErrFormat},
		{"vocab too short", func(m object) { config(m)["default_vocab_size"] = 5000 }, fmt.Sprintf("vocab: has %d entries, not 4970", len(tekkenTree(t, 30)["vocab"].([]any))), ErrFormat},
		{"few special", func(m object) { config(m)["default_num_special_tokens"] = 5 }, "config.default_num_special_tokens: 20 special tokens, but only 5 ids", ErrFormat},
		{"rank at the wrong position", func(m object) { entry(m, 300)["rank"] = 299 }, "vocab[300].rank: is 299, not 300 as its position", ErrFormat},
		{"byte at the wrong position", func(m object) { entry(m, 65)["token_bytes"] = "QQ=="; entry(m, 66)["token_bytes"] = "QQ==" }, "vocab[66]: is not the byte 0x42", ErrFormat},
		{"no base64", func(m object) { entry(m, 300)["token_bytes"] = "QQ=" }, "vocab[300]: has token_bytes that are not base64", ErrFormat},
		{"line end in base64", func(m object) { entry(m, 300)["token_bytes"] = "QQ=\n=" }, "vocab[300]: has token_bytes that are not base64", ErrFormat},
		{"empty token", func(m object) { entry(m, 300)["token_bytes"] = "" }, "vocab[300]: has 0 token_bytes, not 1 to 1024", ErrFormat},
		{"token twice", func(m object) { entry(m, 300)["token_bytes"] = entry(m, 301)["token_bytes"] }, "", ErrFormat},
		{"missing field", func(m object) { delete(entry(m, 300), "token_str") }, "vocab[300]: has not all of rank, token_bytes and token_str", ErrFormat},
		{"unknown field", func(m object) { entry(m, 300)["score"] = 1 }, `vocab[300].score: unsupported: field "score"`, ErrUnsupported},
		{"special at the wrong position", func(m object) {
			m["special_tokens"] = list(object{"rank": 1, "token_str": "<s>", "is_control": true})
		}, "special_tokens[0].rank: is 1, not 0 as its position", ErrFormat},
		{"special twice", func(m object) {
			m["special_tokens"] = list(object{"rank": 0, "token_str": "<s>"}, object{"rank": 1, "token_str": "<s>"})
		}, `special_tokens[1]: "<s>" appears twice`, ErrFormat},
		{"special without name", func(m object) { m["special_tokens"] = list(object{"rank": 0}) }, "special_tokens[0]: special token 0 has no rank or no token_str", ErrFormat},
		{"filler is taken", func(m object) { m["special_tokens"] = list(object{"rank": 0, "token_str": "<SPECIAL_7>"}) }, "special_tokens: <SPECIAL_7> is needed for id 7", ErrFormat},
	} {
		if i%testsize.Pick(4, 1, 1) != 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			m := tekkenTree(t, 30)
			c.change(m)
			_, err := tekkenFrom(t, m)
			e, ok := errors.AsType[*Error](err)
			if !ok || !errors.Is(err, c.kind) || e.file != tekkenFile || e.field == "" {
				t.Fatalf("got %v", err)
			}
			got := strings.TrimPrefix(err.Error(), "tokenizers: tekken.json: ")
			got = strings.TrimSuffix(got, fmt.Sprintf(" (offset %d)", e.Offset))
			if c.want != "" && got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// A file of a few bytes cannot ask for much memory.
func TestTekkenBounded(t *testing.T) {
	file := `{"config":{"pattern":"x","version":"v3","default_vocab_size":2097152,"default_num_special_tokens":16384},"vocab":[` +
		strings.Repeat(`{},`, 10) + `{}]}`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := loadTekken([]byte(file), tekkenFile)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, ErrFormat) || n > 16<<20 {
		t.Errorf("%d bytes allocated, error %v", n, err)
	}
}

func FuzzTekken(f *testing.F) {
	data, err := json.Marshal(tekkenTree(f, 30))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data[:2000])
	f.Add([]byte(`{"config":{"pattern":"x","version":"v3","default_vocab_size":300,"default_num_special_tokens":30},"vocab":[{"rank":0,"token_bytes":"AA==","token_str":null}],"special_tokens":[{"rank":0,"token_str":"<s>"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := loadTekken(data, tekkenFile); err != nil {
			if e, ok := errors.AsType[*Error](err); !ok || e.file != tekkenFile || e.Offset > int64(len(data)) {
				t.Fatalf("%T: %v", err, err)
			}
		}
	})
}
