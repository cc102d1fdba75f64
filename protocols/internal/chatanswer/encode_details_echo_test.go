// SPDX-License-Identifier: Apache-2.0

package chatanswer_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/chatanswer"
	"github.com/weft-go/weft/protocols/internal/race"
	"github.com/weft-go/weft/protocols/messages"
	"github.com/weft-go/weft/protocols/wire"
)

// This file tests responses that clients return. The merging of the deltas of reasoning_details follows the behavior of
// existing clients.

type entry = map[string]any

// gatherers merge the entries of a stream, chunk by chunk.
var gatherers = map[string]func(list []entry, chunk []entry) []entry{
	// Many small programs: all entries, unmodified.
	"as they came": func(list, chunk []entry) []entry { return append(list, chunk...) },
	// openai-python, lib/streaming/_deltas.py, before it sorted the first chunk: the index is an index in the list, and
	// strings are joined.
	"openai-python": func(list, chunk []entry) []entry {
		if list == nil {
			return chunk
		}
		for _, e := range chunk {
			i := int(e["index"].(float64))
			if i >= len(list) {
				list = append(list, e)
				continue
			}
			for k, v := range e {
				old, ok := list[i][k].(string)
				if s, is := v.(string); ok && is && k != "type" {
					list[i][k] = old + s
				} else {
					list[i][k] = v
				}
			}
		}
		return list
	},
	// @openrouter/ai-sdk-provider, chat/index.ts: adjacent text is joined regardless of the index; the first signature
	// takes precedence.
	"ai sdk": func(list, chunk []entry) []entry {
		for _, e := range chunk {
			if n := len(list); e["type"] == "reasoning.text" && n > 0 && list[n-1]["type"] == "reasoning.text" {
				last := list[n-1]
				last["text"] = strOf(last["text"]) + strOf(e["text"])
				if last["signature"] == nil && e["signature"] != nil {
					last["signature"] = e["signature"]
				}
				continue
			}
			list = append(list, maps.Clone(e))
		}
		return list
	},
	// Roo Code, api/providers/openrouter.ts: one entry for each type and index, and only known fields.
	"roo code": func(list, chunk []entry) []entry {
		for _, e := range chunk {
			i := slices.IndexFunc(list, func(x entry) bool { return x["type"] == e["type"] && x["index"] == e["index"] })
			if i < 0 {
				list = append(list, entry{"type": e["type"], "index": e["index"]})
				i = len(list) - 1
			}
			for _, k := range []string{"text", "summary", "data"} {
				if s, ok := e[k].(string); ok {
					list[i][k] = strOf(list[i][k]) + s
				}
			}
			for _, k := range []string{"id", "format", "signature"} {
				if e[k] != nil {
					list[i][k] = e[k]
				}
			}
		}
		return list
	},
	// LangChain, merge_lists: entries are merged by index, and the first type is kept.
	"langchain": func(list, chunk []entry) []entry {
		for _, e := range chunk {
			i := slices.IndexFunc(list, func(x entry) bool { return x["index"] == e["index"] })
			if i < 0 {
				list = append(list, maps.Clone(e))
				continue
			}
			for k, v := range e {
				if s, ok := v.(string); ok && k != "type" {
					list[i][k] = strOf(list[i][k]) + s
				}
			}
		}
		return list
	},
}

func strOf(v any) string { s, _ := v.(string); return s }

// drawnAnswer draws a response of reasoning, text and calls in any order.
func drawnAnswer(t *rapid.T) (events []event.Event) {
	events = append(events, event.Event{Kind: event.Start})
	calls, part := int32(0), int32(-1)
	why := event.Stop
	for range rapid.IntRange(1, 7).Draw(t, "parts") {
		part++
		switch rapid.SampledFrom([]string{"r", "r", "t", "c"}).Draw(t, "kind") {
		case "r":
			n := rapid.IntRange(1, 3).Draw(t, "deltas")
			for i := range n {
				events = append(events, event.Event{Kind: event.Reasoning, Part: part, Data: fmt.Appendf(nil, "r%d.%d ", part, i)})
			}
			if rapid.IntRange(0, 3).Draw(t, "signed") == 0 {
				events = append(events, event.Event{
					Kind: event.Signature, Part: part, Data: fmt.Appendf(nil, "sig%d", part),
					Flags: rapid.SampledFrom([]event.Flags{0, event.Encrypted}).Draw(t, "flags"),
				})
			}
		case "t":
			events = append(events, event.Event{Kind: event.Text, Part: part, Data: fmt.Appendf(nil, "t%d", part)})
		case "c":
			events = append(events,
				event.Event{Kind: event.ToolStart, Part: part, Call: calls, Data: []byte("f")},
				event.Event{Kind: event.ToolArgs, Part: part, Call: calls, Data: fmt.Appendf(nil, `{"n":%d}`, calls)},
				event.Event{Kind: event.ToolEnd, Part: part, Call: calls, Flags: event.Complete})
			calls++
			why = event.ToolCalls
		}
	}
	return append(events, event.Event{Kind: event.Finish, Part: part + 1, Why: why})
}

