// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/weft-go/weft/tokenizers/internal/testsize"
)

// ranksOf prints mini's vocabulary as a rank file. Its tokens are in the order of their merges, so that an id is a
// rank.
func ranksOf(tb testing.TB) []byte {
	tb.Helper()
	tok := miniTokenizer(tb)
	var b bytes.Buffer
	for id := range uint32(tok.vocab.Len()) {
		fmt.Fprintf(&b, "%s %d\n", base64.StdEncoding.EncodeToString(tok.vocab.Bytes(id)), id)
	}
	return b.Bytes()
}

// A rank file made from mini yields mini's ids, except for words that its merges do not reach.
func TestTiktoken(t *testing.T) {
	mini := miniTokenizer(t)
	tok, err := loadTiktoken(ranksOf(t), tiktokenFile, Options{
		Pattern: miniCut, Added: mini.AddedTokens(), Tokens: mini.vocab.Count(), BOS: "<|endoftext|>",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := mini.AppendEncode(nil, sample)
	if got := tok.AppendEncode(nil, sample); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	end, _ := mini.TokenID("<|endoftext|>")
	if got := tok.AppendEncodeSpecial(nil, sample); !slices.Equal(got, append([]uint32{end}, want...)) {
		t.Errorf("framed: %v", got)
	}
	if got := string(tok.AppendDecode(nil, want, false)); got != sample {
		t.Errorf("decoded %q", got)
	}
	if tok.VocabSize() != mini.VocabSize() {
		t.Errorf("%d ids, want %d", tok.VocabSize(), mini.VocabSize())
	}
}

const miniCut = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

func TestTiktokenRefused(t *testing.T) {
	ranks := string(ranksOf(t))
	lines := strings.SplitAfter(ranks, "\n")
	n := len(lines) - 1
	for _, c := range []struct {
		name, file string
		opt        Options
		want       string
		kind       error
	}{
		{"no pattern", ranks, Options{}, "pattern: unsupported: neither a family nor a pattern is given", ErrUnsupported},
		{"unknown family", ranks, Options{Family: "x"}, `family: unsupported: the vocabulary "x"`, ErrUnsupported},
		{"unknown pattern", ranks, Options{Pattern: `(y)\1`}, "", ErrUnsupported},
		{"specials not given", ranks, Options{Family: "llama3"}, "special tokens: unsupported: those of llama3 differ by release and are not given", ErrUnsupported},
		{"another vocabulary", ranks, Options{Family: "o200k_harmony"}, fmt.Sprintf("line %d: ends with %d tokens, not 199998 (offset %d)", n, n, len(ranks)), ErrFormat},
		{"cut between lines", strings.Join(lines[:1000], ""), Options{Pattern: miniCut, Tokens: n}, "", ErrFormat},
		{"cut in a line", ranks[:len(ranks)-6], Options{Pattern: miniCut}, "", ErrFormat},
		{"missing byte", strings.Join(lines[1:], ""), Options{Pattern: miniCut}, "ranks: unsupported: no token for the byte 0x00", ErrUnsupported},
		{"taken id", ranks, Options{Pattern: miniCut, Added: []AddedToken{{ID: 65, Content: "<x>"}}}, `special tokens: "<x>" has the id 65 of the token "A"`, ErrFormat},
		{"id twice", ranks, Options{Pattern: miniCut, Added: []AddedToken{{ID: 5000, Content: "<x>"}, {ID: 5000, Content: "<y>"}}}, "special tokens: unsupported: two added tokens with id 5000", ErrUnsupported},
		{"large id", ranks, Options{Pattern: miniCut, Added: []AddedToken{{ID: 1 << 30, Content: "<x>"}}}, "special tokens: limit exceeded: id 1073741824, the limit is 2097151", ErrLimit},
		{"text twice", ranks, Options{Pattern: miniCut, Added: []AddedToken{{ID: 5000, Content: "<x>"}, {ID: 5001, Content: "<x>"}}}, `special tokens: "<x>" appears twice`, ErrFormat},
		{"empty text", ranks, Options{Pattern: miniCut, Added: []AddedToken{{ID: 5000}}}, "special tokens: that with id 5000 is empty", ErrFormat},
		{"no BOS", ranks, Options{Pattern: miniCut, BOS: "<s>"}, `special tokens: no "<s>" among them`, ErrFormat},
		{"bad line", "YQ== 0\nb\n", Options{Pattern: miniCut}, "line 2: ends without a rank (offset 8)", ErrFormat},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := loadTiktoken([]byte(c.file), tiktokenFile, c.opt)
			e, ok := errors.AsType[*Error](err)
			if !ok || !errors.Is(err, c.kind) || e.file != tiktokenFile || e.field == "" {
				t.Fatalf("got %+v", err)
			}
			if got := strings.TrimPrefix(err.Error(), "tokenizers: tiktoken.model: "); c.want != "" && got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Directories without tokenizer.json.
func TestOtherFiles(t *testing.T) {
	ranks := ranksOf(t)
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	glm := file(`{"added_tokens_decoder":{"4001":{"content":"<|user|>","special":true},"4000":{"content":"<think>","normalized":false}},"eos_token":"<|user|>"}`)
	for _, c := range []struct {
		name string
		fsys fstest.MapFS
		want string // of the error
	}{
		{"family by model type", fstest.MapFS{"tiktoken.model": {Data: ranks}, "config.json": file(`{"model_type":"glm4"}`), configFile: glm}, ""},
		{"another name", fstest.MapFS{"glm.tiktoken": {Data: ranks}, "config.json": file(`{"model_type":"chatglm"}`), configFile: glm}, ""},
		{"tokenizer.model", fstest.MapFS{"tokenizer.model": {Data: ranks}, "config.json": file(`{"model_type":"chatglm"}`), configFile: glm}, ""},
		{"SentencePiece", fstest.MapFS{"tokenizer.model": file("\n\x03\n\x01a")}, "tokenizer.model: pieces: no unknown piece"},
		{"nothing", fstest.MapFS{}, "tokenizer.json (or tokenizer.model, tiktoken.model, tekken.json, vocab.json, vocab.txt) is missing; the directory is empty"},
		{"two", fstest.MapFS{"a.tiktoken": {Data: ranks}, "b.tiktoken": {Data: ranks}}, "b.tiktoken: unsupported: one of several rank files"},
		{"no model type", fstest.MapFS{"tiktoken.model": {Data: ranks}}, "tiktoken.model: family: unsupported: unknown vocabulary: config.json has no model_type; set tokenizers.Options.Family or Pattern"},
		{"unknown model type", fstest.MapFS{"tiktoken.model": {Data: ranks}, "config.json": file(`{"model_type":"opt"}`)}, `tiktoken.model: family: unsupported: unknown vocabulary: model_type "opt"; set tokenizers.Options.Family or Pattern`},
		{"no special tokens", fstest.MapFS{"tiktoken.model": {Data: ranks}, "config.json": file(`{"model_type":"glm4"}`)}, "tiktoken.model: special tokens: unsupported: those of glm4 differ by release and are not given"},
		{"broken config", fstest.MapFS{"tiktoken.model": {Data: ranks}, "config.json": file(`{"model_type":"glm4`)}, "config.json: model_type: ends inside a string (offset 19)"},
		{"broken tokenizer_config", fstest.MapFS{"tiktoken.model": {Data: ranks}, "config.json": file(`{"model_type":"glm4"}`), configFile: file(`{"added_tokens_decoder":{"x":{}}}`)}, "tokenizer_config.json: added_tokens_decoder.x: is no id (offset 29)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tok, err := Load(c.fsys, nil)
			if c.want != "" {
				if strings.TrimPrefix(err.Error(), "tokenizers: ") != c.want {
					t.Errorf("got  %v\nwant %s", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if id, ok := tok.TokenID("<|user|>"); !ok || id != 4001 || !tok.IsSpecial(id) {
				t.Errorf("<|user|> is %d", id)
			}
			if end := tok.EOS(); !slices.Equal(end, []uint32{4001}) {
				t.Errorf("EOS() = %v", end)
			}
			if id, ok := tok.TokenID("<think>"); !ok || id != 4000 || tok.IsSpecial(id) {
				t.Errorf("<think> is %d", id)
			}
		})
	}
}

// Published rank files give what the published tokenizer.json gives.
func TestTiktokenGolden(t *testing.T) {
	for i, c := range []struct {
		name, config string
		options      *Options // nil: inferred from the directory
	}{
		{"gpt-oss", `{"model_type":"gpt_oss"}`, nil},
		{"kimi-k2", `{"model_type":"kimi_k2"}`, nil},
		{"kimi-k2", "", nil}, // known by its tokenizer class
		{"glm-4.5", "", &Options{Family: "glm4"}},
		{"phi-4", "", &Options{Pattern: cutLlama3, Tokens: 100256}},
	} {
		if i%testsize.Pick(4, 4, 1) != 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(sharedDir(t), c.name)
			fsys := fstest.MapFS{}
			for _, name := range []string{tiktokenFile, configFile} {
				if data, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
					fsys[name] = &fstest.MapFile{Data: data}
				} else if !errors.Is(err, fs.ErrNotExist) {
					t.Fatal(err)
				}
			}
			if c.config != "" {
				fsys["config.json"] = &fstest.MapFile{Data: []byte(c.config)}
			}
			full, err := Load(os.DirFS(dir), nil)
			if err != nil {
				t.Fatal(err)
			}
			var tok *Tokenizer
			if c.options == nil {
				tok, err = Load(fsys, nil)
			} else {
				c.options.Added = full.AddedTokens()
				tok, err = loadTiktoken(fsys[tiktokenFile].Data, tiktokenFile, *c.options)
			}
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(tok.AddedTokens(), full.AddedTokens()) {
				t.Errorf("added tokens differ")
			}
			for _, g := range readGolden(t, filepath.Join(dir, "golden.jsonl")) {
				if diff := g.check(tok); diff != "" {
					t.Fatal(diff)
				}
			}
		})
	}
}

// OpenAI's rank files, by the name of their vocabulary, by their file name and by tiktoken's pat_str.
func TestTiktokenPublished(t *testing.T) {
	for _, c := range []struct {
		name, file, pattern string
		families            []string // with the ids of name; the first is that of the file name
	}{
		{"r50k", "r50k_base.tiktoken", cutR50K, []string{"r50k_base", "gpt2"}},
		{"p50k", "p50k_base.tiktoken", cutR50K, []string{"p50k_base"}},
		{"cl100k", "cl100k_base.tiktoken", cutCL100K, []string{"cl100k_base"}},
		{"o200k", "o200k_base.tiktoken", cutO200K, []string{"o200k_base"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fsys := os.DirFS(filepath.Join(sharedDir(t), "_tiktoken", c.name))
			options := []*Options{nil, {File: c.file, Pattern: c.pattern}}
			for _, family := range c.families {
				options = append(options, &Options{Family: family})
			}
			var special []AddedToken
			for _, opt := range options {
				if opt != nil && opt.Pattern != "" {
					opt.Added = special
				}
				tok, err := Load(fsys, opt)
				if err != nil {
					t.Fatalf("%+v: %v", opt, err)
				}
				special = tok.AddedTokens()
				for _, g := range readTiktoken(t, filepath.Join(sharedDir(t), "_tiktoken", c.name, "golden.jsonl")) {
					if got := tok.AppendEncodeSegments(nil, []Segment{{Text: g.Text}}); !slices.Equal(got, g.IDs) {
						t.Errorf("%+v: %.200q: got %v, want %v", opt, g.Text, got, g.IDs)
					}
					want := g.IDs
					if g.Parsed != nil {
						want = g.Parsed
					}
					if got := tok.AppendEncode(nil, g.Text); !slices.Equal(got, want) {
						t.Errorf("%+v: special tokens of %.200q: got %v, want %v", opt, g.Text, got, want)
					}
					if got := string(tok.AppendDecode(nil, g.IDs, false)); got != g.Text {
						t.Errorf("%+v: %.200q becomes %.200q", opt, g.Text, got)
					}
				}
			}
		})
	}
}

// tiktokenLine is a line of golden.jsonl made by tiktoken.
type tiktokenLine struct {
	Text   string
	IDs    []uint32
	Parsed []uint32 `json:"ids_special_parsed"` // with special tokens; IDs if absent
}

func readTiktoken(t *testing.T, file string) (out []tiktokenLine) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(bytes.NewReader(data)); d.More(); {
		var g tiktokenLine
		if err := d.Decode(&g); err != nil {
			t.Fatal(err)
		}
		out = append(out, g)
	}
	return out
}

// A count followed by a plus sign is possessive in tiktoken: numbers are cut into groups of three digits. White space
// at the end is one piece, and text that a pattern does not match is dropped.
func TestTiktokenPatterns(t *testing.T) {
	var file bytes.Buffer
	tokens := []string{"12", "123", "1234", "  ", "   "}
	for b := range 256 {
		fmt.Fprintf(&file, "%s %d\n", base64.StdEncoding.EncodeToString([]byte{byte(b)}), b)
	}
	for i, s := range tokens {
		fmt.Fprintf(&file, "%s %d\n", base64.StdEncoding.EncodeToString([]byte(s)), 256+i)
	}
	for _, c := range []struct {
		pattern, text string
		want          []uint32
	}{
		{cutCL100K, "1234", []uint32{257, '4'}},
		{`\p{N}{1,3}+|\s`, "1234", []uint32{257, '4'}},
		{cutR50K, "1234", []uint32{258}},
		{cutR50K, "a   ", []uint32{'a', 260}},
		{cutR50K, "a   a", []uint32{'a', 259, ' ', 'a'}},
		{`\p{N}`, "a1-2", []uint32{'1', '2'}},
	} {
		tok, err := loadTiktoken(file.Bytes(), tiktokenFile, Options{Pattern: c.pattern})
		if err != nil {
			t.Fatal(err)
		}
		if got := tok.AppendEncode(nil, c.text); !slices.Equal(got, c.want) {
			t.Errorf("%s on %q: got %v, want %v", c.pattern, c.text, got, c.want)
		}
	}
}

func FuzzTiktoken(f *testing.F) {
	f.Add(ranksOf(f)[:4000], "the")
	f.Add([]byte("YQ== 0\nYg== 1\nYWI= 2\n"), "ab")
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		// All bytes are there, after the file's tokens.
		var file bytes.Buffer
		file.Write(data)
		for b := range 256 {
			fmt.Fprintf(&file, "\n%s %d", base64.StdEncoding.EncodeToString([]byte{byte(b)}), 5000+b)
		}
		for _, whole := range [][]byte{data, file.Bytes()} {
			tok, err := loadTiktoken(whole, tiktokenFile, Options{Pattern: miniCut, Added: []AddedToken{{ID: 6000, Content: "ab"}}})
			if err != nil {
				if _, ok := errors.AsType[*Error](err); !ok {
					t.Fatalf("%T: %v", err, err)
				}
				continue
			}
			var raw []byte
			for _, id := range tok.AppendEncode(nil, text) {
				raw = tok.AppendToken(raw, id)
			}
			if string(raw) != text {
				t.Fatalf("%q becomes %q", text, raw)
			}
		}
	})
}
