// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers/family"
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/replay"
	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/tokenizers/prompt"
	"github.com/weft-go/weft/tokenizers/template"
)

// talks are the conversations of the table: u is a question, a a response, c a response with a call, d one with
// reasoning before each of its two calls, t the results, r results with a reminder.
var talks = [...]string{
	"uau",     // a response, then a question
	"uct",     // an open chain
	"uctau",   // a complete chain, then a question
	"ucr",     // a reminder with the results does not start anything
	"udt",     // interleaved
	"uctauct", // two chains, the second one open
	"uctu",    // a chain that a question interrupts
	"uctctau", // a longer chain
}

// play holds a conversation over an API. The reasoning of its responses is Zqr0, Zqr1 and so on.
func play(t testing.TB, api, talk string) *client {
	c := &client{t: t, api: api}
	for i, step := range talk {
		thought := fmt.Sprint("Zqr", c.answers)
		switch step {
		case 'u':
			c.user(fmt.Sprint("Zqu", i))
		case 'a':
			c.answer(reasoned(0, thought), text(1, fmt.Sprint("Zqa", i)))
		case 'c':
			c.answer(append([]event.Event{reasoned(0, thought)}, called(1, 0, `{"x": "1"}`)...)...)
		case 'd':
			list := append([]event.Event{reasoned(0, thought+"one")}, called(1, 0, `{"x": "1"}`)...)
			c.answer(append(append(list, reasoned(2, thought+"two")), called(3, 1, `{"x": "2"}`)...)...)
		case 't':
			c.results("Zqt", "")
		case 'r':
			c.results("Zqt", "<system-reminder>Zqreminder</system-reminder>")
		}
	}
	return c
}

// outcomes returns a letter for the reasoning of each response: k if kept, - if dropped, ! if refused, ? if absent.
func outcomes(req *block.Request, p *prompt.Prompt) (s string) {
	for i, turn := range req.Turns() {
		if turn.Role == block.RoleAssistant {
			s += string("?k--!"[p.Outcomes[i]])
		}
	}
	return s
}

