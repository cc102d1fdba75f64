// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/weft-go/weft/examples/internal/cli"
	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/protocols/event"
)

type config struct {
	family, policy, split string

	rules parsers.Policy // of policy
	size  int            // size of pieces by -split: 0 as recorded, -1 whole
}

func (c *config) check() error {
	switch c.split {
	case "":
	case "whole":
		c.size = -1
	case "bytes":
		c.size = 1
	default:
		n, err := strconv.Atoi(c.split)
		if err != nil || n < 1 {
			return cli.Usagef("-split %q: want whole, bytes or a number of bytes", c.split)
		}
		c.size = n
	}
	if c.family != "" {
		if _, err := parsers.Default().Lookup(c.family); err != nil {
			return cli.Usagef("-family: %v", withHint(err))
		}
	}
	var err error
	if c.rules, err = parsers.ParsePolicy(c.policy); err != nil {
		return cli.Usagef("-policy: %v", err)
	}
	return nil
}

// record is one line of input.
type record struct {
	ID        json.RawMessage `json:"id"`
	Family    string          `json:"family"`
	Text      text            `json:"text"`
	Chunks    []string        `json:"chunks"`
	ChunksB64 [][]byte        `json:"chunks_b64"`
	Tools     []struct {
		Function struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	ToolChoice json.RawMessage `json:"tool_choice"`
	Parallel   *bool           `json:"parallel_tool_calls"`
	Init       struct {
		Start  string `json:"start"`
		Output string `json:"output"`
		Tool   string `json:"tool"`
	} `json:"init"`
	Channels string `json:"channels"`
}

// text is a string that may be null, which is an empty output.
type text struct {
	s     string
	given bool
}

func (t *text) UnmarshalJSON(raw []byte) error {
	t.given = true
	return json.Unmarshal(raw, &t.s)
}

// output is one line of output. A line has either Error or the rest.
type output struct {
	ID        json.RawMessage `json:"id"`
	Error     string          `json:"error,omitempty"`
	Content   *string         `json:"content,omitempty"`
	Reasoning *string         `json:"reasoning,omitempty"`
	Calls     *[]call         `json:"calls,omitempty"`
	Aborted   *[]aborted      `json:"aborted,omitempty"`
	Events    *[][]string     `json:"events,omitempty"`
}

type call struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	ID        string `json:"id"`
}

type aborted struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// job is a record with its parser.
type job struct {
	parser *parsers.Parser
	chunks [][]byte
	bytes  int
}

// record parses one line. The job is nil if the record is bad.
func (c *config) record(line []byte) (*job, output) {
	var r record
	r.ID = json.RawMessage("null")
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, output{ID: r.ID, Error: err.Error()}
	}
	j, err := c.prepare(&r)
	if err != nil {
		return nil, output{ID: r.ID, Error: err.Error()}
	}
	var all event.Collector
	var evs []event.Event
	for _, chunk := range j.chunks {
		evs, err = j.parser.Append(evs[:0], chunk)
		all.Add(evs...)
		if err != nil {
			break
		}
	}
	if err == nil {
		evs, err = j.parser.Finish(evs[:0], event.None)
		all.Add(evs...)
	}
	if err != nil {
		return nil, output{ID: r.ID, Error: err.Error()}
	}
	return j, render(r.ID, &all)
}

