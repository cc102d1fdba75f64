// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"strings"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/codec"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/sigpack"
)

// AppendRequest appends r as a Responses request to dst. A Responses request is written unmodified, with edits applied and
// without losses. Any other request is converted. The losses report what the API cannot express; with opt.Strict, a
// loss is an error.
//
// System text becomes messages with role system. Reasoning, calls and tool results become items in the order of the
// blocks.
func AppendRequest(dst []byte, r *block.Request, opt *block.EncodeOptions) ([]byte, []block.Loss, error) {
	return codec.Convert(dst, r, reqDialect{}, opt, appendRequest)
}

func appendRequest(dst []byte, v *codec.View, lose codec.LossFunc) []byte {
	d := reqDialect{}
	o := codec.Open(dst)
	for _, m := range d.Members(&v.Params, v.Tools, lose) {
		o.Raw(m.Key, m.Value)
	}
	if len(v.Tools) > 0 {
		var tools [][]byte
		for i := 0; i < len(v.Tools); {
			var inner [][]byte // tools of a namespace
			space := v.Tools[i].Namespace
			for ; i < len(v.Tools) && v.Tools[i].Namespace == space; i++ {
				if raw := d.AppendTool(nil, &v.Tools[i], lose); len(raw) > 0 {
					inner = append(inner, raw)
				}
			}
			if space == "" {
				tools = append(tools, inner...)
				continue
			}
			if len(inner) == 0 {
				continue
			}
			n := codec.Open(nil)
			n.Str("type", "namespace")
			n.Str("name", space)
			n.Str("description", "")
			n.Raw("tools", codec.Array(inner))
			tools = append(tools, n.Close())
		}
		if len(tools) > 0 {
			o.Raw("tools", codec.Array(tools))
		}
	}
	w := reqWriter{Lossy: codec.Lossy{Lose: lose}, custom: map[string]bool{}}
	o.Key("input")
	o.Buf = append(o.Buf, '[')
	n := 0
	turns := codec.SplitInstructions(v.Turns)
	for i := range turns {
		for _, raw := range w.turn(&turns[i]) {
			if n++; n > 1 {
				o.Buf = append(o.Buf, ',')
			}
			o.Buf = append(o.Buf, raw...)
		}
	}
	o.Buf = append(o.Buf, ']')
	return o.Close()
}

// Members returns the top-level fields for the parameters.
func (reqDialect) Members(p *block.Params, tools []block.Tool, lose codec.LossFunc) []codec.Member {
	var m codec.Members
	m.Add("model", "", codec.Str(p.Model))
	m.Int("max_output_tokens", "max_tokens", p.MaxTokens)
	m.True("stream", p.Stream)
	s := &p.Sampling
	m.Float("temperature", s.Temperature)
	m.Float("top_p", s.TopP)
	m.Int("top_logprobs", "", s.TopLogprobs)
	codec.LoseAll(lose, "no field in the Responses API",
		codec.Opt{Set: s.N != nil && *s.N > 1, Name: "n"},
		codec.Opt{Set: s.Seed != nil, Name: "seed"},
		codec.Opt{Set: len(s.Stop) > 0, Name: "stop"},
		codec.Opt{Set: s.MinP != nil, Name: "min_p"},
		codec.Opt{Set: s.TopK != nil, Name: "top_k"},
		codec.Opt{Set: s.FrequencyPenalty != nil && *s.FrequencyPenalty != 0, Name: "frequency_penalty"},
		codec.Opt{Set: s.PresencePenalty != nil && *s.PresencePenalty != 0, Name: "presence_penalty"},
		codec.Opt{Set: s.RepetitionPenalty != nil, Name: "repetition_penalty"},
		codec.Opt{Set: len(s.StopTokens) > 0, Name: "stop_token_ids"},
		codec.Opt{Set: s.IgnoreEOS, Name: "ignore_eos"},
		codec.Opt{Set: s.Logprobs && s.TopLogprobs == nil, Name: "logprobs"},
		codec.Opt{Set: p.Thinking.Budget != nil, Name: "thinking.budget_tokens"},
		codec.Opt{Set: p.Thinking.Mode != block.ThinkingUnspecified, Name: "thinking.type"},
	)
	if p.Thinking.Effort != "" || p.Thinking.Summary != "" {
		o := codec.Open(nil)
		o.OptStr("effort", p.Thinking.Effort)
		o.OptStr("summary", p.Thinking.Summary)
		m.Add("reasoning", "", o.Close())
	}
	if p.Format.Type != "" || p.Verbosity != "" {
		o := codec.Open(nil)
		if p.Format.Type != "" {
			f := codec.Open(nil)
			f.Str("type", p.Format.Type)
			if p.Format.Type == "json_schema" {
				f.Schema(&p.Format)
			}
			o.Raw("format", f.Close())
		}
		o.OptStr("verbosity", p.Verbosity)
		m.Add("text", "", o.Close())
	}
	m.Str("user", p.User)
	m.Str("prompt_cache_key", p.CacheKey)
	m.Str("service_tier", codec.OpenAITier(p.ServiceTier))
	reqChoice(&m, &p.ToolChoice, tools)
	return m
}

