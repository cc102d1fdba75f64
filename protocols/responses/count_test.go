// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/messages"
	"github.com/weft-go/weft/protocols/responses"
)

func TestEncodeCount(t *testing.T) {
	const body = `{"model":"m","input":[{"role":"user","content":"\u0048i"}], "instructions":"S","max_output_tokens":5,"tools":[{"type":"function","name":"f","parameters":{"a":1.0}}],` +
		`"tool_choice":"auto","parallel_tool_calls":false,"reasoning":{"effort":"low"},"text":{"verbosity":"low"},"truncation":"auto","store":false,"include":["x"],"stream":true,"previous_response_id":null}`
	const want = `{"model":"m","input":[{"role":"user","content":"\u0048i"}], "instructions":"S","tools":[{"type":"function","name":"f","parameters":{"a":1.0}}],` +
		`"tool_choice":"auto","parallel_tool_calls":false,"reasoning":{"effort":"low"},"text":{"verbosity":"low"},"truncation":"auto","previous_response_id":null}`
	r, err := responses.Decode([]byte(body), nil)
	require.NoError(t, err)
	out, losses, err := responses.AppendCountRequest([]byte("x"), r, &block.EncodeOptions{Strict: true})
	require.NoError(t, err)
	require.Empty(t, losses)
	require.Equal(t, "x"+want, string(out))
	r, err = responses.Decode([]byte(want), nil)
	require.NoError(t, err)
	require.Len(t, r.Turns(), 2)
}

func TestEncodeCountOther(t *testing.T) {
	r, err := messages.Decode([]byte(`{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"Hi"}],"stop_sequences":["x"],"top_k":3,"temperature":1}`), nil)
	require.NoError(t, err)
	out, losses, err := responses.AppendCountRequest(nil, r, &block.EncodeOptions{Strict: true})
	require.NoError(t, err, "fields that do not affect the count are not losses")
	require.Empty(t, losses)
	again, err := responses.Decode(out, nil)
	require.NoError(t, err)
	require.Equal(t, "Hi", again.Turns()[0].Text(""))
	require.NotContains(t, string(out), "temperature")

	r, err = messages.Decode([]byte(`{"model":"m","messages":[{"role":"user","content":[{"type":"search_result","source":"s","title":"t","content":[]}]}]}`), nil)
	require.NoError(t, err)
	_, losses, err = responses.AppendCountRequest(nil, r, &block.EncodeOptions{Strict: true})
	require.EqualError(t, err, losses[0].String())
}

func TestTokenCount(t *testing.T) {
	require.Equal(t, `{"object":"response.input_tokens","input_tokens":11}`, string(responses.AppendTokenCount(nil, 11)))
	n, err := responses.DecodeTokenCount(responses.AppendTokenCount(nil, 11))
	require.NoError(t, err)
	require.EqualValues(t, 11, n)
	for body, want := range map[string]string{
		`{"object":"response.input_tokens"}`: "a number of input_tokens was expected, not an object at byte 0",
		`{"input_tokens":1.5}`:               "input_tokens: a number of input_tokens was expected, not a number at byte 16",
		``:                                   "unexpected end of JSON at byte 0",
	} {
		_, err := responses.DecodeTokenCount([]byte(body))
		require.EqualError(t, err, want, body)
		require.IsType(t, &block.Error{}, err)
	}
}

func ExampleAppendCountRequest() {
	r, err := responses.Decode([]byte(`{"model":"m","input":"Hi","max_output_tokens":64,"stream":true}`), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	body, _, err := responses.AppendCountRequest(nil, r, nil)
	fmt.Println(string(body), err)
	fmt.Println(string(responses.AppendTokenCount(nil, 8)))
	// Output:
	// {"model":"m","input":"Hi"} <nil>
	// {"object":"response.input_tokens","input_tokens":8}
}
