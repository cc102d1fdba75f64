// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"slices"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/completions"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/sse"
	"github.com/weft-go/weft/protocols/wire"
)

// engineRequest is the body of a request to an engine's /v1/completions, without its prompt. vLLM, SGLang, llama.cpp and
// Dynamo read these fields or ignore them.
type engineRequest struct {
	Model         string          `json:"model"`
	Stream        bool            `json:"stream"`
	StreamOptions streamOptions   `json:"stream_options"`
	MaxTokens     int             `json:"max_tokens"`          // always set: the engines' default is 16
	SkipSpecial   bool            `json:"skip_special_tokens"` // false, because markers of reasoning and calls may be special tokens
	AddSpecial    bool            `json:"add_special_tokens"`  // false, because the template has written them; for prompts of text
	TokenIDs      bool            `json:"return_token_ids"`    // ids distinguish a marker from text that only looks like one
	Stop          []string        `json:"stop,omitempty"`      // only with EngineStops
	IncludeStop   bool            `json:"include_stop_str_in_output,omitempty"`
	StopTokens    []int64         `json:"stop_token_ids,omitempty"`
	IgnoreEOS     bool            `json:"ignore_eos,omitempty"`
	MinTokens     json.RawMessage `json:"min_tokens,omitempty"`
	LogitBias     json.RawMessage `json:"logit_bias,omitempty"`

	Temperature       *float64 `json:"temperature,omitempty"`
	TopP              *float64 `json:"top_p,omitempty"`
	MinP              *float64 `json:"min_p,omitempty"`
	TopK              *int64   `json:"top_k,omitempty"`
	Seed              *int64   `json:"seed,omitempty"`
	FrequencyPenalty  *float64 `json:"frequency_penalty,omitempty"`
	PresencePenalty   *float64 `json:"presence_penalty,omitempty"`
	RepetitionPenalty *float64 `json:"repetition_penalty,omitempty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// AppendRequest appends the body of a request to an engine's /v1/completions endpoint that generates this response, one
// choice, as a stream. model is the engine's name for the model. The prompt is sent as token ids, or as text if the model
// has no tokenizer. Sampling parameters are those of the request, with its logit_bias and min_tokens, and max_tokens is [Decoder.Limit], or
// [completions.DefaultMaxTokens] without a limit.
//
// Send it with the Content-Type application/json, which vLLM requires. The body asks for token ids and for special tokens in the
// text. Stop strings are not sent, because the decoder applies
// them: end the engine's request when [Decoder.Done] returns true, as [Decoder.Events] does. With
// [DecoderOptions.EngineStops] they are sent, and then token ids are not requested, because a stop string ends the text
// within a token.
func (d *Decoder) AppendRequest(dst []byte, model string) []byte {
	dst = append(d.AppendFields(dst, model), `,"prompt":`...)
	if d.detok == nil {
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		e.Encode(d.prompt.Text) // cannot fail
		return append(append(dst, bytes.TrimSuffix(text.Bytes(), []byte("\n"))...), '}')
	}
	ids := d.prompt.IDs()
	dst = append(dst, '[')
	if d.prompt.tokens == nil && len(ids) > 0 { // printed in place
		dst = appendIDs(dst, ids)
		return append(dst[:len(dst)-1], "]}"...)
	}
	return append(append(dst, d.prompt.IDList()...), "]}"...)
}

// AppendFields appends the beginning of the body of [Decoder.AppendRequest]: an object that has all fields but the prompt, without
// its closing brace. With [Prompt.IDList], a server can send the body without a copy of the ids, which take six bytes per token.
func (d *Decoder) AppendFields(dst []byte, model string) []byte {
	s := d.req.Params().Sampling
	r := engineRequest{
		Model: model, Stream: true, StreamOptions: streamOptions{true}, MaxTokens: d.limit,
		TokenIDs: d.detok != nil, StopTokens: s.StopTokens, IgnoreEOS: s.IgnoreEOS, MinTokens: d.req.Field("min_tokens"),
		LogitBias:   d.req.Field("logit_bias"),
		Temperature: s.Temperature, TopP: s.TopP, MinP: s.MinP, TopK: s.TopK, Seed: s.Seed,
		FrequencyPenalty: s.FrequencyPenalty, PresencePenalty: s.PresencePenalty, RepetitionPenalty: s.RepetitionPenalty,
	}
	if d.limit == math.MaxInt32 {
		r.MaxTokens = completions.DefaultMaxTokens
	}
	if d.opt.EngineStops && len(s.Stop) > 0 {
		r.Stop, r.TokenIDs, r.IncludeStop = s.Stop, false, d.showsStop()
	}
	head, _ := json.Marshal(r) // cannot fail: numbers of JSON are finite, and min_tokens and logit_bias are valid JSON
	return append(dst, head[:len(head)-1]...)
}

// showsStop reports whether the client asks for the stop sequence at the end of the text.
func (d *Decoder) showsStop() bool {
	return string(d.req.Field("include_stop_str_in_output")) == "true"
}

// PlainText returns a text that is encoded to the ids of the prompt, for engines that get only text and read special tokens in it.
// ok is false if there is none: for example, if a message spells a special token, which is text in the ids. Ids that a [Memo]
// has from an engine are compared by their text.
func (p *Prompt) PlainText() (text string, ok bool) {
	ids := p.IDs()
	if p.model.cache == nil {
		return p.Text, false
	}
	if text = p.Text; text == "" {
		text = string(p.model.tok.AppendDecode(nil, ids, false)) // of Model.Raw
	}
	c := p.model.cache
	plain := c.AppendEncode(nil, p.Namespace, text)
	return text, slices.Equal(ids, plain) || p.turn != nil && slices.Equal(c.AppendEncodeSegments(nil, p.Namespace, p.Segments), plain)
}

// IDList returns the token ids of the prompt in decimal, with commas between them: between brackets, the array that engines take.
// The caller must not modify it, since with a [Memo] the prompts of a conversation share its memory; then only the ids that the prompt
// before does not have are printed. Otherwise each call prints all of them.
func (p *Prompt) IDList() []byte {
	ids := p.IDs()
	var list []byte
	if p.tokens != nil {
		list = p.tokens.decimal()
	} else {
		list = appendIDs(nil, ids)
	}
	return slices.Clip(list[:max(0, len(list)-1)]) // without the last comma
}

// maxErrorBody is the number of bytes of an engine's error response that are read.
const maxErrorBody = 64 << 10

// Events returns an iterator over an engine's response to the body of [Decoder.AppendRequest]. status is its HTTP status and
// body is the response's body, a stream of server-sent events; the caller closes it after the loop. Each iteration has the
// events of one server-sent event, which are valid until the next, and there are none for those that add nothing. Call
// [Decoder.Finish] after the loop, even if the caller left it early.
//
// The loop ends with the stream, or before if [Decoder.Done] returns true. An error of the engine or of body ends it as
// well; [Decoder.Err] returns it, and Finish ends the response with it.
func (d *Decoder) Events(status int, body io.Reader) iter.Seq[[]event.Event] {
	return func(yield func([]event.Event) bool) {
		if status != http.StatusOK {
			text, _ := io.ReadAll(io.LimitReader(body, maxErrorBody)) // a partial body is still useful
			d.Fail(apierr.Parse(status, text))
			return
		}
		in := wire.Completions.NewDecoder(nil)
		var chunk []event.Event
		ended := false // by the engine: only its usage follows
		for ev, err := range (&sse.Reader{FlushAtEOF: true}).Events(body) {
			if err == nil && ev.Comment {
				continue
			}
			if err == nil {
				chunk, err = in.AppendEvent(chunk[:0], ev.Type, ev.Data)
			}
			if err != nil {
				d.Fail(apierr.EngineFailed(fmt.Errorf("prompt: read the engine's stream: %w", err)))
				return
			}
			ended = ended || slices.ContainsFunc(chunk, func(ev event.Event) bool { return ev.Kind == event.Finish })
			d.events = d.AppendChunk(d.events[:0], in.TokenIDs(0), chunk...)
			if len(d.events) > 0 && !yield(d.events) || d.err != nil || d.Done() && !ended {
				return
			}
		}
		chunk, _ = in.Finish(chunk[:0]) // returns no error for a stream
		d.events = d.AppendChunk(d.events[:0], nil, chunk...)
	}
}
