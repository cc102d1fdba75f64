// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/messages"
	"github.com/weft-go/weft/protocols/responses"
)

// field is a top-level field of a request: its JSON, and its value as read through Params, for example.
type field struct {
	member string
	want   any
	read   func(r *block.Request) any
}

func deref(v any) any {
	if p := reflect.ValueOf(v); p.Kind() == reflect.Pointer {
		if p.IsNil() {
			return nil
		}
		return p.Elem().Interface()
	}
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	return v
}

// TestFields reads every top-level field that the APIs and the engines define, one request per field. Each is preserved
// in its own API with and without the body.
func TestFields(t *testing.T) {
	p := func(get func(p block.Params) any) func(*block.Request) any {
		return func(r *block.Request) any { return get(r.Params()) }
	}
	f := func(path ...string) func(*block.Request) any {
		return func(r *block.Request) any { return r.Field(path...) }
	}
	previous := func(r *block.Request) any { id, _ := responses.Thread(r); return id }
	conversation := func(r *block.Request) any { _, id := responses.Thread(r); return id }
	tool := func(r *block.Request) any { return r.Tools()[0].Name }
	tables := [3][]field{
		{
			{`"model":"m2"`, "m2", p(func(p block.Params) any { return p.Model })},
			{`"frequency_penalty":-2`, -2.0, p(func(p block.Params) any { return p.Sampling.FrequencyPenalty })},
			{`"presence_penalty":2.0`, 2.0, p(func(p block.Params) any { return p.Sampling.PresencePenalty })},
			{`"logit_bias":{"50256":-100}`, `{"50256":-100}`, f("logit_bias")},
			{`"logprobs":true`, true, p(func(p block.Params) any { return p.Sampling.Logprobs })},
			{`"top_logprobs":20`, int64(20), p(func(p block.Params) any { return p.Sampling.TopLogprobs })},
			{`"max_tokens":7`, int64(7), p(func(p block.Params) any { return p.MaxTokens })},
			{`"max_completion_tokens":8`, int64(8), p(func(p block.Params) any { return p.MaxTokens })},
			{`"n":3`, int64(3), p(func(p block.Params) any { return p.Sampling.N })},
			{`"modalities":["text"]`, `["text"]`, f("modalities")},
			{`"audio":{"voice":"x"}`, `{"voice":"x"}`, f("audio")},
			{`"prediction":{"type":"content"}`, `{"type":"content"}`, f("prediction")},
			{`"web_search_options":{"a":1}`, `{"a":1}`, f("web_search_options")},
			{`"moderation":{"a":1}`, `{"a":1}`, f("moderation")},
			{`"parallel_tool_calls":false`, true, p(func(p block.Params) any { return p.ToolChoice.Serial })},
			{`"prompt_cache_key":"k"`, "k", p(func(p block.Params) any { return p.CacheKey })},
			{`"prompt_cache_retention":"24h"`, `"24h"`, f("prompt_cache_retention")},
			{`"prompt_cache_options":{"mode":"explicit"}`, `{"mode":"explicit"}`, f("prompt_cache_options")},
			{`"safety_identifier":"s"`, `"s"`, f("safety_identifier")},
			{`"user":"u"`, "u", p(func(p block.Params) any { return p.User })},
			{`"store":true`, `true`, f("store")},
			{`"metadata":{"a":"b"}`, `{"a":"b"}`, f("metadata")},
			{`"service_tier":"flex"`, "flex", p(func(p block.Params) any { return p.ServiceTier })},
			{`"reasoning_effort":"max"`, "max", p(func(p block.Params) any { return p.Thinking.Effort })},
			{`"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"object"}}}`, "json_schema n {\"type\":\"object\"} true",
				p(func(p block.Params) any {
					return fmt.Sprintf("%s %s %s %v", p.Format.Type, p.Format.Name, p.Format.Schema, *p.Format.Strict)
				})},
			{`"seed":-9223372036854775808`, int64(-9223372036854775808), p(func(p block.Params) any { return p.Sampling.Seed })},
			{`"stop":"x"`, []string{"x"}, p(func(p block.Params) any { return p.Sampling.Stop })},
			{`"stop":["x","y"]`, []string{"x", "y"}, p(func(p block.Params) any { return p.Sampling.Stop })},
			{`"stop":[1,2]`, []int64{1, 2}, p(func(p block.Params) any { return p.Sampling.StopTokens })},
			{`"stream":true`, true, p(func(p block.Params) any { return p.Stream })},
			{`"stream_options":{"include_usage":true}`, true, p(func(p block.Params) any { return p.StreamUsage })},
			{`"stream_options":{"continuous_usage_stats":true}`, `true`, f("stream_options", "continuous_usage_stats")},
			{`"stream_options":{"include_obfuscation":false}`, `false`, f("stream_options", "include_obfuscation")},
			{`"stream_options":null`, false, p(func(p block.Params) any { return p.StreamUsage })},
			{`"temperature":1.50e0`, 1.5, p(func(p block.Params) any { return p.Sampling.Temperature })},
			{`"top_p":0.10`, 0.1, p(func(p block.Params) any { return p.Sampling.TopP })},
			{`"tools":[{"type":"function","function":{"name":"f","parameters":{}}}]`, "f", tool},
			{`"tools":[{"type":"custom","custom":{"name":"f","format":{"type":"text"}}}]`, "f", tool},
			{`"tool_choice":"required"`, block.Required, p(func(p block.Params) any { return p.ToolChoice.Mode })},
			{`"tool_choice":{"type":"function","function":{"name":"f"}}`, []string{"f"}, p(func(p block.Params) any { return p.ToolChoice.Allow })},
			{`"tool_choice":{"type":"custom","custom":{"name":"f"}}`, []string{"f"}, p(func(p block.Params) any { return p.ToolChoice.Allow })},
			{`"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"f"}}]}}`, []string{"f"},
				p(func(p block.Params) any { return p.ToolChoice.Allow })},
			{`"functions":[{"name":"f","parameters":{},"x":1}]`, "f", tool},
			{`"function_call":{"name":"f"}`, []string{"f"}, p(func(p block.Params) any { return p.ToolChoice.Allow })},
			{`"function_call":"none"`, block.NoTools, p(func(p block.Params) any { return p.ToolChoice.Mode })},
			{`"verbosity":"low"`, "low", p(func(p block.Params) any { return p.Verbosity })},
			// Fields of engines.
			{`"top_k":-1`, int64(-1), p(func(p block.Params) any { return p.Sampling.TopK })},
			{`"min_p":0.05`, 0.05, p(func(p block.Params) any { return p.Sampling.MinP })},
			{`"repetition_penalty":1.1`, 1.1, p(func(p block.Params) any { return p.Sampling.RepetitionPenalty })},
			{`"ignore_eos":true`, true, p(func(p block.Params) any { return p.Sampling.IgnoreEOS })},
			{`"stop_token_ids":[1]`, []int64{1}, p(func(p block.Params) any { return p.Sampling.StopTokens })},
			{`"min_tokens":4`, `4`, f("min_tokens")},
			{`"skip_special_tokens":false`, `false`, f("skip_special_tokens")},
			{`"include_stop_str_in_output":true`, `true`, f("include_stop_str_in_output")},
			{`"continue_final_message":true`, `true`, f("continue_final_message")},
			{`"chat_template_kwargs":{"a":1}`, `{"a":1}`, f("chat_template_kwargs")},
			{`"chat_template_args":{"a":2}`, `{"a":2}`, f("chat_template_args")},
			{`"thinking_token_budget":9`, `9`, f("thinking_token_budget")},
			{`"include_reasoning":false`, `false`, f("include_reasoning")},
			{`"use_beam_search":true`, `true`, f("use_beam_search")},
			{`"length_penalty":0.5`, `0.5`, f("length_penalty")},
			{`"watermarking":{"a":1}`, `{"a":1}`, f("watermarking")},
			{`"spaces_between_special_tokens":false`, `false`, f("spaces_between_special_tokens")},
			{`"truncate_prompt_tokens":5`, `5`, f("truncate_prompt_tokens")},
			{`"truncation_side":"left"`, `"left"`, f("truncation_side")},
			{`"prompt_logprobs":1`, `1`, f("prompt_logprobs")},
			{`"logprob_token_ids":[3]`, `[3]`, f("logprob_token_ids")},
			{`"allowed_token_ids":[3]`, `[3]`, f("allowed_token_ids")},
			{`"bad_words":["b"]`, `["b"]`, f("bad_words")},
			{`"bad_words_token_ids":[[1]]`, `[[1]]`, f("bad_words_token_ids")},
			{`"echo":true`, `true`, f("echo")},
			{`"add_generation_prompt":false`, `false`, f("add_generation_prompt")},
			{`"add_special_tokens":true`, `true`, f("add_special_tokens")},
			{`"documents":[{"a":1}]`, `[{"a":1}]`, f("documents")},
			{`"chat_template":"{{x}}"`, `"{{x}}"`, f("chat_template")},
			{`"media_io_kwargs":{"a":1}`, `{"a":1}`, f("media_io_kwargs")},
			{`"mm_processor_kwargs":{"a":1}`, `{"a":1}`, f("mm_processor_kwargs")},
			{`"structured_outputs":{"json":{"type":"object"}}`, `{"type":"object"}`, f("structured_outputs", "json")},
			{`"structured_outputs":{"regex":"a+"}`, `"a+"`, f("structured_outputs", "regex")},
			{`"structured_outputs":{"choice":["a"]}`, `["a"]`, f("structured_outputs", "choice")},
			{`"structured_outputs":{"grammar":"g"}`, `"g"`, f("structured_outputs", "grammar")},
			{`"structured_outputs":{"structural_tag":"t"}`, `"t"`, f("structured_outputs", "structural_tag")},
			{`"guided_json":{"type":"object"}`, `{"type":"object"}`, f("guided_json")},
			{`"guided_regex":"a"`, `"a"`, f("guided_regex")},
			{`"guided_choice":["a"]`, `["a"]`, f("guided_choice")},
			{`"guided_grammar":"g"`, `"g"`, f("guided_grammar")},
			{`"guided_decoding_backend":"xgrammar"`, `"xgrammar"`, f("guided_decoding_backend")},
			{`"guided_whitespace_pattern":" ?"`, `" ?"`, f("guided_whitespace_pattern")},
			{`"priority":-3`, `-3`, f("priority")},
			{`"request_id":"r"`, `"r"`, f("request_id")},
			{`"session_id":"s"`, `"s"`, f("session_id")},
			{`"return_tokens_as_token_ids":true`, `true`, f("return_tokens_as_token_ids")},
			{`"return_token_ids":true`, `true`, f("return_token_ids")},
			{`"cache_salt":"s"`, `"s"`, f("cache_salt")},
			{`"kv_transfer_params":{"a":1}`, `{"a":1}`, f("kv_transfer_params")},
			{`"ec_transfer_params":{"a":1}`, `{"a":1}`, f("ec_transfer_params")},
			{`"detokenize":false`, `false`, f("detokenize")},
			{`"regex":"a"`, `"a"`, f("regex")},
			{`"ebnf":"g"`, `"g"`, f("ebnf")},
			{`"no_stop_trim":true`, `true`, f("no_stop_trim")},
			{`"lora_path":"l"`, `"l"`, f("lora_path")},
			{`"session_params":{"id":"s"}`, `{"id":"s"}`, f("session_params")},
			{`"separate_reasoning":false`, `false`, f("separate_reasoning")},
			{`"stream_reasoning":false`, `false`, f("stream_reasoning")},
			{`"return_hidden_states":true`, `true`, f("return_hidden_states")},
			{`"sampling_seed":5`, `5`, f("sampling_seed")},
			{`"rid":"r"`, `"r"`, f("rid")},
			{`"logits_processors":["x"]`, `["x"]`, f("logits_processors")},
			{`"nvext":{"agent_hints":{"priority":1}}`, `{"agent_hints":{"priority":1}}`, f("nvext")},
			{`"thinking":{"type":"enabled"}`, block.ThinkingOn, p(func(p block.Params) any { return p.Thinking.Mode })},
		},
		{
			{`"model":"m2"`, "m2", p(func(p block.Params) any { return p.Model })},
			{`"instructions":"i"`, "i", func(r *block.Request) any { return r.Turns()[0].Text("") }},
			{`"background":true`, `true`, f("background")},
			{`"conversation":{"id":"c"}`, "c", conversation},
			{`"conversation":"c"`, "c", conversation},
			{`"context_management":[{"type":"compaction","compact_threshold":1}]`, `[{"type":"compaction","compact_threshold":1}]`, f("context_management")},
			{`"include":["reasoning.encrypted_content"]`, `["reasoning.encrypted_content"]`, f("include")},
			{`"max_output_tokens":5`, int64(5), p(func(p block.Params) any { return p.MaxTokens })},
			{`"max_tokens":5`, int64(5), p(func(p block.Params) any { return p.MaxTokens })},
			{`"max_tool_calls":2`, `2`, f("max_tool_calls")},
			{`"metadata":{"a":"b"}`, `{"a":"b"}`, f("metadata")},
			{`"moderation":{"a":1}`, `{"a":1}`, f("moderation")},
			{`"parallel_tool_calls":false`, true, p(func(p block.Params) any { return p.ToolChoice.Serial })},
			{`"previous_response_id":"r"`, "r", previous},
			{`"prompt":{"id":"p"}`, `{"id":"p"}`, f("prompt")},
			{`"prompt_cache_key":"k"`, "k", p(func(p block.Params) any { return p.CacheKey })},
			{`"prompt_cache_retention":"24h"`, `"24h"`, f("prompt_cache_retention")},
			{`"prompt_cache_options":{"ttl":"30m"}`, `{"ttl":"30m"}`, f("prompt_cache_options")},
			{`"reasoning":{"effort":"high"}`, "high", p(func(p block.Params) any { return p.Thinking.Effort })},
			{`"reasoning":{"summary":"auto"}`, "auto", p(func(p block.Params) any { return p.Thinking.Summary })},
			{`"reasoning":{"generate_summary":"auto"}`, "auto", p(func(p block.Params) any { return p.Thinking.Summary })},
			{`"reasoning":{"context":"all_turns"}`, `"all_turns"`, f("reasoning", "context")},
			{`"reasoning":{"mode":"pro"}`, `"pro"`, f("reasoning", "mode")},
			{`"safety_identifier":"s"`, `"s"`, f("safety_identifier")},
			{`"service_tier":"flex"`, "flex", p(func(p block.Params) any { return p.ServiceTier })},
			{`"store":false`, `false`, f("store")},
			{`"stream":true`, true, p(func(p block.Params) any { return p.Stream })},
			{`"stream_options":{"include_obfuscation":false}`, `false`, f("stream_options", "include_obfuscation")},
			{`"temperature":0.5`, 0.5, p(func(p block.Params) any { return p.Sampling.Temperature })},
			{`"text":{"format":{"type":"json_schema","name":"n","schema":{}},"verbosity":"low"}`, "json_schema n {} low",
				p(func(p block.Params) any {
					return fmt.Sprintf("%s %s %s %s", p.Format.Type, p.Format.Name, p.Format.Schema, p.Verbosity)
				})},
			{`"tool_choice":"none"`, block.NoTools, p(func(p block.Params) any { return p.ToolChoice.Mode })},
			{`"tool_choice":{"type":"custom","name":"f"}`, []string{"f"}, p(func(p block.Params) any { return p.ToolChoice.Allow })},
			{`"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`, true, p(func(p block.Params) any { return p.ToolChoice.Serial })},
			{`"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"}]}`, []string{"f"},
				p(func(p block.Params) any { return p.ToolChoice.Allow })},
			{`"tools":[{"type":"namespace","name":"ns","description":"d","tools":[{"type":"function","name":"f"}]}]`, "f", tool},
			{`"top_logprobs":3`, int64(3), p(func(p block.Params) any { return p.Sampling.TopLogprobs })},
			{`"top_p":0.5`, 0.5, p(func(p block.Params) any { return p.Sampling.TopP })},
			{`"truncation":"auto"`, `"auto"`, f("truncation")},
			{`"user":"u"`, "u", p(func(p block.Params) any { return p.User })},
			{`"client_metadata":{"a":"b"}`, `{"a":"b"}`, f("client_metadata")},
			{`"nvext":{"a":1}`, `{"a":1}`, f("nvext")},
		},
		{
			{`"model":"m2"`, "m2", p(func(p block.Params) any { return p.Model })},
			{`"max_tokens":5`, int64(5), p(func(p block.Params) any { return p.MaxTokens })},
			{`"system":"s"`, "s", func(r *block.Request) any { return r.Turns()[0].Text("") }},
			{`"system":[{"type":"text","text":"s"}]`, "s", func(r *block.Request) any { return r.Turns()[0].Text("") }},
			{`"cache_control":{"type":"ephemeral","ttl":"1h"}`, `{"type":"ephemeral","ttl":"1h"}`, f("cache_control")},
			{`"cache_control":{"ttl":300,"scope":"global"}`, `{"ttl":300,"scope":"global"}`, f("cache_control")},
			{`"container":"c"`, `"c"`, f("container")},
			{`"inference_geo":"us"`, `"us"`, f("inference_geo")},
			{`"metadata":{"user_id":"u"}`, "u", p(func(p block.Params) any { return p.User })},
			{`"output_config":{"effort":"low"}`, "low", p(func(p block.Params) any { return p.Thinking.Effort })},
			{`"output_config":{"format":{"type":"json_schema","schema":{}}}`, "json_schema", p(func(p block.Params) any { return p.Format.Type })},
			{`"output_format":{"type":"json_schema","schema":{}}`, "json_schema", p(func(p block.Params) any { return p.Format.Type })},
			{`"service_tier":"standard_only"`, "standard_only", p(func(p block.Params) any { return p.ServiceTier })},
			{`"stop_sequences":["x"]`, []string{"x"}, p(func(p block.Params) any { return p.Sampling.Stop })},
			{`"stream":true`, true, p(func(p block.Params) any { return p.Stream })},
			{`"temperature":0.5`, 0.5, p(func(p block.Params) any { return p.Sampling.Temperature })},
			{`"top_k":5`, int64(5), p(func(p block.Params) any { return p.Sampling.TopK })},
			{`"top_p":0.5`, 0.5, p(func(p block.Params) any { return p.Sampling.TopP })},
			{`"thinking":{"type":"enabled","budget_tokens":1024}`, int64(1024), p(func(p block.Params) any { return p.Thinking.Budget })},
			{`"thinking":{"type":"adaptive","display":"omitted"}`, "omitted", func(r *block.Request) any { return messages.ThinkingDisplay(r) }},
			{`"tool_choice":{"type":"any","disable_parallel_tool_use":true}`, block.Required, p(func(p block.Params) any { return p.ToolChoice.Mode })},
			{`"tool_choice":{"type":"tool","name":"f"}`, []string{"f"}, p(func(p block.Params) any { return p.ToolChoice.Allow })},
			{`"tools":[{"name":"f","input_schema":{},"input_examples":[{"a":1}],"allowed_callers":["direct"],"eager_input_streaming":true}]`, "f", tool},
			{`"tools":[{"type":"web_search_20250305","name":"web_search"}]`, "web_search", tool},
			{`"context_management":{"edits":[]}`, `{"edits":[]}`, f("context_management")},
			{`"mcp_servers":[{"type":"url"}]`, `[{"type":"url"}]`, f("mcp_servers")},
			{`"speed":"fast"`, `"fast"`, f("speed")},
			{`"fallbacks":["m"]`, `["m"]`, f("fallbacks")},
			{`"fallback_credit_token":"t"`, `"t"`, f("fallback_credit_token")},
			{`"diagnostics":{"a":1}`, `{"a":1}`, f("diagnostics")},
			{`"thread":{"type":"continue","previous_message_id":"m"}`, "continue m", func(r *block.Request) any { mode, id := messages.Thread(r); return mode + " " + id }},
			{`"nvext":{"a":1}`, `{"a":1}`, f("nvext")},
		},
	}
	for i, table := range tables {
		a := apis[i]
		for _, f := range table {
			t.Run(a.api.String()+"/"+f.member[1:strings.Index(f.member[1:], `"`)+1], func(t *testing.T) {
				list := []string{"messages", "input", "messages"}[i]
				body := `{"` + list + `":[{"role":"user","content":"hi"}],` + f.member + `}`
				r, err := a.decode([]byte(body), nil)
				require.NoError(t, err)
				require.Equal(t, f.want, deref(f.read(r)))
				out, err := r.AppendBody(nil)
				require.NoError(t, err)
				require.Equal(t, body, string(out))

				d, err := detached(a, []byte(body))
				require.NoError(t, err)
				require.Equal(t, f.want, deref(f.read(d)), "detached")
				out, err = d.AppendBody(nil)
				require.NoError(t, err)
				same, diff := equalJSON([]byte(body), out)
				require.True(t, same, "%s\n%s", out, diff)
			})
		}
	}
}