func (c *config) prepare(r *record) (*job, error) {
	opt := parsers.Options{Policy: c.rules}
	for _, t := range r.Tools {
		opt.Tools = append(opt.Tools, parsers.Tool{Name: t.Function.Name, Schema: t.Function.Parameters})
	}
	switch r.Init.Start {
	case "":
	case "none":
		opt.Start = parsers.StartTurn
	case "reasoning":
		opt.Start = parsers.StartReasoning
	case "response":
		opt.Start = parsers.StartResponse
	default:
		return nil, fmt.Errorf("init.start %q: want none, reasoning or response", r.Init.Start)
	}
	switch r.Init.Output {
	case "", "native":
	case "guided_required":
		opt.Output = parsers.GuidedRequired
	case "guided_named":
		opt.Output = parsers.GuidedNamed
	default:
		return nil, fmt.Errorf("init.output %q: want native, guided_required or guided_named", r.Init.Output)
	}
	switch r.Channels {
	case "", "both":
	case "tools":
		opt.Channels = parsers.OnlyTools
	case "reasoning":
		opt.Channels = parsers.OnlyReasoning
	default:
		return nil, fmt.Errorf("channels %q: want both, tools or reasoning", r.Channels)
	}
	opt.NoCalls = string(r.ToolChoice) == `"none"`
	opt.SingleCall = r.Parallel != nil && !*r.Parallel
	var named struct{ Function struct{ Name string } }
	only := r.Init.Tool
	if only == "" && json.Unmarshal(r.ToolChoice, &named) == nil {
		only = named.Function.Name
	}
	if only != "" {
		opt.Allow = []string{only}
	}

	j := &job{}
	switch {
	case r.Text.given && (r.Text.s != "" || r.Chunks == nil && r.ChunksB64 == nil):
		j.chunks = [][]byte{[]byte(r.Text.s)}
	case r.ChunksB64 != nil:
		j.chunks = r.ChunksB64
	case r.Chunks != nil:
		for _, s := range r.Chunks {
			j.chunks = append(j.chunks, []byte(s))
		}
	default:
		return nil, fmt.Errorf("no text, chunks or chunks_b64")
	}
	for _, ch := range j.chunks {
		j.bytes += len(ch)
	}
	if c.size != 0 {
		j.chunks = cut(j.chunks, c.size)
	}
	j.chunks = together(j.chunks, j.bytes)
	name := r.Family
	if name == "" {
		name = c.family
	}
	if name == "" {
		return nil, fmt.Errorf("no family: name one in the record or with -family")
	}
	var err error
	if j.parser, err = parsers.New(name, &opt); err != nil {
		return nil, withHint(err)
	}
	return j, nil
}

// together copies chunks of n bytes in total into one allocation. In use, a chunk that has just arrived is in the
// processor's cache, so fetching it should not be part of the parser's time.
func together(chunks [][]byte, n int) [][]byte {
	all := make([]byte, 0, n)
	out := make([][]byte, 0, len(chunks))
	for _, c := range chunks {
		all = append(all, c...)
		out = append(out, all[len(all)-len(c):len(all):len(all)])
	}
	return out
}

// cut joins chunks and splits them into pieces of size bytes; -1 means one piece.
func cut(chunks [][]byte, size int) [][]byte {
	var all []byte
	for _, c := range chunks {
		all = append(all, c...)
	}
	if size < 0 {
		return [][]byte{all}
	}
	var out [][]byte
	for len(all) > size {
		out = append(out, all[:size])
		all = all[size:]
	}
	return append(out, all)
}

// render returns the output line for the collected events.
func render(id json.RawMessage, all *event.Collector) output {
	content, reasoning := "", ""
	calls, aborts, events := []call{}, []aborted{}, [][]string{}
	add := func(kind, text string) {
		if n := len(events); n > 0 && events[n-1][0] == kind {
			events[n-1][1] += text
			return
		}
		events = append(events, []string{kind, text})
	}
	for _, a := range all.Answers {
		for _, b := range a.Blocks {
			data := string(b.Data)
			switch b.Kind {
			case event.Reasoning:
				reasoning += data
				add("reason", data)
			case event.Text:
				content += data
				add("text", data)
			case event.ToolStart:
				calls = append(calls, call{b.Name, data, b.ID})
				events = append(events, []string{"call", b.Name, data})
			case event.ToolAbort:
				aborts = append(aborts, aborted{b.Name, b.Why.String()})
				events = append(events, []string{"abort", b.Name, b.Why.String()})
			}
		}
	}
	return output{ID: id, Content: &content, Reasoning: &reasoning, Calls: &calls, Aborted: &aborts, Events: &events}
}
