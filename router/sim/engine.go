// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"time"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
	"github.com/weft-go/weft/router"
)

// costs are the costs of an engine, which routers do not know, in milliseconds.
type costs struct {
	base     float64 // of a prompt
	token    float64 // to compute a prompt token
	pair     float64 // for each token before it
	front    float64 // for each token of a prompt, cached or not, before it reaches the engine, which does other work meanwhile
	transfer float64 // to send a token's KV data to another engine
	step     float64 // of a step with decoding
	sequence float64 // for each decoding request
	context  float64 // for each token of their context
}

// conditionCosts returns the costs among the conditions.
func conditionCosts(c map[string]float64) costs {
	return costs{c["base"], c["token"], c["pair"], c["front"], c["transfer"], c["step"], c["sequence"], c["context"]}
}

// prefill returns the time for n tokens of a prompt after others.
func (c *costs) prefill(n, before float64) float64 { return n * (c.token + c.pair*(before+n/2)) }

// decode returns the time for a step with n requests.
func (c *costs) decode(n, context float64) float64 { return c.step + c.sequence*n + c.context*context }

// work returns the time of an engine that a request takes: n tokens of a prompt after others, and output tokens in steps that 32
// requests share.
func (c *costs) work(n, before, output, context float64) float64 {
	return c.base + c.prefill(n, before) + output*(c.step/32+c.sequence+c.context*context)
}

const (
	chunk        = 4096 // prompt tokens in a step
	maxSequences = 128  // requests in a batch
)

// engine is one worker: it computes prompts in order of arrival, in chunks, in the same steps in which it decodes. A request
// starts when there are blocks for its prompt and its response, and those after it wait for it.
type engine struct {
	run   *run
	id    index.WorkerID
	slow  float64 // time of a step compared with other engines
	cache *cache

	waiting []*job
	started []*job // whose prompts are computed, in order
	batch   []*job // decoding
	context int    // tokens of the batch
	busy    bool
	removed []uint64 // since the last event
	ahead   *job     // that computes the known part of a next prompt; nil if there is none
}

// job is a request in an engine.
type job struct {
	session *session // nil if it computes the known part of a next prompt
	placed  time.Time
	request *router.Request
	ticket  *router.Ticket
	hashes  []uint64 // of the complete blocks of prompt and response
	length  int      // of the prompt in tokens
	output  int      // tokens to generate
	blocks  []int32
	named   int  // blocks whose data are known to the cache
	cached  int  // tokens that were cached at the start
	part    *job // of the response, if this one is only the prompt
	ready   bool // another engine has computed the prompt
	gone    bool // canceled
	done    int  // prompt tokens computed or cached
	made    int  // tokens generated
}

func (e *engine) submit(j *job) {
	if j.gone {
		return
	}
	if j.session != nil {
		e.run.giveWay(e.ahead)
	}
	e.waiting = append(e.waiting, j)
	if !e.busy {
		e.step()
	}
}

// cancel ends a request without a first token. What it has computed stays in the cache.
func (e *engine) cancel(j *job) {
	j.gone = true
	if i := slices.Index(e.waiting, j); i >= 0 {
		e.waiting = slices.Delete(e.waiting, i, i+1)
	}
	if i := slices.Index(e.started, j); i >= 0 {
		e.started = slices.Delete(e.started, i, i+1)
		e.cache.release(j.blocks)
	}
}

// start starts the first request that waits, and reports whether there was one and room for it.
func (e *engine) start() bool {
	if len(e.waiting) == 0 || len(e.batch)+len(e.started) >= maxSequences {
		return false
	}
	j, block := e.waiting[0], e.run.block
	prompt := j.hashes[:j.length/block]
	found := e.cache.leading(prompt)
	hit := len(found)
	if hit*block >= j.length {
		hit-- // the last token is always computed
	}
	used := 0 // blocks that stop being free when they are used
	for _, i := range found[:hit] {
		if e.cache.blocks[i].users == 0 {
			used++
		}
	}
	total := (j.length + j.output + block - 1) / block
	if total-hit+used > e.cache.free {
		if total > e.cache.size {
			panic("sim: a request is longer than the cache")
		}
		return false
	}
	j.blocks = e.cache.use(make([]int32, 0, total), found[:hit])
	j.blocks, e.removed = e.cache.take(j.blocks, e.removed, total-hit)
	j.named, j.done = hit, j.length
	if !j.ready {
		j.cached = hit * block
		j.done = j.cached
	}
	e.started = append(e.started, j)
	e.waiting = e.waiting[:copy(e.waiting, e.waiting[1:])]
	return true
}