// TestReplayTable checks which past reasoning is kept, for each family and conversation, by the family's rule and, if
// there is a template, by the rendered prompt.
func TestReplayTable(t *testing.T) {
	const on = `"chat_template_kwargs":{"thinking":true}`
	const (
		sinceUser  = "- k -- k k --k - ---"
		sinceFinal = "- k -- k k --k k ---"
		all        = "k k kk k k kkk k kkk"
		none       = "- - -- - - --- - ---"
	)
	type row struct {
		name     string
		source   string // source of the rule
		family   *grammar.Grammar
		template func(testing.TB) template.Template // nil if not available
		more     string                             // fields of the request
		want     string                             // one word for each conversation
		differs  bool                               // the template differs from the family's rule, or the family has none
	}
	keep := func(name, value string) string { return `"chat_template_kwargs":{"` + name + `":` + value + `}` }
	shared, own := func(f ...string) func(testing.TB) template.Template { return sharedTemplate(f...) }, small
	rows := []row{
		{"Qwen3", "tok/qwen3/chat_template.jinja: last_query_index", family.New("qwen3"), shared("tok", "qwen3", "chat_template.jinja"), "", sinceUser, false},
		{"Qwen3, ChatML", "tokenizers/template/chatml.go", family.New("hermes"), written(lookup("chatml", nil)), "", sinceUser, false},
		{"Qwen3-Coder, ChatML", "tokenizers/template/chatml.go", family.New("qwen3_coder"), written(lookup("chatml", variables{"calls": "xml"})), "", sinceUser, false},
		{"Qwen3.5", "tok/qwen3.5-renum/chat_template.jinja: last_query_index", family.New("qwen35"), shared("tok", "qwen3.5-renum", "chat_template.jinja"), "", sinceUser, false},
		{"Qwen3.6", "template: preserve_thinking", family.New("qwen35"), own("preserve_thinking is defined and preserve_thinking or loop.index0 > ns.user", ""), keep("preserve_thinking", "true"), all, false},
		{"Qwen3.8", "tok/_templates/qwen38_chat_template.jinja: preserve_thinking is undefined or true", family.New("qwen35"), shared("tok", "_templates", "qwen38_chat_template.jinja"), "", all, true},
		{"Qwen3.8, narrowed", "the same", family.New("qwen35"), shared("tok", "_templates", "qwen38_chat_template.jinja"), keep("preserve_thinking", "false"), sinceUser, false},
		{"DeepSeek R1", "chat template of DeepSeek-R1-0528: split at </think>", family.New("deepseek_r1"), own("false", ""), "", none, false},
		{"DeepSeek V3.1", "chat template of DeepSeek-V3.1", family.New("deepseek_v3_1"), own("false", "</think>"), "", none, false},
		{"DeepSeek V3.2", "encoding_dsv32.py, tokenizers/template/deepseek.go", family.New("deepseek_v3_2"), written(lookup("deepseek_v3_2", nil)), on, sinceUser, false},
		{"DeepSeek V3.2, thinking off", "the same", family.New("deepseek_v3_2"), written(lookup("deepseek_v3_2", nil)), keep("thinking", "false"), none, false},
		{"DeepSeek V4", "encoding_dsv4.py, tokenizers/template/deepseek.go: tools keep all", family.New("deepseek_v4"), written(lookup("deepseek_v4", nil)), on, "- k kk k k kkk k kkk", false},
		{"DeepSeek V4.1", "encoding_dsv41.py, tokenizers/template/deepseek.go", family.New("deepseek_v41"), written(lookup("deepseek_v41", nil)), on, "- k kk k k kkk k kkk", false},
		{"DeepSeek V4, drop_thinking=false", "the same", family.New("deepseek_v4"), written(lookup("deepseek_v4", variables{"thinking": true})),
			`"chat_template_kwargs":{"thinking":true,"drop_thinking":false}`, all, false},
		{"GLM-4.5", "chat template of GLM-4.5: last_user_index", family.New("glm45"), own("loop.index0 > ns.user", "<think></think>"), "", sinceUser, false},
		{"GLM-4.7, GLM-5", "chat template of GLM-4.7: clear_thinking", family.New("glm47"), own("clear_thinking is defined and not clear_thinking or loop.index0 > ns.user", "</think>"), "", sinceUser, false},
		{"GLM-4.7, clear_thinking=false", "the same", family.New("glm47"), own("clear_thinking is defined and not clear_thinking or loop.index0 > ns.user", "</think>"), keep("clear_thinking", "false"), all, false},
		{"GLM-5.2", "later revision: clear_thinking defaults to false", family.New("glm47"), own("not clear_thinking or loop.index0 > ns.user", "</think>"), "", all, true},
		{"Kimi K2 Thinking", "chat template of Kimi-K2-Thinking: hist_msgs", family.New("kimi_k2"), own("loop.index0 > ns.final", "<think></think>"), "", sinceFinal, true},
		{"Kimi K2.5", "smg fixtures/kimi_k25/chat_template.jinja", family.New("kimi_k25"), own("loop.index0 > ns.final and not (thinking is defined and thinking is false)", "<think></think>"), "", sinceFinal, false},
		{"Kimi K2.5, thinking off", "the same", family.New("kimi_k25"), nil, keep("thinking", "false"), none, false},
		{"Kimi K3", "encoding_k3.py, tokenizers/template/kimik3.go", family.New("kimi_k3"), written(lookup("kimi_k3", nil)), "", all, false},
		{"Kimi K3, thinking off", "the same", family.New("kimi_k3"), written(lookup("kimi_k3", nil)), keep("thinking", "false"), none, false},
		{"gpt-oss, library", "harmony src/encoding.rs, tokenizers/template/harmony.go", family.New("harmony"), written(lookup("harmony", variables{"style": "library"})), "", "- k -- k k kkk k ---", false},
		{"gpt-oss, template", "chat template of gpt-oss-20b, tokenizers/template/harmony.go", family.New("harmony"), written(lookup("harmony", nil)), "", sinceFinal, true},
		{"gpt-oss, all", "auto_drop_analysis", family.New("harmony"), written(lookup("harmony", nil)), keep("auto_drop_analysis", "false"), all, false},
		{"MiniMax M2", "chat template of MiniMax-M2: last_user_index", family.New("minimax_m2"), own("loop.index0 > ns.user", ""), "", sinceUser, false},
		{"Nemotron 3 Nano", "tok/_templates/nemotron3nano: truncate_history_thinking", family.New("nemotron_nano"), shared("tok", "_templates", "nemotron3nano_chat_template.jinja2"), "", sinceUser, false},
		{"Nemotron 3.5", "tok/_templates/nemotron35", family.New("nemotron_nano"), shared("tok", "_templates", "nemotron35_chat_template.jinja2"), "", sinceUser, false},
		{"Nemotron 3.5, all", "the same", family.New("nemotron_nano"), shared("tok", "_templates", "nemotron35_chat_template.jinja2"), keep("truncate_history_thinking", "false"), all, false},
		{"Gemma 4", "tok/_templates/gemma4_31b: thinking_gate", family.New("gemma4"), shared("tok", "_templates", "gemma4_31b_chat_template.jinja2"), "", sinceUser, false},
		{"Gemma 4, preserve_thinking", "the same", family.New("gemma4"), shared("tok", "_templates", "gemma4_31b_chat_template.jinja2"), keep("preserve_thinking", "true"), "- k k- k k k-k k kk-", false},
		{"MiMo", "template: since the last user message", family.New("qwen3_coder"), own("loop.index0 > ns.user", ""), "", sinceUser, false},
		{"LFM2", "Ollama's lfm2 renderer: lastAssistantIndex", family.New("lfm2"), own("keep_past_thinking or loop.index0 == ns.assistant", ""), "", "k k -k k k --k k --k", false},
		{"LFM2, keep_past_thinking", "the same", family.New("lfm2"), own("keep_past_thinking or loop.index0 == ns.assistant", ""), keep("keep_past_thinking", "true"), all, false},
		{"Mistral", "mistral-common, instruct.py: encode_think", family.New("ministral"), own("true", ""), "", all, false},
		{"Cohere", "Ollama's cohere renderer", family.New("cohere"), own("true", ""), "", all, false},
		{"Laguna", "laguna_v8_chat_template.jinja2", family.New("laguna"), own("enable_thinking", "</think>"), keep("enable_thinking", "true"), all, false},
		{"Muse Glimmer", "Ollama's glimmer renderer", family.New("muse_glimmer"), own("true", ""), "", all, false},
		{"Nemotron Super", "chat template of Llama-3_3-Nemotron-Super-49B-v1_5: split at </think>", family.New("nemotron_deci"), own("false", ""), "", none, false},
		{"Olmo 3 Think", "Ollama's olmo3_think renderer", family.New("olmo3_think"), own("false", ""), "", none, false},
	}
	for n, r := range rows {
		if testing.Short() && n%3 != 0 {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			want := strings.Fields(r.want)
			require.Len(t, want, len(talks), r.source)
			var model *prompt.Model
			if r.template != nil {
				model = familyModel(t, r.template(t), r.family)
			}
			for j, api := range apis {
				if testing.Short() && j != n/3%len(apis) {
					continue
				}
				for i, talk := range talks {
					req := play(t, api, talk).request(strings.ContainsAny(talk, "cd"), r.more)
					pref := replay.ParsePreference(req.Field, func(path, problem string) { t.Error(path, problem) })
					if !r.differs {
						plan := replay.NewPlan(replay.Model{Family: r.family.Replay}, pref)
						var p prompt.Prompt
						p.Outcomes = plan.AppendOutcomes(nil, wire.ReplayTurns(req), len(req.Tools()) > 0)
						require.Equal(t, want[i], outcomes(req, &p), "%s, %s by the family's rule: %s", api, talk, r.source)
					}
					if model == nil {
						continue
					}
					p, err := model.Render(req, noon)
					require.NoError(t, err)
					losses := p.Losses
					require.Equal(t, want[i], outcomes(req, p), "%s, %s by the template: %s, %+v", api, talk, r.source, p.Replay)
					seen := ""
					for n := range want[i] {
						if strings.Contains(p.Text, fmt.Sprint("Zqr", n)) {
							seen += "k"
						} else {
							seen += "-"
						}
					}
					require.Equal(t, want[i], seen, "%s, %s printed: %s\n%s", api, talk, r.source, p.Text)
					for _, l := range losses {
						require.NotContains(t, l.Why, "does not print", "%v", losses)
					}
				}
			}
		})
	}
}

