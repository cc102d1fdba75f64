// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// SGLang is the kind of SGLang, as of its sources of version 0.5.23: its /generate takes and returns token ids. Constraints
// are structural tags, which its xgrammar backend takes.
type SGLang struct{}

// String implements Kind.
func (SGLang) String() string { return "sglang" }

// Traits implements Kind. The decoder applies stop strings, because the engine cuts its text within a token.
func (SGLang) Traits() Traits {
	return Traits{Path: "/generate", Owner: "sglang", KeyEnv: "SGLANG_API_KEY", Hints: "sglang", Close: "/close_session", Probs: true}
}

// sglangParams are the sampling parameters of a request.
type sglangParams struct {
	Limit       int             `json:"max_new_tokens"`
	SkipSpecial bool            `json:"skip_special_tokens"` // false
	Choices     int             `json:"n,omitempty"`
	IgnoreEOS   bool            `json:"ignore_eos,omitempty"`
	MinTokens   json.RawMessage `json:"min_new_tokens,omitempty"`
	LogitBias   json.RawMessage `json:"logit_bias,omitempty"`
	StopTokens  []int64         `json:"stop_token_ids,omitempty"`
	sampling
	Seed              *int64   `json:"sampling_seed,omitempty"`
	RepetitionPenalty *float64 `json:"repetition_penalty,omitempty"`
}

// AppendRequest implements TokenKind.
func (SGLang) AppendRequest(dst []byte, r *Request) (body []byte, ids int, err error) {
	s := r.Client.Params().Sampling
	params := sglangParams{
		Limit: r.Decoder.Limit(), IgnoreEOS: s.IgnoreEOS, MinTokens: r.Client.Field("min_tokens"), LogitBias: r.Client.Field("logit_bias"),
		StopTokens: s.StopTokens, Seed: s.Seed, sampling: samplingOf(&s), RepetitionPenalty: s.RepetitionPenalty,
	}
	if r.Choices > 1 {
		params.Choices = r.Choices
	}
	head, _ := json.Marshal(params) // cannot fail: numbers of JSON are finite, and the raw fields are valid JSON
	dst = append(append(dst, `{"stream":true,"sampling_params":`...), head...)
	if r.Constraint != nil {
		dst = append(append(append(dst[:len(dst)-1], ','), r.Constraint...), '}') // a sampling parameter
	}
	if r.Logprobs != nil {
		dst = fmt.Appendf(dst, `,"return_logprob":true,"return_text_in_logprobs":true,"top_logprobs_num":%d`, *r.Logprobs)
	}
	return endIDs(dst, "input_ids")
}

// Constrain implements TokenKind. SGLang takes the tag as a string.
func (SGLang) Constrain(c *prompt.Constraint) ([]byte, error) {
	text, err := json.Marshal(string(c.StructuralTag()))
	return append([]byte(`"structural_tag":`), text...), err
}

// Steps implements TokenKind.
func (SGLang) Steps(body io.ReadCloser, n int) iter.Seq2[Step, error] {
	r := sglangReader{choices: make([]sglangChoice, n), open: n}
	return readStream(body, n, r.appendSteps)
}

// sglangChunk contains the fields of the events of /generate that are read.
type sglangChunk struct {
	Index int      `json:"index"`
	IDs   []uint32 `json:"output_ids"` // all so far, or only new ones
	Meta  struct {
		Finish *struct {
			Type    string          `json:"type"`
			Matched json.RawMessage `json:"matched"`
			Message string          `json:"message"`
			Status  int             `json:"status_code"`
		} `json:"finish_reason"`
		Prompt int64 `json:"prompt_tokens"`
		Output int64 `json:"completion_tokens"` // so far
		Cached int64 `json:"cached_tokens"`

		Probs []sglangProb   `json:"output_token_logprobs"` // all so far, or only new ones, like the ids
		Top   [][]sglangProb `json:"output_top_logprobs"`
	} `json:"meta_info"`
	Error *engineError `json:"error"`
}

// A sglangProb is the log probability of a token: [value, id, text].
type sglangProb struct {
	value json.Number
	text  string
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *sglangProb) UnmarshalJSON(data []byte) error {
	var id json.Number
	return json.Unmarshal(data, &[]any{&p.value, &id, &p.text})
}

