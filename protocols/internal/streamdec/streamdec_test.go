// SPDX-License-Identifier: Apache-2.0

package streamdec

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/race"
)

func TestDoc(t *testing.T) {
	var d Doc
	root, err := d.Parse([]byte(`{"a":"plain","b":"es\"c","n":3,"x":"\ud83d\ude00"}`), nil)
	require.NoError(t, err)
	a, b, x := d.Text(root.Get("a")), d.Text(root.Get("b")), d.Text(root.Get("x"))
	require.Equal(t, `plain es"c 😀`, string(a)+" "+string(b)+" "+string(x))
	require.Equal(t, "kept", string(d.Keep([]byte("kept"))))
	require.Nil(t, d.Text(root.Get("n")))
	require.Nil(t, d.Text(root.Get("none")))
	require.EqualValues(t, 3, Int(root.Get("n")))
	require.Zero(t, Int(root.Get("a")))
	require.EqualError(t, Wrong(root.Get("n"), "a string"), "n: a string was expected, not a number at byte 29")

	for _, c := range []struct {
		in   string
		lim  *block.Limits
		kind block.ErrorKind
	}{
		{`{"a":`, nil, block.Malformed},
		{`{"a":1,"a":2}`, nil, block.Malformed},
		{"\"\xff\"", nil, block.Malformed},
		{`[[1]]`, &block.Limits{Depth: 1}, block.LimitPassed},
		{`[1,2]`, &block.Limits{Values: 2}, block.LimitPassed},
		{`[1,2]`, &block.Limits{Body: 2}, block.LimitPassed},
	} {
		_, err := d.Parse([]byte(c.in), c.lim)
		require.Equal(t, c.kind, err.(*block.Error).Kind, c.in)
	}
	other := errors.New("other")
	require.Equal(t, other, Fault(other))
}

func TestDocAllocs(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	var d Doc
	data := []byte(`{"a":["x\n",{"b":"y\t"}],"c":null}`)
	run := func() {
		root, err := d.Parse(data, nil)
		if err != nil || len(d.Text(root.Get("a").First())) != 2 {
			t.Fatal(err)
		}
	}
	run()
	require.Zero(t, testing.AllocsPerRun(100, run))

	// The memory of a large document is not kept.
	_, err := d.Parse([]byte("["+strings.Repeat("1,", 100_000)+"1]"), nil)
	require.NoError(t, err)
	run()
	run()
	require.Zero(t, testing.AllocsPerRun(100, run))
}

func TestArgState(t *testing.T) {
	for in, want := range map[string]string{
		``: "empty", ` `: "empty", `{}`: "complete", ` [ ] `: "complete", `"a`: "", `"a"`: "complete", `"\u00zz"`: "broken", `"\u00e9"`: "complete",
		`12`: "complete", `1.`: "", `1.5e`: "", `1.5e+`: "", `1.5e+3`: "complete", `-`: "", `-0`: "complete", `01`: "broken", `+1`: "broken",
		`tru`: "", `true`: "complete", `trux`: "broken", `{"a":1}`: "complete", `{"a":1}}`: "broken", `{"a":1,}`: "broken", `{"a" 1}`: "broken",
		`[1,]`: "broken", `[1 2]`: "broken", `{"a":[{"b":null}],"c":"\\\""}`: "complete", `{} {}`: "broken", "\"\n\"": "broken", `{a:1}`: "broken",
		`[1}`: "broken", `{"a":1]`: "broken", `nul`: "", `null x`: "broken", `"\q"`: "broken", `{"k\u0041\n":-1.0E-9}`: "complete", `[-]`: "broken", `[1.]`: "broken",
	} {
		var a, b ArgState
		a.Feed([]byte(in))
		got := ""
		switch {
		case a.Empty():
			got = "empty"
		case a.Complete():
			got = "complete"
		case a.Broken():
			got = "broken"
		}
		require.Equal(t, want, got, in)
		for i := range len(in) {
			b.Feed([]byte(in[i : i+1]))
		}
		require.Equal(t, a, b, in)
	}
	var deep ArgState
	deep.Feed(bytes.Repeat([]byte("["), MaxDepth))
	require.False(t, deep.Broken())
	whole := deep
	whole.Feed(bytes.Repeat([]byte("]"), MaxDepth))
	require.True(t, whole.Complete())
	deep.Feed([]byte("["))
	require.True(t, deep.Broken())
}

