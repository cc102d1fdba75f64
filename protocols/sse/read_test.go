// SPDX-License-Identifier: Apache-2.0

package sse_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/internal/race"
	"github.com/weft-go/weft/protocols/sse"
)

// got is a copy of an event.
type got struct {
	Type, Data string
	Comment    bool
	Err        string
}

func drain(r *sse.Reader, out []got) []got {
	for {
		ev, ok, err := r.Next()
		switch {
		case err != nil:
			out = append(out, got{Err: err.Error()})
		case !ok:
			return out
		default:
			out = append(out, got{Type: string(ev.Type), Data: string(ev.Data), Comment: ev.Comment})
		}
	}
}

// read adds the pieces one by one and returns copies of the events.
func read(r sse.Reader, pieces ...[]byte) (out []got) {
	for _, p := range pieces {
		r.Add(p)
		out = drain(&r, out)
	}
	r.Finish()
	return drain(&r, out)
}

func TestReader(t *testing.T) {
	for _, c := range []struct {
		name, in string
		r        sse.Reader
		want     []got
	}{
		{name: "plain", in: "data: a\n\n", want: []got{{Data: "a"}}},
		{name: "type and data", in: "event: ping\ndata: {}\n\n", want: []got{{Type: "ping", Data: "{}"}}},
		{name: "type does not outlive its event", in: "event: x\ndata: 1\n\ndata: 2\n\n",
			want: []got{{Type: "x", Data: "1"}, {Data: "2"}}},
		{name: "CRLF", in: "data: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n", want: []got{{Data: "a\nb"}, {Data: "c"}}},
		{name: "CR", in: "data: a\rdata: b\r\rdata: c\r\r", want: []got{{Data: "a\nb"}, {Data: "c"}}},
		{name: "mixed line ends", in: "data: a\r\ndata: b\rdata: c\n\r\n", want: []got{{Data: "a\nb\nc"}}},
		{name: "byte order mark", in: "\xEF\xBB\xBFdata: a\n\n", want: []got{{Data: "a"}}},
		{name: "byte order mark only once", in: "data: a\n\n\xEF\xBB\xBFdata: b\n\n", want: []got{{Data: "a"}}},
		{name: "one space is stripped", in: "data:  a\n\ndata:b\n\n", want: []got{{Data: " a"}, {Data: "b"}}},
		{name: "only the field name", in: "data\n\ndata\ndata\n\ndata:\n\n",
			want: []got{{}, {Data: "\n"}, {}}},
		{name: "lines join in place", in: "data: one\nevent: t\ndata:two\n: c\ndata: three\n\n",
			want: []got{{Comment: true, Data: "c"}, {Type: "t", Data: "one\ntwo\nthree"}}},
		{name: "no data, no event", in: "event: x\n\nid: 1\n\ndata: a\n\n", want: []got{{Data: "a"}}},
		{name: "comments", in: ": hi\n\n:\n\n:there\ndata: a\n\n",
			want: []got{{Comment: true, Data: "hi"}, {Comment: true}, {Comment: true, Data: "there"}, {Data: "a"}}},
		{name: "id stays, NUL is refused", in: "id: 7\ndata: a\n\ndata: b\n\nid: x\x00\ndata: c\n\nid\ndata: d\n\n",
			want: []got{{Data: "a"}, {Data: "b"}, {Data: "c"}, {Data: "d"}}},
		{name: "unknown fields", in: "foo: 1\ndatax: 2\ndata: a\nDATA: b\n\n", want: []got{{Data: "a"}}},
		{name: "cut event is discarded", in: "data: a\n\ndata: b\n", want: []got{{Data: "a"}}},
		{name: "cut event is flushed", in: "data: a\n\ndata: b\n", r: sse.Reader{FlushAtEOF: true},
			want: []got{{Data: "a"}, {Data: "b"}}},
		{name: "cut line is flushed", in: "event: x\ndata: [DO", r: sse.Reader{FlushAtEOF: true}, want: []got{{Type: "x", Data: "[DO"}}},
		{name: "nothing to flush", in: "event: x\n", r: sse.Reader{FlushAtEOF: true}},
		{name: "limit", in: "data: 1\n\ndata: 2345\ndata: 6\n\ndata: 7\n\n", r: sse.Reader{MaxEvent: 8},
			want: []got{{Data: "1"}, {Err: "sse: event exceeds 8 bytes at offset 17"}, {Data: "7"}}},
		{name: "limit in the last line", in: "data: 12\n\ndata: 3\n\n", r: sse.Reader{MaxEvent: 8},
			want: []got{{Err: "sse: event exceeds 8 bytes at offset 8"}, {Data: "3"}}},
		{name: "limit with CRLF", in: "data: 12345678\r\n\r\ndata: 3\r\n\r\n", r: sse.Reader{MaxEvent: 9},
			want: []got{{Err: "sse: event exceeds 9 bytes at offset 9"}, {Data: "3"}}},
		{name: "limit is not reached by comments", in: ": 12345\n: 12345\ndata: 1\n\n", r: sse.Reader{MaxEvent: 8},
			want: []got{{Comment: true, Data: "12345"}, {Comment: true, Data: "12345"}, {Data: "1"}}},
		{name: "UTF-8 is not looked at", in: "data: \xff\xe2\x82\n\n", want: []got{{Data: "\xff\xe2\x82"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := []byte(c.in)
			require.Empty(t, cmp.Diff(c.want, read(c.r, in)))
			var bytewise [][]byte
			for i := range in {
				bytewise = append(bytewise, in[i:i+1])
				require.Empty(t, cmp.Diff(c.want, read(c.r, in[:i], in[i:])), "cut at %d", i)
			}
			require.Empty(t, cmp.Diff(c.want, read(c.r, bytewise...)), "byte by byte")
		})
	}
}

func TestReaderEndsAtOnce(t *testing.T) {
	var r sse.Reader
	r.Add([]byte("data: a\r\n\r"))
	ev, ok, err := r.Next()
	require.NoError(t, err)
	require.True(t, ok, "an event must not wait for the LF after its last CR")
	require.Equal(t, "a", string(ev.Data))
}

func TestDone(t *testing.T) {
	for in, want := range map[string]bool{
		"data: [DONE]\n\n": true, "data:[DONE]\n\n": true, "data:  [DONE]\n\n": false, "data: [DONE]\ndata: x\n\n": false,
		": [DONE]\n\n": false, "data: {\"t\":\"[DONE]\"}\n\n": false,
	} {
		r := sse.Reader{}
		r.Add([]byte(in))
		ev, ok, err := r.Next()
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, want, ev.Done(), in)
	}
}

