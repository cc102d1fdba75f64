// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/internal/streamtest"
	"github.com/weft-go/weft/protocols/responses"
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
		`{"type":"response.output_text.delta","delta":"a\ud83d"}` + "\n" + `{"type":"response.output_text.done","text":"a😀b"}`,
		itemAdded("0", `{"type":"function_call","id":"f","name":"get"}`) + "\n" + `{"type":"response.function_call_arguments.delta","delta":"{\"x\":"}` + "\n" + completed,
		`{"type":"response.function_call_arguments.delta","item_id":"f","delta":"{}"}` + "\n" + itemDone("0", `{"type":"function_call","id":"f","name":"get","call_id":"f","arguments":"{}"}`) + "\n" + completed,
		itemDone("0", `{"type":"web_search_call","id":"w"}`) + "\n" + last("completed", `,"output":[{"type":"web_search_call"},{"type":"mcp_call"}]`),
		`{"type":"response.content_part.done","part":{"type":"output_text","text":"a","annotations":[{}],"logprobs":[{}]}}` + "\n" + last("failed", `,"error":{"code":"x"}`),
		`{"type":"response.reasoning_summary_text.delta","summary_index":0,"delta":"a"}` + "\n" + itemDone("0", `{"type":"reasoning","content":[{"text":"b"}],"summary":[{"text":"a"},{"text":"c"}],"encrypted_content":"S"}`),
		`{"error":{"message":"m"}}`, `oops`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var b []byte
		for line := range bytes.SplitSeq(in, []byte("\n")) {
			b = append(append(append(b, "data: "...), line...), "\n\n"...)
		}
		d := responses.NewStreamDecoder(nil)
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
	f.Add([]byte(`{"status":"failed","error":{"code":"server_error","message":"m"},"output":[{"role":"assistant","content":"a"},{"type":"function_call","name":"f","arguments":{"a":1}}]}`))
	f.Add([]byte(`{"output":[{"type":"message","content":[{"type":"output_text","text":"a","annotations":[{}],"logprobs":[1]},{"type":"x"}]},{"type":"reasoning","summary":"a"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := responses.DecodeResponse(nil, body)
		if err != nil {
			streamtest.CheckError(t, err, len(body))
		}
		if len(got) > 0 {
			streamtest.CheckWhole(t, got)
		}
	})
}
