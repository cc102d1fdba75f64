// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/block"
)

// detached decodes a copy of body, detaches it, and overwrites the copy: what is left is the request's own.
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

// equalJSON reports whether two texts are the same value, numbers compared by value.
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
			out, err := r.Encode(nil)
			require.NoError(t, err)
			same, diff := equalJSON(c.body, out)
			require.True(t, same, "%s", diff)
			t.Logf("%d bytes, %d of them not modelled", len(c.body), block.ResidueBytes(r))
			if len(c.body) > 10_000 {
				require.Less(t, block.ResidueBytes(r)*20, len(c.body), "nearly everything is in fields")
			}

			// To other APIs it says the same as with its body, losses aside, whose places are gone.
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

// TestDetachShapes does it with requests that are drawn, unknown members and odd spellings everywhere.
func TestDetachShapes(t *testing.T) {
	for i, a := range apis {
		t.Run(a.api.String(), func(t *testing.T) {
			good := 0
			rapid.Check(t, func(t *rapid.T) {
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
				out, err := r.Encode(nil)
				if err != nil {
					t.Fatal(err)
				}
				if same, diff := equalJSON(body, out); !same {
					t.Fatalf("%s\n%s\n%s", body, out, diff)
				}
				good++
			})
			require.Greater(t, good, 10, "too few requests decode")
		})
	}
}

// TestDetachEdits changes every text of a request, with and without its body: the outcome is the same JSON, and in the
// detached one, too, what nobody edits keeps its unknown members.
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
				if a.Text == "bare" { // a string where a part belongs becomes a part
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
				want, err := plain.Encode(nil)
				require.NoError(t, err)
				got, err := r.Encode(nil)
				require.NoError(t, err)
				same, diff := equalJSON(want, got)
				require.True(t, same, "%v: %s", a, diff)
			}
			r, err := detached(apis[i], []byte(body))
			require.NoError(t, err)
			require.NoError(t, r.SetModel("other"))
			require.NoError(t, r.DeleteTurn(len(r.Turns())-1))
			require.NoError(t, r.AppendTurn(block.Turn{Role: block.RoleUser, Blocks: text("More.")}))
			require.NoError(t, r.AppendTool(block.Tool{Name: "extra", Schema: []byte(`{}`), Strict: new(bool)}))
			out, err := r.Encode(nil)
			require.NoError(t, err)
			again, err := apis[i].decode(out, nil)
			require.NoError(t, err)
			require.True(t, again.Equal(r), "%s", out)
			require.Equal(t, "other", again.Model())
		})
	}
}
