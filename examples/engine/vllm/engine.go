// SPDX-License-Identifier: Apache-2.0

package vllm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/weft-go/weft/tokenizers"
)

// Options configures an Engine.
type Options struct {
	Model    string   // name of the model; "" means "embedded"
	Adapters []string // names of LoRA adapters, which Script gets as the model. Their blocks in the cache are their own
	Script   Script   // nil means Echo

	BlockSize   int // tokens per cache block; 0 means 16
	Blocks      int // capacity of the cache in blocks; 0 means 8192, negative means no cache
	MaxModelLen int // prompt and output tokens per request; 0 means 131072

	Timing Timing
	// Speed is the ratio of modeled to real time; +Inf does not wait. 0 means 1.
	Speed float64

	MaxRunning int   // concurrent requests; 0 means 256
	MaxWaiting int   // requests that may wait for a running slot; further ones get status 503; 0 means 1024
	MaxBody    int64 // bytes of a request body; 0 means 64 MiB

	OnFinish func(Report) // called at the end of each request that ran, from its goroutine; may be nil
	Logger   *slog.Logger // nil means no logs
}

// Report holds the cost of one request. The durations are modeled time.
type Report struct {
	RequestID                                string // the client's X-Request-Id, or a generated one
	PromptTokens, CachedTokens, OutputTokens int
	Queued                                   time.Duration // from arrival to the start of the prefill
	FirstToken                               time.Duration // from arrival to the first token, Queued included
	Total                                    time.Duration // from arrival to the end
	Finish                                   string        // stop, length, abort or error
}

// Engine is an embedded engine: an http.Handler with a prefix cache. Create one with New and release it with Close. It
// is safe for concurrent use by multiple goroutines.
type Engine struct {
	tok *tokenizers.Tokenizer
	opt Options
	mux *http.ServeMux

	ctx     context.Context // ends at Close
	stop    context.CancelCauseFunc
	slots   chan struct{} // one token per running request
	prefill chan struct{} // one prefill at a time

	mu    sync.Mutex // guards the fields below
	cache *cache
	subs  []*subscriber
	seq   uint64 // number of the last published batch; 0 before the first
	stats stats
	ids   uint64
	busy  sync.WaitGroup // requests inside ServeHTTP; Add under mu, not after closed
	done  bool
}

var errClosed = errors.New("vllm: the engine is closed")

// New returns an engine with the vocabulary of tok. The caller must call Close.
func New(tok *tokenizers.Tokenizer, o *Options) *Engine {
	e := &Engine{tok: tok}
	if o != nil {
		e.opt = *o
	}
	def := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	def(&e.opt.BlockSize, 16)
	def(&e.opt.Blocks, 8192)
	def(&e.opt.MaxModelLen, 131072)
	def(&e.opt.MaxRunning, 256)
	def(&e.opt.MaxWaiting, 1024)
	if e.opt.Model == "" {
		e.opt.Model = "embedded"
	}
	if e.opt.Script == nil {
		e.opt.Script = Echo
	}
	if e.opt.Speed <= 0 {
		e.opt.Speed = 1
	}
	if e.opt.MaxBody <= 0 {
		e.opt.MaxBody = 64 << 20
	}
	if e.opt.Logger == nil {
		e.opt.Logger = slog.New(slog.DiscardHandler)
	}
	e.opt.Timing = e.opt.Timing.withDefaults()
	e.ctx, e.stop = context.WithCancelCause(context.Background())
	e.slots = make(chan struct{}, e.opt.MaxRunning)
	e.prefill = make(chan struct{}, 1)
	e.cache = newCache(e.opt.BlockSize, max(e.opt.Blocks, 0))
	e.stats.firstToken.bounds = firstTokenBounds
	e.mux = e.routes()
	return e
}

// Model returns the name of the model.
func (e *Engine) Model() string { return e.opt.Model }

// BlockSize returns the tokens per cache block.
func (e *Engine) BlockSize() int { return e.opt.BlockSize }

// Close breaks the connections of all requests, as a crash would, and waits for them to return. Later requests get
// status 503.
func (e *Engine) Close() {
	e.stop(errClosed)
	e.mu.Lock()
	e.done = true
	e.mu.Unlock()
	e.busy.Wait()
}

// ServeHTTP serves one request.
func (e *Engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	if e.done {
		e.mu.Unlock()
		(&apiError{http.StatusServiceUnavailable, "ServiceUnavailableError", "", "the engine is closed"}).write(w)
		return
	}
	e.busy.Add(1)
	e.mu.Unlock()
	defer e.busy.Done()

	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(e.ctx, func() { cancel(errClosed) })()
	r = r.WithContext(ctx)
	r.Body = http.MaxBytesReader(w, r.Body, e.opt.MaxBody)
	e.mux.ServeHTTP(w, r)
}

// A job is the state of one completion.
type job struct {
	id        string
	arrived   time.Time
	prompt    []uint32
	scope     scope
	sequences []sequence // one per choice
	maxTokens int        // of each
	pace      *pace
	failed    FailureMode // injected failure
	report    Report
}

// A sequence is the state of one choice.
type sequence struct {
	output []uint32 // the model's output, with the end-of-turn token if the tokenizer has one
	fail   Failure
	tokens []uint32 // the prompt and the output so far
	lease  *lease
	done   bool
}

// generated returns the number of output tokens generated so far.
func (s *sequence) generated(j *job) int { return len(s.tokens) - len(j.prompt) }

