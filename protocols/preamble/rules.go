// SPDX-License-Identifier: Apache-2.0

package preamble

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// where is a set of kinds of segments that a rule examines. In JSON it is a list of their names.
type where uint8

const (
	inSystem where = 1 << iota
	inTools        // descriptions of tools
	inUser         // user turns and reminders, which are never changed
)

var whereNames = [...]string{"system", "tools", "user"}

func (w where) MarshalJSON() ([]byte, error) {
	list := []string{}
	for i, name := range whereNames {
		if w&(1<<i) != 0 {
			list = append(list, name)
		}
	}
	return json.Marshal(list)
}

func (w *where) UnmarshalJSON(data []byte) error {
	var list []string
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	*w = 0
	for _, name := range list {
		i := slices.Index(whereNames[:], name)
		if i < 0 {
			return fmt.Errorf("in: %q is not %s", name, strings.Join(whereNames[:], ", "))
		}
		*w |= 1 << i
	}
	return nil
}

// pointerText replaces a value that moved.
const pointerText = "(see the end)"

// Rules describe the fragments of harnesses' prompts that differ between users, directories, days or turns. They are
// tried in order on every line; the first that matches is used. [DefaultRules] returns the rules for known harnesses,
// [ParseRules] parses rules from JSON, and append combines them. Marshaled to JSON, they are a list of objects with
// these fields:
//
//	id         unique, for example claude-code/memory-dir
//	harness    the harness that writes the fragment, and the version it was observed in
//	in         where the rule applies: a list of system, tools (descriptions) and user (turns and reminders, which are never
//	           changed, whatever the action)
//	line       a line matches if it begins with this, after blanks and a list mark; in the description of a tool it may be
//	           anywhere in the line
//	has        and contains this
//	end        the fragment extends through the first line, this one or a later one, that begins with this, after blanks. Without
//	           such a line there is no match
//	paragraph  true: and from there to the next blank line or the end
//	from, to   bounds of the value within the line: it is between the first from and the next to; an empty to is the end of the line
//	cause      as in [Divergence], or a text of your own
//	class      how long the fragment stays the same: static, session, turn or volatile, as in [Divergence]
//	action     what Options.Relocate does: move, the lines move to the end of the system text; point, the value moves and
//	           "(see the end)" replaces it; absent, the fragment stays, and the rule only names it
//	pointer    the text that replaces lines that moved, as a line of its own
//	label      the text before the value at the end of the system text; if absent, the whole line is repeated there
type Rules []rule

type rule struct {
	ID        string `json:"id"`
	Harness   string `json:"harness,omitempty"`
	Where     where  `json:"in"`
	Line      string `json:"line"`
	Has       string `json:"has,omitempty"`
	End       string `json:"end,omitempty"`
	Paragraph bool   `json:"paragraph,omitempty"`
	From      string `json:"from,omitempty"`
	To        string `json:"to,omitempty"`
	Cause     string `json:"cause"`
	Class     string `json:"class"`
	Action    string `json:"action,omitempty"`
	Pointer   string `json:"pointer,omitempty"`
	Label     string `json:"label,omitempty"`
}

