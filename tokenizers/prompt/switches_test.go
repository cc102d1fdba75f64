// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/replay"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// switched is a template whose past reasoning is that since the last question, or all of it if keep_it is true. It prints
// head first, and open after the generation prompt.
func switched(head, open string) string {
	return head + `{% set ns = namespace(user=-1) %}{% for m in messages %}{% if m.role == 'user' %}{% set ns.user = loop.index0 %}{% endif %}{% endfor %}` +
		`{% for m in messages %}<{{ m.role }}>{% if m.reasoning_content and (keep_it | default(false) or loop.index0 > ns.user) %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}` +
		`{% for c in m.tool_calls or [] %}[{{ c.function.name }} {{ c.function.arguments }}]{% endfor %}{% endfor %}{{ tools or '' }}{% if add_generation_prompt %}<assistant>` + open + `{% endif %}`
}

// TestReasoningSettings checks that the fields of each API turn reasoning on and off, whatever the template's variable is,
// and that a request without them leaves the template's own default.
func TestReasoningSettings(t *testing.T) {
	const closed = "<think></think>"
	const (
		onByDefault  = `{% if enable_thinking is defined and not enable_thinking %}` + closed + `{% endif %}`
		offByDefault = `{% if not enable_thinking | default(false) %}` + closed + `{% endif %}`
		threeWords   = `{% if thinking_mode is defined %}{% if thinking_mode == 'enabled' %}<think>{% elif thinking_mode == 'disabled' %}` + closed + `{% endif %}{% endif %}`
	)
	budget := `{% if thinking_budget is not defined %}{% set thinking_budget = -1 %}{% endif %}{% if thinking_budget > 0 %}At most {{ thinking_budget }}.{% endif %}`
	effort := `{% set reasoning_effort = reasoning_effort | default('no_think') %}{% if reasoning_effort not in ['high', 'low', 'no_think'] %}{{ raise_exception('no') }}{% endif %}Effort {{ reasoning_effort }}.`
	for _, tt := range []struct {
		name, source                     string
		unset, on, off, adaptive, little string // what the prompt begins and ends with
	}{
		{"on by default", switched("", onByDefault), "|", "|", "|" + closed, "|", "|"},
		{"off by default", switched("", offByDefault), "|" + closed, "|", "|" + closed, "|", "|"},
		{"three words", switched("", threeWords), "|", "|<think>", "|" + closed, "|", "|<think>"},
		{"a budget", switched(budget, `{% if thinking_budget == 0 %}`+closed+`{% endif %}`), "|", "At most 2048.|", "|" + closed, "|", "|"},
		{"an effort", switched(effort, `{% if reasoning_effort == 'no_think' %}`+closed+`{% endif %}`), "Effort no_think.|" + closed, "Effort high.|", "Effort no_think.|" + closed, "Effort high.|", "Effort low.|"},
	} {
		m := familyModel(t, compiled(tt.source)(t), nil)
		for _, api := range apis {
			check := func(want, more string) {
				t.Helper()
				c := &client{t: t, api: api}
				c.user("Zq")
				p, err := m.Render(c.request(false, more), noon)
				require.NoError(t, err)
				head, rest, _ := strings.Cut(p.Text, "<user>Zq")
				require.Equal(t, want, head+"|"+strings.TrimPrefix(rest, "<assistant>"), "%s %s %s", tt.name, api, more)
			}
			check(tt.unset, "")
			switch api {
			case "chat":
				check(strings.ReplaceAll(tt.on, "At most 2048.", ""), `"reasoning_effort":"high"`)
				check(tt.little, `"reasoning_effort":"low"`)
				check(tt.off, `"reasoning_effort":"none"`)
			case "responses":
				check(strings.ReplaceAll(tt.on, "At most 2048.", ""), `"reasoning":{"effort":"high"}`)
				check(tt.off, `"reasoning":{"effort":"none"}`)
			default:
				check(tt.on, `"thinking":{"type":"enabled","budget_tokens":2048}`)
				check(tt.adaptive, `"thinking":{"type":"adaptive"}`)
				check(tt.off, `"thinking":{"type":"disabled"}`)
			}
			check(tt.off, `"chat_template_kwargs":{"enable_thinking":false}`)
		}
	}

	// The template's own variable takes precedence, also if it is not a boolean.
	m := familyModel(t, compiled(switched("", threeWords))(t), nil)
	c := &client{t: t, api: "chat"}
	c.user("Zq")
	for kwargs, want := range map[string]bool{`"enabled"`: true, `"adaptive"`: true, `"disabled"`: false, `["x"]`: true} {
		p, err := m.Render(c.request(false, `"reasoning_effort":"high","chat_template_kwargs":{"thinking_mode":`+kwargs+`}`), noon)
		require.NoError(t, err)
		require.Equal(t, want, p.Replay.Thinking, kwargs)
		require.Equal(t, kwargs == `"enabled"`, strings.HasSuffix(p.Text, "<think>"))
	}
}

// TestWidestReplay keeps all past reasoning that the template can print, with the template's variable, unless the request
// prefers something else.
func TestWidestReplay(t *testing.T) {
	m := newModel(t, compiled(switched("", ""))(t), nil, prompt.Options{Replay: replay.MustRule("widest")})
	for more, want := range map[string]string{
		"": "kk", `"chat_template_kwargs":{"keep_it":false}`: "-k", `"chat_template_kwargs":{"keep_it":true}`: "kk",
		`"chat_template_kwargs":{"clear_thinking":true}`: "-k",
	} {
		req := play(t, "chat", "uauct").request(true, more)
		p, err := m.Render(req, noon)
		require.NoError(t, err)
		require.Equal(t, want, outcomes(req, p), more)
		require.Equal(t, want == "kk", strings.Contains(p.Text, "Zqr0"), more)
		require.Empty(t, p.Losses)
	}
	req := play(t, "responses", "uauct").request(true, `"reasoning":{"context":"current_turn"}`)
	p, err := m.Render(req, noon)
	require.NoError(t, err)
	require.NotContains(t, p.Text, "Zqr0")

	// Without a variable, the template's own rule remains, without a loss.
	fixed := newModel(t, compiled(strings.ReplaceAll(switched("", ""), "keep_it | default(false)", "false"))(t), nil, prompt.Options{Replay: replay.MustRule("widest")})
	req = play(t, "chat", "uauct").request(true, "")
	p, err = fixed.Render(req, noon)
	require.NoError(t, err)
	require.Equal(t, "-k", outcomes(req, p))
	require.Empty(t, p.Losses)
}
