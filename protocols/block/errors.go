// SPDX-License-Identifier: Apache-2.0

package block

import (
	"errors"
	"fmt"

	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// ErrorKind is the class of an [Error].
type ErrorKind uint8

// The classes of errors. The first five are faults of the body; Stale and Unsupported are about what a program asked.
const (
	Malformed       ErrorKind = iota + 1 // not JSON, or cut short
	InvalidEncoding                      // invalid UTF-8
	DuplicateKey                         // a member name twice in one object
	WrongType                            // a field has the wrong JSON type, or a required one is missing
	LimitPassed                          // a limit was passed; Limit and Max say which
	Stale                                // the place that an edit names is gone: read the turns again
	Unsupported                          // the API cannot express what an edit or a conversion asked for
)

var errorNames = [...]string{
	"", "malformed JSON", "invalid encoding", "duplicate member", "wrong type", "limit passed", "stale reference", "unsupported",
}

// String returns the class in words.
func (k ErrorKind) String() string { return name(errorNames[:], int(k), "error") }

// Error says what is wrong with a request and where. Its text is meant for the client: it has no Go type names and never
// quotes the body, member names aside.
type Error struct {
	Kind   ErrorKind
	Path   string // of the value at fault, for example messages[3].content[1]; "" for the whole request
	Offset int64  // bytes before the fault; -1 when it has no place in a body
	Msg    string
	Limit  string // LimitPassed: body bytes, depth, values, blocks, tools
	Max    int64  // LimitPassed: the limit
	Answer bool   // the fault is in the answer of another server, not in a request: who asked here is not to blame
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

// scanError turns a fault of the scanner into an Error.
func scanError(err error) error {
	se, ok := errors.AsType[*jsonscan.Error](err)
	if !ok {
		return err
	}
	kind := Malformed
	switch se.Kind {
	case jsonscan.Encoding:
		kind = InvalidEncoding
	case jsonscan.Duplicate:
		kind = DuplicateKey
	case jsonscan.Limit:
		kind = LimitPassed
	}
	return &Error{Kind: kind, Path: se.Path, Offset: int64(se.Offset), Msg: se.Msg, Limit: se.Limit, Max: se.Max}
}

// Loss is something that a conversion could not carry over.
type Loss struct {
	Path string // in the request that was converted; "" when it was built
	Why  string
}

// String returns path and reason.
func (l Loss) String() string {
	if l.Path == "" {
		return l.Why
	}
	return l.Path + ": " + l.Why
}

// LossError is the error of a strict conversion that lost something.
type LossError struct{ Losses []Loss }

// Error names the first loss and counts the rest.
func (e *LossError) Error() string {
	if len(e.Losses) == 1 {
		return "block: conversion loses " + e.Losses[0].String()
	}
	return fmt.Sprintf("block: conversion loses %v and %d more", e.Losses[0], len(e.Losses)-1)
}

// Limits bounds what is accepted from outside. 0 means the default; a nil *Limits is all defaults.
type Limits struct {
	Body   int // bytes; 64 MiB. At most 2 GiB - 1
	Depth  int // nesting of arrays and objects; 128
	Values int // JSON values outside tool schemas and call arguments; 1,048,576
	Blocks int // blocks of all turns, nested ones included; 100,000
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
	set(&f.Blocks, 100_000)
	set(&f.Tools, 2048)
	return f
}
