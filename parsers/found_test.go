// SPDX-License-Identifier: Apache-2.0

package parsers_test

import (
	"strings"
	"testing"

	"github.com/weft-go/weft/parsers"
)

// TestFound runs what random output and fuzzing have found, as small as it got: the result was another one when the
// output came in other pieces, or it broke a promise, or the parser panicked.
func TestFound(t *testing.T) {
	wide := strings.Repeat(" ", 250)
	held := func(n int) parsers.Limits { return parsers.Limits{HeldBytes: n} }
	malformed := policyOf("failed=malformed")
	for _, c := range []struct {
		family, text string
		opt          parsers.Options
	}{
		{"hermes", "<tool_call>{</tool_call>", parsers.Options{Limits: held(7), Policy: malformed}},
		{"harmony", "<|constrain|>", parsers.Options{Policy: malformed}},
		{"glm45", "<tool_call>\na</tool_call>", parsers.Options{}},
		{"pythonic", "<|python_start|>" + wide + "w(", parsers.Options{}},
		{"pythonic", "<|python_start|>r(q={'':[]})" + wide + wide + "u", parsers.Options{}},
		{"pythonic", "[12put(", parsers.Options{}},
		{"lfm2", "<|tool_call_start|>" + wide + "[n(", parsers.Options{}},
		{"deepseek_v3", "<｜tool▁call▁begin｜>n\n{}<｜tool▁call▁end｜>x{", parsers.Options{Output: parsers.GuidedNamed, Policy: policyOf("drop_after_call")}},
		{"deepseek_v3", "<｜tool▁call▁begin｜>run\n{}` ", parsers.Options{}},
		{"deepseek_v3_1", "<｜tool▁call▁begin｜>t<｜tool▁sep｜>{\" ", parsers.Options{Limits: parsers.Limits{ArgumentBytes: 2}}},
		{"deepseek_v41", "<｜DSML｜ calls><｜DSML｜ invoke name=\"t\">2{", parsers.Options{}},
		{"gemma4", "<|channel>thought\n<channel|>", parsers.Options{}},
		{"gemma4", " {\"name\": \"now\"}", parsers.Options{Start: parsers.StartReasoning, Output: parsers.GuidedRequired, Channels: parsers.OnlyTools}},
		{"functiongemma", "<start_function_call>t{京", parsers.Options{Limits: held(1)}},
		{"minimax_m2", `<minimax:tool_call><invoke name="w"><invoke name="`, parsers.Options{}},
		{"minimax_m3", `]<]minimax[>[<invoke name="n">]<]minimax[>[<ol_call>`, parsers.Options{Limits: held(20)}},
		{"minimax_append_think", `<invoke name="t"><parameter name="</invoke>>`, parsers.Options{Policy: malformed}},
		{"minimax_append_think", " {", parsers.Options{Output: parsers.GuidedNamed}},
		{"kimi_k25", "<|tool_call_begin|><|tool_call_section_end|>}<think><think>", parsers.Options{Policy: malformed}},
		{"llama3_json", `{"name":"w","parameters":{},"":"{`, parsers.Options{}},
		{"llama3_json", "\n" + `{"name": "run", "parameters": {"cmd": "a"}}`, parsers.Options{Policy: policyOf("keep_blanks")}},
		{"cohere", `<|START_ACTION|>[{"name":"run"}<,`, parsers.Options{}},
		{"step3", `<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="n"><steptml:parameter name=""></steptml:parameter><｜tool`,
			parsers.Options{Policy: policyOf("emit_truncated")}},
		{"qwen3_coder", "<function=run><parameter=cmd>x</parameter>", parsers.Options{Policy: policyOf("emit_truncated")}},
	} {
		c.opt.Allow = []string{"run"}
		verify(t, trial{family: c.family, text: c.text, opt: c.opt}, check)
	}
}
