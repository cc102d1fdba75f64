// SPDX-License-Identifier: Apache-2.0

package messages_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	blocks "github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/messages"
)

func TestEncodeCount(t *testing.T) {
	// A request of this API keeps its bytes, except for fields that do not affect the count.
	const body = `{ "model":"m", "max_tokens":5, "system":[{"type":"text","text":"S","x":1}],"stream":true ,"messages":[{"role":"user","content":"\u0048i"}], "thinking":{"type":"enabled","budget_tokens":1024},` +
		`"tools":[{"name":"f","input_schema":{"a":1.0}}],"tool_choice":{"type":"auto"},"output_config":{"effort":"low"},"cache_control":{"type":"ephemeral"},"context_management":{"edits":[]},"mcp_servers":[],"metadata":{"user_id":"u"},"temperature":1,"speed":"fast" }`
	const want = `{ "model":"m", "system":[{"type":"text","text":"S","x":1}] ,"messages":[{"role":"user","content":"\u0048i"}], "thinking":{"type":"enabled","budget_tokens":1024},` +
		`"tools":[{"name":"f","input_schema":{"a":1.0}}],"tool_choice":{"type":"auto"},"output_config":{"effort":"low"},"cache_control":{"type":"ephemeral"},"context_management":{"edits":[]},"mcp_servers":[] }`
	r, err := messages.Decode([]byte(body), nil)
	require.NoError(t, err)
	out, losses, err := messages.AppendCountRequest([]byte("x"), r, &blocks.EncodeOptions{Strict: true})
	require.NoError(t, err)
	require.Empty(t, losses)
	require.Equal(t, "x"+want, string(out))

	// The body of count_tokens decodes without max_tokens and is encoded unmodified.
	r, err = messages.Decode([]byte(want), nil)
	require.NoError(t, err)
	require.Len(t, r.Turns(), 2)
	ok := r.Params().MaxTokens != nil
	require.False(t, ok)
	out, _, err = messages.AppendCountRequest(nil, r, nil)
	require.NoError(t, err)
	require.Equal(t, want, string(out))

	// It includes edits.
	require.NoError(t, r.SetText(r.Turns()[1].Blocks[0].At, "Hello"))
	out, _, err = messages.AppendCountRequest(nil, r, nil)
	require.NoError(t, err)
	require.Contains(t, string(out), `"content":"Hello"`)
}

func TestEncodeCountOther(t *testing.T) {
	r, err := chat.Decode([]byte(`{"model":"m","messages":[{"role":"system","content":"S"},{"role":"user","content":"Hi"}],"seed":1,"stop":"x","stream":true,"n":2,
		"presence_penalty":1,"logit_bias":{"1":2},"user":"u","reasoning_effort":"low","tools":[{"type":"function","function":{"name":"f"}}]}`), nil)
	require.NoError(t, err)
	out, losses, err := messages.AppendCountRequest(nil, r, &blocks.EncodeOptions{Strict: true})
	require.NoError(t, err, "fields that do not affect the count are not losses")
	require.Empty(t, losses)
	require.JSONEq(t, `{"model":"m","output_config":{"effort":"low"},"system":"S","messages":[{"role":"user","content":"Hi"}],"tools":[{"name":"f","input_schema":{"type":"object","properties":{}}}]}`, string(out))

	r, err = chat.Decode([]byte(`{"model":"m","messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AA","format":"wav"}}]}]}`), nil)
	require.NoError(t, err)
	_, losses, err = messages.AppendCountRequest(nil, r, nil)
	require.NoError(t, err)
	require.Len(t, losses, 1)
	out, _, err = messages.AppendCountRequest([]byte("x"), r, &blocks.EncodeOptions{Strict: true})
	require.Equal(t, losses[0].String(), err.Error())
	require.Equal(t, "x", string(out))
}

// TestEncodeCountCapture encodes the count request of a recorded request.
func TestEncodeCountCapture(t *testing.T) {
	body, err := os.ReadFile("../../../shared/bench/protocols/anthropic_request.json")
	if err != nil {
		t.Skip("needs the shared data: set WEFT_SHARED: ", err)
	}
	r, err := messages.Decode(body, nil)
	require.NoError(t, err)
	out, losses, err := messages.AppendCountRequest(nil, r, nil)
	require.NoError(t, err)
	require.Empty(t, losses)
	count, err := messages.Decode(out, nil)
	require.NoError(t, err)
	require.Equal(t, len(r.Turns()), len(count.Turns()))
	for i, turn := range r.Turns() {
		require.True(t, turn.Equal(count.Turns()[i]))
	}
	require.NotContains(t, string(out), `"max_tokens"`)
}

func TestTokenCount(t *testing.T) {
	n, err := messages.DecodeTokenCount(messages.AppendTokenCount(nil, 1234))
	require.NoError(t, err)
	require.EqualValues(t, 1234, n)
	n, err = messages.DecodeTokenCount([]byte(`{"input_tokens":7,"context_management":{"original_input_tokens":9}}`))
	require.NoError(t, err)
	require.EqualValues(t, 7, n)
	for body, want := range map[string]string{
		`{}`:                   "a number of input_tokens was expected, not an object at byte 0",
		`{"input_tokens":"7"}`: "input_tokens: a number of input_tokens was expected, not a string at byte 16",
		`{"input_tokens":-7}`:  "input_tokens: a number of input_tokens was expected, not a number at byte 16",
		`[`:                    "[0]: unexpected end of JSON at byte 1",
		`[1]`:                  "a number of input_tokens was expected, not an array at byte 0",
	} {
		_, err := messages.DecodeTokenCount([]byte(body))
		require.EqualError(t, err, want, body)
		require.IsType(t, &blocks.Error{}, err)
	}
}

func ExampleAppendCountRequest() {
	r, err := messages.Decode([]byte(`{"model":"m","max_tokens":64,"messages":[{"role":"user","content":"Hi"}],"stream":true}`), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	body, _, err := messages.AppendCountRequest(nil, r, nil)
	fmt.Println(string(body), err)
	fmt.Println(string(messages.AppendTokenCount(nil, 8)))
	// Output:
	// {"model":"m","messages":[{"role":"user","content":"Hi"}]} <nil>
	// {"input_tokens":8}
}
