// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/block"
)

// detached decodes a copy of body, detaches it, and overwrites the copy: the request must not refer to it.
func detached(a api, body []byte) (*block.Request, error) {
	mine := bytes.Clone(body)
	r, err := a.decode(mine, nil)
	if err != nil {
		return nil, err
	}
	if err := r.Detach(); err != nil {
		return nil, err
	}
	for i := range mine {
		mine[i] = '#'
	}
	return r, nil
}

// equalJSON reports whether two texts have the same JSON value, with numbers compared by value.
func equalJSON(a, b []byte) (bool, string) {
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		return false, err.Error()
	}
	if err := json.Unmarshal(b, &y); err != nil {
		return false, err.Error()
	}
	if reflect.DeepEqual(x, y) {
		return true, ""
	}
	return false, cmp.Diff(x, y)
}

func TestDetach(t *testing.T) {
	list := captures(t)
	for i, body := range bodies {
		list = append(list, capture{name: "own/" + apis[i].api.String(), api: apis[i], body: []byte(body)})
	}
	for _, c := range list {
		t.Run(c.name, func(t *testing.T) {
			plain, err := c.api.decode(bytes.Clone(c.body), nil)
			require.NoError(t, err)
			r, err := detached(c.api, c.body)
			require.NoError(t, err)
			require.Nil(t, r.Body())
			require.Equal(t, c.api.api, r.API())
			require.True(t, r.Equal(plain), "turns, tools and parameters stay")
			out, err := r.AppendBody(nil)
			require.NoError(t, err)
			same, diff := equalJSON(c.body, out)
			require.True(t, same, "%s", diff)
			t.Logf("%d bytes, %d of them not modeled", len(c.body), block.ResidueBytes(r))
			if len(c.body) > 10_000 {
				require.Less(t, block.ResidueBytes(r)*20, len(c.body), "nearly everything is in fields")
			}

			// Conversions give the same result as with the body, except for losses, whose paths differ.
			for _, o := range apis {
				if o.api == c.api.api {
					continue
				}
				want, losses, err := o.encode(nil, plain, nil)
				require.NoError(t, err)
				got, more, err := o.encode(nil, r, nil)
				require.NoError(t, err)
				require.Equal(t, string(want), string(got))
				require.Equal(t, len(losses) > 0, len(more) > 0, "%v\n%v", losses, more)
			}
		})
	}
}

// TestDetachShapes detaches random requests with unknown fields and unusual spellings everywhere.
func TestDetachShapes(t *testing.T) {
	for i, a := range apis {
		t.Run(a.api.String(), func(t *testing.T) {
			good := 0
			one := func(t *rapid.T) {
				var turns []any
				for range rapid.IntRange(0, 4).Draw(t, "turns") {
					turns = append(turns, turnShape(t))
				}
				root, _ := shape(t, 2).(map[string]any)
				if root == nil {
					root = map[string]any{}
				}
				root[[]string{"messages", "input", "messages"}[i]] = append([]any{}, turns...)
				if rapid.Bool().Draw(t, "system") {
					root[[]string{"x", "instructions", "system"}[i]] = shape(t, 2)
				}
				body, err := json.Marshal(root)
				if err != nil {
					t.Fatal(err)
				}
				r, err := detached(a, body)
				if err != nil {
					return
				}
				out, err := r.AppendBody(nil)
				if err != nil {
					t.Fatal(err)
				}
				if same, diff := equalJSON(body, out); !same {
					t.Fatalf("%s\n%s\n%s", body, out, diff)
				}
				good++
			}
			rapid.Check(t, func(t *rapid.T) {
				for range 5 { // many bodies do not decode, and -short draws few
					one(t)
				}
			})
			require.Greater(t, good, 10, "too few requests decode")
		})
	}
}

