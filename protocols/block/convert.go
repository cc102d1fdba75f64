// SPDX-License-Identifier: Apache-2.0

package block

import "github.com/weft-go/weft/protocols/internal/jsonscan"

// EncodeOptions are for encoding to a named API. nil is all defaults.
type EncodeOptions struct {
	// Strict makes a conversion that loses something fail with a *[LossError].
	Strict bool
}

// Convert is what chat.Encode, responses.Encode, messages.Encode and completions.Encode call. A request of the dialect's API is copied with
// its edits. Another is written by write from its view.
func Convert(dst []byte, r *Request, d Dialect, opt *EncodeOptions,
	write func(dst []byte, v *View, lose Lose) []byte) ([]byte, []Loss, error) {
	if r.API() == d.API() {
		out, err := r.Encode(dst)
		return out, nil, err
	}
	var losses []Loss
	lose := func(path, why string) { losses = append(losses, Loss{Path: path, Why: why}) }
	view := r.View()
	if r.err != nil {
		return dst, nil, r.err
	}
	r.loseFields(lose)
	out := write(dst, &view, lose)
	if opt != nil && opt.Strict && len(losses) > 0 {
		return dst, losses, &LossError{Losses: losses}
	}
	return out, losses, nil
}

// modelled names the top-level members that Params, Turns and Tools cover, per API, and those that say nothing to a
// model.
var modelled = [...]map[string]bool{
	Chat: set("model", "messages", "tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options",
		"max_tokens", "max_completion_tokens", "temperature", "top_p", "min_p", "top_k", "seed", "n",
		"frequency_penalty", "presence_penalty", "repetition_penalty", "stop", "stop_token_ids", "ignore_eos",
		"logprobs", "top_logprobs", "reasoning_effort", "response_format", "verbosity", "user", "prompt_cache_key",
		"service_tier", "thinking", "functions", "function_call"),
	Responses: set("model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "stream",
		"max_output_tokens", "temperature", "top_p", "top_logprobs", "reasoning", "text", "user",
		"prompt_cache_key", "service_tier", "include", "store"),
	Messages: set("model", "system", "messages", "tools", "tool_choice", "stream", "max_tokens", "temperature",
		"top_p", "top_k", "stop_sequences", "metadata", "service_tier", "thinking", "output_config", "output_format"),
	Completions: set("model", "prompt", "stream", "stream_options", "max_tokens", "temperature", "top_p", "min_p", "top_k",
		"seed", "n", "frequency_penalty", "presence_penalty", "repetition_penalty", "stop", "stop_token_ids", "ignore_eos",
		"logprobs", "response_format", "user"),
}

// modelledIn names the members of top-level objects that Params covers, where the object has others too.
var modelledIn = [...]map[string]map[string]bool{
	Chat: {
		"response_format": set("type", "json_schema"), "thinking": set("type"),
		"stream_options": set("include_usage", "include_obfuscation", "continuous_usage_stats"),
	},
	Responses: {"reasoning": set("effort", "summary", "generate_summary"), "text": set("format", "verbosity")},
	Messages: {
		"metadata": set("user_id"), "thinking": set("type", "budget_tokens"), "output_config": set("effort", "format"),
		"tool_choice": set("type", "name", "disable_parallel_tool_use"),
	},
}

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// members names the members of messages, items and blocks that the view covers or that say nothing to a model, per API.
var members = [...]map[string]bool{
	Chat: set("role", "content", "name", "reasoning_content", "reasoning", "refusal", "tool_calls", "tool_call_id", "type",
		"text", "image_url", "video_url", "audio_url", "input_audio", "file", "id", "function", "custom", "function_call",
		"index", "reasoning_details", "thinking_blocks", "summary", "data", "signature", "format", "thinking", "cache_control", "prompt_cache_breakpoint"),
	Responses: set("type", "id", "role", "content", "status", "text", "refusal", "image_url", "file_id", "file_url",
		"file_data", "filename", "detail", "input_audio", "summary", "encrypted_content", "call_id", "name", "namespace",
		"arguments", "input", "output", "logprobs", "prompt_cache_breakpoint", "signature", "format"),
	Messages: set("role", "content", "type", "text", "thinking", "signature", "data", "id", "name", "input", "tool_use_id",
		"is_error", "source", "title", "cache_control", "tool_name", "file_id"),
	Completions: set(), // prompts are strings or token ids
}