// run is a run of reasoning with its position.
type run struct {
	Text         string
	After        bool // text
	Calls        int
	Sig, Encrypt string
}

func runsOf(a *event.Answer) (out []run, interleaved bool) {
	var at run
	for _, b := range a.Blocks {
		switch b.Kind {
		case event.Text:
			at.After = true
		case event.ToolStart:
			at.Calls++
		case event.Reasoning:
			r := at
			r.Text = string(b.Data)
			if b.Flags.Has(event.Encrypted) {
				r.Encrypt = string(b.Signature)
			} else {
				r.Sig = string(b.Signature)
			}
			interleaved = interleaved || r.After || r.Calls > 0
			out = append(out, r)
		}
	}
	return out, interleaved
}

// flat joins adjacent runs, because a stream does not separate runs whose entries were sent late.
func flat(list []run) (out []run) {
	for _, r := range list {
		r.Sig, r.Encrypt, r.Text = "", "", strings.ReplaceAll(r.Text, "\n", "")
		if n := len(out); n > 0 && out[n-1].After == r.After && out[n-1].Calls == r.Calls {
			out[n-1].Text += r.Text
			continue
		}
		out = append(out, r)
	}
	return out
}

// chunksOf returns the deltas of a stream.
func chunksOf(t require.TestingT, stream []byte) (out []map[string]any) {
	for _, data := range payloads(stream) {
		var chunk struct {
			Choices []struct{ Delta map[string]any }
		}
		require.NoError(t, json.Unmarshal(data, &chunk))
		for _, c := range chunk.Choices {
			out = append(out, c.Delta)
		}
	}
	return out
}

// TestDetailsEchoed checks that every kind of client returns the order, text and signatures of interleaved responses.
func TestDetailsEchoed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		events := drawnAnswer(rt)
		opt := chatanswer.Options{
			ID: "chatcmpl-1", Model: "m", Signer: testSigner,
			ReasoningDetails: rapid.SampledFrom([]chatanswer.DetailsMode{chatanswer.DetailsInterleaved, chatanswer.DetailsAlways}).Draw(rt, "mode"),
		}
		var c event.Collector
		c.Add(events...)
		want, interleaved := runsOf(&c.Answers[0])
		s := chatanswer.NewEncoder(opt)
		var stream []byte
		for _, e := range events {
			stream = s.Append(stream, scrub(e)...)
		}
		stream = s.Finish(stream)
		whole := chatanswer.AppendResponse(nil, &c, opt)
		if opt.ReasoningDetails == chatanswer.DetailsInterleaved && !interleaved { // equal to a response without details
			opt.ReasoningDetails = chatanswer.DetailsNever
			require.Equal(rt, string(encode(opt, events)), string(stream))
			require.Equal(rt, string(chatanswer.AppendResponse(nil, &c, opt)), string(whole))
			return
		}
		if len(want) == 0 {
			return
		}
		var answer struct {
			Choices []struct{ Message map[string]any }
		}
		require.NoError(rt, json.Unmarshal(whole, &answer))
		check := func(client string, message map[string]any) {
			body, err := json.Marshal(map[string]any{"messages": []any{entry{"role": "user", "content": "q"}, message, entry{"role": "user", "content": "n"}}})
			require.NoError(rt, err)
			r, err := chat.Decode(body, nil)
			require.NoError(rt, err)
			found, err := wire.CheckReasoning(r, testSigner)
			require.NoError(rt, err)
			require.Empty(rt, slices.DeleteFunc(found, func(f wire.ReasoningCheck) bool { return f.Verdict.String() != "forged" }), "%s: %s", client, body)
			var got []run
			var at run
			for _, b := range r.Turns()[1].Blocks {
				switch b.Kind {
				case block.Text:
					at.After = true
				case block.ToolCall:
					at.Calls++
				case block.Reasoning:
					x := at
					x.Text, x.Encrypt = b.Text, b.Encrypted
					if strings.HasPrefix(b.Signature, "sig") {
						x.Sig = b.Signature
					}
					got = append(got, x)
				}
			}
			require.Empty(rt, cmp.Diff(want, got), "%s: %s", client, body)
		}
		check("whole", answer.Choices[0].Message)
		for name, gather := range gatherers {
			message := maps.Clone(answer.Choices[0].Message)
			var list []entry
			for _, delta := range chunksOf(rt, stream) {
				if chunk, ok := delta["reasoning_details"].([]any); ok {
					var entries []entry
					for _, e := range chunk {
						entries = append(entries, e.(entry))
					}
					list = gather(list, entries)
				}
			}
			message["reasoning_details"] = list
			check(name, message)
		}

		// If the engine is a server with this encoder, the events preserve the order.
		for _, src := range [][]byte{stream, whole} {
			var back event.Collector
			for e, err := range pull(bytes.NewReader(src), nil) {
				require.NoError(rt, err)
				back.Add(e)
			}
			got, _ := runsOf(&back.Answers[0])
			plain := flat(want)
			got = flat(got)
			require.Empty(rt, cmp.Diff(plain, got), "%s", src)
		}
	})
}

