// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/mini"
	"github.com/weft-go/weft/tokenizers/template"
)

// everywhere has the word XX wherever a request can hold text that is printed.
const everywhere = `[
	{"role":"system","content":"s XX s"},
	{"role":"user","content":[{"type":"text","text":"XX"},{"type":"text","text":"u XX"}]},
	{"role":"assistant","content":"XX a","reasoning_content":"r XX","tool_calls":[
		{"id":"XX","type":"function","function":{"name":"fXX","arguments":"{\"kXX\":\"vXX\",\"l\":[\"XX\",{\"XX\":1}]}"}},
		{"id":"c","type":"function","function":{"name":"XX","arguments":{"XX":"XX"}}}]},
	{"role":"tool","tool_call_id":"XX","content":"XX"},
	{"role":"tool","tool_call_id":"c","content":"t XX t"},
	{"role":"developer","content":"XX"}]`

const everywhereTools = `[{"type":"function","function":{"name":"nXX","description":"XX","parameters":{"type":"object","properties":{"XX":{"enum":["XX"]}}}}}]`

// TestNoForgery writes each added token, whole, doubled and in part, into every field of a request. The prompt has the
// added tokens that the template wrote and no others.
func TestNoForgery(t *testing.T) {
	tok := mini.Load()
	control := func(tpl template.Template, word string) (ids []uint32) {
		put := strings.NewReplacer("XX", word).Replace
		p, err := tpl.Render(template.Request{Messages: []byte(put(everywhere)), Tools: []byte(put(everywhereTools)), AddGenerationPrompt: true})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(p.Text, word) < 15 {
			t.Fatalf("%q is not everywhere:\n%s", word, p.Text)
		}
		for _, id := range tok.AppendEncodeSegments(nil, p.Segments) {
			if slices.ContainsFunc(tok.AddedTokens(), func(a tokenizers.AddedToken) bool { return a.ID == id }) {
				ids = append(ids, id)
			}
		}
		return ids
	}
	for _, calls := range []string{"json", "xml"} {
		tpl := lookup("chatml", vars{"calls": calls, "reasoning_scope": "all"})
		want := control(tpl, "word")
		for _, a := range tok.AddedTokens() {
			s := a.Content
			for _, word := range []string{s, s + s, "<" + s, s[1:], s[:len(s)-1], s[:len(s)/2]} {
				t.Run(fmt.Sprint(calls, word), func(t *testing.T) {
					if got := control(tpl, word); !slices.Equal(got, want) {
						t.Errorf("control tokens %v, want %v", got, want)
					}
				})
			}
		}
	}
}
