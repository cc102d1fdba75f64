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
	byID           map[string]*session
	newest, oldest *session // list by last use
}

type session struct {
	id           string
	worker       index.Key
	until        time.Time
	newer, older *session
}

// worker returns where the last request of the session went.
func (s *sessions) worker(id string, now time.Time) (index.Key, bool) {
	e := s.byID[id]
	if e == nil || !now.Before(e.until) {
		return index.Key{}, false
	}
	return e.worker, true
}

// put notes where a request of the session goes. Its final request makes it forgotten.
func (s *sessions) put(in intent.Session, worker index.Key, now time.Time) {
	if in.ID == "" {
		return
	}
	if e := s.byID[in.ID]; e != nil {
		s.drop(e)
	}
	if in.Final {
		return
	}
	for s.oldest != nil && (len(s.byID) >= s.limit || !now.Before(s.oldest.until)) {
		s.drop(s.oldest)
	}
	if s.byID == nil {
		s.byID = make(map[string]*session)
	}
	e := &session{id: in.ID, worker: worker, until: now.Add(s.keep), older: s.newest}
	if s.newest != nil {
		s.newest.newer = e
	} else {
		s.oldest = e
	}
	s.newest = e
	s.byID[in.ID] = e
}

func (s *sessions) drop(e *session) {
	delete(s.byID, e.id)
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