// logprobs returns the log probabilities of the last n tokens, or nil.
func (c *sglangChunk) logprobs(n int64) *Logprobs {
	list, tops := c.Meta.Probs, c.Meta.Top
	if n == 0 || int64(len(list)) < n {
		return nil
	}
	out := &Logprobs{}
	for _, p := range list[int64(len(list))-n:] {
		out.Tokens, out.Values = append(out.Tokens, p.text), append(out.Values, p.value)
	}
	for _, list := range tops[max(0, int64(len(tops))-n):] {
		top := make(map[string]json.Number, len(list))
		for _, p := range list {
			top[p.text] = p.value
		}
		out.Top = append(out.Top, top)
	}
	return out
}

// A sglangReader decodes the events of a stream.
type sglangReader struct {
	choices []sglangChoice
	open    int
	usage   event.Tokens
}

// sglangChoice is the state of a choice.
type sglangChoice struct {
	ended bool
	seen  int64 // tokens
}

// appendSteps decodes an event.
func (r *sglangReader) appendSteps(dst []Step, data []byte) ([]Step, error) {
	var c sglangChunk
	if err := json.Unmarshal(data, &c); err != nil {
		return dst, apierr.EngineFailed(fmt.Errorf("event of %d bytes: %w", len(data), err))
	}
	switch {
	case c.Error != nil:
		return dst, apierr.EngineFailed(&Fault{Message: c.Error.Message})
	case c.Index < 0 || c.Index >= len(r.choices):
		return dst, apierr.EngineFailed(fmt.Errorf("choice %d of %d", c.Index, len(r.choices)))
	}
	ch := &r.choices[c.Index]
	if ch.ended {
		return dst, nil
	}
	fresh := c.Meta.Output - ch.seen
	if fresh < 0 || fresh > int64(len(c.IDs)) {
		return dst, apierr.EngineFailed(fmt.Errorf("%d ids for %d tokens after %d", len(c.IDs), c.Meta.Output, ch.seen))
	}
	ch.seen = c.Meta.Output
	st := Step{Choice: c.Index, IDs: c.IDs[int64(len(c.IDs))-fresh:], StopID: -1, Logprobs: c.logprobs(fresh)}
	f := c.Meta.Finish
	if f == nil {
		return append(dst, st), nil
	}
	switch f.Type {
	case "stop":
		st.Finish = event.Stop
		json.Unmarshal(f.Matched, &st.StopID) // stays -1 if a string matched
	case "length":
		st.Finish = event.Length
	default:
		return dst, apierr.EngineFailed(&Fault{Status: f.Status, Message: f.Message})
	}
	dst = append(dst, st)
	ch.ended = true
	r.usage.Prompt, r.usage.Cached = c.Meta.Prompt, max(r.usage.Cached, c.Meta.Cached)
	r.usage.Output += c.Meta.Output
	if r.open--; r.open == 0 {
		u := r.usage
		dst = append(dst, Step{Usage: &u})
	}
	return dst, nil
}

// Probe implements Kind. It reads the version, the size and the number of blocks, and where the engine publishes its cache events.
func (SGLang) Probe(ctx context.Context, e *Engine) error {
	var info struct {
		Version  string `json:"version"`
		PageSize int    `json:"page_size"`
		Tokens   int    `json:"max_total_num_tokens"` // that the cache of each rank has room for
		Ranks    int    `json:"dp_size"`
		Events   string `json:"kv_events_config"` // JSON
	}
	err := e.get(ctx, "/server_info", &info)
	if err != nil && optional(err) == nil {
		err = e.get(ctx, "/get_server_info", &info) // before 0.5
	}
	e.Version, e.BlockSize = info.Version, info.PageSize
	if info.PageSize > 0 {
		e.Blocks = info.Tokens / info.PageSize * max(info.Ranks, 1)
	}
	s := eventSource{Endpoint: "tcp://*:5557"}
	if json.Unmarshal([]byte(info.Events), &s) != nil || s.Publisher != "zmq" {
		return optional(err)
	}
	for rank := range max(info.Ranks, 1) { // the next rank has the next ports
		of := s
		of.Endpoint, of.Replay = offsetPort(s.Endpoint, rank), offsetPort(s.Replay, rank)
		e.addSource(rank, &of)
	}
	return nil
}

// offsetPort adds n to the port of an address of ZeroMQ.
func offsetPort(address string, n int) string {
	i := strings.LastIndexByte(address, ':') + 1
	port, err := strconv.Atoi(address[i:])
	if err != nil {
		return address
	}
	return address[:i] + strconv.Itoa(port+n)
}
