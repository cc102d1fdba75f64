// SPDX-License-Identifier: Apache-2.0

package streamtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/streamdec"
	"github.com/weft-go/weft/protocols/sse"
)

// Decoder is implemented by the stream decoders of all APIs.
type Decoder = streamdec.Decoder

// Decode decodes a stream of server-sent events with d and returns copies of the events, including those of Finish, and
// the errors. It makes the checks of [CheckWhole].
func Decode(t require.TestingT, d Decoder, stream []byte) (out []event.Event, errs []error) {
	r := sse.Reader{FlushAtEOF: true}
	r.Add(stream)
	r.Finish()
	var got []event.Event
	keep := func() {
		for i := range got {
			out = append(out, got[i].Clone())
		}
	}
	for {
		ev, ok, err := r.Next()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if !ok {
			break
		}
		if ev.Comment {
			continue
		}
		if got, err = d.Append(got[:0], ev.Type, ev.Data); err != nil {
			CheckError(t, err, len(ev.Data))
			errs = append(errs, err)
		}
		keep()
	}
	got = d.Finish(got[:0])
	keep()
	require.True(t, d.Ended())
	CheckWhole(t, out)
	return out, errs
}

// CheckError checks that err is a *block.Error whose offset is within data of size bytes.
func CheckError(t require.TestingT, err error, size int) {
	e, ok := errors.AsType[*block.Error](err)
	require.True(t, ok, "%T", err)
	require.True(t, e.Offset >= 0 && e.Offset <= int64(size), "offset %d of %d", e.Offset, size)
	require.NotEmpty(t, e.Msg)
}

// CheckWhole checks that events are a complete response as defined by package event: one end and nothing after it,
// calls that open once and end once, arguments inside calls only, complete calls with one JSON object or nothing as
// arguments, and parts and calls numbered in the order in which they open. Unlike [CheckGrammar] it allows parts to
// overlap, as the items and blocks of the Responses and Messages APIs may.
func CheckWhole(t require.TestingT, events []event.Event) {
	open, args := map[int32]event.Event{}, map[int32]string{}
	parts, calls, ended := int32(0), int32(0), false
	for i, e := range events {
		at := fmt.Sprintf("event %d, %v", i, e)
		require.False(t, ended, "%s: behind the end", at)
		require.Zero(t, e.Choice, at)
		require.Equal(t, i == 0, e.Kind == event.Start || i == 0 && e.Kind == event.Error, at)
		switch e.Kind {
		case event.Start, event.Usage:
			require.Equal(t, int32(-1), e.Call, at)
			require.True(t, e.Kind == event.Start || e.Usage != nil, at)
			continue
		case event.Finish, event.Error:
			require.NotEqual(t, event.None, e.Why, at)
			require.Empty(t, open, at)
			ended = true
			continue
		case event.ToolStart:
			require.NotEmpty(t, e.Data, at)
			require.NotContains(t, open, e.Call, at)
			open[e.Call] = e
		case event.ToolArgs:
			require.Contains(t, open, e.Call, at)
			require.NotEmpty(t, e.Data, at)
			args[e.Call] += string(e.Data)
		case event.ToolEnd:
			require.True(t, e.Flags.Has(event.Complete), at)
			require.Contains(t, open, e.Call, at)
			if a := strings.TrimSpace(args[e.Call]); !e.Flags.Has(event.Custom) && a != "" {
				require.True(t, a[0] == '{' && json.Valid([]byte(a)), "%s: %s", at, a)
			}
			delete(open, e.Call)
		case event.ToolAbort:
			require.NotEqual(t, event.None, e.Why, at)
			require.Equal(t, string(open[e.Call].Data), string(e.Data), at)
			delete(open, e.Call)
		}
		switch e.Kind {
		case event.ToolStart, event.ToolArgs, event.ToolEnd, event.ToolAbort:
			require.LessOrEqual(t, e.Call, calls, at)
			calls = max(calls, e.Call+1)
		default:
			require.Equal(t, int32(-1), e.Call, at)
		}
		require.LessOrEqual(t, e.Part, parts, at)
		parts = max(parts, e.Part+1)
	}
	require.True(t, ended, "no end")
}

// Strings returns the strings of events.
func Strings(events []event.Event) []string {
	var out []string
	for i := range events {
		out = append(out, events[i].String())
	}
	return out
}
