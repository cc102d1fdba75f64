// SPDX-License-Identifier: Apache-2.0

package vllm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-go/weft/tokenizers"
)

// completionRequest contains the fields of vLLM's request that the engine reads.
type completionRequest struct {
	Model         string          `json:"model"`
	Prompt        json.RawMessage `json:"prompt"`
	MaxTokens     *int            `json:"max_tokens"`
	N             *int            `json:"n"`
	Stream        bool            `json:"stream"`
	StreamOptions *struct {
		IncludeUsage         bool `json:"include_usage"`
		ContinuousUsageStats bool `json:"continuous_usage_stats"`
	} `json:"stream_options"`
	Stop              json.RawMessage `json:"stop"`
	StopTokenIDs      []uint32        `json:"stop_token_ids"`
	IncludeStop       bool            `json:"include_stop_str_in_output"`
	IgnoreEOS         bool            `json:"ignore_eos"`
	SkipSpecialTokens *bool           `json:"skip_special_tokens"`
	ReturnTokenIDs    bool            `json:"return_token_ids"`
	CacheSalt         string          `json:"cache_salt"`
}

type usage struct {
	Prompt        int `json:"prompt_tokens"`
	Total         int `json:"total_tokens"`
	Completion    int `json:"completion_tokens"`
	PromptDetails *struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

type completionChoice struct {
	Index        int      `json:"index"`
	Text         string   `json:"text"`
	Logprobs     *int     `json:"logprobs"` // always null
	FinishReason *string  `json:"finish_reason"`
	StopReason   any      `json:"stop_reason"` // string, token id or null
	PromptIDs    []uint32 `json:"prompt_token_ids,omitempty"`
	IDs          []uint32 `json:"token_ids,omitempty"`
}

type completionBody struct {
	ID      string             `json:"id"`
	Object  string             `json:"object"`
	Created int64              `json:"created"`
	Model   string             `json:"model"`
	Choices []completionChoice `json:"choices"`
	Usage   *usage             `json:"usage,omitempty"`
}

// maxChoices limits the choices of one request, as OpenAI does.
const maxChoices = 128

// A completion is one running /v1/completions request.
type completion struct {
	e       *Engine
	req     completionRequest
	job     job
	body    completionBody // of the next chunk, or of the whole response
	choices []choice
	eos     []uint32

	w       http.ResponseWriter
	flush   func() error
	started bool
}

// A choice is one of the responses to a prompt.
type choice struct {
	out     completionChoice // in the next chunk, or in the whole response
	decode  *tokenizers.Stream
	stops   stopper
	pending []byte // text of out
}

func (e *Engine) completions(w http.ResponseWriter, r *http.Request) {
	c, bad := e.newCompletion(w, r)
	if bad == nil {
		bad = e.admit(r.Context())
	}
	if bad != nil {
		bad.write(w)
		return
	}
	defer e.leave()
	if c.job.refused() {
		(&apiError{http.StatusInternalServerError, "InternalServerError", "", "injected failure"}).write(w)
		return
	}
	err := e.run(r.Context(), &c.job, c)
	switch {
	case err == nil:
		c.end()
	case errors.Is(err, errInjected) && c.job.failed == ErrorLine || errors.Is(err, errClosed) && !c.started:
		ae := &apiError{http.StatusInternalServerError, "InternalServerError", "", err.Error()}
		if !c.started {
			ae.write(w)
			return
		}
		fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", ae.body())
	default: // the client disconnected, or Failure breaks the connection
		panic(http.ErrAbortHandler)
	}
}

// newCompletion decodes and validates the request.
func (e *Engine) newCompletion(w http.ResponseWriter, r *http.Request) (*completion, *apiError) {
	c := &completion{e: e, w: w, flush: http.NewResponseController(w).Flush}
	if media, _, _ := strings.Cut(strings.ToLower(r.Header.Get("Content-Type")), ";"); media != "application/json" {
		return nil, badRequest("", "Unsupported Media Type: Only 'application/json' is allowed") // as vLLM's validate_json_request
	}
	data, err := io.ReadAll(r.Body)
	if tooBig, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, &apiError{http.StatusRequestEntityTooLarge, "BadRequestError", "", fmt.Sprintf("the body is larger than %d bytes", tooBig.Limit)}
	}
	if err != nil {
		return nil, badRequest("", "reading the body: %v", err)
	}
	req := &c.req
	if err := json.Unmarshal(data, req); err != nil {
		return nil, badRequest("", "%v", err)
	}
	name := cmp.Or(req.Model, e.opt.Model)
	in := scope{salt: req.CacheSalt}
	if name != e.opt.Model {
		in.adapter = name
	}
	if in.adapter != "" && !slices.Contains(e.opt.Adapters, name) {
		return nil, &apiError{http.StatusNotFound, "NotFoundError", "model", "The model `" + req.Model + "` does not exist."}
	}
	n := 1
	if req.N != nil {
		n = *req.N
	}
	if n < 1 || n > maxChoices {
		return nil, badRequest("n", "n must be at least 1 and at most %d, got %d.", maxChoices, n)
	}
	stops, err := oneOrMany(req.Stop)
	if err != nil {
		return nil, badRequest("stop", "stop must be a string or a list of strings")
	}
	prompt, bad := e.prompt(req.Prompt)
	if bad != nil {
		return nil, bad
	}
	maxTokens := 16 // vLLM's default
	if req.MaxTokens != nil {
		maxTokens = *req.MaxTokens
	}
	if maxTokens < 1 {
		return nil, badRequest("max_tokens", "max_tokens must be at least 1, got %d.", maxTokens)
	}
	if maxTokens > e.opt.MaxModelLen-len(prompt) {
		return nil, badRequest("", "This model's maximum context length is %d tokens. However, you requested %d tokens (%d in the messages, "+
			"%d in the completion). Please reduce the length of the messages or completion.",
			e.opt.MaxModelLen, uint64(len(prompt))+uint64(maxTokens), len(prompt), maxTokens)
	}

	id := r.Header.Get("X-Request-Id")
	if id == "" {
		e.locked(func() { e.ids++; id = strconv.FormatUint(e.ids, 16) })
	}
	if !req.IgnoreEOS {
		c.eos = e.tok.EOS()
	}
	c.job = job{id: id, arrived: time.Now(), prompt: prompt, scope: in, maxTokens: maxTokens}
	p := Prompt{Text: string(e.tok.AppendDecode(nil, prompt, false)), IDs: prompt, User: e.lastUser(prompt), Model: name, RequestID: id}
	for p.Choice = range n {
		reply := e.opt.Script(p)
		output := slices.Clip(reply.IDs)
		if output == nil {
			output = e.tok.AppendEncode(nil, reply.Text)
		}
		if len(c.eos) > 0 {
			output = append(output, c.eos[0])
		}
		c.job.sequences = append(c.job.sequences, sequence{output: output, fail: reply.Fail})
		ch := choice{decode: e.tok.NewStream(req.SkipSpecialTokens == nil || *req.SkipSpecialTokens, nil), stops: stopper{stops: stops, include: req.IncludeStop}}
		if ch.out.Index = p.Choice; req.ReturnTokenIDs {
			ch.out.PromptIDs = prompt
		}
		c.choices = append(c.choices, ch)
	}
	c.body = completionBody{ID: "cmpl-" + id, Object: "text_completion", Created: time.Now().Unix(), Model: name}
	return c, nil
}

