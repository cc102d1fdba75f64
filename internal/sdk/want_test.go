// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"encoding/json"
	"strings"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/wire"
)

// This file derives the content that a client must receive from an event.Collector. It implements the rules of the
// packages' documentation a second time.

// setup holds the encoder options that affect the received content.
type setup struct {
	reasoning wire.Reasoning
	seal      bool // the request is one of the Responses API that wants reasoning sealed
	tools     []block.Tool

	wholeCalls       bool
	callsInReasoning bool
}

// hidden reports whether the client does not get the text of reasoning.
func (s setup) hidden() bool {
	return s.reasoning == wire.ReasoningOmitted || s.reasoning == wire.ReasoningNone
}

// tool returns the tool that the model knows by name, or none.
func (s setup) tool(name string) block.Tool {
	t, _ := s.request(chatAPI, false).Tool("", name)
	return t
}

// meaning derives the expected content. whole is set for a response that was not streamed.
type meaning struct {
	setup
	api   *api
	whole bool

	seen     map[string]bool // ids of the choice's calls so far
	complete int             // calls sent whole that the client is to run
	refused  bool
}

func (m *meaning) of(c *event.Collector) response {
	h := response{ID: m.api.id, Model: model}
	u := c.Usage
	h.Usage = event.Tokens{
		Prompt: u.Prompt, Output: u.Output, Cached: min(u.Cached, u.Prompt), CacheWrite: u.CacheWrite, Reasoning: min(u.Reasoning, u.Output),
	}
	if m.api == messagesAPI { // which counts the three kinds of input apart
		h.Usage.CacheWrite = min(u.CacheWrite, u.Prompt-h.Usage.Cached)
	}
	for i := range c.Answers {
		if i > 0 && m.api != chatAPI {
			break
		}
		h.Choices = append(h.Choices, m.choice(&c.Answers[i]))
	}
	return h
}

func (m *meaning) choice(a *event.Answer) (c choice) {
	m.seen, m.complete, m.refused = map[string]bool{}, 0, false
	var pieces []piece
	for i := range a.Blocks {
		b := &a.Blocks[i]
		p, ok := m.piece(b)
		if !ok {
			continue
		}
		m.refused = m.refused || p.Kind == "refusal"
		if m.api == responsesAPI && p.Status == "" && p.Kind != "other" {
			p.Status = "completed"
			if i == len(a.Blocks)-1 {
				p.Status = m.finish(a.Finish)
			}
		}
		pieces = append(pieces, p)
	}
	c.Finish = m.finish(a.Finish)
	if c.Finish == "stop_sequence" {
		c.Stop = string(a.Stop)
	}
	if m.api != messagesAPI {
		for _, l := range a.Logprobs {
			c.Tokens = append(c.Tokens, tokensOf(l)...)
		}
	}
	if m.api != chatAPI {
		c.Pieces = pieces
		return c
	}
	thought := false
	for i := range pieces { // runs of reasoning are lines of one text
		if p := &pieces[i]; p.Kind == "reasoning" {
			if thought {
				p.Text = "\n" + p.Text
			}
			thought = true
		}
	}
	if m.whole { // a message has one of each, and the calls
		for _, kind := range []string{"reasoning", "text", "refusal"} {
			c.add(kind, (&choice{Pieces: pieces}).joined(kind))
		}
	}
	for _, p := range pieces {
		c.Notes, p.Notes = append(c.Notes, p.Notes...), nil
		switch p.Kind {
		case "reasoning", "text", "refusal":
			if !m.whole {
				c.add(p.Kind, p.Text)
			}
		default:
			c.Pieces = append(c.Pieces, p)
		}
	}
	return c
}

// piece returns what b is to the client, if it is anything.
func (m *meaning) piece(b *event.Block) (p piece, ok bool) {
	p.Text = valid(b.Data)
	for _, n := range b.Annotations {
		p.Notes = append(p.Notes, oneLine(n))
	}
	switch b.Kind {
	case event.Reasoning:
		p.Kind = "reasoning"
		return m.reasoning(b, p)
	case event.Text:
		p.Kind = "text"
		return p, p.Text != ""
	case event.Refusal:
		p.Kind = "refusal"
		if m.api == messagesAPI {
			m.refused = m.refused || p.Text != ""
			p.Kind = "text" // it has no other
		}
		return p, p.Text != ""
	case event.ToolStart, event.ToolAbort:
		return m.call(b, p)
	case event.ToolResult, event.Opaque:
		p.Kind, p.Text = "other", oneLine(b.Data)
		return p, m.api != chatAPI
	}
	return p, false
}

