// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers/internal/jsonval"
	"github.com/weft-go/weft/tokenizers/template"
)

// TestRenderPartsResults adds results one by one, of which some have no ID, so that those after the front that is taken over
// belong to calls in it.
func TestRenderPartsResults(t *testing.T) {
	type parts interface {
		RenderParts(req template.Request, messages, tools []*jsonval.Part, before any) (p *template.Prompt, keep any, size int, err error)
	}
	var list []string
	for k := range 3 {
		list = append(list, `{"role":"user","content":"q"}`, `{"role":"assistant","content":"","tool_calls":[`+
			`{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}},`+
			`{"id":"c","type":"function","function":{"name":"h","arguments":"{}"}}]}`)
		ids := [][]string{{"", "", ""}, {"", "c", "b"}, {"c", "", "a"}}[k]
		for i, id := range ids {
			list = append(list, fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"r%d"}`, id, i))
		}
	}
	for _, name := range []string{"harmony", "deepseek_v3_2", "deepseek_v4", "deepseek_v41", "kimi_k3"} {
		tpl := lookup(name, nil)
		var before any
		var was []*jsonval.Part
		for n := 1; n <= len(list); n++ {
			req := template.Request{Messages: []byte("[" + strings.Join(list[:n], ",") + "]"), AddGenerationPrompt: true}
			want, err := tpl.Render(req)
			if err != nil {
				t.Fatalf("%s, %d messages: %v", name, n, err)
			}
			v, err := jsonval.Parse(req.Messages, "messages")
			if err != nil {
				t.Fatal(err)
			}
			was = jsonval.Keep(v.List, was)
			var got *template.Prompt
			if got, before, _, err = tpl.(parts).RenderParts(req, was, nil, before); err != nil {
				t.Fatalf("%s, %d messages: %v", name, n, err)
			}
			if !reflect.DeepEqual(want, got) {
				t.Fatalf("%s, %d messages: got\n%+v\nwant\n%+v", name, n, got, want)
			}
		}
	}
}
