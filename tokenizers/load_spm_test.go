// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/weft-go/weft/tokenizers/internal/normal"
)

// pieceLine is a line of golden.jsonl made by SentencePiece. An absent field equals the value in the comment.
type pieceLine struct {
	C          string
	Text       string
	IDs        []uint32
	IDsSpecial *[]uint32 `json:"ids_special"` // IDs
	Norm       *string   // Text
	Dec        *string   // Text
	Offsets    []int     `json:"offsets_bytes"` // start and end of each id; absent for long texts
	Any        []uint32  // random ids
	AnyDec     string    `json:"any_dec"` // their text
}

// check returns what differs. SentencePiece does not interpret control pieces in texts, so the text is not trusted.
func (g *pieceLine) check(tok *Tokenizer) string {
	segs := []Segment{{Text: g.Text}}
	ids := tok.AppendEncodeSegments(nil, segs)
	if !slices.Equal(ids, g.IDs) {
		return "ids"
	}
	if framed := g.IDsSpecial; framed != nil {
		before, after := tok.AddedSpecial()
		if !slices.Equal(slices.Concat(before, ids, after), *framed) {
			return "ids with frame"
		}
	}
	var b normal.Buffer
	want := g.Text
	if g.Norm != nil {
		want = *g.Norm
	}
	if got := string(normal.Run(tok.norm, normal.Text{B: []byte(g.Text)}, &b).B); got != want {
		return "normalized text " + got
	}
	want = g.Text
	if g.Dec != nil {
		want = *g.Dec
	}
	if got := string(tok.AppendDecode(nil, g.IDs, true)); got != want {
		return "decoded text " + got
	}
	s := tok.NewStream(true, nil)
	var out []byte
	for _, id := range g.IDs {
		out = s.Append(out, id)
	}
	if string(s.Finish(out)) != want {
		return "streamed text"
	}
	var e Encoding
	if err := tok.Encode(&e, segs, &EncodeOptions{Offsets: true}); err != nil || !slices.Equal(e.IDs, g.IDs) {
		return "ids with offsets"
	}
	if got := string(tok.AppendDecode(nil, g.Any, true)); got != g.AnyDec {
		return "decoded text of random ids " + got
	}
	if g.Offsets != nil {
		var got []int
		for _, o := range e.Offsets {
			got = append(got, o.Start, o.End)
		}
		if !slices.Equal(got, g.Offsets) {
			return "offsets"
		}
	}
	return ""
}

func readPieces(t *testing.T, file string) (out []pieceLine) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(bytes.NewReader(data)); d.More(); {
		var g pieceLine
		if err := d.Decode(&g); err != nil {
			t.Fatal(err)
		}
		out = append(out, g)
	}
	return out
}

// Models of all types, trained for this on texts of this repository with SentencePiece 0.2.3, and what it returns:
// byte fallback, user pieces, control pieces, unused pieces, equal scores, rules of normalizer and denormalizer, spaces as
// suffix, a text for unknown pieces.
func TestPieces(t *testing.T) {
	files, err := filepath.Glob("testdata/pieces/*/golden.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatal("no vectors", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			tok, err := Load(os.DirFS(filepath.Dir(file)), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range readPieces(t, file) {
				if bad := g.check(tok); bad != "" {
					t.Errorf("%q: %s", g.Text, bad)
				}
			}
		})
	}
}

// Control pieces are recognized in trusted text only. Each part between them is a text of its own.
func TestPiecesControl(t *testing.T) {
	tok := loadPieceDir(t, "bpe-bytes", nil)
	id := func(s string) uint32 {
		id, ok := tok.TokenID(s)
		if !ok {
			t.Fatalf("no token %q", s)
		}
		return id
	}
	plain := func(s string) []uint32 { return tok.AppendEncodeSegments(nil, []Segment{{Text: s}}) }
	want := slices.Concat([]uint32{id("<s>"), id("[INST]")}, plain(" is [INST] the "), []uint32{id("[/INST]")})
	got := tok.AppendEncodeSegments(nil, []Segment{{Text: "<s>[INST] ", Trusted: true}, {Text: "is [INST] the"}, {Text: " [/INST]", Trusted: true}})
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if text := string(tok.AppendDecode(nil, got, false)); text != "<s>[INST] is [INST] the [/INST]" {
		t.Errorf("decoded %q", text)
	}
	if text := string(tok.AppendDecode(nil, got, true)); text != " is [INST] the " {
		t.Errorf("decoded without special tokens %q", text)
	}
	if !slices.Equal(tok.AppendEncodeSpecial(nil, "the"), slices.Concat([]uint32{id("<s>")}, plain("the"))) || !slices.Equal(tok.EOS(), []uint32{id("</s>")}) {
		t.Errorf("the ends of texts")
	}
	sp, err := tok.Splitter()
	if err != nil {
		t.Fatal(err)
	}
	if at, k := sp.Last("a [/INST]b", 0, nil); at != len("a [/INST]") || k != boundaryAlways {
		t.Errorf("a text is split at %d, %v", at, k)
	}
	// Bytes that are not UTF-8 become U+FFFD.
	if got := plain("a\xffb"); !slices.Equal(got, plain("a\uFFFDb")) {
		t.Errorf("bytes become %v", got)
	}
}

