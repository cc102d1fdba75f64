// SPDX-License-Identifier: Apache-2.0

// Command train makes the tokenizer of package mini from the texts in its corpus directory.
//
//	go run ./internal/train -dir mini    # from the module's root
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sort"

	"github.com/weft-go/weft/tokenizers/internal/bytelevel"
)

// vocabSize is the number of tokens before the added ones.
const vocabSize = 4000

// expr is Qwen2's cutting rule.
const expr = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

// added lists the added tokens; the flags are those Qwen3 declares.
var added = []struct {
	content string
	special bool
}{
	{"<|endoftext|>", true}, {"<|im_start|>", true}, {"<|im_end|>", true},
	{"<|fim_prefix|>", false}, {"<|fim_middle|>", false}, {"<|fim_suffix|>", false}, {"<|fim_pad|>", false},
	{"<tool_call>", false}, {"</tool_call>", false}, {"<tool_response>", false}, {"</tool_response>", false},
	{"<think>", false}, {"</think>", false},
}

func main() {
	log.SetFlags(0)
	dir := flag.String("dir", ".", "folder with corpus/*.txt; the result goes there too")
	flag.Parse()
	files, err := build(*dir)
	if err != nil {
		log.Fatal("train: ", err)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(*dir, name), data, 0o644); err != nil {
			log.Fatal("train: ", err)
		}
	}
}

// build returns the files to write by name.
func build(dir string) (map[string][]byte, error) {
	names, err := filepath.Glob(filepath.Join(dir, "corpus", "*.txt"))
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("no texts in %s: %v", filepath.Join(dir, "corpus"), err)
	}
	sort.Strings(names)
	var text []byte
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		text = append(text, bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))...)
	}
	vocab, merges := train(string(text), vocabSize)
	config, err := json.MarshalIndent(map[string]any{
		"tokenizer_class":              "Qwen2Tokenizer",
		"bos_token":                    nil,
		"eos_token":                    "<|im_end|>",
		"pad_token":                    "<|endoftext|>",
		"model_max_length":             131072,
		"add_prefix_space":             false,
		"clean_up_tokenization_spaces": false,
	}, "", "  ")
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		"tokenizer.json":        file(vocab, merges),
		"tokenizer_config.json": append(config, '\n'),
	}, nil
}

// file prints tokenizer.json with a line per token, so that changes show in a diff.
func file(vocab []string, merges []merge) []byte {
	var w bytes.Buffer
	quote := func(s []byte) []byte {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(string(s)) // a string cannot fail
		return bytes.TrimRight(b.Bytes(), "\n")
	}
	spell := func(s string) []byte { return quote(bytelevel.Encode(nil, []byte(s))) }
	list := func(n int, line func(i int)) {
		for i := range n {
			if i > 0 {
				w.WriteByte(',')
			}
			w.WriteByte('\n')
			line(i)
		}
	}
	const level = `{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":false,"use_regex":false}`
	w.WriteString(`{"version":"1.0","truncation":null,"padding":null,"added_tokens":[`)
	list(len(added), func(i int) {
		fmt.Fprintf(&w, `{"id":%d,"content":%s,"single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":%t}`,
			len(vocab)+i, quote([]byte(added[i].content)), added[i].special)
	})
	fmt.Fprintf(&w, "],\n\"normalizer\":{\"type\":\"NFC\"},\n\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":%s},\"behavior\":\"Isolated\",\"invert\":false},%s]},\n",
		quote([]byte(expr)), level)
	fmt.Fprintf(&w, "\"post_processor\":%s,\n\"decoder\":%s,\n", level, level)
	w.WriteString(`"model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":"","end_of_word_suffix":"","fuse_unk":false,"byte_fallback":false,"ignore_merges":false,"vocab":{`)
	list(len(vocab), func(i int) { fmt.Fprintf(&w, "%s:%d", spell(vocab[i]), i) })
	w.WriteString(`},"merges":[`)
	list(len(merges), func(i int) {
		fmt.Fprintf(&w, "[%s,%s]", spell(vocab[merges[i].a]), spell(vocab[merges[i].b]))
	})
	w.WriteString("]}}\n")
	return w.Bytes()
}
