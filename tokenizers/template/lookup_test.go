// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/template"
)

func TestLookupErrors(t *testing.T) {
	for _, tt := range []struct {
		name string
		opt  *template.Options
		want string
	}{
		{"qwen", nil, `template: no format "qwen"; known are chatml, deepseek_v3_2, deepseek_v4, deepseek_v41, harmony, kimi_k3, mistral`},
		{"chatml", &template.Options{Arguments: "raw"}, "template: format chatml takes only the options Variables and Now"},
		{"chatml", &template.Options{Variables: vars{"bos_token": "<s>"}},
			"template: variables.bos_token: is not a variable of the format chatml, which has calls, default_system, enable_thinking, reasoning_scope"},
		{"chatml", &template.Options{Variables: vars{"calls": "yaml"}}, `template: variables.calls: is "yaml", not json, xml, none`},
		{"harmony", &template.Options{Variables: vars{"sampled_calls": "yes"}}, "template: variables.sampled_calls: is a string, not a bool"},
		{"harmony", &template.Options{Variables: vars{"builtin_tools": "python"}}, "template: variables.builtin_tools: is a string, not a []string"},
		{"deepseek_v41", &template.Options{Variables: vars{"reasoning_effort": 1.5}}, "template: variables.reasoning_effort: is a float64, not a string"},
	} {
		if _, err := template.Lookup(tt.name, tt.opt); err == nil || err.Error() != tt.want {
			t.Errorf("%s: got  %v\nwant %s", tt.name, err, tt.want)
		}
	}
	for _, opt := range []*template.Options{{Arguments: "objects"}, {Variables: vars{"x": 1.5}}} {
		if _, err := template.Parse("t", "", opt); err == nil {
			t.Errorf("%+v: no error", opt)
		}
	}
}

// The variables of a format are defaults for the request's, and their text is trusted.
func TestLookupVariables(t *testing.T) {
	const messages = `[{"role":"user","content":"Q"}]`
	for _, tt := range []struct {
		name string
		v    vars
		same string // as these variables of a request
	}{
		{"chatml", vars{"enable_thinking": false}, `{"enable_thinking":false}`},
		{"harmony", vars{"reasoning_effort": "high", "model_identity": "I", "builtin_tools": []string{"python"}}, `{"reasoning_effort":"high","model_identity":"I","builtin_tools":["python"]}`},
		{"deepseek_v4", vars{"thinking": true, "reasoning_effort": "max"}, `{"thinking":true,"reasoning_effort":"max"}`},
		{"deepseek_v41", vars{"thinking": true, "reasoning_effort": 77}, `{"thinking":true,"reasoning_effort":77}`},
		{"kimi_k3", vars{"thinking": false, "thinking_effort": "low"}, `{"thinking":false,"thinking_effort":"low"}`},
	} {
		render := func(v vars, kwargs string) *template.Prompt {
			p, err := lookup(tt.name, v).Render(template.Request{Messages: []byte(messages), Kwargs: []byte(kwargs), AddGenerationPrompt: true})
			if err != nil {
				t.Fatal(tt.name, err)
			}
			return p
		}
		configured, plain := render(tt.v, ""), render(nil, "")
		if got := render(nil, tt.same); got.Text != configured.Text || got.Text == plain.Text {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, configured.Text, got.Text)
		}
		if len(configured.Spans) != len(plain.Spans) {
			t.Errorf("%s: a variable is not trusted: %+v", tt.name, configured.Spans)
		}
	}
	p, err := lookup("chatml", vars{"enable_thinking": false}).Render(template.Request{Messages: []byte(messages), Kwargs: []byte(`{"enable_thinking":true}`), AddGenerationPrompt: true})
	if err != nil || p.Text != "<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\n" {
		t.Errorf("%q %v", p.Text, err)
	}
	tpl, err := template.Parse("t", "{{ n + 1 }}{{ on }}{{ list }}{{ messages[0].content }}", &template.Options{Variables: vars{"n": 41, "on": true, "list": []string{"a"}}})
	if err != nil {
		t.Fatal(err)
	}
	if p, err = tpl.Render(template.Request{Messages: []byte(messages), Now: time.Now()}); err != nil || p.Text != "42True['a']Q" || len(p.Segments) != 2 {
		t.Errorf("%+v %v", p, err)
	}
}

func TestUnknownFeature(t *testing.T) {
	var c template.Capabilities
	for want, f := range map[string]func(){
		"template: no feature reasons": func() { c.Has("reasons") },
		"template: no text reasons":    func() { c.Text("reasons") },
	} {
		func() {
			defer func() {
				if r := recover(); r != want {
					t.Errorf("panic %v, want %s", r, want)
				}
			}()
			f()
		}()
	}
}

// The errors for a directory without a template and for a missing directory differ.
func TestLoadMissing(t *testing.T) {
	_, err := template.Load(fstest.MapFS{"config.json": {}, "onnx/model.onnx": {}}, nil)
	e, ok := errors.AsType[*tokenizers.DirError](err)
	const want = "a chat template (chat_template.jinja, or chat_template in tokenizer_config.json) is missing; found config.json, onnx/"
	if !ok || !errors.Is(err, template.ErrNoTemplate) || e.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	_, err = template.Load(os.DirFS(filepath.Join(t.TempDir(), "none")), nil)
	e, ok = errors.AsType[*tokenizers.DirError](err)
	if !ok || errors.Is(err, template.ErrNoTemplate) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if got := e.Error(); !strings.HasPrefix(got, "cannot read the directory: ") {
		t.Error(got)
	}
}
