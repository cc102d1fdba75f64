// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"strings"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/callid"
	"github.com/weft-go/weft/protocols/internal/codec"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// Decode validates and parses a Messages request. The request takes ownership of body; nil limits mean defaults. Errors
// are of type *[block.Error].
//
// Blocks and fields that are not modeled stay in the body and are preserved. Decode makes one pass and about one
// allocation per turn.
func Decode(body []byte, lim *block.Limits) (*block.Request, error) {
	return codec.Decode(body, reqDialect{}, lim)
}

// reqDialect implements seam.Dialect for the Messages API. It is stateless.
type reqDialect struct{}

// API returns block.Messages.
func (reqDialect) API() block.API { return block.Messages }

// Read reads the view from a validated body.
func (reqDialect) Read(root jsonscan.Value, lim block.Limits, past *codec.Past) (codec.View, error) {
	r := reqReader{Reader: codec.NewReader(root, lim, past)}
	var v codec.View
	r.params(root, &v.Params)
	r.tools(root.Get("tools"), &v)
	r.custom = codec.CustomSet(v.Tools)
	r.SetCustom(r.custom)
	r.turns(root, &v)
	return v, r.End(&v)
}

type reqReader struct {
	*codec.Reader
	custom map[string]bool // names of tools with free text; see bridge.go
}

func (r reqReader) params(root jsonscan.Value, p *block.Params) {
	p.Model = r.Str(root.Get("model"))
	p.Stream = r.Bool(root.Get("stream"))
	p.MaxTokens = r.Int(root.Get("max_tokens"))
	p.Sampling.Temperature = r.Float(root.Get("temperature"))
	p.Sampling.TopP = r.Float(root.Get("top_p"))
	p.Sampling.TopK = r.Int(root.Get("top_k"))
	p.Sampling.Stop = r.Strs(root.Get("stop_sequences"))
	p.ServiceTier = r.Hint(root.Get("service_tier"))
	p.User = r.Hint(root.Get("metadata").Get("user_id"))

	th := r.Object(root.Get("thinking"))
	switch r.Str(th.Get("type")) {
	case "enabled":
		p.Thinking.Mode = block.ThinkingOn
	case "disabled", "between_tools": // which shows what the model writes between calls as thinking, without any other
		p.Thinking.Mode = block.ThinkingOff
	case "adaptive":
		p.Thinking.Mode = block.ThinkingAdaptive
	}
	p.Thinking.Budget = r.Int(th.Get("budget_tokens"))
	out := r.Object(root.Get("output_config"))
	p.Thinking.Effort = r.Str(out.Get("effort"))
	format := r.Object(out.Get("format"))
	if !format.Exists() {
		format = r.Object(root.Get("output_format")) // its name during the beta
	}
	p.Format.Type = r.Str(format.Get("type"))
	p.Format.Schema = r.Raw(format.Get("schema"))

	tc := r.Object(root.Get("tool_choice"))
	switch r.Str(tc.Get("type")) {
	case "auto":
		p.ToolChoice.Mode = block.Auto
	case "any":
		p.ToolChoice.Mode = block.Required
	case "none":
		p.ToolChoice.Mode = block.NoTools
	case "tool":
		p.ToolChoice.Mode, p.ToolChoice.Allow = block.Required, []string{r.Str(tc.Get("name"))}
	}
	p.ToolChoice.Serial = r.Bool(tc.Get("disable_parallel_tool_use"))
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
		t := block.Tool{
			Type: r.Str(e.Get("type")), Name: r.Str(e.Get("name")), Description: r.Str(e.Get("description")),
			Schema: r.Raw(e.Get("input_schema")), Strict: r.BoolPtr(e.Get("strict")),
			Deferred: r.Bool(e.Get("defer_loading")), Cache: r.Cache(e), At: codec.Pending(e),
		}
		if t.Type != "" && t.Type != "custom" {
			t.Kind, t.JSON = block.Hosted, e.Raw()
		} else if t.Name == "" {
			r.Missing(e, "name", "a string")
		} else if format, ok := bridged(t.Schema); ok {
			t.Kind, t.Schema, t.Format = block.CustomTool, nil, format
		}
		tools = append(tools, t)
	}
	v.Tools = tools
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
	n := list.Len() + 1
	r.RoomForTurns(v, n)
	if sys := root.Get("system"); !sys.IsNull() {
		t, _, ok := r.TakeTurn(sys)
		if !ok {
			t = block.Turn{
				Role: block.RoleSystem, Blocks: r.Content(sys, r.block), Form: codec.FormMember | codec.FormOf(sys), At: codec.Pending(sys),
			}
		}
		r.AddTurn(v, t)
	}
	for m := list.First(); m.Exists() && r.Err() == nil; m = list.Next(m) {
		if m.Kind() != jsonscan.Object {
			r.Want(m, "an object")
			return
		}
		if t, _, ok := r.TakeTurn(m); ok {
			r.AddTurn(v, t)
			continue
		}
		t := block.Turn{At: codec.Pending(m)}
		role := m.Get("role")
		switch r.Str(role) {
		case "user":
			t.Role = block.RoleUser
		case "assistant":
			t.Role = block.RoleAssistant
		case "system":
			t.Role = block.RoleSystem
		case "":
			r.Missing(m, "role", "a string")
		}
		c := m.Get("content")
		t.Blocks, t.Form = r.Content(c, r.block), codec.FormOf(c)
		r.AddTurn(v, t)
	}
}

