// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers/family"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/tokenizers/prompt"
	"github.com/weft-go/weft/tokenizers/template"
)

// shortIDs is a template that only accepts ids of nine letters and digits, and prints them.
const shortIDs = `{{ tools or '' }}{% for m in messages %}<{{ m.role }}{% if m.tool_call_id %}{% if m.tool_call_id|length != 9 %}{{ raise_exception('length 9') }}{% endif %} {{ m.tool_call_id }}{% endif %}>{{ m.content }}` +
	`{% for c in m.tool_calls or [] %}{% if c.id|length != 9 %}{{ raise_exception('length 9') }}{% endif %}[TOOL_CALLS]{{ c.function.name }}[CALL_ID]{{ c.id }}[ARGS]{{ c.function.arguments if c.function.arguments is string else c.function.arguments | tojson }}{% endfor %}{% endfor %}` +
	`{% if add_generation_prompt %}<assistant>{% endif %}`

var nine = regexp.MustCompile(`^[0-9A-Za-z]{9}$`)

// TestShortCallIDs prints conversations with any ids for a template that only accepts ids like Mistral's: a call and its
// result have the same one, no two calls do, and they are the same in the next request.
func TestShortCallIDs(t *testing.T) {
	m := familyModel(t, compiled(shortIDs)(t), nil)
	caps := m.Capabilities()
	require.True(t, caps.Has("short_ids"))
	ids := []string{"call_1", "call_2", "toolu_01A09q90qw90lq917835lq9", "abcDEF123", "call_0001", "ÄÖÜäö", "functions.f:0"}
	for i := range 300 {
		ids = append(ids, fmt.Sprint("call_", i+3))
	}
	var first []string
	before := ""
	for _, n := range []int{1, 2, 5, 7, 100, len(ids)} {
		var list []any
		list = append(list, object{"role": "user", "content": "Hi"})
		for _, id := range ids[:n] {
			list = append(list, object{"role": "assistant", "content": "", "tool_calls": []any{object{"id": id, "type": "function", "function": object{"name": "f", "arguments": "{}"}}}},
				object{"role": "tool", "tool_call_id": id, "content": "r"})
		}
		body, err := json.Marshal(object{"model": "m", "messages": list})
		require.NoError(t, err)
		req, err := decode("chat", body, nil)
		require.NoError(t, err)
		p, err := m.Render(req, noon)
		require.NoError(t, err)
		open := strings.TrimSuffix(p.Text, "<assistant>")
		require.True(t, strings.HasPrefix(open, before))
		before = open
		calls := regexp.MustCompile(`\[CALL_ID\](.*?)\[ARGS\]`).FindAllStringSubmatch(p.Text, -1)
		results := regexp.MustCompile(`<tool (.*?)>`).FindAllStringSubmatch(p.Text, -1)
		require.Len(t, calls, n)
		require.Len(t, results, n)
		seen := map[string]bool{}
		first = nil
		for i := range calls {
			require.Regexp(t, nine, calls[i][1])
			require.Equal(t, calls[i][1], results[i][1])
			require.False(t, seen[calls[i][1]])
			seen[calls[i][1]] = true
			first = append(first, calls[i][1])
		}
	}
	require.Equal(t, "abcDEF123", first[3])

	// An id of the form that another id was mapped to before gets another one.
	text, _ := render(t, m, "chat", fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"","tool_calls":[`+
		`{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":%q,"type":"function","function":{"name":"f","arguments":"{}"}}]}]}`, first[0]))
	require.Equal(t, 1, strings.Count(text, first[0]))

	// The other templates print ids as they are.
	other := familyModel(t, compiled(strings.ReplaceAll(shortIDs, "|length != 9", "|length > 99"))(t), nil)
	caps = other.Capabilities()
	require.False(t, caps.Has("short_ids"))
	text, _ = render(t, other, "chat", `{"model":"m","messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"","tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}]}]}`)
	require.Contains(t, text, "[CALL_ID]call_1[ARGS]")
}

// TestIDForms checks that an id that the model wrote for one call and a client chose for another is printed once.
func TestIDForms(t *testing.T) {
	var f prompt.IDForms
	require.Equal(t, "f:0", f.Of("call_1", "f:0"))
	require.Equal(t, "f:0_1", f.Of("f:0", ""))
	require.Equal(t, "f:0_1_1", f.Of("f:0_1", ""))
	require.Equal(t, "call_2", f.Of("call_2", "f:0"))
	require.Equal(t, "f:0_1", f.Of("f:0", ""), "again")
}

// TestShortCallIDsDecoded decodes calls for such a template: the client gets ids of the form, the model's own if they are
// new.
func TestShortCallIDsDecoded(t *testing.T) {
	m := familyModel(t, compiled(shortIDs)(t), family.New("mistral_v11"))
	for _, api := range apis {
		c := &client{t: t, api: api}
		c.user("Hi")
		last := ""
		for n, id := range []string{"aB3dE5fG7", "aB3dE5fG7", "call_1", ""} {
			req := c.request(true, "")
			p, err := m.Render(req, noon)
			require.NoError(t, err, api)
			require.True(t, strings.HasPrefix(p.Text, last), "%q\n%q", last, p.Text)
			out := "[TOOL_CALLS]f[CALL_ID]" + id + `[ARGS]{"x": "1"}`
			if id == "" {
				out = `[TOOL_CALLS]f[ARGS]{"x": "1"}`
			}
			events := decodeAll(t, m, req, p, out)
			c.answer(events...)
			require.Len(t, c.ids, 1)
			require.Regexp(t, nine, c.ids[0])
			if n == 0 {
				require.Equal(t, id, c.ids[0])
				last = p.Text + out
			} else {
				require.NotEqual(t, id, c.ids[0])
			}
			c.results("r", "")
			if n > 0 {
				last = ""
			}
		}
	}
}

// decodeAll decodes a response, and returns the events that a client receives for it.
func decodeAll(t testing.TB, m *prompt.Model, req *block.Request, p *prompt.Prompt, out string) (events []event.Event) {
	t.Helper()
	dec, err := m.NewDecoder(req, p, nil)
	require.NoError(t, err)
	for _, list := range [][]event.Event{dec.Append(nil, out), dec.Finish(nil)} {
		require.NoError(t, dec.Err())
		for _, e := range list {
			if e.Kind != event.Finish && e.Kind != event.Start && e.Kind != event.Usage {
				events = append(events, e.Clone())
			}
		}
	}
	return events
}

// TestMemoKeepsArguments checks that calls are printed with the bytes that the model wrote, though the client returns
// others with the same meaning.
func TestMemoKeepsArguments(t *testing.T) {
	m := familyModel(t, lookup("chatml", nil), family.New("hermes"))
	for _, tt := range []struct{ own, client string }{
		{`{"city":"北京"}`, `{"city":"北京"}`},
		{`{"city":"北京"}`, `{"city": "\u5317\u4eac"}`},
		{`{"x": 3.0, "y": 1e3, "z": -0.0}`, `{"x":3,"y":1000,"z":0}`},
		{`{"b": 1, "a": [1.50, {"c": null}]}`, `{"a":[1.5,{"c":null}],"b":1}`},
		{`{ }`, `{}`},
	} {
		for _, api := range apis {
			memo := prompt.NewMemo(0)
			c := &client{t: t, api: api}
			c.user("Zq question.")
			last := ""
			for n := range 3 {
				turn := memo.Turn("t", "", "s")
				req, err := turn.Decode(wireAPI(api), []byte(c.body(true, "")), nil)
				require.NoError(t, err)
				p, err := turn.Render(m, req, noon)
				require.NoError(t, err)
				require.True(t, strings.HasPrefix(p.Text, last), "%s %d: %q\n%q", api, n, last, p.Text)
				out := "<tool_call>\n{\"name\": \"f\", \"arguments\": " + tt.own + "}\n</tool_call>"
				c.answer(decodeAll(t, m, req, p, out)...)
				c.respell(tt.own, tt.client)
				c.results("r", "")
				last = p.Text + out
			}

			// Without the memo, they are printed as the client returned them or in the template's form.
			other := prompt.NewMemo(0).Turn("t", "", "s")
			foreign := memo.Turn("another tenant", "", "s")
			for _, turn := range []*prompt.Turn{other, foreign} {
				req, err := turn.Decode(wireAPI(api), []byte(c.body(true, "")), nil)
				require.NoError(t, err)
				p, err := turn.Render(m, req, noon)
				require.NoError(t, err)
				require.False(t, strings.HasPrefix(p.Text, last), tt.own)
			}
		}
	}
}

// TestMemoKeepsNumbers checks the same for numbers in templates that print each argument by itself. Without a Memo, they
// are printed as in Python.
func TestMemoKeepsNumbers(t *testing.T) {
	const (
		own = `{"a":3.0,"b":1e3,"c":-0.0,"d":1.50,"e":[1E-2, {"f": 20e1}],"g":100000000000000000000000}`
		js  = `{"a":3,"b":1000,"c":0,"d":1.5,"e":[0.01,{"f":200}],"g":1e+23}`
		xml = "<tool_call>\n<function=f>\n<parameter=a>\n3.0\n</parameter>\n<parameter=b>\n1e3\n</parameter>\n<parameter=c>\n-0.0\n</parameter>\n" +
			"<parameter=d>\n1.50\n</parameter>\n<parameter=e>\n[1E-2, {\"f\": 20e1}]\n</parameter>\n<parameter=g>\n100000000000000000000000\n</parameter>\n</function>\n</tool_call>"
		jinja = `{{ tools|tojson if tools else '' }}{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>
<function={{ c.function.name }}>
{% for k, v in c.function.arguments|items %}<parameter={{ k }}>
{{ v|tojson if v is mapping or v is sequence and v is not string else v|string }}
</parameter>
{% endfor %}</function>
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`
	)
	const schema = `{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"},"c":{"type":"number"},"d":{"type":"number"},"e":{"type":"array"},"g":{"type":"integer"}}}`
	for name, tt := range map[string]struct {
		template template.Template
		family   string
	}{
		"jinja":  {compiled(jinja)(t), "qwen3_coder"},
		"chatml": {lookup("chatml", variables{"calls": "xml"}), "qwen3_coder"},
	} {
		t.Run(name, func(t *testing.T) {
			m := familyModel(t, tt.template, family.New(tt.family))
			for _, api := range apis {
				memo := prompt.NewMemo(0)
				c := &client{t: t, api: api, schema: schema}
				c.user("Zq question.")
				last := ""
				for range 3 {
					turn := memo.Turn("t", "", "s")
					req, err := turn.Decode(wireAPI(api), []byte(c.body(true, "")), nil)
					require.NoError(t, err)
					p, err := turn.Render(m, req, noon)
					require.NoError(t, err)
					require.Empty(t, cmp.Diff(last, p.Text[:len(last)]), api)
					c.answer(decodeAll(t, m, req, p, xml)...)
					c.respell(own, js)
					c.results("r", "")
					last = p.Text + xml
				}
				req, err := decode(api, []byte(c.body(true, "")), nil)
				require.NoError(t, err)
				p, err := m.Render(req, noon)
				require.NoError(t, err)
				require.Contains(t, p.Text, "<parameter=b>\n1000\n</parameter>", api)
			}
		})
	}
}

// TestMemoChangedArguments checks that arguments whose meaning the client changed are the client's.
func TestMemoChangedArguments(t *testing.T) {
	m := familyModel(t, lookup("chatml", nil), family.New("hermes"))
	for _, changed := range []string{`{"x":2}`, `{"x":"1"}`, `{"x":1,"y":1}`, `{}`, `{"x":1`, `null`} {
		memo := prompt.NewMemo(0)
		c := &client{t: t, api: "chat"}
		c.user("Zq question.")
		const own = `{"x": 1.0}`
		for range 2 {
			turn := memo.Turn("", "", "")
			req, err := turn.Decode(wireAPI("chat"), []byte(c.body(true, "")), nil)
			require.NoError(t, err)
			p, err := turn.Render(m, req, noon)
			require.NoError(t, err)
			require.NotContains(t, p.Text, own, changed)
			c.answer(decodeAll(t, m, req, p, "<tool_call>\n{\"name\": \"f\", \"arguments\": "+own+"}\n</tool_call>")...)
			c.respell(own, changed)
			c.results("r", "")
		}
	}
}

// TestMemoArgumentsBytes checks that the remembered arguments count for the limit of a Memo.
func TestMemoArgumentsBytes(t *testing.T) {
	m := familyModel(t, lookup("chatml", nil), family.New("hermes"))
	memo := prompt.NewMemo(0)
	c := &client{t: t, api: "chat"}
	c.user("Zq question.")
	turn := memo.Turn("", "", "")
	req, err := turn.Decode(wireAPI("chat"), []byte(c.body(true, "")), nil)
	require.NoError(t, err)
	p, err := turn.Render(m, req, noon)
	require.NoError(t, err)
	_, before := memo.Len()
	decodeAll(t, m, req, p, "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": \""+strings.Repeat("a", 10_000)+"\"}}\n</tool_call>")
	_, after := memo.Len()
	require.Greater(t, after, before+10_000)
}

// TestMemoTrim checks that a conversation that was not used for a while leaves only the arguments of its calls in the memo,
// and that they are printed as the model wrote them when it continues, also if the response ended meanwhile.
func TestMemoTrim(t *testing.T) {
	m := familyModel(t, lookup("chatml", nil), family.New("hermes"))
	const out = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 3.0}}\n</tool_call>"
	long := strings.Repeat("word ", 50_000)
	for name, session := range map[string]string{"session": "s", "beginning": ""} {
		for _, api := range apis {
			t.Run(name+" "+api, func(t *testing.T) {
				memo := prompt.NewMemo(0)
				render := func(session string, c *client) (*block.Request, *prompt.Prompt) {
					turn := memo.Turn("t", "", session)
					req, err := turn.Decode(wireAPI(api), []byte(c.body(true, "")), nil)
					require.NoError(t, err)
					p, err := turn.Render(m, req, noon)
					require.NoError(t, err)
					return req, p
				}
				check := func(entries, most int) {
					t.Helper()
					n, bytes := memo.Len()
					require.Equal(t, entries, n)
					require.LessOrEqual(t, bytes, most)
					require.GreaterOrEqual(t, bytes, 0)
				}
				c := &client{t: t, api: api}
				c.user("Zq question. " + long)
				last := ""
				for n := range 3 {
					req, p := render(session, c)
					require.True(t, strings.HasPrefix(p.Text, last), "%d: %q", n, p.Text[len(long):])
					if n == 1 { // the response takes long
						memo.Trim()
						memo.Trim()
					}
					c.answer(decodeAll(t, m, req, p, out)...)
					c.respell(`{"x": 3.0}`, `{"x":3}`)
					c.results("r", "")
					last = p.Text + out
					memo.Trim()
					if n != 1 {
						_, bytes := memo.Len()
						require.Greater(t, bytes, len(long), "it was used")
					}
					memo.Trim()
					memo.Trim()
					check(1, 10_000)
				}

				// Conversations that only begin alike do not get its calls, and those without calls leave nothing.
				other := &client{t: t, api: api}
				other.user("Zq question. " + long[:len(long)/4] + strings.Repeat("term ", 10_000))
				render("", other)
				check(2, 4*len(long))
				memo.Trim()
				memo.Trim()
				check(1, 10_000)
				_, p := render(session, c)
				require.True(t, strings.HasPrefix(p.Text, last))
				check(1, 10*len(long))
			})
		}
	}
}

// TestBrokenArguments renders past calls whose arguments are not an object: as they are if the template prints strings,
// and otherwise without arguments, which is a loss.
func TestBrokenArguments(t *testing.T) {
	const (
		objects = `{{ tools or '' }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls or [] %}<f{% for k, v in c.function.arguments|items %} {{ k }}={{ v }}{% endfor %}>{% endfor %}{% endfor %}`
		strs    = `{{ tools or '' }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls or [] %}<f {{ c.function.arguments + '' }}>{% endfor %}{% endfor %}`
	)
	for _, args := range []string{`{"path": "/tmp/x", "text": "cut he`, `[1]`, `null`, `"text"`, `not JSON`} {
		quoted, err := json.Marshal(args)
		require.NoError(t, err)
		call := `{"id":"c1","type":"function","function":{"name":"f","arguments":`
		body := `{"model":"m","messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a","tool_calls":[` + call + string(quoted) + `}},` + call + `"{\"x\": 1}"}}]},` +
			`{"role":"tool","tool_call_id":"c1","content":"r"}]}`
		for source, want := range map[string]string{objects: "<user>q<assistant>a<f><f x=1><tool>r", strs: "<user>q<assistant>a<f " + args + `><f {"x": 1}><tool>r`} {
			m, err := prompt.New(compiled(source)(t), &prompt.Options{Family: "passthrough"})
			require.NoError(t, err)
			memo := prompt.NewMemo(0)
			for range 3 { // the last two with a memo
				turn := memo.Turn("", "", "s")
				req, err := turn.Decode(wireAPI("chat"), []byte(body), nil)
				require.NoError(t, err)
				p, err := turn.Render(m, req, noon)
				require.NoError(t, err)
				require.Equal(t, want, p.Text)
				var paths []string
				for _, l := range p.Losses {
					if strings.Contains(l.Why, "not a JSON object") {
						paths = append(paths, l.Path)
					}
				}
				if source == objects {
					require.Equal(t, []string{"messages[1].tool_calls[0]"}, paths)
				} else {
					require.Empty(t, paths)
				}
			}
		}
	}
}
