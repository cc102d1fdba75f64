// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/tokenizers/prompt"
	"github.com/weft-go/weft/tokenizers/template"
)

// A pair is a template that reads values and the same template reading JSON.
type pair struct {
	name         string
	values, json *prompt.Model
}

// pairs returns the models of all templates at hand.
func pairs(t testing.TB) (list []pair) {
	add := func(name string, tpl template.Template, opt prompt.Options) {
		m := newModel(t, tpl, nil, opt)
		require.True(t, prompt.ReadsValues(m), name)
		list = append(list, pair{name, m, prompt.ReadsJSON(m)})
	}
	every := 1
	if testing.Short() {
		every = 12
	}
	for name, source := range plainest {
		add(name, compiled(source)(t), prompt.Options{})
	}
	for _, name := range []string{"chatml", "harmony", "deepseek_v3_2", "deepseek_v4", "deepseek_v41", "kimi_k3"} {
		add(name, lookup(name, nil), prompt.Options{})
	}
	add("chatml, xml", lookup("chatml", variables{"calls": "xml"}), prompt.Options{KeepEmpty: true})
	add("harmony, library", lookup("harmony", variables{"style": "library", "sampled_calls": true}), prompt.Options{})
	for _, pattern := range []string{"*/chat_template.jinja", "_templates/*"} {
		files, _ := filepath.Glob(filepath.Join(sharedDir(), "tok", pattern))
		for i, f := range files {
			if i%every != 0 {
				continue
			}
			name, err := filepath.Rel(sharedDir(), f)
			require.NoError(t, err)
			add(name, sharedTemplate(filepath.SplitList(name)...)(t), prompt.Options{KeepEmpty: strings.Contains(f, "qwen")})
		}
	}
	return list
}

// same renders a request in both ways. It returns what the conversation was: a prompt, changed by Fit, or an error.
func (p *pair) same(t require.TestingT, req *block.Request, body string) string {
	got, err := p.values.Render(req, noon)
	want, wantErr := p.json.Render(req, noon)
	require.Empty(t, cmp.Diff(want.Losses, got.Losses, cmpopts.EquateEmpty()), "%s: %s", p.name, body)
	require.Equal(t, want.Outcomes, got.Outcomes)
	require.Equal(t, want.Replay, got.Replay)
	if wantErr != nil {
		require.EqualError(t, err, wantErr.Error(), "%s: %s", p.name, body)
		require.Nil(t, got.Prompt)
		return "refused"
	}
	require.NoError(t, err, "%s: %s", p.name, body)
	require.Equal(t, want.Text, got.Text, "%s: %s", p.name, body)
	require.Equal(t, want.Segments, got.Segments)
	require.Equal(t, want.Spans, got.Spans)
	require.Equal(t, want.Paths(), got.Paths(), "%s: %s", p.name, body)
	marks, faults := want.Breakpoints(req)
	again, faultsAgain := got.Breakpoints(req)
	require.Equal(t, marks, again, "%s: %s", p.name, body)
	require.Equal(t, faults, faultsAgain)
	for _, l := range want.Losses {
		if l.Path == "messages" {
			return "changed"
		}
	}
	return "printed"
}

// TestValuesCaptures renders the requests of real clients.
func TestValuesCaptures(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(sharedDir(), "captures", "*", "*.json"))
	if len(files) == 0 {
		t.Skip("test data not there (set WEFT_SHARED)")
	}
	list := pairs(t)
	for i, f := range files {
		if testing.Short() && i%12 != 0 {
			continue
		}
		var c struct{ Body json.RawMessage }
		require.NoError(t, json.Unmarshal([]byte(sharedFile(t, "captures", filepath.Base(filepath.Dir(f)), filepath.Base(f))), &c))
		for _, api := range apis {
			req, err := decode(api, c.Body, nil)
			if err != nil {
				continue
			}
			for i := range list {
				list[i].same(t, req, f)
			}
		}
	}
}

// TestValues renders random conversations.
func TestValues(t *testing.T) {
	list := pairs(t)
	seen := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		api := rapid.SampledFrom(apis).Draw(rt, "api")
		body := conversation(rt, api)
		req, err := decode(api, []byte(body), nil)
		require.NoError(rt, err, body)
		for i := range list {
			seen[list[i].same(rt, req, body)]++
		}
	})
	if testing.Short() {
		return // a few conversations need not end in all three ways
	}
	for _, outcome := range []string{"printed", "changed", "refused"} {
		require.Positive(t, seen[outcome], outcome)
	}
}

