// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"time"

	"github.com/weft-go/weft/router/internal/learn"
	"github.com/weft-go/weft/router/policy"
)

// Entry is one request in a [Ledger]. Set the exported fields, then pass it to [Ledger.Reserve]; do not copy or change it
// after that.
type Entry struct {
	Prefill time.Duration // estimated time of its prefill
	Tokens  int           // to be computed before the first token
	Blocks  int           // KV blocks that no other request shares: the end of the prompt, and the expected output
	Marks   []uint64      // sequence hashes of blocks of the prompt, one every [Ledger.Stride] blocks; read by Reserve only

	shared     *prefix
	period     *Period
	own        Period // the period that it begins, if it does
	phase      phase
	prev, next *Entry // in the line of prefills
}

// Period is a time in which a worker had prefills without pause: those of its Members, which got their first tokens in it, and
// no others.
type Period struct {
	Begin, End time.Time // End is zero while it lasts
	Members    int
	Steps      int  // times of their first tokens: prefills that an engine computes together have one base time
	Broken     bool // a request left without a first token, or its cached tokens are unknown

	Work     learn.Work // of the members that were reported
	Reported int
}

// maxMembers limits the prefills of a period. Another one follows at once.
const maxMembers = 16

type phase uint8

const (
	idle phase = iota
	prefill
	decode
	released
)

// Ledger tracks the load of one worker. The zero value is empty and ready for use. A Ledger is not safe for concurrent
// use.
type Ledger struct {
	// Stride is the number of blocks between the marks of entries, which share blocks in units of it. Without marks it has no effect.
	Stride int

	sum        policy.Load // without Free and Pending
	marks      prefixes
	pending    time.Duration
	head, tail *Entry    // line of prefills, in order of Reserve
	since      time.Time // when head came to the head
	period     *Period   // that lasts
	last       time.Time // of a first token in it
}

// sameStep is the longest time between first tokens of one step of an engine.
const sameStep = time.Millisecond

// Load returns the load.
func (l *Ledger) Load() policy.Load {
	s := l.sum
	if l.head != nil {
		// The head may take longer than estimated; its remaining time is then 0.
		s.Free, s.Pending = l.since.Add(l.head.Prefill), l.pending-l.head.Prefill
	}
	return s
}

// Reserve adds e, which must be new.
func (l *Ledger) Reserve(e *Entry, now time.Time) {
	if e.phase != idle {
		panic("ledger: entry reserved twice")
	}
	e.Prefill = max(e.Prefill, 0)
	e.phase = prefill
	if l.tail == nil {
		l.head, l.since = e, now
		e.own = Period{Begin: now}
		l.period = &e.own
	} else {
		l.tail.next, e.prev = e, l.tail
	}
	l.tail = e
	l.pending += e.Prefill
	l.sum.Prefills++
	l.sum.Tokens += e.Tokens
	l.sum.Blocks += e.Blocks
	l.sum.Blocks -= l.Stride * l.marks.distinct
	e.shared = l.marks.add(e.Marks)
	l.sum.Blocks += l.Stride * l.marks.distinct
}

// FirstToken ends the prefill of e. It reports whether e was waiting for it.
func (l *Ledger) FirstToken(e *Entry, now time.Time) bool {
	if e.phase != prefill {
		return false
	}
	e.period = l.period
	e.period.Members++
	if e.period.Members == 1 || now.Sub(l.last) > sameStep {
		e.period.Steps++
	}
	l.last = now
	l.leave(e, now)
	e.phase = decode
	switch {
	case l.head == nil:
		e.period.End, l.period = now, nil
	case e.period.Members >= maxMembers:
		e.period.End, l.period = now, &Period{Begin: now}
	}
	l.sum.Decodes++
	return true
}

// Release removes e. It reports whether e was present.
func (l *Ledger) Release(e *Entry, now time.Time) bool {
	switch e.phase {
	case prefill:
		l.period.Broken = true
		l.leave(e, now)
	case decode:
		l.sum.Decodes--
	default:
		return false
	}
	if l.head == nil {
		l.period = nil
	}
	e.phase = released
	l.sum.Blocks -= e.Blocks
	l.sum.Blocks -= l.Stride * l.marks.distinct
	l.marks.remove(e.shared)
	l.sum.Blocks += l.Stride * l.marks.distinct
	e.shared = nil
	return true
}

// Period returns the period in which e got its first token, or nil if it has none.
func (e *Entry) Period() *Period { return e.period }

// Prefilling reports whether e waits for its first token.
func (e *Entry) Prefilling() bool { return e.phase == prefill }

// leave removes e from the line.
func (l *Ledger) leave(e *Entry, now time.Time) {
	if e.prev == nil {
		l.head, l.since = e.next, now
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		l.tail = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
	l.pending -= e.Prefill
	l.sum.Prefills--
	l.sum.Tokens -= e.Tokens
}
