// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/block"
)

// This file makes sure that no field of a request is ignored silently:
//
//	ignore      collects the fields that the gateway does not know
//	unrendered  adds what the prompt does not contain
//	constrain   chooses engines that enforce what the request demands of the output, or refuses it
//	announce    names the fields without effect in a header and the log

// headerDropped names the fields of a request that had no effect.
const headerDropped = "X-Weft-Dropped"

// maxDropped and maxDroppedName limit the header: the number of fields, and the bytes of the name of each.
const maxDropped, maxDroppedName = 32, 64

// constraints lists the fields of all APIs that demand something of the output, besides the APIs' own.
var constraints = []string{"structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar"}

// effective lists, per API, the fields with an effect on the response, or of which the gateway refuses the values
// that it does not implement. The constraints and the fields of hints are not
// in it.
var effective = map[block.API][]string{
	block.Chat: {
		"model", "messages", "tools", "tool_choice", "functions", "function_call", "parallel_tool_calls", "stream", "stream_options",
		"max_tokens", "max_completion_tokens", "min_tokens", "temperature", "top_p", "min_p", "top_k", "seed", "n",
		"frequency_penalty", "presence_penalty", "repetition_penalty", "stop", "stop_token_ids", "ignore_eos", "include_stop_str_in_output",
		"logit_bias", "reasoning_effort", "thinking", "chat_template_kwargs", "chat_template_args", "add_generation_prompt",
		"continue_final_message", "response_format", "user", "logprobs", "top_logprobs",
	},
	block.Responses: {
		"model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options", "max_output_tokens",
		"min_tokens", "temperature", "top_p", "logit_bias", "reasoning", "text", "include", "top_logprobs", "store", "metadata", "user", "background", "prompt",
		"conversation", "previous_response_id", "chat_template_kwargs", "chat_template_args",
	},
	block.Completions: {
		"model", "prompt", "stream", "stream_options", "max_tokens", "min_tokens", "temperature", "top_p", "min_p", "top_k", "seed", "n",
		"frequency_penalty", "presence_penalty", "repetition_penalty", "stop", "stop_token_ids", "ignore_eos", "include_stop_str_in_output",
		"logit_bias", "logprobs", "add_special_tokens", "response_format", "user", "echo", "suffix", "best_of", "prompt_logprobs",
	},
	block.Messages: {
		"model", "messages", "system", "tools", "tool_choice", "stream", "max_tokens", "min_tokens", "temperature", "top_p", "top_k", "logit_bias",
		"stop_sequences", "thinking", "output_config", "output_format", "metadata", "thread", "chat_template_kwargs", "chat_template_args",
	},
}

// An object is a field of which only some fields have an effect.
type object struct {
	name  string
	known []string
}

// objects lists the objects among the effective fields, per API. unrendered has more of them.
var objects = map[block.API][]object{
	block.Chat: {
		{"stream_options", []string{"include_usage", "continuous_usage_stats"}}, {"thinking", []string{"type"}},
	},
	block.Responses: {
		{"reasoning", []string{"effort", "summary", "generate_summary", "context"}}, {"text", []string{"format"}},
		{"stream_options", []string{"include_usage"}}, {"prompt_cache_options", []string{"mode", "ttl"}},
	},
	block.Completions: {{"stream_options", []string{"include_usage", "continuous_usage_stats"}}},
	block.Messages: {
		{"thinking", []string{"type", "budget_tokens", "display"}}, {"output_config", []string{"effort", "format"}}, {"metadata", []string{"user_id"}},
	},
}

// idle lists, for fields whose default is not zero, the value that asks for nothing; null and "" do as well. Of
// other fields, false, 0, [] and {} ask for nothing.
var idle = map[string]string{
	"modalities": `["text"]`, "service_tier": `"auto"`, "truncation": `"disabled"`, "speed": `"standard"`, "best_of": "1",
	"skip_special_tokens": "true", "spaces_between_special_tokens": "true", "detokenize": "true", "cache_prompt": "true", "generate": "true",
	"include_reasoning": "true", "separate_reasoning": "true", "stream_reasoning": "true",
	"max_tool_calls": "null", "web_search_options": "null", "prompt_logprobs": "null",
}

// ignore collects the fields of the request that have no effect. Those that turn out to be hints are removed later.
func (c *call) ignore() {
	for name, raw := range c.req.Fields() {
		if slices.Contains(effective[c.req.API()], name) || slices.Contains(constraints, name) {
			continue
		}
		c.ignoreField(name, raw())
	}
	switch c.req.API() {
	case block.Chat:
		switch raw := c.req.Field("thinking"); {
		case len(raw) > 0 && raw[0] != '{':
			c.ignoreField("thinking", raw)
		case c.req.Params().Thinking.Mode == block.ThinkingUnspecified && len(c.req.Field("thinking", "type")) > 0:
			c.ignoreField("thinking.type", c.req.Field("thinking", "type"))
		}
	case block.Responses:
		if string(c.req.Field("store")) == "true" && c.g.opt.Store == nil {
			c.ignored = append(c.ignored, "store")
		}
		if n := c.req.Params().Sampling.TopLogprobs; n != nil && *n != 0 && !includesLogprobs(c.req) {
			c.ignored = append(c.ignored, "top_logprobs")
		}
		c.ignoreIncluded()
	case block.Messages:
		turns := c.req.Turns()
		for i := range turns {
			if t := &turns[i]; t.Role != block.RoleAssistant { // whose citations are of earlier responses
				c.ignored = append(c.ignored, citing(t.Blocks)...)
			}
		}
	}
	for _, o := range objects[c.req.API()] {
		for name, raw := range c.req.Fields(o.name) {
			if !slices.Contains(o.known, name) && asks(name, raw()) {
				c.ignored = append(c.ignored, o.name+"."+name)
			}
		}
	}
}

