// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
)

// message returns the server's message of an error in the middle of a stream.
func message(t require.TestingT, err error) string {
	var e struct {
		Error struct{ Message string }
	}
	if s, ok := errors.AsType[*ssestream.StreamError](err); ok {
		require.NoError(t, json.Unmarshal(s.Event.Data, &e))
		return e.Error.Message
	}
	if s, ok := errors.AsType[*anthropic.Error](err); ok {
		require.NoError(t, json.Unmarshal([]byte(s.RawJSON()), &e))
		return e.Error.Message
	}
	if s, ok := errors.AsType[failedResponse](err); ok {
		return s.Response.Error.Message
	}
	require.Fail(t, "no SDK error", "%T %v", err, err)
	return ""
}

// text returns the message of an error in the words of one API.
func text(t *testing.T, e *apierr.Error, s apierr.Style) string {
	var body struct{ Error struct{ Message string } }
	require.NoError(t, json.Unmarshal(e.AppendBody(nil, s, ""), &body))
	return body.Error.Message
}

// TestFailures sees what the SDKs tell of errors in the middle of a stream.
func TestFailures(t *testing.T) {
	d := newDesk(t)
	for _, test := range []struct {
		name       string
		err        *apierr.Error
		openAI     string // type
		code       string // of the responses API
		claude     string // type
		openAICode string
	}{
		{"engine", apierr.New(event.EngineFailed, "The engine failed."), "server_error", "server_error", "api_error", ""},
		{"overloaded", apierr.New(event.Overloaded, "Too busy."), "server_error", "rate_limit_exceeded", "overloaded_error", ""},
		{"internal", apierr.New(event.Internal, "Oops."), "server_error", "server_error", "api_error", ""},
		{"context", apierr.ContextLength(300, 0, 200), "invalid_request_error", "context_length_exceeded", "invalid_request_error", "context_length_exceeded"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, a := range apis {
				enc := a.encoder(setup{}, true)
				out := enc.Append(nil, begin(some).think("a").text("b").open(0, "get", "", `{"x":`).events...)
				d.stream(enc.Fail(out, test.err))
				_, err := a.stream(t, d)
				switch a {
				case chatAPI:
					s, ok := errors.AsType[*ssestream.StreamError](err)
					require.True(t, ok, "%v", err)
					var e struct {
						Error struct {
							Message, Type string
							Param, Code   *string
						}
					}
					require.NoError(t, json.Unmarshal(s.Event.Data, &e))
					require.Equal(t, test.openAI, e.Error.Type)
					require.Equal(t, text(t, test.err, apierr.OpenAI), e.Error.Message)
					if test.openAICode != "" {
						require.Equal(t, test.openAICode, *e.Error.Code)
					}
				case responsesAPI:
					s, ok := errors.AsType[failedResponse](err)
					require.True(t, ok, "%v", err)
					require.EqualValues(t, test.code, s.Response.Error.Code)
					require.Equal(t, text(t, test.err, apierr.OpenAI), s.Response.Error.Message)
					require.Len(t, s.Output, 2, "the items that were done")
				case messagesAPI:
					s, ok := errors.AsType[*anthropic.Error](err)
					require.True(t, ok, "%v", err)
					require.EqualValues(t, test.claude, s.Type())
					require.Equal(t, text(t, test.err, apierr.Anthropic), message(t, err))
				}
			}
		})
	}
}

// TestFailedWhole sees a response of the responses API that failed as a whole. The other APIs return an HTTP error.
func TestFailedWhole(t *testing.T) {
	d := newDesk(t)
	d.whole(responsesAPI.whole(setup{}, begin(some).text("a").fail(event.EngineFailed, "The engine failed.").events))
	_, err := responsesAPI.read(t, d)
	s, ok := errors.AsType[failedResponse](err)
	require.True(t, ok, "%v", err)
	require.EqualValues(t, "server_error", s.Response.Error.Code)
	require.Equal(t, "a", s.OutputText())
}
