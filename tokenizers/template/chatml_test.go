// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers/template"
)

// golden is a line of testdata/chatml.jsonl: a conversation of ours and what the published template
// printed for it under Python's jinja2 3.1.6 with the settings of transformers (trim_blocks,
// lstrip_blocks, tojson without escapes).
type golden struct {
	Name, Template, Prompt string
	Messages, Tools        json.RawMessage
	Kwargs                 json.RawMessage
	AddGenerationPrompt    bool `json:"add_generation_prompt"`
	ContinueFinalMessage   bool `json:"continue_final_message"`
}

func (g *golden) request() template.Request {
	return template.Request{
		Messages: g.Messages, Tools: g.Tools, Kwargs: g.Kwargs,
		AddGenerationPrompt: g.AddGenerationPrompt, ContinueFinalMessage: contentIf(g.ContinueFinalMessage),
	}
}

func (g *golden) template() template.Template {
	switch g.Template {
	case "qwen2.5":
		return lookup("chatml", vars{"default_system": "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.", "reasoning_scope": "none"})
	case "qwen3.5-renum":
		return lookup("chatml", vars{"calls": "xml"})
	}
	return lookup("chatml", nil)
}

func readGolden(tb testing.TB) []golden { return readGoldenFile(tb, "testdata/chatml.jsonl") }

func readGoldenFile(tb testing.TB, name string) []golden {
	tb.Helper()
	f, err := os.Open(name)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	var out []golden
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var g golden
		if err := json.Unmarshal(sc.Bytes(), &g); err != nil {
			tb.Fatal(err)
		}
		out = append(out, g)
	}
	return out
}

func TestChatML(t *testing.T) {
	for _, g := range readGolden(t) {
		t.Run(g.Name, func(t *testing.T) {
			p, err := g.template().Render(g.request())
			if err != nil {
				t.Fatal(err)
			}
			want := g.Prompt
			if g.Template == "qwen3.5-renum" {
				// That template thinks aloud unless told to; only the part before is ours.
				want = strings.TrimSuffix(want, "<think>\n\n</think>\n\n")
			}
			if p.Text != want {
				t.Errorf("got\n%s\nwant\n%s", p.Text, want)
			}
			checkPrompt(t, p)
		})
	}
}

// With calls set to none, the format prints neither tools nor calls, and Probe reports that.
func TestChatMLWithoutCalls(t *testing.T) {
	none := lookup("chatml", vars{"calls": "none"})
	for _, g := range readGolden(t) {
		if len(g.Tools) == 0 {
			continue
		}
		req := g.request()
		p, err := none.Render(req)
		if err != nil {
			t.Fatal(err)
		}
		checkPrompt(t, p)
		if strings.Contains(p.Text, "<tool_call>") || strings.Contains(p.Text, "# Tools") {
			t.Errorf("%s: tools or calls in\n%s", g.Name, p.Text)
		}
		req.Tools = nil
		if q, err := none.Render(req); err != nil || q.Text != p.Text {
			t.Errorf("%s: without tools\n%v\nwith tools\n%s", g.Name, q, p.Text)
		}
	}
	c := template.Probe(none)
	for _, name := range []string{"tools", "tool_calls", "flat_calls"} {
		if c.Has(name) {
			t.Errorf("the template has %s", name)
		}
	}
}

// vars are the variables of a written format.
type vars = map[string]any

// lookup returns a written format.
func lookup(name string, v vars) template.Template {
	t, err := template.Lookup(name, &template.Options{Variables: v})
	if err != nil {
		panic(err)
	}
	return t
}