// The APIs' reasoning settings are passed to the template in its own variables, and reasoning that it keeps in excess
// is removed.
func TestReplayPreferences(t *testing.T) {
	glm := small("clear_thinking is defined and not clear_thinking or loop.index0 > ns.user", "</think>")
	for _, tt := range []struct {
		name, api, more string
		template        func(testing.TB) template.Template
		want            string // outcomes of uctauau, which has three responses
		losses          []string
	}{
		{"no setting", "responses", ``, glm, "---", nil},
		{"all turns", "responses", `"reasoning":{"context":"all_turns"}`, glm, "kkk", nil},
		{"current turn", "responses", `"reasoning":{"context":"current_turn"}`, small("true", ""), "---", nil},
		{"keep all", "messages", `"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]}`, glm, "kkk", nil},
		{"keep the last chain", "messages", `"context_management":{"edits":[{"type":"clear_thinking_20251015"}]}`, glm, "--k", nil},
		{"keep two chains", "messages", `"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":{"type":"thinking_turns","value":2}}]}`, small("true", ""), "kkk", nil},
		{"another template's variable", "chat", `"chat_template_args":{"truncate_history_thinking":false}`, glm, "kkk", nil},
		{"an impossible setting is reported", "chat", `"chat_template_kwargs":{"preserve_thinking":true}`, small("loop.index0 > ns.user", ""), "!!!", []string{
			"messages[1]: the template does not print the reasoning", "messages[3]: the template does not print the reasoning", "messages[5]: the template does not print the reasoning",
			"messages: preserve_thinking requests reasoning of scope all, but the template prints scope since_user",
		}},
		{"an invalid setting is reported", "chat", `"chat_template_kwargs":{"clear_thinking":"no"}`, small("loop.index0 > ns.user", ""), "---", []string{"chat_template_kwargs.clear_thinking: is not a boolean: treated as true"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := play(t, tt.api, "uctauau").request(true, tt.more)
			p, err := familyModel(t, tt.template(t), family.New("glm47")).Render(req, noon)
			require.NoError(t, err)
			losses := p.Losses
			require.Equal(t, tt.want, outcomes(req, p), p.Replay)
			for n, f := range tt.want {
				require.Equal(t, f == 'k', strings.Contains(p.Text, fmt.Sprint("Zqr", n)), p.Text)
			}
			var got []string
			for _, l := range losses {
				got = append(got, l.String())
			}
			require.Empty(t, cmp.Diff(tt.losses, got))
		})
	}
}

