// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"slices"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/callid"
	"github.com/weft-go/weft/protocols/internal/codec"
)

// DefaultMaxTokens is the max_tokens of a converted request that has none: the Messages API requires it.
const DefaultMaxTokens = 8192

// AppendRequest appends r as a Messages request to dst. A Messages request is written unmodified, with edits applied and
// without losses. Any other request is converted. The losses report what the API cannot express; with opt.Strict, a
// loss is an error.
//
// The effort none becomes thinking of type disabled, minimal becomes low, and ultra becomes max; any other effort that the
// API does not have is a loss. Leading system and developer text becomes the field system, later text a message with role
// system. Consecutive turns of tool results become one user message.
func AppendRequest(dst []byte, r *block.Request, opt *block.EncodeOptions) ([]byte, []block.Loss, error) {
	return codec.Convert(dst, r, reqDialect{}, opt, appendRequest)
}

func appendRequest(dst []byte, v *codec.View, lose codec.LossFunc) []byte {
	d := reqDialect{}
	o := codec.Open(dst)
	params := v.Params
	params.Thinking = knownThinking(params.Thinking, lose)
	for _, m := range d.Members(&params, v.Tools, lose) {
		o.Raw(m.Key, m.Value)
	}
	if v.Params.MaxTokens == nil {
		lose("max_tokens", "the Messages API requires max_tokens; the default was set")
		o.Raw("max_tokens", codec.Int(DefaultMaxTokens))
	}
	o.Tools(v.Tools, func(dst []byte, t *block.Tool, lose codec.LossFunc) []byte {
		as := *t
		as.Cache = knownCache(t.Cache, t.At, lose)
		return d.AppendTool(dst, &as, lose)
	}, lose)
	w := reqWriter{Lossy: codec.Lossy{Lose: lose}, custom: map[string]bool{}}
	for i := range v.Tools {
		w.custom[v.Tools[i].ModelName] = v.Tools[i].Kind == block.CustomTool
	}
	w.tools = v.Tools
	turns := v.Turns
	var system []block.Block
	for len(turns) > 0 && (turns[0].Role == block.RoleSystem || turns[0].Role == block.RoleDeveloper) {
		if turns[0].Role == block.RoleDeveloper {
			lose(turns[0].At.Path(), "the developer role became system")
		}
		if turns[0].Name != "" {
			lose(turns[0].At.Path(), "the name of a participant")
		}
		system = append(system, turns[0].Blocks...)
		turns = turns[1:]
	}
	if len(system) > 0 {
		o.Key("system")
		o.Buf = w.content(o.Buf, system, 0)
	}
	o.Key("messages")
	o.Buf = append(o.Buf, '[')
	n := 0
	for i := 0; i < len(turns); i++ {
		t := turns[i]
		t.Blocks = slices.Clip(t.Blocks) // the loop must not append to the request's slice
		for t.Role == block.RoleTool && i+1 < len(turns) && turns[i+1].Role == block.RoleTool {
			i++
			t.Blocks = append(t.Blocks, turns[i].Blocks...)
		}
		if t.Role == block.RoleUnknown {
			lose(t.At.Path(), "a turn of an unknown role")
			continue
		}
		if n++; n > 1 {
			o.Buf = append(o.Buf, ',')
		}
		o.Buf = w.message(o.Buf, &t)
	}
	o.Buf = append(o.Buf, ']')
	return o.Close()
}

