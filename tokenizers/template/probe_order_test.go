// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers/internal/testsize"
	"github.com/weft-go/weft/tokenizers/template"
)

// placed returns the features that describe the positions of tools and ids.
func placed(c template.Capabilities) string {
	var list []string
	switch {
	case !c.Has("tools"):
		list = append(list, "no tools")
	case c.Has("tools_first"):
		list = append(list, "tools first")
	default:
		list = append(list, "system first")
	}
	if c.Has("call_ids") {
		list = append(list, "ids")
	}
	return strings.Join(list, ", ")
}

func TestProbeOrder(t *testing.T) {
	const calls = `{% for c in m.tool_calls or [] %}[ID{{ c.function.name }} {{ c.function.arguments }}]{% endfor %}`
	compile := func(front, id, result string) template.Template {
		tpl, err := template.Parse("t", front+`{% for m in messages %}<{{ m.role }}>{{ m.content }}`+result+strings.Replace(calls, "ID", id, 1)+`{% endfor %}`, nil)
		if err != nil {
			t.Fatal(err)
		}
		return tpl
	}
	const tools = `{% for t in tools or [] %}{{ t | tojson }}{% endfor %}`
	for name, tt := range map[string]struct {
		template template.Template
		want     string
	}{
		"none":               {compile("", "", ""), "no tools"},
		"in front":           {compile(tools, "", ""), "tools first"},
		"after":              {compile(`{% if messages[0].role == 'system' %}{{ messages[0].content }}{% endif %}`+tools, "", ""), "system first"},
		"ids of calls":       {compile(tools, "{{ c.id }}", ""), "tools first, ids"},
		"ids of results":     {compile(tools, "", "{% if m.tool_call_id %}{{ m.tool_call_id }}{% endif %}"), "tools first, ids"},
		"ChatML":             {lookup("chatml", nil), "system first"},
		"ChatML XML":         {lookup("chatml", vars{"calls": "xml"}), "tools first"}, // as in Qwen3.5
		"ChatML, no calls":   {lookup("chatml", vars{"calls": "none"}), "no tools"},
		"harmony":            {lookup("harmony", nil), "system first"},
		"harmony as library": {lookup("harmony", vars{"style": "library"}), "system first"},
		"DeepSeek V3.2":      {lookup("deepseek_v3_2", nil), "system first"},
		"DeepSeek V4":        {lookup("deepseek_v4", nil), "system first"},
		"DeepSeek V4.1":      {lookup("deepseek_v41", nil), "system first"},
		"Kimi K3":            {lookup("kimi_k3", nil), "tools first"},
	} {
		if got := placed(template.Probe(tt.template)); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// The templates of the shared data, with the values found by reading them.
func TestProbeOrderShared(t *testing.T) {
	want := map[string]string{
		"qwen2.5": "system first", "qwen3": "system first", "gemma4_31b_chat_template": "system first",
		"nemotron3nano_chat_template": "system first", "nemotron35_chat_template": "system first", "gpt-oss": "system first",
		"qwen3.5-renum": "tools first", "qwen38_chat_template": "tools first",
		"kimi-k2": "tools first, ids", // ids of results
		"phi-4":   "no tools", "glm4v": "no tools",
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
		if got := placed(template.Probe(tpl)); got != want[name] {
			t.Errorf("%s: %s, want %s", name, got, want[name])
		}
	}
}
