// SPDX-License-Identifier: Apache-2.0

package template

import (
	"slices"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers/internal/testsize"
)

// strict is a template that refuses whatever it can, as several published ones do between them.
const strict = `{%- for m in messages -%}
{%- if m.role not in ['user', 'assistant'] -%}{{ raise_exception('role ' ~ m.role) }}{%- endif -%}
{%- if (m.role == 'user') != (loop.index0 % 2 == 0) -%}{{ raise_exception('roles must alternate') }}{%- endif -%}
[{{ m.role }}]{{ m.content }}
{%- endfor -%}`

func TestFit(t *testing.T) {
	tpl, err := Parse("strict", strict, nil)
	if err != nil {
		t.Fatal(err)
	}
	caps := Probe(tpl)
	for name, c := range map[string]struct {
		messages, want string
		notes          []string
	}{
		"system": {`[{"role":"system","content":"s"},{"role":"user","content":"u"}]`, "[user]s\n\nu", []string{"messages[0]: system text went into the first user message"}},
		"two systems, a list": {`[{"role":"system","content":"s"},{"role":"developer","content":[{"type":"text","text":"d"}]},{"role":"user","content":"u"}]`,
			"[user]s\n\nd\n\nu", []string{"messages[0]: system text went into the first user message", "messages[1]: developer became system", "messages[1]: system text went into the first user message"}},
		"late system": {`[{"role":"user","content":"u"},{"role":"assistant","content":"a"},{"role":"system","content":"s"},{"role":"user","content":"v"}]`,
			"[user]u[assistant]a[user]<system-reminder>\ns\n</system-reminder>\n\nv",
			[]string{"messages[2]: system text after the first turn became a user message", "messages[3]: joined to the user message before it"}},
		"tools": {`[{"role":"user","content":"u"},{"role":"assistant","content":"a","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}},{"id":"2","type":"function","function":{"name":"g","arguments":{"y":[2.0]}}}]},{"role":"tool","tool_call_id":"1","content":"r"},{"role":"tool","tool_call_id":"2","content":"q"}]`,
			"[user]u[assistant]a\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\":1}}\n</tool_call>\n<tool_call>\n{\"name\": \"g\", \"arguments\": {\"y\": [2.0]}}\n</tool_call>[user]<tool_response>\nr\n</tool_response>\n\n<tool_response>\nq\n</tool_response>",
			[]string{"messages[1]: tool calls became text", "messages[2]: a tool result became a user message", "messages[3]: a tool result became a user message", "messages[3]: joined to the user message before it"}},
		"assistant first": {`[{"role":"assistant","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"u"}]`, "[user][assistant]a\n\nb[user]u",
			[]string{"messages[0]: an empty user message was put before it", "messages[1]: joined to the assistant message before it"}},
		"only system":   {`[{"role":"system","content":"s"}]`, "[user]s", []string{"messages[0]: system text went into the first user message", "messages: a user message was added"}},
		"nothing to do": {`[{"role":"user","content":"u"}]`, "[user]u", nil},
	} {
		fitted, notes, err := Fit([]byte(c.messages), &caps)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.Equal(notes, c.notes) {
			t.Errorf("%s: notes %q, want %q", name, notes, c.notes)
		}
		p, err := tpl.Render(Request{Messages: fitted})
		if err != nil {
			t.Errorf("%s: %s: %v", name, fitted, err)
		} else if p.Text != c.want {
			t.Errorf("%s: got %q, want %q", name, p.Text, c.want)
		}
		// What fits stays as it is.
		again, notes, err := Fit(fitted, &caps)
		if err != nil || len(notes) > 0 || string(again) != string(fitted) {
			t.Errorf("%s: a second time: %s, %q, %v", name, again, notes, err)
		}
	}
}