// The prompt contains the reasoning that the plan keeps, for any variables of the request and any start of the
// conversation.
func TestReplayAgrees(t *testing.T) {
	for _, r := range []struct {
		name     string
		template func(testing.TB) template.Template
		family   *grammar.Grammar
	}{
		{"Qwen3", sharedTemplate("tok", "qwen3", "chat_template.jinja"), family.New("qwen3")},
		{"Qwen3.5", sharedTemplate("tok", "qwen3.5-renum", "chat_template.jinja"), family.New("qwen35")},
		{"Qwen3.8", sharedTemplate("tok", "_templates", "qwen38_chat_template.jinja"), family.New("qwen35")},
		{"Nemotron 3.5", sharedTemplate("tok", "_templates", "nemotron35_chat_template.jinja2"), family.New("nemotron_nano")},
		{"Gemma 4", sharedTemplate("tok", "_templates", "gemma4_31b_chat_template.jinja2"), family.New("gemma4")},
		{"Kimi K2", sharedTemplate("tok", "_templates", "kimi-k2.jinja"), family.New("kimi_k2")},
		{"GLM-4.7", small("clear_thinking is defined and not clear_thinking or loop.index0 > ns.user", "</think>"), family.New("glm47")},
		{"Kimi K2.5", small("loop.index0 > ns.final and not (thinking is defined and thinking is false)", "<think></think>"), family.New("kimi_k25")},
		{"DeepSeek V3.2", written(lookup("deepseek_v3_2", nil)), family.New("deepseek_v3_2")},
		{"DeepSeek V4", written(lookup("deepseek_v4", nil)), family.New("deepseek_v4")},
		{"Kimi K3", written(lookup("kimi_k3", nil)), family.New("kimi_k3")},
		{"gpt-oss", written(lookup("harmony", nil)), family.New("harmony")},
		{"ChatML", written(lookup("chatml", nil)), family.New("hermes")},
	} {
		t.Run(r.name, func(t *testing.T) {
			renderer := familyModel(t, r.template(t), r.family)
			for k, more := range []string{
				``, `"reasoning_effort":"none"`, `"reasoning_effort":"low"`,
				`"reasoning_effort":"none","chat_template_kwargs":{"x":1}`, `"reasoning_effort":"low","chat_template_kwargs":{"x":1}`,
				`"reasoning_effort":"none","chat_template_kwargs":{"enable_thinking":true,"thinking":true}`,
				`"chat_template_kwargs":{},"chat_template_args":{"clear_thinking":false,"preserve_thinking":true,"drop_thinking":false,"thinking":true}`,
				`"chat_template_kwargs":{"clear_thinking":null,"truncate_history_thinking":0,"drop_thinking":0}`,
				`"chat_template_kwargs":{"enable_thinking":false}`, `"chat_template_kwargs":{"thinking":false}`, `"chat_template_kwargs":{"enable_thinking":true}`,
				`"chat_template_kwargs":{"enable_thinking":true,"thinking":false}`, `"chat_template_kwargs":{"enable_thinking":false,"thinking":true}`,
				`"chat_template_kwargs":{"preserve_thinking":true,"enable_thinking":false,"thinking":false}`,
				`"chat_template_kwargs":{"clear_thinking":false,"drop_thinking":false,"enable_thinking":false,"thinking":false}`,
			} {
				for j, talk := range []string{"uct", "uau", "uctau", "uctu", "uctauct", "uauct", "uaau", "au", "ct", "ctct", "act", "ctau"} {
					if testing.Short() && (j+k)%15 != 0 {
						continue
					}
					req := play(t, "chat", talk).request(strings.Contains(talk, "c"), more)
					p, err := renderer.Render(req, noon)
					if strings.HasPrefix(talk, "u") {
						require.NoError(t, err, "%s %s", talk, more)
					}
					if err != nil {
						continue // templates may refuse a conversation without a question
					}
					decided, printed := strings.ReplaceAll(outcomes(req, p), "!", "-"), ""
					for n := range decided {
						mark := "-"
						if strings.Contains(p.Text, fmt.Sprint("Zqr", n)) {
							mark = "k"
						}
						printed += mark
					}
					require.Equal(t, printed, decided, "%s %s: %v\n%+v", talk, more, p.Losses, p.Replay)
				}
			}
		})
	}
}

