// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/event"
)

// This file finds the family of a model. Its id and model_type are only hints. The template is decisive: it prints a
// call as the model was trained to write it, and only the parser of the right family can read that call.

// findFamily sets the family: asked, if given; otherwise the first of format and the families that names suggest whose
// parser reads the template's calls, or any other family whose parser does.
func (m *Model) findFamily(asked, format string, names ...string) error {
	if m.chatML {
		return m.findChatML(asked, names)
	}
	s := m.newSample()
	if asked != "" {
		if err := m.setFamily(asked); err != nil {
			return err
		}
		if !s.calls || !writesCalls(m.grammar) || s.read(m.opt.Parsers, asked) > 0 {
			return nil
		}
		if other := m.reader(s, format, names); other != "" {
			return fmt.Errorf("the parser %s contradicts the template (%s), which prints calls as %s reads them", asked, m.source, other)
		}
		return nil // no parser reads this template's calls, so there is nothing to compare with
	}
	name := m.reader(s, format, names)
	if name == "" && !s.calls {
		name = "passthrough"
	}
	return m.setFamily(name)
}

// writesCalls reports whether a grammar has calls. A family without calls is permitted for every template, for
// operators that need the raw text.
func writesCalls(g *grammar.Grammar) bool {
	if g == nil {
		return false // a parser that the caller registered
	}
	t := g.Tagged
	return t == nil || t.Open.Text != "" || t.Wrapper != nil || t.Bare
}

// findChatML sets the family of a model without a template, which gets ChatML. A family that a name suggests is used only
// if its parser reads calls in ChatML.
func (m *Model) findChatML(asked string, names []string) error {
	if asked != "" {
		return m.setFamily(asked)
	}
	for _, name := range append(familiesOf(names), "hermes") {
		if err := m.setFamily(name); err != nil {
			continue // not in the caller's registry
		}
		if m.newSample().read(m.opt.Parsers, name) > 0 {
			return nil
		}
	}
	return m.setFamily("")
}

// familiesOf returns the families that the names of models suggest.
func familiesOf(names []string) (list []string) {
	for _, n := range names {
		if f, ok := parsers.LookupModel(n); ok && n != "" {
			list = append(list, f)
		}
	}
	return list
}

// reader returns the first of format and the families suggested by names whose parser reads the sample, otherwise the
// family that reads most of it and has most of its markers, or "". If the sample has no calls, reader returns the first
// of those families.
func (m *Model) reader(s *sample, format string, names []string) string {
	named := familiesOf(names)
	if format != "" {
		named = slices.Insert(named, 0, format)
	}
	if !s.calls {
		if len(named) > 0 {
			return named[0]
		}
		return ""
	}
	for _, name := range named {
		if s.read(m.opt.Parsers, name) > 0 {
			return name
		}
	}
	best, most := "", [4]int{}
	for _, name := range slices.Concat(common, m.opt.Parsers.Names()) {
		n := s.read(m.opt.Parsers, name)
		if n == 0 {
			continue
		}
		seen, missing := s.markers(m.opt.Parsers, name)
		usual := 0
		if slices.Contains(common, name) {
			usual = 1
		}
		if score := [4]int{n, seen, usual, -missing}; slices.Compare(score[:], most[:]) > 0 {
			best, most = name, score
		}
	}
	return best
}

// markers returns how many of the family's markers the sample has and how many it lacks. Among families that read a call
// equally well, the one with more of the template's markers is right: MiniMax M1 and Apriel write the same calls.
func (s *sample) markers(r *parsers.Registry, family string) (seen, missing int) {
	g, err := r.Lookup(family)
	if err != nil || g == nil {
		return 0, 0
	}
	count := func(m grammar.Marker) {
		switch {
		case m.Text == "":
		case strings.Contains(s.prompt, m.Text) || strings.Contains(s.answer, m.Text):
			seen++
		default:
			missing++
		}
	}
	for _, m := range g.Markers() {
		count(m)
	}
	if g.Tagged != nil && g.Tagged.Wrapper != nil { // again: DeepSeek V3.2 and V4 read each other's block
		count(grammar.Marker{Text: g.Tagged.Wrapper.Open.Text})
	}
	return seen, missing
}