// TestDetachEdits changes every text of a request, with and without its body. The result is the same JSON, and blocks
// that are not edited keep their unknown fields in the detached request, too.
func TestDetachEdits(t *testing.T) {
	for i, body := range bodies {
		t.Run(apis[i].api.String(), func(t *testing.T) {
			n := len(blocksOf(decoded(t, i)))
			for k := range n {
				plain := decoded(t, i)
				r, err := detached(apis[i], []byte(body))
				require.NoError(t, err)
				a, b := blocksOf(plain)[k], blocksOf(r)[k]
				if a.Kind != block.Text && a.Kind != block.Reasoning && a.Kind != block.ToolCall || a.Redacted {
					continue
				}
				if a.Text == "bare" { // a string becomes a part in an array of parts
					continue
				}
				edit := func(x block.Block) block.Block {
					if x.Kind == block.ToolCall {
						x.Args = `{"new":true}`
					} else {
						x.Text += "!"
					}
					return x
				}
				require.NoError(t, plain.Set(a.At, edit(a)))
				require.NoError(t, r.Set(b.At, edit(b)))
				want, err := plain.AppendBody(nil)
				require.NoError(t, err)
				got, err := r.AppendBody(nil)
				require.NoError(t, err)
				same, diff := equalJSON(want, got)
				require.True(t, same, "%v: %s", a, diff)
			}
			r, err := detached(apis[i], []byte(body))
			require.NoError(t, err)
			setModel(t, r, "other")
			require.NoError(t, r.Delete(r.Turns()[len(r.Turns())-1].At))
			require.NoError(t, r.Append(block.Turn{Role: block.RoleUser, Blocks: text("More.")}))
			require.NoError(t, r.SetTools(append(r.Tools(), block.Tool{Name: "extra", Schema: []byte(`{}`), Strict: new(bool)})...))
			out, err := r.AppendBody(nil)
			require.NoError(t, err)
			again, err := apis[i].decode(out, nil)
			require.NoError(t, err)
			require.True(t, again.Equal(r), "%s", out)
			require.Equal(t, "other", again.Params().Model)
		})
	}
}

