// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers/internal/testsize"
	"github.com/weft-go/weft/tokenizers/template"
)

// keeping is a template that prints reasoning where the expression keep is true, and left elsewhere.
func keeping(t *testing.T, keep, left string) template.Template {
	t.Helper()
	tpl, err := template.Parse("keeping", strings.NewReplacer("KEEP", keep, "LEFT", left).Replace(`{%- set ns = namespace(user=-1, answer=-1, first=-1, last=-1, ends=false) -%}
{%- for m in messages -%}
{%- if m.role == 'user' -%}{%- set ns.user = loop.index0 -%}{%- endif -%}
{%- if m.role == 'assistant' -%}{%- set ns.last = loop.index0 -%}{%- set ns.ends = not m.tool_calls -%}
{%- if not m.tool_calls -%}{%- set ns.answer = loop.index0 -%}{%- if ns.first < 0 -%}{%- set ns.first = loop.index0 -%}{%- endif -%}{%- endif -%}
{%- endif -%}
{%- endfor -%}
{%- for t in tools or [] -%}{{ t | tojson }}{%- endfor -%}
{%- for m in messages -%}
<{{ m.role }}>
{%- if m.role == 'assistant' -%}{%- if (KEEP) and m.reasoning -%}<think>{{ m.reasoning }}</think>{%- else -%}LEFT{%- endif -%}{%- endif -%}
{{ m.content }}
{%- for c in m.tool_calls or [] -%}[{{ c.function.name }} {{ c.function.arguments }}]{%- endfor -%}
{%- endfor -%}
{%- if add_generation_prompt -%}<assistant>{{ '' if enable_thinking is defined and not enable_thinking else '<think>' }}{%- endif -%}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	return tpl
}

// replayed spells what the probe found of past reasoning.
func replayed(c template.Capabilities) string {
	s := "no key"
	switch {
	case c.Text("reasoning_key") != "":
		s = c.Text("reasoning_key")
	case c.Has("reasoning_inline"):
		s = "inline"
	}
	past := template.Scopes(c.Text("past_reasoning"))
	s += " " + past[""]
	if tools, ok := past["tools"]; ok && tools != past[""] {
		s += ", tools " + tools
	}
	if off, ok := past["off"]; ok && off != past[""] {
		s += ", off " + off
	}
	if c.Has("off_by_default") {
		s += " by default"
	}
	if c.Has("blank_reasoning") {
		s += ", blank"
	}
	if c.Text("omitted_reasoning") != "" {
		s += ", left " + c.Text("omitted_reasoning")
	}
	var values []string // of a variable, the one that prints more first
	for clause := range strings.SplitSeq(c.Text("past_reasoning"), "; ") {
		if key, _, ok := strings.Cut(clause, ": "); ok && strings.Contains(key, "=") {
			values = append(values, key)
		}
	}
	if len(values) == 2 {
		s += ", " + values[0] + " " + past[values[0]] + ", else " + past[values[1]]
	}
	return s
}

// TestProbeReasoning probes templates that differ in the past reasoning they print.
func TestProbeReasoning(t *testing.T) {
	for i, tt := range []struct{ keep, left, want string }{
		{"true", "", "reasoning all"},
		{"loop.index0 > ns.user", "", "reasoning since_user"},
		{"loop.index0 > ns.user", "<think></think>", "reasoning since_user, left <think></think>"},
		{"loop.index0 > ns.user", "</think>", "reasoning since_user, left </think>"},
		{"loop.index0 > ns.answer", "", "reasoning since_final"},
		{"not ns.ends or loop.index0 > ns.first", "", "reasoning first_final"},
		{"m.tool_calls", "", "reasoning calls"},
		{"m.tool_calls or loop.index0 > ns.user", "", "reasoning since_user_calls"},
		{"loop.index0 == ns.last", "", "reasoning last_turn"},
		{"loop.index0 == 1", "", "reasoning "},
		{"tools or loop.index0 > ns.user", "", "reasoning since_user, tools all"},
		{"not (enable_thinking is defined and not enable_thinking)", "", "reasoning all, off none"},
		{"enable_thinking is defined and enable_thinking and loop.index0 > ns.user", "", "reasoning since_user, off none by default"},
		{"preserve_thinking or loop.index0 > ns.user", "", "reasoning since_user, preserve_thinking=true all, else since_user"},
		{"preserve_thinking is undefined or preserve_thinking or loop.index0 > ns.user", "", "reasoning all, preserve_thinking=true all, else since_user"},
		{"clear_thinking is defined and not clear_thinking or loop.index0 > ns.user", "", "reasoning since_user, clear_thinking=false all, else since_user"},
		{"not clear_thinking or loop.index0 > ns.user", "", "reasoning all, clear_thinking=false all, else since_user"},
		{"keep_past_thinking or loop.index0 == ns.last", "", "reasoning last_turn, keep_past_thinking=true all, else last_turn"},
		{"preserve_thinking and m.tool_calls or loop.index0 > ns.user", "", "reasoning since_user, preserve_thinking=true since_user_calls, else since_user"},
		{"false", "", "inline all"},
	} {
		if i%testsize.Pick(3, 1, 1) != 0 {
			continue
		}
		if got := replayed(template.Probe(keeping(t, tt.keep, tt.left))); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.keep, got, tt.want)
		}
	}
	for name, tt := range map[string]struct {
		template template.Template
		want     string
	}{
		"ChatML":           {lookup("chatml", nil), "reasoning_content since_user, blank"},
		"ChatML all":       {lookup("chatml", vars{"reasoning_scope": "all"}), "reasoning_content all, blank"},
		"ChatML none":      {lookup("chatml", vars{"reasoning_scope": "none"}), "no key none"},
		"harmony":          {lookup("harmony", nil), "reasoning_content since_final, auto_drop_analysis=false all, else since_final"},
		"harmony library":  {lookup("harmony", vars{"style": "library"}), "reasoning_content first_final, auto_drop_analysis=false all, else first_final"},
		"harmony kept":     {lookup("harmony", vars{"auto_drop_analysis": false}), "reasoning_content all, auto_drop_analysis=false all, else since_final"},
		"DeepSeek V3.2":    {lookup("deepseek_v3_2", nil), "reasoning_content since_user, off none by default, left </think>"},
		"DeepSeek V3.2 on": {lookup("deepseek_v3_2", vars{"thinking": true}), "reasoning_content since_user, off none, left </think>"},
		// Without tools, only the reasoning of responses is past reasoning, and a result is treated as a user message.
		"DeepSeek V4":   {lookup("deepseek_v4", nil), "reasoning_content none, tools all by default, left </think>, drop_thinking=false all, else none"},
		"DeepSeek V4.1": {lookup("deepseek_v41", nil), "reasoning_content none, tools all by default, left </think>, drop_thinking=false all, else none"},
		"Kimi K3":       {lookup("kimi_k3", nil), "reasoning_content all, off none"},
	} {
		if got := replayed(template.Probe(tt.template)); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// The templates of the shared data, with the values found by reading them.
func TestProbeReasoningShared(t *testing.T) {
	want := map[string]string{
		"qwen3":         "reasoning_content since_user, blank",
		"qwen3.5-renum": "reasoning_content since_user by default",
		"qwen2.5":       "inline all", "phi-4": "inline all", "kimi-k2": "inline all", "glm4v": "inline all",
		"gpt-oss":                     "inline all", // a draft, which none prints it
		"qwen38_chat_template":        "reasoning_content all, preserve_thinking=true all, else since_user",
		"nemotron3nano_chat_template": "reasoning_content since_user, left <think></think>, truncate_history_thinking=false all, else since_user",
		"nemotron35_chat_template":    "reasoning_content since_user, left <think></think>, truncate_history_thinking=false all, else since_user",
		"gemma4_31b_chat_template":    "reasoning_content since_user by default, preserve_thinking=true since_user_calls, else since_user",
	}
	files, _ := filepath.Glob(filepath.Join(shared(), "tok", "*", "chat_template.jinja"))
	more, _ := filepath.Glob(filepath.Join(shared(), "tok", "_templates", "*"))
	if files = append(files, more...); len(files) == 0 {
		t.Skip("no shared templates: set WEFT_SHARED")
	}
	for i, f := range files {
		if i%testsize.Pick(4, 1, 1) != 0 {
			continue
		}
		name := strings.TrimSuffix(filepath.Base(f), filepath.Ext(f))
		if name == "chat_template" {
			name = filepath.Base(filepath.Dir(f))
		}
		source, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		tpl, err := template.Parse(f, string(source), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := replayed(template.Probe(tpl)); got != want[name] {
			t.Errorf("%s: %s, want %s", name, got, want[name])
		}
	}
}

// A template that reads reasoning as a list prints it between calls; messages that ask are found.
func TestProbeSegmentsAndAsking(t *testing.T) {
	tpl, err := template.Parse("t", `{% for m in messages %}<{{ m.role }}>{% if m.reasoning_content is string %}{{ m.reasoning_content }}{% endif %}{{ m.content }}`+
		`{% for c in m.tool_calls or [] %}{{ m.reasoning_content[loop.index0] if m.reasoning_content is defined and m.reasoning_content is not string }}[{{ c.function.arguments }}]{% endfor %}{% endfor %}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c := template.Probe(tpl); !c.Has("reasoning_segments") || template.Scopes(c.Text("past_reasoning"))[""] != "all" {
		t.Errorf("%+v", c)
	}
	for _, tt := range []struct {
		name              string
		tpl               template.Template
		system, developer bool
	}{
		{"ChatML", lookup("chatml", nil), false, false},
		{"DeepSeek V3.2", lookup("deepseek_v3_2", vars{"thinking": true}), false, true},
		{"DeepSeek V4, all with tools", lookup("deepseek_v4", vars{"thinking": true}), false, false},
	} {
		if c := template.Probe(tt.tpl); c.Has("reasoning_segments") || c.Has("system_asks") != tt.system || c.Has("developer_asks") != tt.developer {
			t.Errorf("%s: segments %v, system asks %v, developer asks %v", tt.name, c.Has("reasoning_segments"), c.Has("system_asks"), c.Has("developer_asks"))
		}
	}
}

// If a template reads both variables, one takes precedence. The prompt with reasoning off may differ with tools. Some
// templates print no reasoning without a user message.
func TestProbeSwitches(t *testing.T) {
	body := func(set, keep, open string) string {
		return set + `{% set ns = namespace(user=messages|length) %}{% for m in messages %}{% if m.role == 'user' %}{% set ns.user = loop.index0 %}{% endif %}{% endfor %}` +
			`{% for m in messages %}<{{ m.role }}>{% if m.reasoning_content and (` + keep + `) %}{{ m.reasoning_content }}{% endif %}{{ m.content }}` +
			`{% for c in m.tool_calls or [] %}[{{ c.function.name }} {{ c.function.arguments }}]{% endfor %}{% endfor %}{{ tools or '' }}{% if add_generation_prompt %}<assistant>` + open + `{% endif %}`
	}
	const open = `{{ '<think>' if on else '</think>' }}`
	for _, tt := range []struct{ name, source, want string }{
		{"thinking before enable_thinking, as in DeepSeek V3.1", body(`{% set on = thinking if thinking is defined else enable_thinking | default(false) %}`, "true", open),
			"thinking enable_thinking off all all, no user true"},
		{"enable_thinking before thinking", body(`{% set on = enable_thinking if enable_thinking is defined else thinking | default(false) %}`, "true", open),
			"enable_thinking thinking off all all, no user true"},
		{"thinking alone, of the past alone", body("", "not (thinking is defined and thinking is false)", ""), "thinking off none none, no user true"},
		{"off with tools", body(`{% set on = thinking | default(true) %}`, "on or tools", open), "thinking off none all, no user true"},
		{"since a user", body("", "loop.index0 > ns.user", ""), " off since_user since_user, no user false"},
	} {
		tpl, err := template.Parse("t", tt.source, nil)
		if err != nil {
			t.Fatal(err)
		}
		c := template.Probe(tpl)
		past := template.Scopes(c.Text("past_reasoning"))
		for _, like := range [][2]string{{"tools", ""}, {"off", ""}, {"off tools", "tools"}} {
			if _, ok := past[like[0]]; !ok {
				past[like[0]] = past[like[1]]
			}
		}
		if got := fmt.Sprintf("%s off %v %v, no user %t", c.Text("reasoning_switches"), past["off"], past["off tools"], c.Has("reasoning_no_user")); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// opaque hides the type of a template from Probe.
type opaque struct{ template.Template }

// TestProbeFormats compares the capabilities of the formats written in Go with those found without knowing the
// variables that each reads.
func TestProbeFormats(t *testing.T) {
	for _, tt := range []struct {
		format string
		vars   []vars
	}{
		{"chatml", []vars{nil, {"calls": "xml"}, {"reasoning_scope": "all"}, {"reasoning_scope": "none"}, {"enable_thinking": false}, {"default_system": "Zqdefault"}}},
		{"harmony", []vars{nil, {"style": "library"}, {"sampled_calls": true}, {"auto_drop_analysis": false}}},
		{"deepseek_v3_2", []vars{nil, {"thinking": true}, {"drop_thinking": false}}},
		{"deepseek_v4", []vars{nil, {"thinking": true}, {"drop_thinking": false}}},
		{"deepseek_v41", []vars{nil, {"thinking": true}, {"drop_thinking": false}}},
		{"kimi_k3", []vars{nil, {"thinking": false}}},
	} {
		for i, v := range tt.vars {
			if testing.Short() && i%3 != 0 {
				continue
			}
			tpl, err := template.Lookup(tt.format, &template.Options{Variables: v})
			if err != nil {
				t.Fatal(err)
			}
			want := template.Probe(opaque{tpl})
			for range 2 { // the second may be kept
				if got := template.Probe(tpl); !reflect.DeepEqual(got, want) {
					t.Errorf("%s %v:\n%+v\nopaque:\n%+v", tt.format, v, got, want)
				}
			}
		}
	}
}
