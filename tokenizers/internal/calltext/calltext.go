// SPDX-License-Identifier: Apache-2.0

// Package calltext has the form in which past tool calls are written for templates that have no spelling for them. Package
// prompt knows the spelling and package template the template.
package calltext

// Call is a past call.
type Call struct {
	Name      string
	Arguments string // JSON, or whatever a client passed for it
}

// Piece is a part of the text of calls.
type Piece struct {
	Text string
	// Call is the index of the call whose name or arguments the text is, or -1 for markup, which is trusted.
	Call int
	// Arguments specifies that the text is the arguments of the call, perhaps in another syntax.
	Arguments bool
}

// Writer returns the text of the calls of one message, as the model would have written them. after specifies that the
// message has text before them.
type Writer func(calls []Call, after bool) []Piece