// In every API, the template receives a question next to results as a user message, which starts a new turn.
func TestReplayQuestionWithResults(t *testing.T) {
	for _, api := range apis {
		for text, want := range map[string]string{"What now?": "-", "<system-reminder>What now?</system-reminder>": "k"} {
			c := play(t, api, "uc")
			c.results("Zqt", text)
			req := c.request(true, "")
			p, err := familyModel(t, lookup("chatml", nil), nil).Render(req, noon)
			require.NoError(t, err)
			require.Equal(t, want, outcomes(req, p), "%s %s", api, text)
			require.Equal(t, want == "k", strings.Contains(p.Text, "Zqr0"), "%s %s: %s", api, text, p.Text)
		}
	}
}

// System text starts a new turn if the template treats it as a question.
func TestReplayLateSystem(t *testing.T) {
	strict := compiled(`{%- set ns = namespace(user=-1) -%}{%- for m in messages -%}{%- if m.role == 'user' -%}{%- set ns.user = loop.index0 -%}{%- endif -%}{%- if m.role == 'system' and not loop.first -%}{{ raise_exception('no') }}{%- endif -%}{%- endfor -%}` +
		`{%- for m in messages -%}<{{ m.role }}>{%- if m.reasoning_content and loop.index0 > ns.user -%}<think>{{ m.reasoning_content }}</think>{%- endif -%}{{ m.content }}{%- for c in m.tool_calls or [] -%}[{{ c.function.arguments }}]{%- endfor -%}{%- endfor -%}`)(t)
	for talk, want := range map[string]string{"uas": "-", "ucts": "k"} {
		for name, tpl := range map[string]template.Template{"strict": strict, "chatml": lookup("chatml", nil)} {
			c := play(t, "chat", strings.TrimSuffix(talk, "s"))
			c.list = append(c.list, object{"role": "system", "content": "Zqlate"})
			req := c.request(true, "")
			p, err := familyModel(t, tpl, nil).Render(req, noon)
			require.NoError(t, err)
			f := outcomes(req, p)
			if name == "strict" {
				require.Equal(t, want, f, talk)
			}
			require.Equal(t, f == "k", strings.Contains(p.Text, "Zqr0"), "%s %s: %s", name, talk, p.Text)
		}
	}
}

