// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/tokenizers/prompt"
	"github.com/weft-go/weft/tokenizers/template"
)

// decode decodes the body of a request of an API.
func decode(api string, body []byte, l *block.Limits) (*block.Request, error) {
	a, err := wire.Lookup(api)
	if err != nil {
		return nil, err
	}
	return a.Decode(body, l)
}

// newModel returns a model with a template and a family, which may be nil.
func newModel(t testing.TB, tpl template.Template, g *grammar.Grammar, opt prompt.Options) *prompt.Model {
	t.Helper()
	if g != nil {
		var err error
		opt.Family = g.Name
		opt.Parsers, err = new(parsers.Registry).Extend(g)
		require.NoError(t, err)
	}
	m, err := prompt.New(tpl, &opt)
	require.NoError(t, err)
	return m
}

func familyModel(t testing.TB, tpl template.Template, g *grammar.Grammar) *prompt.Model {
	t.Helper()
	return newModel(t, tpl, g, prompt.Options{})
}

var apis = []string{"chat", "responses", "messages"}

type object = map[string]any

// A client holds a conversation as a harness does: it returns responses unmodified.
type client struct {
	t       testing.TB
	api     string
	list    []any
	schema  string   // of the tool; "" for one with the string x
	ids     []string // of the calls in the last response
	answers int
	// of the chat API
	details  wire.Details
	streamed bool
}

func (c *client) user(text string) { c.list = append(c.list, object{"role": "user", "content": text}) }

// answer adds the events of a response.
func (c *client) answer(events ...event.Event) {
	c.t.Helper()
	c.answers++
	events = append([]event.Event{{Kind: event.Start}}, events...)
	calls := 0
	for _, e := range events {
		if e.Kind == event.ToolStart {
			calls++
		}
	}
	api, err := wire.Lookup(c.api)
	require.NoError(c.t, err)
	r := block.NewRequest()
	require.NoError(c.t, r.SetParams(block.Params{Model: "m", Stream: c.streamed}))
	enc := api.NewEncoder(r, &wire.Options{ID: fmt.Sprint("answer", c.answers), Details: c.details})
	raw := enc.Finish(nil, append(events, event.Event{Kind: event.Finish, Why: event.Stop})...)
	if c.streamed {
		raw = gathered(c.t, raw)
	}
	var ans struct {
		Choices []struct{ Message json.RawMessage }
		Output  []json.RawMessage
		Content json.RawMessage
	}
	require.NoError(c.t, json.Unmarshal(raw, &ans), "%s", raw)
	var parts []struct {
		ID     string `json:"id"`
		CallID string `json:"call_id"`
		Type   string
	}
	switch c.api {
	case "chat":
		c.list = append(c.list, ans.Choices[0].Message)
		var m struct {
			Calls json.RawMessage `json:"tool_calls"`
		}
		require.NoError(c.t, json.Unmarshal(ans.Choices[0].Message, &m))
		if m.Calls != nil {
			require.NoError(c.t, json.Unmarshal(m.Calls, &parts))
		}
	case "responses":
		for _, item := range ans.Output {
			c.list = append(c.list, item)
		}
		out, err := json.Marshal(ans.Output)
		require.NoError(c.t, err)
		require.NoError(c.t, json.Unmarshal(out, &parts))
	default:
		c.list = append(c.list, object{"role": "assistant", "content": ans.Content})
		require.NoError(c.t, json.Unmarshal(ans.Content, &parts))
	}
	c.ids = nil
	for _, p := range parts {
		switch p.Type {
		case "function", "tool_use":
			c.ids = append(c.ids, p.ID)
		case "function_call":
			c.ids = append(c.ids, p.CallID)
		}
	}
	require.Len(c.t, c.ids, calls, "%s", raw)
}

// results adds a result for each call and, if not empty, a reminder from the harness.
func (c *client) results(text, reminder string) {
	var parts []any
	for i, id := range c.ids {
		out := fmt.Sprint(text, i)
		switch c.api {
		case "chat":
			c.list = append(c.list, object{"role": "tool", "tool_call_id": id, "content": out})
		case "responses":
			c.list = append(c.list, object{"type": "function_call_output", "call_id": id, "output": out})
		default:
			parts = append(parts, object{"type": "tool_result", "tool_use_id": id, "content": out})
		}
	}
	switch {
	case c.api == "messages":
		if reminder != "" {
			parts = append(parts, object{"type": "text", "text": reminder})
		}
		c.list = append(c.list, object{"role": "user", "content": parts})
	case reminder != "":
		c.user(reminder)
	}
}

// request returns the request with the conversation so far; more contains further fields.
func (c *client) request(tools bool, more string) *block.Request {
	c.t.Helper()
	req, err := decode(c.api, []byte(c.body(tools, more)), nil)
	require.NoError(c.t, err)
	return req
}

