// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
)

// file holds the fields of a tokenizer.json that the libraries need.
type file struct {
	Model struct {
		Type         string
		Vocab        json.RawMessage
		Merges       []json.RawMessage
		ByteFallback bool `json:"byte_fallback"`
	}
	Added []struct {
		ID      uint32
		Content string
		Special bool
	} `json:"added_tokens"`
	PreTokenizer json.RawMessage `json:"pre_tokenizer"`

	vocab map[string]uint32
}

// gpt2Expr is the expression of a ByteLevel pre-tokenizer.
const gpt2Expr = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// readBPE reads a file with a byte-pair model.
func readBPE(path string) (*file, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := new(file)
	if err := json.Unmarshal(data, f); err != nil {
		return nil, err
	}
	if f.Model.Merges == nil {
		return nil, errors.New("no byte-pair model")
	}
	return f, json.Unmarshal(f.Model.Vocab, &f.vocab)
}

// merge returns merge i as "left right".
func (f *file) merge(i int) (string, error) {
	var s string
	if json.Unmarshal(f.Model.Merges[i], &s) == nil {
		return s, nil
	}
	var pair []string
	if err := json.Unmarshal(f.Model.Merges[i], &pair); err != nil {
		return "", err
	}
	return strings.Join(pair, " "), nil
}

// patterns returns the expressions of the pre-tokenizer in order.
func (f *file) patterns() (list []string) {
	type step struct {
		Type          string
		UseRegex      *bool `json:"use_regex"`
		Pattern       struct{ Regex string }
		Pretokenizers []step
	}
	var walk func(s step)
	walk = func(s step) {
		switch {
		case s.Type == "Split" && s.Pattern.Regex != "":
			list = append(list, s.Pattern.Regex)
		case s.Type == "ByteLevel" && (s.UseRegex == nil || *s.UseRegex):
			list = append(list, gpt2Expr)
		}
		for _, x := range s.Pretokenizers {
			walk(x)
		}
	}
	var top step
	if json.Unmarshal(f.PreTokenizer, &top) == nil {
		walk(top)
	}
	return list
}

// byteOf maps the characters in which byte-level vocabularies are spelled to bytes.
var byteOf = func() map[rune]byte {
	m := make(map[rune]byte, 256)
	next := rune(256)
	for b := range 256 {
		switch {
		case b >= '!' && b <= '~', b >= 0xA1 && b <= 0xAC, b >= 0xAE:
			m[rune(b)] = byte(b)
		default:
			m[next] = byte(b)
			next++
		}
	}
	return m
}()

// raw returns the bytes of a byte-level spelling, or the spelling if it is not one.
func raw(token string) string {
	b := make([]byte, 0, len(token))
	for _, r := range token {
		c, ok := byteOf[r]
		if !ok {
			return token
		}
		b = append(b, c)
	}
	return string(b)
}
