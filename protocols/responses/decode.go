// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"slices"
	"strings"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/codec"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/sigpack"
)

// Decode validates and parses a Responses request. The request takes ownership of body; nil limits mean defaults.
// Errors are of type *[block.Error].
//
// It accepts deviations of clients from the specification: messages without type, items without id or status, null
// instead of a list. Items, parts and fields that are not modeled stay in the body and are preserved. Decode makes one
// pass and about one allocation per item.
func Decode(body []byte, lim *block.Limits) (*block.Request, error) {
	return codec.Decode(body, reqDialect{}, lim)
}

// reqDialect implements seam.Dialect for the Responses API. It is stateless.
type reqDialect struct{}

// API returns block.Responses.
func (reqDialect) API() block.API { return block.Responses }

// Read reads the view from a validated body.
func (reqDialect) Read(root jsonscan.Value, lim block.Limits, past *codec.Past) (codec.View, error) {
	r := reqReader{codec.NewReader(root, lim, past)}
	var v codec.View
	r.params(root, &v.Params)
	if list := r.List(root.Get("tools")); list.Exists() {
		v.Tools = r.tools(list, "", r.Tools(list, list.Len()))
	}
	r.turns(root, &v)
	return v, r.End(&v)
}

type reqReader struct{ *codec.Reader }

func (r reqReader) params(root jsonscan.Value, p *block.Params) {
	p.Model = r.Str(root.Get("model"))
	p.Stream = r.Bool(root.Get("stream"))
	if p.MaxTokens = r.Int(root.Get("max_output_tokens")); p.MaxTokens == nil {
		p.MaxTokens = r.Int(root.Get("max_tokens")) // accepted by Dynamo, too
	}
	s := &p.Sampling
	s.Temperature, s.TopP = r.Float(root.Get("temperature")), r.Float(root.Get("top_p"))
	s.TopLogprobs = r.Int(root.Get("top_logprobs"))
	th := r.Object(root.Get("reasoning"))
	p.Thinking.Effort, p.Thinking.Summary = r.Str(th.Get("effort")), r.Str(th.Get("summary"))
	if p.Thinking.Summary == "" {
		p.Thinking.Summary = r.Str(th.Get("generate_summary")) // its former name
	}
	text := r.Object(root.Get("text"))
	p.Verbosity = r.Str(text.Get("verbosity"))
	f := r.Object(text.Get("format"))
	p.Format.Type = r.Str(f.Get("type"))
	r.Schema(f, &p.Format)
	p.User = r.Hint(root.Get("user"))
	p.CacheKey = r.Hint(root.Get("prompt_cache_key"))
	p.ServiceTier = r.Hint(root.Get("service_tier"))

	c := &p.ToolChoice
	if b := r.BoolPtr(root.Get("parallel_tool_calls")); b != nil {
		c.Serial = !*b
	}
	tc := root.Get("tool_choice")
	word := ""
	switch tc.Kind() {
	case jsonscan.Absent, jsonscan.Null:
		return
	case jsonscan.String:
		word = r.Str(tc)
	case jsonscan.Object:
		word = r.Str(tc.Get("type"))
		c.Serial = c.Serial || r.Bool(tc.Get("disable_parallel_tool_use")) // sent by converters
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
		c.Mode, c.Allow = block.Required, []string{r.Str(tc.Get("name"))}
	case "allowed_tools":
		r.Allowed(c, tc, func(e jsonscan.Value) jsonscan.Value { return e.Get("name") })
	}
}

// tools reads a list of tools. The tools in a namespace are read individually.
func (r reqReader) tools(list jsonscan.Value, namespace string, out []block.Tool) []block.Tool {
	for e := list.First(); e.Exists() && r.Err() == nil; e = list.Next(e) {
		if e.Kind() != jsonscan.Object {
			r.Want(e, "an object")
			break
		}
		if t, ok := r.TakeTool(e); ok {
			t.Namespace = namespace
			out = append(out, t)
			continue
		}
		t := block.Tool{
			Type: r.Str(e.Get("type")), Name: r.Str(e.Get("name")), Namespace: namespace,
			Description: r.Str(e.Get("description")), Schema: r.Raw(e.Get("parameters")),
			Strict: r.BoolPtr(e.Get("strict")), Deferred: r.Bool(e.Get("defer_loading")), At: codec.Pending(e),
		}
		switch t.Type {
		case "function":
		case "custom":
			t.Kind, t.Format = block.CustomTool, r.Raw(e.Get("format"))
		case "namespace":
			if inner := r.List(e.Get("tools")); inner.First().Exists() && namespace == "" && t.Name != "" {
				r.Tools(inner, len(out)+inner.Len()) // counts toward the limit
				out = r.tools(inner, t.Name, out)
				continue
			}
			t.Kind, t.JSON = block.Hosted, e.Raw()
		default:
			t.Kind, t.JSON = block.Hosted, e.Raw()
		}
		if t.Kind != block.Hosted && t.Name == "" {
			r.Missing(e, "name", "a string")
		}
		out = append(out, t)
	}
	return out
}