// So does developer text if the template has that role and treats it as a question.
func TestReplayLateDeveloper(t *testing.T) {
	for name, tt := range map[string]struct {
		tpl  template.Template
		want string
	}{
		"V3.2": {lookup("deepseek_v3_2", variables{"thinking": true}), "-"}, "V4": {lookup("deepseek_v4", variables{"thinking": true}), "k"},
	} {
		c := play(t, "chat", "uct")
		c.list = append(c.list, object{"role": "developer", "content": "Zqlate"})
		req := c.request(true, "")
		p, err := familyModel(t, tt.tpl, nil).Render(req, noon)
		require.NoError(t, err)
		require.Contains(t, p.Text, "Zqlate")
		require.Equal(t, tt.want, outcomes(req, p), name)
		require.Equal(t, tt.want == "k", strings.Contains(p.Text, "Zqr0"), "%s: %s", name, p.Text)
	}
}

// A template without reasoning receives it in the text, as the family writes it; without a family it is a loss.
func TestReplayInline(t *testing.T) {
	plain := compiled(`{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls or [] %}[{{ c.function.name }} {{ c.function.arguments }}]{% endfor %}{% endfor %}`)(t)
	req := play(t, "messages", "uauct").request(true, "")
	p, err := familyModel(t, plain, family.New("qwen3")).Render(req, noon)
	require.NoError(t, err)
	require.Equal(t, "-k", outcomes(req, p))
	require.Contains(t, p.Text, "<assistant><think>\nZqr1\n</think>\n\n[f {")
	require.NotContains(t, p.Text, "Zqr0")

	p, err = familyModel(t, plain, nil).Render(req, noon)
	require.NoError(t, err)
	require.NotContains(t, p.Text, "Zqr")
	require.Contains(t, fmt.Sprint(p.Losses), "does not print past reasoning")

	// A family without reasoning has no tags.
	for _, f := range []*grammar.Grammar{family.New("hermes"), family.New("qwen25"), family.New("qwen3_coder"), family.New("kimi_k2")} {
		p, err := familyModel(t, plain, f).Render(req, noon)
		require.NoError(t, err)
		losses := p.Losses
		require.NotContains(t, p.Text, "Zqr", f.Name)
		require.Contains(t, fmt.Sprint(losses), "does not print past reasoning", f.Name)
	}

	// With the reasoning of another family, that family's rule applies.
	both, err := grammar.With(family.New("hermes"), family.New("qwen3"))
	require.NoError(t, err)
	p, err = familyModel(t, plain, both).Render(req, noon)
	require.NoError(t, err)
	require.Equal(t, "-k", outcomes(req, p))

	// The operator's rule can keep it if the family has tags.
	p, err = newModel(t, plain, family.New("hermes"), prompt.Options{Replay: replay.MustRule("all")}).Render(req, noon)
	require.NoError(t, err)
	require.Equal(t, "kk", outcomes(req, p))
	p, err = newModel(t, plain, nil, prompt.Options{Replay: replay.MustRule("all")}).Render(req, noon)
	require.NoError(t, err)
	require.NotContains(t, p.Text, "Zqr")

	// The operator's rule takes precedence over the family's.
	p, err = newModel(t, plain, family.New("qwen3"), prompt.Options{Replay: replay.MustRule("all")}).Render(req, noon)
	require.NoError(t, err)
	require.Equal(t, "kk", outcomes(req, p))
	require.Contains(t, p.Text, "<assistant><think>\nZqr0\n</think>\n\nZqa1<user>")

	// If the template itself removes reasoning from the text, its behavior applies.
	cuts := compiled(`{% set ns = namespace(user=0) %}{% for m in messages %}{% if m.role == 'user' %}{% set ns.user = loop.index0 %}{% endif %}{% endfor %}` +
		`{% for m in messages %}<{{ m.role }}>{{ m.content.split('</think>')[-1] if loop.index0 < ns.user else m.content }}{% for c in m.tool_calls or [] %}[{{ c.function.name }} {{ c.function.arguments }}]{% endfor %}{% endfor %}`)(t)
	p, err = familyModel(t, cuts, nil).Render(req, noon)
	require.NoError(t, err)
	require.Equal(t, "-k", outcomes(req, p), p.Replay)
	require.Contains(t, p.Text, "<think>\nZqr1\n</think>\n\n[f {")
	require.NotContains(t, p.Text, "Zqr0")
}