// TestDetailsEncoded encodes the runs of a request of another API as details, after several pieces of text.
func TestDetailsEncoded(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := 0
		content := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) entry {
			n++
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				return entry{"type": "text", "text": fmt.Sprint("t", n)}
			case 1:
				return entry{"type": "tool_use", "id": fmt.Sprint("c", n), "name": "f", "input": entry{}}
			case 2:
				return entry{"type": "redacted_thinking", "data": fmt.Sprint("d", n)}
			}
			return entry{"type": "thinking", "thinking": fmt.Sprint("r", n), "signature": rapid.SampledFrom([]string{"", "s"}).Draw(t, "signature")}
		}), 1, 8).Draw(rt, "content")
		body, err := json.Marshal(entry{"messages": []any{entry{"role": "user", "content": "q"}, entry{"role": "assistant", "content": content}, entry{"role": "user", "content": "n"}}})
		require.NoError(rt, err)
		from, err := messages.Decode(body, nil)
		require.NoError(rt, err)
		out, _, err := chat.AppendRequest(nil, from, nil)
		require.NoError(rt, err)
		to, err := chat.Decode(out, nil)
		require.NoError(rt, err)
		places := func(r *block.Request) (list []string) {
			texts, calls := 0, 0
			for _, b := range r.Turns()[1].Blocks {
				switch b.Kind {
				case block.Text:
					texts++
				case block.ToolCall:
					calls++
				case block.Reasoning:
					list = append(list, fmt.Sprint(b.Text, b.Signature, b.Encrypted, b.Redacted, texts, calls))
				}
			}
			return list
		}
		require.Empty(rt, cmp.Diff(places(from), places(to)), "%s\n%s", body, out)
	})
}

// TestDetailsRead decodes lists of earlier versions, of other servers, and of clients that merge too much or nothing.
func TestDetailsRead(t *testing.T) {
	for name, c := range map[string]struct{ list, want string }{
		"the sparse form of before": {`{"type":"reasoning.text","index":0,"text":"a"},{"type":"reasoning.text","index":2,"text":"b"}`, "a t b c0 c1"},
		"dense, without places":     {`{"type":"reasoning.text","index":0,"text":"a"},{"type":"reasoning.text","index":1,"text":"b"}`, "a b t c0 c1"},
		"without index":             {`{"type":"reasoning.text","text":"a"},{"type":"reasoning.text","text":"b"}`, "a b t c0 c1"},
		"deltas as they came":       {`{"type":"reasoning.text","index":0,"text":"a"},{"type":"reasoning.text","index":0,"text":"b"},{"type":"reasoning.text","index":0,"signature":"s"}`, "ab/s t c0 c1"},
		"a place":                   {`{"type":"reasoning.text","index":0,"text":"a"},{"type":"reasoning.text","index":1,"id":"weft1p.0.1.x.0.1","text":"b"}`, "a c0 b t c1"},
		"after text and a call":     {`{"type":"reasoning.text","index":0,"id":"weft1p.1.1.","text":"b"}`, "t c0 b c1"},
		"after more than there is":  {`{"type":"reasoning.text","index":0,"id":"weft1p.9.2147483647.","text":"b"}`, "t c0 c1 b"},
		"backwards":                 {`{"type":"reasoning.text","index":0,"id":"weft1p.1.1.","text":"a"},{"type":"reasoning.text","index":1,"id":"weft1p.0.0.","text":"b"}`, "t c0 a b c1"},
		"an id of somebody else":    {`{"type":"reasoning.text","index":0,"id":"weft1p.1.x","text":"b"},{"type":"reasoning.text","index":3,"id":"rs_1","text":"d"}`, "b t c0 d c1"},
		"an id strung together":     {`{"type":"reasoning.text","index":0,"id":"weft1p.0.1.x.0.0weft1p.0.1.x.0.0","text":"b"}`, "c0 b t c1"},
		"text in an encrypted one":  {`{"type":"reasoning.encrypted","index":0,"text":"a","data":"E"}`, "a/E t c0 c1"},
		"nothing in between":        {`{"type":"reasoning.text","index":0,"text":"a"},{"type":"reasoning.encrypted","index":1,"data":""},{"type":"reasoning.text","index":2,"id":"weft1p.0.0.x","text":"b"}`, "a b t c0 c1"},
	} {
		t.Run(name, func(t *testing.T) {
			body := `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"t","reasoning_details":[` + c.list + `],"tool_calls":[` +
				`{"id":"c0","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}]}`
			r, err := chat.Decode([]byte(body), nil)
			require.NoError(t, err)
			var got []string
			for _, b := range r.Turns()[1].Blocks {
				s := b.Text + b.CallID
				if b.Signature+b.Encrypted != "" {
					s += "/" + b.Signature + b.Encrypted
				}
				got = append(got, s)
			}
			require.Equal(t, c.want, strings.Join(got, " "))
		})
	}
}