// checkPrompt tests what holds for every prompt.
func checkPrompt(t *testing.T, p *template.Prompt) {
	t.Helper()
	at := 0
	for i, s := range p.Segments {
		if s.Text == "" || !strings.HasPrefix(p.Text[at:], s.Text) || i > 0 && p.Segments[i-1].Trusted == s.Trusted {
			t.Fatalf("segment %d is %+v after %d", i, s, at)
		}
		at += len(s.Text)
	}
	if at != len(p.Text) {
		t.Errorf("segments end at %d of %d", at, len(p.Text))
	}
	at = 0
	untrusted := 0
	for i, s := range p.Spans {
		if s.Start < at || s.End <= s.Start || s.End > len(p.Text) || s.Path == "" || s.Kind == "" {
			t.Errorf("span %d is %+v after %d", i, s, at)
		}
		at = s.End
		untrusted += s.End - s.Start
	}
	for _, s := range p.Segments {
		if !s.Trusted {
			untrusted -= len(s.Text)
		}
	}
	if untrusted != 0 {
		t.Errorf("spans and untrusted segments differ by %d bytes", untrusted)
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct{ name, messages, want string }{
		{"empty", `[]`, `template: messages: is empty`},
		{"malformed", `[{"role":"user"`, `template: messages[0].role: ends where a comma or the end of the object should be (offset 15)`},
		{"role", `[{"role":"robot","content":"x"}]`, `template: messages[0].role: is "robot", not system, user, assistant or tool`},
		{"image", `[{"role":"user","content":[{"type":"image_url"}]}]`, `template: messages[0].content[0]: is not text but "image_url"`},
		{"content", `[{"role":"user","content":3}]`, `template: messages[0].content: is neither text nor a list of parts`},
		{"nameless call", `[{"role":"assistant","tool_calls":[{"function":{"arguments":"{}"}}]}]`, `template: messages[0].tool_calls[0].function.name: is not a string`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := lookup("chatml", nil).Render(template.Request{Messages: []byte(c.messages)})
			if _, ok := errors.AsType[*template.Error](err); !ok || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestParts(t *testing.T) {
	p, err := lookup("chatml", nil).Render(template.Request{Messages: []byte(`[
		{"role":"developer","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
		{"role":"user"}]`)})
	if err != nil {
		t.Fatal(err)
	}
	want := "<|im_start|>system\na\nb<|im_end|>\n<|im_start|>user\n<|im_end|>\n"
	if p.Text != want {
		t.Errorf("got %q, want %q", p.Text, want)
	}
}

// The last message can be continued whatever its role.
func TestContinue(t *testing.T) {
	for _, c := range []struct{ messages, tools, want string }{
		{`[{"role":"system","content":"Be"}]`, ``, "<|im_start|>system\nBe"},
		{`[{"role":"user","content":"Hi"},{"role":"system","content":"Be"}]`, ``, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>system\nBe"},
		{`[{"role":"user","content":"Hi"}]`, ``, "<|im_start|>user\nHi"},
		{`[{"role":"user","content":"Hi"},{"role":"tool","content":"4"}]`, ``, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>user\n<tool_response>\n4"},
		{`[{"role":"system","content":"Be"}]`, `[{"name":"f"}]`, "template: messages[0]: cannot be continued: the tools follow it"},
		{`[{"role":"user","content":"Hi"},{"role":"assistant","content":"","tool_calls":[{"name":"f"}]}]`, ``, "template: messages[1]: cannot be continued: it has tool calls"},
	} {
		p, err := lookup("chatml", nil).Render(template.Request{Messages: []byte(c.messages), Tools: []byte(c.tools), ContinueFinalMessage: "content"})
		got := fmt.Sprint(err)
		if err == nil {
			got = p.Text
		}
		if got != c.want {
			t.Errorf("%s\ngot  %q\nwant %q", c.messages, got, c.want)
		}
	}
}

func FuzzRender(f *testing.F) {
	for _, g := range readGolden(f) {
		f.Add(string(g.Messages), string(g.Tools), string(g.Kwargs), true)
	}
	f.Fuzz(func(t *testing.T, messages, tools, kwargs string, xml bool) {
		all := vars{"reasoning_scope": "all"}
		if xml {
			all["calls"] = "xml"
		}
		for _, tpl := range []template.Template{lookup("chatml", nil), lookup("chatml", all)} {
			p, err := tpl.Render(template.Request{Messages: []byte(messages), Tools: []byte(tools), Kwargs: []byte(kwargs), AddGenerationPrompt: true})
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
