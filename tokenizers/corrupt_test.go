// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/weft-go/weft/tokenizers/internal/testsize"
)

// Any damaged file yields an error with file, path and offset, in bounded memory and time. A file that is still valid
// may load.

// damaged is a kind of file with a good example.
type damaged struct {
	name string
	data []byte
	load func(data []byte) error
	tail int // bytes at the end that may be missing
}

func damagedFiles(tb testing.TB) []damaged {
	tb.Helper()
	file, err := os.ReadFile("mini/tokenizer.json")
	if err != nil {
		tb.Fatal(err)
	}
	ranks := ranksOf(tb)
	tekken, err := json.Marshal(tekkenTree(tb, 30))
	if err != nil {
		tb.Fatal(err)
	}
	config := []byte(`{"added_tokens_decoder":{"3113":{"content":"<|endoftext|>","special":true,"lstrip":false}},"eos_token":{"content":"<|im_end|>"},` +
		`"model_max_length":131072,"chat_template":"{{ messages[0] | upper }} é \n","additional_special_tokens":["<|im_start|>"]}`)
	cuts := Options{Pattern: miniCut, Tokens: bytes.Count(ranks, []byte{'\n'})}
	return []damaged{
		{tokenizerFile, file, func(b []byte) error { _, err := parse(b); return err }, 1},
		{tiktokenFile, ranks, func(b []byte) error { _, err := loadTiktoken(b, tiktokenFile, cuts); return err }, 1},
		{tekkenFile, tekken, func(b []byte) error { _, err := loadTekken(b, tekkenFile); return err }, 0},
		{configFile, config, func(b []byte) error {
			_, err := readDeclared(fstest.MapFS{configFile: {Data: b}})
			return err
		}, 0},
	}
}

// maxMessage is the longest error message, in bytes, that a file may cause.
const maxMessage = 2000

// explained fails the test unless err is nil or has file, path and offset.
func (d *damaged) explained(tb testing.TB, what string, n int, err error) {
	tb.Helper()
	if err == nil {
		return
	}
	e, ok := errors.AsType[*Error](err)
	switch {
	case !ok:
		tb.Fatalf("%s: %T: %v", what, err, err)
	case e.file != d.name || e.field == "" || e.Offset > int64(n) || e.reason == "":
		tb.Fatalf("%s: %+v", what, e)
	case len(err.Error()) > maxMessage:
		tb.Fatalf("%s: a message of %d bytes", what, len(err.Error()))
	}
}

func TestDamagedTruncated(t *testing.T) {
	for _, d := range damagedFiles(t) {
		t.Run(d.name, func(t *testing.T) {
			steps := testsize.Pick(20, 40, 200)
			for n := 0; n < len(d.data)-d.tail; n += 1 + n/steps {
				err := d.load(d.data[:n])
				if err == nil {
					t.Fatalf("%d of %d bytes load", n, len(d.data))
				}
				d.explained(t, fmt.Sprintf("%d bytes", n), n, err)
				if e, _ := errors.AsType[*Error](err); e.Offset < 0 || !errors.Is(err, ErrFormat) {
					t.Fatalf("%d bytes: %v", n, err)
				}
			}
		})
	}
}

func TestDamagedBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, d := range damagedFiles(t) {
		t.Run(d.name, func(t *testing.T) {
			rounds := testsize.Pick(10, 100, 600)
			bad := bytes.Clone(d.data)
			for i := range rounds {
				at := r.IntN(len(bad))
				if i%2 == 0 { // where the structure is
					at = r.IntN(min(len(bad), 2000))
				}
				with := "\x00\xff\"\\{}[]:,9-e\n "[r.IntN(15)]
				old := bad[at]
				bad[at] = with
				d.explained(t, fmt.Sprintf("%q at %d", with, at), len(bad), d.load(bad))
				bad[at] = old
			}
			// Parts taken out, doubled, moved.
			for range rounds / 4 {
				i, j := r.IntN(len(d.data)), r.IntN(len(d.data))
				i, j = min(i, j), max(i, j)
				k := r.IntN(len(d.data))
				for what, b := range map[string][]byte{
					"without":  append(bytes.Clone(d.data[:i]), d.data[j:]...),
					"inserted": bytes.Join([][]byte{d.data[:k], d.data[i:min(j, i+50)], d.data[k:]}, nil),
				} {
					d.explained(t, fmt.Sprintf("%s %d:%d at %d", what, i, j, k), len(b), d.load(b))
				}
			}
		})
	}
}

