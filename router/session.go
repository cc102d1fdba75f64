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
}

// name identifies a session. Sessions of tenants with isolated caches never have the same name.
type name struct{ salt, id string }

type session struct {
	name         name
	worker       *worker
	until        time.Time
	newer, older *session
}

// worker returns the worker of the session's last request, or nil.
func (s *sessions) worker(in *intent.Intent, now time.Time) *worker {
	e := s.byName[name{in.Salt, in.Session.ID}]
	if e == nil || !now.Before(e.until) {
		return nil
	}
	return e.worker
}

// put stores the worker of a request of the session. The session's final request removes it.
func (s *sessions) put(in *intent.Intent, worker *worker, now time.Time) {
	if in.Session.ID == "" {
		return
	}
	n := name{in.Salt, in.Session.ID}
	if e := s.byName[n]; e != nil {
		s.drop(e)
	}
	if in.Session.Final {
		return
	}
	for s.oldest != nil && (len(s.byName) >= s.limit || !now.Before(s.oldest.until)) {
		s.drop(s.oldest)
	}
	if s.byName == nil {
		s.byName = make(map[name]*session)
	}
	e := &session{name: n, worker: worker, until: now.Add(s.keep), older: s.newest}
	if s.newest != nil {
		s.newest.newer = e
	} else {
		s.oldest = e
	}
	s.newest = e
	s.byName[n] = e
}

func (s *sessions) drop(e *session) {
	delete(s.byName, e.name)
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
