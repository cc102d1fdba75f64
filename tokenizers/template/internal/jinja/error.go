// SPDX-License-Identifier: Apache-2.0

package jinja

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Error reports where and why a template cannot be compiled or rendered.
type Error struct {
	Name      string // of the template
	Line, Col int    // from 1, in characters; 0 if unknown
	Origin    string // part of the request that was being printed, such as messages[3]; empty if not known
	Reason    string
	Raised    bool // by the template's own raise_exception
	Limit     bool // a limit on time or memory was passed
	Unsafe    bool // Jinja's immutable sandbox refuses the operation, whatever the values are
}

// Error returns the position and the reason.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Name)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Col)
	}
	b.WriteString(": ")
	if e.Origin != "" {
		b.WriteString(e.Origin)
		b.WriteString(": ")
	}
	b.WriteString(e.Reason)
	return b.String()
}

func compileError(src string, pos int, format string, args ...any) *Error {
	e := &Error{Reason: fmt.Sprintf(format, args...)}
	e.Line, e.Col = lineCol(src, pos)
	return e
}

// lineCol returns the line and column of a byte.
func lineCol(src string, pos int) (line, col int) {
	pos = min(pos, len(src))
	start := strings.LastIndexByte(src[:pos], '\n') + 1
	return 1 + strings.Count(src[:start], "\n"), 1 + utf8.RuneCountInString(src[start:pos])
}
