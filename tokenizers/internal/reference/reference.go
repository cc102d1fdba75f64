// SPDX-License-Identifier: Apache-2.0

// Package reference reads the real tokenizers that tests compare with, where they are there. Only tests
// import it; it takes files as they are and checks nothing.
package reference

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers/internal/jsonfloat"
	"github.com/weft-go/weft/tokenizers/internal/vocab"
)

// Model is the model of a tokenizer.json.
type Model struct {
	Vocab  *vocab.Table
	Merges [][3]uint32 // left, right, joined
	Scores []float64   // of a Unigram model
	Unk    uint32
	Prefix string // continuing_subword_prefix
	Suffix string // end_of_word_suffix
	Max    int    // max_input_chars_per_word
	Fuse   bool   // fuse_unk
	Bytes  bool   // byte_fallback
}

// Line is a line of golden.jsonl. Offsets count code points.
type Line struct {
	C       string
	Text    string
	IDs     []uint32
	Offsets []int
}

// Dir returns the directory of a tokenizer under ../shared/tok and skips the test if it is not there.
func Dir(tb testing.TB, name string) string {
	tb.Helper()
	if testing.Short() {
		tb.Skip("reference vectors are not for -short")
	}
	dir := os.Getenv("WEFT_SHARED")
	for up := "../../.."; dir == ""; up += "/.." {
		if _, err := os.Stat(filepath.Join(up, "shared")); err == nil {
			dir = filepath.Join(up, "shared")
		} else if len(up) > 30 {
			tb.Skip("no folder shared beside the repository; WEFT_SHARED names another place")
		}
	}
	dir = filepath.Join(dir, "tok", name)
	if _, err := os.Stat(dir); err != nil {
		tb.Skip(err)
	}
	return dir
}

// Load reads the model of a tokenizer under ../shared/tok, or skips the test.
func Load(tb testing.TB, name string) *Model {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join(Dir(tb, name), "tokenizer.json"))
	if err != nil {
		tb.Skip(err)
	}
	var f struct {
		Model struct {
			Vocab    json.RawMessage
			Merges   []json.RawMessage
			UnkID    uint32 `json:"unk_id"`
			UnkToken string `json:"unk_token"`
			Prefix   string `json:"continuing_subword_prefix"`
			Suffix   string `json:"end_of_word_suffix"`
			Max      int    `json:"max_input_chars_per_word"`
			Fuse     bool   `json:"fuse_unk"`
			Bytes    bool   `json:"byte_fallback"`
		}
	}
	check(tb, json.Unmarshal(data, &f))
	x := f.Model
	m := &Model{Unk: x.UnkID, Prefix: x.Prefix, Suffix: x.Suffix, Max: x.Max, Fuse: x.Fuse, Bytes: x.Bytes}
	var b vocab.Builder
	if bytes.HasPrefix(x.Vocab, []byte("[")) {
		var list [][2]json.RawMessage
		check(tb, json.Unmarshal(x.Vocab, &list))
		at := make(map[string]int) // of equal tokens the last counts
		for id, e := range list {
			at[string(e[0])] = id
		}
		for id, e := range list {
			var tok string
			check(tb, json.Unmarshal(e[0], &tok))
			check(tb, b.Add(uint32(id), []byte(tok), at[string(e[0])] == id))
			score, ok := jsonfloat.Parse(string(e[1]))
			if !ok {
				tb.Fatalf("score %s", e[1])
			}
			m.Scores = append(m.Scores, score)
		}
	} else {
		var ids map[string]uint32
		check(tb, json.Unmarshal(x.Vocab, &ids))
		for tok, id := range ids {
			check(tb, b.Add(id, []byte(tok), true))
		}
		m.Unk = ids[x.UnkToken]
	}
	m.Vocab, err = b.Build()
	check(tb, err)
	for _, raw := range x.Merges {
		var pair []string
		if raw[0] == '[' {
			check(tb, json.Unmarshal(raw, &pair))
		} else {
			var s string
			check(tb, json.Unmarshal(raw, &s))
			pair = strings.Split(s, " ")
		}
		var ids [3]uint32
		for k, s := range []string{pair[0], pair[1], pair[0] + strings.TrimPrefix(pair[1], m.Prefix)} {
			ids[k], _ = m.Vocab.Lookup(s)
		}
		m.Merges = append(m.Merges, ids)
	}
	return m
}

// Golden reads golden.jsonl of a tokenizer under ../shared/tok.
func Golden(tb testing.TB, name string) []Line {
	tb.Helper()
	f, err := os.Open(filepath.Join(Dir(tb, name), "golden.jsonl"))
	check(tb, err)
	defer f.Close()
	var lines []Line
	sc := bufio.NewScanner(f)
	for sc.Buffer(nil, 16<<20); sc.Scan(); {
		var l Line
		check(tb, json.Unmarshal(sc.Bytes(), &l))
		lines = append(lines, l)
	}
	check(tb, sc.Err())
	return lines
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