// prompt decodes a prompt: text, token ids, or a list of one of them.
func (e *Engine) prompt(raw json.RawMessage) ([]uint32, *apiError) {
	var text string
	var ids []uint32
	var texts []string
	var lists [][]uint32
	switch {
	case json.Unmarshal(raw, &text) == nil:
		ids = e.tok.AppendEncode(nil, text)
	case json.Unmarshal(raw, &ids) == nil:
	case json.Unmarshal(raw, &texts) == nil && len(texts) == 1:
		ids = e.tok.AppendEncode(nil, texts[0])
	case json.Unmarshal(raw, &lists) == nil && len(lists) == 1:
		ids = lists[0]
	default:
		return nil, badRequest("prompt", "prompt must be one text or one list of token ids")
	}
	if len(ids) == 0 {
		return nil, badRequest("prompt", "The prompt is empty.")
	}
	for _, id := range ids {
		if int64(id) >= int64(e.tok.VocabSize()) {
			return nil, badRequest("prompt", "Token id %d is out of vocabulary", id)
		}
	}
	return ids, nil
}

// token adds an output token of a choice. It sends the text in a chunk, or keeps it for a response that is not
// streamed.
func (c *completion) token(i int, id uint32) (stop bool, err error) {
	ch := &c.choices[i]
	if c.req.ReturnTokenIDs {
		ch.out.IDs = append(ch.out.IDs, id)
	}
	for _, s := range c.eos { // end-of-turn token: not part of the text, no stop_reason
		stop = stop || id == s
	}
	for _, s := range c.req.StopTokenIDs {
		if id == s && !stop {
			stop, ch.out.StopReason = true, s
		}
	}
	if !stop || c.req.IncludeStop {
		text := ch.decode.Append(nil, id)
		var hit string
		if ch.pending, hit = ch.stops.feed(ch.pending, text); hit != "" {
			stop, ch.out.StopReason = true, hit
		}
	}
	if c.req.Stream && !stop { // finish writes the last chunk, which has the finish reason
		return false, c.chunk(ch)
	}
	return stop, nil
}

