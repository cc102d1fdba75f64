// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers/template"
)

// TestProbeEfforts sees which words for the effort of reasoning a template refuses.
func TestProbeEfforts(t *testing.T) {
	const rest = `{% for m in messages %}{{ m.role }}: {{ m.content }}
{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}`
	const all = "minimal low medium high xhigh max"
	check := func(name string, want string, c template.Capabilities) {
		t.Helper()
		// An effort that is not refused is its own nearest.
		var taken []string
		for _, e := range []string{"minimal", "low", "medium", "high", "xhigh", "max"} {
			if c.NearestEffort(e) == e {
				taken = append(taken, e)
			}
		}
		if got := strings.Join(taken, " "); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	for _, tt := range []struct {
		name, template string
		want           string
	}{
		{"none used", "", all},
		{"all printed", `{{ reasoning_effort }}`, all},
		{"three", `{% if reasoning_effort is defined and reasoning_effort not in ('xhigh', 'medium', 'low') %}{{ raise_exception('no') }}{% endif %}`, "low medium xhigh"},
		{
			"only while it reasons",
			`{% if thinking is defined and thinking %}<think>{% if reasoning_effort is defined and reasoning_effort != 'max' %}{{ raise_exception('no') }}{% endif %}{% endif %}`,
			"max",
		},
	} {
		j, err := template.Parse(tt.name, tt.template+rest, nil)
		if err != nil {
			t.Fatal(tt.name, err)
		}
		check(tt.name, tt.want, template.Probe(j))
	}
	check("harmony", "low medium high", template.Probe(lookup("harmony", nil)))
	check("kimi_k3", all, template.Probe(lookup("kimi_k3", nil)))
	check("chatml", all, template.Probe(lookup("chatml", nil)))

	dir := os.Getenv("WEFT_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	text, err := os.ReadFile(filepath.Join(dir, "tok", "_templates", "qwen38_chat_template.jinja"))
	if err != nil {
		t.Skip("no templates: set WEFT_SHARED to the folder of shared test data")
	}
	j, err := template.Parse("qwen3.8", string(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	check("qwen3.8", "low medium xhigh", template.Probe(j))
}
