// SPDX-License-Identifier: Apache-2.0

package intent

import (
	"encoding/json"
	"strings"
)

// The session headers and fields of harnesses, as captured from Claude Code 2.1.330, Codex 0.169, opencode 1.18.33 and
// pi with the OpenAI SDK 6.26, and as Dynamo reads them. OpenClaw names its session only in the text of the user
// message, which is not read, and sends a traceparent per request; SDKs do not name a session.

// agents lists the harnesses that identify themselves, with the prefix of their User-Agent or Originator header.
var agents = []struct{ prefix, harness string }{
	{"claude-cli/", "claude-code"},
	{"claude-code/", "claude-code"},
	{"codex", "codex"},
	{"opencode/", "opencode"},
}

func (r *reader) harness() {
	name := ""
	for _, a := range agents {
		if strings.HasPrefix(r.head["user-agent"], a.prefix) || strings.HasPrefix(r.head["originator"], a.prefix) {
			name = a.harness
			break
		}
	}
	// Call all of them, because each also identifies its harness when the session is already known.
	for _, read := range []func(name string) string{r.claudeCode, r.codex, r.deepseek, r.opencode, r.pi} {
		if found := read(name); name == "" {
			name = found
		}
	}
	if name != "" && r.take(hintHarness) {
		r.in.Session.Harness = name
	}
	if name != "codex" { // where it is the ID of the thread
		r.str(hintRequestID, &r.in.RequestID, r.header("x-client-request-id"))
	}
}

func (r *reader) claudeCode(string) string {
	root := r.header("x-claude-code-session-id").word()
	if root == "" && r.src.API == "messages" {
		root = claudeSession(r.body("metadata", "user_id").word())
	}
	if root == "" {
		return ""
	}
	s := Session{ID: root, Root: root}
	if agent := r.header("x-claude-code-agent-id").word(); agent != "" && agent != root {
		s.ID, s.Parent = root+"/"+agent, root
		if parent := r.header("x-claude-code-parent-agent-id").word(); parent != "" && parent != agent && parent != root {
			s.Parent = root + "/" + parent
		}
	}
	r.session(s)
	return "claude-code"
}

// claudeSession returns the session ID in Claude Code's metadata.user_id: a field of a JSON object in a string or, in
// older versions, the text after _session_.
func claudeSession(user string) string {
	if strings.HasPrefix(user, "{") {
		var m map[string]json.RawMessage
		var id string
		if json.Unmarshal([]byte(user), &m) == nil && json.Unmarshal(m["session_id"], &id) == nil && textFault(id) == "" {
			return id
		}
		return ""
	}
	if head, id, ok := strings.Cut(user, "_session_"); ok && strings.HasPrefix(head, "user_") && strings.Contains(head, "_account_") {
		return id
	}
	return ""
}

func (r *reader) codex(name string) string {
	first := func(header, member string) string {
		if s := r.header(header).word(); s != "" {
			return s
		}
		if name != "codex" { // another client may give client_metadata another meaning
			return ""
		}
		return r.body("client_metadata", member).word()
	}
	if r.head["x-codex-window-id"] != "" || r.head["x-codex-turn-metadata"] != "" || r.body("client_metadata", "x-codex-turn-metadata").ok {
		name = "codex"
	}
	if name != "codex" {
		return ""
	}
	meta := r.header("x-codex-turn-metadata")
	if !meta.ok {
		if v := r.body("client_metadata", "x-codex-turn-metadata"); v.ok && len(v.text) <= 2*maxHeader {
			var s string
			if json.Unmarshal([]byte(v.text), &s) == nil {
				meta = value{r: r, where: v.where, text: s, ok: s != ""}
			}
		}
	}
	m := meta.object()
	or := func(s, member string) string {
		if s == "" {
			return meta.member(m, member).word()
		}
		return s
	}
	s := Session{
		ID: or(first("thread-id", "thread_id"), "thread_id"), Root: or(first("session-id", "session_id"), "session_id"),
		Parent: or(first("x-codex-parent-thread-id", "x-codex-parent-thread-id"), "parent_thread_id"),
	}
	if s.Root == "" {
		s.Root = r.header("session_id").word() // older versions
	}
	if s.ID == "" {
		s.ID = s.Root
	}
	if s.Parent == "" {
		s.Parent = s.Root // the root thread has the ID of the session
	}
	r.session(s)
	for _, x := range []struct {
		hint hint
		to   *string
		text string
	}{
		{hintAgent, &r.in.Session.Agent, or(r.header("x-openai-subagent").word(), "subagent_kind")},
		{hintTurn, &r.in.Session.Turn, or("", "turn_id")},
		{hintWindow, &r.in.Session.Window, or(first("x-codex-window-id", "x-codex-window-id"), "window_id")},
	} {
		if x.text != "" && r.take(x.hint) {
			*x.to = x.text
		}
	}
	if or("", "request_kind") == "compaction" && r.take(hintCompaction) {
		r.in.Compaction = meta.compaction(m["compaction"])
	}
	return "codex"
}

// compaction reads the details of a compaction, if present.
func (v value) compaction(raw json.RawMessage) map[string]string {
	c := make(map[string]string)
	if len(raw) == 0 || string(raw) == "null" {
		return c
	}
	in := value{r: v.r, where: v.where + ".compaction", text: string(raw), json: true, ok: true}
	m := in.object()
	for _, name := range compactionNames {
		if text := in.member(m, name).word(); text != "" {
			c[name] = text
		}
	}
	return c
}

func (r *reader) deepseek(string) string {
	id := r.header("x-deepseek-harness-session-id").word()
	if id == "" {
		return ""
	}
	r.session(Session{ID: id, Parent: r.header("x-deepseek-harness-parent-session-id").word()})
	if r.head["x-deepseek-harness-compact"] == "1" && r.take(hintCompaction) {
		r.in.Compaction = map[string]string{}
	}
	return "deepseek"
}

func (r *reader) opencode(name string) string {
	id, affinity := r.header("x-session-id").word(), r.header("x-session-affinity").word()
	if id == "" {
		id = affinity
	}
	r.session(Session{ID: id, Parent: r.header("x-parent-session-id").word()})
	if name == "" && affinity != "" && affinity == id {
		return "opencode"
	}
	return ""
}

func (r *reader) pi(name string) string {
	id := r.header("session_id").word()
	if id == "" || name != "" {
		return ""
	}
	r.session(Session{ID: id})
	return "pi"
}
