// SPDX-License-Identifier: Apache-2.0

package streamtest

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
)

// Writer is implemented by the stream encoders of all APIs.
type Writer interface {
	Append(dst []byte, events ...event.Event) []byte
	Finish(dst []byte) []byte
	Fail(dst []byte, e *apierr.Error) []byte
}

var update = flag.Bool("update", false, "rewrite the golden files")

// Golden compares got with the file name in testdata, or, with -update, writes it.
func Golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o777))
		require.NoError(t, os.WriteFile(path, got, 0o666))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(string(want), string(got)))
}

// CheckEnd checks that deltas after the end of a stream are ignored, even for the run that was open.
func CheckEnd(t *testing.T, writer func() Writer) {
	text := event.Event{Kind: event.Text, Call: -1, Data: []byte("a")}
	args := event.Event{Kind: event.ToolArgs, Part: 1, Data: []byte("1")}
	for _, open := range [][]event.Event{
		{text, text},
		{{Kind: event.ToolStart, Part: 1, Data: []byte("get")}, args, args},
	} {
		for name, end := range map[string]func(s Writer) []byte{
			"close": func(s Writer) []byte { return s.Finish(nil) },
			"fail":  func(s Writer) []byte { return s.Fail(nil, apierr.New(event.EngineFailed, "broken")) },
		} {
			t.Run(name, func(t *testing.T) {
				s := writer()
				s.Append(nil, open...)
				require.NotEmpty(t, end(s))
				require.Empty(t, s.Append(nil, open[len(open)-1], text, args))
				require.Empty(t, end(s))
			})
		}
	}
}

// CheckShortWay checks that the fast path for deltas gives the same bytes as the slow path, which an event without
// effect between any two deltas forces. The argument of writer is the option to send whole calls.
func CheckShortWay(t *testing.T, writer func(wholeCalls bool) Writer) {
	rapid.Check(t, func(t *rapid.T) {
		events := Any(t)
		if rapid.Bool().Draw(t, "in order") {
			events = Events(t, 2, true)
		}
		whole := rapid.Bool().Draw(t, "whole")
		short, long := writer(whole), writer(whole)
		var a, b []byte
		for _, e := range events {
			a = short.Append(a, e)
			b = long.Append(b, e, event.Event{Kind: event.Usage})
		}
		a, b = short.Finish(a), long.Finish(b)
		if string(a) != string(b) {
			t.Fatalf("short:\n%s\nlong:\n%s", a, b)
		}
	})
}
