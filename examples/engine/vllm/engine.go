// SPDX-License-Identifier: Apache-2.0

package vllm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/weft-go/weft/tokenizers"
)

// Options configure an Engine.
type Options struct {
	Model  string // name of the model; "" means "embedded"
	Script Script // nil means Echo

	BlockSize   int // tokens per cache block; 0 means 16
	Blocks      int // capacity of the cache in blocks; 0 means 8192, negative means no cache
	MaxModelLen int // prompt and output tokens of one request; 0 means 131072

	Timing Timing
	// Speed is modelled time per real time: 1 is real time, 20 twenty times faster, +Inf does not wait at all. 0 means 1.
	Speed float64

	MaxRunning int   // requests that run at a time; 0 means 256
	MaxWaiting int   // requests that wait for a running slot, beyond which the engine answers 503; 0 means 1024
	MaxBody    int64 // bytes of a request body; 0 means 64 MiB

	OnFinish func(Report) // called at the end of each request that ran, from its goroutine; nil means nobody is told
	Logger   *slog.Logger // nil means silent
}

// Report is what one request cost. The durations are modelled time.
type Report struct {
	RequestID                                string // the caller's X-Request-Id, or one of the engine's own
	PromptTokens, CachedTokens, OutputTokens int
	Queued                                   time.Duration // from arrival to the start of the prefill
	FirstToken                               time.Duration // from arrival to the first token, Queued included
	Total                                    time.Duration // from arrival to the end
	Finish                                   string        // stop, length, abort or error
}

// Engine is an embedded engine: an http.Handler with a prefix cache. Make one with New and Close it at the end. It is safe
// for concurrent use.
type Engine struct {
	tok *tokenizers.Tokenizer
	opt Options
	mux *http.ServeMux

	ctx     context.Context // ends at Close
	stop    context.CancelCauseFunc
	slots   chan struct{} // one token per running request
	prefill chan struct{} // one prefill at a time

	mu    sync.Mutex // guards what follows
	cache *cache
	subs  []*subscriber
	seq   uint64
	stats stats
	ids   uint64
	busy  sync.WaitGroup // requests inside ServeHTTP; Add under mu, not after closed
	done  bool
}

var errClosed = errors.New("vllm: the engine is closed")

// New returns an engine that speaks the vocabulary of tok.
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

// Close ends all requests, as a crash of the engine would, and waits until they are gone. Requests after it get 503.
func (e *Engine) Close() {
	e.stop(errClosed)
	e.mu.Lock()
	e.done = true
	e.mu.Unlock()
	e.busy.Wait()
}

// ServeHTTP answers one request.
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

// A job is one completion on its way through the engine.
type job struct {
	id        string
	arrived   time.Time
	prompt    []uint32
	salt      string
	output    []uint32 // what the model will say, end-of-turn token included if there is one
	maxTokens int
	fail      Failure
	pace      *pace
	report    Report
}

// errInjected is what run returns when Failure makes it fail.
var errInjected = errors.New("vllm: injected failure")

// admit waits for a running slot; leave must be called when it returns nil.
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

// run generates j's output and hands every token to emit, which may say that the output ends there. What happened is left
// in j.report.
func (e *Engine) run(ctx context.Context, j *job, emit func(token uint32) (stop bool, err error)) (err error) {
	rep := &j.report
	rep.RequestID, rep.PromptTokens = j.id, len(j.prompt)
	e.locked(func() { e.stats.running++ })

	var l *lease
	defer func() {
		e.locked(func() {
			if l != nil {
				l.release()
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
	rep.Queued = modelled(time.Since(j.arrived), e.opt.Speed)
	e.locked(func() {
		l = e.cache.acquire(j.salt, j.prompt)
		rep.CachedTokens = l.cached()
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
		l.store(j.prompt)
		e.publish()
		e.stats.prompt += int64(rep.PromptTokens)
	})
	rep.FirstToken = rep.Queued + j.pace.elapsed

	rep.Finish = "length"
	seq := j.prompt[:len(j.prompt):len(j.prompt)]
	for i := 0; i < min(j.maxTokens, len(j.output)); i++ {
		if j.fail.Mode > Refuse && i >= j.fail.AfterTokens {
			return j.failNow(ctx)
		}
		if i > 0 { // the first token comes out of the prefill
			if err := j.pace.wait(ctx, e.opt.Timing.DecodePerToken); err != nil {
				return err
			}
		}
		rep.OutputTokens++
		rep.Total = rep.Queued + j.pace.elapsed
		if len(seq)%e.opt.BlockSize == 0 && len(seq) > len(j.prompt) { // the token before filled a block
			e.locked(func() {
				l.store(seq)
				e.publish()
			})
		}
		seq = append(seq, j.output[i])
		stop, err := emit(j.output[i])
		if err != nil {
			return err
		}
		if stop || i == len(j.output)-1 {
			rep.Finish = "stop"
			break
		}
	}
	if j.fail.Mode > Refuse { // the output was shorter than AfterTokens
		return j.failNow(ctx)
	}
	return nil
}

func (j *job) failNow(ctx context.Context) error {
	if j.fail.Mode == Stall {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w after %d tokens", errInjected, j.report.OutputTokens)
}
