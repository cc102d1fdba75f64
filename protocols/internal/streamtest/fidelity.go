// SPDX-License-Identifier: Apache-2.0

package streamtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/streamdec"
)

// This file is structured as follows: streams as split by a client's event parser, then the table of deviations that
// break clients, then the test that runs it. The cases are in provoke.go.

// A Frame is the part of a stream between two blank lines.
type Frame struct {
	Comment string         // text of a comment, else ""
	Type    string         // value of the event line, or ""
	Data    string         // value of the data line
	JSON    map[string]any // Data, decoded; nil if not an object
}

// Edit changes the object of the frame.
func (f *Frame) Edit(change func(o map[string]any)) {
	change(f.JSON)
	data, err := json.Marshal(f.JSON)
	if err != nil {
		panic(err)
	}
	f.Data = string(data)
}

// Clone returns a deep copy of f.
func (f *Frame) Clone() Frame {
	c := Frame{Comment: f.Comment, Type: f.Type, Data: f.Data}
	_ = json.Unmarshal([]byte(c.Data), &c.JSON)
	return c
}

// At returns the value at a path of field names and array indexes, or nil.
func (f *Frame) At(path ...any) any { return At(f.JSON, path...) }

// At returns the value at a path in v, or nil.
func At(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			o, _ := v.(map[string]any)
			v = o[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

// Str returns the string at a path, or "".
func (f *Frame) Str(path ...any) string { s, _ := f.At(path...).(string); return s }

// Int returns the number at a path, or -1.
func (f *Frame) Int(path ...any) int {
	if n, ok := f.At(path...).(float64); ok {
		return int(n)
	}
	return -1
}

// Frames splits a stream. It does not validate the frames; checks do.
func Frames(stream []byte) (out []Frame) {
	text := strings.ReplaceAll(string(stream), "\r\n", "\n")
	for part := range strings.SplitSeq(strings.TrimSuffix(text, "\n\n"), "\n\n") {
		var f Frame
		for line := range strings.SplitSeq(part, "\n") {
			switch key, value, _ := strings.Cut(line, ":"); key {
			case "":
				f.Comment += line
			case "event":
				f.Type = strings.TrimPrefix(value, " ")
			case "data":
				f.Data += strings.TrimPrefix(value, " ")
			}
		}
		_ = json.Unmarshal([]byte(f.Data), &f.JSON) // JSON remains nil if Data is not an object
		if f.Comment != "" || f.Type != "" || f.Data != "" {
			out = append(out, f)
		}
	}
	return out
}

// Bytes returns frames as a stream.
func Bytes(frames []Frame) (out []byte) {
	for _, f := range frames {
		if f.Comment != "" {
			out = append(out, f.Comment+"\n"...)
		}
		if f.Type != "" {
			out = append(out, "event: "+f.Type+"\n"...)
		}
		if f.Data != "" {
			out = append(out, "data: "+f.Data+"\n"...)
		}
		out = append(out, '\n')
	}
	return out
}

// A Stream is a stream with the events that were encoded.
type Stream struct {
	Raw    []byte
	Frames []Frame // without comments
	Events []event.Event
	Answer event.Collector // of Events
}

// Read returns the Stream for the output of an encoder of events.
func Read(raw []byte, events []event.Event) *Stream {
	s := &Stream{Raw: raw, Events: events}
	ended := map[[2]int32]bool{}
	for _, e := range events {
		call := [2]int32{e.Choice, e.Call}
		switch e.Kind {
		case event.ToolStart:
			e.Flags &^= event.Complete // valid only in a ToolEnd
			delete(ended, call)
		case event.ToolEnd:
			if ended[call] { // what ends a call again does not make it complete
				continue
			}
			ended[call] = true
		}
		s.Answer.Add(e)
	}
	s.Frames = slices.DeleteFunc(Frames(raw), func(f Frame) bool { return f.Comment != "" })
	return s
}

// Last returns the last frame.
func (s *Stream) Last() *Frame {
	if len(s.Frames) == 0 {
		return &Frame{}
	}
	return &s.Frames[len(s.Frames)-1]
}

// Serve returns the stream that w encodes. A choice that does not end was cut off by the engine.
func Serve(w Writer, events []event.Event, one bool) []byte {
	out := w.Append(nil, events...)
	if failed(events, one) {
		return w.Fail(out, streamdec.CutError())
	}
	return w.Finish(out)
}

// Failed reports whether the response fails, by an event.Error or because it was cut off. one specifies that only
// choice 0 is encoded.
func (s *Stream) Failed(one bool) bool { return failed(s.Events, one) }

func failed(events []event.Event, one bool) bool {
	seen, finished := 0, map[int32]bool{}
	for i := range events {
		switch e := &events[i]; {
		case e.Kind == event.Error:
			return true
		case e.Kind == event.Usage || e.Choice < 0 || e.Choice >= 1024:
		default:
			seen = max(seen, int(e.Choice)+1)
			if e.Kind == event.Finish {
				finished[e.Choice] = true
			}
		}
	}
	if one {
		return !finished[0]
	}
	return seen == 0 || len(finished) < seen
}

// Unreadable returns the number of calls of a choice whose arguments a client may be unable to parse: aborted or
// incomplete calls, and calls whose arguments are not JSON.
func (s *Stream) Unreadable(choice int) (n int) {
	if choice >= len(s.Answer.Answers) {
		return 0
	}
	for _, b := range s.Answer.Answers[choice].Blocks {
		if b.Kind == event.ToolStart || b.Kind == event.ToolAbort {
			args := bytes.TrimSpace(b.Data)
			if b.Kind != event.ToolStart || !b.Flags.Has(event.Complete) || len(args) > 0 && !json.Valid(args) {
				n++
			}
		}
	}
	return n
}

// A Row is a deviation from an API that breaks a client or was tested with some.
type Row struct {
	// Name describes the deviation, in the words of the table that lists it.
	Name string
	// Check returns an error if a stream has the deviation.
	Check func(s *Stream) error
	// Mutate adds the deviation to a stream, if possible. It may modify the frames.
	Mutate func(frames []Frame) []Frame
	// Elsewhere names the test of a row that does not concern encoders.
	Elsewhere string
}

// Encoder is a named function that encodes events as a stream.
type Encoder struct {
	Name    string
	Encode  func(events []event.Event) []byte
	Choices int // maximum number of choices
}

// Fidelity runs the check of every row on the streams that the encoders make of the worked example, of sequences that
// provoke deviations, and of random ones. It also applies the mutation of the row and expects its check to fail.
func Fidelity(t *testing.T, rows []Row, encoders ...Encoder) {
	type sample struct {
		encoder, name string
		events        []event.Event
		raw           []byte
		read          *Stream
	}
	var samples []sample
	for _, enc := range encoders {
		for _, c := range Provoking() {
			raw := enc.Encode(c.Events)
			samples = append(samples, sample{enc.Name, c.Name, c.Events, raw, Read(raw, c.Events)})
		}
	}
	// Sequences that a row is damaged in, of those in which it can be.
	damaged := 4
	switch {
	case testing.Short():
		damaged = 1
	case os.Getenv("WEFT_TEST") == "long":
		damaged = len(samples)
	}
	seen := map[string]bool{}
	for _, row := range rows {
		require.False(t, seen[row.Name], "row %q twice", row.Name)
		seen[row.Name] = true
		t.Run(row.Name, func(t *testing.T) {
			if row.Elsewhere != "" {
				t.Skip("tested in " + row.Elsewhere)
			}
			caught := 0
			for _, s := range samples {
				require.NoError(t, row.Check(s.read), "%s, %s:\n%s", s.encoder, s.name, s.raw)
				if caught == damaged {
					continue
				}
				bad := Bytes(row.Mutate(Frames(s.raw)))
				if bytes.Equal(bad, s.raw) {
					continue
				}
				require.Error(t, row.Check(Read(bad, s.events)), "%s, %s: not noticed in\n%s", s.encoder, s.name, bad)
				caught++
			}
			require.Positive(t, caught, "the check never had to say no")
			rapid.Check(t, func(rt *rapid.T) {
				enc := rapid.SampledFrom(encoders).Draw(rt, "encoder")
				var events []event.Event
				if rapid.Bool().Draw(rt, "well-formed") {
					events = Events(rt, rapid.IntRange(1, max(enc.Choices, 1)).Draw(rt, "n"), true)
				} else {
					events = Any(rt)
				}
				raw := enc.Encode(events)
				require.NoError(rt, row.Check(Read(raw, events)), "%s:\n%s", enc.Name, raw)
			})
		})
	}
}

// Complete checks that rows are those of the table under a heading of the notes on clients, in the same order. It skips
// the test if the directory of shared test data is absent.
func Complete(t *testing.T, heading string, rows []Row) {
	dir := os.Getenv("WEFT_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	text, err := os.ReadFile(filepath.Join(dir, "research", "clients.md"))
	if err != nil {
		t.Skip("no notes on clients in " + dir)
	}
	_, table, ok := strings.Cut(string(text), "### "+heading+"\n")
	require.True(t, ok, "no heading %q", heading)
	table, _, _ = strings.Cut(table, "\n\n")
	var want []string
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "| ") {
			want = append(want, strings.TrimSpace(strings.NewReplacer("**", "", "`", "").Replace(strings.Split(line, "|")[1])))
		}
	}
	want = want[1:] // column names
	for i := range want {
		require.Less(t, i, len(rows), "no row for %q", want[i])
		require.Contains(t, want[i], rows[i].Name)
	}
	require.Len(t, rows, len(want))
}

// Fail returns an error with the index and data of the frame that deviates.
func Fail(i int, f *Frame, format string, args ...any) error {
	return fmt.Errorf("frame %d: %s: %s", i, fmt.Sprintf(format, args...), f.Data)
}

// Unless returns "" if ok, else complaint.
func Unless(ok bool, complaint string) string {
	if ok {
		return ""
	}
	return complaint
}

// Want returns nil if ok, else complaint as an error.
func Want(ok bool, complaint string) error {
	if ok {
		return nil
	}
	return errors.New(complaint)
}

// Each returns a check of a stream that calls check for every frame.
func Each(check func(i int, f *Frame) string) func(*Stream) error {
	return func(s *Stream) error {
		for i := range s.Frames {
			if bad := check(i, &s.Frames[i]); bad != "" {
				return Fail(i, &s.Frames[i], "%s", bad)
			}
		}
		return nil
	}
}

// On returns a check of a stream that calls check for the frames of a type.
func On(typ string, check func(f *Frame) string) func(*Stream) error {
	return Each(func(_ int, f *Frame) string {
		if f.Type != typ {
			return ""
		}
		return check(f)
	})
}

// Count returns the number of frames that match.
func Count(s *Stream, match func(f *Frame) bool) (n int) {
	for i := range s.Frames {
		if match(&s.Frames[i]) {
			n++
		}
	}
	return n
}

// Drop returns a mutation that removes the frames that match.
func Drop(match func(f *Frame) bool) func([]Frame) []Frame {
	return func(frames []Frame) []Frame {
		return slices.DeleteFunc(frames, func(f Frame) bool { return match(&f) })
	}
}

// Change returns a mutation that changes the objects of the frames that match.
func Change(match func(f *Frame) bool, change func(o map[string]any)) func([]Frame) []Frame {
	return func(frames []Frame) []Frame {
		for i := range frames {
			if f := &frames[i]; f.JSON != nil && match(f) {
				f.Edit(change)
			}
		}
		return frames
	}
}

// OfType returns a function that matches events of the given types.
func OfType(types ...string) func(*Frame) bool {
	return func(f *Frame) bool { return slices.Contains(types, f.Type) }
}
