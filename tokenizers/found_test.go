// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/weft-go/weft/tokenizers/internal/bytelevel"
)

// foundTokenizer loads a tokenizer.json with BPE over a vocabulary, whose other parts are fields.
func foundTokenizer(vocab []string, model map[string]any, fields string) (*Tokenizer, error) {
	ids := map[string]int{}
	for i, s := range vocab {
		ids[s] = i
	}
	bpe := map[string]any{"type": "BPE", "vocab": ids, "merges": []string{}}
	maps.Copy(bpe, model)
	file := map[string]any{"model": bpe}
	if err := json.Unmarshal([]byte("{"+fields+"}"), &file); err != nil {
		return nil, err
	}
	data, err := json.Marshal(file)
	if err != nil {
		return nil, err
	}
	return Load(fstest.MapFS{tokenizerFile: {Data: data}}, nil)
}

// foundBytes are the characters of byte-level vocabularies, and the byte tokens of those with byte fallback.
func foundBytes() (level, fallback []string) {
	for b := range 256 {
		level = append(level, string(bytelevel.Encode(nil, []byte{byte(b)})))
		fallback = append(fallback, "<0x"+strings.ToUpper(strconv.FormatInt(int64(b)>>4, 16)+strconv.FormatInt(int64(b)&15, 16))+">")
	}
	return level, fallback
}

