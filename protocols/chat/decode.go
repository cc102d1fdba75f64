// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/codec"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// Decode validates and parses a Chat Completions request. The request takes ownership of body; nil limits mean
// defaults. Errors are of type *[block.Error].
//
// Content parts, fields and tools that are not modeled stay in the body and are preserved. Decode makes one pass and
// about one allocation per message.
func Decode(body []byte, lim *block.Limits) (*block.Request, error) {
	return codec.Decode(body, reqDialect{}, lim)
}

// reqDialect implements seam.Dialect for the Chat API. It is stateless.
type reqDialect struct{ engine *engine }

// API returns block.Chat.
func (reqDialect) API() block.API { return block.Chat }

// Read reads the view from a validated body.
func (reqDialect) Read(root jsonscan.Value, lim block.Limits, past *codec.Past) (codec.View, error) {
	r := reqReader{codec.NewReader(root, lim, past)}
	var v codec.View
	r.params(root, &v.Params)
	r.tools(root.Get("tools"), &v)
	r.functions(root.Get("functions"), &v)
	r.turns(root, &v)
	return v, r.End(&v)
}

type reqReader struct{ *codec.Reader }

func (r reqReader) params(root jsonscan.Value, p *block.Params) {
	p.Model = r.Str(root.Get("model"))
	p.Stream = r.Bool(root.Get("stream"))
	p.StreamUsage = r.Bool(r.Object(root.Get("stream_options")).Get("include_usage"))
	if p.MaxTokens = r.Int(root.Get("max_completion_tokens")); p.MaxTokens == nil {
		p.MaxTokens = r.Int(root.Get("max_tokens"))
	}
	s := &p.Sampling
	r.Sampling(root, s)
	s.Logprobs, s.TopLogprobs = r.Bool(root.Get("logprobs")), r.Int(root.Get("top_logprobs"))
	p.Thinking.Effort = r.Str(root.Get("reasoning_effort"))
	switch th := root.Get("thinking"); {
	case th.Kind() != jsonscan.Object:
	case r.Str(th.Get("type")) == "enabled":
		p.Thinking.Mode = block.ThinkingOn
	case r.Str(th.Get("type")) == "disabled":
		p.Thinking.Mode = block.ThinkingOff
	case r.Str(th.Get("type")) == "adaptive":
		p.Thinking.Mode = block.ThinkingAdaptive
	}
	r.Format(root, &p.Format)
	p.Verbosity = r.Str(root.Get("verbosity"))
	p.User = r.Hint(root.Get("user"))
	p.CacheKey = r.Hint(root.Get("prompt_cache_key"))
	p.ServiceTier = r.Hint(root.Get("service_tier"))
	r.choice(root, &p.ToolChoice)
}

func (r reqReader) choice(root jsonscan.Value, c *block.ToolChoice) {
	if p := r.BoolPtr(root.Get("parallel_tool_calls")); p != nil {
		c.Serial = !*p
	}
	tc := root.Get("tool_choice")
	if tc.IsNull() { // the form before tools: a string, or an object with a name
		if tc = root.Get("function_call"); tc.Kind() == jsonscan.Object {
			c.Mode, c.Allow = block.Required, []string{r.Str(tc.Get("name"))}
			return
		}
	}
	word := ""
	switch tc.Kind() {
	case jsonscan.Absent, jsonscan.Null:
		return
	case jsonscan.String:
		word = r.Str(tc)
	case jsonscan.Object:
		word = r.Str(tc.Get("type"))
	default:
		r.Want(tc, "a string or an object")
	}
	switch word {
	case "auto":
		c.Mode = block.Auto
	case "none":
		c.Mode = block.NoTools
	case "required", "any":
		c.Mode = block.Required
	case "function", "custom":
		c.Mode, c.Allow = block.Required, []string{r.Str(r.Object(tc.Get(word)).Get("name"))}
	case "allowed_tools":
		a := r.Object(tc.Get("allowed_tools"))
		r.Allowed(c, a, func(e jsonscan.Value) jsonscan.Value { return e.Get(r.Str(e.Get("type"))).Get("name") })
	}
}