func (r reqReader) turns(root jsonscan.Value, v *codec.View) {
	if in := root.Get("instructions"); !in.IsNull() {
		r.AddTurn(v, block.Turn{Role: block.RoleSystem, Blocks: r.Content(in, r.part), Form: codec.FormMember | codec.FormOf(in), At: codec.Pending(in)})
	}
	list := root.Get("input")
	switch list.Kind() {
	case jsonscan.Absent, jsonscan.Null:
		return
	case jsonscan.String:
		r.AddTurn(v, block.Turn{Role: block.RoleUser, Blocks: r.Content(list, r.part), Form: codec.FormMember | codec.FormOf(list), At: codec.Pending(list)})
		return
	case jsonscan.Array:
	default:
		r.Want(list, "a string or an array")
		return
	}
	v.Turns = slices.Grow(v.Turns, min(list.Len(), 256))
	open := false // the last turn is a sequence that an item of the same role continues
	for it := list.First(); it.Exists() && r.Err() == nil; it = list.Next(it) {
		if it.Kind() != jsonscan.Object {
			r.Want(it, "an object")
			return
		}
		t, last, ok := r.TakeTurn(it)
		runs := t.Role == block.RoleAssistant || t.Role == block.RoleTool
		if !ok {
			t, last = block.Turn{At: codec.Pending(it)}, it
			if t.Role, t.Blocks, runs = r.item(it); !runs {
				t.ID, t.Form = r.Str(it.Get("id")), codec.FormOf(it.Get("content"))
			}
		}
		if n := len(v.Turns); open && runs && v.Turns[n-1].Role == t.Role {
			to := &v.Turns[n-1]
			to.Blocks = append(to.Blocks, t.Blocks...)
			to.At = codec.Extend(to.At, last)
			r.EndTurn(v)
		} else {
			r.AddTurn(v, t)
		}
		it, open = last, runs
	}
}

// item reads one input item. runs reports whether consecutive items of the same role are one turn.
func (r reqReader) item(it jsonscan.Value) (role block.Role, blocks []block.Block, runs bool) {
	kind := r.Str(it.Get("type"))
	b := block.Block{Type: kind, ID: r.Str(it.Get("id")), At: codec.Pending(it)}
	one := func() []block.Block {
		if b.Kind == block.Unknown || b.Kind == block.ServerItem {
			b.JSON = it.Raw()
		}
		return append(r.Blocks(it, 1), b)
	}
	switch kind {
	case "", "message":
		switch r.Str(it.Get("role")) {
		case "user":
			role = block.RoleUser
		case "assistant":
			role = block.RoleAssistant
		case "system":
			role = block.RoleSystem
		case "developer":
			role = block.RoleDeveloper
		case "":
			if kind == "" {
				if id := it.Get("id"); id.Exists() { // an item reference may lack a type
					return block.RoleUnknown, one(), false
				}
			}
			r.Missing(it, "role", "a string")
		}
		return role, r.Content(it.Get("content"), r.part), role == block.RoleAssistant
	case "reasoning":
		r.reasoning(it, &b)
		return block.RoleAssistant, one(), true
	case "function_call":
		b.Kind, b.CallID, b.Name = block.ToolCall, r.Str(it.Get("call_id")), r.Str(it.Get("name"))
		b.Namespace, b.Args = r.Str(it.Get("namespace")), r.Str(it.Get("arguments"))
		return block.RoleAssistant, one(), true
	case "custom_tool_call":
		b.Kind, b.Custom, b.CallID, b.Name = block.ToolCall, true, r.Str(it.Get("call_id")), r.Str(it.Get("name"))
		b.Namespace, b.Args = r.Str(it.Get("namespace")), r.Str(it.Get("input"))
		return block.RoleAssistant, one(), true
	case "function_call_output", "custom_tool_call_output":
		b.Kind, b.Custom, b.CallID = block.ToolResult, kind == "custom_tool_call_output", r.Str(it.Get("call_id"))
		if out := it.Get("output"); out.Kind() == jsonscan.Object { // some clients send one part without an array
			b.Content = append(r.Blocks(out, 1), r.part(out))
		} else {
			b.Content, b.Form = r.Content(out, r.part), codec.FormOf(out)
		}
		return block.RoleTool, one(), true
	case "compaction", "compaction_summary":
		b.Kind, b.Encrypted = block.Compaction, r.Str(it.Get("encrypted_content"))
		return block.RoleAssistant, one(), true
	case "agent_message":
		return block.RoleUser, r.Content(it.Get("content"), r.part), false
	}
	switch kind {
	case "mcp_list_tools", "mcp_approval_request", "program":
		b.Kind, b.Server = block.ServerItem, true
		return block.RoleAssistant, one(), true
	case "mcp_approval_response":
		b.Kind, b.Server = block.ServerItem, true
		return block.RoleTool, one(), true
	}
	if b.CallID, _ = it.Get("call_id").Str(nil); strings.HasSuffix(kind, "_output") {
		b.Kind, b.Server = block.ServerItem, true
		return block.RoleTool, one(), true
	}
	if strings.HasSuffix(kind, "_call") {
		b.Kind, b.Server = block.ServerItem, true
		return block.RoleAssistant, one(), true
	}
	return block.RoleUnknown, one(), false
}

