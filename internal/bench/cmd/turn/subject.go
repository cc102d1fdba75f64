// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing/fstest"

	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// The response of the engines.
const thought, said = "The tests first.", "I will run the tests."

// A subject is a model whose turns are measured.
type subject struct {
	name   string // as passed to -templates
	dir    string // of the tokenizer and, if it has one, the template, in the directory tok of the shared data
	config string // config.json that is added to the directory; "" means none
	output []tokenizers.Segment
}

// subjects lists the models. DeepSeek's template is the one written in Go, with DeepSeek's pre-tokenizer and the
// vocabulary of Qwen, because DeepSeek's is not part of the shared data.
var subjects = []subject{
	{name: "qwen3", dir: "qwen3", output: []tokenizers.Segment{{Text: "<think>\n" + thought + "\n</think>\n\n" + said, Trusted: true}}},
	{name: "gpt-oss", dir: "gpt-oss", output: []tokenizers.Segment{
		{Text: "<|channel|>analysis<|message|>" + thought + "<|end|><|start|>assistant<|channel|>final<|message|>" + said, Trusted: true},
	}},
	{name: "deepseek", dir: "hybrid-deepseek-v3", config: `{"model_type":"deepseek_v32"}`, output: []tokenizers.Segment{{Text: thought + "</think>" + said, Trusted: true}}},
}

// lookup returns the subject called name.
func lookup(name string) (*subject, error) {
	i := slices.IndexFunc(subjects, func(s subject) bool { return s.name == name })
	if i < 0 {
		return nil, fmt.Errorf("unknown template %q: want qwen3, gpt-oss or deepseek", name)
	}
	return &subjects[i], nil
}

// load loads the model from the shared data.
func (s *subject) load(shared string) (*prompt.Model, error) {
	dir := filepath.Join(shared, "tok", s.dir)
	if _, err := os.Stat(filepath.Join(dir, "tokenizer.json")); err != nil {
		return nil, fmt.Errorf("%s: no vocabulary: %w", s.name, err)
	}
	files := os.DirFS(dir)
	if s.config != "" {
		files = overlay{files, fstest.MapFS{"config.json": {Data: []byte(s.config)}}}
	}
	return prompt.Load(files, &prompt.Options{Name: s.name, Window: maxWindow})
}

// overlay adds files to another file system.
type overlay struct {
	fs.FS
	more fs.FS
}

// Open implements fs.FS.
func (o overlay) Open(name string) (fs.File, error) {
	if f, err := o.more.Open(name); err == nil && name != "." {
		return f, nil
	}
	return o.FS.Open(name)
}