func (r reqReader) block(v jsonscan.Value) block.Block { return r.nested(v, 0) }

// nested reads a block that is nested depth levels deep in another block.
func (r reqReader) nested(v jsonscan.Value, depth int) block.Block {
	b := block.Block{Type: r.Str(v.Get("type")), Cache: r.Cache(v), At: codec.Pending(v)}
	inner := func(c jsonscan.Value) []block.Block {
		if depth >= 2 {
			return nil
		}
		return r.Content(c, func(e jsonscan.Value) block.Block { return r.nested(e, depth+1) })
	}
	switch b.Type {
	case "text":
		b.Kind, b.Text = block.Text, r.Str(v.Get("text"))
	case "thinking":
		b.Kind, b.Text, b.Signature = block.Reasoning, r.Str(v.Get("thinking")), r.Str(v.Get("signature"))
		unpack(&b, b.Signature)
	case "redacted_thinking":
		b.Kind, b.Redacted, b.Encrypted = block.Reasoning, true, r.Str(v.Get("data"))
		unpack(&b, b.Encrypted)
	case "tool_use", "server_tool_use", "mcp_tool_use":
		b.Kind, b.Server = block.ToolCall, b.Type != "tool_use"
		b.CallID, b.Name = callid.Unescape(r.required(v, "id")), r.required(v, "name")
		r.input(v.Get("input"), &b)
	case "tool_result", "mcp_tool_result":
		b.Kind, b.Server = block.ToolResult, b.Type != "tool_result"
		b.CallID, b.IsError = callid.Unescape(r.required(v, "tool_use_id")), r.Bool(v.Get("is_error"))
		b.Content, b.Form = inner(v.Get("content")), codec.FormOf(v.Get("content"))
	case "image":
		b.Kind, b.Media = block.Image, r.source(v)
	case "document":
		b.Kind, b.Media = block.Document, r.source(v)
		b.Media.Name = r.Str(v.Get("title"))
		if c := v.Get("source").Get("content"); !c.IsNull() {
			b.Content = inner(c)
		}
	case "search_result":
		b.Kind, b.Name = block.Citation, r.Str(v.Get("title"))
		b.Media = &block.Media{URL: r.Str(v.Get("source"))}
		b.Content = inner(v.Get("content"))
	case "mid_conv_system":
		b.Kind, b.Content = block.Instruction, inner(v.Get("content"))
	case "tool_reference":
		b.Kind, b.Name = block.ToolReference, r.Str(v.Get("tool_name"))
	case "container_upload":
		b.Kind, b.Media = block.File, &block.Media{FileID: r.Str(v.Get("file_id"))}
	case "compaction":
		b.Kind, b.Text = block.Compaction, r.Str(v.Get("content"))
	default:
		b.JSON = v.Raw()
		if strings.HasSuffix(b.Type, "_tool_result") {
			b.Kind, b.Server, b.CallID = block.ServerItem, true, callid.Unescape(r.Str(v.Get("tool_use_id")))
		}
	}
	return b
}

// required returns a string that a block must have, and that Anthropic requires not to be empty.
func (r reqReader) required(v jsonscan.Value, name string) string {
	s := v.Get(name)
	if s.IsNull() {
		r.Missing(v, name, "a string")
	}
	text := r.Str(s)
	if text == "" {
		r.Missing(v, name, "a string that is not empty")
	}
	return text
}

func (r reqReader) source(v jsonscan.Value) *block.Media {
	s := r.Object(v.Get("source"))
	m := &block.Media{
		MIME: r.Str(s.Get("media_type")), Data: r.Str(s.Get("data")), FileID: r.Str(s.Get("file_id")),
	}
	if u := r.Str(s.Get("url")); u != "" {
		if in := codec.MediaURL(u); in.Data != "" {
			m.MIME, m.Data = in.MIME, in.Data
		} else {
			m.URL = u
		}
	}
	return m
}