func (r reqReader) tools(list jsonscan.Value, v *codec.View) {
	list = r.List(list)
	if !list.Exists() {
		return
	}
	tools := r.Tools(list, list.Len())
	for e := list.First(); e.Exists() && r.Err() == nil; e = list.Next(e) {
		if e.Kind() != jsonscan.Object {
			r.Want(e, "an object")
			return
		}
		if t, ok := r.TakeTool(e); ok {
			tools = append(tools, t)
			continue
		}
		t := block.Tool{Type: r.Str(e.Get("type")), Deferred: r.Bool(e.Get("defer_loading")), Cache: r.Cache(e), At: codec.Pending(e)}
		f := r.Object(e.Get("function"))
		switch {
		case t.Type == "custom":
			f = r.Object(e.Get("custom"))
			t.Kind, t.Format = block.CustomTool, r.Raw(f.Get("format"))
		case !f.Exists():
			t.Kind, t.JSON = block.Hosted, e.Raw()
		}
		t.Name, t.Description = r.Str(f.Get("name")), r.Str(f.Get("description"))
		t.Schema, t.Strict = r.Raw(f.Get("parameters")), r.BoolPtr(f.Get("strict"))
		if t.Kind != block.Hosted && t.Name == "" {
			r.Missing(e, "function", "a name")
		}
		tools = append(tools, t)
	}
	v.Tools = tools
}

// functions reads the field functions, the form that tools had before.
func (r reqReader) functions(list jsonscan.Value, v *codec.View) {
	if list = r.List(list); !list.Exists() || len(v.Tools) > 0 {
		return
	}
	tools := r.Tools(list, list.Len())
	for e := list.First(); e.Exists() && r.Err() == nil; e = list.Next(e) {
		f := r.Object(e)
		t := block.Tool{
			Type: "function", Name: r.Str(f.Get("name")), Description: r.Str(f.Get("description")), Schema: r.Raw(f.Get("parameters")),
			At: codec.Pending(e),
		}
		if t.Name == "" {
			r.Missing(e, "name", "a string")
		}
		tools = append(tools, t)
	}
	v.Tools = tools
	if len(tools) > 0 {
		v.Params.ToolChoice.Serial = true // a message has one function_call
	}
}

func (r reqReader) turns(root jsonscan.Value, v *codec.View) {
	list := root.Get("messages")
	if list.Kind() != jsonscan.Array {
		if list.IsNull() {
			r.Missing(root, "messages", "an array")
		}
		r.Want(list, "an array")
		return
	}
	n := list.Len()
	r.RoomForTurns(v, n)
	for m := list.First(); m.Exists() && r.Err() == nil; m = list.Next(m) {
		if m.Kind() != jsonscan.Object {
			r.Want(m, "an object")
			return
		}
		if t, _, ok := r.TakeTurn(m); ok {
			r.AddTurn(v, t)
			continue
		}
		t := block.Turn{Name: r.Str(m.Get("name")), Form: codec.FormOf(m.Get("content")), At: codec.Pending(m)}
		switch r.Str(m.Get("role")) {
		case "system":
			t.Role = block.RoleSystem
		case "developer":
			t.Role = block.RoleDeveloper
		case "user":
			t.Role = block.RoleUser
		case "assistant":
			t.Role = block.RoleAssistant
		case "tool", "function":
			t.Role = block.RoleTool
		case "":
			r.Missing(m, "role", "a string")
		}
		switch t.Role {
		case block.RoleTool:
			list := r.Blocks(m, 1)
			t.Blocks = append(list, block.Block{
				Kind: block.ToolResult, CallID: r.Str(m.Get("tool_call_id")), Name: t.Name,
				Content: r.Content(m.Get("content"), r.part), Form: t.Form, At: codec.Pending(m),
			})
			t.Name = ""
		case block.RoleAssistant:
			t.Blocks = r.assistant(m)
			if m.Get("reasoning_content").IsNull() && m.Get("reasoning").Kind() == jsonscan.String {
				t.Form |= codec.FormReasoning
			}
		default:
			t.Blocks = r.Content(m.Get("content"), r.part)
		}
		r.AddTurn(v, t)
	}
}

// reasoningOf returns the field of an assistant message that contains past reasoning.
func reasoningOf(m jsonscan.Value) jsonscan.Value {
	v := m.Get("reasoning_content")
	if v.IsNull() {
		v = m.Get("reasoning")
	}
	return v
}