// included lists the values of include that have an effect.
var included = []string{"reasoning.encrypted_content", "message.output_text.logprobs"}

// ignoreIncluded collects the values of include that have no effect.
func (c *call) ignoreIncluded() {
	raw := c.req.Field("include")
	if len(raw) == 0 || string(raw) == `["reasoning.encrypted_content"]` { // of Codex; the rest allocates
		return
	}
	var list []string
	json.Unmarshal(raw, &list) // mistyped has checked it
	for i, value := range list {
		if !slices.Contains(included, value) {
			c.ignored = append(c.ignored, fmt.Sprintf("include[%d]", i))
		}
	}
}

// ignoreField adds a field to those without effect, unless its value asks for nothing.
func (c *call) ignoreField(name string, value []byte) {
	if asks(name, value) {
		c.ignored = append(c.ignored, name)
	}
}

// asks reports whether the value of a field asks for something.
func asks(name string, value []byte) bool {
	want, ok := idle[name]
	switch v := string(value); {
	case v == "null" || v == `""` || v == want:
		return false
	case !ok && (v == "false" || v == "0" || v == "[]" || v == "{}"):
		return false
	}
	return true
}

// switchable returns an error for a Messages request whose thinking the API does not have. Unknown efforts are only named: they are
// a matter of the model.
func (c tokenBackend) switchable() error {
	raw := c.req.Field("thinking", "type")
	if c.req.API() == block.Messages && c.req.Params().Thinking.Mode == block.ThinkingUnspecified && len(raw) > 0 && asks("", raw) {
		return apierr.Invalid("thinking.type", "thinking.type must be enabled, disabled, adaptive or between_tools, not %.40s.", raw)
	}
	return nil
}

// effortField returns the field with the effort of reasoning.
func effortField(r *block.Request) string {
	switch r.API() {
	case block.Responses:
		return "reasoning.effort"
	case block.Messages:
		return "output_config.effort"
	}
	return "reasoning_effort"
}

// unrendered adds what the rendered prompt does not contain: parts of the conversation, tools, and what the template does not
// know of reasoning. Text that was only moved is not named.
func (c tokenBackend) unrendered() {
	last := ""
	for _, l := range c.text.Losses {
		if l.Path == "messages" || strings.HasPrefix(l.Why, "the order of") || strings.HasPrefix(l.Why, "the position of") {
			continue
		}
		if l.Path != last {
			c.ignored = append(c.ignored, l.Path)
		}
		last = l.Path
	}
	th := c.req.Params().Thinking
	if th.Effort == "" && th.Budget == nil && th.Mode != block.ThinkingOff {
		return
	}
	caps := c.model.Capabilities()
	switched := caps.Text("reasoning_switches") != ""
	switch {
	case th.Mode == block.ThinkingOff || th.Effort == "none":
		if !switched && caps.Text("reasoning_key") != "" { // the model reasons
			name := "thinking.type"
			if th.Mode != block.ThinkingOff {
				name = effortField(c.req)
			}
			c.ignored = append(c.ignored, name)
		}
	case th.Effort == "":
	case caps.Text("effort_variable") != "" && caps.NearestEffort(th.Effort) != "":
	case switched && (caps.Has("off_by_default") || caps.Has("undecided")): // it turns reasoning on
	default:
		c.ignored = append(c.ignored, effortField(c.req))
	}
	if th.Budget != nil && caps.Text("budget_variable") == "" {
		c.ignored = append(c.ignored, "thinking.budget_tokens")
	}
}

// field returns a field of the request for the reader of hints. A field that it finds is not ignored.
func (c *call) field(path ...string) []byte {
	value := c.req.Field(path...)
	if value != nil {
		c.hinted = append(c.hinted, path[0])
		if path[0] == "metadata" { // read, but OpenAI's is no hint
			return value
		}
		c.ignored = slices.DeleteFunc(c.ignored, func(name string) bool { return name == path[0] })
	}
	return value
}

