// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"errors"
	"fmt"
	"strings"
)

// Conditions that [Error] wraps.
var (
	// ErrUnsupported means that the file asks for something this version does not do.
	ErrUnsupported = errors.New("unsupported")
	// ErrFormat means that the file is damaged or is no tokenizer.json.
	ErrFormat = errors.New("malformed")
	// ErrLimit means that the file, or a text that is encoded, passes a limit.
	ErrLimit = errors.New("over a limit")
)

// Error says why a tokenizer could not be loaded. errors.Is finds the condition, or the error of the file
// system, behind it.
type Error struct {
	File   string // base name
	Place  string // path of keys and indexes in the file, such as pre_tokenizer.pretokenizers[0]
	Offset int64  // bytes from the start of the file, -1 if there is no one place
	Reason string // what is wrong there
	Err    error  // ErrUnsupported, ErrFormat, ErrLimit or an error of the file system
}

// Error returns all of it in one line.
func (e *Error) Error() string {
	var s strings.Builder
	s.WriteString("tokenizers: ")
	s.WriteString(e.File)
	if e.Place != "" {
		s.WriteString(": ")
		s.WriteString(e.Place)
	}
	switch e.Err {
	case ErrUnsupported, ErrLimit:
		fmt.Fprintf(&s, ": %v: %s", e.Err, e.Reason)
	default:
		s.WriteString(": " + e.Reason)
	}
	if e.Offset >= 0 {
		fmt.Fprintf(&s, " (offset %d)", e.Offset)
	}
	return s.String()
}

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }
