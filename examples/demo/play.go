// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/protocols/preamble"
	"github.com/weft-go/weft/router"
)

// A ledger holds the cost of one or more turns.
type ledger struct {
	turns            int
	prompt, uncached int           // tokens, as the engines counted them
	first            time.Duration // to first token, modeled
	worst            time.Duration
	calls            int
	ready            time.Duration // until all tools were done, over all turns
	won              time.Duration // part of ready that was saved by running tools before the turn ended
	parts            string        // why the last prompt diverged from the previous one; "" if none did
}

// A turn is one request and its response, as seen by the client. Times are modeled and relative to the request.
type turn struct {
	outcome
	n            int
	decision     router.Decision
	stripped     int
	prefix       serve.Prefix
	uncached     int
	firstToken   time.Duration // as the engine modeled it
	reasoning    passage
	text         passage
	tools        []*toolRun
	end          time.Duration // the turn ended
	ready        time.Duration // all tools were done
	withoutEarly time.Duration // time at which they would have been done if started at the end of the turn
}

// A passage is consecutive output of one kind.
type passage struct {
	text        string
	first, last time.Duration
}

func (r *passage) add(text string, at time.Duration) {
	if r.text == "" {
		r.first = at
	}
	r.text, r.last = r.text+text, at
}

// A toolRun is a call from its first byte to its result.
type toolRun struct {
	call
	begun, dispatched, done time.Duration
	took                    time.Duration
	result                  string
}

// play runs one story: it sends requests, runs the tools that the model calls and returns their results, until the
// model calls no tool. It calls done after each turn.
func (s *stack) play(ctx context.Context, clock clock, st story, sum *ledger, done func(*turn)) error {
	w := wire{base: s.url, model: "demo", header: http.Header{}, client: &http.Client{Transport: &http.Transport{}}}
	defer w.client.CloseIdleConnections()
	w.header.Set("X-Session-Id", "demo-"+st.api)
	w.header.Set("X-Weft-Tool-Call-Parser", st.family)
	var t talker
	switch system := st.agent + "\n\n" + systemPrompt; st.api {
	case "chat":
		t = newChat(w, system)
	case "responses":
		t = newResponses(w, system)
	default:
		t = newMessages(w, system)
	}
	t.ask(st.question)
	repo := newWorld(clock)
	for n := 1; n <= len(plan); n++ {
		tr, err := s.turn(ctx, clock, t, repo, fmt.Sprintf("%s-%d", st.api, n))
		if err != nil {
			return fmt.Errorf("turn %d: %w", n, err)
		}
		tr.n = n
		sum.turns++
		sum.prompt += tr.prompt
		sum.uncached += tr.uncached
		sum.first += tr.firstToken
		sum.worst = max(sum.worst, tr.firstToken)
		sum.calls += len(tr.tools)
		sum.ready += tr.ready
		sum.won += tr.withoutEarly - tr.ready
		if b := tr.prefix; b.Known && b.Relation == preamble.Diverges {
			sum.parts = b.Cause
		}
		done(tr)
		if len(tr.tools) != len(plan[n-1].calls) {
			return fmt.Errorf("turn %d: received %d of %d calls", n, len(tr.tools), len(plan[n-1].calls))
		}
		if len(tr.tools) == 0 {
			break
		}
		for _, r := range tr.tools {
			t.answer(r.call, r.result)
		}
	}
	if out, err := repo.test(nil); err != nil || !strings.HasPrefix(out, "ok") {
		return fmt.Errorf("repository is broken after the last turn: %s %v", out, err)
	}
	return nil
}

// turn sends the conversation and runs each tool as soon as its call is complete.
func (s *stack) turn(ctx context.Context, clock clock, t talker, repo *world, id string) (*turn, error) {
	tr := &turn{}
	start := time.Now()
	var running sync.WaitGroup
	defer running.Wait()
	out, err := t.turn(ctx, id, func(x sight) {
		at := clock.since(start)
		switch x.kind {
		case "reasoning":
			tr.reasoning.add(x.text, at)
		case "text":
			tr.text.add(x.text, at)
		case "call":
			tr.tools = append(tr.tools, &toolRun{call: x.call, begun: at})
		case "dispatch":
			r := tr.tools[len(tr.tools)-1]
			r.call, r.dispatched = x.call, at
			running.Go(func() {
				r.result, r.took = repo.call(ctx, r.name, r.args)
				r.done = clock.since(start)
			})
		}
	})
	tr.outcome, tr.end = out, clock.since(start)
	if err != nil {
		return nil, err
	}
	running.Wait()
	tr.ready, tr.withoutEarly = tr.end, tr.end
	for _, r := range tr.tools {
		tr.ready = max(tr.ready, r.done)
		tr.withoutEarly = max(tr.withoutEarly, tr.end+r.took)
	}
	rep, rec, err := s.cost(ctx, id)
	if err != nil {
		return nil, err
	}
	tr.decision, tr.stripped, tr.prefix = rec.Decision, rec.Stripped, rec.Prefix
	tr.uncached, tr.firstToken = rep.PromptTokens-rep.CachedTokens, rep.FirstToken
	return tr, nil
}