// constrain implements backend: it finds what the request demands of the form of the output, and excludes the engines that do
// not enforce it. A demand that cannot be enforced is an error, or is ignored with Options.Unconstrained. Strict tools of which no
// call is required are a wish: it is ignored where it cannot be enforced.
func (c tokenBackend) constrain() error {
	if err := emptyStop(c.req); err != nil {
		return err
	}
	if err := c.wantLogprobs(); err != nil {
		return err
	}
	demand, err := c.model.Constraint(c.req, c.text)
	fault, _ := errors.AsType[*apierr.Error](err)
	fields := demands(c.req)
	c.wish = len(fields) == 0
	switch {
	case fault != nil && fault.Code == apierr.CodeUnsupported && c.wish:
		c.ignored = append(c.ignored, strictField(c.req))
		return nil
	case fault != nil && fault.Code == apierr.CodeUnsupported && c.g.opt.Unconstrained:
		c.ignored = append(c.ignored, fields...)
		return nil
	case err != nil || demand == nil:
		return err
	}
	c.tags = make(map[upstream.TokenKind][]byte)
	faults := make(map[upstream.TokenKind]error)
	var unable []index.WorkerID
	for _, e := range c.fleet.order {
		k := c.kind(e)
		if c.tags[k] == nil && faults[k] == nil {
			if c.tags[k], faults[k] = k.Constrain(demand); faults[k] != nil {
				err = faults[k] // of the last kind
			}
		}
		if faults[k] != nil {
			unable = append(unable, e.id)
		}
	}
	switch {
	case c.wish: // announce has the rest
		return nil
	case len(unable) < len(c.fleet.order):
		c.route.Exclude = append(c.route.Exclude, unable...)
		return nil
	case c.g.opt.Unconstrained:
		c.tags = nil
		c.ignored = append(c.ignored, fields...)
		return nil
	}
	if fault, ok := errors.AsType[*apierr.Error](err); ok && fault.Param == "" {
		fault.Param = fields[0]
	}
	return err
}

// strictField returns the field of the first strict tool.
func strictField(r *block.Request) string {
	for _, t := range r.Tools() {
		if t.Strict != nil && *t.Strict {
			return t.At.Path() + ".strict"
		}
	}
	return "tools"
}

// choiceField returns the field with the tool choice: tool_choice or, in the form before tools, function_call.
func choiceField(r *block.Request) string {
	if r.API() == block.Chat && !given(r, "tool_choice") && given(r, "function_call") {
		return "function_call"
	}
	return "tool_choice"
}

// demands returns the fields of a request that demand something of the output.
func demands(r *block.Request) (list []string) {
	param := choiceField(r)
	if mode := r.Params().ToolChoice.Mode; mode == block.Required || mode == block.ChoiceUnspecified && given(r, param) {
		list = append(list, param)
	}
	if f := r.Params().Format.Type; f != "" && f != "text" {
		for _, path := range [][]string{{"response_format"}, {"text", "format"}, {"output_config", "format"}, {"output_format"}} {
			if len(r.Field(path...)) > 0 {
				list = append(list, strings.Join(path, "."))
			}
		}
	}
	for _, name := range constraints {
		if given(r, name) {
			list = append(list, name)
		}
	}
	return list
}

// dropped implements backend.
func (c tokenBackend) dropped(e *engine) (names []string) {
	if c.route.Intent.Prefetch && c.ahead == nil {
		names = append(names, c.prefetchField())
	}
	for _, name := range e.kind.Traits().Drops {
		if given(c.req, name) {
			names = append(names, name)
		}
	}
	if c.tags != nil && c.tags[c.kind(e)] == nil { // a wish, or the request would be on another engine
		names = append(names, strictField(c.req))
	}
	return names
}

// announce names the fields without effect, also those without one at the chosen engine. Engines that ignore others get no further
// attempt, for which the header would be wrong. Managed endpoints with different APIs always do; then the log has these fields.
func (c *call) announce(h http.Header) {
	c.ignored = append(c.ignored, c.backend.dropped(c.place.engine)...)
	c.nameIgnored(h)
	if c.managed() {
		return
	}
	for _, e := range c.fleet.order {
		if len(c.unannounced(e)) > 0 {
			c.route.Exclude = append(c.route.Exclude, e.id)
		}
	}
}

// unannounced returns the fields that announce did not name and that have no effect at an engine.
func (c *call) unannounced(e *engine) []string {
	names := c.backend.dropped(e)
	if len(names) == 0 {
		return nil
	}
	announced := make(map[string]bool, len(c.ignored))
	for _, name := range c.ignored {
		announced[name] = true
	}
	return slices.DeleteFunc(names, func(name string) bool { return announced[name] })
}

// nameIgnored names c.ignored in the header and the log.
func (c *call) nameIgnored(h http.Header) {
	if len(c.ignored) == 0 {
		return
	}
	var names []string
	for _, name := range c.ignored[:min(len(c.ignored), maxDropped)] {
		names = append(names, strings.Map(func(r rune) rune {
			if r <= ' ' || r > '~' || r == ',' {
				return '?'
			}
			return r
		}, name[:min(len(name), maxDroppedName)]))
	}
	if more := len(c.ignored) - maxDropped; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	list := strings.Join(names, ", ")
	h.Set(headerDropped, list)
	c.g.opt.Logger.Info("fields without effect", "request", c.id, "fields", list)
}