// common lists the families that take precedence among those that read a sample equally well and have as many of its
// markers, because several share a format.
var common = []string{"hermes", "qwen3_coder", "llama3_json", "mistral"}

// sample is a conversation that ends with reasoning, a call and its result, as a template prints it.
type sample struct {
	prompt, answer string
	calls          bool // the template prints the call
}

const (
	sampleThought = "Zqthought"
	sampleValue   = "Zqvalue"
	sampleTools   = `"tools":[{"type":"function","function":{"name":"zqfind","description":"Zqabout","parameters":{"type":"object","properties":{"zqkey":{"type":"string"}},"required":["zqkey"]}}}]`
	sampleUser    = `{"role":"user","content":"Zquser"}`
	sampleAnswer  = `{"role":"assistant","content":"","reasoning_content":"` + sampleThought + `","tool_calls":[{"id":"call00000","type":"function","function":{"name":"zqfind","arguments":"{\"zqkey\": \"` + sampleValue + `\"}"}}]}`
	sampleResult  = `{"role":"tool","tool_call_id":"call00000","content":"Zqresult"}`
)

// newSample renders the sample. If the template refuses it, the sample has no calls.
func (m *Model) newSample() *sample {
	s := &sample{}
	if !m.caps.Has("tool_calls") && !m.caps.Has("flat_calls") {
		return s
	}
	open := m.printSample(sampleTools, sampleUser)
	whole := m.printSample(sampleTools, sampleUser, sampleAnswer, sampleResult)
	if open == "" || whole == "" {
		return s
	}
	n := prefix(open, whole)
	if n < len(open) { // the generation prompt also closes what it opens; start before it
		n = prefix(m.printSample(`"add_generation_prompt":false,`+sampleTools, sampleUser), whole)
	}
	s.prompt, s.answer = whole[:n], whole[n:]
	s.calls = strings.Contains(s.answer, "zqfind") && strings.Contains(s.answer, sampleValue)
	return s
}

// printSample renders a conversation with fields, or returns "" if the template refuses it.
func (m *Model) printSample(fields string, messages ...string) string {
	req, err := chat.Decode([]byte(`{"model":"m",`+fields+`,"messages":[`+strings.Join(messages, ",")+`]}`), nil)
	if err != nil {
		return ""
	}
	p, err := m.Render(req, time.Unix(0, 0).UTC())
	if err != nil {
		return ""
	}
	return p.Text
}

// prefix returns the length of the longest common prefix of a and b.
func prefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// read returns a score for the family's parser on the sample: 0 if it does not find the call, 1 if it does, 2 if it
// also finds the reasoning.
func (s *sample) read(r *parsers.Registry, family string) int {
	g, err := r.Lookup(family)
	if err != nil || g == nil || !s.calls {
		return 0
	}
	p, err := r.New(family, &parsers.Options{
		Prompt: s.prompt,
		Tools:  []parsers.Tool{{Name: "zqfind", Schema: []byte(`{"type":"object","properties":{"zqkey":{"type":"string"}}}`)}},
	})
	if err != nil {
		return 0
	}
	var c event.Collector
	events, err := p.Append(nil, []byte(s.answer))
	c.Add(events...)
	if err != nil {
		return 0
	}
	events, _ = p.Finish(events[:0], event.Stop)
	c.Add(events...)
	if len(c.Answers) != 1 {
		return 0
	}
	calls := c.Answers[0].Calls()
	if len(calls) != 1 || calls[0].Name != "zqfind" || !strings.Contains(string(calls[0].Data), sampleValue) {
		return 0
	}
	if strings.Contains(c.Answers[0].Reasoning(), sampleThought) {
		return 2
	}
	return 1
}
