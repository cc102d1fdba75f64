// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"container/list"
	"time"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
	"github.com/weft-go/weft/router"
)

// The costs of an engine, which routers do not know, in milliseconds.
const (
	perToken     = 0.030 // to compute a prompt token
	perPair      = 3e-7  // for each token before it
	stepBase     = 8.    // of a step with decoding
	stepSequence = 0.12  // for each decoding request
	stepContext  = 8e-6  // for each token of their context
	chunk        = 4096  // prompt tokens in a step
	maxSequences = 128   // requests in a batch
)

// engine is one worker: it computes prompts in order of arrival, in chunks, in the same steps in which it decodes, and
// keeps blocks until it needs the memory, least recently used first.
type engine struct {
	run   *run
	id    index.WorkerID
	slow  float64 // time of a step compared with other engines
	cache cache

	waiting []*job
	batch   []*job // decoding
	busy    bool
}

// job is a request in an engine.
type job struct {
	session *session
	placed  time.Time
	ticket  *router.Ticket
	hashes  []uint64
	length  int // of the prompt in tokens
	output  int // tokens to generate
	started bool
	cached  int // tokens that were cached at the start
	done    int // prompt tokens computed or cached
	made    int // tokens generated
}

func (e *engine) submit(j *job) {
	e.waiting = append(e.waiting, j)
	if !e.busy {
		e.step()
	}
}

// step runs the next step, after which the run continues.
func (e *engine) step() {
	if len(e.waiting) == 0 && len(e.batch) == 0 {
		e.busy = false
		return
	}
	e.busy = true
	var ms float64
	if len(e.batch) > 0 {
		ms += stepBase
		for _, j := range e.batch {
			ms += stepSequence + stepContext*float64(j.length+j.made)
		}
	}
	room, computed := chunk, e.waiting[:0:0]
	for _, j := range e.waiting {
		if room == 0 || len(e.batch)+len(computed) >= maxSequences {
			break
		}
		if !j.started {
			if !e.cache.fits(len(j.hashes)+1, e.active()) {
				break
			}
			j.started = true
			j.cached = min(e.cache.leading(j.hashes)*blockSize, j.length-1)
			j.done = j.cached
		}
		n := min(room, j.length-j.done)
		ms += float64(n) * (perToken + perPair*(float64(j.done)+float64(n)/2))
		j.done += n
		room -= n
		if j.done == j.length {
			computed = append(computed, j)
		}
	}
	if len(e.batch) == 0 && room == chunk { // nothing runs that could release memory
		panic("sim: a prompt is longer than the cache")
	}
	e.run.after(time.Duration(ms*e.slow*1e6), func() { e.end(computed) })
}

// active returns the number of blocks of the requests that have begun.
func (e *engine) active() (n int) {
	for _, list := range [][]*job{e.batch, e.waiting} {
		for _, j := range list {
			if j.started {
				n += len(j.hashes) + 1
			}
		}
	}
	return n
}

// end ends a step: every decoding request has one more token, and prompts that were computed have their first.
func (e *engine) end(computed []*job) {
	now := e.run.now
	rest := e.batch[:0]
	for _, j := range e.batch {
		if j.made++; j.made < j.output {
			rest = append(rest, j)
			continue
		}
		j.ticket.Finish(now, j.cached, j.made)
		e.run.finished(j)
	}
	e.batch = rest
	e.waiting = e.waiting[len(computed):]
	for _, j := range computed {
		j.ticket.FirstToken(now)
		e.run.first(j)
		stored, removed := e.cache.store(j.hashes)
		e.tell(j, stored, removed)
		j.made = 1
		e.batch = append(e.batch, j)
	}
	e.step()
}

// tell sends the events of a prompt to the index, 10 to 50 ms later.
func (e *engine) tell(j *job, stored int, removed []uint64) {
	delay := time.Duration(10+e.run.rnd.IntN(41)) * time.Millisecond
	e.run.after(delay, func() {
		x := e.run.router.Index()
		if len(removed) > 0 {
			x.Add(e.id, &kvevent.Event{Kind: kvevent.Removed, BlockHashes: removed})
		}
		if stored < len(j.hashes) {
			ev := &kvevent.Event{Kind: kvevent.Stored, BlockHashes: j.hashes[stored:], SequenceHashes: j.hashes[stored:]}
			if stored > 0 {
				ev.Parent, ev.HasParent = j.hashes[stored-1], true
			}
			x.Add(e.id, ev)
		}
	})
}

// cache holds the blocks of an engine. The blocks of a prompt are marked as used from the last to the first, so that later
// blocks are evicted first.
type cache struct {
	size   int
	blocks map[uint64]*list.Element // of uint64
	used   list.List                // most recent first
}

// fits reports whether n more blocks are free of those that active requests use.
func (c *cache) fits(n, active int) bool { return active == 0 || active+n <= c.size }

// leading returns how many blocks at the beginning are cached.
func (c *cache) leading(hashes []uint64) int {
	for i, h := range hashes {
		if c.blocks[h] == nil {
			return i
		}
	}
	return len(hashes)
}

// store adds the blocks of a prompt. It returns the number of leading blocks that were present, and the evicted ones.
func (c *cache) store(hashes []uint64) (stored int, removed []uint64) {
	stored = c.leading(hashes)
	for i := len(hashes) - 1; i >= 0; i-- {
		if e := c.blocks[hashes[i]]; e != nil {
			c.used.MoveToFront(e)
		} else {
			c.blocks[hashes[i]] = c.used.PushFront(hashes[i])
		}
	}
	for len(c.blocks) > c.size {
		h := c.used.Remove(c.used.Back()).(uint64)
		delete(c.blocks, h)
		removed = append(removed, h)
	}
	return stored, removed
}

func newCache(size int) cache { return cache{size: size, blocks: make(map[uint64]*list.Element)} }
