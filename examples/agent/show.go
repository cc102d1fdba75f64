// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode"
)

// A notice is an event of a turn.
type notice struct {
	turn int
	at   time.Duration // since the request
	kind string        // reasoning, text, start (of a tool), result, abort, broke (the stream), end
	call *call         // of start, result and abort
	text string        // output, arguments, result or reason
}

// A screen prints notices as text or JSON lines. It is safe for concurrent use by multiple goroutines and keeps the
// first error of w.
type screen struct {
	w    io.Writer
	json bool
	dim  bool // w is a terminal

	mu    sync.Mutex
	kind  string   // kind of the unfinished line, or ""
	later []notice // results to print at the end of a word
	err   error
}

func (s *screen) see(n notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.json:
		o := object{"turn": n.turn, "at": n.at.Seconds(), "kind": n.kind, "text": n.text}
		if n.call != nil {
			o["id"], o["name"] = n.call.id, n.call.name
		}
		if n.kind == "result" {
			o["took"], o["failed"] = n.call.took.Seconds(), n.call.failed
		}
		s.line(o)
	case n.kind == "reasoning", n.kind == "text":
		s.words(n.kind, n.text)
	case n.kind == "result" && s.kind != "":
		s.later = append(s.later, n)
	default:
		s.fresh()
		s.row(n)
	}
}

// words prints reasoning or text.
func (s *screen) words(kind, text string) {
	if s.kind != kind || s.later != nil && strings.IndexAny(text, " \n") == 0 {
		s.fresh()
		text = strings.TrimLeft(text, " \n")
	}
	if text != "" {
		s.print(kind == "reasoning", text)
		s.kind = kind
	}
}

// row prints a line about a call or a turn.
func (s *screen) row(n notice) {
	what := ""
	switch c := n.call; n.kind {
	case "start":
		what = "→ " + c.name + " " + n.text
	case "result":
		what = "← " + c.name + " after " + secs(c.took) + ": " + n.text
	case "abort":
		what = "✗ " + c.name + " not run: " + n.text
	case "broke":
		what = "✗ " + n.text + "; continuing with the calls so far"
	case "end":
		what = fmt.Sprintf("· end of turn %d", n.turn)
	}
	s.print(true, fmt.Sprintf("%7s  ", secs(n.at)))
	s.print(false, short(what)+"\n")
}

// fresh ends an unfinished line and prints the results that waited for it.
func (s *screen) fresh() {
	if s.kind != "" {
		s.print(false, "\n")
	}
	for _, n := range s.later {
		s.row(n)
	}
	s.kind, s.later = "", nil
}

// table prints the time that each call saved by starting before the end of its turn.
func (s *screen) table(turns []*turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fresh()
	const row = "%4v  %-12s %9s %11s %9s %9s\n"
	var won time.Duration
	for i, t := range turns {
		won += t.won(t.calls...)
		for k, c := range t.calls {
			switch {
			case s.json:
				s.line(object{"turn": t.n, "kind": "timing", "id": c.id, "name": c.name, "complete": c.complete.Seconds(),
					"ended": t.ended.Seconds(), "ready": c.ready.Seconds(), "won": t.won(c).Seconds()})
				continue
			case i+k == 0:
				s.print(false, "\n"+fmt.Sprintf(row, "turn", "call", "complete", "turn ended", "result", "won"))
			}
			s.print(false, fmt.Sprintf(row, t.n, c.name, secs(c.complete), secs(t.ended), secs(c.ready), secs(t.won(c))))
		}
	}
	if won > 0 && !s.json {
		s.print(false, fmt.Sprintf("In total, the results were ready %s sooner.\n", secs(won)))
	}
}

type object = map[string]any

// line prints v as a JSON line.
func (s *screen) line(v object) {
	if s.err == nil {
		enc := json.NewEncoder(s.w)
		enc.SetEscapeHTML(false)
		s.err = enc.Encode(v)
	}
}

// print prints text without control characters, which could affect a terminal, and with U+FFFD for invalid UTF-8.
func (s *screen) print(dim bool, text string) {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, text)
	if dim && s.dim {
		text = "\x1b[2m" + text + "\x1b[0m"
	}
	if s.err == nil {
		_, s.err = io.WriteString(s.w, text)
	}
}

// short returns text as one line of at most 100 characters.
func short(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > 100 {
		return string(r[:99]) + "…"
	}
	return text
}

func secs(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