// reqChoice writes tool_choice and parallel_tool_calls.
func reqChoice(m *codec.Members, c *block.ToolChoice, tools []block.Tool) {
	isCustom := codec.CustomNames(tools, len(c.Allow))
	named := func(name string) []byte {
		kind := "function"
		if isCustom(name) {
			kind = "custom"
		}
		o := codec.Open(nil)
		o.Str("type", kind)
		o.Str("name", name)
		return o.Close()
	}
	codec.OpenAIChoice(m, c, named, func(mode string, tools []byte) []byte {
		o := codec.Open(nil)
		o.Str("type", "allowed_tools")
		o.Str("mode", mode)
		o.Raw("tools", tools)
		return o.Close()
	})
}

// AppendTool appends the declaration of a tool.
func (reqDialect) AppendTool(dst []byte, t *block.Tool, lose codec.LossFunc) []byte {
	if t.Kind == block.Hosted {
		lose(t.At.Path(), "a tool that another API runs: "+t.Type)
		return dst
	}
	if t.Cache != nil {
		lose(t.At.Path(), "a cache breakpoint on a tool")
	}
	o := codec.Open(dst)
	if t.Kind == block.CustomTool {
		o.Str("type", "custom")
		o.Str("name", t.Name)
		o.OptStr("description", t.Description)
		o.OptRaw("format", reqFormat(t.Format))
	} else {
		o.Str("type", "function")
		o.Str("name", t.Name)
		o.OptStr("description", t.Description)
		if len(t.Schema) > 0 {
			o.Raw("parameters", t.Schema)
		} else {
			o.Raw("parameters", []byte(`{"type":"object","properties":{}}`))
		}
		o.Bool("strict", t.Strict != nil && *t.Strict)
	}
	if t.Deferred {
		o.Bool("defer_loading", true)
	}
	return o.Close()
}

// reqFormat converts a custom tool's format to the flat form of this API; the Chat API has a nested form.
func reqFormat(raw []byte) []byte {
	d, err := jsonscan.Scan(raw, jsonscan.Limits{Bytes: 1 << 30, Depth: 64, Values: 1 << 16})
	if err != nil {
		return raw
	}
	g := d.Root().Get("grammar")
	if g.Kind() != jsonscan.Object {
		return raw
	}
	o := codec.Open(nil)
	o.Str("type", "grammar")
	o.OptRaw("syntax", g.Get("syntax").Raw())
	o.OptRaw("definition", g.Get("definition").Raw())
	return o.Close()
}

// reqWriter encodes items and parts.
type reqWriter struct {
	codec.Lossy
	custom map[string]bool // call IDs of custom tools
}

// turn encodes the items of a turn: sequences of parts as messages, other blocks as items, in order.
func (w *reqWriter) turn(t *block.Turn) (items [][]byte) {
	if t.Role == block.RoleUnknown {
		if !w.Strict {
			w.Cannot(&block.Block{At: t.At}, "a turn of an unknown role")
			return nil
		}
		if len(t.Blocks) == 1 && t.Blocks[0].Kind == block.Unknown && t.Form == 0 { // an item
			return [][]byte{w.item(nil, &t.Blocks[0])}
		}
	}
	if t.Name != "" {
		w.Soft(&block.Block{At: t.At}, "the name of a participant")
	}
	for i := 0; i < len(t.Blocks); {
		if isItem(&t.Blocks[i]) {
			if raw := w.item(nil, &t.Blocks[i]); len(raw) > 0 {
				items = append(items, raw)
			}
			i++
			continue
		}
		n := 1
		for i+n < len(t.Blocks) && !isItem(&t.Blocks[i+n]) && !(w.Strict && codec.Opens(&t.Blocks[i+n])) {
			n++
		}
		raw := w.message(nil, t.Role, t.ID, t.Blocks[i:i+n], t.Form)
		if w.Strict {
			raw = codec.PatchMessage(&t.Blocks[i], raw, 0)
		}
		items = append(items, raw)
		i += n
	}
	if len(t.Blocks) == 0 && !w.Strict {
		w.Soft(&block.Block{At: t.At}, "a turn without blocks")
	}
	if len(t.Blocks) == 0 && w.Strict {
		items = append(items, w.message(nil, t.Role, t.ID, nil, t.Form))
	}
	return items
}

