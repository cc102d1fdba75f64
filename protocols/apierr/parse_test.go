// SPDX-License-Identifier: Apache-2.0

package apierr_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/wire"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		body   string
		why    event.Why
		want   string // message, code, param
	}{
		{"OpenAI", 429, `{"error":{"message":"slow","type":"requests","param":null,"code":"rate_limit_exceeded"}}`, event.Overloaded, "slow|rate_limit_exceeded|"},
		{"OpenAI, context", 400, `{"error":{"message":"long","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, event.Invalid, "long|context_length_exceeded|messages"},
		{"OpenAI, no model", 404, `{"error":{"message":"no","type":"invalid_request_error","code":"model_not_found"}}`, event.NotFound, "no|model_not_found|"},
		{"Anthropic", 529, `{"type":"error","error":{"type":"overloaded_error","message":"busy"},"request_id":"r"}`, event.Overloaded, "busy||"},
		{"vLLM", 400, `{"error":{"message":"bad","type":"BadRequestError","param":null,"code":400}}`, event.Invalid, "bad||"},
		{"vLLM, status as text", 200, `{"error":{"message":"bad","code":"404"}}`, event.NotFound, "bad||"},
		{"vLLM, old", 404, `{"object":"error","message":"none","type":"NotFoundError","param":null,"code":404}`, event.NotFound, "none||"},
		{"Dynamo", 503, `{"message":"no workers","type":"Service Unavailable","code":503}`, event.Overloaded, "no workers||"},
		{"Dynamo, canceled", 499, `{"message":"gone","type":"request_cancelled","code":499}`, event.Canceled, "gone||"},
		{"flat without code", 0, `{"message":"m","type":"server_error"}`, event.EngineFailed, "m||"},
		{"Ollama", 404, `{"error":"model 'x' not found"}`, event.NotFound, "model 'x' not found||"},
		{"FastAPI", 422, `{"detail":"what"}`, event.Invalid, "what||"},
		{"FastAPI, a list", 422, `{"detail":[{"loc":["body"]}]}`, event.Invalid, "The engine reported an error without a message.||"},
		{"the status alone", 501, `{}`, event.Invalid, "The engine answered with status 501.||"},
		{"a page of a proxy", 502, `<html>10.0.0.7</html>`, event.EngineFailed, "The engine answered with status 502.||"},
		{"a timeout", 408, ``, event.EngineFailed, "The engine answered with status 408.||"},
		{"an answer", 500, `{"choices":[],"message":"m","code":1}`, event.EngineFailed, "The engine answered with status 500.||"},
		{"error:null", 500, `{"error":null}`, event.EngineFailed, "The engine answered with status 500.||"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := apierr.Parse(c.status, []byte(c.body))
			require.Equal(t, c.why, e.Why)
			require.Equal(t, c.want, e.Message+"|"+e.Code+"|"+e.Param)
		})
	}
	e := apierr.Parse(502, []byte(`<html>10.0.0.7</html>`))
	require.NotContains(t, string(e.AppendBody(nil, apierr.OpenAI, "")), "10.0.0.7")
	require.EqualError(t, e, `engine_failed: The engine answered with status 502: body "<html>10.0.0.7</html>"`, "logs see the page")
}

// TestParseRoundTrip parses the output of AppendBody, in both styles. Classes that share a status cannot be distinguished.
func TestParseRoundTrip(t *testing.T) {
	for _, e := range []*apierr.Error{
		apierr.Invalid("tools[1]", "no"), apierr.ModelNotFound("m"), {Why: event.NotFound, Code: "unknown_url", Message: "r"}, apierr.TooLarge(5),
		apierr.Overloaded(0), apierr.EngineFailed(nil), apierr.ContextLength(2, 0, 1), apierr.ContextLength(2, 9, 10), {Code: apierr.CodeTimeout, Why: event.EngineFailed, Message: "t"},
		{Why: event.Invalid, Code: "previous_response_not_found", Param: "previous_response_id", Message: "r"},
		{Why: event.NotFound, Code: "item_not_found", Param: "input[0]", Message: "i"},
	} {
		for _, s := range []apierr.Style{apierr.OpenAI, apierr.Anthropic} {
			got := apierr.Parse(e.HTTPStatus(s), e.AppendBody(nil, s, "req_1"))
			require.Equal(t, e.Why, got.Why, "%v", e)
			require.Equal(t, e.Text(s), got.Message)
			if s == apierr.OpenAI {
				require.Equal(t, e.Code+e.Param, got.Code+got.Param)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(200, []byte(`{"error":{"message":"m","code":400}}`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		e := apierr.Parse(status, body)
		if e.Message == "" || e.Why < event.Invalid {
			t.Fatalf("%+v", e)
		}
	})
}

func ExampleParse() {
	e := apierr.Parse(400, []byte(`{"error":{"message":"bad seed","type":"BadRequestError","param":"seed","code":400}}`))
	fmt.Println(e.Why, e.Param, e.Message)
	// Output: invalid seed bad seed
}

// TestParseContextLength checks that the token counts of a prompt that is too long are found in the wording of each engine.
func TestParseContextLength(t *testing.T) {
	const most = "This model's maximum context length is 4096 tokens. However, "
	for _, tt := range []struct {
		message string
		want    [3]int64 // prompt, output, max
	}{
		{"prompt is too long: 210000 tokens > 200000 maximum", [3]int64{210000, 0, 200000}},
		{"input length and `max_tokens` exceed context limit: 190000 + 16000 > 200000, decrease", [3]int64{190000, 16000, 200000}},
		{most + "you requested 5500 tokens (5000 in the messages, 500 in the completion). Please reduce the length.", [3]int64{5000, 0, 4096}},
		{most + "you requested 5000 tokens (4000 in the messages, 1000 in the completion).", [3]int64{4000, 1000, 4096}},
		{most + "your messages resulted in 5000 tokens. Please reduce the length of the messages.", [3]int64{5000, 0, 4096}},
		{most + "your request has 4200 input tokens.", [3]int64{4200, 0, 4096}},
		{most + "you requested 500 output tokens and your prompt contains at least 4200 input tokens, for a total of at least 4700 tokens.", [3]int64{4200, 0, 4096}},
		{most + "you requested 500 output tokens and your prompt contains 4000 input tokens, for a total of 4500 tokens.", [3]int64{4000, 500, 4096}},
		{most + "we are full.", [3]int64{}},
		{most + "you requested 9 tokens (4 in the messages, 5 in the completion).", [3]int64{}},
		{"This model's maximum context length is 99999999999999999999 tokens. However, your messages resulted in -1 tokens.", [3]int64{}},
	} {
		body, err := json.Marshal(map[string]any{"error": map[string]any{"message": tt.message, "type": "BadRequestError", "code": 400}})
		require.NoError(t, err)
		e := apierr.Parse(400, body)
		require.Equal(t, apierr.CodeContextLength, e.Code)
		require.Equal(t, event.Invalid, e.Why)
		require.Equal(t, tt.want, e.Counts(), tt.message)
		for _, s := range []apierr.Style{apierr.OpenAI, apierr.Anthropic} { // the numbers survive a conversion to the other API
			again := apierr.Parse(400, e.AppendBody(nil, s, ""))
			require.Equal(t, tt.want, again.Counts(), tt.message)
		}
	}
	require.Equal(t, "rate_limit_exceeded", apierr.Parse(429, []byte(`{"type":"error","error":{"type":"rate_limit_error","message":"m"}}`)).Code)
}

// TestEngineResponseErrors checks that errors in an engine's response are not attributed to the client.
func TestEngineResponseErrors(t *testing.T) {
	_, err := wire.Chat.NewDecoder(nil).AppendEvent(nil, nil, []byte(`{"choices":[{`))
	require.Equal(t, event.EngineFailed, apierr.Wrap(err).Why)
	_, err = wire.Chat.Decode([]byte(`{"messages":[{`), nil)
	require.Equal(t, event.Invalid, apierr.Wrap(err).Why)
}
