// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/tokenizers"
)

// This file passes on log probabilities:
//
//	wantLogprobs   what the client asks for, and which engines have it
//	add            those of a step, from the engine
//	weave          those of the tokens in the text that the client gets: not of reasoning, calls and markers

// maxLogprobs is the maximum number of candidates per token, OpenAI's and vLLM's.
const maxLogprobs = 20

const (
	// maxPromptLogprobs and maxEchoLogprobs limit the numbers that an engine sends for a prompt and for all prompts of a request.
	// A prompt at the first limit fits in an event of 8 MiB, the limit of package sse.
	maxPromptLogprobs = 1 << 17
	maxEchoLogprobs   = 1 << 20
	// perLogprob is the memory that each takes until the response is written, in bytes.
	perLogprob = 128
)

// includesLogprobs reports whether a Responses request asks for log probabilities.
func includesLogprobs(r *block.Request) bool {
	var include []string
	json.Unmarshal(r.Field("include"), &include) // the decoder has checked it
	return slices.Contains(include, "message.output_text.logprobs")
}

// wantLogprobs sets c.logprobs and excludes the engines that report none.
func (c *call) wantLogprobs() error {
	s, param := c.req.Params().Sampling, "logprobs"
	want := s.Logprobs
	if c.req.API() == block.Responses {
		want, param = includesLogprobs(c.req), "include"
	}
	top := int64(0)
	if s.TopLogprobs != nil {
		top = *s.TopLogprobs
	}
	name := "top_logprobs"
	if c.req.API() == block.Completions {
		name = "logprobs"
	}
	switch {
	case top < 0 || top > maxLogprobs:
		return apierr.Invalid(name, "The number of candidates must be from 0 to %d.", maxLogprobs)
	case c.req.API() == block.Chat && top > 0 && !want:
		return apierr.Invalid(name, "It requires logprobs to be true.")
	case !want:
		return nil
	}
	what := "log probabilities"
	if c.echo != nil {
		what, param = "log probabilities of a prompt", "echo"
		if err := c.boundPromptLogprobs(2 + int(top)); err != nil {
			return err
		}
	}
	var unable []index.WorkerID
	var kind upstream.Kind
	for _, e := range c.fleet.order {
		t := e.kind.Traits()
		if !t.Probs || c.echo != nil && t.PromptProbs == nil {
			unable, kind = append(unable, e.id), e.kind
		}
	}
	if len(unable) == len(c.fleet.order) {
		return &apierr.Error{Why: event.Invalid, Param: param, Code: apierr.CodeUnsupported, Message: fmt.Sprintf("The engines of this model (%s) report no %s.", kind, what)}
	}
	c.route.Exclude = append(c.route.Exclude, unable...)
	c.logprobs = new(int(top))
	return nil
}

// logprobs holds the log probabilities of a choice's tokens until their text is sent.
type logprobs struct {
	choice int32
	top    int // candidates per token
	tok    *tokenizers.Tokenizer
	all    bool  // tokens without text are included
	at     int64 // bytes of output
	held   []tokenLogprob
	events []event.Event
}

// A tokenLogprob is an entry for the client, in the form of the Chat API, and the bytes [off, end) of the output to which it
// belongs.
type tokenLogprob struct {
	off, end int64
	entry    []byte
}

// boundPromptLogprobs takes the memory for the log probabilities of the prompts, or returns an error if they are too many. each is the
// number of them for a token.
func (c *call) boundPromptLogprobs(each int) error {
	all := 0
	for i, p := range c.prompts {
		if most := maxPromptLogprobs / each; len(p.ids) > most {
			return apierr.Invalid(c.req.Turns()[i].At.Path(), "Log probabilities of so many candidates are available for prompts of at most %d tokens. This one has %d.", most, len(p.ids))
		}
		all += len(p.ids) * choices(c.req)
	}
	if most := maxEchoLogprobs / each; all > most {
		return apierr.Invalid("prompt", "Log probabilities of so many candidates are available for at most %d tokens of prompts in a response. These would be %d.", most, all)
	}
	return c.memory.add(int64(all * each * perLogprob))
}

// wantsPromptLogprobs reports whether the client gets the log probabilities of the prompt.
func (c *call) wantsPromptLogprobs() bool { return c.echo != nil && c.logprobs != nil }

// kind returns the kind as which an engine gets the request.
func (c *call) kind(e *engine) upstream.TokenKind {
	if k := e.kind.Traits().PromptProbs; k != nil && c.wantsPromptLogprobs() {
		return k
	}
	return e.kind.(upstream.TokenKind)
}

// newLogprobs returns the log probabilities of a choice, or nil if the client wants none.
func (c *call) newLogprobs(choice int32) *logprobs {
	if c.logprobs == nil {
		return nil
	}
	return &logprobs{choice: choice, top: *c.logprobs, tok: c.model.Tokenizer(), all: c.api == wire.Completions}
}