// Small files that require much memory. The limit is 16 MB for the table of the largest id, the same for data derived
// from it, and a multiple of the file's size.
func TestDamagedHostile(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	mb := testsize.Pick(1<<16, 1<<19, 1<<20)
	model := func(vocab, merges string) string {
		return `{"pre_tokenizer":{"type":"ByteLevel"},"decoder":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":{` + vocab + `},"merges":[` + merges + `]}}`
	}
	huge := strings.Repeat("9", mb)
	long := strings.Repeat("a", 4*mb)
	deep := func(open string) string { return strings.Repeat(open, mb/len(open)) }
	files := damagedFiles(t)
	for _, c := range []struct {
		name string
		kind int // index in files
		data string
	}{
		{"id of a megabyte of digits", 0, model(`"a":`+huge, "")},
		{"negative id", 0, model(`"a":-1`, "")},
		{"id with exponent", 0, model(`"a":1e3`, "")},
		{"id with a fraction", 0, model(`"a":1.0`, "")},
		{"id that overflows", 0, model(`"a":4294967296`, "")},
		{"key twice", 0, model(`"a":0,"a":1`, "")},
		{"odd key twice", 0, model(`"\u4e16":0,"\u4e16":1`, "")},
		{"id twice", 0, model(`"a":0,"b":0`, "")},
		{"vocab twice", 0, `{"model":{"vocab":{},"vocab":{}},"model":{}}`},
		{"long token", 0, model(`"`+long+`":0`, "")},
		{"long token, no byte", 0, model(`"`+strings.Repeat("世", mb)+`":0`, "")},
		{"long merge", 0, model(`"a":0`, `"`+long+`"`)},
		{"long unknown merge", 0, model(`"a":0`, `"`+long+` a"`)},
		{"many merges", 0, model(`"a":0`, strings.Repeat(`"a a",`, mb)+`"a a"`)},
		{"deep vocab", 0, model(`"a":`+deep("["), "")},
		{"deep objects", 0, deep(`{"a":`)},
		{"deep normalizers", 0, `{"normalizer":` + deep(`{"type":"Sequence","normalizers":[`)},
		{"closed deep normalizers", 0, `{"normalizer":` + strings.Repeat(`{"type":"Sequence","normalizers":[`, 300) + strings.Repeat(`]}`, 300) + `,"model":{}}`},
		{"many keys", 0, `{` + strings.Repeat(`"a":1,`, mb/6) + `"a":1}`},
		{"many fields", 0, `{"normalizer":{"type":"NFC",` + strings.Repeat(`"b":1,`, mb/6) + `"a":1},"model":{}}`},
		{"long type", 0, `{"normalizer":{"type":"` + long + `"},"model":{}}`},
		{"long pattern", 0, `{"pre_tokenizer":{"type":"Split","pattern":{"Regex":"` + long + `"},"behavior":"Isolated","invert":false},"model":{}}`},
		{"long key", 0, `{"` + long + `":1}`},
		{"long field", 0, `{"normalizer":{"type":"NFC","` + long + `":1},"model":{}}`},
		{"number of a megabyte", 0, `{"version":` + huge + `,"model":{}}`},
		{"only spaces", 0, strings.Repeat(" ", mb)},
		{"zeros", 0, strings.Repeat("\x00", mb)},
		{"one line", 1, strings.Repeat("a", mb)},
		{"only line ends", 1, strings.Repeat("\n", mb)},
		{"rank of a megabyte of digits", 1, "YQ== " + huge},
		{"largest rank", 1, "YQ== 2097151\n"},
		{"long token, ranks", 1, long + " 0\n"},
		{"zeros, ranks", 1, strings.Repeat("\x00", mb)},
		{"id of a megabyte of digits, tekken", 2, `{"config":{"default_vocab_size":` + huge + `}}`},
		{"deep tekken", 2, `{"vocab":` + deep(`[`)},
		{"long pattern, tekken", 2, `{"config":{"pattern":"` + long + `","version":"v3","default_vocab_size":300,"default_num_special_tokens":30},"vocab":[]}`},
		{"long version, tekken", 2, `{"config":{"version":"` + long + `"}}`},
		{"long special token, tekken", 2, `{"config":{"pattern":"x","version":"v3","default_vocab_size":300,"default_num_special_tokens":30},"vocab":[],"special_tokens":[{"rank":0,"token_str":"` +
			long + `"},{"rank":1,"token_str":"` + long + `"}]}`},
		{"deep config", 3, deep(`{"a":`)},
		{"deep template", 3, `{"chat_template":` + deep(`[`)},
		{"id of a megabyte of digits, config", 3, `{"added_tokens_decoder":{"` + huge + `":{"content":"a"}}}`},
		{"long content without end", 3, `{"added_tokens_decoder":{"1":{"content":"` + long},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := files[c.kind]
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := d.load([]byte(c.data))
			runtime.ReadMemStats(&after)
			if loads := strings.HasPrefix(c.name, "long token") && c.kind == 0; (err == nil) != loads { // one token is a vocabulary
				t.Fatalf("loads: %t", err == nil)
			}
			if n, limit := int(after.TotalAlloc-before.TotalAlloc), 64<<20+24*len(c.data); n > limit {
				t.Errorf("%d bytes allocated for a file of %d", n, len(c.data))
			}
			d.explained(t, c.name, len(c.data), err)
		})
	}
}

// The same for the other files of a model's directory.
func TestDamagedDirectory(t *testing.T) {
	fsys := fstest.MapFS{}
	for name, data := range map[string]string{
		configFile:               `{"eos_token":"<|im_end|>","model_max_length":10,"chat_template":"x"}`,
		"generation_config.json": `{"eos_token_id":[5,6],"temperature":0.6}`,
	} {
		fsys[name] = &fstest.MapFile{Data: []byte(data)}
	}
	file, err := os.ReadFile("mini/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	fsys[tokenizerFile] = &fstest.MapFile{Data: file}
	if _, err := Load(fsys, nil); err != nil {
		t.Fatal(err)
	}
	open := 0
	for _, name := range []string{configFile, "generation_config.json"} {
		whole := fsys[name].Data
		for n := 0; n < len(whole); n += testsize.Pick(5, 2, 1) {
			fsys[name] = &fstest.MapFile{Data: whole[:n]}
			_, err := Load(fsys, nil)
			e, ok := errors.AsType[*Error](err)
			if !ok || e.file != name || !errors.Is(err, ErrFormat) || e.Offset < 0 || e.Offset > int64(n) {
				t.Fatalf("%d bytes of %s: %+v", n, name, err)
			}
			if e.field == "" {
				open++
			}
		}
		fsys[name] = &fstest.MapFile{Data: whole}
	}
	if open > 0 {
		t.Errorf("%d errors have an offset but no field", open)
	}
}