// TestDetailsEdited checks that deltas that a client did not merge are one run, also when it is edited.
func TestDetailsEdited(t *testing.T) {
	body := `{"messages":[{"role":"assistant","content":"t","reasoning_content":"ab","reasoning_details":[{"type":"reasoning.text","index":0,"text":"a"},` +
		`{"type":"reasoning.text","index":0,"text":"b"},{"type":"reasoning.text","index":0,"signature":"s"}]}]}`
	for name, c := range map[string]struct {
		change func(b *block.Block)
		want   string
	}{
		"text":      {func(b *block.Block) { b.Text = "x" }, `"reasoning_content":"x","reasoning_details":[{"type":"reasoning.text","index":0,"text":"x","signature":"s"}]`},
		"signature": {func(b *block.Block) { b.Signature = "y" }, `"reasoning_content":"ab","reasoning_details":[{"type":"reasoning.text","index":0,"text":"ab","signature":"y"}]`},
		"both":      {func(b *block.Block) { b.Text, b.Signature = "x", "" }, `"reasoning_content":"x","reasoning_details":[{"type":"reasoning.text","index":0,"text":"x","signature":""}]`},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := chat.Decode([]byte(body), nil)
			require.NoError(t, err)
			b := r.Turns()[0].Blocks[0]
			at := b.At
			c.change(&b)
			require.NoError(t, r.Set(at, b))
			out, _, err := chat.AppendRequest(nil, r, nil)
			require.NoError(t, err)
			require.Equal(t, `{"messages":[{"role":"assistant","content":"t",`+c.want+`}]}`, string(out))
		})
	}
}

// TestDetailsInterleavedAllocs checks that deltas of reasoning do not allocate while a response may still become
// interleaved.
func TestDetailsInterleavedAllocs(t *testing.T) {
	if race.Enabled {
		t.Skip("allocations are not counted under race")
	}
	s := chatanswer.NewEncoder(chatanswer.Options{ID: "chatcmpl-1", Model: "m", ReasoningDetails: chatanswer.DetailsInterleaved})
	delta := event.Event{Kind: event.Reasoning, Data: []byte("some words")}
	buf := s.Append(make([]byte, 0, 1<<12), event.Event{Kind: event.Start}, delta)
	allocs := testing.AllocsPerRun(1000, func() { buf = s.Append(buf[:0], delta) })
	require.Less(t, allocs, 0.1, "only the text that is kept grows")
}

func ExampleDetailsMode() {
	var c event.Collector
	c.Add(
		event.Event{Kind: event.Reasoning, Data: []byte("one")},
		event.Event{Kind: event.ToolStart, Part: 1, ID: []byte("c0"), Data: []byte("f")},
		event.Event{Kind: event.ToolEnd, Part: 1, Flags: event.Complete},
		event.Event{Kind: event.Reasoning, Part: 2, Data: []byte("two")},
		event.Event{Kind: event.Text, Part: 3, Data: []byte("Done.")},
		event.Event{Kind: event.Finish, Why: event.ToolCalls},
	)
	body := chatanswer.AppendResponse(nil, &c, chatanswer.Options{ID: "chatcmpl-1", Model: "m", ReasoningDetails: chatanswer.DetailsInterleaved})

	// The client returns the message.
	var answer struct {
		Choices []struct{ Message json.RawMessage }
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		panic(err)
	}
	r, err := chat.Decode(fmt.Appendf(nil, `{"messages":[%s]}`, answer.Choices[0].Message), nil)
	if err != nil {
		panic(err)
	}
	for _, b := range r.Turns()[0].Blocks {
		fmt.Println(b.Kind, b.Text+b.Name)
	}
	// Output:
	// reasoning one
	// tool_call f
	// reasoning two
	// text Done.
}