// Members returns the top-level fields for the parameters.
func (reqDialect) Members(p *block.Params, _ []block.Tool, lose codec.LossFunc) []codec.Member {
	var m codec.Members
	m.Add("model", "", codec.Str(p.Model))
	m.Int("max_tokens", "", p.MaxTokens)
	m.True("stream", p.Stream)
	s := &p.Sampling
	m.Float("temperature", s.Temperature)
	m.Float("top_p", s.TopP)
	m.Int("top_k", "", s.TopK)
	m.Strs("stop_sequences", s.Stop)
	codec.LoseAll(lose, "no field in the Messages API",
		codec.Opt{Set: s.N != nil && *s.N > 1, Name: "n"},
		codec.Opt{Set: s.Seed != nil, Name: "seed"},
		codec.Opt{Set: s.MinP != nil, Name: "min_p"},
		codec.Opt{Set: s.FrequencyPenalty != nil && *s.FrequencyPenalty != 0, Name: "frequency_penalty"},
		codec.Opt{Set: s.PresencePenalty != nil && *s.PresencePenalty != 0, Name: "presence_penalty"},
		codec.Opt{Set: s.RepetitionPenalty != nil, Name: "repetition_penalty"},
		codec.Opt{Set: len(s.StopTokens) > 0, Name: "stop_token_ids"},
		codec.Opt{Set: s.IgnoreEOS, Name: "ignore_eos"},
		codec.Opt{Set: s.Logprobs, Name: "logprobs"},
		codec.Opt{Set: s.TopLogprobs != nil && *s.TopLogprobs != 0, Name: "top_logprobs"},
		codec.Opt{Set: p.Verbosity != "", Name: "verbosity"},
		codec.Opt{Set: p.CacheKey != "", Name: "prompt_cache_key"},
		codec.Opt{Set: p.Thinking.Summary != "", Name: "reasoning.summary"},
		codec.Opt{Set: p.Format.Name != "" || p.Format.Description != "", Name: "the name of the response format"},
		codec.Opt{Set: p.Format.Strict != nil && !*p.Format.Strict, Name: "a response format that is not strict"},
	)
	if p.Format.Type == "json_object" {
		lose("response_format", "the Messages API has no format json_object")
	}
	if p.User != "" {
		o := codec.Open(nil)
		o.Str("user_id", p.User)
		m.Add("metadata", "", o.Close())
	}
	switch p.ServiceTier {
	case "default":
		m.Str("service_tier", "standard_only")
	case "flex", "priority", "scale":
		lose("service_tier", "no such tier in the Messages API: "+p.ServiceTier)
	default:
		m.Str("service_tier", p.ServiceTier)
	}
	reqThinking(&m, p)
	reqChoice(&m, &p.ToolChoice, lose)
	return m
}

// knownThinking returns th with an effort that the Messages API has, or without.
func knownThinking(th block.Thinking, lose codec.LossFunc) block.Thinking {
	nearest := ""
	switch th.Effort {
	case "", "low", "medium", "high", "xhigh", "max":
		return th
	case "none":
		if th.Mode == block.ThinkingUnspecified {
			th.Mode = block.ThinkingOff
		}
		th.Effort = ""
		return th
	case "minimal":
		nearest = "low"
	case "ultra":
		nearest = "max"
	}
	why := "the Messages API has no effort " + th.Effort
	if nearest != "" {
		why += "; " + nearest + " was set"
	}
	lose("reasoning_effort", why)
	th.Effort = nearest
	return th
}

func reqThinking(m *codec.Members, p *block.Params) {
	th := &p.Thinking
	kind := map[block.ThinkingMode]string{
		block.ThinkingOn: "enabled", block.ThinkingOff: "disabled", block.ThinkingAdaptive: "adaptive",
	}[th.Mode]
	if kind != "" {
		o := codec.Open(nil)
		o.Str("type", kind)
		if th.Budget != nil {
			o.Raw("budget_tokens", codec.Int(*th.Budget))
		}
		m.Add("thinking", "", o.Close())
	}
	if th.Effort == "" && p.Format.Type != "json_schema" {
		return
	}
	o := codec.Open(nil)
	o.OptStr("effort", th.Effort)
	if p.Format.Type == "json_schema" {
		f := codec.Open(nil)
		f.Str("type", "json_schema")
		f.OptRaw("schema", p.Format.Schema)
		o.Raw("format", f.Close())
	}
	m.Add("output_config", "", o.Close())
}

func reqChoice(m *codec.Members, c *block.ToolChoice, lose codec.LossFunc) {
	kind := map[block.ChoiceMode]string{block.Auto: "auto", block.Required: "any", block.NoTools: "none"}[c.Mode]
	one := c.Mode == block.Required && len(c.Allow) == 1
	switch {
	case one:
		kind = "tool"
	case len(c.Allow) > 0:
		lose("tool_choice", "the Messages API has no list of allowed tools")
	case kind == "" && c.Serial:
		kind = "auto"
	}
	if kind == "" {
		return
	}
	o := codec.Open(nil)
	o.Str("type", kind)
	if one {
		o.Str("name", c.Allow[0])
	}
	if c.Serial {
		o.Bool("disable_parallel_tool_use", true)
	}
	m.Add("tool_choice", "", o.Close())
}

