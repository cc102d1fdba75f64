// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/tokenizers/prompt"
)

const system = "You answer questions about the files of one directory. Look before you answer, and call several tools at once " +
	"where you can. When you know enough, answer in a few sentences."

// An agent runs a task: it sends a prompt, runs the tools that the model calls, and sends their results in the next
// prompt.
type agent struct {
	engine   engine
	tools    toolbox
	maxTurns int
	see      func(notice)        // called for each notice; must be safe for concurrent use
	peek     func(prompt string) // called with each prompt that is sent

	model *prompt.Model
	talk  *block.Request // the conversation
	turns []*turn        // completed turns
}

// newAgent returns an agent for a model. The caller must set its engine.
func newAgent(m *prompt.Model, tools toolbox) (*agent, error) {
	a := &agent{tools: tools, maxTurns: 10, see: func(notice) {}, peek: func(string) {}, model: m, talk: block.NewRequest()}
	var list []block.Tool
	for _, t := range tools.tools {
		list = append(list, block.Tool{Name: t.name, Description: t.about, Schema: []byte(t.schema)})
	}
	return a, a.talk.SetTools(list...)
}

// limits bounds one turn: models sometimes generate endless calls.
var limits = parsers.Options{Limits: parsers.Limits{Calls: 64, ArgumentBytes: 1 << 20}}

// run runs the task until the model responds without calling a tool.
func (a *agent) run(ctx context.Context, task string) error {
	if err := a.talk.Append(block.NewTurn(block.RoleSystem, system), block.NewTurn(block.RoleUser, task)); err != nil {
		return err
	}
	for n := 1; n <= a.maxTurns; n++ {
		t, err := a.turn(ctx, n)
		if err != nil {
			return fmt.Errorf("turn %d: %w", n, err)
		}
		if a.turns = append(a.turns, t); len(t.calls) == 0 {
			return t.verdict()
		}
		if err := a.talk.Append(t.reply()); err != nil {
			return err
		}
	}
	return fmt.Errorf("no answer after %d turns", a.maxTurns)
}

// turn runs one turn. Each tool starts as soon as its call is complete and runs concurrently with the stream and other
// tools. turn returns when the stream and all tools have ended.
//
// If the stream breaks, the results of complete calls are kept, an incomplete call is aborted, and the task continues.
// Without any call, turn returns an error.
func (a *agent) turn(ctx context.Context, n int) (*turn, error) {
	p, err := a.model.Render(a.talk, time.Now())
	if err != nil {
		return nil, err
	}
	dec, err := a.model.NewDecoder(a.talk, p, &prompt.DecoderOptions{EngineStops: true, Parser: limits})
	if err != nil {
		return nil, err
	}
	text := disarm(p)
	a.peek(text)
	t, begun := &turn{n: n}, time.Now()
	note := func(kind string, c *call, text string) {
		a.see(notice{turn: n, at: time.Since(begun), kind: kind, call: c, text: text})
	}
	var running sync.WaitGroup
	early := event.Dispatcher{ // ignores calls inside reasoning, which are not meant to run
		OnCall: func(ended event.Call) {
			c := t.add(ended, time.Since(begun))
			note("start", c, c.args)
			running.Go(func() {
				from := time.Now()
				c.result, c.failed = a.tools.call(ctx, c.name, c.args)
				c.took, c.ready = time.Since(from), time.Since(begun)
				note("result", c, c.result)
			})
		},
		OnReject: func(ended event.Call) {
			c := t.add(ended, time.Since(begun))
			note("abort", c, c.why.String())
		},
	}
	take := func(events []event.Event, err error) error {
		for _, ev := range events {
			if ev.Kind == event.Reasoning || ev.Kind == event.Text {
				note(ev.Kind.String(), nil, string(ev.Data))
			}
			t.whole.Add(ev)
			early.Add(ev)
		}
		return err
	}

	var events []event.Event
	t.finish, err = a.engine.complete(ctx, text, func(chunk []byte) error {
		events = dec.Append(events[:0], string(chunk))
		return take(events, dec.Err())
	})
	if t.finish != "stop" {
		dec.SetFinish(event.Length, "") // aborts an incomplete call
	}
	events = dec.Finish(events[:0])
	if late := take(events, dec.Err()); err == nil {
		err = late
	}
	t.ended = time.Since(begun)
	running.Wait() // even if the stream broke or ctx ended: no tool outlives its turn
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil && len(t.calls) == 0:
		return nil, err
	case err != nil:
		note("broke", nil, err.Error())
	}
	note("end", nil, t.finish)
	return t, nil
}
