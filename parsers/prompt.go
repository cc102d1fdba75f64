// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"slices"
	"strings"

	"github.com/weft-go/weft/parsers/grammar"
)

// StartOf reads off the end of a prompt where generation begins: chat templates open reasoning there, close it at once
// when thinking is off, or open the answer. prompt may be only the tail of the prompt; 256 bytes are enough. White
// space at its end does not matter.
func StartOf(g *grammar.Grammar, prompt string) Start {
	prompt = strings.TrimRight(prompt, " \n\t\r")
	ends := func(m grammar.Marker, also []grammar.Marker) bool {
		return slices.ContainsFunc(append(also[:len(also):len(also)], m), func(m grammar.Marker) bool {
			return m.Text != "" && strings.HasSuffix(prompt, m.Text)
		})
	}
	switch {
	case g.Tagged != nil && g.Tagged.Reasoning != nil:
		r := g.Tagged.Reasoning
		if label := strings.TrimRight(r.Label, "\n"); label != "" {
			prompt = strings.TrimSuffix(prompt, label)
		}
		switch {
		case ends(r.Open, r.OpenAlso):
			return StartReasoning
		case ends(r.Close, r.CloseAlso):
			return StartResponse
		}
	case g.Elements != nil:
		e := g.Elements
		tag, ok := strings.CutSuffix(prompt, e.Sep.Text)
		i := strings.LastIndex(tag, e.Open.Text)
		if !ok || i < 0 {
			break
		}
		switch strings.TrimSpace(tag[i+len(e.Open.Text):]) {
		case e.Reasoning:
			return StartReasoning
		case e.Text:
			return StartResponse
		}
	case g.Channels != nil:
		return startOfMessage(g.Channels, prompt)
	}
	return StartNone
}

// startOfMessage reads the header that ends a prompt.
func startOfMessage(c *grammar.Channels, prompt string) Start {
	for _, k := range c.Kinds {
		if strings.HasSuffix(prompt, k.Marker.Text) {
			return map[grammar.Content]Start{
				grammar.ReasoningBody: StartReasoning, grammar.TextBody: StartResponse, grammar.CallBody: StartNone,
			}[k.Is]
		}
	}
	if len(c.Kinds) > 0 {
		return StartNone
	}
	header, ok := strings.CutSuffix(prompt, c.Body.Text)
	if !ok {
		return StartNone
	}
	last, field := -1, grammar.Role
	for _, s := range c.Sections {
		if i := strings.LastIndex(header, s.Marker.Text); i >= 0 && i+len(s.Marker.Text) > last {
			last, field = i+len(s.Marker.Text), s.Field
		}
	}
	words := strings.Fields(header[max(last, 0):])
	for _, w := range words {
		if to, ok := strings.CutPrefix(w, c.Recipient); ok {
			switch {
			case slices.Contains(c.ToReasoning, to):
				return StartReasoning
			case slices.Contains(c.ToText, to):
				return StartResponse
			}
			return StartNone
		}
	}
	if field == grammar.Channel && len(words) > 0 && slices.Contains(c.Reasoning, words[0]) {
		return StartReasoning
	}
	return StartResponse
}
