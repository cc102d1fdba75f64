// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/weft-go/weft/tokenizers/internal/testsize"
	"github.com/weft-go/weft/tokenizers/template"
)

// shared is the directory with data that is not part of the project.
func shared() string {
	if dir := os.Getenv("WEFT_SHARED"); dir != "" {
		return dir
	}
	return filepath.Join("..", "..", "..", "shared")
}

var now = time.Date(2025, 3, 4, 5, 6, 7, 0, time.UTC)

// asIs contains the options for transformers' behavior; see template.Raw.
func asIs() *template.Options {
	return &template.Options{
		Variables: map[string]any{"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"},
		Now:       func() time.Time { return now },
		Arguments: "raw",
	}
}

// lines calls f for each line of a file of JSON lines.
func lines[T any](tb testing.TB, file string, f func(T)) {
	tb.Helper()
	r, err := os.Open(file)
	if err != nil {
		tb.Fatal(err)
	}
	defer r.Close()
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var v T
		if err := json.Unmarshal(sc.Bytes(), &v); err != nil {
			tb.Fatal(err)
		}
		f(v)
	}
}

type conversation struct {
	Name, Template             string
	Messages, Tools, Documents json.RawMessage
	Kwargs                     json.RawMessage
	AddGenerationPrompt        bool `json:"add_generation_prompt"`
	ContinueFinalMessage       bool `json:"continue_final_message"`
}

func (c *conversation) request() template.Request {
	return template.Request{
		Messages: c.Messages, Tools: c.Tools, Kwargs: c.Kwargs, Documents: c.Documents,
		AddGenerationPrompt: c.AddGenerationPrompt, ContinueFinalMessage: contentIf(c.ContinueFinalMessage),
	}
}

func conversations(tb testing.TB) map[string]conversation {
	all := map[string]conversation{}
	lines(tb, "testdata/conversations.jsonl", func(c conversation) { all[c.Name] = c })
	return all
}