// takePrompt removes the log probabilities of the prompt from a choice's first step, and returns them as a list in the
// form of the Chat API, or nil if the step does not have them. The first token has none.
func (l *logprobs) takePrompt(st *upstream.Step, prompt []uint32) []byte {
	p, n := st.Logprobs, len(prompt)
	if p == nil || len(p.Tokens) < n || len(p.Values) < n || len(p.Top) < n {
		return nil
	}
	list := []byte("[")
	for i, id := range prompt {
		if i > 0 {
			list = append(list, ',')
		}
		e := l.entry(p, i, l.tok.AppendToken(nil, id))
		if p.Values[i] == "" {
			e.candidate.Logprob, e.Top = nil, nil
		}
		raw, _ := json.Marshal(e) // strings and numbers
		list = append(list, raw...)
	}
	st.Logprobs = &upstream.Logprobs{Tokens: p.Tokens[n:], Values: p.Values[n:], Top: p.Top[n:]}
	return append(list, ']')
}

// add adds those of a step, and returns the bytes that they take. l may be nil.
func (l *logprobs) add(st *upstream.Step) (size int) {
	if l == nil {
		return 0
	}
	p := st.Logprobs
	if p == nil { // the engine has none of them
		if len(st.IDs) == 0 {
			l.at += int64(len(st.Text))
		}
		for _, id := range st.IDs {
			l.at += int64(len(l.tok.AppendToken(nil, id)))
		}
		return 0
	}
	for i, token := range p.Tokens {
		text := []byte(token)
		if len(st.IDs) > 0 {
			if i >= len(st.IDs) { // the step was cut
				break
			}
			text = l.tok.AppendToken(nil, st.IDs[i]) // exact, also within a character
		}
		raw, _ := json.Marshal(l.entry(p, i, text)) // strings and numbers
		l.held = append(l.held, tokenLogprob{l.at, l.at + int64(len(text)), raw})
		l.at += int64(len(text))
		size += len(raw)
	}
	return size
}

// entry returns the entry of a token of a step, with its text.
func (l *logprobs) entry(p *upstream.Logprobs, i int, text []byte) logprobEntry {
	e := logprobEntry{candidate: newCandidate(p.Tokens[i], text, valueAt(p.Values, i)), Top: []candidate{}}
	if i < len(p.Top) {
		for _, t := range slices.SortedFunc(maps.Keys(p.Top[i]), func(a, b string) int {
			x, _ := p.Top[i][a].Float64()
			y, _ := p.Top[i][b].Float64()
			return cmp.Or(cmp.Compare(y, x), strings.Compare(a, b))
		}) {
			if len(e.Top) < l.top { // vLLM also lists the token itself
				e.Top = append(e.Top, newCandidate(t, []byte(t), p.Top[i][t]))
			}
		}
	}
	return e
}

// valueAt returns the value of a token; an absent one means a token that cannot occur.
func valueAt(list []json.Number, i int) json.Number {
	if i < len(list) && list[i] != "" {
		return list[i]
	}
	return "-9999.0" // OpenAI's
}

// A candidate is a token that the model could have written.
type candidate struct {
	Token   string       `json:"token"`
	Logprob *json.Number `json:"logprob"` // nil for the first token of a prompt
	Bytes   []int        `json:"bytes"`   // nil if unknown
}

type logprobEntry struct {
	candidate
	Top []candidate `json:"top_logprobs"`
}

// newCandidate returns a candidate with the bytes of its text, unless they were replaced in it.
func newCandidate(token string, text []byte, value json.Number) candidate {
	c := candidate{Token: token, Logprob: &value}
	if value == "" {
		value = "-9999.0"
	}
	if utf8.Valid(text) && bytes.ContainsRune(text, utf8.RuneError) { // the engine replaced them
		return c
	}
	c.Bytes = make([]int, len(text))
	for i, b := range text {
		c.Bytes[i] = int(b)
	}
	return c
}

// weave inserts the log probabilities of text before it. The result is valid until the next call. l may be nil.
func (l *logprobs) weave(events []event.Event) []event.Event {
	if l == nil {
		return events
	}
	out := l.events[:0]
	for _, ev := range events {
		switch {
		case ev.Kind == event.Text && ev.End > ev.Off && l.all:
			out = l.send(out, ev.Part, -1, ev.End)
		case ev.Kind == event.Text && ev.End > ev.Off:
			out = l.send(out, ev.Part, ev.Off, ev.End)
		case ev.Kind == event.Finish && l.all:
			out = l.send(out, ev.Part, -1, math.MaxInt64)
		}
		out = append(out, ev)
	}
	l.events = out
	return out
}

// send appends the log probabilities of the tokens of the output's bytes [off, end). Those before are dropped.
func (l *logprobs) send(out []event.Event, part int32, off, end int64) []event.Event {
	var list []byte
	for len(l.held) > 0 && l.held[0].off < end {
		if t := l.held[0]; t.end > off {
			list = append(append(list, ','), t.entry...)
		}
		l.held = l.held[1:]
	}
	if list == nil {
		return out
	}
	list[0] = '['
	return append(out, event.Event{Kind: event.Logprobs, Choice: l.choice, Part: part, Call: -1, Data: append(list, ']')})
}
