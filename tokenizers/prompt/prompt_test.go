// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/tokenizers/prompt"
	"github.com/weft-go/weft/tokenizers/template"
)

func render(t *testing.T, r *prompt.Model, api, body string) (string, []string) {
	t.Helper()
	req, err := decode(api, []byte(body), nil)
	require.NoError(t, err)
	p, err := r.Render(req, time.Time{})
	require.NoError(t, err)
	losses := p.Losses
	var why []string
	for _, l := range losses {
		why = append(why, l.Why)
	}
	return p.Text, why
}

// The request's reasoning settings are passed to the template in the variable that it reads; variables set by the
// client take precedence.
func TestKwargs(t *testing.T) {
	tpl, err := template.Parse("t", "{% for m in messages %}{{ m.content }}{% endfor %}{% if add_generation_prompt %}[{% if thinking is defined and not thinking %}off{% else %}on{% endif %} {{ reasoning_effort }}]{% endif %}", nil)
	require.NoError(t, err)
	r := familyModel(t, tpl, nil)
	caps := r.Capabilities()
	require.Equal(t, "thinking", caps.Text("reasoning_switches"))
	for body, want := range map[string]string{
		`{"model":"m","messages":[{"role":"user","content":"u"}]}`:                                                                                                "u[on ]",
		`{"model":"m","messages":[{"role":"user","content":"u"}],"reasoning_effort":"high"}`:                                                                      "u[on high]",
		`{"model":"m","messages":[{"role":"user","content":"u"}],"reasoning_effort":"none"}`:                                                                      "u[off ]",
		`{"model":"m","messages":[{"role":"user","content":"u"}],"chat_template_kwargs":{"reasoning_effort":"x"}}`:                                                "u[on x]",
		`{"model":"m","messages":[{"role":"user","content":"u"}],"chat_template_kwargs":{"enable_thinking":false}}`:                                               "u[off ]",
		`{"model":"m","messages":[{"role":"user","content":"u"}],"reasoning_effort":"none","chat_template_kwargs":{"enable_thinking":true}}`:                      "u[on ]",
		`{"model":"m","messages":[{"role":"user","content":"u"}],"chat_template_kwargs":{"enable_thinking":false,"thinking":true}}`:                               "u[on ]",
		`{"model":"m","messages":[{"role":"user","content":"u"}],"add_generation_prompt":false}`:                                                                  "u",
		`{"model":"m","messages":[{"role":"user","content":"u"},{"role":"assistant","content":"a"}]}`:                                                             "ua[on ]",
		`{"model":"m","messages":[{"role":"user","content":"u"},{"role":"assistant","content":"a"}],"continue_final_message":true,"add_generation_prompt":false}`: "ua",
	} {
		got, _ := render(t, r, "chat", body)
		require.Equal(t, want, got, body)
	}
	got, _ := render(t, r, "messages", `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"u"},{"role":"assistant","content":"a"}]}`)
	require.Equal(t, "ua", got, "a last message of the assistant")
}

// The error for a conversation that cannot be rendered names the first turn or block that the prompt lacks. If no turn is
// left, it is the field at fault.
func TestRefusedNamesLoss(t *testing.T) {
	strict, err := template.Parse("t", "{% for m in messages %}{% if m.role == 'user' and m.content == 'no' %}{{ raise_exception('bad word') }}{% endif %}{{ m.content }}{% endfor %}", nil)
	require.NoError(t, err)
	const refused = "The conversation cannot be rendered: "
	for _, row := range []struct {
		tpl                  template.Template
		body, message, field string
	}{
		{lookup("chatml", nil), `"messages":[{"role":"bot","content":"u"}]`, "template: messages: is empty; not rendered: messages[0]: a turn of an unknown role", "messages[0]"},
		{lookup("harmony", nil), `"reasoning_effort":"none","messages":[{"role":"bot","content":"u"},{"role":"bot","content":"u"}]`, "template: messages: is empty; not rendered: messages[0]: a turn of an unknown role", "messages[0]"},
		{lookup("chatml", nil), `"messages":[]`, "template: messages: is empty", ""},
		{strict, `"messages":[{"role":"user","content":"a"},{"role":"bot","content":"u"},{"role":"user","content":"no"}]`, "bad word; not rendered: messages[1]: a turn of an unknown role", ""},
		{strict, `"tools":[{"type":"function","function":{"name":"f"}}],"messages":[{"role":"user","content":"no"}]`, "bad word", ""},
		{struct{ template.Template }{lookup("chatml", nil)}, `"tools":[{"type":"zzz"}],"messages":[]`, "template: messages: is empty", ""},
	} {
		req, err := decode("chat", []byte(`{"model":"m",`+row.body+`}`), nil)
		require.NoError(t, err)
		_, err = familyModel(t, row.tpl, nil).Render(req, time.Time{})
		e, ok := errors.AsType[*apierr.Error](err)
		require.True(t, ok, "%s: %v", row.body, err)
		require.True(t, strings.HasPrefix(e.Message, refused) && strings.HasSuffix(e.Message, row.message), e.Message)
		require.Equal(t, "invalid: "+e.Message, e.Error(), "the cause once")
		require.Equal(t, row.field, e.Param, row.body)
	}
}

