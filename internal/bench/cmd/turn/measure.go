// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"

	"github.com/weft-go/weft/internal/bench"
	"github.com/weft-go/weft/protocols/replay"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// A cost is the sum over some turns.
type cost struct {
	ns     float64 // CPU time of the process
	bytes  float64
	allocs float64
}

func (c *cost) add(d cost) { c.ns, c.bytes, c.allocs = c.ns+d.ns, c.bytes+d.bytes, c.allocs+d.allocs }

func (c *cost) scale(x float64) { c.ns, c.bytes, c.allocs = c.ns*x, c.bytes*x, c.allocs*x }

// A meter measures CPU time or, in other turns, memory, because reading the counters of memory takes time.
type meter struct {
	memory bool
	a, b   runtime.MemStats
	around func(func()) // runs what is measured; nil means directly
}

// measure runs f. The CPU time is without garbage collection; see collector.
func (m *meter) measure(f func()) cost {
	if m.around != nil {
		g := f
		f = func() { m.around(g) }
	}
	if m.memory {
		runtime.ReadMemStats(&m.a)
		f()
		runtime.ReadMemStats(&m.b)
		return cost{bytes: float64(m.b.TotalAlloc - m.a.TotalAlloc), allocs: float64(m.b.Mallocs - m.a.Mallocs)}
	}
	t := bench.CPUTime()
	f()
	return cost{ns: float64(bench.CPUTime() - t)}
}

// A collector measures what garbage collection costs a server. The time of a collection depends on the memory in use, and one is
// due whenever as much again was allocated (with GOGC at 100). So each allocated byte costs the same, wherever that happens.
// No collection runs while turns are measured, because it would also collect the garbage of the floors and of the first requests
// of conversations, which are not measured.
type collector struct {
	stopped bool    // no collection runs on its own
	percent int     // GOGC
	ns      float64 // CPU time per allocated byte, the sum over some collections
	n       int
}

// stop stops automatic collection until start is called.
func (c *collector) stop() { c.percent, c.stopped = debug.SetGCPercent(-1), true }

func (c *collector) start() {
	debug.SetGCPercent(c.percent)
	c.stopped = false
}

// collect runs a collection and adds its cost if automatic collection is stopped.
func (c *collector) collect() {
	if !c.stopped {
		return
	}
	t := bench.CPUTime()
	runtime.GC()
	ns := float64(bench.CPUTime() - t)
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	if c.percent > 0 {
		c.ns += ns / (float64(s[0].Value.Uint64()) * float64(c.percent) / 100)
	}
	c.n++
}

// perByte returns the CPU time that an allocated byte costs later, in ns.
func (c *collector) perByte() float64 { return c.ns / float64(c.n) }

// The states in which a request finds the gateway: it had the previous request of the conversation, or others only, or none.
const warm, first, cold = "warm", "first", "cold"

const window = 8 // warm turns per conversation

// A run measures one template and size.
type run struct {
	model  *prompt.Model
	signer *replay.Signer // the gateway's
	sign   *replay.Signer // the same in the context of the requests
	texts  *corpus
	turns  int // at least
	seed   uint64
	gc     collector // of the state that is measured

	floors   floors
	requests int // of a conversation, so that half of the window is before the size and half after it
}

// calibrate sets the number of requests after which a prompt has size tokens.
func (r *run) calibrate(size int) error {
	v := newConversation(r.texts, r.sign, r.next(), 21)
	front, err := render(r.model, v, 10)
	if err != nil {
		return err
	}
	whole, err := render(r.model, v, 20)
	if err != nil {
		return err
	}
	each := float64(len(whole)-len(front)) / 10
	base := float64(len(front)) - 10*each
	r.requests = int((float64(size)-base)/each+0.5) + window/2 + 1
	if r.requests < window+1 {
		return fmt.Errorf("size of %d tokens: the tools and the system text have %.0f", size, base)
	}
	return nil
}

// next returns a new seed.
func (r *run) next() uint64 {
	r.seed++
	return r.seed
}

// An opener makes a server without any history.
type opener func() (server, error)

// A server runs turns: the gateway, or its stages one by one.
type server interface {
	// take runs one turn and returns the costs of its stages.
	take(v *conversation, k int, m *meter) ([]cost, error)
	// last returns the number of tokens of the last prompt, and how many of them its worker held.
	last() (tokens, cached int)
	streams() []worker
	Close()
}

