// SPDX-License-Identifier: Apache-2.0

package block

import (
	"errors"
	"fmt"

	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// ErrorKind is the class of an [Error].
type ErrorKind uint8

// The classes of errors. The first three are errors in the body. Stale and Unsupported are errors in calls of this
// package.
const (
	Malformed   ErrorKind = iota + 1 // not JSON, truncated, invalid UTF-8, or a name twice in one object
	WrongType                        // a field has the wrong JSON type, or a required one is missing
	LimitPassed                      // a limit was exceeded, see Limit and Max
	Stale                            // the position given to an edit was invalidated by another edit: read the turns again
	Unsupported                      // the API cannot express an edit or, if EncodeOptions.Strict is set, a conversion
)

var errorNames = [...]string{
	"", "malformed JSON", "wrong type", "limit exceeded", "stale reference", "unsupported",
}

// String returns a description of the class.
func (k ErrorKind) String() string { return name(errorNames[:], int(k), "error") }

// Error describes an error in a request and its position. Its text is intended for the client: it contains no Go type
// names and, except for field names, never quotes the body.
type Error struct {
	Kind   ErrorKind
	Path   string // of the invalid value, for example messages[3].content[1]; "" for the whole request
	Offset int64  // bytes before the error; -1 if it has no position in a body
	Msg    string
	Limit  string // LimitPassed: body bytes, depth, values, blocks, tools
	Max    int64  // LimitPassed: the limit
	Answer bool   // the error is in the response of another server, not in the client's request
}

// Error returns path, message and offset.
func (e *Error) Error() string {
	msg := e.Msg
	if e.Kind == LimitPassed {
		msg = fmt.Sprintf("%s (limit: %d %s)", msg, e.Max, e.Limit)
	}
	if e.Path != "" {
		msg = e.Path + ": " + msg
	}
	if e.Offset >= 0 {
		msg = fmt.Sprintf("%s at byte %d", msg, e.Offset)
	}
	return msg
}

// scanError converts an error of the scanner to an Error.
func scanError(err error) error {
	se, ok := errors.AsType[*jsonscan.Error](err)
	if !ok {
		return err
	}
	kind := Malformed
	if se.Kind == jsonscan.Limit {
		kind = LimitPassed
	}
	return &Error{Kind: kind, Path: se.Path, Offset: int64(se.Offset), Msg: se.Msg, Limit: se.Limit, Max: se.Max}
}

// Loss is something that a conversion could not carry over.
type Loss struct {
	Path string // in the original request; "" if it was built
	Why  string
}

// String returns the path and the reason.
func (l Loss) String() string {
	if l.Path == "" {
		return l.Why
	}
	return l.Path + ": " + l.Why
}

// Limits bounds the requests that are accepted. 0 means the default; a nil *Limits means all defaults.
type Limits struct {
	Body   int // bytes; 64 MiB. At most 2 GiB - 1
	Depth  int // nesting of arrays and objects; 128
	Values int // JSON values outside tool schemas and call arguments; 1,048,576
	Blocks int // blocks of all turns, nested ones included; 50,000
	Tools  int // 2,048
}

func (l *Limits) filled() Limits {
	var f Limits
	if l != nil {
		f = *l
	}
	set := func(p *int, def int) {
		if *p <= 0 {
			*p = def
		}
	}
	set(&f.Body, 64<<20)
	set(&f.Depth, 128)
	set(&f.Values, 1<<20)
	set(&f.Blocks, 50_000)
	set(&f.Tools, 2048)
	return f
}
