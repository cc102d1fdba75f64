// SPDX-License-Identifier: Apache-2.0

package streamtest

import (
	"bytes"
	"encoding/json"
	"io"
	"iter"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/race"
)

// This file holds the common parts of the tests of the decoders: collected responses, JSON in pieces, and complete
// tests.

// Bare returns server-sent events that have only data fields.
func Bare(data ...string) []byte {
	var b []byte
	for _, d := range data {
		b = append(append(append(b, "data: "...), d...), "\n\n"...)
	}
	return b
}

// ExampleData returns the data of the events in testdata/example.sse.
func ExampleData(t require.TestingT) (lines [][]byte) {
	raw, err := os.ReadFile("testdata/example.sse")
	require.NoError(t, err)
	for line := range bytes.Lines(raw) {
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			lines = append(lines, data)
		}
	}
	return lines
}

// Reusable is a Decoder that can be reset.
type Reusable interface {
	Decoder
	Reset()
}

// CheckReuse makes the checks of [Decode] and checks that the decoder returns the same events after a Reset.
func CheckReuse(t require.TestingT, d Reusable, stream []byte) {
	once, _ := Decode(t, d, stream)
	d.Reset()
	again, _ := Decode(t, d, stream)
	require.Empty(t, cmp.Diff(once, again))
}

// FuzzDecoder fuzzes a decoder with streams. Each line of the input is the data of an event. The worked example is also
// a seed.
func FuzzDecoder(f *testing.F, decoder func() Reusable, seeds ...string) {
	f.Add(bytes.Join(ExampleData(f), nil))
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		CheckReuse(t, decoder(), Bare(strings.Split(string(in), "\n")...))
	})
}

// FuzzResponse fuzzes a decoder of responses that are not streamed. The worked example is also a seed.
func FuzzResponse(f *testing.F, decode func(dst []event.Event, body []byte) ([]event.Event, error), seeds ...string) {
	raw, err := os.ReadFile("testdata/example.json")
	require.NoError(f, err)
	f.Add(raw)
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := decode(nil, body)
		if err != nil {
			CheckError(t, err, len(body))
		}
		if len(got) > 0 {
			CheckWhole(t, got)
		}
	})
}

// CheckTwice checks that decoding and encoding a stream twice gives the same bytes as doing it once.
func CheckTwice(t *testing.T, encode func(events []event.Event) []byte, decoder func() Reusable) {
	rapid.Check(t, func(rt *rapid.T) {
		aborted := false
		stream := encode(Events(rt, 1, true))
		for i := range 2 {
			decoded, errs := Decode(rt, decoder(), stream)
			require.Empty(rt, errs)
			for _, e := range decoded {
				aborted = aborted || e.Kind == event.ToolAbort
			}
			again := encode(decoded)
			if i > 0 && !aborted { // the spoiler of an aborted call is added again
				require.Equal(rt, string(stream), string(again))
			}
			stream = again
		}
	})
}

// CheckCuts checks that the decoder reports an error wherever a stream is cut off. With WEFT_TEST=long it cuts at every
// byte, otherwise at every third.
func CheckCuts(t *testing.T, encode func(events []event.Event) []byte, d Reusable) {
	example, err := os.ReadFile("testdata/example.sse")
	require.NoError(t, err)
	streams := [][]byte{example}
	for seed := range 4 {
		streams = append(streams, encode(rapid.Custom(func(t *rapid.T) []event.Event { return Events(t, 1, true) }).Example(seed)))
	}
	step := 3
	switch {
	case testing.Short():
		step = 37
	case os.Getenv("WEFT_TEST") == "long":
		step = 1
	}
	for i, whole := range streams {
		for cut := i % step; cut < len(whole); cut += step {
			d.Reset()
			got, _ := Decode(t, d, whole[:cut])
			if cut < len(whole)-len("\n\n") {
				require.Equal(t, event.Error, got[len(got)-1].Kind, "cut at %d", cut)
			}
		}
	}
}

// CheckAllocs checks that a decoder, after the first rounds, decodes data without allocating. before, if not nil, runs
// first in each round.
func CheckAllocs(t *testing.T, d Decoder, before func(), data ...string) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	lines := make([][]byte, len(data))
	for i, s := range data {
		lines[i] = []byte(s)
	}
	var events []event.Event
	round := func() {
		if before != nil {
			before()
		}
		for _, l := range lines {
			var err error
			if events, err = d.Append(events[:0], nil, l); err != nil {
				t.Fatal(err)
			}
		}
	}
	round()
	round()
	require.Zero(t, testing.AllocsPerRun(100, round))
}

// BenchDecoder decodes a delta and the worked example, and for comparison unmarshals both into a Plain with
// encoding/json.
func BenchDecoder[Plain any](b *testing.B, d Reusable, delta string) {
	for _, c := range []struct {
		name string
		data [][]byte
	}{{"delta", [][]byte{[]byte(delta)}}, {"example", ExampleData(b)}} {
		size := int64(0)
		for _, data := range c.data {
			size += int64(len(data))
		}
		b.Run("stream="+c.name+"/with=weft", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(size)
			var out []event.Event
			d.Reset()
			for b.Loop() {
				for _, data := range c.data {
					var err error
					if out, err = d.Append(out[:0], nil, data); err != nil {
						b.Fatal(err)
					}
				}
				if len(c.data) > 1 {
					d.Reset()
				}
			}
		})
		b.Run("stream="+c.name+"/with=encoding_json", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(size)
			for b.Loop() {
				for _, data := range c.data {
					var v Plain
					if err := json.Unmarshal(data, &v); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// SameAnswer holds the options to compare collected responses, ignoring part numbers.
var SameAnswer = cmp.Options{cmpopts.IgnoreUnexported(event.Block{}), cmpopts.EquateEmpty()}

// Collect returns a Collector of the events.
func Collect(events []event.Event) (c event.Collector) {
	c.Add(events...)
	return c
}

// Pick draws one of the given strings.
func Pick(t *rapid.T, what string, from ...string) string {
	return rapid.SampledFrom(from).Draw(t, what)
}

// Member draws a further field of an object with one of the given values, or nothing.
func Member(t *rapid.T, name string, values ...string) string {
	v := Pick(t, name, append(values, "")...)
	if v == "" {
		return ""
	}
	return `,"` + name + `":` + v
}

// CheckWholeLimits checks that Events of an API applies limits to body, a response that is one JSON document.
func CheckWholeLimits(t *testing.T, body string, events func(src io.Reader, lim *block.Limits) iter.Seq2[event.Event, error]) {
	t.Helper()
	last := func(lim block.Limits) (err error) {
		for _, e := range events(strings.NewReader(body), &lim) {
			err = e
		}
		return err
	}
	require.NoError(t, last(block.Limits{Body: len(body)}))
	for _, lim := range []block.Limits{{Body: len(body) - 1}, {Depth: 2}, {Values: 2}} {
		var e *block.Error
		require.ErrorAs(t, last(lim), &e, "%+v", lim)
		require.Equal(t, block.LimitPassed, e.Kind, "%+v: %v", lim, e)
	}
}
