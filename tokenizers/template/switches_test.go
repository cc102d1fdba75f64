// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers/template"
)

var update = flag.Bool("update", false, "rewrite the tables in testdata, keeping the lines of templates that are not at hand")

// atHand returns the templates of the test data outside the repository and of the directories in WEFT_TEMPLATES, by the
// name of the file and the beginning of its hash.
func atHand(t *testing.T) map[string]template.Template {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(shared(), "tok", "*", "chat_template.jinja"))
	for _, dir := range append(filepath.SplitList(os.Getenv("WEFT_TEMPLATES")), filepath.Join(shared(), "tok", "_templates")) {
		more, _ := filepath.Glob(filepath.Join(dir, "*.jinja*"))
		files = append(files, more...)
	}
	out := map[string]template.Template{}
	seen := map[[32]byte]bool{}
	for i := len(files) - 1; i >= 0; i-- { // the templates of tokenizers have a name among the others
		source, err := os.ReadFile(files[i])
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(source)
		if seen[sum] {
			continue
		}
		seen[sum] = true
		tpl, err := template.Parse(filepath.Base(files[i]), string(source), &template.Options{Variables: vars{"bos_token": "<bos>", "eos_token": "<eos>"}})
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(files[i])
		out[fmt.Sprintf("%s %x", name[:strings.Index(name, ".jinja")], sum[:4])] = tpl
	}
	if len(out) == 0 {
		t.Skip("no templates: set WEFT_SHARED or WEFT_TEMPLATES")
	}
	return out
}

// switchesOf describes the variables of a template that determine whether and how much a model reasons, and what it is shown
// of its past reasoning.
func switchesOf(tpl template.Template) string {
	c := template.Probe(tpl)
	s := "none"
	if on := c.Text("reasoning_on"); on != "" {
		s = on + " " + c.Text("reasoning_off") + " default "
		switch {
		case c.Has("off_by_default"):
			s += "off"
		case c.Has("undecided"):
			s += "undecided"
		default:
			s += "on"
		}
	}
	if name := c.Text("effort_variable"); name != "" {
		var taken []string
		for _, e := range []string{"minimal", "low", "medium", "high", "xhigh", "max"} {
			if c.NearestEffort(e) == e {
				taken = append(taken, e)
			}
		}
		s += fmt.Sprintf(", effort %s %v", name, taken)
	}
	if name := c.Text("budget_variable"); name != "" {
		s += ", budget " + name
	}
	for clause := range strings.SplitSeq(c.Text("past_reasoning"), "; ") {
		if key, _, ok := strings.Cut(clause, ": "); ok && strings.Contains(key, "=") {
			s += ", past " + key
			break
		}
	}
	return s
}

