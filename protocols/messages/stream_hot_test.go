// SPDX-License-Identifier: Apache-2.0

package messages_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/streamtest"
	"github.com/weft-go/weft/protocols/messages"
)

// TestShortWay shows that deltas that take the short way give the bytes of the long one: an event that says nothing between
// any two of them makes all of them take the long one.
func TestShortWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := streamtest.Any(t)
		if rapid.Bool().Draw(t, "in order") {
			events = streamtest.Events(t, 2, true)
		}
		opt := messages.StreamOptions{ID: "msg_1", Model: "m", WholeCalls: rapid.Bool().Draw(t, "whole")}
		short, long := messages.NewStream(opt), messages.NewStream(opt)
		var a, b []byte
		for _, e := range events {
			a = short.Append(a, e)
			b = long.Append(b, e, event.Event{Kind: event.Usage})
		}
		a, b = short.Close(a), long.Close(b)
		if string(a) != string(b) {
			t.Fatalf("short:\n%s\nlong:\n%s", a, b)
		}
	})
}