// ParseRules returns the rules in a JSON list, as the comment of [Rules] describes it. Unknown fields are errors.
func ParseRules(data []byte) (Rules, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var list Rules
	if err := d.Decode(&list); err != nil {
		return nil, fmt.Errorf("preamble: rules: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("preamble: rules: data after the list")
	}
	for i := range list {
		if problem := list[i].problem(); problem != "" {
			return nil, fmt.Errorf("preamble: rule %d %q: %s", i, list[i].ID, problem)
		}
	}
	return list, nil
}

// problem returns the reason why a rule is invalid, or "".
func (r *rule) problem() string {
	switch {
	case r.ID == "":
		return "no id"
	case r.Where == 0:
		return "in is empty"
	case r.Line == "":
		return "no line"
	case r.Cause == "":
		return "no cause"
	case r.Class != classStatic && r.Class != classSession && r.Class != classTurn && r.Class != classVolatile:
		return fmt.Sprintf("class %q is not static, session, turn or volatile", r.Class)
	case r.Action != actKeep && r.Action != actMove && r.Action != actPoint:
		return fmt.Sprintf("action %q is neither move nor point", r.Action)
	case r.Action == actPoint && r.From == "":
		return "action point needs from"
	}
	return ""
}

// DefaultRules returns the rules for Claude Code 2.1.330, Codex 0.169, OpenCode 1.18, OpenClaw and pi, from recorded
// requests, and for Claude Code 2.1.112 and 1.0.128, from descriptions. Each call returns a new slice, which the caller
// may modify.
func DefaultRules() Rules {
	return Rules{
		{
			ID: "claude-code/memory-dir", Harness: "Claude Code 2.1", Where: inSystem, Line: "You have a persistent", Has: "/memory/`",
			From: "`", To: "`", Cause: causeMemoryPath, Class: classSession, Action: actPoint, Label: "Memory directory: ",
		},
		{
			ID: "claude-code/git-status", Harness: "Claude Code 1.0, 2.1.112", Where: inSystem, Line: "gitStatus:", End: "Recent commits:",
			Paragraph: true, Cause: causeGitStatus, Class: classSession, Action: actMove,
		},
		{
			ID: "claude-code/git-reminder", Harness: "Claude Code 2.1.330", Where: inUser, Line: "# gitStatus", End: "Recent commits:",
			Paragraph: true, Cause: causeGitStatus, Class: classSession,
		},
		{ID: "claude-code/project-file", Harness: "Claude Code", Where: inUser, Line: "Contents of /", Cause: causeProjectFile, Class: classSession},
		{
			ID: "env-block", Harness: "Claude Code 1.0, OpenCode", Where: inSystem, Line: "<env>", End: "</env>",
			Cause: causeEnvironment, Class: classSession, Action: actMove, Pointer: pointerText,
		},
		cwd("claude-code/cwd", "Claude Code 2.1", "Primary working directory: "),
		cwd("cwd", "Claude Code, OpenCode, OpenClaw", "Working directory: "),
		cwd("pi/cwd", "pi", "Current working directory: "),
		cwd("opencode/root", "OpenCode", "Workspace root folder: "),
		line("claude-code/is-git", "Claude Code 2.1", "Is a git repository: ", causeEnvironment),
		line("env/is-git", "Claude Code 1.0, OpenCode", "Is directory a git repo: ", causeEnvironment),
		line("env/platform", "Claude Code, OpenCode", "Platform: ", causeEnvironment),
		line("env/os", "Claude Code", "OS Version: ", causeEnvironment),
		line("claude-code/date", "Claude Code 2.1", "Today's date is ", causeDate),
		line("env/date", "Claude Code 1.0, OpenCode", "Today's date: ", causeDate),
		line("current-date", "OpenClaw, pi", "Current date: ", causeDate),
		{ID: "openclaw/time", Harness: "OpenClaw, older", Where: inSystem, Line: "Current time: ", Cause: causeDate, Class: classTurn, Action: actMove},
		{ID: "openclaw/runtime", Harness: "OpenClaw", Where: inSystem | inUser, Line: "Runtime: agent=", Cause: causeEnvironment, Class: classTurn, Action: actMove},
		{
			ID: "openclaw/memory-scope", Harness: "OpenClaw", Where: inSystem, Line: "For every repository-specific memory entry",
			Has: "project: path:", From: "project: path:", To: " -->", Cause: causeWorkingDir, Class: classSession, Action: actPoint, Label: "Project path: ",
		},
		{ID: "openclaw/missing-file", Harness: "OpenClaw", Where: inSystem, Line: "[MISSING] Expected at: ", Cause: causeProjectFile, Class: classSession},
		{ID: "project-file", Harness: "OpenClaw, pi", Where: inSystem, Line: "## /", Has: ".md", Cause: causeProjectFile, Class: classSession},
		{ID: "opencode/project-file", Harness: "OpenCode", Where: inSystem, Line: "Instructions from: ", Cause: causeProjectFile, Class: classSession},
		{
			ID: "opencode/temp-dir", Harness: "OpenCode 1.18", Where: inTools, Line: "Use `/", Has: "` for temporary work",
			From: "`", To: "`", Cause: causeTempDir, Class: classSession, Action: actPoint, Label: "Directory for temporary work: ",
		},
		{
			ID: "codex/skill-root", Harness: "Codex 0.169", Where: inSystem, Line: "`r", Has: "` = `/", From: "= `", To: "`",
			Cause: causeSkillRoot, Class: classSession, Action: actPoint,
		},
		{ID: "codex/project-file", Harness: "Codex", Where: inUser, Line: "# AGENTS.md instructions for ", Cause: causeProjectFile, Class: classSession},
		{ID: "codex/cwd", Harness: "Codex", Where: inUser, Line: "<cwd>", Cause: causeWorkingDir, Class: classSession},
		{ID: "codex/date", Harness: "Codex", Where: inUser, Line: "<current_date>", Cause: causeDate, Class: classSession},
		{ID: "codex/timezone", Harness: "Codex", Where: inUser, Line: "<timezone>", Cause: causeEnvironment, Class: classSession},
		{ID: "codex/shell", Harness: "Codex", Where: inUser, Line: "<shell>", Cause: causeEnvironment, Class: classSession},
		{ID: "codex/roots", Harness: "Codex", Where: inUser, Line: "<filesystem>", Cause: causeWorkingDir, Class: classSession},
	}
}

// cwd returns a rule for a line that contains the working directory. Later sentences may refer to the line, so only its
// value moves.
func cwd(id, harness, prefix string) rule {
	return rule{
		ID: id, Harness: harness, Where: inSystem | inUser, Line: prefix, From: prefix,
		Cause: causeWorkingDir, Class: classSession, Action: actPoint,
	}
}

// line returns a rule for a line that moves as a whole.
func line(id, harness, prefix string, cause string) rule {
	return rule{ID: id, Harness: harness, Where: inSystem | inUser, Line: prefix, Cause: cause, Class: classSession, Action: actMove}
}

// fragment is a match: text[off:end], whole lines with their newline, and the value within.
type fragment struct {
	rule           *rule
	off, end       int
	valOff, valEnd int // the value, or the fragment without its newline if the rule has no From
}

// tailMark is the line before the moved text at the end of the system text.
const tailMark = "# About this session"

// scanner finds fragments in one text.
type scanner struct {
	rules Rules
	where where
	gone  []bool // rules whose End does not occur in the rest of the text
}

// find appends the fragments of text, in order, up to the mark of Relocate. It also returns the offset of the mark, or
// -1.
//
// Cost: every line is compared with the start of every rule. The search for an End that does not occur is done only
// once.
func (s *scanner) find(dst []fragment, text string) ([]fragment, int) {
	s.gone = nil
	for off := 0; off < len(text); {
		end := lineEnd(text, off)
		if s.where == inSystem && strings.HasPrefix(text[off:], tailMark) && strings.TrimSpace(text[off:end]) == tailMark {
			return dst, off
		}
		if f, ok := s.at(text, off, end); ok {
			dst = append(dst, f)
			end = f.end
		}
		off = end
	}
	return dst, -1
}

// lineEnd returns the end of the line at off, including its newline.
func lineEnd(text string, off int) int {
	if i := strings.IndexByte(text[off:], '\n'); i >= 0 {
		return off + i + 1
	}
	return len(text)
}

// at returns the fragment that starts at the line text[off:end], if a rule matches it.
func (s *scanner) at(text string, off, end int) (fragment, bool) {
	line := text[off:end]
	body := strings.TrimLeft(line, " \t")
	body = strings.TrimPrefix(body, "- ")
	start := end - len(body) // of the line without blanks and list mark
	for i := range s.rules {
		r := &s.rules[i]
		if r.Where&s.where == 0 || r.Line == "" {
			continue
		}
		from := start
		if s.where == inTools {
			k := strings.Index(body, r.Line)
			if k < 0 {
				continue
			}
			from += k
		} else if !strings.HasPrefix(body, r.Line) {
			continue
		}
		if r.Has != "" && !strings.Contains(text[from:end], r.Has) {
			continue
		}
		f := fragment{rule: r, off: off, end: end, valOff: off}
		if r.From != "" {
			k := strings.Index(text[from:end], r.From)
			if k < 0 {
				continue
			}
			v := from + k + len(r.From)
			n := strings.Index(text[v:end], r.To)
			if r.To == "" {
				n = len(strings.TrimRight(text[v:end], "\r\n"))
			}
			if n <= 0 || text[v:v+n] == pointerText { // empty, or already moved
				continue
			}
			f.valOff, f.valEnd = v, v+n
		}
		if r.End != "" { // last, so that a successful search for End is never repeated
			last, ok := s.last(text, off, i)
			if !ok {
				continue
			}
			f.end = last
		}
		if r.From == "" {
			f.valEnd = f.off + len(strings.TrimRight(text[f.off:f.end], "\r\n"))
		}
		return f, true
	}
	return fragment{}, false
}

// last returns the end of a fragment with an End.
func (s *scanner) last(text string, off, rule int) (int, bool) {
	r := &s.rules[rule]
	if s.gone != nil && s.gone[rule] {
		return 0, false
	}
	for at := off; at < len(text); {
		end := lineEnd(text, at)
		if strings.HasPrefix(strings.TrimLeft(text[at:end], " \t"), r.End) {
			for r.Paragraph && end < len(text) {
				next := lineEnd(text, end)
				if strings.TrimSpace(text[end:next]) == "" {
					break
				}
				end = next
			}
			return end, true
		}
		at = end
	}
	if s.gone == nil {
		s.gone = make([]bool, len(s.rules))
	}
	s.gone[rule] = true
	return 0, false
}