// TestFieldReadsUnknownFields reads fields of turns, tools and blocks that have no Go field.
func TestFieldReadsUnknownFields(t *testing.T) {
	body := []byte(`{"messages":[{"role":"assistant","content":[{"type":"text","text":"a","citations":[{"type":"x"}]},{"type":"tool_use","id":"c","name":"f","input":{},"caller":{"type":"direct"}}],"note":1}],` +
		`"tools":[{"name":"f","input_schema":{},"input_examples":[{"a":1}]}]}`)
	r, err := messages.Decode(body, nil)
	require.NoError(t, err)
	d, err := detached(apis[2], body)
	require.NoError(t, err)
	for _, r := range []*block.Request{r, d} {
		turn, tool := r.Turns()[0], r.Tools()[0]
		require.Equal(t, `[{"type":"x"}]`, string(turn.Blocks[0].Field("citations")))
		require.Equal(t, `{"type":"direct"}`, string(turn.Blocks[1].Field("caller")))
		require.Equal(t, `1`, string(turn.Field("note")))
		require.Equal(t, `[{"a":1}]`, string(tool.Field("input_examples")))
		require.Nil(t, tool.Field("nothing"))
	}
}

// TestFieldsOfObject reads the fields of an object in the body, with edits.
func TestFieldsOfObject(t *testing.T) {
	r, err := responses.Decode([]byte(`{"model":"m","input":"x","text":{"verbosity":"low","a\u0062":[1]},"include":["a"],"store":false}`), nil)
	require.NoError(t, err)
	read := func(path ...string) (list []string) {
		for name, raw := range r.Fields(path...) {
			list = append(list, name+"="+string(raw()))
		}
		return list
	}
	require.Equal(t, []string{`verbosity="low"`, "ab=[1]"}, read("text"))
	for _, name := range []string{"include", "store", "absent"} {
		require.Empty(t, read(name))
	}
	p := r.Params()
	p.Verbosity = "high"
	require.NoError(t, r.SetParams(p))
	require.Equal(t, []string{`verbosity="high"`, "ab=[1]"}, read("text"))
}
