// SPDX-License-Identifier: Apache-2.0

package block

// EncodeOptions are for encoding to a named API. nil is all defaults.
type EncodeOptions struct {
	// Strict makes a conversion that loses something fail with a *[LossError].
	Strict bool
}

// Convert is what chat.Encode, responses.Encode and messages.Encode call. A request of the dialect's API is copied with
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

// modelled names the top-level members that Params, Turns and Tools cover, per API, and those that say nothing about
// the answer.
var modelled = [...]map[string]bool{
	Chat: set("model", "messages", "tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options",
		"max_tokens", "max_completion_tokens", "temperature", "top_p", "min_p", "top_k", "seed", "n",
		"frequency_penalty", "presence_penalty", "repetition_penalty", "stop", "stop_token_ids", "ignore_eos",
		"logprobs", "top_logprobs", "reasoning_effort", "response_format", "verbosity", "user", "prompt_cache_key",
		"service_tier", "thinking"),
	Responses: set("model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "stream",
		"max_output_tokens", "temperature", "top_p", "top_logprobs", "reasoning", "text", "user",
		"prompt_cache_key", "service_tier", "include", "store"),
	Messages: set("model", "system", "messages", "tools", "tool_choice", "stream", "max_tokens", "temperature",
		"top_p", "top_k", "stop_sequences", "metadata", "service_tier", "thinking", "output_config"),
}

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// loseFields records the top-level members of a body that no conversion carries.
func (r *Request) loseFields(lose Lose) {
	if r.doc == nil {
		return
	}
	known := modelled[r.API()]
	root := r.doc.Root()
	for m := root.First(); m.Exists(); m = root.Next(m) {
		if key := m.Key(); !known[key] && !m.IsNull() {
			lose(m.Path(), "no counterpart in the other API")
		}
	}
}
