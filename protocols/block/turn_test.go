// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/responses"
)

// TestRawResultContinues checks that the output of a tool that the API defines is a continuation, although it is kept
// as raw JSON.
func TestRawResultContinues(t *testing.T) {
	r, err := responses.Decode([]byte(`{"model":"m","input":[
		{"role":"user","content":"list"},
		{"type":"reasoning","id":"rs_1","summary":[]},
		{"type":"local_shell_call","id":"ls_1","call_id":"c1","status":"completed","action":{"type":"exec","command":["ls"],"env":{}}},
		{"type":"local_shell_call_output","id":"c1","output":"a.go"},
		{"role":"user","content":"<system-reminder>be quick</system-reminder>"}]}`), nil)
	require.NoError(t, err)
	var kinds []block.TurnKind
	for _, turn := range r.Turns() {
		kinds = append(kinds, turn.Kind)
	}
	require.Equal(t, []block.TurnKind{block.TurnStart, 0, block.ToolContinuation, block.ToolContinuation}, kinds)
}
