// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/weft-go/weft/examples/internal/cli"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// load returns the model in dir or, if dir is empty, a model with ChatML prompts and the given family.
func load(dir, family string) (*prompt.Model, error) {
	if dir != "" {
		files, err := cli.Model("model-dir", dir)
		if err != nil {
			return nil, err
		}
		return prompt.Load(files, &prompt.Options{Family: family})
	}
	if family == "" {
		family = "hermes"
	}
	m, err := prompt.New(nil, &prompt.Options{Family: family})
	if err != nil {
		return nil, err
	}
	switch m.Family() {
	case "hermes", "qwen25", "qwen3", "qwen3_coder", "qwen35":
		return m, nil
	}
	return nil, fmt.Errorf("family %s requires the template of the model: set -model-dir", m.Family())
}

var control = regexp.MustCompile(`<\|(\w+\|>)`)

// disarm returns the text of a prompt in which only the template can start or end a turn: it inserts a zero-width space
// in each <|name|> that comes from files, tools or users. An engine that accepts token ids does not need this, since
// AppendEncodeSegments of package tokenizers encodes such text without control tokens.
func disarm(p *prompt.Prompt) string {
	var b strings.Builder
	for _, s := range p.Segments {
		if s.Trusted {
			b.WriteString(s.Text)
		} else {
			b.WriteString(control.ReplaceAllString(s.Text, "<\u200b|$1"))
		}
	}
	return b.String()
}