// TestSwitches compares the variables of all templates at hand with a table.
func TestSwitches(t *testing.T) {
	const file = "testdata/switches.txt"
	list := atHand(t)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var head, lines []string
	want := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			head = append(head, line)
			continue
		}
		name, rest, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " | ")
		if !ok || want[name] != "" {
			t.Fatalf("%s: bad line %q", file, line)
		}
		want[name] = rest
	}
	for name, tpl := range list {
		got := switchesOf(tpl)
		if *update {
			want[name] = got
		} else if got != want[name] {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want[name])
		}
	}
	for name := range want { // of a file that changed
		base, _, _ := strings.Cut(name, " ")
		if list[name] == nil && slices.ContainsFunc(slices.Collect(keys(list)), func(n string) bool { return strings.HasPrefix(n, base+" ") }) {
			t.Errorf("%s: no template has this name and hash", name)
		}
	}
	t.Logf("%d of the %d templates of the table are at hand", len(list), len(want))
	if *update {
		for name, rest := range want {
			lines = append(lines, name+" | "+rest+"\n")
		}
		slices.Sort(lines)
		if err := os.WriteFile(file, []byte(strings.Join(append(head, lines...), "")), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func keys(m map[string]template.Template) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// TestSwitchesSmall finds the variables of small templates, each like one of a family.
func TestSwitchesSmall(t *testing.T) {
	body := func(head, open string) string {
		return head + `{% set ns = namespace(user=-1) %}{% for m in messages %}{% if m.role == 'user' %}{% set ns.user = loop.index0 %}{% endif %}{% endfor %}` +
			`{% for m in messages %}<{{ m.role }}>{% if m.reasoning_content and (show | default(true) or loop.index0 > ns.user) %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}` +
			`{% for c in m.tool_calls or [] %}[{{ c.function.name }} {{ c.function.arguments }}]{% endfor %}{% endfor %}{{ tools or '' }}{% if add_generation_prompt %}<assistant>` + open + `{% endif %}`
	}
	const closed = `<think></think>`
	for _, tt := range []struct{ name, source, want string }{
		{"nothing", body("{% set show = true %}", ""), "none"},
		{"the prompt, on", body("{% set show = true %}", `{% if enable_thinking is defined and not enable_thinking %}`+closed+`{% endif %}`),
			`{"enable_thinking":true} {"enable_thinking":false} default on`},
		{"the prompt, off", body("{% set show = true %}", `{% if not enable_thinking | default(false) %}`+closed+`{% endif %}`),
			`{"enable_thinking":true} {"enable_thinking":false} default off`},
		{"the system prompt, off", body(`{% set show = true %}{% if thinking is defined and thinking %}Think.{% endif %}`, ""), `{"thinking":true} {"thinking":false} default off`},
		{"undecided", body("{% set show = true %}", `{% if enable_thinking is defined %}{{ '<think>' if enable_thinking else '`+closed+`' }}{% endif %}`),
			`{"enable_thinking":true} {"enable_thinking":false} default undecided`},
		{"a word of three", body("{% set show = true %}", `{% if thinking_mode is defined %}{% if thinking_mode == 'enabled' %}<think>{% elif thinking_mode == 'disabled' %}`+closed+`{% endif %}{% endif %}`),
			`{"thinking_mode":"enabled"} {"thinking_mode":"disabled"} default undecided`},
		{"a budget", body(`{% set show = true %}{% if thinking_budget is not defined %}{% set thinking_budget = -1 %}{% endif %}{% if thinking_budget > 0 %}At most {{ thinking_budget }}.{% endif %}`,
			`{% if thinking_budget == 0 %}`+closed+`{% endif %}`), `{"thinking_budget":-1} {"thinking_budget":0} default on, budget thinking_budget`},
		{"a budget of the last question", body(`{% set show = true %}`, "") + `{% if reasoning_budget is defined %}{{ reasoning_budget }}{% endif %}`, "none"},
		{"a variable that is printed", body(`{% set show = true %}{{ thinking_note | default('x') }}`, ""), "none"},
		{"an effort that is off", body(`{% set show = true %}{% set reasoning_effort = reasoning_effort | default('no_think') %}{% if reasoning_effort not in ['high', 'low', 'no_think'] %}{{ raise_exception('no') }}{% endif %}{{ reasoning_effort }}`,
			`{% if reasoning_effort == 'no_think' %}`+closed+`{% endif %}`), `{"reasoning_effort":"high"} {"reasoning_effort":"no_think"} default off, effort reasoning_effort [low high]`},
		{"an effort by another name", body(`{% set show = true %}Strength: {{ reasoning_strength | default('high') }}.`, ""), "none, effort reasoning_strength [minimal low medium high xhigh max]"},
		{"the past, by any name", body("{% set show = not forget | default(true) %}", ""), "none, past forget=false"},
		{"another name that keeps it", body("{% set show = keep_it_all is defined and keep_it_all %}", ""), "none, past keep_it_all=true"},
		{"more than the past", body("{% set show = training is defined and training %}{% if training is defined and training %}!{% endif %}", ""), "none"},
	} {
		tpl, err := template.Parse("t", tt.source, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := switchesOf(tpl); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	for name, want := range map[string]string{
		"chatml":        `{"enable_thinking":true} {"enable_thinking":false} default on`,
		"harmony":       `none, effort reasoning_effort [low medium high], past auto_drop_analysis=false`,
		"deepseek_v3_2": `{"enable_thinking":true} {"enable_thinking":false} default off`,
		"deepseek_v4":   `{"enable_thinking":true} {"enable_thinking":false} default off, effort reasoning_effort [minimal low medium high xhigh max], past drop_thinking=false`,
		"kimi_k3":       `{"thinking":true} {"thinking":false} default on, effort reasoning_effort [minimal low medium high xhigh max]`,
	} {
		if got := switchesOf(lookup(name, nil)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
