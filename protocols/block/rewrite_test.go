// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/codec"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/messages"
)

// TestRewrite records edits of the body after an edit of a block.
func TestRewrite(t *testing.T) {
	r, err := messages.Decode([]byte(`{"system":"a","messages":[{"role":"user","content":"b"}],"x":1}`), nil)
	require.NoError(t, err)
	require.NoError(t, r.SetText(r.Turns()[0].Blocks[0].At, "A"))
	require.NoError(t, codec.Rewrite(r, func(e *jsonscan.Edits, root jsonscan.Value) bool {
		require.Equal(t, `"A"`, string(root.Get("system").Raw()), "pending edits are settled first")
		e.DeleteMember(root, "x")
		e.Replace(root.Get("messages").First().Get("content"), []byte(`"B"`))
		return true
	}))
	require.Equal(t, "B", r.Turns()[1].Text(""))
	out, err := r.AppendBody(nil)
	require.NoError(t, err)
	require.Equal(t, `{"system":"A","messages":[{"role":"user","content":"B"}]}`, string(out))

	at := r.Turns()[1].Blocks[0].At
	require.NoError(t, codec.Rewrite(r, func(*jsonscan.Edits, jsonscan.Value) bool { return false }))
	require.NoError(t, r.SetText(at, "C"), "without a change positions stay valid")

	err = codec.Rewrite(r, func(e *jsonscan.Edits, root jsonscan.Value) bool {
		e.Replace(root.Get("messages"), []byte("1"))
		return true
	})
	fault, ok := errors.AsType[*block.Error](err)
	require.True(t, ok, "a body that is invalid in the API")
	require.Equal(t, block.WrongType, fault.Kind)

	err = codec.Rewrite(block.NewRequest(), func(*jsonscan.Edits, jsonscan.Value) bool { return true })
	fault, ok = errors.AsType[*block.Error](err)
	require.True(t, ok)
	require.Equal(t, block.Unsupported, fault.Kind)
}
