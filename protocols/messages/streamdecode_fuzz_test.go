// SPDX-License-Identifier: Apache-2.0

package messages_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/internal/streamtest"
	"github.com/weft-go/weft/protocols/messages"
)

// FuzzStreamDecoder takes each line as the data of an event.
func FuzzStreamDecoder(f *testing.F) {
	raw, err := os.ReadFile("testdata/example.sse")
	require.NoError(f, err)
	var lines []byte
	for line := range bytes.Lines(raw) {
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			lines = append(lines, data...)
		}
	}
	f.Add(lines)
	for _, s := range []string{
		textDelta("0", `"a\ud83d"`) + "\n" + textDelta("0", `"\ude00"`) + "\n" + stopped,
		blockStart("0", `{"type":"tool_use","id":"a","name":"get","input":{"x":1}}`) + "\n" + blockStop("0") + "\n" + stopFor("max_tokens") + "\n" + stopped,
		blockStart("0", getCall) + "\n" + inputDelta("0", `"{}\""`) + "\n" + blockStop("0") + "\n" + stopped,
		blockStart("0", `{"type":"mcp_tool_use","input":{}}`) + "\n" + inputDelta("0", `"{}"`) + "\n" + blockStop("0"),
		blockStart("0", `{"type":"compaction"}`) + "\n" + blockDelta("0", `{"type":"compaction_delta","content":"a"}`) + "\n" + stopped,
		blockStart("0", `{"type":"thinking","thinking":"a","signature":"S"}`) + "\n" + blockStart("0", `{"type":"x_tool_result","tool_use_id":"a"}`),
		`{"error":{"message":"m"}}`, `oops`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var b []byte
		for line := range bytes.SplitSeq(in, []byte("\n")) {
			b = append(append(append(b, "data: "...), line...), "\n\n"...)
		}
		d := messages.NewStreamDecoder(nil)
		once, _ := streamtest.Decode(t, d, b)
		d.Reset()
		again, _ := streamtest.Decode(t, d, b)
		require.Empty(t, cmp.Diff(once, again))
	})
}

func FuzzDecodeResponse(f *testing.F) {
	raw, err := os.ReadFile("testdata/example.json")
	require.NoError(f, err)
	f.Add(raw)
	f.Add([]byte(`{"content":[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"text","text":"a","citations":[{}]},{"type":"x","input":{}}],"stop_reason":"max_tokens","usage":{"input_tokens":1}}`))
	f.Add([]byte(`{"type":"error","error":{"type":"overloaded_error","message":"m"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := messages.DecodeResponse(nil, body)
		if err != nil {
			streamtest.CheckError(t, err, len(body))
		}
		if len(got) > 0 {
			streamtest.CheckWhole(t, got)
		}
	})
}