// complete is the reference implementation of ArgState.Complete.
func complete(text []byte) bool { return json.Valid(text) }

// prefix reports whether one of a few suffixes makes text complete.
func prefix(text []byte) bool {
	for _, tail := range []string{"", "}", "]", `"`, "0", "1}", "1]", ":1}", `":1}`, `"}`, `"]`, `"a":1}`, "rue", "ue", "e", "alse", "lse", "se", "ull", "ll", "l", "0\"", "00\"", "000\"", "0000\"", "n\""} {
		if complete(append(text[:len(text):len(text)], tail...)) {
			return true
		}
	}
	return false
}

func TestArgStateDrawn(t *testing.T) {
	piece := rapid.SampledFrom([]string{`{`, `}`, `[`, `]`, `"a"`, `"`, `:`, `,`, ` `, `1`, `-`, `.5`, `e+2`, `0`, `true`, `nul`, `l`, `\`, `\u00`, `e9`, `n`, "\n", "é"})
	rapid.Check(t, func(rt *rapid.T) {
		var a ArgState
		var text []byte
		for _, p := range rapid.SliceOfN(piece, 0, 12).Draw(rt, "pieces") {
			a.Feed([]byte(p))
			text = append(text, p...)
			require.Equal(rt, complete(text), a.Complete(), "%s", text)
			if a.Broken() {
				require.False(rt, prefix(text), "%s", text)
			}
		}
	})
}

func FuzzArgState(f *testing.F) {
	f.Add([]byte(`{"a":[1,-0.5e+3,"x\ud83d",true,null]}`), uint8(3))
	f.Fuzz(func(t *testing.T, text []byte, n uint8) {
		var a, b ArgState
		a.Feed(text)
		k := min(int(n), len(text))
		b.Feed(text[:k])
		b.Feed(text[k:])
		require.Equal(t, a, b)
		if a.Complete() != complete(text) && bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) <= MaxDepth {
			t.Fatalf("%q: %v", text, a.Complete())
		}
	})
}

func TestUsage(t *testing.T) {
	for in, want := range map[string]event.Tokens{
		`{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12,"prompt_tokens_details":{"cached_tokens":3,"cache_write_tokens":1,"audio_tokens":9},"completion_tokens_details":{"reasoning_tokens":2}}`: {Prompt: 5, Output: 7, Cached: 3, CacheWrite: 1, Reasoning: 2},
		`{"input_tokens":5,"output_tokens":7,"input_tokens_details":{"cached_tokens":3},"output_tokens_details":{"reasoning_tokens":2}}`:                                                                     {Prompt: 5, Output: 7, Cached: 3, Reasoning: 2},
		`{"prompt_tokens":5,"prompt_tokens_details":null,"completion_tokens_details":{"reasoning_tokens":null}}`:                                                                                             {Prompt: 5},
		`{"prompt_tokens":5,"reasoning_tokens":4,"prompt_cache_hit_tokens":2}`:                                                                                                                               {Prompt: 5, Reasoning: 4, Cached: 2},
		`{"prompt_tokens":-5}`: {},
	} {
		var d Doc
		root, err := d.Parse([]byte(in), nil)
		require.NoError(t, err)
		var got event.Tokens
		require.True(t, Usage(root, &got), in)
		require.Empty(t, cmp.Diff(want, got), in)
	}
	var d Doc
	for _, in := range []string{`{}`, `null`, `[1]`, `{"x":1}`} {
		root, err := d.Parse([]byte(in), nil)
		require.NoError(t, err)
		require.False(t, Usage(root, &event.Tokens{}), in)
	}
}

func TestErrors(t *testing.T) {
	var d Doc
	for in, want := range map[string]string{
		`{"error":{"message":"m","code":429}}`: `error "m" why=overloaded`,
		`"text"`:                               `error "text" why=engine_failed`,
		`plain \xff`:                           `error "plain \\xff" why=engine_failed`,
		"\xff":                                 `error "�" why=engine_failed`,
		` `:                                    `error "The engine gave up the answer." why=engine_failed`,
		`{"a":1}`:                              `error "{\"a\":1}" why=engine_failed`,
	} {
		require.Equal(t, want, ErrorLine(&d, []byte(in), nil).String())
	}
	require.Equal(t, event.EngineFailed, CutEvent().Why)
}

func TestFinish(t *testing.T) {
	for reason, want := range map[string]string{
		"stop": "stop", "eos_token": "stop", "length": "length", "model_length": "context_full", "tool_calls": "tool_calls", "function_call": "tool_calls",
		"content_filter": "content_filter", "stop_sequence": "stop_sequence", "refusal": "refusal", "pause_turn": "paused", "whatever": "stop",
		"error": "engine_failed failed", "abort": "engine_failed failed", "insufficient_system_resource": "overloaded failed",
	} {
		why, failed := Finish(reason)
		got := why.String()
		if failed {
			got += " failed"
		}
		require.Equal(t, want, got)
	}
}

// lines is a decoder whose events hold the data of the stream.
type lines struct{ ended bool }

func (l *lines) Append(dst []event.Event, _, data []byte) ([]event.Event, error) {
	if string(data) == "bad" {
		return dst, errors.New("bad")
	}
	l.ended = string(data) == "end"
	return append(dst, event.Event{Kind: event.Text, Data: data}), nil
}

func (l *lines) Finish(dst []event.Event) []event.Event {
	return append(dst, event.Event{Kind: event.Finish})
}
func (l *lines) Ended() bool { return l.ended }

func TestPull(t *testing.T) {
	whole := func(dst []event.Event, body []byte) ([]event.Event, error) {
		return append(dst, event.Event{Kind: event.Opaque, Data: body}), nil
	}
	broken := errors.New("broken")
	for _, c := range []struct {
		src  io.Reader
		want string
	}{
		{strings.NewReader("data: a\n\n: comment\n\ndata: b\n\n"), `text "a", text "b", finish`},
		{iotest.OneByteReader(strings.NewReader("data: a\n\ndata: b")), `text "a", text "b", finish`},
		{iotest.DataErrReader(strings.NewReader("data: a\n\ndata: bad")), `text "a", finish`},
		{strings.NewReader("data: bad\n\ndata: a\n\n"), `bad`},
		{strings.NewReader("data: bad\n\n"), `bad`},
		{strings.NewReader("data: end\n\ndata: a\n\n"), `text "end", finish`},
		{strings.NewReader("\xEF\xBB\xBF\r\n {\"a\":1}"), `opaque "\r\n {\"a\":1}"`},
		{strings.NewReader(""), `finish`},
		{iotest.ErrReader(broken), `read: broken before the first byte`},
		{io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(broken)), `text "a", sse: read: broken after 1 event (16 bytes)`},
		{io.MultiReader(strings.NewReader(`{"a":`), iotest.ErrReader(broken)), `read: broken after 5 bytes`},
	} {
		var got []string
		for e, err := range Pull(c.src, &lines{}, nil, whole) {
			if err != nil {
				got = append(got, err.Error())
				continue
			}
			got = append(got, e.String())
		}
		require.Equal(t, c.want, strings.Join(got, ", "))
	}
	for range Pull(strings.NewReader("data: a\n\ndata: b\n\n"), &lines{}, nil, nil) {
		break
	}
}

func BenchmarkArgState(b *testing.B) {
	text := []byte(`{"path":"/srv/app/main.go","content":"package main\n\nfunc main() {\n\tprintln(\"hello\")\n}\n","n":[1,2,3.5]}`)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		var a ArgState
		a.Feed(text)
	}
}