// body returns the body of the request.
func (c *client) body(tools bool, more string) string {
	c.t.Helper()
	list, err := json.Marshal(c.list)
	require.NoError(c.t, err)
	schema := cmp.Or(c.schema, `{"type":"object","properties":{"x":{"type":"string"}}}`)
	body := `{"model":"m"`
	switch c.api {
	case "chat":
		body += `,"messages":` + string(list)
		if tools {
			body += `,"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":` + schema + `}}]`
		}
	case "responses":
		body += `,"input":` + string(list)
		if tools {
			body += `,"tools":[{"type":"function","name":"f","description":"d","parameters":` + schema + `}]`
		}
	default:
		body += `,"max_tokens":4096,"messages":` + string(list)
		if tools {
			body += `,"tools":[{"name":"f","description":"d","input_schema":` + schema + `}]`
		}
	}
	if more != "" {
		body += "," + more
	}
	return body + "}"
}

// respell replaces the arguments own of the calls in the last response, as a client that parses and formats them does.
func (c *client) respell(own, args string) {
	c.t.Helper()
	list, err := json.Marshal(c.list[len(c.list)-1])
	require.NoError(c.t, err)
	quoted := func(s string) string {
		b, err := json.Marshal(s)
		require.NoError(c.t, err)
		return string(b)
	}
	compact := func(s string) string { // of values in values, as Marshal writes them
		var b bytes.Buffer
		if json.Compact(&b, []byte(s)) != nil {
			return s
		}
		return b.String()
	}
	was, now := quoted(own), quoted(args)
	if c.api == "messages" {
		was, now = compact(own), args
	}
	require.Equal(c.t, 1, strings.Count(string(list), was), "%s in %s", was, list)
	c.list[len(c.list)-1] = json.RawMessage(strings.Replace(string(list), was, now, 1))
}

// reprint prints the last response as a client that parses JSON and prints it again without white space.
func (c *client) reprint() {
	c.t.Helper()
	raw, err := json.Marshal(c.list[len(c.list)-1])
	require.NoError(c.t, err)
	var v any
	require.NoError(c.t, json.Unmarshal(raw, &v))
	c.list[len(c.list)-1] = v
}

// reasoned, text and called return events of a response.
func reasoned(part int32, text string) event.Event {
	return event.Event{Kind: event.Reasoning, Part: part, Data: []byte(text)}
}

func text(part int32, text string) event.Event {
	return event.Event{Kind: event.Text, Part: part, Data: []byte(text)}
}

func called(part, n int32, args string) []event.Event {
	return []event.Event{
		{Kind: event.ToolStart, Part: part, Call: n, Data: []byte("f")}, {Kind: event.ToolArgs, Part: part, Call: n, Data: []byte(args)},
		{Kind: event.ToolEnd, Part: part, Call: n, Flags: event.Complete},
	}
}

// sharedFile returns the text of a file of the test data, and skips the test if the file is absent.
func sharedFile(t testing.TB, path ...string) string {
	t.Helper()
	root := os.Getenv("WEFT_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared")
	}
	data, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	if err != nil {
		t.Skipf("test data not there: %v (set WEFT_SHARED)", err)
	}
	return string(data)
}

// sharedTemplate parses a template of the test data.
func sharedTemplate(path ...string) func(t testing.TB) template.Template {
	return func(t testing.TB) template.Template { return compiled(sharedFile(t, path...))(t) }
}

// compiled parses a template.
func compiled(source string) func(t testing.TB) template.Template {
	return func(t testing.TB) template.Template {
		tpl, err := template.Parse("t", source, &template.Options{Variables: map[string]any{"bos_token": "<bos>", "eos_token": "<eos>"}})
		require.NoError(t, err)
		return tpl
	}
}

// written returns a template that is written in Go.
func written(tpl template.Template) func(testing.TB) template.Template {
	return func(testing.TB) template.Template { return tpl }
}

// small returns a template that prints reasoning if the expression keep is true, and left otherwise.
func small(keep, left string) func(testing.TB) template.Template {
	return compiled(strings.NewReplacer("KEEP", keep, "LEFT", left).Replace(`{%- set ns = namespace(user=-1, final=-1, assistant=-1) -%}
{%- for m in messages -%}
{%- if m.role == 'user' -%}{%- set ns.user = loop.index0 -%}{%- endif -%}
{%- if m.role == 'assistant' -%}{%- set ns.assistant = loop.index0 -%}{%- if not m.tool_calls -%}{%- set ns.final = loop.index0 -%}{%- endif -%}{%- endif -%}
{%- endfor -%}
{%- for t in tools or [] -%}<tool>{{ t | tojson }}</tool>{%- endfor -%}
{%- for m in messages -%}
<|{{ m.role }}|>
{%- if m.role == 'assistant' -%}
{%- if (KEEP) and m.reasoning_content -%}<think>{{ m.reasoning_content }}</think>{%- else -%}LEFT{%- endif -%}
{%- endif -%}
{{ m.content }}
{%- for c in m.tool_calls or [] -%}<tool_call>{{ c.function.name }} {{ c.function.arguments }}</tool_call>{%- endfor -%}
{%- endfor -%}
{%- if add_generation_prompt -%}<|assistant|><think>{%- endif -%}`))
}

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