// step runs the next step, after which the run continues.
func (e *engine) step() {
	var ms float64
	if n := len(e.batch); n > 0 {
		ms += e.run.costs.decode(float64(n), float64(e.context))
	}
	room := chunk
	for i := 0; room > 0 && (i < len(e.started) || e.start()); i++ {
		j := e.started[i]
		n := min(room, j.length-j.done)
		if n > 0 && j.done == j.cached {
			ms += e.run.costs.base
		}
		ms += e.run.costs.prefill(float64(n), float64(j.done))
		j.done += n
		room -= n
	}
	if e.busy = len(e.started) > 0 || len(e.batch) > 0; e.busy {
		e.run.after(time.Duration(ms*e.slow*1e6), e.end)
	}
}

// end ends a step: every decoding request has one more token, and prompts that were computed have their first.
func (e *engine) end() {
	now := e.run.now
	rest := e.batch[:0]
	e.context += len(e.batch)
	for _, j := range e.batch {
		if j.made++; j.made < j.output {
			rest = append(rest, j)
			continue
		}
		e.context -= j.length + j.made
		e.learn(j, len(j.hashes))
		e.cache.release(j.blocks)
		e.pin(j)
		j.ticket.Finish(now, j.cached, j.made)
		e.run.finished(j)
	}
	e.batch = rest
	computing := e.started[:0]
	for _, j := range e.started {
		e.learn(j, j.done/e.run.block)
		if j.done < j.length {
			computing = append(computing, j)
			continue
		}
		if j.part != nil {
			e.transfer(j)
			continue
		}
		j.ticket.FirstToken(now)
		if j.session == nil {
			e.cache.release(j.blocks)
			j.ticket.Finish(now, j.cached, 1)
			e.ahead = nil
			continue
		}
		e.run.first(j)
		j.made = 1
		e.batch = append(e.batch, j)
		e.context += j.length + 1
	}
	e.started = computing
	e.report()
	e.run.placed()
	e.step()
}

// pin keeps the blocks of a session in the cache until its next request, if that comes soon enough.
func (e *engine) pin(j *job) {
	s := j.session
	if s.turn+1 >= len(s.turns) || s.turns[s.turn+1].fresh || s.turns[s.turn+1].pause >= e.run.pin {
		return
	}
	e.cache.move(j.hashes, pinned)
	e.run.after(s.turns[s.turn+1].pause+time.Second, func() { e.cache.move(j.hashes, common) })
}

// transfer sends the KV data of a prompt that was computed to the engine of its response, except for the blocks that it has.
func (e *engine) transfer(j *job) {
	j.ticket.Prefilled(e.run.now, j.cached)
	to, prompt := e.run.engines[j.ticket.Decision().Worker], j.hashes[:j.length/e.run.block]
	n := j.length - len(to.cache.leading(prompt))*e.run.block
	e.run.after(time.Duration(float64(n)*e.run.costs.transfer*1e6), func() {
		e.cache.release(j.blocks)
		if !e.busy {
			e.step()
		}
		j.part.cached = j.cached
		to.submit(j.part)
	})
}

// report sends the event for blocks that were removed.
func (e *engine) report() {
	if len(e.removed) > 0 {
		e.tell(&kvevent.Event{Kind: kvevent.Removed, BlockHashes: e.removed})
		e.removed = nil
	}
}

// learn makes the first n blocks of a request known to the cache, and sends events of those that were not.
func (e *engine) learn(j *job, n int) {
	from := j.named
	for ; j.named < n; j.named++ {
		if n := j.named; n > 0 {
			e.cache.follow(j.blocks[n-1], j.hashes[n-1], j.blocks[n], j.hashes[n])
		}
		if !e.cache.name(j.blocks[j.named], j.hashes[j.named]) {
			e.store(j, from, j.named)
			from = j.named + 1
		}
	}
	e.store(j, from, j.named)
}

// store sends the event for new blocks of a request.
func (e *engine) store(j *job, from, to int) {
	if from >= to {
		return
	}
	ev := &kvevent.Event{Kind: kvevent.Stored, BlockHashes: j.hashes[from:to], SequenceHashes: j.hashes[from:to]}
	if from > 0 {
		ev.Parent, ev.HasParent = j.hashes[from-1], true
	}
	e.tell(ev)
}

// tell sends an event to the index, 10 to 50 ms later, unless it is lost.
func (e *engine) tell(ev *kvevent.Event) {
	if e.run.lost > 0 && e.run.rnd.Float64() < e.run.lost {
		return
	}
	delay := time.Duration(10+e.run.rnd.IntN(41))*time.Millisecond + e.run.late
	e.run.after(delay, func() { e.run.router.Index().Add(e.id, ev) })
}