func (w *reqWriter) message(dst []byte, role block.Role, id string, list []block.Block, form block.Form) []byte {
	if role == block.RoleTool {
		role = block.RoleUser
	}
	o := codec.Open(dst)
	o.Str("type", "message")
	o.OptStr("id", id)
	o.Str("role", role.String())
	o.Key("content")
	if w.Strict && form&codec.FormString != 0 && len(list) == 1 {
		o.Buf = w.output(o.Buf, list, form)
	} else {
		o.Buf = w.parts(o.Buf, list, role)
	}
	return o.Close()
}

func (w *reqWriter) parts(dst []byte, list []block.Block, role block.Role) []byte {
	return codec.AppendList(dst, list, func(dst []byte, b *block.Block) []byte { return w.part(dst, b, role) })
}

// output writes the content of a tool result: one text as a string and anything else as an array, unless the block was
// read from this API in another form.
func (w *reqWriter) output(dst []byte, list []block.Block, form block.Form) []byte {
	if !w.Strict {
		form = 0
	}
	if len(list) == 0 && form&codec.FormList == 0 {
		return append(dst, `""`...)
	}
	return codec.AppendContent(dst, list, form, func(dst []byte, b *block.Block) []byte { return w.part(dst, b, block.RoleUser) })
}

// item writes an item, or nothing if the API cannot express it.
func (w *reqWriter) item(dst []byte, b *block.Block) []byte {
	return w.Patched(w.itemFields(dst, b), len(dst), b)
}

// itemFields writes the fields of an item.
func (w *reqWriter) itemFields(dst []byte, b *block.Block) []byte {
	o := codec.Open(dst)
	switch b.Kind {
	case block.Reasoning:
		w.NoBreakpoint(b)
		o.Str("type", "reasoning")
		o.OptStr("id", b.ID)
		if b.Summary {
			o.Raw("summary", textPart("summary_text", b.Text))
		} else {
			o.Raw("summary", []byte("[]"))
			if b.Text != "" {
				o.Raw("content", textPart("reasoning_text", b.Text))
			}
		}
		o.OptStr("encrypted_content", b.Encrypted)
		o.OptStr("signature", b.Signature) // as in OpenRouter's API
		if b.Redacted {
			o.Str("format", sigpack.RedactedFormat)
		}
	case block.ToolCall:
		if b.Server {
			w.Cannot(b, "a call of a tool that another API runs")
			return dst
		}
		kind, args := "function_call", "arguments"
		if b.Custom {
			kind, args = "custom_tool_call", "input"
			if w.custom != nil {
				w.custom[b.CallID] = true
			}
		}
		w.NoBreakpoint(b)
		o.Str("type", kind)
		o.OptStr("id", b.ID)
		o.Str("call_id", b.CallID)
		o.Str("name", b.Name)
		o.OptStr("namespace", b.Namespace)
		o.Str(args, b.Args)
	case block.ToolResult:
		if b.Server {
			w.Cannot(b, "a result of a tool that another API runs")
			return dst
		}
		if b.IsError {
			w.Soft(b, "the mark of a failed tool")
		}
		kind := "function_call_output"
		if b.Custom || w.custom[b.CallID] {
			kind = "custom_tool_call_output"
		}
		o.Str("type", kind)
		o.OptStr("id", b.ID)
		o.Str("call_id", b.CallID)
		o.Key("output")
		o.Buf = w.output(o.Buf, w.Inside(b), b.Form)
	case block.Compaction:
		if b.Encrypted == "" {
			w.Cannot(b, "compacted history became a message")
			return w.message(dst, block.RoleAssistant, "", []block.Block{{Kind: block.Text, Text: b.Text}}, 0)
		}
		o.Str("type", "compaction")
		o.Str("encrypted_content", b.Encrypted)
	default:
		if w.Strict && len(b.JSON) > 0 { // the item of another Responses request, unmodified
			return append(dst, b.JSON...)
		}
		w.Cannot(b, "a block of another API: "+b.Type)
		return dst
	}
	return o.Close()
}

// textPart returns an array with one text part.
func textPart(kind, text string) []byte {
	o := codec.Open([]byte{'['})
	o.Str("type", kind)
	o.Str("text", text)
	return append(o.Close(), ']')
}