// costs measures turns by the stages, the rest, the total, and the part of the total that is garbage collection. The servers
// alternate, and a floor is measured after each turn, so that whatever disturbs the machine disturbs all of them. The time
// of a stage includes the collection of its garbage.
func (r *run) costs(state string) ([]cost, error) {
	opens := []opener{
		func() (server, error) { return newHandler(r.model, r.signer) },
		func() (server, error) { return newStages(r.model, r.signer) },
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	var means [2][]cost
	r.gc = collector{}
	for _, memory := range []bool{false, true} {
		m := &meter{memory: memory}
		sources := [2]source{{run: r, state: state, open: opens[0]}, {run: r, state: state, open: opens[1]}}
		sums, n, err := r.means(&sources, m)
		for i := range sources {
			sources[i].close()
		}
		if err != nil {
			return nil, err
		}
		for i := range sums {
			for j := range sums[i] {
				sums[i][j].scale(1 / float64(n))
			}
			addCosts(&means[i], sums[i])
		}
	}
	for i := range means {
		for j := range means[i] {
			means[i][j].ns += means[i][j].bytes * r.gc.perByte()
		}
	}
	total, list := means[0][0], means[1]
	rest, garbage := total, cost{ns: total.bytes * r.gc.perByte()}
	for _, c := range list {
		c.scale(-1)
		rest.add(c)
	}
	return append(list, rest, total, garbage), nil
}

// means measures turns and returns the sums of their costs, and the number of turns. Before time is measured, it runs turns that
// do not count; see internal/bench/README.md.
func (r *run) means(sources *[2]source, m *meter) (sums [2][]cost, n int, err error) {
	if m.memory {
		return r.sums(sources, m, min(r.turns, window)) // it varies little
	}
	if _, _, err := r.sums(sources, new(meter), r.turns); err != nil {
		return sums, 0, err
	}
	if err := r.fill(sources); err != nil {
		return sums, 0, err
	}
	r.gc.stop()
	defer r.gc.start()
	return r.sums(sources, m, r.turns)
}

// fill runs the first turns of conversations until the servers, unless they are for one turn each, keep no more of them.
func (r *run) fill(sources *[2]source) error {
	x, ok := sources[1].s.(*stages)
	if sources[1].state == cold || !ok {
		return nil
	}
	for {
		was, _ := x.memo.Len()
		v := newConversation(r.texts, r.sign, r.next(), r.requests)
		for i := range sources {
			if _, err := sources[i].s.take(v, r.requests-window-1, new(meter)); err != nil {
				return err
			}
		}
		if n, _ := x.memo.Len(); n <= was {
			return nil
		}
	}
}

// sums measures at least some turns of the sources and returns the sums of their costs, and the number of turns.
func (r *run) sums(sources *[2]source, m *meter, least int) (sums [2][]cost, n int, err error) {
	for n < least {
		turns, err := measureEach(sources, m, &sums)
		if err != nil {
			return sums, 0, err
		}
		n += turns
	}
	return sums, n, nil
}

// measureEach adds the costs of some turns of each source to sums and returns their number.
func measureEach(sources *[2]source, m *meter, sums *[2][]cost) (turns int, err error) {
	for i := range sources {
		if turns, err = sources[i].measure(m, &sums[i]); err != nil {
			return 0, err
		}
	}
	return turns, nil
}

// A source of turns in a state. Each cold turn has its own server, which is dropped before the next is opened: a gateway has
// the memory that earlier turns no longer use. Turns in the other states have one server.
type source struct {
	run   *run
	state string
	open  opener
	s     server
}

// measure adds the costs of some turns to sum and returns their number.
func (x *source) measure(m *meter, sum *[]cost) (turns int, err error) {
	measure, turns := x.run.first, 1
	switch x.state {
	case warm:
		measure, turns = x.run.warm, window
	case cold:
		x.close()
		x.run.model.Tokenizer().ResetCache()
	}
	if x.s == nil {
		if x.s, err = x.open(); err != nil {
			return 0, err
		}
	}
	return turns, measure(x.s, m, sum)
}

// close closes the server.
func (x *source) close() {
	if x.s != nil {
		x.s.Close()
		x.s = nil
	}
}

// check checks the gateway's response to one turn.
func (r *run) check() error {
	h, err := newHandler(r.model, r.signer)
	if err != nil {
		return err
	}
	defer h.Close()
	return h.check(newConversation(r.texts, r.sign, r.next(), r.requests), r.requests-1)
}

// warm measures the last turns of a new conversation, as many as window. Its first request is not measured.
func (r *run) warm(s server, m *meter, sum *[]cost) error {
	first := r.requests - window - 1
	v := newConversation(r.texts, r.sign, r.next(), r.requests)
	hashes, err := hashesOf(r.model, v)
	if err != nil {
		return err
	}
	r.gc.collect()
	if _, err := s.take(v, first, new(meter)); err != nil {
		return err
	}
	held := 0
	for k := first + 1; k < r.requests; k++ {
		tokens, _ := s.last()
		holding(s.streams(), hashes, held, tokens/blockSize)
		held = tokens / blockSize
		c, err := s.take(v, k, m)
		if err != nil {
			return err
		}
		if _, cached := s.last(); cached < (held-1)*blockSize {
			return fmt.Errorf("request %d: the worker holds only %d of the last prompt's %d tokens", k, cached, tokens)
		}
		addCosts(sum, c)
		r.floors.measure()
	}
	forget(s.streams())
	return nil
}

// first measures the first request of a new conversation. No cache of prompts knows any part of it.
func (r *run) first(s server, m *meter, sum *[]cost) error {
	v := newConversation(r.texts, r.sign, r.next(), r.requests)
	r.gc.collect()
	c, err := s.take(v, r.requests-1-window/2, m)
	if err == nil {
		addCosts(sum, c)
		r.floors.measure()
	}
	return err
}

// addCosts adds the costs of stages.
func addCosts(sum *[]cost, list []cost) {
	if *sum == nil {
		*sum = make([]cost, len(list))
	}
	for i := range list {
		(*sum)[i].add(list[i])
	}
}