// A conversation without a user message gets one at the start, where it does not end a chain of calls.
func TestFitNoUser(t *testing.T) {
	tpl, err := Parse("t", `{% if not messages | selectattr('role', 'equalto', 'user') | list %}{{ raise_exception('no user message') }}{% endif %}`+
		`{% for m in messages %}[{{ m.role }}]{{ m.content }}{% for c in m.tool_calls or [] %}<{{ c.function.name }} {{ c.function.arguments | tojson }}>{% endfor %}{% endfor %}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	caps := Probe(tpl)
	fitted, notes, err := Fit([]byte(`[{"role":"system","content":"s"},{"role":"assistant","content":"a","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":{}}}]},{"role":"tool","tool_call_id":"c","content":"r"}]`), &caps)
	if err != nil || len(notes) != 1 {
		t.Fatal(notes, err)
	}
	p, err := tpl.Render(Request{Messages: fitted})
	if want := "[system]s[user][assistant]a<f {}>[tool]r"; err != nil || p.Text != want {
		t.Errorf("got %q, want %q; %v", p.Text, want, err)
	}
}

// A template that prints everything gets the messages untouched.
func TestFitNothing(t *testing.T) {
	tpl, err := Lookup("chatml", nil)
	if err != nil {
		t.Fatal(err)
	}
	caps := Probe(tpl)
	messages := []byte(`[{"role":"system","content":"a"},{"role":"user","content":"b"},{"role":"user","content":"c"},{"role":"system","content":"d"},{"role":"assistant","content":"e"}]`)
	fitted, notes, err := Fit(messages, &caps)
	if err != nil || len(notes) > 0 || &fitted[0] != &messages[0] {
		t.Errorf("%s %q %v", fitted, notes, err)
	}
}

// A great many messages become one in linear time.
func TestFitManyMessages(t *testing.T) {
	n := testsize.Pick(2_000, 20_000, 100_000)
	message := `{"role":"user","content":"` + strings.Repeat("x", 30) + `"},`
	list := "[" + strings.Repeat(message, n) + strings.Repeat(strings.Replace(message, "user", "system", 1), n) + `{"role":"user","content":["y"]}]`
	fitted, notes, err := Fit([]byte(list), &Capabilities{noUser: true})
	if err != nil || len(notes) < 2*n-1 || strings.Count(string(fitted), `"role"`) != 1 || strings.Count(string(fitted), "xxx") < n {
		t.Fatalf("%d notes, %d bytes, %v", len(notes), len(fitted), err)
	}
}

func TestFitRefused(t *testing.T) {
	for _, messages := range []string{`{}`, `[1]`, `[{"role":`} {
		if _, _, err := Fit([]byte(messages), &Capabilities{}); err == nil || !strings.HasPrefix(err.Error(), "template: messages") {
			t.Errorf("%s: %v", messages, err)
		}
	}
}

// Whatever the conversation, what comes out of Fit is one that the strictest template prints.
func FuzzFit(f *testing.F) {
	tpl, err := Parse("strict", strict, nil)
	if err != nil {
		f.Fatal(err)
	}
	caps := Probe(tpl)
	f.Add([]byte{0, 1, 2, 3, 4, 5})
	f.Add([]byte{2, 2, 4, 0, 1, 1, 3})
	f.Fuzz(func(t *testing.T, roles []byte) {
		if len(roles) == 0 || len(roles) > 50 {
			return
		}
		kinds := []string{
			`{"role":"system","content":"s"}`, `{"role":"user","content":"u"}`, `{"role":"assistant","content":"a"}`, `{"role":"tool","content":"t"}`,
			`{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}`, `{"role":"developer","content":[]}`,
		}
		var list []string
		for _, r := range roles {
			list = append(list, kinds[int(r)%len(kinds)])
		}
		fitted, _, err := Fit([]byte("["+strings.Join(list, ",")+"]"), &caps)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tpl.Render(Request{Messages: fitted}); err != nil {
			t.Fatalf("%v: %s: %v", list, fitted, err)
		}
	})
}
