// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"testing"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/wire"
)

// TestExactEdits checks that the rest of a request is read after an exact edit without parsing the edited body:
// positions from before the edit remain valid.
func TestExactEdits(t *testing.T) {
	for _, x := range []struct {
		name, body, want string
		api              *wire.API
		edit             func(r *block.Request) error
		at               [2]int // turn and block after the edit whose position is checked
	}{
		{
			"text", `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}],"cache_control":{"type":"ephemeral"}}`,
			`{"model":"m","messages":[{"role":"user","content":"new"},{"role":"user","content":"b"}],"cache_control":{"type":"ephemeral"}}`,
			wire.Messages, func(r *block.Request) error { return r.SetText(r.Turns()[0].Blocks[0].At, "new") }, [2]int{1, 0},
		},
		{
			"block", `{"system":[{"type":"text","text":"header"},{"type":"text","text":"s"}],"messages":[]}`, `{"system":[{"type":"text","text":"s"}],"messages":[]}`,
			wire.Messages, func(r *block.Request) error { return r.Delete(r.Turns()[0].Blocks[0].At) }, [2]int{0, 0},
		},
		{
			"system text", `{"system":"header","messages":[{"role":"user","content":"b"}]}`, `{"messages":[{"role":"user","content":"b"}]}`,
			wire.Messages, func(r *block.Request) error { return r.Delete(r.Turns()[0].Blocks[0].At) }, [2]int{0, 0},
		},
		{
			"message", `{"messages":[{"role":"system","content":"header"},{"role":"user","content":"b"}]}`, `{"messages":[{"role":"user","content":"b"}]}`,
			wire.Chat, func(r *block.Request) error { return r.Delete(r.Turns()[0].At) }, [2]int{0, 0},
		},
		{
			"model", `{"model":"m","messages":[{"role":"user","content":"b"}]}`, `{"model":"other","messages":[{"role":"user","content":"b"}]}`,
			wire.Chat, func(r *block.Request) error { p := r.Params(); p.Model = "other"; return r.SetParams(p) }, [2]int{0, 0},
		},
	} {
		t.Run(x.name, func(t *testing.T) {
			r, err := x.api.Decode([]byte(x.body), nil)
			if err != nil {
				t.Fatal(err)
			}
			before := r.Turns()[len(r.Turns())-1].Blocks
			at := before[len(before)-1].At
			if err := x.edit(r); err != nil {
				t.Fatal(err)
			}
			r.Field("cache_control") // an edit does not concern these fields
			r.Field("nvext", "priority")
			wire.Breakpoints(r)
			if got := r.Turns()[x.at[0]].Blocks[x.at[1]].At; got != at || string(r.Body()) != x.body {
				t.Errorf("the edited body was parsed: %s", r.Body())
			}
			got, err := r.AppendBody(nil)
			if err != nil || string(got) != x.want {
				t.Fatalf("got %s, want %s (%v)", got, x.want, err)
			}
			again, err := x.api.Decode(got, nil)
			if err != nil || !r.Equal(again) {
				t.Errorf("the view differs from the edited body (%v)", err)
			}
		})
	}
}

// TestFieldsOfEdits checks that fields that an edit concerns are read from the edited body.
func TestFieldsOfEdits(t *testing.T) {
	const body = `{"model":"m","temperature":1,"thinking":{"type":"enabled","budget_tokens":5},"messages":[{"role":"user","content":"b"}]}`
	for _, x := range []struct {
		name string
		edit func(p *block.Params)
		path []string
		want string
	}{
		{"replaced", func(p *block.Params) { p.Model = "n" }, []string{"model"}, `"n"`},
		{"deleted", func(p *block.Params) { p.Sampling.Temperature = nil }, []string{"temperature"}, ""},
		{"inserted", func(p *block.Params) { p.Stream = true }, []string{"stream"}, "true"},
		{"another one is inserted", func(p *block.Params) { p.Stream = true }, []string{"top_p"}, ""},
		{"inside", func(p *block.Params) { n := int64(7); p.Thinking.Budget = &n }, []string{"thinking"}, `{"type":"enabled","budget_tokens":7}`},
		{"the other one", func(p *block.Params) { n := int64(7); p.Thinking.Budget = &n }, []string{"thinking", "type"}, `"enabled"`},
		{"the whole", func(p *block.Params) { p.Model = "n" }, nil, `{"model":"n","temperature":1,"thinking":{"type":"enabled","budget_tokens":5},"messages":[{"role":"user","content":"b"}]}`},
	} {
		t.Run(x.name, func(t *testing.T) {
			r, err := wire.Messages.Decode([]byte(body), nil)
			if err != nil {
				t.Fatal(err)
			}
			p := r.Params()
			x.edit(&p)
			if err := r.SetParams(p); err != nil {
				t.Fatal(err)
			}
			if got := string(r.Field(x.path...)); got != x.want {
				t.Errorf("got %s, want %s", got, x.want)
			}
		})
	}
}
