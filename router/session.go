// SPDX-License-Identifier: Apache-2.0

package router

import (
	"time"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/protocols/intent"
)

// sessions remembers, for a bounded number of sessions, where each one's last request went. Workers are remembered by key, as
// numbers are used again.
type sessions struct {
	keep           time.Duration
	limit          int
	byName         map[name]*session
	newest, oldest *session // list by last use
}

// name is a session's identity. Sessions of tenants with isolated caches never share a key, even by accident.
type name struct{ salt, id string }

type session struct {
	name         name
	worker       index.Key
	until        time.Time
	newer, older *session
}

// worker returns where the last request of the session went.
func (s *sessions) worker(in *intent.Intent, now time.Time) (index.Key, bool) {
	e := s.byName[name{in.Salt, in.Session.ID}]
	if e == nil || !now.Before(e.until) {
		return index.Key{}, false
	}
	return e.worker, true
}

// put notes where a request of the session goes. Its final request makes it forgotten.
func (s *sessions) put(in *intent.Intent, worker index.Key, now time.Time) {
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
