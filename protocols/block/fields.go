// SPDX-License-Identifier: Apache-2.0

package block

import (
	"iter"

	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// Field returns the raw JSON at a path of field names from the root of the body, with edits applied. It returns nil if
// the value is absent or the request was built. It does not look inside tool schemas and call arguments. In a detached
// request, it finds only values that turns, tools and parameters do not hold.
//
// These fields of the APIs have no method of Request:
//
//	chat          logit_bias modalities audio prediction web_search_options moderation metadata store safety_identifier
//	              prompt_cache_retention prompt_cache_options
//	              stream_options.include_obfuscation (true if absent) stream_options.continuous_usage_stats (vLLM, Dynamo)
//	responses     previous_response_id conversation include store (true if absent) background truncation max_tool_calls
//	              context_management prompt metadata client_metadata moderation safety_identifier prompt_cache_retention
//	              prompt_cache_options reasoning.context reasoning.mode stream_options.include_obfuscation (true if absent)
//	messages      cache_control thread container context_management mcp_servers inference_geo speed fallbacks
//	              fallback_credit_token diagnostics thinking.display
//	completions   suffix best_of echo logit_bias prompt_embeds nvext.token_data
//
// These fields are added to the OpenAI APIs by vLLM, SGLang and Dynamo. Names after a slash are used if the first is
// absent:
//
//	tokens        min_tokens skip_special_tokens spaces_between_special_tokens include_stop_str_in_output no_stop_trim
//	              truncate_prompt_tokens truncation_side allowed_token_ids bad_words bad_words_token_ids logprob_token_ids
//	              prompt_logprobs return_token_ids return_tokens_as_token_ids return_hidden_states detokenize echo
//	              use_beam_search length_penalty watermarking sampling_seed sampling_params logits_processors
//	              add_special_tokens
//	prompt        chat_template chat_template_kwargs/chat_template_args add_generation_prompt (true if absent)
//	              continue_final_message documents media_io_kwargs mm_processor_kwargs prompt_embeds
//	reasoning     thinking_token_budget include_reasoning separate_reasoning stream_reasoning
//	constraints   structured_outputs.json/guided_json structured_outputs.regex/guided_regex/regex
//	              structured_outputs.choice/guided_choice structured_outputs.grammar/guided_grammar/ebnf
//	              structured_outputs.structural_tag/structural_tag guided_decoding_backend guided_whitespace_pattern
//	serving       priority request_id/rid session_id session_params cache_salt lora_path kv_transfer_params
//	              ec_transfer_params nvext
func (r *Request) Field(path ...string) []byte { return r.value(path).Raw() }

// Fields returns an iterator over the names of the fields of the body, or of the object at a path in it, with edits applied, in their
// order, and functions that return their raw JSON: a long conversation may have to be joined first, see [Request.Body].
// There are none in a request that was built. A detached request has those that Field finds.
func (r *Request) Fields(path ...string) iter.Seq2[string, func() []byte] {
	return func(yield func(string, func() []byte) bool) {
		root := r.value(path)
		if root.Kind() != jsonscan.Object {
			return
		}
		for v := root.First(); v.Exists(); v = root.Next(v) {
			if !yield(v.Key(), v.Raw) {
				return
			}
		}
	}
}

// value implements Field and returns the value instead of its bytes.
func (r *Request) value(path []string) jsonscan.Value {
	doc := r.extra
	if r.doc != nil {
		if r.edits != nil && !r.dirty && r.err == nil {
			if v, ok := r.edits.Find(path...); ok {
				return v
			}
		}
		if r.Commit() != nil {
			return jsonscan.Value{}
		}
		doc = r.doc
	}
	if doc == nil {
		return jsonscan.Value{}
	}
	v := doc.Root()
	for _, p := range path {
		v = v.Get(p)
	}
	return v
}

// Field returns the raw JSON of a field of the block's own object, whether this package models it or not, for example
// citations or caller. It returns nil if the field is absent. It reads the body or, in a detached request, the JSON
// that no field of Block holds.
func (b *Block) Field(name string) []byte { return memberOf(b.At, b.rest, name) }

// Field returns the raw JSON of a field of the message or item that the turn begins with, for example status or phase,
// or nil if absent. See [Block.Field].
func (t *Turn) Field(name string) []byte {
	if t.At.doc == nil && t.rest != nil && t.rest.size > 0 { // a list of items
		for _, in := range t.rest.inner {
			if in.index == 0 {
				return memberOf(Ref{}, in.res, name)
			}
		}
		return nil
	}
	return memberOf(t.At, t.rest, name)
}

// Field returns the raw JSON of a field of the tool's declaration, for example input_examples, or nil if absent. See
// [Block.Field].
func (t *Tool) Field(name string) []byte { return memberOf(t.At, t.rest, name) }

func memberOf(at Ref, rest *residue, name string) []byte {
	if at.doc != nil {
		if v := valueOf(at).Get(name); !v.IsNull() {
			return v.Raw()
		}
		return nil
	}
	if rest == nil {
		return nil
	}
	for _, x := range rest.add {
		if x.key == name && string(x.value) != "null" {
			return x.value
		}
	}
	return nil
}
