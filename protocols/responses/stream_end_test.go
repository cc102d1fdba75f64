// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/responses"
)

// TestNothingFollowsTheEnd sees deltas of the run that was open at the end of a stream come to nothing.
func TestNothingFollowsTheEnd(t *testing.T) {
	text := event.Event{Kind: event.Text, Call: -1, Data: []byte("a")}
	args := event.Event{Kind: event.ToolArgs, Part: 1, Data: []byte("1")}
	for _, open := range [][]event.Event{
		{text, text},
		{{Kind: event.ToolStart, Part: 1, Data: []byte("get")}, args, args},
	} {
		for name, end := range map[string]func(s *responses.Stream) []byte{
			"close": func(s *responses.Stream) []byte { return s.Close(nil) },
			"fail":  func(s *responses.Stream) []byte { return s.Fail(nil, apierr.New(event.EngineFailed, "broken")) },
		} {
			t.Run(name, func(t *testing.T) {
				s := responses.NewStream(responses.StreamOptions{ID: "resp_1", Model: "m"})
				s.Append(nil, open...)
				require.NotEmpty(t, end(s))
				require.Empty(t, s.Append(nil, open[len(open)-1], text, args))
				require.Empty(t, end(s))
			})
		}
	}
}
