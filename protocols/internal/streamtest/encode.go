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

// Writer is a stream encoder of any API.
type Writer interface {
	Append(dst []byte, events ...event.Event) []byte
	Close(dst []byte) []byte
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

// CheckEnd sees deltas of the run that was open at the end of a stream come to nothing.
func CheckEnd(t *testing.T, writer func() Writer) {
	text := event.Event{Kind: event.Text, Call: -1, Data: []byte("a")}
	args := event.Event{Kind: event.ToolArgs, Part: 1, Data: []byte("1")}
	for _, open := range [][]event.Event{
		{text, text},
		{{Kind: event.ToolStart, Part: 1, Data: []byte("get")}, args, args},
	} {
		for name, end := range map[string]func(s Writer) []byte{
			"close": func(s Writer) []byte { return s.Close(nil) },
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

// CheckShortWay shows that deltas that take the short way give the bytes of the long one: an event that says nothing between
// any two of them makes all of them take the long one. writer takes the option to send calls whole.
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
		a, b = short.Close(a), long.Close(b)
		if string(a) != string(b) {
			t.Fatalf("short:\n%s\nlong:\n%s", a, b)
		}
	})
}