func TestReaderReset(t *testing.T) {
	r := sse.Reader{FlushAtEOF: true}
	r.Add([]byte("id: 1\ndata: cut"))
	drain(&r, nil)
	r.Reset()
	r.Add([]byte("data: a"))
	r.Finish()
	require.Empty(t, cmp.Diff([]got{{Data: "a"}}, drain(&r, nil)))
}

func TestEvents(t *testing.T) {
	in := strings.Repeat("data: a\n\n: c\n\n", 5000) + "data: " + strings.Repeat("x", 100_000) + "\n\ndata: b"
	for name, src := range map[string]func() io.Reader{
		"whole":    func() io.Reader { return strings.NewReader(in) },
		"data err": func() io.Reader { return iotest.DataErrReader(strings.NewReader(in)) },
		"half":     func() io.Reader { return iotest.HalfReader(strings.NewReader(in)) },
	} {
		t.Run(name, func(t *testing.T) {
			r := sse.Reader{FlushAtEOF: true}
			n, big := 0, 0
			for ev, err := range r.Events(src()) {
				require.NoError(t, err)
				n++
				big = max(big, len(ev.Data))
			}
			require.Equal(t, 10_002, n)
			require.Equal(t, 100_000, big)
		})
	}
	t.Run("error", func(t *testing.T) {
		boom := errors.New("boom")
		for in, want := range map[string]string{
			"":                                 "after 0 events (0 bytes)",
			"data: a\n\nid: 1\n\n:c\n\nda":     "after 1 event (22 bytes)",
			strings.Repeat("data: a\n\n", 5e4): "after 50000 events (450000 bytes)",
		} {
			var r sse.Reader
			var last error
			for _, err := range r.Events(io.MultiReader(strings.NewReader(in), iotest.ErrReader(boom))) {
				require.NoError(t, last)
				last = err
			}
			require.ErrorIs(t, last, boom)
			require.EqualError(t, last, "sse: read: boom "+want)
		}
	})
	t.Run("no progress", func(t *testing.T) {
		var r sse.Reader
		for _, err := range r.Events(stuck{}) {
			require.ErrorIs(t, err, io.ErrNoProgress)
		}
	})
	t.Run("break", func(t *testing.T) {
		var r sse.Reader
		for range r.Events(strings.NewReader("data: a\n\ndata: b\n\n")) {
			break
		}
		ev, ok, _ := r.Next()
		require.True(t, ok)
		require.Equal(t, "b", string(ev.Data))
	})
	t.Run("limit", func(t *testing.T) {
		r := sse.Reader{MaxEvent: 10}
		var failed error
		var data []string
		for ev, err := range r.Events(strings.NewReader("data: 12345678\n\ndata: b\n\n")) {
			if err != nil {
				failed = err
				continue
			}
			data = append(data, string(ev.Data))
		}
		require.ErrorIs(t, failed, sse.ErrTooBig)
		require.EqualError(t, failed, "sse: event exceeds 10 bytes at offset 10")
		require.Equal(t, []string{"b"}, data)
	})
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

func TestReaderAllocs(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	in := []byte("event: content_block_delta\ndata: {\"type\":\"content_block_delta\"}\n\n: c\n\nid: 5\ndata: a\ndata: b\n\n")
	var r sse.Reader
	run := func() {
		r.Add(in[:30])
		for _, ok, _ := r.Next(); ok; _, ok, _ = r.Next() {
		}
		r.Add(in[30:])
		for _, ok, _ := r.Next(); ok; _, ok, _ = r.Next() {
		}
	}
	for range 100 {
		run()
	}
	require.Zero(t, testing.AllocsPerRun(100, run))
}

func TestReaderMemoryIsBounded(t *testing.T) {
	r := sse.Reader{MaxEvent: 1 << 10}
	piece := bytes.Repeat([]byte("x"), 100)
	r.Add([]byte("data: "))
	errs := 0
	for range 10_000 {
		r.Add(piece)
		for _, g := range drain(&r, nil) {
			require.Equal(t, "sse: event exceeds 1024 bytes at offset 1024", g.Err)
			errs++
		}
	}
	require.Equal(t, 1, errs)
	require.LessOrEqual(t, sse.Held(&r), 1<<10+len(piece))
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("event: a\r\ndata: 1\r\n\r\ndata: 2\n\n: c\ndata: 3"), uint64(1), true, 0)
	f.Add([]byte("\xEF\xBB\xBFid: 3\rdata: 1\rdata\r\r\rretry: 4\n\n"), uint64(7), false, 9)
	f.Fuzz(func(t *testing.T, in []byte, cuts uint64, flush bool, limit int) {
		r := sse.Reader{FlushAtEOF: flush, MaxEvent: limit % 64}
		want := read(r, in)
		var pieces [][]byte
		for rest := in; len(rest) > 0; {
			cuts = cuts*6364136223846793005 + 1442695040888963407
			k := min(int(cuts>>33%7), len(rest))
			pieces = append(pieces, rest[:k])
			rest = rest[k:]
		}
		if d := cmp.Diff(want, read(r, pieces...)); d != "" {
			t.Fatal(d)
		}
	})
}