// TestFound has what a comparison of random configurations with the reference, tokenizers 0.23.3, has found, as small as it got: panics, and
// other ids or texts.
func TestFound(t *testing.T) {
	level, fallback := foundBytes()
	fallsBack := map[string]any{"byte_fallback": true}
	letters := append([]string{"a"}, fallback...)
	load := func(vocab []string, model map[string]any, fields string) *Tokenizer {
		tok, err := foundTokenizer(vocab, model, fields)
		if err != nil {
			t.Fatal(err)
		}
		return tok
	}

	t.Run("steps after ByteFallback in a block of ids", func(t *testing.T) {
		tok := load(letters, fallsBack, `"decoder":{"type":"Sequence","decoders":[{"type":"ByteFallback"},{"type":"Replace","pattern":{"String":"\n"},"content":" "},{"type":"Fuse"}]}`)
		for n := range 130 {
			ids := append(make([]uint32, n), 1+'\n', 0)
			if got := string(tok.AppendDecode(nil, ids, false)); got != strings.Repeat("a", n)+" a" {
				t.Fatalf("%d ids before: %q", n, got)
			}
		}
	})
	t.Run("a decoder's expression that matches nothing", func(t *testing.T) {
		tok := load([]string{"a"}, nil, `"decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"a"},"content":""},{"type":"Replace","pattern":{"Regex":"$"},"content":"x"}]}`)
		if got := tok.AppendDecode(nil, []uint32{0}, false); len(got) > 0 {
			t.Errorf("%q", got)
		}
	})
	t.Run("a token that strips left in space that another has taken", func(t *testing.T) {
		for flags, c := range map[string][]struct {
			text string
			want []uint32
		}{
			`"content":"\n","lstrip":true,"rstrip":true`: {{"\n\n", []uint32{1}}, {"a\n\na\n", []uint32{0, 1, 0, 1}}},
			`"content":" ","lstrip":true,"rstrip":false`: {{"  ", []uint32{1, 1}}, {"<x> a", []uint32{2, 0}}, {"<x>  a", []uint32{2, 0}}},
		} {
			tok := load([]string{"a"}, nil, `"added_tokens":[{"id":1,"normalized":false,`+flags+`},{"id":2,"content":"<x>","normalized":false,"rstrip":true}]`)
			for _, x := range c {
				if got := tok.AppendEncode(nil, x.text); !slices.Equal(got, x.want) {
					t.Errorf("%s: %q: got %v, want %v", flags, x.text, got, x.want)
				}
			}
		}
	})
	t.Run("a special token that the model makes of trusted text", func(t *testing.T) {
		tok := load([]string{"a", "x", "?"}, map[string]any{"unk_token": "?"}, `"added_tokens":[{"id":1,"content":"x","special":true,"single_word":true,"normalized":false}]`)
		for _, c := range []struct {
			segs []Segment
			want []uint32
		}{
			{[]Segment{{"ax", true}}, []uint32{0, 1}},
			{[]Segment{{"a", false}, {"x", true}, {"a", false}}, []uint32{0, 1, 0}},
			{[]Segment{{"x", true}, {"xx", false}, {"x", true}}, []uint32{1, 2, 2, 1}},
			{[]Segment{{"a", true}, {"x", false}}, []uint32{0, 2}},
		} {
			if got := tok.AppendEncodeSegments(nil, c.segs); !slices.Equal(got, c.want) {
				t.Errorf("%v: got %v, want %v", c.segs, got, c.want)
			}
			if e := encodeSegments(t, tok, c.segs, EncodeOptions{Offsets: true}); !slices.Equal(e.IDs, c.want) || len(e.Offsets) != len(c.want) {
				t.Errorf("%v: with offsets %v, %v, want %v", c.segs, e.IDs, e.Offsets, c.want)
			}
			if e := encodeSegments(t, tok, c.segs, EncodeOptions{Special: SpecialText}); slices.Contains(e.IDs, 1) {
				t.Errorf("%v: special tokens as text: %v", c.segs, e.IDs)
			}
		}
	})

	t.Run("special tokens that the model makes of trusted text which the normalizer changed", func(t *testing.T) {
		const fields = `"normalizer":{"type":"Lowercase"},"added_tokens":[{"id":1,"content":"x","special":true,"single_word":true,"normalized":false}]`
		tok := load([]string{"a", "x", "?"}, map[string]any{"unk_token": "?"}, fields)
		if got := tok.AppendEncodeSegments(nil, []Segment{{"Ax", true}}); !slices.Equal(got, []uint32{0, 1}) {
			t.Errorf("got %v", got)
		}
		if e := encodeSegments(t, tok, []Segment{{"Ax", true}}, EncodeOptions{Special: SpecialText}); !slices.Equal(e.IDs, []uint32{0, 2}) {
			t.Errorf("as text: got %v", e.IDs)
		}
	})
	t.Run("texts of normalized tokens", func(t *testing.T) {
		for _, c := range []struct {
			added, all, skip string
			ids              []uint32 // of a<S><s>
		}{
			// The reference leaves out what is spelled like a special token.
			{`{"id":1,"content":"<s>","special":true,"normalized":false},{"id":2,"content":"<S>","normalized":true}`, "a <s> <s>", "a", []uint32{0, 2, 1}},
			{`{"id":1,"content":"<S>","special":true,"normalized":true},{"id":2,"content":"<s>","normalized":false}`, "a <s> <s>", "a <s> <s>", []uint32{0, 1, 2}},
			// A token that is normalized no more keeps its normalized text.
			{`{"id":1,"content":"<S>","normalized":true},{"id":1,"content":"<S>","normalized":false}`, "a <s>", "a <s>", []uint32{0, 1}},
		} {
			tok := load([]string{"a"}, nil, `"normalizer":{"type":"Lowercase"},"decoder":{"type":"WordPiece","prefix":"##","cleanup":false},"added_tokens":[`+c.added+`]`)
			ids := tok.AppendEncode(nil, "a<S><s>")
			if !slices.Equal(ids, c.ids) {
				t.Errorf("%s: ids %v, want %v", c.added, ids, c.ids)
			}
			if all, skip := string(tok.AppendDecode(nil, ids, false)), string(tok.AppendDecode(nil, ids, true)); all != c.all || skip != c.skip {
				t.Errorf("%s: %q and %q, want %q and %q", c.added, all, skip, c.all, c.skip)
			}
		}
	})
	t.Run("CTC with two tokens of one spelling", func(t *testing.T) {
		tok := load([]string{"a", "b"}, nil, `"normalizer":{"type":"Lowercase"},"added_tokens":[{"id":2,"content":"A","normalized":true}],"decoder":{"type":"CTC","pad_token":"<pad>","word_delimiter_token":"|","cleanup":false}`)
		if got := string(tok.AppendDecode(nil, []uint32{0, 2, 1, 2, 0, 0, 1}, false)); got != "abab" {
			t.Errorf("%q", got)
		}
	})
	t.Run("text inserted before the first character", func(t *testing.T) {
		for normalizer, want := range map[string][]Offset{
			`{"type":"Replace","pattern":{"Regex":"^"},"content":"a"}`: {{0, 0}, {0, 1}, {1, 4}, {4, 4}, {4, 5}, {5, 6}},
			`{"type":"Prepend","prepend":""}`:                          {{0, 0}, {1, 4}, {4, 4}, {5, 6}},
		} {
			tok := load([]string{"a"}, nil, `"added_tokens":[{"id":1,"content":"<x>","normalized":false}],"normalizer":`+normalizer)
			if e := encodeSegments(t, tok, []Segment{{"a<x>aa", true}}, EncodeOptions{Offsets: true}); !slices.Equal(e.Offsets, want) {
				t.Errorf("%s: got %v, want %v", normalizer, e.Offsets, want)
			}
		}
	})
	trim := `,"post_processor":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true}`
	for name, c := range map[string]struct {
		fields, text string
		want         []Offset
	}{
		"trimmed unknown text":                 {`"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["a",-1]]}`, "\va\u3000", []Offset{{1, 1}, {1, 2}, {5, 5}}},
		"trimmed space from the normalizer":    {`"normalizer":{"type":"Replace","pattern":{"String":"é"},"content":" "},"added_tokens":[{"id":1,"content":"é","normalized":true}]`, "aé", []Offset{{0, 1}, {3, 3}}},
		"more spaces than characters to trim":  {`"normalizer":{"type":"Replace","pattern":{"String":"é"},"content":"x   "},"added_tokens":[{"id":1,"content":"é","normalized":true}]`, "aéé", []Offset{{0, 1}, {1, 3}, {3, 3}}},
		"trimmed byte-level space, normalized": {`"normalizer":{"type":"NFKD"},"added_tokens":[{"id":1,"content":"Ġa","normalized":true}]`, "aĠa", []Offset{{0, 1}, {1, 4}}},
		"trimmed space of an added token":      {`"normalizer":{"type":"Nmt"},"added_tokens":[{"id":1,"content":"é","normalized":true,"rstrip":true}]`, "é\u200da", []Offset{{0, 2}, {5, 6}}},
	} {
		t.Run(name, func(t *testing.T) {
			tok := load([]string{"a"}, nil, c.fields+trim)
			if e := encodeSegments(t, tok, []Segment{{c.text, true}}, EncodeOptions{Offsets: true}); !slices.Equal(e.Offsets, c.want) {
				t.Errorf("got %v, want %v", e.Offsets, c.want)
			}
		})
	}
	t.Run("the first token is special where offsets are trimmed", func(t *testing.T) {
		bert := `{"type":"BertProcessing","sep":["a",0],"cls":["a",0]}`
		template := `{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"a","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],"pair":[],"special_tokens":{"a":{"id":"a","ids":[0],"tokens":["a"]}}}`
		for first, want := range map[string][]Offset{
			bert:                  {{0, 0}, {2, 3}, {4, 5}, {0, 0}},
			template:              {{0, 0}, {1, 3}, {4, 5}},
			bert + "," + template: {{0, 0}, {0, 0}, {2, 3}, {4, 5}, {0, 0}},
		} {
			tok := load([]string{"a", "Ġ", "Ġa"}, map[string]any{"merges": []string{"Ġ a"}}, `"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"CharDelimiterSplit","delimiter":"x"},{"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]},`+
				`"post_processor":{"type":"Sequence","processors":[`+first+`,{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true}]}`)
			e := encodeSegments(t, tok, []Segment{{"x a a", true}}, EncodeOptions{Offsets: true, AddSpecial: true})
			if !slices.Equal(e.Offsets, want) {
				t.Errorf("%s: got %v, want %v", first, e.Offsets, want)
			}
			if e = encodeSegments(t, tok, []Segment{{"x a a", true}}, EncodeOptions{Offsets: true}); !slices.Equal(e.Offsets, []Offset{{1, 3}, {4, 5}}) {
				t.Errorf("%s: without special tokens %v", first, e.Offsets)
			}
		}
	})
	for name, c := range map[string]struct {
		vocab  []string
		model  map[string]any
		fields string
	}{
		"a word without a byte-level character": {level, nil, `"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"ByteLevel","add_prefix_space":false,"use_regex":false},` +
			`{"type":"Metaspace","replacement":"▁","prepend_scheme":"always"}]}`},
		"a token that normalizes to nothing": {letters, nil, `"normalizer":{"type":"Strip","strip_left":true,"strip_right":true},"added_tokens":[{"id":300,"content":"\n","normalized":true}]`},
		"a frame around a template": {letters, nil, `"added_tokens":[{"id":300,"content":"<s>","special":true,"normalized":false},{"id":301,"content":"</s>","special":true,"normalized":false}],` +
			`"post_processor":{"type":"Sequence","processors":[{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],"pair":[],` +
			`"special_tokens":{"<s>":{"id":"<s>","ids":[300],"tokens":["<s>"]}}},{"type":"BertProcessing","sep":["</s>",301],"cls":["<s>",300]}]}`},
		"a step after inserted text":               {letters, nil, `"normalizer":{"type":"Sequence","normalizers":[{"type":"Replace","pattern":{"Regex":"^"},"content":"a"},{"type":"NFC"}]}`},
		"ByteLevel after inserted text":            {level, nil, `"normalizer":{"type":"Replace","pattern":{"Regex":"b?"},"content":"a"},"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false}`},
		"ByteLevel after an empty Prepend":         {level, nil, `"normalizer":{"type":"Prepend","prepend":""},"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false}`},
		"a suffix of words in bytes":               {fallback, map[string]any{"byte_fallback": true, "end_of_word_suffix": "</w>"}, ""},
		"BPEDecoder in a second Sequence":          {letters, nil, `"decoder":{"type":"Sequence","decoders":[{"type":"WordPiece","prefix":"##","cleanup":false},{"type":"Sequence","decoders":[{"type":"BPEDecoder","suffix":"a"}]}]}`},
		"more special tokens than a text may have": {letters, nil, `"truncation":{"direction":"Right","max_length":1,"strategy":"LongestFirst","stride":0},"post_processor":{"type":"BertProcessing","sep":["a",0],"cls":["a",0]}`},
		"more overlap than a text may have":        {letters, nil, `"truncation":{"direction":"Right","max_length":5,"strategy":"LongestFirst","stride":3},"post_processor":{"type":"BertProcessing","sep":["a",0],"cls":["a",0]}`},
		"bytes that only the first token is":       {letters, fallsBack, `"decoder":{"type":"Sequence","decoders":[{"type":"WordPiece","prefix":"##","cleanup":false},{"type":"ByteFallback"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := foundTokenizer(c.vocab, c.model, c.fields)
			if !errors.Is(err, ErrUnsupported) {
				t.Error(err)
			}
		})
	}
}