// TestValuesBuilt renders requests that were built, whose text may be invalid UTF-8 and whose arguments may be no JSON.
func TestValuesBuilt(t *testing.T) {
	list := pairs(t)
	deep := strings.Repeat(`{"a":`, 127) + "1" + strings.Repeat("}", 127)
	for k, text := range []string{"plain", "", "\xff\xed\xa0\x80 half \xe2\x82", "a\u2028\x00\"\\\n"} {
		for i, args := range []string{`{"x":1}`, `{"x":"` + text + `"}`, `{"x":1}{`, "", "[1]", `{"x":1,"x":[2],"y":1e999,"z":-0,"w":1.50}`, `{"n":` + strings.Repeat("9", 400) + `}`, deep} {
			if testing.Short() && (i+k)%4 != 0 {
				continue
			}
			req := block.NewRequest()
			require.NoError(t, req.SetParams(block.Params{Model: "m"}))
			for _, turn := range []block.Turn{
				{Role: block.RoleSystem, Blocks: []block.Block{{Kind: block.Text, Text: text}}},
				{Role: block.RoleUser, Name: text, Blocks: []block.Block{{Kind: block.Text, Text: text}, {Kind: block.Text, Text: "b"}}},
				{Role: block.RoleAssistant, Blocks: []block.Block{{Kind: block.Reasoning, Text: text}, {Kind: block.ToolCall, CallID: "c" + text, Name: "f", Args: args}}},
				{Role: block.RoleUser, Blocks: []block.Block{{Kind: block.ToolResult, CallID: "c" + text, Content: []block.Block{{Kind: block.Text, Text: text}}}}},
			} {
				require.NoError(t, req.Append(turn))
			}
			require.NoError(t, req.SetTools(block.Tool{Name: "f", ModelName: "f", Description: text, Schema: []byte(`{"type":"object"}`)}))
			for i := range list {
				list[i].same(t, req, fmt.Sprintf("%q %q", text, args))
			}
		}
	}
}

