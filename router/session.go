// SPDX-License-Identifier: Apache-2.0

package router

import (
	"time"

	"github.com/weft-go/weft/protocols/intent"
)

// sessions stores the worker of the last request of each session, for a bounded number of sessions.
type sessions struct {
	keep           time.Duration
	limit          int
	byName         map[name]*session
	newest, oldest *session // list by last use

	marks map[uint64]int // number of sessions by their mark
}

// name identifies a session. Sessions of tenants with isolated caches never have the same name.
type name struct{ salt, id string }

type session struct {
	name         name
	worker       *worker
	until        time.Time
	newer, older *session

	// With Options.Drop.
	shared   int        // leading blocks of its prompts that earlier sessions also use
	mark     uint64     // hash of the last of these; 0 if there are none
	children []*session // that it has started since its last request
	prompt   []uint64   // of the last request, if it has a parent
	running  int        // requests, if it has a parent
}

// get returns the session of a request, or nil.
func (s *sessions) get(in *intent.Intent, now time.Time) *session {
	e := s.byName[name{in.Salt, in.Session.ID}]
	if e == nil || !now.Before(e.until) {
		return nil
	}
	return e
}

// put stores the worker of a request of the session, and reports whether the session was known. It returns nil if the request
// has no session.
func (s *sessions) put(in *intent.Intent, worker *worker, now time.Time) (e *session, known bool) {
	if in.Session.ID == "" {
		return nil, false
	}
	n := name{in.Salt, in.Session.ID}
	if e = s.get(in, now); e == nil {
		e = &session{name: n}
	} else {
		known = true
	}
	if old := s.byName[n]; old != nil {
		s.drop(old)
	}
	for s.oldest != nil && (len(s.byName) >= s.limit || !now.Before(s.oldest.until)) {
		s.drop(s.oldest)
	}
	if s.byName == nil {
		s.byName = make(map[name]*session)
	}
	e.worker, e.until, e.newer, e.older = worker, now.Add(s.keep), nil, s.newest
	if s.newest != nil {
		s.newest.newer = e
	} else {
		s.oldest = e
	}
	s.newest = e
	s.byName[n] = e
	s.count(e.mark, 1)
	return e, known
}

// count adds n to the number of sessions with a mark.
func (s *sessions) count(mark uint64, n int) {
	if mark == 0 {
		return
	}
	if s.marks == nil {
		s.marks = make(map[uint64]int)
	}
	if s.marks[mark] += n; s.marks[mark] == 0 {
		delete(s.marks, mark)
	}
}

// shared returns the number of leading blocks of a prompt that sessions share with earlier ones.
func (s *sessions) shared(hashes []uint64) int {
	if len(s.marks) == 0 {
		return 0
	}
	for i := len(hashes) - 1; i >= 0; i-- {
		if s.marks[hashes[i]] > 0 {
			return i + 1
		}
	}
	return 0
}

func (s *sessions) drop(e *session) {
	delete(s.byName, e.name)
	s.count(e.mark, -1)
	if e.newer != nil {
		e.newer.older = e.older
	} else {
		s.newest = e.older
	}
	if e.older != nil {
		e.older.newer = e.newer
	} else {
		s.oldest = e.newer
	}
}
