// SPDX-License-Identifier: Apache-2.0

package conformance

import "testing"

// reason is why weft differs from a peer. The set is closed: reasons says what each one means.
type reason string

const (
	trailingTextKept  reason = "trailingTextKept"
	partialCall       reason = "partialCall"
	unclosedValue     reason = "unclosedValue"
	trimsOnlyWhole    reason = "trimsOnlyWhole"
	needsWholeText    reason = "needsWholeText"
	losesText         reason = "losesText"
	repairsJSON       reason = "repairsJSON"
	forgetsUnclosed   reason = "forgetsUnclosed"
	rawFrames         reason = "rawFrames"
	namelessIsDropped reason = "namelessIsDropped"
	givesUp           reason = "givesUp"
	trimsBlanks       reason = "trimsBlanks"
	losesHeld         reason = "losesHeld"
	trimsValues       reason = "trimsValues"
	guessesTypes      reason = "guessesTypes"
)

// reasons is the closed set of reasons, each with what the peer does, what weft does and why.
var reasons = map[reason]string{
	trailingTextKept: "Peers drop text behind the first call; weft keeps it, in order (unified corpus: trailing_text_kept).",
	partialCall: "Peers leave the markup of a cut call in the text, or emit its cut value; weft aborts the call and " +
		"shows nothing (unified corpus: drop_partial_call).",
	unclosedValue: "Peers drop a parameter whose closing tag is missing and emit the call without it; weft has streamed " +
		"the value by then, and emitted bytes are never contradicted, so the call aborts.",
	trimsOnlyWhole: "Dynamo trims white space when it parses a whole text and keeps it when it streams the same text; " +
		"weft gives one result.",
	needsWholeText: "Dynamo's result needs the whole text before anything can be shown: what was text becomes reasoning " +
		"or a call later.",
	losesText:       "Dynamo loses text or calls that the output plainly holds.",
	repairsJSON:     "Dynamo adds missing braces to arguments; weft does not repair arguments in a profile.",
	forgetsUnclosed: "Dynamo takes an unclosed call only when it is the first one; weft takes it wherever it stands.",
	rawFrames: "Dynamo's reasoning parser leaves all frames from the first tool message on in the text; weft's " +
		"frames always route.",
	namelessIsDropped: "Dynamo drops well-formed calls without a name and leaves malformed ones in the text; weft leaves " +
		"both.",
	givesUp:     "Ollama ends the turn with an error; weft aborts the call with a reason and goes on.",
	trimsBlanks: "Ollama trims text beside calls and reasoning; weft keeps what the family's markup does not own.",
	losesHeld: "Ollama loses what it holds back when the stream ends; weft releases it (unified corpus: " +
		"unresolved_prefix_is_text).",
	trimsValues: "smg trims white space around parameter values; weft drops only the newline at each end that the " +
		"template writes.",
	guessesTypes: "The peer guesses the type of a value that no schema types; weft leaves it a string (unified corpus: " +
		"no_schema_string).",
}

// checkReason asserts that why is one of the closed set.
func checkReason(t *testing.T, id string, why reason) {
	t.Helper()
	if reasons[why] == "" {
		t.Errorf("%s: %q is no reason of the closed set", id, why)
	}
}