// AppendTool appends the declaration of a tool.
func (reqDialect) AppendTool(dst []byte, t *block.Tool, lose codec.LossFunc) []byte {
	o := codec.Open(dst)
	name := t.ModelName
	if name == "" {
		name = t.Name
	}
	o.Str("name", name)
	o.OptStr("description", t.Description)
	switch {
	case t.Kind == block.Hosted:
		lose(t.At.Path(), "a tool that another API runs: "+t.Type)
		return dst
	case t.Kind == block.CustomTool:
		o.Raw("input_schema", appendCustomSchema(nil, t.Format))
	case len(t.Schema) > 0:
		o.Raw("input_schema", t.Schema)
	default:
		o.Raw("input_schema", []byte(`{"type":"object","properties":{}}`))
	}
	if t.Namespace != "" {
		lose(t.At.Path(), "the tool's namespace")
	}
	if t.Strict != nil {
		o.Bool("strict", *t.Strict)
	}
	if t.Deferred {
		o.Bool("defer_loading", true)
	}
	if t.Cache != nil {
		o.Key("cache_control")
		o.Buf = reqCache(o.Buf, t.Cache)
	}
	return o.Close()
}

func reqCache(dst []byte, c *block.Cache) []byte {
	o := codec.Open(dst)
	o.Str("type", "ephemeral")
	o.OptStr("ttl", c.TTL)
	o.OptStr("scope", c.Scope)
	return o.Close()
}

// knownCache returns a breakpoint of another API if this API supports its time to live. The API rejects requests with
// other values.
func knownCache(c *block.Cache, at block.Ref, lose codec.LossFunc) *block.Cache {
	if c == nil || c.TTL == "" || c.TTL == "5m" || c.TTL == "1h" {
		return c
	}
	as := *c
	switch c.TTL {
	case "300":
		as.TTL = "5m"
	case "3600":
		as.TTL = "1h"
	default:
		lose(at.Path(), "a time to live that the Messages API does not have: "+c.TTL)
		as.TTL = ""
	}
	return &as
}

// reqWriter encodes messages and blocks.
type reqWriter struct {
	codec.Lossy
	custom map[string]bool // declared tools tools with free text, by the name that the model knows
	tools  []block.Tool    // declared tools
}

func (w *reqWriter) message(dst []byte, t *block.Turn) []byte {
	role := "user"
	switch t.Role {
	case block.RoleAssistant:
		role = "assistant"
	case block.RoleSystem:
		role = "system"
	case block.RoleDeveloper:
		w.Soft(&block.Block{At: t.At}, "the developer role became system")
		role = "system"
	}
	if t.Name != "" {
		w.Soft(&block.Block{At: t.At}, "the name of a participant")
	}
	o := codec.Open(dst)
	o.Str("role", role)
	o.Key("content")
	o.Buf = w.content(o.Buf, t.Blocks, t.Form)
	return o.Close()
}

// content writes a single plain text as a string and anything else as an array, unless the block was read from this API
// in another form.
func (w *reqWriter) content(dst []byte, list []block.Block, form block.Form) []byte {
	if !w.Strict {
		form = 0
	}
	return codec.AppendContent(dst, list, form, w.block)
}

// block writes a block, or nothing if the API cannot express it.
func (w *reqWriter) block(dst []byte, b *block.Block) []byte {
	return w.Patched(w.fields(dst, b), len(dst), b)
}