func loadPieceDir(t *testing.T, name string, files map[string]string) *Tokenizer {
	t.Helper()
	tok, err := Load(pieceDir(t, name, files), nil)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func pieceDir(t *testing.T, name string, files map[string]string) fstest.MapFS {
	t.Helper()
	data, err := os.ReadFile("testdata/pieces/" + name + "/tokenizer.model")
	if err != nil {
		t.Fatal(err)
	}
	fsys := fstest.MapFS{"tokenizer.model": {Data: data}}
	for name, s := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(s)}
	}
	return fsys
}

// The files next to a model add tokens and settings.
func TestPiecesSettings(t *testing.T) {
	tok := loadPieceDir(t, "bpe-bytes", map[string]string{
		"tokenizer_config.json": `{"add_bos_token":false,"add_eos_token":true,"tokenizer_class":"LlamaTokenizer","bos_token":"<s>","pad_token":"<pad>",
			"added_tokens_decoder":{"1":{"content":"<s>","special":true},"460":{"content":"<|im_start|>","special":true},"461":{"content":"<think>"},"5":{"content":"[TOOL]","special":true}}}`,
		"added_tokens.json": `{"<|im_start|>":460,"<more>":462}`,
	})
	for content, want := range map[string]uint32{"<s>": 1, "<|im_start|>": 460, "<think>": 461, "[TOOL]": 5, "<more>": 462, "<pad>": 463} {
		if id, ok := tok.TokenID(content); !ok || id != want {
			t.Errorf("%s has the id %d, %t, not %d", content, id, ok, want)
		}
		if got := tok.AppendEncode(nil, content); !slices.Equal(got, []uint32{want}) {
			t.Errorf("%s is encoded as %v", content, got)
		}
		if got := string(tok.AppendDecode(nil, []uint32{want}, false)); got != content {
			t.Errorf("%s is decoded as %q", content, got)
		}
	}
	if tok.IsSpecial(461) || !tok.IsSpecial(460) {
		t.Error("special tokens")
	}
	before, after := tok.AddedSpecial()
	if len(before) != 0 || !slices.Equal(after, []uint32{2}) {
		t.Errorf("adds %v and %v", before, after)
	}
	// A user piece that is also a special token is matched in trusted text only.
	tok = loadPieceDir(t, "bpe-bytes", map[string]string{"tokenizer_config.json": `{"additional_special_tokens":["<x>"]}`})
	x, _ := tok.TokenID("<x>")
	if got := tok.AppendEncode(nil, "<x>"); !slices.Equal(got, []uint32{x}) {
		t.Errorf("trusted: %v", got)
	}
	if got := tok.AppendEncodeSegments(nil, []Segment{{Text: "a<x>b"}}); slices.Contains(got, x) || string(tok.AppendDecode(nil, got, false)) != "a<x>b" {
		t.Errorf("untrusted: %v", got)
	}
	// The format of a file that Options names is known by its content.
	fsys := fstest.MapFS{"instruct.model.v3": pieceDir(t, "word", nil)["tokenizer.model"]}
	if _, err := Load(fsys, &Options{File: "instruct.model.v3"}); err != nil {
		t.Error(err)
	}
	t5 := loadPieceDir(t, "unigram", map[string]string{"tokenizer_config.json": `{"tokenizer_class":"T5Tokenizer","extra_ids":2}`})
	if id, _ := t5.TokenID("<extra_id_0>"); int(id) != t5.VocabSize()-1 {
		t.Errorf("<extra_id_0> has the id %d of %d", id, t5.VocabSize())
	}
	if before, after := t5.AddedSpecial(); len(before) != 0 || !slices.Equal(after, []uint32{2}) {
		t.Errorf("T5 adds %v and %v", before, after)
	}
}