// conversation draws the body of a request.
func conversation(rt *rapid.T, api string) string {
	text := rapid.OneOf(rapid.SampledFrom([]string{"", "a", "hi\n", " <system-reminder>r</system-reminder>", "<think>\nx\n</think>\n\ny", "<tool_response>z</tool_response>", "<|im_end|>", "{\"x\": 1}"}), rapid.StringN(0, 8, 24))
	str := func() string { return text.Draw(rt, "text") }
	chance := func(percent int) bool { return rapid.IntRange(0, 99).Draw(rt, "chance") < percent }
	args := func() (object, string) {
		o := object{}
		for range rapid.IntRange(0, 3).Draw(rt, "members") {
			var v any
			switch rapid.IntRange(0, 4).Draw(rt, "value") {
			case 0:
				v = str()
			case 1:
				v = json.Number(rapid.SampledFrom([]string{"0", "-0", "1.50", "1e5", "12345678901234567890123", "-7"}).Draw(rt, "number"))
			case 2:
				v = []any{nil, true, str(), object{"k": 1}}
			case 3:
				v = object{"n": object{}, str(): []any{}}
			default:
				v = false
			}
			o[rapid.SampledFrom([]string{"x", "y", "type", "über"}).Draw(rt, "name")] = v
		}
		data, err := json.Marshal(o)
		require.NoError(rt, err)
		spelled := string(data)
		switch {
		case chance(10):
			spelled = "not json {"
		case chance(30):
			indented, err := json.MarshalIndent(o, "", " ")
			require.NoError(rt, err)
			spelled = string(indented)
		}
		return o, spelled
	}
	mark := func(o object) object {
		if chance(15) {
			o["cache_control"] = object{"type": "ephemeral"}
		}
		return o
	}
	part := func(kind string) object { return mark(object{"type": kind, "text": str()}) }
	image := object{"type": "image", "source": object{"type": "base64", "media_type": "image/png", "data": "aGk="}}
	if api != "messages" {
		image = object{"type": "image_url", "image_url": object{"url": "https://example.com/i.png"}}
	}
	var list []any
	var ids []string
	add := func(items ...any) { list = append(list, items...) }
	content := func(kind string) any {
		if chance(40) {
			return str()
		}
		parts := []any{part(kind)}
		for range rapid.IntRange(0, 2).Draw(rt, "parts") {
			parts = append(parts, part(kind))
		}
		if chance(8) && api != "responses" {
			parts = append(parts, image)
		}
		return parts
	}
	for range rapid.IntRange(1, 8).Draw(rt, "turns") {
		switch who := rapid.SampledFrom([]string{"user", "user", "assistant", "assistant", "results", "results", "system", "developer"}).Draw(rt, "role"); who {
		case "user":
			kind := map[string]string{"responses": "input_text"}[api]
			if kind == "" {
				kind = "text"
			}
			add(object{"role": "user", "content": content(kind)})
		case "system", "developer":
			if api == "messages" {
				add(object{"role": "system", "content": content("text")})
				continue
			}
			add(object{"role": who, "content": str()})
		case "assistant":
			calls := rapid.IntRange(0, 2).Draw(rt, "calls")
			ids = nil
			thought, answer := chance(60), calls == 0 || chance(50)
			switch api {
			case "messages":
				var parts []any
				if thought {
					parts = append(parts, object{"type": "thinking", "thinking": str(), "signature": "s"})
				}
				if answer {
					parts = append(parts, part("text"))
				}
				for range calls {
					ids = append(ids, fmt.Sprint("c", len(list), len(ids)))
					o, _ := args()
					parts = append(parts, mark(object{"type": "tool_use", "id": ids[len(ids)-1], "name": "f", "input": o}))
				}
				add(object{"role": "assistant", "content": parts})
			case "chat":
				m := object{"role": "assistant"}
				if answer {
					m["content"] = str()
				}
				if thought {
					m["reasoning_content"] = str()
				}
				if chance(10) {
					m["extra"] = []any{object{"a": 1.5}, nil}
				}
				var list2 []any
				for range calls {
					ids = append(ids, fmt.Sprint("c", len(list), len(ids)))
					_, s := args()
					list2 = append(list2, object{"id": ids[len(ids)-1], "type": "function", "function": object{"name": "f", "arguments": s}})
				}
				if calls > 0 {
					m["tool_calls"] = list2
				}
				add(m)
			default:
				if thought {
					add(object{"type": "reasoning", "summary": []any{}, "content": []any{object{"type": "reasoning_text", "text": str()}}})
				}
				if answer {
					add(object{"type": "message", "role": "assistant", "content": []any{object{"type": "output_text", "text": str()}}})
				}
				for range calls {
					ids = append(ids, fmt.Sprint("c", len(list), len(ids)))
					_, s := args()
					add(object{"type": "function_call", "call_id": ids[len(ids)-1], "name": "f", "arguments": s})
				}
			}
		case "results":
			if api == "messages" {
				var parts []any
				for _, id := range ids {
					parts = append(parts, mark(object{"type": "tool_result", "tool_use_id": id, "content": content("text")}))
				}
				if len(parts) == 0 || chance(30) {
					parts = append(parts, part("text"))
				}
				add(object{"role": "user", "content": parts})
				continue
			}
			for _, id := range ids {
				if api == "chat" {
					add(object{"role": "tool", "tool_call_id": id, "content": str()})
				} else {
					add(object{"type": "function_call_output", "call_id": id, "output": str()})
				}
			}
		}
	}
	if len(list) == 0 {
		add(object{"role": "user", "content": "only"})
	}
	body := object{"model": "m"}
	schema := object{"type": "object", "properties": object{"x": object{"type": "string", "description": str(), "enum": []any{"a", 1, nil}}}}
	switch api {
	case "messages":
		body["max_tokens"], body["messages"] = 9, list
		if chance(50) {
			body["system"] = content("text")
		}
		if chance(60) {
			body["tools"] = []any{mark(object{"name": "f", "description": str(), "input_schema": schema}), object{"name": "g", "input_schema": object{}}}
		}
		if chance(30) {
			body["thinking"] = object{"type": "disabled"}
		}
	case "chat":
		body["messages"] = list
		if chance(60) {
			body["tools"] = []any{object{"type": "function", "function": object{"name": "f", "description": str(), "parameters": schema, "strict": true}}}
		}
		if chance(30) {
			body["chat_template_kwargs"] = object{"enable_thinking": chance(50), "x": str()}
		}
		if chance(20) {
			body["reasoning_effort"] = "low"
		}
	default:
		body["input"] = list
		if chance(60) {
			body["tools"] = []any{object{"type": "function", "name": "f", "description": str(), "parameters": schema}, object{"type": "custom", "name": "h"}, object{"type": "web_search"}}
		}
	}
	data, err := json.Marshal(body)
	require.NoError(rt, err)
	return string(data)
}