func (m *meaning) reasoning(b *event.Block, p piece) (piece, bool) {
	text := p.Text
	p.Signature = string(b.Signature)
	switch m.api {
	case chatAPI:
		p.Signature = ""
		return p, text != "" && !m.hidden()
	case responsesAPI:
		if m.hidden() {
			p.Text = ""
		}
		if p.Signature != "" && !b.Flags.Has(event.Encrypted) { // another API's, packed so that it comes back as one
			p.Signature = "weft1c.t0." + p.Signature
		}
		if m.seal && p.Text != "" && p.Signature == "" {
			p.Signature = sealed + text
		}
		return p, p.Text != "" || p.Signature != ""
	}
	if m.setup.reasoning == wire.ReasoningOmitted {
		p.Text = ""
	}
	if p.Signature == "" {
		p.Signature = sealed + text
	}
	return p, m.setup.reasoning != wire.ReasoningNone && (text != "" || len(b.Signature) > 0)
}

func (m *meaning) call(b *event.Block, p piece) (piece, bool) {
	p.Kind, p.Name, p.ID = "call", b.Name, b.ID
	if p.ID == "" || m.seen[p.ID] {
		p.ID = minted
	} else {
		m.seen[p.ID] = true
	}
	p.Cut = b.Kind == event.ToolAbort || !b.Flags.Has(event.Complete)
	switch {
	case b.Name == "", p.Cut && (m.whole && !b.Cut() || m.wholeCalls):
		return p, false
	case b.Flags.Has(event.Server) && m.api != messagesAPI:
		return p, false
	case b.Flags.Has(event.InReasoning) && !m.callsInReasoning:
		return p, false
	}
	switch {
	case b.Flags.Has(event.Server):
		p.Kind = "server"
	case b.Flags.Has(event.Custom) && m.api == messagesAPI:
		p.Kind = "wrapped"
	case b.Flags.Has(event.Custom):
		p.Kind = "custom"
	case m.tool(b.Name).Kind == block.CustomTool && m.api != messagesAPI:
		p.Kind = "custom"
		var in struct{ Input string }
		if json.Unmarshal(b.Data, &in) == nil {
			p.Text = in.Input
		}
	}
	if p.Text == "" && !p.Cut && (p.Kind == "call" || p.Kind == "server") {
		p.Text = "{}" // clients read JSON
	}
	if m.api == responsesAPI {
		p.Status = "completed"
		if p.Cut {
			p.Status = "incomplete"
		}
		if t := m.tool(b.Name); t.Namespace != "" {
			p.Namespace, p.Name = t.Namespace, t.Name
		}
	}
	if !p.Cut && p.Kind != "server" {
		m.complete++
	}
	if p.Cut && m.whole && m.api == messagesAPI { // the input is an object
		p.Kind, p.Cut = "wrapped", false
	}
	return p, true
}

// finish returns finish_reason, status or stop_reason.
func (m *meaning) finish(why event.Why) string {
	if m.api == responsesAPI {
		switch why {
		case event.Length, event.ContextFull, event.ContentFilter, event.Paused:
			return "incomplete"
		}
		return "completed"
	}
	forced := map[*api]map[event.Why]string{
		chatAPI: {event.Length: "length", event.ContextFull: "length", event.ContentFilter: "content_filter", event.Refused: "content_filter"},
		messagesAPI: {
			event.Length: "max_tokens", event.ContextFull: "model_context_window_exceeded", event.ContentFilter: "refusal",
			event.Refused: "refusal", event.Paused: "pause_turn",
		},
	}[m.api][why]
	switch {
	case m.api == chatAPI && why == event.Refused && m.refused:
		return "stop" // the refusal text contains it
	case forced != "":
		return forced
	case m.api == chatAPI && m.complete > 0:
		return "tool_calls"
	case m.api == chatAPI:
		return "stop"
	case m.complete > 0:
		return "tool_use"
	case m.refused:
		return "refusal"
	case why == event.StopSequence:
		return "stop_sequence"
	}
	return "end_turn"
}

// oneLine returns raw JSON as an event carries it.
func oneLine(raw []byte) string { return strings.ReplaceAll(string(raw), "\n", " ") }

// tokensOf returns the tokens of a list of log probabilities in OpenAI form.
func tokensOf(raw []byte) (out []string) {
	var list []struct{ Token string }
	if json.Unmarshal(raw, &list) == nil {
		for _, l := range list {
			out = append(out, l.Token)
		}
	}
	return out
}
