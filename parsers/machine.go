// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"github.com/weft-go/weft/parsers/internal/jsontext"
)

// machine holds the state that all layouts share: the window, the open run of text, the open call, and the readers of
// arguments. A layout embeds a pointer to it.
type machine struct {
	c      *compiled
	opt    Options
	lim    Limits
	layout layout
	state  state
	err    error
	terse  bool // the engine omitted the last terminator
	cut    bool // the engine cut the output

	window
	tokenQueue
	output
	textRun
	source
	call   callState
	lex    jsontext.Lexer // of JSON arguments and guided documents
	param  paramState
	rules  rules // of opt.Policy
	native int64 // stream offset before which no guided document begins

	plain *plainRun // the run that is open, if plain chunks may follow
	runs  plainRuns
}

// layout defines how output is framed: the meaning of its markers, and where calls begin and end. Each layout is one
// type with its own state. A layout that embeds another one inherits its methods.
type layout interface {
	// begin enters the state in which generation begins; start may be unspecified.
	begin(start Start)
	// advance runs the current state, which is not one of the machine, and reports whether a state may run again.
	advance() bool
	// marker handles the marker that ended a run of text or reasoning. mark and pos are around it.
	marker(m marker)
	// bareCall looks, at the beginning of a run of text, for a call without a tag. It reports whether it changed the
	// state, or waits for more. It is called only if p.bare is set.
	bareCall() (begun, waits bool)
	// jsonEnded continues after arguments that are JSON and were read by the machine.
	jsonEnded(how jsonEnd) bool
	// mayEndValue reports whether a marker of p.param.set may end the value, and records how. The state is then
	// stConfirm.
	mayEndValue(r role) bool
	// endsJSON ends a value that is complete JSON at a marker of p.param.set, which is around closeAt and closeEnd. It
	// returns what a state returns.
	endsJSON(r role) bool
	// afterBlock returns to the run that a block of calls interrupted. Its markup ends at pos.
	afterBlock()
	// cutCall completes the call that the end of the stream cut off, if the policy requires it.
	cutCall() bool
	// passes returns the plain run that is open in a state of the layout, or nil.
	passes() *plainRun
	// reset forgets the state and keeps the memory.
	reset()
	// kept returns the number of bytes of memory that the layout keeps.
	kept() int
}

// state is the state of the machine.
type state uint8

const (
	stText   state = iota // visible text or reasoning
	stGuided              // a guided document, held
	stNamed               // a guided document, streamed
	stArgs                // the body of a call: raw JSON
	stValue               // the value of a parameter

	// The layout runs the following states.
	stConfirm // after a possible end of a value
	stSkip    // markup that cannot be read, until the next marker
	stLayout  // the first of the layout's own
)

// jsonEnd is the way in which JSON arguments ended, at pos.
type jsonEnd uint8

const (
	jsonDone jsonEnd = iota // they are complete
	jsonBad                 // they are not JSON from there on
	jsonNone                // not an object, or the stream has ended
)
