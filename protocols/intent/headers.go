// SPDX-License-Identifier: Apache-2.0

package intent

import (
	"strconv"
	"strings"
)

// maxHeader is the longest header value that is read, in bytes. Longer ones are taken for absent.
const maxHeader = 8 << 10

// FromHeaders reads what the headers of a request say. get returns the value of a header by its name, which is given in
// lower case with dashes, and "" if there is none; (http.Header).Get will do. Malformed values are taken for absent.
//
// Session headers are read in this order, the first that names a session wins:
//
//	x-dynamo-session-id, x-dynamo-parent-session-id, x-dynamo-session-final    Dynamo, and harnesses by plugin
//	x-claude-code-session-id, x-claude-code-agent-id, …-parent-agent-id        Claude Code 2.1: an agent shares the
//	                                                                           session id of the one that started it
//	thread-id, x-codex-parent-thread-id, session-id (with originator: codex…)  Codex 0.169
//	x-session-id, x-parent-session-id                                          opencode 1.18
//	session_id                                                                 pi, Responses API only
//
// x-dynamo-request-priority gives Priority, x-tenant-id gives Salt. What a caller may ask is for a policy to decide:
// these are wishes.
func FromHeaders(get func(name string) string) Intent {
	h := func(name string) string {
		v := strings.TrimSpace(get(name))
		if len(v) > maxHeader {
			return ""
		}
		return v
	}
	var in Intent
	if n, err := strconv.ParseInt(h("x-dynamo-request-priority"), 10, 32); err == nil {
		in.Priority = int32(n)
	}
	in.Salt = h("x-tenant-id")
	in.Session = session(h)
	if in.Session.Parent == in.Session.ID {
		in.Session.Parent = ""
	}
	return in
}

// session reads the identity headers.
func session(h func(string) string) Session {
	if id := h("x-dynamo-session-id"); id != "" {
		final, _ := strconv.ParseBool(h("x-dynamo-session-final"))
		return Session{ID: id, Parent: h("x-dynamo-parent-session-id"), Final: final, Harness: "dynamo"}
	}
	if id := h("x-claude-code-session-id"); id != "" {
		s := Session{ID: id, Harness: "claude-code"}
		if agent := h("x-claude-code-agent-id"); agent != "" {
			s.ID, s.Parent = id+"/"+agent, id
			if parent := h("x-claude-code-parent-agent-id"); parent != "" {
				s.Parent = id + "/" + parent
			}
		}
		return s
	}
	codex := strings.HasPrefix(h("originator"), "codex") || h("x-codex-window-id") != ""
	if id := h("thread-id"); id != "" && codex {
		s := Session{ID: id, Parent: h("x-codex-parent-thread-id"), Harness: "codex"}
		if s.Parent == "" {
			s.Parent = h("session-id") // the root thread has the id of the session
		}
		return s
	}
	if id := h("session-id"); id != "" && codex {
		return Session{ID: id, Harness: "codex"}
	}
	if id := h("x-session-id"); id != "" {
		return Session{ID: id, Parent: h("x-parent-session-id"), Harness: "opencode"}
	}
	if id := h("session_id"); id != "" {
		return Session{ID: id, Harness: "pi"}
	}
	return Session{}
}
