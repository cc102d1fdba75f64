// SPDX-License-Identifier: Apache-2.0

package block

import (
	"strings"

	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// EncodeOptions configures encoding to a named API. nil means defaults.
type EncodeOptions struct {
	// Strict makes a conversion that loses something fail: it returns the losses and, for the first one, an *[Error] of kind
	// Unsupported.
	Strict bool
	// Engine is the engine that will read a request converted to the Chat API: vllm, sglang, llama.cpp, ollama or
	// dynamo. They differ in the fields for limits, past reasoning and the switch for reasoning; see package chat. If
	// empty, the request has the fields of OpenAI, and thinking and reasoning_content, as many providers and Dynamo
	// read them. Another name is an error. Conversions to other APIs ignore it.
	Engine string
}

// convert appends r in the API of d. If r is in that API, this is a copy with its edits; otherwise write encodes its
// view.
func convert(dst []byte, r *Request, d dialect, opt *EncodeOptions,
	write func(dst []byte, v *view, lose lossFunc) []byte) ([]byte, []Loss, error) {
	if r.API() == d.API() {
		out, err := r.AppendBody(dst)
		return out, nil, err
	}
	var losses []Loss
	lose := func(path, why string) { losses = append(losses, Loss{Path: path, Why: why}) }
	v := r.whole()
	if r.err != nil {
		return dst, nil, r.err
	}
	if api := r.API(); v.Params.Stream && (api == Responses || api == Messages) {
		v.Params.StreamUsage = true // streams of the other APIs always have usage, so request it from an API where it is optional
	}
	r.loseFields(lose)
	out := write(dst, &v, func(path, why string) { lose(r.pathOf(path), why) })
	if opt != nil && opt.Strict && len(losses) > 0 {
		return dst, losses, &Error{Kind: Unsupported, Path: losses[0].Path, Offset: -1, Msg: losses[0].Why}
	}
	return out, losses, nil
}

// spellings lists, per API, the paths of parameters to which encoders give other names in losses, as in the Chat API.
var spellings = [...]map[string][]string{
	Chat: {"tool_choice": {"tool_choice", "function_call"}},
	Responses: {
		"reasoning_effort": {"reasoning.effort"}, "reasoning.summary": {"reasoning.summary", "reasoning.generate_summary"},
		"verbosity": {"text.verbosity"}, "response_format": {"text.format"},
	},
	Messages: {
		"stop": {"stop_sequences"}, "reasoning_effort": {"output_config.effort"}, "response_format": {"output_config.format", "output_format"},
		"parallel_tool_calls": {"tool_choice.disable_parallel_tool_use"},
	},
	Completions: {"top_logprobs": {"logprobs"}},
}

// pathOf returns the path in the body of the parameter that a loss of an encoder names. If it has several, this is the one
// that the body has.
func (r *Request) pathOf(name string) string {
	if r.dialect == nil {
		return name
	}
	list := spellings[r.API()][name]
	for _, path := range list {
		if v := r.value(strings.Split(path, ".")); !v.IsNull() {
			return path
		}
	}
	if len(list) > 0 {
		return list[0]
	}
	return name
}

// modeled lists, per API, the top-level fields that Params, Turns and Tools cover and those that do not affect a
// model.
var modeled = [...]map[string]bool{
	Chat: set("model", "messages", "tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options",
		"max_tokens", "max_completion_tokens", "temperature", "top_p", "min_p", "top_k", "seed", "n",
		"frequency_penalty", "presence_penalty", "repetition_penalty", "stop", "stop_token_ids", "ignore_eos",
		"logprobs", "top_logprobs", "reasoning_effort", "response_format", "verbosity", "user", "prompt_cache_key",
		"service_tier", "thinking", "functions", "function_call"),
	Responses: set("model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "stream",
		"max_output_tokens", "temperature", "top_p", "top_logprobs", "reasoning", "text", "user",
		"prompt_cache_key", "service_tier"),
	Messages: set("model", "system", "messages", "tools", "tool_choice", "stream", "max_tokens", "temperature",
		"top_p", "top_k", "stop_sequences", "metadata", "service_tier", "thinking", "output_config", "output_format"),
	Completions: set("model", "prompt", "stream", "stream_options", "max_tokens", "temperature", "top_p", "min_p", "top_k",
		"seed", "n", "frequency_penalty", "presence_penalty", "repetition_penalty", "stop", "stop_token_ids", "ignore_eos",
		"logprobs", "response_format", "user"),
}

// modeledIn lists, per API, the known fields of objects that the view covers in part, anywhere in a request.
var modeledIn = [...]map[string]map[string]bool{
	Chat: {
		"response_format": set("type", "json_schema"), "json_schema": set("name", "schema", "strict", "description"),
		"thinking": set("type"), "stream_options": set("include_usage", "include_obfuscation", "continuous_usage_stats"),
		"function": set("name", "arguments"), "custom": set("name", "input"), "function_call": set("name", "arguments"), "image_url": set("url", "detail"),
		"video_url": set("url", "detail"), "audio_url": set("url"), "input_audio": set("data", "format"),
		"file": set("file_id", "file_data", "filename"), "cache_control": set("type", "ttl", "scope"), "prompt_cache_breakpoint": set("mode"),
	},
	Responses: {
		"reasoning": set("effort", "summary", "generate_summary"), "text": set("format", "verbosity"),
		"format": set("type", "name", "schema", "strict", "description"), "input_audio": set("data", "format"),
		"prompt_cache_breakpoint": set("mode"),
	},
	Messages: {
		"metadata": set("user_id"), "thinking": set("type", "budget_tokens"), "output_config": set("effort", "format"),
		"output_format": set("type", "schema"), "format": set("type", "schema"), "tool_choice": set("type", "name", "disable_parallel_tool_use"),
		"source": set("type", "media_type", "data", "url", "file_id", "content"), "cache_control": set("type", "ttl", "scope"),
	},
	Completions: nil,
}

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// members lists, per API, the fields of messages, items and blocks that the view covers or that do not affect a model.
var members = [...]map[string]bool{
	Chat: set("role", "content", "name", "reasoning_content", "reasoning", "refusal", "tool_calls", "tool_call_id", "type",
		"text", "image_url", "video_url", "audio_url", "input_audio", "file", "id", "function", "custom", "function_call",
		"index", "reasoning_details", "thinking_blocks", "summary", "data", "signature", "format", "thinking", "cache_control", "prompt_cache_breakpoint"),
	Responses: set("type", "id", "role", "content", "status", "text", "refusal", "image_url", "file_id", "file_url",
		"file_data", "filename", "detail", "input_audio", "summary", "encrypted_content", "call_id", "name", "namespace",
		"arguments", "input", "output", "logprobs", "prompt_cache_breakpoint", "signature", "format"),
	Messages: set("role", "content", "type", "text", "thinking", "signature", "data", "id", "name", "input", "tool_use_id",
		"is_error", "source", "title", "cache_control", "tool_name", "file_id"),
	Completions: set(), // prompts are strings or token IDs
}

// toolMembers lists, per API, the fields of tool declarations that the view covers.
var toolMembers = [...]map[string]bool{
	Chat: set("type", "function", "custom", "name", "description", "parameters", "strict", "format", "defer_loading",
		"cache_control", "prompt_cache_breakpoint"),
	Responses: set("type", "name", "description", "parameters", "strict", "format", "defer_loading"),
	Messages:  set("type", "name", "description", "input_schema", "strict", "defer_loading", "cache_control"),
}

// loseFields records the fields of a body that no conversion carries over: at the top level, and inside tools, turns
// and blocks. For a detached request, these are the losses of its former body that concern tools and turns it still
// has.
func (r *Request) loseFields(lose lossFunc) {
	report := func(list []Loss) {
		for _, l := range list {
			lose(l.Path, l.Why)
		}
	}
	if r.dialect == nil {
		return
	}
	if r.doc == nil {
		report(r.lost)
		for i := range r.view.Tools {
			report(r.view.Tools[i].lost)
		}
		for i := range r.view.Turns {
			if lost := r.view.Turns[i].lost; lost != nil {
				report(*lost)
			}
		}
		return
	}
	r.loseRoot(lose)
	for i := range r.view.Tools {
		r.loseTool(&r.view.Tools[i], lose)
	}
	for i := range r.view.Turns {
		r.loseTurn(&r.view.Turns[i], lose)
	}
}

func (r *Request) loseRoot(lose lossFunc) {
	root := r.doc.Root()
	loseMembers(root, modeled[r.API()], modeledIn[r.API()], lose)
	r.loseChoice(root, lose)
	r.loseThinking(root, lose)
	r.losePrompts(lose)
}

func (r *Request) loseTool(t *Tool, lose lossFunc) {
	if t.Kind == Hosted {
		return
	}
	v := valueOf(t.At)
	loseMembers(v, toolMembers[r.API()], nil, lose)
	if f := v.Get(t.Type); r.API() == Chat && f.Exists() {
		loseMembers(f, toolMembers[r.API()], nil, lose)
	}
}

func (r *Request) loseTurn(t *Turn, lose lossFunc) {
	known, in := members[r.API()], modeledIn[r.API()]
	t = r.localTurn(t)
	first, last := valueOf(t.At), lastOf(t.At)
	if first.Kind() == jsonscan.Object {
		for v, list := first, first.Parent(); v.Exists(); v = list.Next(v) {
			loseMembers(v, known, in, lose)
			if v == last {
				break
			}
		}
	}
	loseInner(t.Blocks, first.Index(), last.Index(), known, in, lose)
}

// loseInner is loseFields for blocks whose objects are not themselves among the items first to last.
func loseInner(list []Block, first, last int, known map[string]bool, in map[string]map[string]bool, lose lossFunc) {
	for i := range list {
		b := &list[i]
		v := valueOf(b.At)
		item := v.Parent().Kind() == jsonscan.Array && v.Index() >= first && v.Index() <= last && !v.Parent().KeyIs("content") &&
			!v.Parent().KeyIs("tool_calls") && !v.Parent().KeyIs("output")
		if b.Kind != Unknown && b.Kind != ServerItem && !item {
			loseMembers(v, known, in, lose)
		}
		if sum := v.Get("summary"); b.Kind == Reasoning && !b.Summary && b.Text != "" && sum.First().Exists() {
			lose(sum.Path(), "a summary in addition to the reasoning")
		}
		loseInner(b.Content, first, last, known, in, lose)
	}
}

// losePrompts records that several prompts are merged into one conversation.
func (r *Request) losePrompts(lose lossFunc) {
	if r.API() == Completions && len(r.view.Turns) > 1 {
		lose("prompt", "separate prompts become one conversation in the other API")
	}
}

// loseChoice records a tool choice that Params do not model: of a tool that the server runs, or an unknown one.
func (r *Request) loseChoice(root jsonscan.Value, lose lossFunc) {
	v := root.Get("tool_choice")
	if v.IsNull() && r.API() == Chat {
		v = root.Get("function_call")
	}
	switch {
	case r.view.Params.ToolChoice.Mode != ChoiceUnspecified || v.IsNull() || r.API() == Completions:
	case v.Get("type").Kind() == jsonscan.String:
		lose(v.Path(), "a choice of a tool that another server runs, or of an unknown type")
	default:
		lose(v.Path(), "an unknown tool choice")
	}
}

// loseThinking records a type of thinking that Params do not model, or not entirely.
func (r *Request) loseThinking(root jsonscan.Value, lose lossFunc) {
	v := root.Get("thinking").Get("type")
	switch {
	case r.API() != Chat && r.API() != Messages || v.IsNull():
	case r.view.Params.Thinking.Mode == ThinkingUnspecified:
		lose(v.Path(), "an unknown type of thinking")
	case v.RawStr() == `"between_tools"`:
		lose(v.Path(), "text between calls that is thinking")
	}
}

// loseMembers records the fields of v that are neither known nor empty. in has the known fields of objects inside v.
func loseMembers(v jsonscan.Value, known map[string]bool, in map[string]map[string]bool, lose lossFunc) {
	for m := v.First(); m.Exists() && v.Kind() == jsonscan.Object; m = v.Next(m) {
		key := m.Key()
		switch {
		case known[key] && in[key] != nil && m.Kind() == jsonscan.Object:
			loseMembers(m, in[key], in, lose)
		case known[key] && key == "status" && m.RawStr() == `"incomplete"`:
			lose(m.Path(), "the status of an incomplete item")
		case known[key] || isDefault(key, m.Raw()):
		default:
			lose(m.Path(), "no counterpart in the other API")
		}
	}
}

// isDefault reports whether a field with a value is equivalent to an absent one.
func isDefault(key string, value []byte) bool {
	switch string(value) {
	case "null", "false", `""`, "[]":
		return true
	case "{}":
		return key != "web_search_options" // requests a search with all defaults
	case "true":
		return key == "store" // the default
	}
	return false
}