// FuzzRoundTrip checks that a Reader returns the events that AppendEvent appended.
func FuzzRoundTrip(f *testing.F) {
	f.Add("ping", []byte("{}"))
	f.Add("", []byte("a\r\nb\rc\n"))
	f.Fuzz(func(t *testing.T, typ string, data []byte) {
		if strings.ContainsAny(typ, "\r\n") {
			t.Skip()
		}
		stream := sse.AppendComment(nil, "c\n\nx")
		stream = sse.AppendEvent(stream, typ, data)
		norm := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data))
		want := []got{{Comment: true, Data: "c  x"}, {Type: typ, Data: norm}}
		if d := cmp.Diff(want, read(sse.Reader{}, stream)); d != "" {
			t.Fatal(d)
		}
	})
}

func ExampleReader() {
	var r sse.Reader
	for _, piece := range []string{"event: ping\nda", "ta: {}\n\nda", "ta: [DONE]\n\n"} {
		r.Add([]byte(piece))
		for {
			ev, ok, err := r.Next()
			if err != nil || !ok {
				break
			}
			fmt.Printf("%s %s %v\n", ev.Type, ev.Data, ev.Done())
		}
	}
	// Output:
	// ping {} false
	//  [DONE] true
}

func ExampleReader_Events() {
	body := strings.NewReader("data: one\n\n: keep-alive\n\ndata: two\n\n")
	var r sse.Reader
	for ev, err := range r.Events(body) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if !ev.Comment {
			fmt.Printf("%s\n", ev.Data)
		}
	}
	// Output:
	// one
	// two
}

func ExampleAppendEvent() {
	fmt.Printf("%q\n", sse.AppendEvent(nil, "ping", []byte(`{"type":"ping"}`)))
	// Output:
	// "event: ping\ndata: {\"type\":\"ping\"}\n\n"
}

func BenchmarkReader(b *testing.B) {
	event := sse.AppendEvent(nil, "response.output_text.delta", []byte(`{"type":"response.output_text.delta","sequence_number":26,"item_id":"msg_1_0","output_index":4,"content_index":0,"delta":" word","logprobs":[]}`))
	for _, piece := range []int{len(event), 1 << 12, 1 << 16} {
		b.Run(fmt.Sprintf("piece=%d", piece), func(b *testing.B) {
			in := bytes.Repeat(event, max(1, piece/len(event)))
			var r sse.Reader
			b.ReportAllocs()
			b.SetBytes(int64(len(in)))
			n := 0
			for b.Loop() {
				r.Add(in)
				for _, ok, _ := r.Next(); ok; _, ok, _ = r.Next() {
					n++
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