// If a template has no switch to turn reasoning off, a loss is reported.
func TestNoSwitch(t *testing.T) {
	const user = `"messages":[{"role":"user","content":"u"}]`
	for _, off := range []string{`"reasoning_effort":"none"`, `"chat_template_kwargs":{"enable_thinking":false}`, `"chat_template_kwargs":{"thinking":false}`} {
		_, why := render(t, familyModel(t, lookup("harmony", nil), nil), "chat", `{"model":"m",`+user+`,`+off+`}`)
		require.Equal(t, []string{"reasoning is off in the request, but the template cannot turn it off"}, why, off)
		_, why = render(t, familyModel(t, lookup("chatml", nil), nil), "chat", `{"model":"m",`+user+`,`+off+`}`)
		require.Empty(t, why, "a template without reasoning")
	}
	_, why := render(t, familyModel(t, lookup("harmony", nil), nil), "chat", `{"model":"m",`+user+`}`)
	require.Empty(t, why)
}

// With a template without tools, calls are kept, and the missing definitions are reported.
func TestNoTools(t *testing.T) {
	tpl, err := template.Parse("t", "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}", nil)
	require.NoError(t, err)
	got, why := render(t, familyModel(t, tpl, nil), "chat", `{"model":"m","messages":[{"role":"user","content":"u"},
		{"role":"assistant","content":"a","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},
		{"role":"tool","tool_call_id":"1","content":"r"}],"tools":[{"type":"function","function":{"name":"f"}}]}`)
	require.Contains(t, got, `"name": "f"`)
	require.Contains(t, got, `{"x":1}`)
	require.Contains(t, got, "r")
	require.Contains(t, strings.Join(why, "\n"), "the template does not print tools", fmt.Sprint(why))
}

// TestEffort requests efforts other than the three that a template knows.
func TestEffort(t *testing.T) {
	j, err := template.Parse("t", `{% if reasoning_effort is defined and reasoning_effort not in ('xhigh', 'medium', 'low') %}{{ raise_exception('no such effort') }}{% endif %}`+
		`[{{ reasoning_effort }}]{% for m in messages %}{{ m.role }}: {{ m.content }}{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}`, nil)
	require.NoError(t, err)
	r := familyModel(t, j, nil)
	for asked, want := range map[string]string{"low": "low", "minimal": "low", "medium": "medium", "high": "xhigh", "xhigh": "xhigh", "max": "xhigh", "heroic": "", "none": ""} {
		req, err := decode("chat", []byte(`{"model":"m","reasoning_effort":"`+asked+`","messages":[{"role":"user","content":"hi"}]}`), nil)
		require.NoError(t, err)
		p, err := r.Render(req, time.Time{})
		require.NoError(t, err, asked)
		require.Equal(t, "["+want+"]user: hiassistant: ", p.Text, asked)
	}
	both, err := decode("chat", []byte(`{"model":"m","reasoning_effort":"low","chat_template_kwargs":{"x":1},"messages":[{"role":"user","content":"hi"}]}`), nil)
	require.NoError(t, err)
	p, err := r.Render(both, time.Time{})
	require.NoError(t, err)
	require.Equal(t, "[low]user: hiassistant: ", p.Text, "other variables of the caller do not hide it")
	req, err := decode("chat", []byte(`{"model":"m","chat_template_kwargs":{"reasoning_effort":"high"},"messages":[{"role":"user","content":"hi"}]}`), nil)
	require.NoError(t, err)
	_, err = r.Render(req, time.Time{})
	require.ErrorContains(t, err, "no such effort", "the caller's own variables are the caller's own")
}

// lookup returns a template that is written in Go.
func lookup(name string, v variables) template.Template {
	t, err := template.Lookup(name, &template.Options{Variables: v})
	if err != nil {
		panic(err)
	}
	return t
}

type variables = map[string]any

// A template that formats arguments prints its own form of them. One that can also print a string does so only if the
// client has not formatted the arguments.
func TestArgumentsForm(t *testing.T) {
	const compact, spaced = `{"x":1.50}`, `{"x" : 1.50}`
	for _, tt := range []struct {
		name, print  string
		compact, own string // as printed: compact and spaced over the Chat API; own for a request built from turns
		spaced       string
	}{
		{"formats all", `{{ c.function.arguments | tojson }}`, `{"x": 1.5}`, `{"x": 1.5}`, `{"x": 1.5}`},
		{"formats objects", `{{ c.function.arguments if c.function.arguments is string else c.function.arguments | tojson }}`, `{"x": 1.5}`, compact, spaced},
	} {
		tpl, err := template.Parse("t", `{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}<{{ c.function.name }}|`+tt.print+`>{% endfor %}{% endfor %}`, nil)
		require.NoError(t, err)
		m := familyModel(t, tpl, nil)
		for args, want := range map[string]string{compact: tt.compact, spaced: tt.spaced} {
			text, _ := render(t, m, "chat", fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":%q}}]}]}`, args))
			require.Contains(t, text, "<f|"+want+">", tt.name)
		}
		p, err := m.Render(block.NewRequest(block.NewTurn(block.RoleUser, "Hi"), block.Turn{Role: block.RoleAssistant, Blocks: []block.Block{{Kind: block.ToolCall, CallID: "1", Name: "f", Args: compact}}}), noon)
		require.NoError(t, err)
		require.Contains(t, p.Text, "<f|"+tt.own+">", tt.name)
	}
}