func TestPiecesRefused(t *testing.T) {
	model := string(pieceDir(t, "bpe-bytes", nil)["tokenizer.model"].Data)
	piece := func(text string, typ byte) string {
		body := "\n" + string([]byte{byte(len(text))}) + text + "\x18" + string([]byte{typ})
		return "\n" + string([]byte{byte(len(body))}) + body
	}
	for _, c := range []struct{ name, file, data, config, want string }{
		{"class with other ids", "tokenizer.model", model, `{"tokenizer_class":"XLMRobertaTokenizer"}`, "tokenizer_config.json: tokenizer_class: unsupported: XLMRobertaTokenizer: its ids differ from those of the SentencePiece model; convert the model to tokenizer.json"},
		{"class with Python rules", "spiece.model", model, `{"tokenizer_class":"AlbertTokenizer"}`, "tokenizer_config.json: tokenizer_class: unsupported: AlbertTokenizer: its Python code changes texts before it encodes them; convert the model to tokenizer.json"},
		{"no class", "spiece.model", model, `{}`, `spiece.model: tokenizer_class: unsupported: "": unknown which ids and texts it uses; convert the model to tokenizer.json`},
		{"id taken", "tokenizer.model", model, `{"added_tokens_decoder":{"7":{"content":"<s>"}}}`, `tokenizer_config.json: 7: "<s>" has the id 1 already`},
		{"cut", "tokenizer.model", model[:40], `{}`, "tokenizer.model: model: ends inside a field (offset 32)"},
		{"no unknown piece", "tokenizer.model", piece("a", 1), `{}`, "tokenizer.model: pieces: no unknown piece"},
		{"two unknown pieces", "tokenizer.model", piece("a", 2) + piece("b", 2), `{}`, "tokenizer.model: pieces[1]: a second unknown piece (offset 9)"},
		{"a piece twice", "tokenizer.model", piece("a", 2) + piece("b", 1) + piece("b", 1), `{}`, `tokenizer.model: pieces: tokens 1 and 2 have the same bytes "b"`},
		{"byte without fallback", "tokenizer.model", piece("a", 2) + piece("<0x00>", 6), `{}`, `tokenizer.model: pieces[1]: the byte piece "<0x00>" in a model without byte_fallback (offset 9)`},
		{"type", "tokenizer.model", piece("a", 7), `{}`, "tokenizer.model: pieces[0]: has the type 7 (offset 2)"},
		{"long piece", "tokenizer.model", "\n\x84\x40\n\x81\x40" + strings.Repeat("a", 8193), `{}`, "tokenizer.model: pieces[0]: limit exceeded: 8193 bytes, the limit is 4096 (offset 3)"},
		{"charsmap", "tokenizer.model", piece("a", 2) + "\x1a\x07\x12\x05\xff\xff\xff\xff\x00", `{}`, "tokenizer.model: normalizer_spec.precompiled_charsmap: a trie of 4294967295 bytes in a charsmap of 5 (offset 11)"},
		{"long replacement", "tokenizer.model", piece("a", 2) + "\x1a\x8c\x08\x12\x89\x08\x04\x00\x00\x00\x00\x00\x00\x00" + strings.Repeat("a", 1025), `{}`, "tokenizer.model: normalizer_spec.precompiled_charsmap: limit exceeded: a replacement of 1025 bytes, the limit is 256 (offset 13)"},
		{"neither", "tokenizer.model", "version https://git-lfs.github.com/spec/v1\n", `{}`, "tokenizer.model: family: unsupported: unknown vocabulary: config.json has no model_type; set tokenizers.Options.Family or Pattern"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Load(fstest.MapFS{c.file: {Data: []byte(c.data)}, "tokenizer_config.json": {Data: []byte(c.config)}}, nil)
			if err == nil || strings.TrimPrefix(err.Error(), "tokenizers: ") != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
	// os.DirFS determines the path of the directory.
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tokenizer.model"), []byte(piece("a", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(os.DirFS(dir), nil); err == nil || err.Error() != "tokenizers: "+dir+"/tokenizer.model: pieces: no unknown piece" {
		t.Errorf("got %v", err)
	}
	if _, err := Load(os.DirFS(dir+"/none"), nil); err == nil || !strings.HasPrefix(err.Error(), "tokenizers: "+dir+"/none: cannot read the directory: ") {
		t.Errorf("got %v", err)
	}
}

// Any file is read or refused. What is read encodes and decodes any text, in streams as at once.
func FuzzPieces(f *testing.F) {
	files, err := filepath.Glob("testdata/pieces/*/tokenizer.model")
	if err != nil || len(files) == 0 {
		f.Fatal("no models", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, "is the <x>ab\u3000 e\u0301\xff北京 aaaa")
	}
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		tok, err := Load(fstest.MapFS{"x.model": {Data: data}}, &Options{File: "x.model"})
		if err != nil {
			return
		}
		ids := tok.AppendEncode(nil, text)
		var e Encoding
		if err := tok.Encode(&e, []Segment{{Text: text, Trusted: true}}, &EncodeOptions{Offsets: true}); err != nil || !slices.Equal(e.IDs, ids) {
			t.Fatalf("%v with offsets, %v without: %v", e.IDs, ids, err)
		}
		last := 0
		for _, o := range e.Offsets {
			if o.Start < 0 || o.End < o.Start || o.End > len(text) || o.Start < last {
				t.Fatalf("offsets %v", e.Offsets)
			}
			last = o.Start
		}
		for _, skip := range []bool{true, false} {
			s := tok.NewStream(skip, nil)
			var out []byte
			for _, id := range ids {
				out = s.Append(out, id)
			}
			if got, want := string(s.Finish(out)), string(tok.AppendDecode(nil, ids, skip)); got != want {
				t.Fatalf("%q streamed, %q at once", got, want)
			}
		}
	})
}

// All vectors of SentencePiece.
func TestPiecesGolden(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(sharedDir(t), "_spm", "*", "golden.jsonl"))
	if err != nil || len(files) == 0 {
		t.Skip("no vectors: set WEFT_SHARED:", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			t.Parallel()
			tok, err := Load(os.DirFS(filepath.Dir(file)), nil)
			if err != nil {
				t.Fatal(err)
			}
			failed := 0
			for _, g := range readPieces(t, file) {
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
