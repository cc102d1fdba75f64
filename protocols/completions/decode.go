// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/codec"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// Decode validates and parses a Completions request. The request takes ownership of body; nil limits mean defaults.
// Errors are of type *[block.Error].
//
// Each token ID of a prompt counts toward [block.Limits.Values], and each prompt is a block. Decode makes one pass.
func Decode(body []byte, lim *block.Limits) (*block.Request, error) {
	return codec.Decode(body, reqDialect{}, lim)
}

// reqDialect implements seam.Dialect for the Completions API. It is stateless.
type reqDialect struct{}

// API returns block.Completions.
func (reqDialect) API() block.API { return block.Completions }

// Read reads the view from a validated body.
func (reqDialect) Read(root jsonscan.Value, lim block.Limits, _ *codec.Past) (codec.View, error) {
	r := reqReader{codec.NewReader(root, lim, nil)}
	var v codec.View
	r.params(root, &v.Params)
	r.prompts(root, &v)
	return v, r.Err()
}

type reqReader struct{ *codec.Reader }

func (r reqReader) params(root jsonscan.Value, p *block.Params) {
	p.Model = r.Str(root.Get("model"))
	p.Stream = r.Bool(root.Get("stream"))
	p.StreamUsage = r.Bool(r.Object(root.Get("stream_options")).Get("include_usage"))
	p.MaxTokens = r.Int(root.Get("max_tokens"))
	s := &p.Sampling
	r.Sampling(root, s)
	switch l := root.Get("logprobs"); l.Kind() {
	case jsonscan.True, jsonscan.False: // the Chat API's form, sent by clients of both APIs
		s.Logprobs, _ = l.Bool()
	default:
		s.TopLogprobs = r.Int(l)
		s.Logprobs = s.TopLogprobs != nil
	}
	r.Format(root, &p.Format)
	p.User = r.Hint(root.Get("user"))
}

const wantPrompt = "a string, an array of strings, or token IDs"

// prompts reads each prompt as a turn.
func (r reqReader) prompts(root jsonscan.Value, v *codec.View) {
	p := root.Get("prompt")
	switch p.Kind() {
	case jsonscan.Absent, jsonscan.Null:
		if root.Get("prompt_embeds").IsNull() && root.Get("nvext").Get("token_data").IsNull() {
			r.Missing(root, "prompt", wantPrompt)
		}
	case jsonscan.String:
		v.Turns = r.prompt(nil, p, codec.FormMember)
	case jsonscan.Array:
		if p.First().Kind() == jsonscan.Number {
			v.Turns = r.prompt(nil, p, codec.FormMember)
			return
		}
		v.Turns = make([]block.Turn, 0, p.Len())
		for e := p.First(); e.Exists() && r.Err() == nil; e = p.Next(e) {
			v.Turns = r.prompt(v.Turns, e, 0)
		}
	default:
		r.Want(p, wantPrompt)
	}
}

// prompt reads one prompt.
func (r reqReader) prompt(turns []block.Turn, v jsonscan.Value, form block.Form) []block.Turn {
	b := block.Block{At: codec.Pending(v)}
	switch v.Kind() {
	case jsonscan.String:
		b.Kind, b.Text = block.Text, r.Str(v)
	case jsonscan.Array:
		for e := v.First(); e.Exists(); e = v.Next(e) {
			if _, ok := e.Uint32(); !ok {
				r.Want(e, "a token ID")
				return turns
			}
		}
		b.Kind, b.Type, b.JSON = block.Unknown, tokensType, v.Raw()
	default:
		r.Want(v, "a string or an array of token IDs")
		return turns
	}
	list := r.Blocks(v, 1)
	if r.Err() != nil {
		return turns
	}
	return append(turns, block.Turn{Role: block.RoleUser, Blocks: append(list, b), Form: form, At: codec.Pending(v)})
}