// reasoning reads the text of a reasoning item: its content or, if that is absent, its summary.
func (r reqReader) reasoning(it jsonscan.Value, b *block.Block) {
	b.Kind, b.Encrypted = block.Reasoning, r.Str(it.Get("encrypted_content"))
	b.Signature = r.Str(it.Get("signature"))
	kind, encrypted, signature, ok := sigpack.Open(b.Encrypted)
	if ok { // a string that our stream encoder wrote
		b.Encrypted, b.Signature = encrypted, signature
	}
	b.Text = r.joined(it.Get("content"))
	if b.Text == "" {
		b.Text = r.joined(it.Get("summary"))
		b.Summary = b.Text != ""
	}
	b.Redacted = b.Text == "" && b.Signature == "" && (kind == sigpack.Withheld || r.Str(it.Get("format")) == sigpack.RedactedFormat)
}

// joined returns the texts of a list of parts with blank lines between them.
func (r reqReader) joined(list jsonscan.Value) string {
	if list.Kind() == jsonscan.String {
		return r.Str(list)
	}
	list = r.List(list)
	if first := list.First(); first.Exists() && !list.Next(first).Exists() {
		return r.Str(first.Get("text"))
	}
	var b strings.Builder
	for p := list.First(); p.Exists(); p = list.Next(p) {
		if s := r.Str(p.Get("text")); s != "" {
			if b.Len() > 0 {
				b.WriteString("\n\n")
			}
			b.WriteString(s)
		}
	}
	return b.String()
}

func (r reqReader) part(v jsonscan.Value) block.Block {
	b := block.Block{Type: r.Str(v.Get("type")), Cache: r.Cache(v), At: codec.Pending(v)}
	switch b.Type {
	case "input_text", "output_text", "text":
		b.Kind, b.Text = block.Text, r.Str(v.Get("text"))
	case "refusal":
		b.Kind, b.Text = block.Refusal, r.Str(v.Get("refusal"))
	case "input_image":
		b.Kind, b.Media = block.Image, codec.MediaURL(r.Str(v.Get("image_url")))
		b.Media.FileID, b.Media.Detail = r.Str(v.Get("file_id")), r.Str(v.Get("detail"))
	case "input_audio":
		a := r.Object(v.Get("input_audio"))
		b.Kind, b.Media = block.Audio, &block.Media{Data: r.Str(a.Get("data"))}
		if f := r.Str(a.Get("format")); f != "" {
			b.Media.MIME = "audio/" + f
		}
	case "input_file":
		b.Kind, b.Media = block.File, codec.MediaURL(r.Str(v.Get("file_url")))
		if d := r.Str(v.Get("file_data")); d != "" {
			if mime, data, ok := codec.Inline(d); ok {
				b.Media.MIME, b.Media.Data = mime, data
			} else {
				b.Media.Data = d
			}
		}
		b.Media.FileID, b.Media.Name = r.Str(v.Get("file_id")), r.Str(v.Get("filename"))
	default:
		b.JSON = v.Raw()
	}
	return b
}