// TestDetachEditsKeepResidues makes edits of detached requests that could apply residues to the wrong values: each value keeps its
// own fields, and nothing empty remains.
func TestDetachEditsKeepResidues(t *testing.T) {
	text := func(r *block.Request, s string) block.Block { return pick(t, r, isText(s)) }
	tests := []struct {
		name string
		api  int
		body string
		edit func(t *testing.T, r *block.Request)
		want string
	}{
		{"the only block of a message", 0, `{"messages":[{"role":"user","content":"a"},{"role":"tool","tool_call_id":"x","content":"r"}]}`,
			func(t *testing.T, r *block.Request) {
				require.NoError(t, r.Delete(pick(t, r, is(block.ToolResult, "x")).At))
			},
			`{"messages":[{"role":"user","content":"a"}]}`},
		{"the last turn", 2, `{"max_tokens":1,"messages":[{"role":"user","content":"a"}]}`,
			func(t *testing.T, r *block.Request) { require.NoError(t, r.Delete(r.Turns()[0].At)) }, `{"max_tokens":1,"messages":[]}`},
		{"the first turn", 2, `{"messages":[]}`, func(t *testing.T, r *block.Request) {
			require.NoError(t, r.Append(block.Turn{Role: block.RoleUser, Blocks: []block.Block{{Kind: block.Text, Text: "a"}}}))
		}, `{"messages":[{"role":"user","content":"a"}]}`},
		{"a message goes, a call comes", 1, `{"input":[{"type":"message","role":"assistant","phase":"commentary","id":"m","content":[{"type":"output_text","text":"a"}]},{"type":"function_call","call_id":"c1","name":"f","arguments":"{}","id":"x1"}]}`,
			func(t *testing.T, r *block.Request) {
				require.NoError(t, r.Delete(text(r, "a").At))
				require.NoError(t, r.Insert(r.Turns()[0].At, block.Block{Kind: block.ToolCall, CallID: "c2", Name: "f", Args: "{}"}))
			},
			`{"input":[{"type":"function_call","call_id":"c1","name":"f","arguments":"{}","id":"x1"},{"type":"function_call","call_id":"c2","name":"f","arguments":"{}"}]}`},
		{"only a call comes", 1, `{"input":[{"type":"message","role":"assistant","phase":"commentary","id":"m","content":[{"type":"output_text","text":"a"}]},{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}]}`,
			func(t *testing.T, r *block.Request) {
				require.NoError(t, r.Insert(r.Turns()[0].At, block.Block{Kind: block.ToolCall, CallID: "c2", Name: "f", Args: "{}"}))
			},
			`{"input":[{"type":"message","role":"assistant","phase":"commentary","id":"m","content":[{"type":"output_text","text":"a"}]},{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},{"type":"function_call","call_id":"c2","name":"f","arguments":"{}"}]}`},
		{"two messages of one turn", 1, `{"input":[{"type":"message","role":"assistant","id":"m1","phase":"commentary","content":[{"type":"output_text","text":"a"}]},{"type":"message","role":"assistant","id":"m2","content":"b"}]}`,
			func(t *testing.T, r *block.Request) { require.NoError(t, r.SetText(text(r, "a").At, "A")) },
			`{"input":[{"type":"message","role":"assistant","id":"m1","phase":"commentary","content":[{"type":"output_text","text":"A"}]},{"type":"message","role":"assistant","id":"m2","content":"b"}]}`},
		{"reasoning under its other name", 0, `{"messages":[{"role":"assistant","reasoning":"r","content":"a","x_unknown":1}]}`,
			func(t *testing.T, r *block.Request) { require.NoError(t, r.SetText(text(r, "a").At, "A")) },
			`{"messages":[{"role":"assistant","reasoning":"r","content":"A","x_unknown":1}]}`},
		{"the first tool of a namespace", 1, `{"input":[],"tools":[{"type":"namespace","name":"n","description":"d","tools":[{"type":"function","name":"a","parameters":{}},{"type":"function","name":"b","parameters":{},"strict":true}]}]}`,
			func(t *testing.T, r *block.Request) {
				require.NoError(t, r.SetTools(slices.Delete(slices.Clone(r.Tools()), 0, 1)...))
			},
			`{"input":[],"tools":[{"type":"namespace","name":"n","description":"d","tools":[{"type":"function","name":"b","parameters":{},"strict":true}]}]}`},
		{"a tool in addition to functions", 0, `{"messages":[],"functions":[{"name":"a","x":1}]}`,
			func(t *testing.T, r *block.Request) {
				require.NoError(t, r.SetTools(append(r.Tools(), block.Tool{Name: "b", Schema: []byte(`{}`)})...))
			},
			`{"messages":[],"functions":[{"name":"a","x":1},{"name":"b","parameters":{}}]}`},
		{"functions with empty tools", 0, `{"messages":[],"tools":[],"functions":[{"name":"a"}]}`, func(*testing.T, *block.Request) {}, `{"messages":[],"tools":[],"functions":[{"name":"a"}]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := detached(apis[tt.api], []byte(tt.body))
			require.NoError(t, err)
			tt.edit(t, r)
			out, err := r.AppendBody(nil)
			require.NoError(t, err)
			same, diff := equalJSON([]byte(tt.want), out)
			require.True(t, same, "%s\n%s", out, diff)
			_, err = apis[tt.api].decode(out, nil)
			require.NoError(t, err)
		})
	}
}

// TestDetachLosses checks that the losses are the same with the body and without it, at the same paths.
func TestDetachLosses(t *testing.T) {
	for i, body := range append(slices.Clone(bodies), `{"messages":[{"role":"assistant","reasoning":"r","x_unknown":1}],"nvext":{"a":1}}`) {
		a := apis[i%len(apis)]
		plain, err := a.decode([]byte(body), nil)
		require.NoError(t, err)
		r, err := detached(a, []byte(body))
		require.NoError(t, err)
		for _, o := range apis {
			if o.api == a.api {
				continue
			}
			_, want, err := o.encode(nil, plain, nil)
			require.NoError(t, err)
			_, got, err := o.encode(nil, r, nil)
			require.NoError(t, err)
			own := func(list []block.Loss) (out []string) {
				for _, l := range list {
					if strings.HasPrefix(l.Why, "no counterpart") || strings.HasPrefix(l.Why, "a summary in addition") {
						out = append(out, l.String())
					}
				}
				return out
			}
			require.Equal(t, own(want), own(got))
			require.NotEmpty(t, own(want))
			require.Len(t, got, len(want))
			_, _, err = o.encode(nil, r, &block.EncodeOptions{Strict: true})
			require.Error(t, err)
		}
	}
}

// TestDetachUnsupported checks that detached requests reject what the API cannot express, as with the body.
func TestDetachUnsupported(t *testing.T) {
	film := block.Block{Kind: block.Video, Media: &block.Media{URL: "https://x/y.mp4"}}
	for i := 1; i < 3; i++ {
		r, err := detached(apis[i], []byte(bodies[i]))
		require.NoError(t, err)
		before := encoded(t, r)
		last := len(r.Turns()) - 1
		require.Error(t, r.Insert(r.Turns()[last].At, film))
		require.Error(t, r.Append(block.Turn{Role: block.RoleUser, Blocks: []block.Block{film}}))
		b := pick(t, r, func(b block.Block) bool { return b.Kind == block.Text })
		film.At = b.At
		require.Error(t, r.Set(b.At, film))
		require.Equal(t, before, encoded(t, r))
	}
}
