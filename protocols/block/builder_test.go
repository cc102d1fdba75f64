// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
)

func TestNewRequestReportsInvalidJSON(t *testing.T) {
	r := block.NewRequest(block.NewTurn(block.RoleUser, "a"), block.Turn{Role: block.RoleUser, Blocks: []block.Block{{JSON: []byte(`{"a":`)}}})
	require.Len(t, r.Turns(), 1)
	_, _, err := chat.AppendRequest(nil, r, nil)
	var e *block.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, block.Malformed, e.Kind)
}