// refused reports whether a choice must fail before any output.
func (j *job) refused() bool {
	return slices.ContainsFunc(j.sequences, func(s sequence) bool { return s.fail.Mode == Refuse })
}

// A sink receives generated tokens.
type sink interface {
	// token adds a token of a choice and reports whether its output ends there.
	token(choice int, id uint32) (stop bool, err error)
	// finish ends a choice with its reason: stop or length.
	finish(choice int, reason string) error
}

// errInjected reports an injected failure.
var errInjected = errors.New("vllm: injected failure")

// admit waits for a running slot. If it returns nil, the caller must call leave.
func (e *Engine) admit(ctx context.Context) *apiError {
	select {
	case e.slots <- struct{}{}:
		return nil
	default:
	}
	e.mu.Lock()
	full := e.stats.waiting >= e.opt.MaxWaiting
	if !full {
		e.stats.waiting++
	}
	e.mu.Unlock()
	if full {
		return &apiError{http.StatusServiceUnavailable, "ServiceUnavailableError", "", "too many requests are waiting"}
	}
	defer e.locked(func() { e.stats.waiting-- })
	select {
	case e.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return &apiError{499, "RequestCancelled", "", "the client went away"}
	}
}

func (e *Engine) leave() { <-e.slots }

func (e *Engine) locked(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f()
}

// run generates the choices of j, one token of each at a time, passes the tokens to out and fills in j.report.
func (e *Engine) run(ctx context.Context, j *job, out sink) (err error) {
	rep := &j.report
	rep.RequestID, rep.PromptTokens = j.id, len(j.prompt)
	e.locked(func() { e.stats.running++ })

	defer func() {
		e.locked(func() {
			for i := range j.sequences {
				if l := j.sequences[i].lease; l != nil {
					l.release()
				}
			}
			e.publish()
			e.stats.running--
			if err != nil {
				rep.Finish = "error"
				if ctx.Err() != nil {
					rep.Finish = "abort"
				}
			}
			e.stats.finish(rep)
		})
		if e.opt.OnFinish != nil {
			e.opt.OnFinish(*rep)
		}
		e.opt.Logger.Debug("request", "id", j.id, "prompt", rep.PromptTokens, "cached", rep.CachedTokens,
			"output", rep.OutputTokens, "finish", rep.Finish, "err", err)
	}()

	select {
	case e.prefill <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	rep.Queued = modeled(time.Since(j.arrived), e.opt.Speed)
	first := &j.sequences[0]
	e.locked(func() {
		first.lease = e.cache.acquire(j.scope, j.prompt)
		rep.CachedTokens = first.lease.cached()
		e.stats.prefixQueries += int64(rep.PromptTokens)
		e.stats.prefixHit += int64(rep.CachedTokens)
	})
	j.pace = newPace(e.opt.Speed)
	err = j.pace.wait(ctx, e.opt.Timing.Prefill(len(j.prompt)-rep.CachedTokens))
	<-e.prefill
	if err != nil {
		return err
	}
	e.locked(func() {
		first.lease.store(j.prompt)
		for i := range j.sequences[1:] { // they share the prompt's blocks
			j.sequences[i+1].lease = e.cache.acquire(j.scope, j.prompt)
		}
		e.publish()
		e.stats.prompt += int64(rep.PromptTokens)
	})
	rep.FirstToken = rep.Queued + j.pace.elapsed

	rep.Finish = "stop"
	for i := range j.sequences {
		j.sequences[i].tokens = j.prompt[:len(j.prompt):len(j.prompt)]
	}
	for step := 0; ; step++ {
		running := false
		for i := range j.sequences {
			s := &j.sequences[i]
			if !s.done && s.fail.Mode > Refuse && step >= s.fail.AfterTokens {
				return j.failNow(ctx, s)
			}
			running = running || !s.done
		}
		if !running {
			return nil
		}
		if step > 0 { // the prefill generates the first tokens
			if err := j.pace.wait(ctx, e.opt.Timing.DecodePerToken); err != nil {
				return err
			}
		}
		for i := range j.sequences {
			if s := &j.sequences[i]; !s.done {
				if err := e.step(ctx, j, i, out); err != nil {
					return err
				}
			}
		}
	}
}

// step generates one token of a choice.
func (e *Engine) step(ctx context.Context, j *job, i int, out sink) (err error) {
	s, rep := &j.sequences[i], &j.report
	reason := "length"
	if n := s.generated(j); n < len(s.output) {
		rep.OutputTokens++
		rep.Total = rep.Queued + j.pace.elapsed
		if len(s.tokens)%e.opt.BlockSize == 0 && n > 0 { // the previous token filled a block
			e.locked(func() {
				s.lease.store(s.tokens)
				e.publish()
			})
		}
		s.tokens = append(s.tokens, s.output[n])
		stop, err := out.token(i, s.output[n])
		if err != nil {
			return err
		}
		switch {
		case stop || n+1 == len(s.output):
			reason = "stop"
		case n+1 < j.maxTokens:
			return nil
		}
	}
	s.done = true
	if s.fail.Mode > Refuse { // the output was shorter than AfterTokens
		return j.failNow(ctx, s)
	}
	if reason == "length" {
		rep.Finish = reason
	}
	return out.finish(i, reason)
}

func (j *job) failNow(ctx context.Context, s *sequence) error {
	j.failed = s.fail.Mode
	if j.failed == Stall {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w after %d tokens", errInjected, s.generated(j))
}
