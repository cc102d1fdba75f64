// SPDX-License-Identifier: Apache-2.0

// Package mini contains a small tokenizer for tests, examples and offline use.
//
// It has about 3,000 tokens learned from the texts in the directory corpus (English, Go, Python, tool calls, agent
// conversations, some text in other scripts) and 13 added tokens after them. It is built like Qwen3's: NFC, Qwen2's
// cutting rule, byte-level merges, <|im_start|> and <|im_end|> as special tokens, <think> and <tool_call> and their
// like as added tokens that are not special. No model was ever trained with it.
//
// The files are generated: go generate ./mini gives the same bytes again.
package mini

import (
	"embed"
	"io/fs"

	"github.com/weft-go/weft/tokenizers"
)

//go:generate go run ../internal/train -dir .

//go:embed tokenizer.json tokenizer_config.json
var files embed.FS

// FS returns a file system with tokenizer.json and tokenizer_config.json, as [tokenizers.Load] takes it.
func FS() fs.FS { return files }

// Load returns the tokenizer. Each call builds a new one, in a few milliseconds.
func Load() *tokenizers.Tokenizer {
	t, err := tokenizers.Load(files, nil)
	if err != nil {
		panic("mini: " + err.Error()) // the files are part of the program
	}
	return t
}
