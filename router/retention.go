// SPDX-License-Identifier: Apache-2.0

package router

import (
	"slices"

	"github.com/weft-go/weft/protocols/intent"
)

// This file finds blocks that no request will need again, for Options.Drop: the blocks of a session after its last request, of a
// conversation after a response that replaces it, and of sub-agents after their parent has continued. Blocks that other sessions
// use are not among them: blocks that any worker held when the session began, blocks that a worker held when another session began
// that has not ended, and blocks before breakpoints in tools and the first turn, which are instructions.

// retire is called when a request of session s was placed; known reports whether it is not the first.
func (m *machine) retire(t *Ticket, s *session, known bool, e *evaluation, req *Request) {
	in := &req.Intent
	if in.Session.Final {
		defer m.sessions.drop(s)
	}
	if m.opt.Drop == nil {
		return
	}
	if !known {
		for i := range e.found {
			s.shared = max(s.shared, int(e.found[i].Depth))
		}
		for i := range in.Breakpoints {
			if b := &in.Breakpoints[i]; b.Tool >= 0 || b.Turn == 0 && !b.Auto {
				s.shared = max(s.shared, b.Tokens/m.index.BlockSize())
			}
		}
		if n := min(s.shared, len(req.Hashes)); n > 0 {
			s.mark = req.Hashes[n-1]
			m.sessions.count(s.mark, 1)
		}
	}
	if in.Session.Final || in.Compaction != nil || in.Evict&intent.EvictSession != 0 {
		t.last, t.shared = slices.Clone(req.Hashes), s.shared
	}
	if in.Trigger == intent.ToolResult { // of the sub-agents, unless they run in the background
		for _, c := range s.children {
			if c.running == 0 {
				m.drop(c.prompt, c.shared)
				c.prompt = nil
			}
		}
	}
	s.children = s.children[:0]
	if in.Session.Parent == "" {
		return
	}
	if p := m.sessions.byName[name{in.Salt, in.Session.Parent}]; p != nil && !slices.Contains(p.children, s) {
		p.children = append(p.children, s)
	}
	s.prompt = append(s.prompt[:0], req.Hashes...)
	s.running++
	t.child = s
}

// leave is called when the request ends.
func (t *Ticket) leave() {
	if t.child != nil {
		t.child.running--
		if t.last != nil {
			t.child.prompt = nil
		}
		t.child = nil
	}
}

// drop reports the blocks of a prompt from number shared on, except those that sessions in progress share, to the owner of each
// worker that holds them.
func (m *machine) drop(hashes []uint64, shared int) {
	if len(hashes) <= shared {
		return
	}
	if shared = max(shared, m.sessions.shared(hashes)); len(hashes) <= shared {
		return
	}
	for _, w := range m.index.AppendMatches(nil, hashes) {
		if n := int(w.Depth); n > shared && m.find(w.Worker) >= 0 {
			m.opt.Drop(w.Worker, hashes[shared:n:n])
		}
	}
}
