// SPDX-License-Identifier: Apache-2.0

package streamtest

import (
	"encoding/json"
	"errors"
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
	isOpen := func(call int32) bool {
		_, ok := open[call]
		return ok
	}
	for i, e := range events {
		check := func(ok bool, want string) { // require formats its messages and calls Helper even if nothing fails
			if !ok {
				require.Fail(t, want, "event %d, %v", i, e)
			}
		}
		check(!ended, "no event after the end")
		check(e.Choice == 0, "choice 0")
		check((i == 0) == (e.Kind == event.Start || i == 0 && e.Kind == event.Error), "a start or an error first, and no other start")
		switch e.Kind {
		case event.Start, event.Usage:
			check(e.Call == -1, "no call")
			check(e.Kind == event.Start || e.Usage != nil, "counts")
			continue
		case event.Finish, event.Error:
			check(e.Why != event.None, "a reason")
			check(len(open) == 0, "no open calls")
			ended = true
			continue
		case event.ToolStart:
			check(len(e.Data) > 0, "a name")
			check(!isOpen(e.Call), "a call that is not open")
			open[e.Call] = e
		case event.ToolArgs:
			check(isOpen(e.Call), "an open call")
			check(len(e.Data) > 0, "data")
			args[e.Call] += string(e.Data)
		case event.ToolEnd:
			check(e.Flags.Has(event.Complete), "the flag Complete")
			check(isOpen(e.Call), "an open call")
			if a := strings.TrimSpace(args[e.Call]); !e.Flags.Has(event.Custom) && a != "" {
				check(a[0] == '{' && json.Valid([]byte(a)), "arguments that are an object, not "+a)
			}
			delete(open, e.Call)
		case event.ToolAbort:
			check(e.Why != event.None, "a reason")
			check(string(open[e.Call].Data) == string(e.Data), "the name of the call's start")
			delete(open, e.Call)
		}
		switch e.Kind {
		case event.ToolStart, event.ToolArgs, event.ToolEnd, event.ToolAbort:
			check(e.Call <= calls, "calls numbered in order")
			calls = max(calls, e.Call+1)
		default:
			check(e.Call == -1, "no call")
		}
		check(e.Part <= parts, "parts numbered in order")
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
