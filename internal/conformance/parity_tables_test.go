// SPDX-License-Identifier: Apache-2.0

package conformance

import "github.com/weft-go/weft/parsers"

// dynamoPolicy returns the Dynamo profile for a family; nil until there is one.
var dynamoPolicy func(family string) *parsers.Policy

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
)

// reasons is the closed set of reasons, each with what the peer does, what weft does and why.
var reasons = map[reason]string{
	trailingTextKept: "Peers drop text behind the first call; weft keeps it, in order (unified corpus: trailing_text_kept).",
	partialCall: "Peers leave the markup of a cut call in the text, or emit its cut value; weft aborts the call and shows nothing " +
		"(unified corpus: drop_partial_call).",
	unclosedValue: "Peers drop a parameter whose closing tag is missing and emit the call without it; weft has streamed the value by then, " +
		"and emitted bytes are never contradicted, so the call aborts.",
	trimsOnlyWhole:    "Dynamo trims white space when it parses a whole text and keeps it when it streams the same text; weft gives one result.",
	needsWholeText:    "Dynamo's result needs the whole text before anything can be shown: what was text becomes reasoning or a call later.",
	losesText:         "Dynamo loses text or calls that the output plainly holds.",
	repairsJSON:       "Dynamo adds missing braces to arguments; weft does not repair arguments in a profile.",
	forgetsUnclosed:   "Dynamo takes an unclosed call only when it is the first one; weft takes it wherever it stands.",
	rawFrames:         "Dynamo's reasoning parser leaves all frames from the first tool message on in the text; weft's frames always route.",
	namelessIsDropped: "Dynamo drops well-formed calls without a name and leaves malformed ones in the text; weft leaves both.",
}

// agreedExceptions are the records whose agreed result contradicts the written policy.
var agreedExceptions = map[string]reason{
	"tool/deepseek_v4/batch.2.c": trailingTextKept,
	"tool/deepseek_v4/batch.8.c": trailingTextKept,
	"tool/deepseek_v4/batch.8.d": trailingTextKept,
	"tool/kimi_k2/batch.2.c":     trailingTextKept,
	"tool/kimi_k2/batch.8.d":     trailingTextKept,
	"tool/phi4/batch.8.b":        trailingTextKept,
	"tool/qwen25/batch.8.d":      trailingTextKept,
	"tool/qwen3_coder/batch.8.c": trailingTextKept,
	"tool/qwen3_coder/batch.8.d": trailingTextKept,

	"tool/hermes/batch.5.c":      partialCall,
	"tool/qwen3_coder/batch.5.c": partialCall,

	"tool/deepseek_v3_2/batch.4.d": unclosedValue,
	"tool/deepseek_v4/batch.4.d":   unclosedValue,
}

// dynamoExceptions are the records on which the Dynamo profile differs from Dynamo.
var dynamoExceptions = map[string]reason{
	"reasoning/deepseek_r1/batch.6.a": trimsOnlyWhole,
	"reasoning/kimi/batch.6.a":        trimsOnlyWhole,
	"reasoning/kimi_k25/batch.6.a":    trimsOnlyWhole,
	"reasoning/granite/stream.2.a":    trimsOnlyWhole,
	"reasoning/granite/stream.2.b":    trimsOnlyWhole,
	"reasoning/granite/stream.3.a":    trimsOnlyWhole,

	"reasoning/nemotron_deci/batch.4": needsWholeText,
	"reasoning/granite/batch.2.d":     needsWholeText,
	"tool/glm47/stream.4.c":           needsWholeText,
	"tool/nemotron_deci/batch.5.b":    needsWholeText,
	"tool/phi4/stream.4.c":            needsWholeText,

	"tool/phi4/batch.5.e":          losesText,
	"tool/mistral/batch.8.d":       losesText,
	"tool/nemotron_deci/batch.8.d": losesText,
	"tool/llama3_json/stream.2":    losesText,

	"tool/hermes/batch.4.b":        repairsJSON,
	"tool/hermes/batch.5.d":        forgetsUnclosed,
	"tool/deepseek_v3_2/batch.4.d": unclosedValue,
	"tool/deepseek_v4/batch.4.d":   unclosedValue,
	"reasoning/gpt_oss/batch.3.a":  rawFrames,
	"reasoning/gpt_oss/batch.3.f":  rawFrames,
	"tool/mistral/batch.4.c":       namelessIsDropped,
}
