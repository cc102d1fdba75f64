// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
	tchat "github.com/weft-go/weft/tokenizers/chat"
)

// This file turns a conversation into the text that the model goes on from. It is pure.

// template returns the chat template that goes with a family of parsers, by its canonical name.
func template(family string) (tchat.Template, error) {
	switch family {
	case "hermes", "qwen25", "qwen3":
		return tchat.ChatML(nil), nil
	case "qwen3_coder", "qwen35":
		return tchat.ChatML(&tchat.ChatMLOptions{Calls: tchat.CallsXML}), nil
	}
	return nil, fmt.Errorf("no chat template for models of the family %s here", family)
}

// words returns a turn of text.
func words(r block.Role, text string) block.Turn {
	return block.Turn{Role: r, Blocks: []block.Block{{Kind: block.Text, Text: text}}}
}

// render prints the conversation and opens the model's next turn. What a template cannot print is left out, such as where
// text stood behind calls.
func render(t tchat.Template, conversation *block.Request) (string, error) {
	messages, _ := chat.AppendMessages(nil, conversation, nil)
	tools, _ := chat.AppendTools(nil, conversation)
	p, err := t.Render(tchat.Request{Messages: messages, Tools: tools, AddGenerationPrompt: true})
	if err != nil {
		return "", err
	}
	return disarm(p), nil
}

var control = regexp.MustCompile(`<\|(\w+\|>)`)

// disarm returns the prompt's text so that nobody but the template can end a turn or begin one: in what files, tools and
// users brought, <|name|> gets an invisible character. An engine that takes token ids needs no such thing: there
// AppendEncodeSegments of package tokenizers keeps such text text.
func disarm(p *tchat.Prompt) string {
	var b strings.Builder
	for _, s := range p.Segments {
		if text := p.Text[s.Start:s.End]; s.Trusted {
			b.WriteString(text)
		} else {
			b.WriteString(control.ReplaceAllString(text, "<\u200b|$1"))
		}
	}
	return b.String()
}
