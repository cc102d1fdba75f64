// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"strings"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/codec"
)

// DefaultMaxTokens is the max_tokens of a converted request that has none: this API's default is 16.
const DefaultMaxTokens = 8192

// AppendRequest appends r as a Completions request to dst. A Completions request is written unmodified, with edits applied and
// without losses. Any other request is converted. The losses report what the API cannot express; with opt.Strict, a
// loss is an error.
//
// A single user turn with one text, or with the IDs of [Tokens], becomes the prompt. Several turns with IDs become as
// many prompts. The text of anything else is joined by blank lines.
func AppendRequest(dst []byte, r *block.Request, opt *block.EncodeOptions) ([]byte, []block.Loss, error) {
	return codec.Convert(dst, r, reqDialect{}, opt, appendRequest)
}

func appendRequest(dst []byte, v *codec.View, lose codec.LossFunc) []byte {
	d := reqDialect{}
	o := codec.Open(dst)
	for _, m := range d.Members(&v.Params, v.Tools, lose) {
		o.Raw(m.Key, m.Value)
	}
	if v.Params.MaxTokens == nil {
		lose("max_tokens", "the Completions API treats a missing max_tokens as 16; the default was set")
		o.Raw("max_tokens", codec.Int(DefaultMaxTokens))
	}
	for i := range v.Tools {
		d.AppendTool(nil, &v.Tools[i], lose)
	}
	o.Raw("prompt", appendPrompt(v.Turns, lose))
	return o.Close()
}

// appendPrompt returns the value of prompt.
func appendPrompt(turns []block.Turn, lose codec.LossFunc) []byte {
	ids := make([][]byte, 0, len(turns))
	for i := range turns {
		if t := &turns[i]; t.Role == block.RoleUser && len(t.Blocks) == 1 && isTokens(&t.Blocks[0]) {
			ids = append(ids, t.Blocks[0].JSON)
		}
	}
	if len(ids) == len(turns) && len(ids) > 0 {
		if len(ids) == 1 {
			return ids[0]
		}
		return codec.Array(ids)
	}
	return codec.Str(flatten(turns, lose))
}

// flatten returns the text of turns.
func flatten(turns []block.Turn, lose codec.LossFunc) string {
	p := flat{Lossy: codec.Lossy{Lose: lose}}
	for i := range turns {
		t := &turns[i]
		if t.Role != block.RoleUser || len(turns) > 1 {
			p.Soft(&block.Block{At: t.At}, "a completion has no roles: a turn of "+t.Role.String())
		}
		if t.Name != "" {
			p.Soft(&block.Block{At: t.At}, "the name of a participant")
		}
		texts := 0
		for k := range t.Blocks {
			if t.Blocks[k].Kind == block.Text {
				texts++
			}
			p.block(&t.Blocks[k])
		}
		if texts > 1 {
			p.Soft(&block.Block{At: t.At}, "the boundaries of the texts in a turn")
		}
		p.between = "\n\n"
	}
	return p.text.String()
}

// flat is a conversation that is joined to one text.
type flat struct {
	codec.Lossy
	text    strings.Builder
	between string // separator before the next text
}

func (p *flat) add(s string) {
	if s == "" {
		return
	}
	if p.text.Len() > 0 {
		p.text.WriteString(p.between)
	}
	p.text.WriteString(s)
	p.between = "\n"
}

func (p *flat) block(b *block.Block) {
	switch b.Kind {
	case block.Text:
		p.add(b.Text)
	case block.Refusal:
		p.Soft(b, "a refusal became text")
		p.add(b.Text)
	case block.ToolResult:
		p.Soft(b, "a tool result became text")
		for i := range b.Content {
			p.block(&b.Content[i])
		}
	case block.Citation, block.Compaction, block.Document, block.File, block.Instruction:
		s := b.Text
		if b.Media != nil && b.Media.MIME == "text/plain" {
			s = b.Media.Data
		}
		if s == "" && len(b.Content) == 0 {
			p.Soft(b, "media: a "+b.Kind.String())
			return
		}
		p.Soft(b, "a "+b.Kind.String()+" became text")
		p.add(b.Name)
		p.add(s)
		for i := range b.Content {
			p.block(&b.Content[i])
		}
	case block.Image, block.Audio, block.Video:
		p.Soft(b, "media: "+b.Kind.String())
	default:
		kind := b.Type
		if kind == "" || b.Kind != block.Unknown {
			kind = b.Kind.String()
		}
		p.Soft(b, "a completion has text only: "+kind)
	}
	if b.Cache != nil {
		p.Soft(b, "a cache breakpoint")
	}
}

// Members returns the top-level fields for the parameters.
func (reqDialect) Members(p *block.Params, _ []block.Tool, lose codec.LossFunc) []codec.Member {
	var m codec.Members
	m.Add("model", "", codec.Str(p.Model))
	m.Int("max_tokens", "", p.MaxTokens)
	m.True("stream", p.Stream)
	if p.StreamUsage {
		m.Add("stream_options", "", []byte(`{"include_usage":true}`))
	}
	s := &p.Sampling
	m.Sampling(s)
	switch {
	case s.TopLogprobs != nil:
		m.Int("logprobs", "", s.TopLogprobs)
	case s.Logprobs:
		m.Add("logprobs", "", []byte("0")) // of the output tokens, without alternatives
	}
	m.Format(&p.Format)
	m.Str("user", p.User)
	codec.LoseAll(lose, "no field in the Completions API",
		codec.Opt{Set: p.ToolChoice.Mode != block.ChoiceUnspecified || p.ToolChoice.Serial, Name: "tool_choice"},
		codec.Opt{Set: p.Thinking.Mode != block.ThinkingUnspecified, Name: "thinking"},
		codec.Opt{Set: p.Thinking.Effort != "", Name: "reasoning_effort"},
		codec.Opt{Set: p.Thinking.Budget != nil, Name: "thinking.budget_tokens"},
		codec.Opt{Set: p.Thinking.Summary != "", Name: "reasoning.summary"},
		codec.Opt{Set: p.Verbosity != "", Name: "verbosity"},
		codec.Opt{Set: p.CacheKey != "", Name: "prompt_cache_key"},
		codec.Opt{Set: p.ServiceTier != "", Name: "service_tier"},
	)
	return m
}

// AppendTool appends nothing: the API has no tools.
func (reqDialect) AppendTool(dst []byte, t *block.Tool, lose codec.LossFunc) []byte {
	lose(t.At.Path(), "a completion has no tools: "+t.Name)
	return dst
}

// AppendBlock appends the prompt in a block, for a request of this API.
func (reqDialect) AppendBlock(dst []byte, _ *block.Turn, b *block.Block) []byte {
	raw, _ := prompt(b)
	return append(dst, raw...)
}

// AppendTurn appends the prompt in a turn, for a request of this API.
func (d reqDialect) AppendTurn(dst []byte, t *block.Turn) []byte {
	if len(t.Blocks) == 1 {
		if raw, err := prompt(&t.Blocks[0]); err == nil {
			return append(dst, raw...)
		}
	}
	return append(dst, codec.Str(flatten([]block.Turn{*t}, func(string, string) {}))...)
}

// TurnMember returns prompt for a prompt that is not in an array.
func (reqDialect) TurnMember(t *block.Turn) string {
	if t.Form&codec.FormMember != 0 {
		return "prompt"
	}
	return ""
}

// ListMember returns prompt.
func (reqDialect) ListMember() string { return "prompt" }
