// SPDX-License-Identifier: Apache-2.0

package conformance

import "testing"

// reason is a reason why weft differs from a peer. The set is closed: reasons explains each one.
type reason string

const (
	trailingTextKept     reason = "trailingTextKept"
	partialCall          reason = "partialCall"
	unclosedValue        reason = "unclosedValue"
	unframedIsShown      reason = "unframedIsShown"
	trimsOnlyWhole       reason = "trimsOnlyWhole"
	needsWholeText       reason = "needsWholeText"
	losesText            reason = "losesText"
	cutMarker            reason = "cutMarker"
	losesHeld            reason = "losesHeld"
	forgetsUnclosed      reason = "forgetsUnclosed"
	rawFrames            reason = "rawFrames"
	namelessIsDropped    reason = "namelessIsDropped"
	wrongCloser          reason = "wrongCloser"
	unmarkedCall         reason = "unmarkedCall"
	givesUp              reason = "givesUp"
	needsCloser          reason = "needsCloser"
	brokenArguments      reason = "brokenArguments"
	resyncs              reason = "resyncs"
	badName              reason = "badName"
	nameAsWritten        reason = "nameAsWritten"
	unknownForwarded     reason = "unknownForwarded"
	noToolsNoCalls       reason = "noToolsNoCalls"
	duplicateAborts      reason = "duplicateAborts"
	closerIsData         reason = "closerIsData"
	repairsMarkup        reason = "repairsMarkup"
	lenientQuotes        reason = "lenientQuotes"
	recipientDecides     reason = "recipientDecides"
	literalMarker        reason = "literalMarker"
	foreignMarkers       reason = "foreignMarkers"
	echoedOpener         reason = "echoedOpener"
	callInReasoning      reason = "callInReasoning"
	answerHasNoReasoning reason = "answerHasNoReasoning"
	reasoningReported    reason = "reasoningReported"
	orphanDropped        reason = "orphanDropped"
	namesUnquoted        reason = "namesUnquoted"
	trimsBlanks          reason = "trimsBlanks"
	trimsValues          reason = "trimsValues"
	guessesTypes         reason = "guessesTypes"
	entitiesLiteral      reason = "entitiesLiteral"
	escapesLiteral       reason = "escapesLiteral"
	bareCallsBegin       reason = "bareCallsBegin"
	bareNeedsArguments   reason = "bareNeedsArguments"
	byPolicy             reason = "byPolicy"
	tokensInText         reason = "tokensInText"
	notParsed            reason = "notParsed"
	parserAlone          reason = "parserAlone"
	fragments            reason = "fragments"
	prefilled            reason = "prefilled"
	schemaAnswer         reason = "schemaAnswer"
	rfNone               reason = "rfNone"
	swallowedEnd         reason = "swallowedEnd"
	madeToFail           reason = "madeToFail"
	literalEscapes       reason = "literalEscapes"
	typesBySchema        reason = "typesBySchema"
	leaksMarkup          reason = "leaksMarkup"
	readsMore            reason = "readsMore"
	promotesReasoning    reason = "promotesReasoning"
	byteLevel            reason = "byteLevel"
	validates            reason = "validates"
	dependsOnChunks      reason = "dependsOnChunks"
)

