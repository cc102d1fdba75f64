// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ollama/ollama/api"
	ollama "github.com/ollama/ollama/model/parsers"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/protocols/event"
)

// Runner is one parser. One goroutine at a time.
type Runner interface {
	// Name identifies the parser.
	Name() string
	// Collect parses in and keeps what came out.
	Collect(in *Input) Result
	// Drive parses in and only counts the bytes that came out. Only this is timed.
	Drive(in *Input) int
}

// Tools are the tools of a workload, in the form of each parser.
type Tools struct {
	weft   []parsers.Tool
	ollama []api.Tool
}

// ParseTools reads a JSON array of tools in the form of OpenAI's API.
func ParseTools(raw []byte) (Tools, error) {
	var list []struct {
		Function struct {
			Name       string
			Parameters json.RawMessage
		}
	}
	var t Tools
	if err := json.Unmarshal(raw, &list); err != nil {
		return t, err
	}
	for _, x := range list {
		t.weft = append(t.weft, parsers.Tool{Name: x.Function.Name, Schema: x.Function.Parameters})
	}
	err := json.Unmarshal(raw, &t.ollama)
	return t, err
}

// LoadTools reads the tools of the workload files in directory shared, or the same tools from the built-in workload if
// shared is "".
func LoadTools(shared string) (Tools, error) {
	if shared == "" {
		return ParseTools([]byte(builtinTools))
	}
	raw, err := os.ReadFile(filepath.Join(shared, "bench", "parsers", "tools.json"))
	if err != nil {
		return Tools{}, err
	}
	return ParseTools(raw)
}

// Weft is weft's parser of a family. It keeps one parser and resets it between replies, unless fresh.
type Weft struct {
	name  string
	opt   parsers.Options
	p     *parsers.Parser
	evs   []event.Event
	fresh bool
}

// NewWeft returns weft's parser of family f. prefill reports that the prompt opened reasoning. With fresh a new parser
// is made for every reply. An unknown family is an error.
func NewWeft(f Family, prefill bool, tools Tools, fresh bool) (*Weft, error) {
	w := &Weft{name: f.Name, opt: parsers.Options{Tools: tools.weft}, fresh: fresh}
	if prefill && !f.NoReasoning {
		w.opt.Start = parsers.StartReasoning
	}
	var err error
	w.p, err = parsers.New(w.name, &w.opt)
	return w, err
}

// Name implements Runner.
func (w *Weft) Name() string { return "weft " + w.p.Grammar().Name }

func (w *Weft) begin() error {
	if !w.fresh {
		w.p.Reset()
		return nil
	}
	var err error
	w.p, err = parsers.New(w.name, &w.opt)
	return err
}

// Drive implements Runner. An error ends the reply; Collect reports it.
func (w *Weft) Drive(in *Input) int {
	if err := w.begin(); err != nil {
		return 0
	}
	at, seen := 0, 0
	p, evs, raw := w.p, w.evs, in.Raw
	var err error
	for _, n := range in.Lens {
		end := at + int(n)
		if evs, err = p.Append(evs[:0], raw[at:end:end]); err != nil {
			return seen
		}
		for i := range evs {
			seen += len(evs[i].Data)
		}
		at = end
	}
	evs, _ = p.Finish(evs[:0], event.None)
	for i := range evs {
		seen += len(evs[i].Data)
	}
	w.evs = evs
	return seen
}

// Collect implements Runner.
func (w *Weft) Collect(in *Input) Result {
	if err := w.begin(); err != nil {
		return Result{Err: err}
	}
	var all event.Collector
	at := 0
	for _, n := range in.Lens {
		end := at + int(n)
		evs, err := w.p.Append(w.evs[:0], in.Raw[at:end:end])
		if err != nil {
			return Result{Err: err}
		}
		all.Add(evs...)
		at, w.evs = end, evs
	}
	evs, err := w.p.Finish(w.evs[:0], event.None)
	if err != nil {
		return Result{Err: err}
	}
	all.Add(evs...)
	var r Result
	for _, a := range all.Answers {
		r.Reasoning += a.Reasoning()
		r.Content += a.Text()
		for _, b := range a.Blocks {
			switch {
			case b.Kind == event.ToolStart && b.Flags.Has(event.Complete):
				r.Calls = append(r.Calls, Call{b.Name, b.Data})
			case b.Kind == event.ToolStart, b.Kind == event.ToolAbort:
				r.Aborted++
			}
		}
	}
	return r
}

// Ollama is Ollama's parser of a family, created for every reply, as Ollama does.
type Ollama struct {
	f     Family
	tools []api.Tool
}

// NewOllama returns Ollama's parser of family f. It is an error if Ollama has none.
func NewOllama(f Family, tools Tools) (*Ollama, error) {
	if f.Ollama == "" {
		return nil, fmt.Errorf("Ollama has no parser of %s", f.Name)
	}
	if ollama.ParserForName(f.Ollama) == nil {
		return nil, fmt.Errorf("Ollama has no parser called %s", f.Ollama)
	}
	return &Ollama{f: f, tools: tools.ollama}, nil
}

// Name implements Runner.
func (o *Ollama) Name() string { return "ollama " + o.f.Ollama }

// run parses in and hands each piece of output to take. The last call of Add is done with no text: a caller learns that
// the stream is over after its last token.
func (o *Ollama) run(in *Input, take func(content, reasoning string, calls []api.ToolCall)) error {
	p := ollama.ParserForName(o.f.Ollama)
	p.Init(o.tools, nil, &api.ThinkValue{Value: true})
	add := func(s string, done bool) error {
		content, reasoning, calls, err := p.Add(s, done)
		take(content, reasoning, calls)
		return err
	}
	if o.f.Prime != "" {
		if err := add(o.f.Prime, false); err != nil {
			return err
		}
	}
	end := len(in.Text)
	for _, stop := range o.f.Stop {
		if n := len(stop); n <= end && in.Text[end-n:end] == stop {
			end -= n
		}
	}
	at := 0
	for _, n := range in.Lens {
		to := min(at+int(n), end)
		if to > at {
			if err := add(in.Text[at:to], false); err != nil {
				return err
			}
		}
		at = to
	}
	return add("", true)
}

// Drive implements Runner. The bytes of arguments are not counted: they come as decoded values.
func (o *Ollama) Drive(in *Input) int {
	seen := 0
	_ = o.run(in, func(content, reasoning string, calls []api.ToolCall) {
		seen += len(content) + len(reasoning) + len(calls)
	})
	return seen
}

// Collect implements Runner.
func (o *Ollama) Collect(in *Input) Result {
	var r Result
	r.Err = o.run(in, func(content, reasoning string, calls []api.ToolCall) {
		r.Content += content
		r.Reasoning += reasoning
		for _, c := range calls {
			r.Calls = append(r.Calls, Call{c.Function.Name, json.RawMessage(c.Function.Arguments.String())})
		}
	})
	return r
}