// TestJinjaGolden renders what jinja2 3.1.6 rendered under the settings of transformers: see testdata/gen/golden.py.
func TestJinjaGolden(t *testing.T) {
	talks := conversations(t)
	templates := map[string]template.Template{}
	skipped := 0
	type golden struct {
		Template, Conversation, Text, SHA256 string
		Len                                  int
		Error                                bool
		Generations                          [][2]int
	}
	lines(t, "testdata/jinja.jsonl", func(g golden) {
		tpl := templates[g.Template]
		if tpl == nil {
			file := filepath.Join("testdata", "templates", g.Template)
			if strings.HasPrefix(g.Template, "tok/") {
				file = filepath.Join(shared(), g.Template)
			}
			src, err := os.ReadFile(file)
			if err != nil && g.SHA256+g.Text != "" && strings.HasPrefix(g.Template, "tok/") || err != nil && g.Error {
				skipped++
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if tpl, err = template.Parse(g.Template, string(src), asIs()); err != nil {
				t.Fatal(err)
			}
			templates[g.Template] = template.Raw(tpl)
		}
		talk, ok := talks[g.Conversation]
		if !ok {
			t.Fatal("no conversation", g.Conversation)
		}
		t.Run(g.Template+"/"+g.Conversation, func(t *testing.T) {
			p, err := tpl.Render(talk.request())
			if g.Error {
				if e, ok := errors.AsType[*template.Error](err); !ok || strings.HasSuffix(e.Error(), ": ") {
					t.Errorf("got %v, %v; want an error", p, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if sum := sha256.Sum256([]byte(p.Text)); g.SHA256 != "" && (len(p.Text) != g.Len || hex.EncodeToString(sum[:]) != g.SHA256) {
				t.Errorf("%d bytes, want %d, or others:\n%s", len(p.Text), g.Len, p.Text)
			} else if g.SHA256 == "" && p.Text != g.Text {
				t.Errorf("got\n%s\nwant\n%s", p.Text, g.Text)
			}
			checkPrompt(t, p)
			if g.Generations != nil {
				var got [][2]int
				for _, r := range template.Generations(p) {
					got = append(got, [2]int{r.Start, r.End})
				}
				if !slices.Equal(got, g.Generations) {
					t.Errorf("generations %v, want %v", got, g.Generations)
				}
			}
		})
	})
	if skipped > 0 {
		t.Logf("%d goldens need templates that are not here", skipped)
	}
}

// Our own templates and, if present, the shared ones.
func allTemplates(tb testing.TB, opt *template.Options) map[string]template.Template {
	tb.Helper()
	out := map[string]template.Template{}
	for _, pattern := range []string{filepath.Join("testdata", "templates", "*.jinja"), filepath.Join(shared(), "tok", "_templates", "*")} {
		files, _ := filepath.Glob(pattern)
		for _, f := range files {
			src, err := os.ReadFile(f)
			if err != nil {
				tb.Fatal(err)
			}
			if out[filepath.Base(f)], err = template.Parse(filepath.Base(f), string(src), opt); err != nil {
				tb.Fatal(err)
			}
		}
	}
	return out
}

// TestJinjaUntrusted writes Cyrillic, which no template has, into all text of the conversations: what of it
// comes out is not trusted.
func TestJinjaUntrusted(t *testing.T) {
	var change func(v any, key string) any
	change = func(v any, key string) any {
		switch v := v.(type) {
		case string:
			if key == "role" || key == "type" {
				return v
			}
			return strings.Map(func(r rune) rune {
				if r >= 'a' && r <= 'z' {
					return 'а' + r - 'a'
				}
				return r
			}, v)
		case []any:
			for i := range v {
				v[i] = change(v[i], key)
			}
		case map[string]any:
			for k := range v {
				v[k] = change(v[k], k)
			}
		}
		return v
	}
	raw := func(data json.RawMessage) []byte {
		if data == nil {
			return nil
		}
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatal(err)
		}
		out, err := json.Marshal(change(v, ""))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	n := 0
	opt := asIs()
	opt.Arguments = ""
	every := testsize.Pick(4, 1, 1)
	talks := conversations(t)
	talkNames := slices.Sorted(maps.Keys(talks))
	for name, tpl := range allTemplates(t, opt) {
		for i, talk := range talkNames {
			if i%every != 0 {
				continue
			}
			c := talks[talk]
			req := c.request()
			req.Messages, req.Tools, req.Kwargs, req.Documents = raw(c.Messages), raw(c.Tools), raw(c.Kwargs), raw(c.Documents)
			p, err := tpl.Render(req)
			if err != nil {
				continue
			}
			n++
			checkPrompt(t, p)
			for _, s := range p.Segments {
				if text := s.Text; s.Trusted && strings.ContainsAny(text, "абвгдежзийклмнопрстуфхцчшщ") {
					t.Errorf("%s, %s: %q is trusted", name, c.Name, text)
				}
			}
		}
	}
	if n < 50/every {
		t.Errorf("only %d renderings", n)
	}
}

func TestJinjaSpans(t *testing.T) {
	src, err := os.ReadFile("testdata/templates/generation.jinja")
	if err != nil {
		t.Fatal(err)
	}
	tpl, err := template.Parse("generation", string(src), asIs())
	if err != nil {
		t.Fatal(err)
	}
	p, err := template.Raw(tpl).Render(template.Request{
		Messages: []byte(`[{"role":"system","content":"S"},{"role":"user","content":[{"type":"text","text":"U"}]},{"role":"assistant","content":"A","reasoning_content":"R","tool_calls":[{"function":{"name":"f","arguments":{"k":1}}}]},{"role":"tool","content":"T"},{"role":"critic","content":"C"}]`),
		Tools:    []byte(`[{"function":{"name":"f"}}]`), Documents: []byte(`[{"title":"D","text":"E"}]`),
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range p.Spans {
		got = append(got, s.Path+" "+s.Kind+" "+p.Text[s.Start:s.End])
	}
	want := []string{
		"messages[0].content system S", "messages[1].content[0].text user U", "messages[2].reasoning_content reasoning R", "messages[2].content text A",
		"messages[2].tool_calls[0].function.name tool_call f", "messages[2].tool_calls[0].function.arguments tool_call {\n  \"k\": 1\n}",
		"messages[3].content tool_result T", "messages[4].role user critic", "messages[4].content user C",
		"tools[0].function.name tools f", "tools tools [", `tools[0] tools {"function": {"name": "f"}}`, "tools tools ]", "documents[0].title document D", "documents[0].text document E",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if g := template.Generations(p); len(g) != 1 || p.Text[g[0].Start:g[0].End] != "<r>R</r>A<c f>{\n  \"k\": 1\n}</c></s>" {
		t.Errorf("generations %+v of %q", g, p.Text)
	}
}

func TestJinjaErrors(t *testing.T) {
	user := `[{"role":"user","content":"x"},{"role":"assistant","content":"y"}]`
	for _, c := range []struct{ name, src, messages, kwargs, want string }{
		{"syntax", "a\n{% if x %}", user, "", `template: t:2:4: "if" is not closed: elif or else or endif is missing`},
		{"filter", "{{ x|nosuch }}", user, "", `template: t:1:6: unknown filter "nosuch"`},
		{"tag", "{% include 'x' %}", user, "", `template: t:1:4: tag "include" is not supported in chat templates`},
		{"raised", "{% for m in messages %}\n{{ raise_exception('No ' ~ m.role) if m.role != 'user' }}{% endfor %}", user, "", `template: t:2:19: messages[1]: No assistant`},
		{"undefined", "{% for m in messages %}{{ m.a.b }}{% endfor %}", user, "", `template: t:1:31: messages[0]: dict has no attribute or element "a"`},
		{"in a macro", "{% macro f(x) %}{{ x.y.z }}{% endmacro %}{% for m in messages %}{{ f(m) if loop.last }}{% endfor %}", user, "", `template: t:1:24: messages[1]: dict has no attribute or element "y"`},
		{"clock", "{{ strftime_now('%Y') }}", user, "", `template: t:1:16: strftime_now: no clock was given`},
		{"empty", "", `[]`, "", `template: messages: is empty`},
		{"malformed", "", `[{"role":"user"`, "", `template: messages[0].role: ends where a comma or the end of the object should be (offset 15)`},
		{"no object", "", `[3]`, "", `template: messages[0]: is not an object`},
		{"no array", "", `{}`, "", `template: messages: is not an array`},
		{"kwargs", "", user, `{"messages":1}`, `template: kwargs.messages: is not a template variable of its own`},
		{"limit", "{{ 'a' * 10 ** 9 }}", user, "", `template: t:1:8: text exceeds 67108864 bytes`},
	} {
		t.Run(c.name, func(t *testing.T) {
			tpl, err := template.Parse("t", c.src, nil)
			if err == nil {
				_, err = tpl.Render(template.Request{Messages: []byte(c.messages), Kwargs: []byte(c.kwargs)})
			}
			if e, ok := errors.AsType[*template.Error](err); !ok || err.Error() != c.want || e.Raised != (c.name == "raised") {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// Messages that a template cannot print are adapted to it.
func TestAdapt(t *testing.T) {
	const loop = `{% for m in messages %}[{{ m.role }}]`
	for _, c := range []struct{ name, src, messages, want string }{
		{"parts joined", loop + `{{ m.content + '' }}{% endfor %}`, `[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]`, "[user]a\nb"},
		{"parts kept", loop + `{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}<{{ p.type }}>{{ p.text }}{% endfor %}{% endif %}{% endfor %}`,
			`[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"x"}}]}]`, "[user]<text>a<image>"},
		{"null", loop + `{{ m.content + '' }}{% for c in m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments|tojson }}{% endfor %}{% endfor %}`,
			`[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":"{\"a\":1.0}"}}]}]`, `[user]x[assistant]f{"a": 1.0}`},
		{"null, handled for calls", loop + `{% if m.tool_calls %}{{ m.content or '' }}{% for c in m.tool_calls %}{{ c.function.name }}{{ c.function.arguments|tojson }}{% endfor %}{% elif m.role == 'tool' %}{{ m.content|tojson }}{% elif m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}{% endfor %}`,
			`[{"role":"user","content":null},{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":{}}}]},{"role":"tool","content":null}]`, `[user][assistant]f{}[tool]""`},
		{"string kept", loop + `{{ m.content or '' }}{% for c in m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments if c.function.arguments is string else c.function.arguments|tojson }}{% endfor %}{% endfor %}`,
			`[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{\"a\":1.0}"}}]}]`, `[user]x[assistant]f{"a":1.0}`},
		{"string wanted", loop + `{{ m.content or '' }}{% for c in m.tool_calls or [] %}{{ c.function.name + c.function.arguments }}{% endfor %}{% endfor %}`,
			`[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{"a":1.0,"b":"é"}}}]}]`, `[user]x[assistant]f{"a": 1.0, "b": "é"}`},
		{"flat", loop + `{{ m.content or '' }}{% for c in m.tool_calls or [] %}{{ c.name + ':' }}{{ c.arguments|tojson }}{% endfor %}{% endfor %}`,
			`[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}]`, `[user]x[assistant]f:{}`},
		{"reasoning", loop + `{{ m.thinking }}{{ m.content }}{% endfor %}`, `[{"role":"user","content":"x"},{"role":"assistant","reasoning_content":"r","content":"y"}]`, `[user]x[assistant]ry`},
		{"empty reasoning", loop + `{% if m.reasoning_content is string %}<{{ m.reasoning_content }}>{{ m.content }}{% else %}{{ m.content.split('</think>')[-1] }}{% endif %}{% endfor %}`,
			`[{"role":"user","content":"x"},{"role":"assistant","reasoning":"","thinking":"","content":"y</think>z"},{"role":"assistant","reasoning":"","thinking":"r","content":"y"}]`, `[user]x[assistant]<>y</think>z[assistant]<r>y`},
	} {
		t.Run(c.name, func(t *testing.T) {
			tpl, err := template.Parse("t", c.src, nil)
			if err != nil {
				t.Fatal(err)
			}
			p, err := tpl.Render(template.Request{Messages: []byte(c.messages)})
			if err != nil {
				t.Fatal(err)
			}
			if p.Text != c.want {
				t.Errorf("got  %q\nwant %q", p.Text, c.want)
			}
			checkPrompt(t, p)
		})
	}
	tpl, err := template.Parse("t", loop+`{{ m.content + '' }}{% endfor %}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = tpl.Render(template.Request{Messages: []byte(`[{"role":"user","content":[{"type":"image_url"}]}]`)})
	if got, want := err.Error(), `template: messages[0].content[0]: is not text but "image_url"`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestLoad(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	req := template.Request{Messages: []byte(`[{"role":"user","content":"x"}]`)}
	withTools := req
	withTools.Tools = []byte(`[{"function":{"name":"f"}}]`)
	for _, c := range []struct {
		name        string
		fs          fstest.MapFS
		want, tools string
	}{
		{"config", fstest.MapFS{"tokenizer_config.json": file(`{"chat_template":"{{ bos_token }}{{ eos_token }}{{ pad_token }}{{ additional_special_tokens }}","bos_token":"<s>","eos_token":{"content":"</s>"},"pad_token":null,"additional_special_tokens":["a"]}`)}, "<s></s>['a']", "<s></s>['a']"},
		{"file first", fstest.MapFS{"tokenizer_config.json": file(`{"chat_template":"no","bos_token":"<s>"}`), "chat_template.jinja": file("{{ bos_token }}f\n")}, "<s>f", "<s>f"},
		{"named", fstest.MapFS{"tokenizer_config.json": file(`{"chat_template":[{"name":"default","template":"d"},{"name":"tool_use","template":"t"},{"name":"rag","template":"r"}]}`)}, "d", "t"},
		{"folder", fstest.MapFS{"chat_template.jinja": file("d"), "additional_chat_templates/tool_use.jinja": file("t")}, "d", "t"},
		{"processor", fstest.MapFS{"chat_template.json": file(`{"chat_template":"p"}`)}, "p", "p"},
		{"old map", fstest.MapFS{"tokenizer_config.json": file(`{"chat_template":"{{ bos_token }}"}`), "special_tokens_map.json": file(`{"bos_token":"<b>"}`)}, "<b>", "<b>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tpl, err := template.Load(c.fs, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range []struct {
				r    template.Request
				want string
			}{{req, c.want}, {withTools, c.tools}} {
				p, err := tpl.Render(x.r)
				if err != nil {
					t.Fatal(err)
				}
				if p.Text != x.want {
					t.Errorf("got %q, want %q", p.Text, x.want)
				}
			}
		})
	}
	if _, err := template.Load(fstest.MapFS{}, nil); !errors.Is(err, template.ErrNoTemplate) {
		t.Error(err)
	}
	for _, bad := range []string{`{"chat_template":3}`, `{"chat_template":[{"name":"a","template":"x"}]}`, `{`, `{"chat_template":"{{"}`} {
		if _, err := template.Load(fstest.MapFS{"tokenizer_config.json": file(bad)}, nil); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

func TestProbe(t *testing.T) {
	for _, name := range []string{"generation.jinja", "strict.jinja"} {
		tpl := allTemplates(t, nil)[name]
		c := template.Probe(tpl)
		if strict := name == "strict.jinja"; !c.Has("works") || !c.Has("system") || c.Has("consecutive_users") == strict || c.Has("system_middle") == strict || c.Has("tool_calls") == strict {
			t.Errorf("%s: %+v", name, c)
		}
	}
	c := template.Probe(lookup("chatml", nil))
	if !c.Has("tool_calls") || !c.Has("string_arguments") || c.Text("reasoning_key") != "reasoning_content" || template.Scopes(c.Text("past_reasoning"))[""] != "since_user" || !c.Has("strips_inline") || c.Text("reasoning_switches") != "enable_thinking" || c.Text("generation_prompt") != "<|im_start|>assistant\n" {
		t.Errorf("%+v", c)
	}
	// The Go template and the published one agree on all they both do.
	qwen, ok := allTemplates(t, nil)["qwen3.jinja"]
	if !ok {
		t.Skip("no shared templates: set WEFT_SHARED")
	}
	q := template.Probe(qwen)
	for _, f := range template.Features() {
		switch f {
		case "developer", "null_content", "no_content", "list_system", "list_user", "list_assistant", "list_tool":
			continue // the Go template is lenient
		}
		if q.Has(f) != c.Has(f) {
			t.Errorf("%s: qwen3 %t, ChatML %t", f, q.Has(f), c.Has(f))
		}
	}
	if got, want := replayed(c), replayed(q); got != want {
		t.Errorf("ChatML %s, qwen3 %s", got, want)
	}
	for _, name := range []string{"generation_prompt", "generation_prompt_off"} {
		if got, want := c.Text(name), q.Text(name); got != want {
			t.Errorf("generation prompt %q, qwen3 %q", got, want)
		}
	}
}

func TestConcurrent(t *testing.T) {
	talks := conversations(t)
	tpl := allTemplates(t, nil)["generation.jinja"]
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for _, c := range talks {
				req := c.request()
				req.Now = now
				_, _ = tpl.Render(req)
			}
		})
	}
	wg.Wait()
}

func FuzzJinjaRender(f *testing.F) {
	talks := conversations(f)
	for i, name := range slices.Sorted(maps.Keys(talks)) {
		if c := talks[name]; i%testsize.Pick(4, 1, 1) == 0 {
			f.Add(string(c.Messages), string(c.Tools), string(c.Kwargs), c.ContinueFinalMessage)
		}
	}
	templates := allTemplates(f, nil)
	f.Fuzz(func(t *testing.T, messages, tools, kwargs string, cont bool) {
		for _, tpl := range templates {
			p, err := tpl.Render(template.Request{Messages: []byte(messages), Tools: []byte(tools), Kwargs: []byte(kwargs), AddGenerationPrompt: !cont, ContinueFinalMessage: contentIf(cont), Now: now})
			if err != nil {
				if _, ok := errors.AsType[*template.Error](err); !ok {
					t.Fatal("not an Error:", err)
				}
				continue
			}
			checkPrompt(t, p)
		}
	})
}

func BenchmarkJinja(b *testing.B) {
	c := conversations(b)["reasoning_past"]
	for name, tpl := range allTemplates(b, asIs()) {
		template.Raw(tpl)
		if _, err := tpl.Render(c.request()); err != nil {
			continue
		}
		b.Run("template="+strings.TrimSuffix(name, filepath.Ext(name)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tpl.Render(c.request()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestLoadShared loads every model directory that has a template and renders an agent's conversations as sent by the
// API: arguments as strings, null content, results as lists of parts.
func TestLoadShared(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(shared(), "tok", "*", "chat_template.jinja"))
	if len(files) == 0 {
		t.Skip("no shared models: set WEFT_SHARED")
	}
	talks := conversations(t)
	for _, f := range files {
		tpl, err := template.Load(os.DirFS(filepath.Dir(f)), nil)
		if err != nil {
			t.Fatal(f, err)
		}
		for _, name := range []string{"system", "tools", "call", "call_string", "parallel", "null_content", "no_content", "reasoning_past", "parts", "tool_json_result", "thinking_off"} {
			c := talks[name]
			req := c.request()
			req.Now = now
			p, err := tpl.Render(req)
			if _, ok := errors.AsType[*template.Error](err); ok && strings.HasSuffix(err.Error(), ": a sign before str") {
				// The template of gpt-oss has {{ - "{" }} for parameters that are objects: jinja2 fails, too.
				continue
			}
			if err != nil {
				t.Errorf("%s, %s: %v", f, name, err)
				continue
			}
			checkPrompt(t, p)
		}
	}
}

// contentIf returns the field that is continued if the content is.
func contentIf(open bool) string {
	if open {
		return "content"
	}
	return ""
}

// TestContinueField leaves any field of the last message open, as transformers 5.23 does. Reasoning may have another name
// than the template reads.
func TestContinueField(t *testing.T) {
	const source = `{% for m in messages %}<{{ m.role }}>{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}{{ m.note or '' }};{% endfor %}`
	tpl, err := template.Parse("t", source, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ message, field, want, why string }{
		{`"content":"a","reasoning_content":"hm "`, "reasoning_content", "<user>Q;<assistant><think>hm ", ""},
		{`"content":"a","reasoning_content":"hm"`, "content", "<user>Q;<assistant><think>hm</think>a", ""},
		{`"content":"","thinking":"hm"`, "thinking", "<user>Q;<assistant><think>hm", ""},
		{`"content":"","reasoning":"hm"`, "reasoning_content", "<user>Q;<assistant><think>hm", ""},
		{`"content":"a","note":"b"`, "note", "<user>Q;<assistant>ab", ""},
		{`"content":"a"`, "reasoning_content", "", "it has no reasoning"},
		{`"content":"a"`, "note", "", "it has no note"},
		{`"content":"a","other":"b"`, "other", "", "does not print the field other"},
		{`"content":"a","note":1`, "note", "", "its note is not text"},
	} {
		p, err := tpl.Render(template.Request{Messages: []byte(`[{"role":"user","content":"Q"},{"role":"assistant",` + tt.message + `}]`), ContinueFinalMessage: tt.field})
		switch {
		case tt.why != "":
			if err == nil || !strings.Contains(err.Error(), tt.why) {
				t.Errorf("%+v: %v", tt, err)
			}
		case err != nil:
			t.Errorf("%+v: %v", tt, err)
		case p.Text != tt.want:
			t.Errorf("%+v: got %q", tt, p.Text)
		}
	}
	for _, name := range []string{"chatml", "mistral", "deepseek_v3_2", "kimi_k3", "harmony"} {
		_, err := lookup(name, nil).Render(template.Request{Messages: []byte(`[{"role":"user","content":"Q"},{"role":"assistant","content":"a","reasoning_content":"hm"}]`), ContinueFinalMessage: "reasoning_content"})
		if err == nil || !strings.Contains(err.Error(), "continues only content") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
