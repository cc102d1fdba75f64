// SPDX-License-Identifier: Apache-2.0

package template

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Lookup returns a format that is written in Go, by name. Only Variables and Now of the options apply to these
// formats; a variable that a format does not have is an error, as is another option that is set.
//
//	name            of                               variables, with their defaults
//	chatml          Qwen3 and many others            enable_thinking (true), default_system (none), reasoning_scope
//	                                                 (since_user, all or none), calls (json; xml as in Qwen3.5; none:
//	                                                 neither tools nor calls are printed)
//	harmony         gpt-oss                          style (template or library), date (from Now), model_identity,
//	                                                 knowledge_cutoff (2024-06), reasoning_effort (medium),
//	                                                 builtin_tools ([]string), auto_drop_analysis (true),
//	                                                 sampled_calls (false)
//	deepseek_v3_2   DeepSeek V3.2, V4 and V4.1       thinking (false), drop_thinking (true), reasoning_effort,
//	deepseek_v4                                      developer_is_system (false), compact_tools (false), add_bos (true)
//	deepseek_v41
//	kimi_k3         Kimi K3                          thinking (true), thinking_effort (max; none for no instruction)
//	mistral         Mistral, by tokenizer version    version (15; or 1, 2, 3, 7, 11, 13), thinking (false: no reasoning),
//	                                                 reasoning_efforts ([]string), reasoning_effort
//
// Each equals the template or script published with the model, byte for byte, on the conversations which that accepts.
// Conversations on which the original fails or drops a message are accepted: a missing or null content is empty, text
// parts are joined, and developer messages are treated as system messages in formats without that role. Other roles,
// and parts that are not text, are errors.
//
// chatml closes the reasoning after the generation prompt if enable_thinking is false.
//
// harmony has two styles, which were both published by OpenAI and differ. The style template is the chat template of
// openai/gpt-oss-20b (2025-08-08), the style library the renderer of openai/harmony (oss-harmony 0.0.11), which vLLM runs: there,
// tool results are not quoted, arguments keep their bytes, and reasoning is dropped only before the first final
// message and once the last message is final. sampled_calls prints a call as the model writes it, with the channel
// before the recipient and the bytes of its arguments, so that a prompt extends the tokens of the last response. With auto_drop_analysis set to false,
// past reasoning is printed wherever the request has it.
//
// In the deepseek formats, drop_thinking set to false keeps the reasoning of earlier turns, which V4 and V4.1 drop in
// conversations without tools. reasoning_effort is max or high in V4, and low, high, xhigh, max or 1 to 100 in V4.1. A
// developer message is treated as a user message unless developer_is_system is set. compact_tools omits the empty lines
// in V3.2's text about tools, as vLLM (Python) and SGLang do; both versions are published. V4.1 follows SGLang's port;
// the original was not available.
//
// The tokenizer of Kimi K3 encodes each piece of a tag by itself. Encoding the prompt as a whole gives the same
// text, but not always the same tokens.
//
// mistral prints what mistral-common 1.13.1 encodes for a tokenizer of that version. Models of version 15 may have
// settings: reasoning_efforts lists the efforts in their tekken.json.
//
// A request's Kwargs take precedence over the variables enable_thinking, thinking, thinking_effort, drop_thinking,
// reasoning_effort, model_identity, builtin_tools and auto_drop_analysis. deepseek formats also take thinking_mode
// ("thinking" or "chat"), and kimi_k3 takes tool_choice, response_format and response_schema. Other Kwargs are
// ignored.
func Lookup(name string, opt *Options) (Template, error) {
	make, ok := formats[name]
	if !ok {
		return nil, &Error{reason: fmt.Sprintf("no format %q; known are %s", name, strings.Join(slices.Sorted(maps.Keys(formats)), ", "))}
	}
	v := variables{known: map[string]bool{}}
	if opt != nil {
		if opt.Arguments != "" {
			return nil, &Error{reason: "format " + name + " takes only the options Variables and Now"}
		}
		v.opt = *opt
	}
	t := make(&v)
	if err := v.done(name); err != nil {
		return nil, err
	}
	return t, nil
}

var formats = map[string]func(*variables) Template{
	"chatml":        newChatML,
	"harmony":       newHarmony,
	"deepseek_v3_2": func(v *variables) Template { return newDeepSeek(32, v) },
	"deepseek_v4":   func(v *variables) Template { return newDeepSeek(40, v) },
	"deepseek_v41":  func(v *variables) Template { return newDeepSeek(41, v) },
	"kimi_k3":       newKimiK3,
	"mistral":       newMistral,
}

// variables reads [Options.Variables]. It keeps the first error.
type variables struct {
	opt   Options
	known map[string]bool // names that were read
	err   *Error
}

func (v *variables) fail(name, reason string) {
	if v.err == nil {
		v.err = &Error{path: "variables." + name, reason: reason}
	}
}

// done returns the first error. A variable that was not read is an error.
func (v *variables) done(format string) error {
	for _, name := range slices.Sorted(maps.Keys(v.opt.Variables)) {
		if !v.known[name] {
			v.fail(name, "is not a variable of the format "+format+", which has "+strings.Join(slices.Sorted(maps.Keys(v.known)), ", "))
		}
	}
	if v.err != nil {
		return v.err
	}
	return nil
}

func variable[T any](v *variables, name string, def T) T {
	v.known[name] = true
	x, ok := v.opt.Variables[name]
	if !ok {
		return def
	}
	value, ok := x.(T)
	if !ok {
		v.fail(name, fmt.Sprintf("is a %T, not a %T", x, def))
		return def
	}
	return value
}

// choice returns a variable that must have one of the given values. The default is the first.
func (v *variables) choice(name string, values ...string) string {
	s := variable(v, name, values[0])
	if !slices.Contains(values, s) {
		v.fail(name, fmt.Sprintf("is %q, not %s", s, strings.Join(values, ", ")))
	}
	return s
}

// word returns a variable that is a string or an int.
func (v *variables) word(name, def string) string {
	if n, ok := v.opt.Variables[name].(int); ok {
		v.known[name] = true
		return strconv.Itoa(n)
	}
	return variable(v, name, def)
}