// assistant reads the blocks of an assistant message in the order in which the model generated them, as far as the API
// specifies it: reasoning, content, refusal, calls. A list of reasoning has one entry before each call and one after
// the last. Reasoning details contain the position of each run; see details.go.
func (r reqReader) assistant(m jsonscan.Value) []block.Block {
	reasoning, calls := reasoningOf(m), r.List(m.Get("tool_calls"))
	value := m.Get("content")
	if calls.First().Exists() && string(value.Raw()) == `""` { // many clients write an empty text for absent content
		value = jsonscan.Value{}
	}
	content := r.Content(value, r.part)
	refusal := m.Get("refusal")
	details := detailsOf(m)
	n := calls.Len()
	switch {
	case details.Exists():
		n += details.Len()
	case reasoning.Kind() == jsonscan.Array:
		n += reasoning.Len()
	case !reasoning.IsNull():
		n++
	}
	n++ // plain reasoning in addition to details
	if !r.Count(m, n) {
		return nil
	}
	out := make([]block.Block, 0, len(content)+n+1)
	var segment jsonscan.Value
	think := func(v jsonscan.Value) {
		if s := r.Str(v); s != "" {
			out = append(out, block.Block{Kind: block.Reasoning, Text: s, At: codec.Pending(v)})
		}
	}
	switch {
	case details.Exists() || reasoning.IsNull():
	case reasoning.Kind() == jsonscan.Array:
		if segment = reasoning.First(); segment.Exists() {
			think(segment)
			segment = reasoning.Next(segment)
		}
	case reasoning.Kind() == jsonscan.String:
		think(reasoning)
	default:
		r.Want(reasoning, "a string or an array of strings")
	}
	out = append(out, content...)
	if s := r.Str(refusal); s != "" {
		out = append(out, block.Block{Kind: block.Refusal, Text: s, At: codec.Pending(refusal)})
	}
	for c := calls.First(); c.Exists(); c = calls.Next(c) {
		if c.Kind() != jsonscan.Object {
			r.Want(c, "an object")
			break
		}
		out = append(out, r.call(c))
		if segment.Exists() {
			think(segment)
			segment = reasoning.Next(segment)
		}
	}
	for segment.Exists() { // more segments than calls
		think(segment)
		segment = reasoning.Next(segment)
	}
	if fc := r.Object(m.Get("function_call")); fc.Exists() { // the form before tool_calls
		out = append(out, block.Block{
			Kind: block.ToolCall, Name: r.Str(fc.Get("name")), Args: r.Str(fc.Get("arguments")), At: codec.Pending(fc),
		})
	}
	if details.Exists() {
		return r.details(details, reasoning, out)
	}
	return out
}

func (r reqReader) call(c jsonscan.Value) block.Block {
	b := block.Block{Kind: block.ToolCall, Type: r.Str(c.Get("type")), CallID: r.Str(c.Get("id")), At: codec.Pending(c)}
	if cu := r.Object(c.Get("custom")); cu.Exists() {
		b.Custom, b.Name, b.Args = true, r.Str(cu.Get("name")), r.Str(cu.Get("input"))
		return b
	}
	f := r.Object(c.Get("function"))
	b.Name = r.Str(f.Get("name"))
	switch a := f.Get("arguments"); a.Kind() {
	case jsonscan.Object: // some clients send the object itself
		b.Args = a.RawStr()
	default:
		b.Args = r.Str(a)
	}
	return b
}

func (r reqReader) part(v jsonscan.Value) block.Block {
	b := block.Block{Type: r.Str(v.Get("type")), Cache: r.Cache(v), At: codec.Pending(v)}
	switch b.Type {
	case "text", "input_text", "output_text":
		b.Kind, b.Text = block.Text, r.Str(v.Get("text"))
	case "refusal":
		b.Kind, b.Text = block.Refusal, r.Str(v.Get("refusal"))
	case "image_url", "video_url", "audio_url":
		b.Kind = map[string]block.Kind{"image_url": block.Image, "video_url": block.Video, "audio_url": block.Audio}[b.Type]
		u := v.Get(b.Type)
		if u.Kind() == jsonscan.String { // sent by some clients
			b.Media = codec.MediaURL(r.Str(u))
			break
		}
		u = r.Object(u)
		b.Media = codec.MediaURL(r.Str(u.Get("url")))
		b.Media.Detail = r.Str(u.Get("detail"))
	case "input_audio":
		a := r.Object(v.Get("input_audio"))
		b.Kind, b.Media = block.Audio, &block.Media{Data: r.Str(a.Get("data"))}
		if f := r.Str(a.Get("format")); f != "" {
			b.Media.MIME = "audio/" + f
		}
	case "file":
		f := r.Object(v.Get("file"))
		b.Kind = block.File
		b.Media = &block.Media{FileID: r.Str(f.Get("file_id"))}
		if d := r.Str(f.Get("file_data")); d != "" {
			if mime, data, ok := codec.Inline(d); ok {
				b.Media.MIME, b.Media.Data = mime, data
			} else {
				b.Media.Data = d
			}
		}
		b.Media.Name = r.Str(f.Get("filename"))
	default:
		b.JSON = v.Raw()
	}
	return b
}