// reasons is the closed set of reasons, each with what the peer does, what weft does and why.
var reasons = map[reason]string{
	trailingTextKept: "Peers drop text after the first call; weft keeps it, in order (unified corpus: " +
		"trailing_text_kept).",
	partialCall: "Peers leave the markup of a cut or broken call in the text, or emit its cut value; weft aborts " +
		"the call and shows nothing (unified corpus: drop_partial_call).",
	unclosedValue: "Peers drop a parameter whose closing tag is missing and emit the call without it; weft has " +
		"streamed the value by then, and emitted bytes are never contradicted, so the call aborts.",
	unframedIsShown: "Peers show nothing of a reply that has no frame at all; weft shows it as text, since an answer " +
		"without a frame is better than none (the policy drop_unframed).",
	trimsOnlyWhole: "Dynamo trims white space when it parses a whole text and keeps it when it streams the same text; " +
		"weft gives one result.",
	needsWholeText: "The peer's result needs the whole text before anything can be shown: what was text becomes " +
		"reasoning or a call later, or a call text; weft streams.",
	losesText: "The peer loses text, arguments or calls that the output plainly holds.",
	cutMarker: "Ollama misses a marker that a chunk boundary cuts; weft gives one result for any split.",
	losesHeld: "The peer loses what it holds back when the stream ends; weft releases it (unified corpus: " +
		"unresolved_prefix_is_text).",
	forgetsUnclosed: "Dynamo takes an unclosed call only when it is the first one; weft takes it at any position.",
	rawFrames: "Dynamo's reasoning parser leaves all frames from the first tool message on in the text; weft's " +
		"frames always route.",
	namelessIsDropped: "Dynamo drops well-formed calls without a name and leaves malformed ones in the text; weft leaves " +
		"both.",
	wrongCloser: "The peer drops a call whose body is whole and whose closing tag is misspelled; weft takes it, as " +
		"recovered.",
	unmarkedCall: "The peer finds calls without their opening tag in prose; weft takes marked calls only, where the " +
		"family's calls are marked.",
	givesUp: "Ollama ends the turn with an error; weft aborts the call with a reason and goes on.",
	needsCloser: "Ollama takes a call that the end of the stream cut before its closing tag, if no required " +
		"argument is missing; weft calls a call complete at its closing tag where the next argument could " +
		"still come.",
	brokenArguments: "The peer reports a call whose arguments are no JSON; weft aborts it.",
	resyncs:         "The peer looks for a call inside or after a broken one; weft aborts it as a whole, up to the next tag.",
	badName: "The peer returns or repairs a tool or parameter name that is empty or holds markup; weft aborts " +
		"the call.",
	nameAsWritten: "The peer drops a name that holds markup or lacks its number, or maps it to a declared tool; weft reports the name as written.",
	unknownForwarded: "Ollama takes calls of undeclared tools as text; weft forwards them (unified corpus: " +
		"unknown_tool_forwarded).",
	noToolsNoCalls: "Ollama's parser looks for no calls when the request has no tools; weft does unless " +
		"Options.NoCalls specifies it.",
	duplicateAborts: "The peer lets the last of two equal parameters win; weft has streamed the first by then, so the " +
		"call aborts.",
	closerIsData: "The peer ends a value whose closing tag is missing at the next opening tag; to weft all is data " +
		"up to a closing tag after which the call continues (unified corpus: arg_data_opaque).",
	repairsMarkup: "Ollama repairs missing tags and quotes; weft guesses nothing and aborts, or takes a bare value " +
		"as it is written.",
	lenientQuotes: "Ollama drops a call with a bad escape in a JSON string; weft keeps the backslash.",
	recipientDecides: "Ollama looks for a call in a message that is not to a tool; to weft the recipient decides, and " +
		"the body is text.",
	literalMarker: "The peer takes a marker in a place where it makes no sense as text; to weft a marker is one, " +
		"unless token ids say otherwise.",
	foreignMarkers: "The peer strips the markers of tool results, or reads calls in those of the user's turn, which only " +
		"the prompt holds; weft knows what the family writes.",
	echoedOpener: "Some parsers of Ollama and llama.cpp leave an echoed opening tag in the reasoning and trim around tags; " +
		"weft drops the tag (unified corpus: echoed_opener_consumed).",
	callInReasoning: "Ollama takes calls inside reasoning as reasoning; weft reports them with event.InReasoning " +
		"(unified corpus: tool_breaks_out_of_reasoning).",
	answerHasNoReasoning: "Ollama drops reasoning where the prompt closed it; to weft the tags are text there (unified " +
		"corpus: response_has_no_reasoning).",
	reasoningReported: "Ollama drops reasoning when thinking is off; weft reports it and leaves that to the caller.",
	orphanDropped: "Ollama leaves a closing tag without an opening one in the text; weft drops it (unified corpus: " +
		"strip_orphan_close).",
	namesUnquoted: "The peer leaves quotes around a name in the name; weft drops them, since no tool's name has any.",
	trimsBlanks:   "Ollama trims text next to calls and reasoning; weft keeps what the family's markup does not own.",
	trimsValues: "smg trims white space around parameter values; weft drops only the newline at each end that the " +
		"template writes.",
	guessesTypes: "The peer guesses the type of a value that no schema types; weft leaves it a string (unified " +
		"corpus: no_schema_string).",
	entitiesLiteral: "smg unescapes entities in values; weft keeps them (unified corpus: entities_literal).",
	escapesLiteral:  "Ollama leaves the escapes of Python strings as they are written; weft reads them as Python does.",
	bareCallsBegin: "The peer finds call objects without a tag anywhere in the text; to weft they begin it, since an object " +
		"in prose may be an example.",
	bareNeedsArguments: "To smg an object with a name is a call; weft takes an object without a tag only if arguments " +
		"follow the name, since an answer may be JSON too.",
	byPolicy: "A rule of Policy, which the row names, gives the peer's result.",
	tokensInText: "Artefact: the test of upstream inserts tokens that its parser is told to drop; without them the " +
		"results agree.",
	notParsed: "Artefact: upstream is told not to parse calls, or drops them after parsing (tool_choice none); " +
		"weft's options or its caller do.",
	parserAlone: "Artefact: upstream's parser of calls runs alone and takes reasoning for text, or that of reasoning " +
		"leaves calls.",
	fragments: "Artefact: the test feeds single tokens whose text lacks what came before, and the parser keeps its " +
		"state between them.",
	prefilled: "Artefact: the prompt ends with the beginning of the response, which upstream returns too; weft " +
		"returns the model's output.",
	schemaAnswer: "Artefact: the answer is constrained by a schema and upstream drops the code fence around it; weft " +
		"leaves text alone.",
	rfNone: "Artefact: llama.cpp is told to leave reasoning in the text, and writes the opening tag of the prompt " +
		"there too.",
	swallowedEnd: "Artefact: the engine swallowed the end marker of the call; with its finish reason, Finish treats the " +
		"message as terminated.",
	madeToFail: "Artefact: the test makes upstream's parser fail on purpose.",
	literalEscapes: "The peer decodes escapes that the model wrote as text, such as \\n between tags; weft takes the " +
		"bytes as they are.",
	typesBySchema: "vLLM types all of Gemma's values by the schema, so that undeclared numbers become strings, and " +
		"llama.cpp reads nested tags as text where a string is permitted; weft keeps the types that the model " +
		"wrote.",
	leaksMarkup: "vLLM's streaming leaves markers of the family in the text.",
	readsMore: "Upstream leaves a call in the text whose form it does not expect, such as the block of another " +
		"version or an object instead of a list; weft reads it.",
	promotesReasoning: "vLLM moves reasoning to the text if there is no other (force_nonempty_content); that is the server's " +
		"business.",
	byteLevel: "Artefact: the test feeds tags as a wrong detokenizer spells them, without their spaces or with a byte-level " +
		"character instead.",
	validates: "Upstream's MiniCPM parser validates calls: it drops or renames tools, and drops or unwraps arguments, by the " +
		"request's schema; weft parses.",
	dependsOnChunks: "Upstream's result depends on the chunks, as its test records; weft's does not.",
}

// TestReasons asserts that every reason is needed.
func TestReasons(t *testing.T) {
	used := map[reason]bool{givesUp: true, trimsBlanks: true} // found without a table
	tables := []map[string]reason{agreedExceptions, dynamoExceptions}
	for _, table := range explained {
		tables = append(tables, table)
	}
	for _, file := range upstreamTables {
		table := map[string]reason{}
		for id, d := range differences(t, file) {
			table[id] = d.why
		}
		tables = append(tables, table)
	}
	for _, table := range tables {
		for id, why := range table {
			checkReason(t, id, why)
			used[why] = true
		}
	}
	for why := range reasons {
		if !used[why] {
			t.Errorf("no table needs %s", why)
		}
	}
}

// checkReason asserts that why is one of the closed set.
func checkReason(t *testing.T, id string, why reason) {
	t.Helper()
	if reasons[why] == "" {
		t.Errorf("%s: %q is no reason of the closed set", id, why)
	}
}