// textType returns the type of text in a message of the role.
func textType(role block.Role) string {
	if role == block.RoleAssistant {
		return "output_text"
	}
	return "input_text"
}

// part writes a content part, or nothing if the API cannot express it.
func (w *reqWriter) part(dst []byte, b *block.Block, role block.Role) []byte {
	return w.Patched(w.partFields(dst, b, role), len(dst), b)
}

// partFields writes the fields of a part.
func (w *reqWriter) partFields(dst []byte, b *block.Block, role block.Role) []byte {
	o := codec.Open(dst)
	switch b.Kind {
	case block.Text:
		o.Str("type", textType(role))
		o.Str("text", b.Text)
	case block.Refusal:
		o.Str("type", "refusal")
		o.Str("refusal", b.Text)
	case block.Image:
		o.Str("type", "input_image")
		switch {
		case b.Media != nil && b.Media.FileID != "":
			o.Str("file_id", b.Media.FileID)
		case b.Media != nil && codec.URLOf(b.Media) != "":
			o.Str("image_url", codec.URLOf(b.Media))
		default:
			w.Cannot(b, "an image without data")
			return dst
		}
		if b.Media.Detail != "" {
			o.Str("detail", b.Media.Detail)
		}
	case block.Audio:
		if b.Media == nil || b.Media.Data == "" {
			w.Cannot(b, "audio that is not inline")
			return dst
		}
		in := codec.Open(nil)
		in.Str("data", b.Media.Data)
		in.OptStr("format", strings.TrimPrefix(b.Media.MIME, "audio/"))
		o.Str("type", "input_audio")
		o.Raw("input_audio", in.Close())
	case block.File, block.Document:
		return w.file(dst, b, role)
	case block.Citation, block.ToolReference, block.Instruction:
		text := strings.Trim(b.Name+"\n"+codec.JoinText(b.Content, "\n"), "\n")
		if b.Kind == block.ToolReference {
			text = codec.ReferenceText(b.Name)
		}
		w.Cannot(b, "a "+b.Kind.String()+" became text")
		o.Str("type", textType(role))
		o.Str("text", text)
	default:
		if w.Strict && len(b.JSON) > 0 { // the part of another Responses request, unmodified
			return append(dst, b.JSON...)
		}
		w.Cannot(b, "a block of another API: "+b.Type)
		return dst
	}
	w.Breakpoint(&o, b)
	return o.Close()
}

func (w *reqWriter) file(dst []byte, b *block.Block, role block.Role) []byte {
	o := codec.Open(dst)
	m := b.Media
	if m == nil {
		m = &block.Media{}
	}
	text := ""
	if m.MIME == "text/plain" {
		text = m.Data
	} else if m.Data == "" {
		text = codec.JoinText(b.Content, "\n")
	}
	switch {
	case text != "":
		w.Soft(b, "a document became text")
		o.Str("type", textType(role))
		o.Str("text", strings.Trim(m.Name+"\n"+text, "\n"))
	case m.Data != "" || m.FileID != "" || m.URL != "":
		o.Str("type", "input_file")
		o.OptStr("filename", m.Name)
		o.OptStr("file_id", m.FileID)
		if m.Data != "" {
			o.Str("file_data", codec.URLOf(m))
		} else {
			o.OptStr("file_url", m.URL)
		}
	default:
		w.Cannot(b, "a file without data")
		return dst
	}
	w.Breakpoint(&o, b)
	return o.Close()
}

// AppendBlock appends a part or an item, for a request of this API.
func (reqDialect) AppendBlock(dst []byte, t *block.Turn, b *block.Block) []byte {
	w := reqWriter{Lossy: codec.Lossy{Strict: true}}
	if isItem(b) {
		return w.item(dst, b)
	}
	return w.part(dst, b, t.Role)
}

// AppendTurn appends the items of a turn, or the string of a top-level field, for a request of this API.
func (reqDialect) AppendTurn(dst []byte, t *block.Turn) []byte {
	w := reqWriter{Lossy: codec.Lossy{Strict: true}}
	if t.Form&codec.FormMember != 0 {
		return w.output(dst, t.Blocks, t.Form)
	}
	for i, raw := range w.turn(t) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, raw...)
	}
	return dst
}

// TurnMember returns instructions or input for text in a top-level field.
func (reqDialect) TurnMember(t *block.Turn) string {
	switch {
	case t.Form&codec.FormMember == 0:
		return ""
	case t.Role == block.RoleSystem:
		return "instructions"
	}
	return "input"
}

// ListMember returns input.
func (reqDialect) ListMember() string { return "input" }
