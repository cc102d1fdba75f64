// SPDX-License-Identifier: Apache-2.0

package apierr_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/event"
)

func TestRender(t *testing.T) {
	for _, c := range []struct {
		name   string
		e      *apierr.Error
		status [2]int // OpenAI, Anthropic
		openai string
		claude string
	}{
		{
			"unknown model", apierr.ModelNotFound(`gp"t`), [2]int{404, 404},
			`{"error":{"message":"The model ` + "`gp\\\"t`" + ` does not exist or you do not have access to it.","type":"invalid_request_error","param":"model","code":"model_not_found"}}`,
			`{"type":"error","error":{"type":"not_found_error","message":"The model ` + "`gp\\\"t`" + ` does not exist or you do not have access to it."},"request_id":"req_1"}`,
		},
		{
			"malformed JSON", apierr.Wrap(&block.Error{Kind: block.Malformed, Path: "messages[1]", Offset: 77, Msg: "unexpected end"}), [2]int{400, 400},
			`{"error":{"message":"The body of your request cannot be read: messages[1]: unexpected end at byte 77","type":"invalid_request_error","param":"messages[1]","code":"invalid_json"}}`,
			`{"type":"error","error":{"type":"invalid_request_error","message":"The body of your request cannot be read: messages[1]: unexpected end at byte 77"},"request_id":"req_1"}`,
		},
		{
			"body too large", apierr.TooLarge(1 << 20), [2]int{413, 413},
			`{"error":{"message":"The body of your request exceeds the maximum of 1048576 bytes.","type":"invalid_request_error","param":null,"code":"request_too_large"}}`,
			`{"type":"error","error":{"type":"request_too_large","message":"The body of your request exceeds the maximum of 1048576 bytes."},"request_id":"req_1"}`,
		},
		{
			"context length", apierr.ContextLength(210000, 0, 200000), [2]int{400, 400},
			`{"error":{"message":"This model's maximum context length is 200000 tokens. However, your messages resulted in 210000 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`,
			`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"},"request_id":"req_1"}`,
		},
		{
			"output length", apierr.ContextLength(190000, 16000, 200000), [2]int{400, 400},
			`{"error":{"message":"This model's maximum context length is 200000 tokens. However, you requested 206000 tokens (190000 in the messages, 16000 in the completion). Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"max_tokens","code":"context_length_exceeded"}}`,
			`{"type":"error","error":{"type":"invalid_request_error","message":"input length and ` + "`max_tokens`" + ` exceed context limit: 190000 + 16000 > 200000, decrease input length or ` + "`max_tokens`" + ` and try again"},"request_id":"req_1"}`,
		},
		{
			"overloaded", apierr.Overloaded(0), [2]int{503, 529},
			`{"error":{"message":"The server is overloaded. Please try again later.","type":"server_error","param":null,"code":"server_overloaded"}}`,
			`{"type":"error","error":{"type":"overloaded_error","message":"The server is overloaded. Please try again later."},"request_id":"req_1"}`,
		},
		{
			"engine failed", apierr.EngineFailed(errors.New("dial tcp 10.0.0.7:8000")), [2]int{502, 500},
			`{"error":{"message":"Server error: the engine failed while it was answering.","type":"server_error","param":null,"code":null}}`,
			`{"type":"error","error":{"type":"api_error","message":"Server error: the engine failed while it was answering."},"request_id":"req_1"}`,
		},
		{
			"no such route", &apierr.Error{Why: event.NotFound, Code: "unknown_url", Message: "Invalid URL (POST /v2/x)"}, [2]int{404, 404},
			`{"error":{"message":"Invalid URL (POST /v2/x)","type":"invalid_request_error","param":null,"code":"unknown_url"}}`,
			`{"type":"error","error":{"type":"not_found_error","message":"Invalid URL (POST /v2/x)"},"request_id":"req_1"}`,
		},
		{
			"canceled", apierr.New(event.Canceled, "gone"), [2]int{499, 499},
			`{"error":{"message":"gone","type":"invalid_request_error","param":null,"code":null}}`,
			`{"type":"error","error":{"type":"invalid_request_error","message":"gone"},"request_id":"req_1"}`,
		},
		{
			"invalid", apierr.Invalid("n", "n must be %d", 1), [2]int{400, 400},
			`{"error":{"message":"n must be 1","type":"invalid_request_error","param":"n","code":null}}`,
			`{"type":"error","error":{"type":"invalid_request_error","message":"n must be 1"},"request_id":"req_1"}`,
		},
		{
			"no message, invalid UTF-8", &apierr.Error{Why: event.Internal, Code: "\xff"}, [2]int{500, 500},
			`{"error":{"message":"The request failed.","type":"server_error","param":null,"code":"` + "\uFFFD" + `"}}`,
			`{"type":"error","error":{"type":"api_error","message":"The request failed."},"request_id":"req_1"}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.openai, string(c.e.AppendBody(nil, apierr.OpenAI, "req_1")))
			require.Equal(t, c.claude, string(c.e.AppendBody(nil, apierr.Anthropic, "req_1")))
			require.Equal(t, c.status, [2]int{c.e.HTTPStatus(apierr.OpenAI), c.e.HTTPStatus(apierr.Anthropic)})
			require.NotContains(t, string(c.e.AppendBody(nil, apierr.Anthropic, "")), "request_id")
			require.True(t, json.Valid(c.e.AppendResponseError(nil)))
		})
	}
}

func TestErrorTypes(t *testing.T) {
	for _, c := range []struct {
		e              apierr.Error
		openai, claude string
		status         int // for both styles; 0 skips the check
	}{
		{apierr.Error{Code: "invalid_api_key"}, "authentication_error", "authentication_error", 401},
		{apierr.Error{Status: 402}, "invalid_request_error", "billing_error", 402},
		{apierr.Error{Code: "permission_denied"}, "permission_error", "permission_error", 403},
		{apierr.Error{Code: "method_not_allowed"}, "invalid_request_error", "invalid_request_error", 405},
		{apierr.Error{Code: "rate_limit_exceeded"}, "rate_limit_error", "rate_limit_error", 429},
		{apierr.Error{Code: "insufficient_quota"}, "rate_limit_error", "rate_limit_error", 429},
		{apierr.Error{Code: apierr.CodeTimeout}, "server_error", "timeout_error", 504},
		{apierr.Error{Why: event.Canceled}, "invalid_request_error", "invalid_request_error", 499},
		{apierr.Error{Why: event.Why(200)}, "server_error", "api_error", 500},
		{apierr.Error{Status: 503}, "server_error", "overloaded_error", 503},
	} {
		require.Equal(t, c.openai, c.e.Type(apierr.OpenAI), c.e)
		require.Equal(t, c.claude, c.e.Type(apierr.Anthropic), c.e)
		require.Equal(t, c.status, c.e.HTTPStatus(apierr.OpenAI))
		require.Equal(t, c.status, c.e.HTTPStatus(apierr.Anthropic))
	}
}

func TestRetryAfter(t *testing.T) {
	require.Equal(t, "3", apierr.Overloaded(2100*time.Millisecond).RetryAfterHeader(apierr.OpenAI))
	require.Equal(t, "1", apierr.Overloaded(0).RetryAfterHeader(apierr.Anthropic))
	require.Equal(t, "", apierr.ModelNotFound("x").RetryAfterHeader(apierr.OpenAI))
}

func TestResponseCodes(t *testing.T) {
	for want, e := range map[string]*apierr.Error{
		"context_length_exceeded": apierr.ContextLength(2, 0, 1),
		"insufficient_quota":      {Code: "insufficient_quota"},
		"rate_limit_exceeded":     apierr.Overloaded(0),
		"invalid_prompt":          apierr.Invalid("", "no"),
		"server_error":            apierr.EngineFailed(nil),
	} {
		require.Equal(t, want, e.ResponseCode())
	}
}

// own is an error of another package that provides its public form.
type own struct{}

func (own) Error() string           { return "internals" }
func (own) APIError() *apierr.Error { return apierr.ModelNotFound("m") }

func TestFrom(t *testing.T) {
	require.Nil(t, apierr.Wrap(nil))
	e := apierr.TooLarge(5)
	require.Same(t, e, apierr.Wrap(fmt.Errorf("read: %w", e)))
	require.Equal(t, "model_not_found", apierr.Wrap(fmt.Errorf("x: %w", own{})).Code)
	require.Equal(t, event.Canceled, apierr.Wrap(fmt.Errorf("x: %w", context.Canceled)).Why)
	require.Equal(t, 504, apierr.Wrap(context.DeadlineExceeded).HTTPStatus(apierr.OpenAI))

	secret := errors.New("dial tcp 10.0.0.7:8000")
	unknown := apierr.Wrap(secret)
	require.Equal(t, 500, unknown.HTTPStatus(apierr.OpenAI))
	require.NotContains(t, string(unknown.AppendBody(nil, apierr.OpenAI, "")), "10.0.0.7")
	require.ErrorIs(t, unknown, secret)
	require.Contains(t, unknown.Error(), "10.0.0.7", "logs see the cause")
	require.Equal(t, unknown.Message, unknown.Text(apierr.Anthropic))
}

// TestThreadNotFound checks that the code is repeated where Anthropic's SDKs read it.
func TestThreadNotFound(t *testing.T) {
	e := apierr.Error{Why: event.NotFound, Code: "thread_not_found", Param: "thread", Message: "No thread."}
	require.Equal(t, `{"type":"error","error":{"type":"not_found_error","message":"No thread.","details":{"error_code":"thread_not_found"}},"request_id":"req_1"}`,
		string(e.AppendBody(nil, apierr.Anthropic, "req_1")))
}

func TestFromBlock(t *testing.T) {
	for _, c := range []struct {
		in     error
		status int
		code   string
		param  string
	}{
		{&block.Error{Kind: block.Malformed, Path: "messages[1]", Offset: 9, Msg: "unexpected end"}, 400, "invalid_json", "messages[1]"},
		{&block.Error{Kind: block.Malformed, Path: "model", Offset: 9}, 400, "invalid_json", "model"},
		{&block.Error{Kind: block.WrongType, Path: "n", Offset: 3, Msg: "must be a number"}, 400, "", "n"},
		{&block.Error{Kind: block.LimitPassed, Limit: "body bytes", Max: 10}, 413, "request_too_large", ""},
		{&block.Error{Kind: block.LimitPassed, Path: "tools", Limit: "tools", Max: 10}, 400, "", "tools"},
		{&block.Error{Kind: block.Unsupported, Path: "messages[0]"}, 400, apierr.CodeUnsupported, "messages[0]"},
		{&block.Error{Kind: block.Stale}, 500, "", ""},
		{&block.Error{Kind: block.Unsupported, Path: "seed", Offset: -1, Msg: "has no equal"}, 400, apierr.CodeUnsupported, "seed"},
	} {
		got := apierr.Wrap(fmt.Errorf("decode: %w", c.in))
		require.Equal(t, c.status, got.HTTPStatus(apierr.OpenAI), c.in)
		require.Equal(t, c.code, got.Code, c.in)
		require.Equal(t, c.param, got.Param, c.in)
		require.ErrorIs(t, got, c.in)
	}
	got := apierr.Wrap(&block.Error{Kind: block.Malformed, Path: "messages[1]", Offset: 9, Msg: "unexpected end"})
	require.Equal(t, "The body of your request cannot be read: messages[1]: unexpected end at byte 9", got.Message)

	// An error of the decoder itself, so that a renamed limit fails the test.
	_, err := chat.Decode([]byte(`{"model":"m","messages":[]}`), &block.Limits{Body: 5})
	require.Error(t, err)
	require.Equal(t, 413, apierr.Wrap(err).HTTPStatus(apierr.Anthropic))
}

func ExampleError_AppendBody() {
	e := apierr.ContextLength(210000, 0, 200000)
	fmt.Println(e.HTTPStatus(apierr.Anthropic))
	fmt.Printf("%s\n", e.AppendBody(nil, apierr.Anthropic, "req_7"))
	// Output:
	// 400
	// {"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"},"request_id":"req_7"}
}

// TestFromEvent checks that the code of an upstream error reaches a client of another API.
func TestFromEvent(t *testing.T) {
	e := event.Event{Kind: event.Error, Why: event.Invalid, Data: []byte("Too long."), ID: []byte(apierr.CodeContextLength)}
	require.Equal(t, apierr.CodeContextLength, apierr.EventError(&e).ResponseCode())
	var c event.Collector
	c.Add(e)
	require.Equal(t, apierr.CodeContextLength, c.Code)
}

// TestWrapBodyLimit checks that the error of http.MaxBytesReader becomes status 413.
func TestWrapBodyLimit(t *testing.T) {
	_, err := io.ReadAll(http.MaxBytesReader(httptest.NewRecorder(), io.NopCloser(strings.NewReader("12345")), 4))
	for _, err := range []error{err, fmt.Errorf("read: %w", err)} {
		e := apierr.Wrap(err)
		require.Equal(t, http.StatusRequestEntityTooLarge, e.HTTPStatus(apierr.Anthropic))
		require.Contains(t, e.Message, "4 bytes")
	}
}

// An error does not repeat a cause that its message ends with.
func TestErrorText(t *testing.T) {
	cause := errors.New("template: messages is empty")
	require.EqualError(t, &apierr.Error{Why: event.Invalid, Message: "Cannot render: " + cause.Error(), Cause: cause}, "invalid: Cannot render: template: messages is empty")
	require.EqualError(t, &apierr.Error{Why: event.Invalid, Message: "Cannot render.", Cause: cause}, "invalid: Cannot render: template: messages is empty")
}
