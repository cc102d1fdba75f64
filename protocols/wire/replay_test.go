// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/messages"
	"github.com/weft-go/weft/protocols/replay"
	"github.com/weft-go/weft/protocols/responses"
	"github.com/weft-go/weft/protocols/wire"
)

func TestReplayTurns(t *testing.T) {
	r, err := messages.Decode([]byte(`{"system":"s","messages":[
		{"role":"user","content":[{"type":"text","text":"<system-reminder>r</system-reminder>"},{"type":"text","text":"go"}]},
		{"role":"assistant","content":[{"type":"thinking","thinking":"a","signature":""},{"type":"tool_use","id":"c","name":"f","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"x"},{"type":"text","text":"<system-reminder>r</system-reminder>"}]},
		{"role":"user","content":"<system-reminder>another</system-reminder>"},
		{"role":"assistant","content":[{"type":"redacted_thinking","data":"x"},{"type":"text","text":"done"}]},
		{"role":"user","content":"<system-reminder>idle</system-reminder>"},
		{"role":"assistant","content":[{"type":"thinking","thinking":"b","signature":""},{"type":"text","text":"ok"}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"x"},{"type":"text","text":"and now?"}]}]}`), nil)
	require.NoError(t, err)
	want := []replay.Turn{
		{}, {Start: true}, {Assistant: true, Reasoning: true, Calls: true}, {}, {},
		{Assistant: true}, {Start: true}, {Assistant: true, Reasoning: true}, {Start: true},
	}
	require.Empty(t, cmp.Diff(want, wire.ReplayTurns(r)))
	require.Len(t, wire.ReplayTurns(r), len(r.Turns()))

	r, err = responses.Decode([]byte(`{"input":[{"role":"developer","content":"d"},{"role":"user","content":"go"},{"type":"reasoning","summary":[{"type":"summary_text","text":"s"}]},
		{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"x"},{"type":"reasoning","summary":[],"encrypted_content":"e"}]}`), nil)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]replay.Turn{
		{}, {Start: true}, {Assistant: true, Reasoning: true, Calls: true}, {}, {Assistant: true},
	}, wire.ReplayTurns(r)))
}
