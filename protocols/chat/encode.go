// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/codec"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// AppendRequest appends r as a Chat Completions request to dst. A Chat request is written unmodified, with edits applied and
// without losses. Any other request is converted. The losses report what the API cannot express; with opt.Strict, a
// loss is an error.
//
// Past reasoning becomes reasoning_content, and also reasoning_details if that cannot express all of it. Tool results
// become messages with role tool before the rest of their turn; system text inside a turn becomes a separate message. A
// cache breakpoint becomes a prompt_cache_breakpoint of its part. With opt.Engine, a conversion has the fields that the
// engine reads; the package comment lists them.
func AppendRequest(dst []byte, r *block.Request, opt *block.EncodeOptions) ([]byte, []block.Loss, error) {
	var d reqDialect
	if opt != nil && opt.Engine != "" && opt.Engine != "dynamo" { // Dynamo reads what a conversion writes by default
		if d.engine = engines[opt.Engine]; d.engine == nil {
			return dst, nil, &block.Error{Kind: block.Unsupported, Offset: -1, Msg: fmt.Sprintf("unknown engine %.100q: want vllm, sglang, llama.cpp, ollama or dynamo", opt.Engine)}
		}
	}
	return codec.Convert(dst, r, d, opt, d.appendRequest)
}

func (d reqDialect) appendRequest(dst []byte, v *codec.View, lose codec.LossFunc) []byte {
	o := codec.Open(dst)
	params := v.Params
	if s := &params.Sampling; s.TopLogprobs != nil && !s.Logprobs {
		if *s.TopLogprobs != 0 {
			lose("top_logprobs", "the Chat API requires logprobs with it")
		}
		s.TopLogprobs = nil
	}
	for _, m := range d.Members(&params, v.Tools, lose) {
		o.Raw(m.Key, m.Value)
	}
	o.Tools(v.Tools, d.AppendTool, lose)
	o.Key("messages")
	o.Buf = append(o.Buf, '[')
	w := reqWriter{Lossy: codec.Lossy{Lose: lose}, engine: d.engine, tools: v.Tools}
	n := 0
	turns := codec.SplitInstructions(v.Turns)
	for i := range turns {
		if raw := w.turn(nil, &turns[i]); len(raw) > 0 {
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
func (d reqDialect) Members(p *block.Params, tools []block.Tool, lose codec.LossFunc) []codec.Member {
	e := d.engine
	var m codec.Members
	m.Add("model", "", codec.Str(p.Model))
	if e != nil && e.maxTokens {
		m.Int("max_tokens", "", p.MaxTokens)
	} else {
		m.Int("max_completion_tokens", "max_tokens", p.MaxTokens)
	}
	m.True("stream", p.Stream)
	if p.StreamUsage {
		m.Add("stream_options", "", []byte(`{"include_usage":true}`))
	}
	s := &p.Sampling
	m.Sampling(s)
	m.True("logprobs", s.Logprobs)
	m.Int("top_logprobs", "", s.TopLogprobs)
	if e != nil {
		e.thinking(&m, p.Thinking, lose)
	} else {
		reqThinking(&m, &p.Thinking)
	}
	m.Format(&p.Format)
	m.Str("verbosity", p.Verbosity)
	m.Str("user", p.User)
	m.Str("prompt_cache_key", p.CacheKey)
	m.Str("service_tier", codec.OpenAITier(p.ServiceTier))
	codec.LoseAll(lose, "no field in the Chat API",
		codec.Opt{Set: p.Thinking.Budget != nil && (e == nil || e.budget == ""), Name: "thinking.budget_tokens"},
		codec.Opt{Set: p.Thinking.Summary != "", Name: "reasoning.summary"},
	)
	choice := p.ToolChoice
	if e != nil {
		e.fewer(p, lose)
		choice = e.choice(choice, tools, lose)
	}
	reqChoice(&m, &choice, tools, e == nil)
	return m
}

// reqThinking writes the effort and the switch in the form of Dynamo and several providers.
func reqThinking(m *codec.Members, th *block.Thinking) {
	m.Str("reasoning_effort", th.Effort)
	switch th.Mode {
	case block.ThinkingOn:
		m.Add("thinking", "", []byte(`{"type":"enabled"}`))
	case block.ThinkingOff:
		m.Add("thinking", "", []byte(`{"type":"disabled"}`))
	case block.ThinkingAdaptive:
		m.Add("thinking", "", []byte(`{"type":"adaptive"}`))
	}
}

func cmpOr(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

// reqChoice writes tool_choice and parallel_tool_calls. custom specifies whether tools with free-text input are written
// as such.
func reqChoice(m *codec.Members, c *block.ToolChoice, tools []block.Tool, custom bool) {
	isCustom := codec.CustomNames(tools, len(c.Allow))
	named := func(name string) []byte {
		kind := "function"
		if custom && isCustom(name) {
			kind = "custom"
		}
		in, o := codec.Open(nil), codec.Open(nil)
		in.Str("name", name)
		o.Str("type", kind)
		o.Raw(kind, in.Close())
		return o.Close()
	}
	codec.OpenAIChoice(m, c, named, func(mode string, tools []byte) []byte {
		in, o := codec.Open(nil), codec.Open(nil)
		in.Str("mode", mode)
		in.Raw("tools", tools)
		o.Str("type", "allowed_tools")
		o.Raw("allowed_tools", in.Close())
		return o.Close()
	})
}

// AppendTool appends the declaration of a tool.
func (d reqDialect) AppendTool(dst []byte, t *block.Tool, lose codec.LossFunc) []byte {
	if t.Kind == block.Hosted {
		lose(t.At.Path(), "a tool that another API runs: "+t.Type)
		return dst
	}
	if t.Namespace != "" {
		lose(t.At.Path(), "the tool's namespace")
	}
	if t.Cache != nil {
		lose(t.At.Path(), "a cache breakpoint on a tool")
	}
	in := codec.Open(nil)
	in.Str("name", cmpOr(t.ModelName, t.Name))
	in.OptStr("description", t.Description)
	kind := "function"
	switch {
	case t.Kind == block.CustomTool && d.engine != nil:
		if len(t.Format) > 0 {
			lose(t.At.Path(), "the format of the tool's input")
		}
		in.Raw("parameters", []byte(customSchema))
	case t.Kind == block.CustomTool:
		kind = "custom"
		in.OptRaw("format", reqFormat(t.Format))
	default:
		in.OptRaw("parameters", t.Schema)
		if t.Strict != nil {
			in.Bool("strict", *t.Strict)
		}
	}
	o := codec.Open(dst)
	o.Str("type", kind)
	o.Raw(kind, in.Close())
	if t.Deferred {
		o.Bool("defer_loading", true)
	}
	return o.Close()
}

// reqFormat converts a custom tool's format to the nested form of this API; the Responses API has a flat form.
func reqFormat(raw []byte) []byte {
	d, err := jsonscan.Scan(raw, jsonscan.Limits{Bytes: 1 << 30, Depth: 64, Values: 1 << 16})
	if err != nil {
		return raw
	}
	v := d.Root()
	if kind, _ := v.Get("type").Str(nil); kind != "grammar" || v.Get("grammar").Exists() {
		return raw
	}
	in, o := codec.Open(nil), codec.Open(nil)
	in.OptRaw("syntax", v.Get("syntax").Raw())
	in.OptRaw("definition", v.Get("definition").Raw())
	o.Str("type", "grammar")
	o.Raw("grammar", in.Close())
	return o.Close()
}

// reqWriter encodes messages.
type reqWriter struct {
	codec.Lossy
	engine *engine      // that will read the request; nil if unknown
	tools  []block.Tool // declared tools
	wrote  []bool       // whether each part of the last content has been encoded
}

// turn writes the messages of a turn, separated by commas, or nothing if the turn has none.
func (w *reqWriter) turn(dst []byte, t *block.Turn) []byte {
	from := len(dst)
	var rest []block.Block
	switch t.Role {
	case block.RoleUnknown:
		if !w.Strict {
			w.Cannot(&block.Block{At: t.At}, "a turn of an unknown role")
			return dst
		}
	case block.RoleAssistant:
		return w.assistant(dst, t)
	}
	for i := range t.Blocks {
		b := &t.Blocks[i]
		if b.Kind != block.ToolResult {
			rest = append(rest, *b)
			continue
		}
		if len(rest) > 0 {
			w.Cannot(b, "the order of text before a tool result")
		}
		at := len(dst)
		if at > from {
			dst = append(dst, ',')
		}
		n := len(dst)
		if dst = w.result(dst, b); len(dst) == n {
			dst = dst[:at]
		}
	}
	if len(rest) == 0 && len(dst) > from {
		return dst
	}
	if len(rest) == 0 && !w.Strict && len(t.Blocks) > 0 { // results that this API cannot express
		return dst
	}
	if len(dst) > from {
		dst = append(dst, ',')
	}
	o := codec.Open(dst)
	role := t.Role
	if role == block.RoleTool {
		role = block.RoleUser
	}
	o.Str("role", role.String())
	o.OptStr("name", t.Name)
	o.Key("content")
	o.Buf = w.content(o.Buf, rest, t.Form)
	return o.Close()
}

func (w *reqWriter) result(dst []byte, b *block.Block) []byte {
	if b.Server {
		w.Cannot(b, "a result of a tool that another API runs")
		return dst
	}
	from := len(dst)
	if b.IsError {
		w.Soft(b, "the mark of a failed tool")
	}
	o := codec.Open(dst)
	o.Str("role", "tool")
	o.Str("tool_call_id", b.CallID)
	o.Key("content")
	o.Buf = w.content(o.Buf, w.Inside(b), b.Form)
	return w.Patched(o.Close(), from, b)
}

// assistant writes one message: content, reasoning, refusal, calls.
func (w *reqWriter) assistant(dst []byte, t *block.Turn) []byte {
	var content []block.Block
	var calls [][]byte
	var reasoning []string
	refusal := ""
	detailed := needDetails(t.Blocks)
	var shown, called []int // indexes in the turn of the blocks of content and calls
	for i := range t.Blocks {
		b := &t.Blocks[i]
		switch b.Kind {
		case block.Reasoning:
			if b.Text == "" && b.Signature == "" && b.Encrypted == "" {
				w.Soft(b, "empty reasoning")
			}
			w.NoBreakpoint(b)
			reasoning = append(reasoning, b.Text)
		case block.ToolCall:
			if b.Server {
				w.Cannot(b, "a call of a tool that another API runs")
				continue
			}
			calls = append(calls, w.call(nil, b))
			if detailed {
				called = append(called, i)
			}
		default:
			if len(calls) > 0 {
				w.Cannot(b, "the order of text after calls")
			}
			content = append(content, *b)
			if detailed {
				shown = append(shown, i)
			}
		}
	}
	// The last refusal has a separate field; others are parts.
	if n := len(content); n > 0 && content[n-1].Kind == block.Refusal && content[n-1].Text != "" {
		refusal, content = content[n-1].Text, content[:n-1]
	}
	o := codec.Open(dst)
	o.Str("role", "assistant")
	o.OptStr("name", t.Name)
	if len(content) > 0 {
		o.Key("content")
		w.wrote = w.wrote[:0]
		o.Buf = w.content(o.Buf, content, t.Form)
		for i := len(w.wrote) - 1; i >= 0 && detailed; i-- { // skip parts that the API cannot express
			if !w.wrote[i] {
				shown = slices.Delete(shown, i, i+1)
			}
		}
	} else if len(calls) > 0 || refusal != "" {
		o.Raw("content", []byte("null"))
	} else {
		o.Str("content", "")
	}
	field := "reasoning_content"
	if w.engine != nil && w.engine.reasoning || w.Strict && t.Form&codec.FormReasoning != 0 {
		field = "reasoning"
	}
	o.OptStr(field, joinNonEmpty("\n", reasoning...))
	if detailed {
		o.Key("reasoning_details")
		o.Buf = appendDetails(o.Buf, t.Blocks, shown, called)
	}
	o.OptStr("refusal", refusal)
	if len(calls) > 0 {
		o.Raw("tool_calls", codec.Array(calls))
	}
	return o.Close()
}

func (w *reqWriter) call(dst []byte, b *block.Block) []byte {
	w.NoBreakpoint(b)
	in, o := codec.Open(nil), codec.Open(dst)
	in.Str("name", w.CallName(b, w.tools))
	kind := "function"
	switch {
	case b.Custom && w.engine != nil:
		c := codec.Open(nil)
		c.Str("input", b.Args)
		in.Str("arguments", string(c.Close()))
	case b.Custom:
		kind = "custom"
		in.Str("input", b.Args)
	default:
		in.Str("arguments", b.Args)
	}
	from := len(dst)
	o.Str("id", b.CallID)
	o.Str("type", kind)
	o.Raw(kind, in.Close())
	return w.Patched(o.Close(), from, b)
}

// content writes a single plain text as a string and anything else as an array, unless the block was read from this API
// in another form.
func (w *reqWriter) content(dst []byte, list []block.Block, form block.Form) []byte {
	if len(list) == 0 {
		return append(dst, `""`...)
	}
	if !w.Strict {
		form = 0
	}
	return codec.AppendContent(dst, list, form, w.part)
}

// part writes a content part, or nothing if the API cannot express it.
func (w *reqWriter) part(dst []byte, b *block.Block) []byte {
	from := len(dst)
	dst = w.Patched(w.fields(dst, b), from, b)
	w.wrote = append(w.wrote, len(dst) > from)
	return dst
}

// fields writes the fields of a part.
func (w *reqWriter) fields(dst []byte, b *block.Block) []byte {
	o := codec.Open(dst)
	switch b.Kind {
	case block.Text:
		o.Str("type", "text")
		o.Str("text", b.Text)
	case block.Refusal:
		o.Str("type", "refusal")
		o.Str("refusal", b.Text)
	case block.Image, block.Video:
		u := ""
		if b.Media != nil {
			u = codec.URLOf(b.Media)
		}
		if u == "" {
			w.Cannot(b, "an image or video given by file ID")
			return dst
		}
		key := "image_url"
		if b.Kind == block.Video {
			key = "video_url"
		}
		in := codec.Open(nil)
		in.Str("url", u)
		in.OptStr("detail", b.Media.Detail)
		o.Str("type", key)
		o.Raw(key, in.Close())
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
		return w.file(dst, b)
	case block.Compaction, block.Citation, block.ToolReference, block.Instruction:
		text := joinNonEmpty("\n", b.Name, b.Text, codec.JoinText(b.Content, "\n"))
		if b.Kind == block.ToolReference {
			text = codec.ReferenceText(b.Name)
		}
		w.Cannot(b, "a "+b.Kind.String()+" became text")
		o.Str("type", "text")
		o.Str("text", text)
	default:
		if w.Strict && len(b.JSON) > 0 { // the part of another Chat request, unmodified
			return append(dst, b.JSON...)
		}
		w.Cannot(b, "a block of another API: "+cmpOr(b.Type, b.Kind.String()))
		return dst
	}
	w.Breakpoint(&o, b)
	return o.Close()
}

func (w *reqWriter) file(dst []byte, b *block.Block) []byte {
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
		o.Str("type", "text")
		o.Str("text", joinNonEmpty("\n", m.Name, text))
	case m.Data != "" || m.FileID != "":
		in := codec.Open(nil)
		in.OptStr("filename", m.Name)
		in.OptStr("file_id", m.FileID)
		if m.Data != "" {
			in.Str("file_data", codec.URLOf(m))
		}
		o.Str("type", "file")
		o.Raw("file", in.Close())
	default:
		w.Cannot(b, "a file by address")
		return dst
	}
	w.Breakpoint(&o, b)
	return o.Close()
}

// AppendBlock appends a part, a call, or the message of a tool result, for a request of this API.
func (reqDialect) AppendBlock(dst []byte, _ *block.Turn, b *block.Block) []byte {
	w := reqWriter{Lossy: codec.Lossy{Strict: true}}
	switch b.Kind {
	case block.Reasoning: // reasoning_details are written for all runs together
		return dst
	case block.ToolCall:
		return w.call(dst, b)
	case block.ToolResult:
		return w.result(dst, b)
	}
	return w.part(dst, b)
}

// AppendTurn appends a message for a request of this API.
func (reqDialect) AppendTurn(dst []byte, t *block.Turn) []byte {
	w := reqWriter{Lossy: codec.Lossy{Strict: true}}
	return w.turn(dst, t)
}

// TurnMember returns "": all turns are messages.
func (reqDialect) TurnMember(*block.Turn) string { return "" }

// ListMember returns messages.
func (reqDialect) ListMember() string { return "messages" }