// toolMembers names the members of declarations of tools that the view covers, per API.
var toolMembers = [...]map[string]bool{
	Chat: set("type", "function", "custom", "name", "description", "parameters", "strict", "format", "defer_loading",
		"cache_control", "prompt_cache_breakpoint"),
	Responses: set("type", "name", "description", "parameters", "strict", "format", "defer_loading"),
	Messages:  set("type", "name", "description", "input_schema", "strict", "defer_loading", "cache_control"),
}

// loseFields records the members of a body that no conversion carries: at the top, and inside turns and blocks.
func (r *Request) loseFields(lose Lose) {
	if r.doc == nil {
		if r.dialect != nil {
			r.loseDetached(lose)
		}
		return
	}
	root := r.doc.Root()
	loseMembers(root, modelled[r.API()], lose)
	if int(r.API()) < len(modelledIn) {
		for m := root.First(); m.Exists(); m = root.Next(m) {
			if known := modelledIn[r.API()][m.Key()]; known != nil {
				loseMembers(m, known, lose)
			}
		}
	}
	if r.API() == Completions && len(r.view.Turns) > 1 {
		lose("prompt", "each prompt asks for an answer of its own; the other API takes them for one conversation")
	}
	for i := range r.view.Tools {
		if t := &r.view.Tools[i]; t.Kind != Hosted {
			v := ValueOf(t.At)
			loseMembers(v, toolMembers[r.API()], lose)
			if f := v.Get(t.Type); r.API() == Chat && f.Exists() {
				loseMembers(f, toolMembers[r.API()], lose)
			}
		}
	}
	known := members[r.API()]
	for i := range r.view.Turns {
		t := &r.view.Turns[i]
		first, last := ValueOf(t.At), LastOf(t.At)
		if first.Kind() == jsonscan.Object {
			for v, list := first, first.Parent(); v.Exists(); v = list.Next(v) {
				loseMembers(v, known, lose)
				if v == last {
					break
				}
			}
		}
		loseInner(t.Blocks, first.Index(), last.Index(), known, lose)
	}
}

// loseInner is loseFields for blocks whose objects are not among the items first to last themselves.
func loseInner(list []Block, first, last int, known map[string]bool, lose Lose) {
	for i := range list {
		b := &list[i]
		v := ValueOf(b.At)
		item := v.Parent().Kind() == jsonscan.Array && v.Index() >= first && v.Index() <= last && !v.Parent().KeyIs("content") &&
			!v.Parent().KeyIs("tool_calls") && !v.Parent().KeyIs("output")
		if b.Kind != Unknown && b.Kind != ServerItem && !item {
			loseMembers(v, known, lose)
		}
		if sum := v.Get("summary"); b.Kind == Reasoning && !b.Summary && b.Text != "" && sum.First().Exists() {
			lose(sum.Path(), "a summary beside the reasoning")
		}
		loseInner(b.Content, first, last, known, lose)
	}
}

// loseMembers records the members of v that are not known and not empty.
func loseMembers(v jsonscan.Value, known map[string]bool, lose Lose) {
	for m := v.First(); m.Exists() && v.Kind() == jsonscan.Object; m = v.Next(m) {
		if known[m.Key()] {
			continue
		}
		switch string(m.Raw()) {
		case "null", "false", `""`, "[]", "{}":
		default:
			lose(m.Path(), "no counterpart in the other API")
		}
	}
}