// finish ends a choice.
func (c *completion) finish(i int, reason string) error {
	ch := &c.choices[i]
	ch.out.FinishReason = &reason
	if _, hit := ch.out.StopReason.(string); !hit {
		ch.pending, _ = ch.stops.feed(ch.pending, ch.decode.Finish(nil))
		ch.pending = ch.stops.finish(ch.pending)
	}
	if c.req.Stream {
		return c.chunk(ch)
	}
	return nil
}

// finish sets the text of the choice.
func (ch *choice) finish() completionChoice {
	ch.out.Text, ch.pending = strings.ToValidUTF8(string(ch.pending), "\uFFFD"), ch.pending[:0]
	return ch.out
}

// chunk writes the current chunk of ch and starts the next.
func (c *completion) chunk(ch *choice) error {
	if !c.started {
		c.started = true
		h := c.w.Header()
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("Cache-Control", "no-cache")
	}
	c.body.Choices = append(c.body.Choices[:0], ch.finish())
	if so := c.req.StreamOptions; so != nil && so.ContinuousUsageStats {
		c.body.Usage = c.usage()
	}
	ch.out = completionChoice{Index: ch.out.Index}
	return c.write()
}

func (c *completion) write() error {
	var b bytes.Buffer
	b.WriteString("data: ")
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&c.body); err != nil {
		return err
	}
	b.WriteByte('\n')
	if _, err := c.w.Write(b.Bytes()); err != nil {
		return err
	}
	return c.flush()
}

// end writes the rest of the response when all choices have ended.
func (c *completion) end() {
	if !c.req.Stream {
		for i := range c.choices {
			c.body.Choices = append(c.body.Choices, c.choices[i].finish())
		}
		c.body.Usage = c.usage()
		writeJSON(c.w, &c.body)
		return
	}
	if so := c.req.StreamOptions; so != nil && so.IncludeUsage {
		c.body.Choices, c.body.Usage = []completionChoice{}, c.usage()
		if c.write() != nil {
			return
		}
	}
	io.WriteString(c.w, "data: [DONE]\n\n")
}

func (c *completion) usage() *usage {
	rep := &c.job.report
	u := &usage{Prompt: rep.PromptTokens, Completion: rep.OutputTokens, Total: rep.PromptTokens + rep.OutputTokens}
	u.PromptDetails = &struct {
		Cached int `json:"cached_tokens"`
	}{rep.CachedTokens}
	return u
}

// oneOrMany decodes a string, a list of strings, or null.
func oneOrMany(raw json.RawMessage) ([]string, error) {
	var one string
	var many []string
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if json.Unmarshal(raw, &one) == nil {
		many = []string{one}
	} else if err := json.Unmarshal(raw, &many); err != nil {
		return nil, err
	}
	if slices.Contains(many, "") {
		return nil, errors.New("empty stop string")
	}
	return many, nil
}