// fields writes the fields of a block.
func (w *reqWriter) fields(dst []byte, b *block.Block) []byte {
	o := codec.Open(dst)
	switch b.Kind {
	case block.Text:
		o.Str("type", "text")
		o.Str("text", b.Text)
	case block.Refusal:
		w.Cannot(b, "a refusal became text")
		o.Str("type", "text")
		o.Str("text", b.Text)
	case block.Reasoning:
		switch {
		case b.Redacted:
			o.Str("type", "redacted_thinking")
			o.Str("data", b.Encrypted)
		case needsPack(b) && b.Text == "":
			o.Str("type", "redacted_thinking")
			o.Str("data", packed(b))
		case needsPack(b):
			o.Str("type", "thinking")
			o.Str("thinking", b.Text)
			o.Str("signature", packed(b))
		default:
			o.Str("type", "thinking")
			o.Str("thinking", b.Text)
			o.Str("signature", b.Signature)
		}
	case block.ToolCall:
		kind := "tool_use"
		if b.Server {
			if kind = b.Type; kind != "mcp_tool_use" {
				kind = "server_tool_use"
			}
		}
		o.Str("type", kind)
		o.Str("id", callid.Escape(b.CallID)) // this API restricts the characters of IDs
		o.Str("name", w.CallName(b, w.tools))
		o.Key("input")
		o.Buf = w.appendInput(o.Buf, b)
	case block.ToolResult:
		kind := "tool_result"
		if b.Server {
			kind = "mcp_tool_result"
		}
		o.Str("type", kind)
		o.Str("tool_use_id", callid.Escape(b.CallID))
		o.Key("content")
		o.Buf = w.content(o.Buf, b.Content, b.Form)
		if b.IsError {
			o.Bool("is_error", true)
		}
	case block.Instruction:
		o.Str("type", "mid_conv_system")
		o.Key("content")
		o.Buf = codec.AppendList(o.Buf, b.Content, w.block)
	case block.ToolReference:
		o.Str("type", "tool_reference")
		o.Str("tool_name", b.Name)
	case block.Image, block.Document, block.File, block.Audio, block.Video:
		if !w.media(&o, b) {
			w.Cannot(b, "media that the Messages API cannot carry: "+b.Kind.String())
			return dst
		}
	case block.Citation:
		o.Str("type", "search_result")
		if b.Media != nil {
			o.Str("source", b.Media.URL)
		}
		o.Str("title", b.Name)
		o.Key("content")
		o.Buf = w.content(o.Buf, b.Content, codec.FormList)
	case block.Compaction:
		if b.Text == "" {
			w.Cannot(b, "compacted history that only its origin can read")
			return dst
		}
		o.Str("type", "compaction")
		o.Str("content", b.Text)
	default:
		if w.Strict && len(b.JSON) > 0 { // the block of another Messages request, unmodified
			return append(dst, b.JSON...)
		}
		w.Cannot(b, "a block of another API: "+b.Type)
		return dst
	}
	if c := b.Cache; c != nil {
		if w.Lose != nil {
			c = knownCache(c, b.At, w.Lose)
		}
		o.Key("cache_control")
		o.Buf = reqCache(o.Buf, c)
	}
	return o.Close()
}

// media writes type and source.
func (w *reqWriter) media(o *codec.Obj, b *block.Block) bool {
	m := b.Media
	if m == nil || b.Kind == block.Audio || b.Kind == block.Video {
		return false
	}
	kind := "document"
	if b.Kind == block.Image {
		kind = "image"
	} else if b.Kind == block.File && m.MIME != "" && m.MIME != "application/pdf" && m.MIME != "text/plain" {
		return false
	}
	s := codec.Open(nil)
	switch {
	case m.Data != "" && m.MIME == "text/plain" && b.Kind == block.Document:
		s.Str("type", "text")
		s.Str("media_type", m.MIME)
		s.Str("data", m.Data)
	case m.Data != "":
		s.Str("type", "base64")
		s.Str("media_type", m.MIME)
		s.Str("data", m.Data)
	case m.URL != "":
		s.Str("type", "url")
		s.Str("url", m.URL)
	case m.FileID != "":
		s.Str("type", "file")
		s.Str("file_id", m.FileID)
	case len(b.Content) > 0:
		s.Str("type", "content")
		s.Key("content")
		s.Buf = w.content(s.Buf, b.Content, 0)
	default:
		return false
	}
	if m.Detail != "" {
		w.Soft(b, "the detail of an image")
	}
	o.Str("type", kind)
	o.Raw("source", s.Close())
	if kind == "document" {
		o.OptStr("title", m.Name)
	}
	return true
}

// AppendBlock appends a block, for a request of this API.
func (reqDialect) AppendBlock(dst []byte, _ *block.Turn, b *block.Block) []byte {
	w := reqWriter{Lossy: codec.Lossy{Strict: true}}
	return w.block(dst, b)
}

// AppendTurn appends a message or the system text, for a request of this API.
func (reqDialect) AppendTurn(dst []byte, t *block.Turn) []byte {
	w := reqWriter{Lossy: codec.Lossy{Strict: true}}
	if t.Form&codec.FormMember != 0 {
		return w.content(dst, t.Blocks, t.Form)
	}
	return w.message(dst, t)
}

// TurnMember returns system for the system text.
func (reqDialect) TurnMember(t *block.Turn) string {
	if t.Form&codec.FormMember != 0 {
		return "system"
	}
	return ""
}

// ListMember returns messages.
func (reqDialect) ListMember() string { return "messages" }
