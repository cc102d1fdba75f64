// SPDX-License-Identifier: Apache-2.0

// Package hotdelta tells the stream encoders which deltas take their fast path: while deltas of one run or call arrive, an
// encoder writes each as bytes that it has ready, the text, and more such bytes. The slow path writes the same.
package hotdelta

import "github.com/weft-go/weft/protocols/event"

// Source is the run of text or reasoning, or the call, whose deltas take the fast path until another event arrives.
type Source struct {
	On     bool // whether there is one
	Kind   event.Kind
	Choice int32
	ID     int32 // the part of a run, the ordinal of a call
}

// Of returns the source of e, a delta.
func Of(e *event.Event) Source { return Source{true, e.Kind, e.Choice, id(e)} }

func id(e *event.Event) int32 {
	if e.Kind == event.ToolArgs {
		return e.Call
	}
	return e.Part
}

// Has reports whether e is a delta of s.
func (s *Source) Has(e *event.Event) bool {
	return s.On && e.Kind == s.Kind && e.Choice == s.Choice && id(e) == s.ID
}
