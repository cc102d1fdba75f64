// SPDX-License-Identifier: Apache-2.0

package intent

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits on hints that are read and sent. A hint beyond them is reported and treated as absent.
const (
	maxFaults    = 64       // reported per request
	maxExcerpt   = 64       // bytes of a value in a report
	maxText      = 1 << 10  // bytes of an ID or name
	maxHeader    = 16 << 10 // bytes of a header
	maxMember    = 1 << 20  // bytes of a field of the body
	maxMeta      = 64       // entries
	maxMetaBytes = 64 << 10 // of names and values
	maxPoints    = 128      // breakpoints
)

// Fault describes a malformed hint. Servers should not reject a request because of it.
type Fault struct {
	Where string // such as header x-dynamo-request-priority, or nvext.agent_hints.osl
	Value string // the start of the value
	Why   string
}

// Error returns the fault as one line of text.
func (f Fault) Error() string { return fmt.Sprintf("intent: %s %q: %s", f.Where, f.Value, f.Why) }

// NewFault returns a fault with an excerpt of the value.
func NewFault(where, value, why string) Fault {
	return Fault{excerpt(where, 2*maxExcerpt), excerpt(value, maxExcerpt), why}
}

// excerpt returns the start of s, at most most bytes plus an ellipsis.
func excerpt(s string, most int) string {
	if len(s) > most {
		for most > 0 && !utf8.RuneStart(s[most]) {
			most--
		}
		s = s[:most] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// textFault returns the reason why s is not valid as an ID or name, or "".
func textFault(s string) string {
	switch {
	case len(s) > maxText:
		return "too long"
	case !utf8.ValidString(s):
		return "not UTF-8"
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] == 0x7f {
			return "contains a control character"
		}
	}
	return ""
}

// inHeader reports whether s can be the value of a header unquoted.
func inHeader(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return s != "" && s[0] != ' ' && s[len(s)-1] != ' '
}
