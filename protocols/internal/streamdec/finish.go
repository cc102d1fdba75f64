// SPDX-License-Identifier: Apache-2.0

package streamdec

import (
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// Finish returns the cause for the finish_reason of a choice. failed reports whether the engine gave up; why is then
// the class of an error. Unknown reasons map to event.Stop.
func Finish(reason string) (why event.Why, failed bool) {
	switch reason {
	case "length", "max_tokens":
		return event.Length, false
	case "model_length", "model_context_window_exceeded": // Mistral; proxies in front of Anthropic
		return event.ContextFull, false
	case "tool_calls", "function_call", "tool_use":
		return event.ToolCalls, false
	case "content_filter":
		return event.ContentFilter, false
	case "refusal":
		return event.Refused, false
	case "stop_sequence": // TGI
		return event.StopSequence, false
	case "pause_turn":
		return event.Paused, false
	case "error", "abort": // vLLM, SGLang, OpenRouter
		return event.EngineFailed, true
	case "insufficient_system_resource": // DeepSeek
		return event.Overloaded, true
	}
	return event.Stop, false
}

// Aborted is the message of the error for a response that the engine gave up.
const Aborted = "The engine gave up the answer."

// stopOf returns what ended a choice, from vLLM's stop_reason or SGLang's matched_stop: a string, which is a stop sequence,
// or the number of a token. The value is absent if neither field has one of these.
func stopOf(choice jsonscan.Value) (stop jsonscan.Value) {
	for _, name := range [...]string{"stop_reason", "matched_stop"} {
		switch v := choice.Get(name); {
		case v.Kind() == jsonscan.String:
			return v
		case v.Kind() == jsonscan.Number && !stop.Exists():
			stop = v
		}
	}
	return stop
}
