// SPDX-License-Identifier: Apache-2.0

package messagesanswer_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/callid"
	"github.com/weft-go/weft/protocols/internal/jsonw"
	"github.com/weft-go/weft/protocols/internal/messagesanswer"
	"github.com/weft-go/weft/protocols/internal/race"
	"github.com/weft-go/weft/protocols/internal/streamtest"
	"github.com/weft-go/weft/protocols/replay"
)

func TestStreamExample(t *testing.T) {
	opt := messagesanswer.Options{ID: "msg_1", Model: "demo"}
	s := messagesanswer.NewEncoder(opt)
	stream := s.Finish(s.Append(nil, streamtest.Example()...))
	streamtest.Golden(t, "example.sse", stream)
	var c event.Collector
	c.Add(streamtest.Example()...)
	streamtest.Golden(t, "example.json", append(messagesanswer.AppendResponse(nil, &c, opt), '\n'))
	require.Empty(t, cmp.Diff(rebuild(t, stream).message, decode(t, messagesanswer.AppendResponse(nil, &c, opt))))
}

// contentBlock is a block of a message of any type.
type contentBlock struct {
	Type, Text, Thinking, Signature, ID, Name string
	Input                                     string // JSON text
	Citations                                 []string
	Raw                                       string // of other types
}

type usage struct {
	InputTokens              int64 `json:"input_tokens"`
	CacheCreationInputTokens int64 `json:"cache_creation_input_tokens"`
	CacheReadInputTokens     int64 `json:"cache_read_input_tokens"`
	OutputTokens             int64 `json:"output_tokens"`
	OutputTokensDetails      *struct {
		ThinkingTokens int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

type message struct {
	ID, Type, Role, Model string
	Content               []contentBlock
	StopReason            string
	StopSequence          *string
	Usage                 usage
}

type wireMessage struct {
	ID, Type, Role, Model string
	Content               []json.RawMessage
	StopReason            *string `json:"stop_reason"`
	StopSequence          *string `json:"stop_sequence"`
	Usage                 *usage
}

func parse[T any](t require.TestingT, raw []byte) (v T) {
	require.True(t, utf8.Valid(raw), "%q", raw)
	require.NoError(t, json.Unmarshal(raw, &v), "%s", raw)
	return v
}

// readBlock decodes a block of a message or of a content_block_start.
func readBlock(t require.TestingT, raw []byte) contentBlock {
	b := parse[struct {
		Type, Text, Thinking, Signature, ID, Name string
		Input                                     json.RawMessage
		Citations                                 []json.RawMessage
	}](t, raw)
	out := contentBlock{Type: b.Type, Text: b.Text, Thinking: b.Thinking, Signature: b.Signature, ID: b.ID, Name: b.Name, Input: string(b.Input)}
	for _, c := range b.Citations {
		out.Citations = append(out.Citations, string(c))
	}
	switch b.Type {
	case "text", "thinking", "tool_use", "server_tool_use":
	default:
		out = contentBlock{Type: b.Type, Raw: string(raw)}
	}
	return out
}

func decode(t require.TestingT, raw []byte) message {
	w := parse[wireMessage](t, raw)
	m := message{ID: w.ID, Type: w.Type, Role: w.Role, Model: w.Model, StopReason: *w.StopReason, StopSequence: w.StopSequence, Usage: *w.Usage}
	for _, c := range w.Content {
		m.Content = append(m.Content, readBlock(t, c))
	}
	return m
}

// rebuilt is the result of a client for a stream.
type rebuilt struct {
	message
	start  usage
	opened int
	err    string
}

// rebuild decodes a stream as a strict client does: at most one open block, dense indexes, deltas of the block's kind,
// the signature once and last, one terminal event.
func rebuild(t require.TestingT, stream []byte) (r rebuilt) {
	require.True(t, len(stream) == 0 || strings.HasSuffix(string(stream), "\n\n"))
	var open *contentBlock
	signed, stopped, delta := false, false, false
	for ev := range strings.SplitSeq(strings.TrimSuffix(string(stream), "\n\n"), "\n\n") {
		lines := strings.Split(ev, "\n")
		if strings.HasPrefix(ev, ":") {
			continue
		}
		require.Len(t, lines, 2, "%q", ev)
		typ, ok1 := strings.CutPrefix(lines[0], "event: ")
		data, ok2 := strings.CutPrefix(lines[1], "data: ")
		require.True(t, ok1 && ok2, "%q", ev)
		require.False(t, stopped || r.err != "", "nothing may follow the end: %s", ev)
		e := parse[struct {
			Type         string
			Message      *wireMessage
			Index        *int
			ContentBlock json.RawMessage `json:"content_block"`
			Delta        *struct {
				Type, Text, Thinking, Signature string
				PartialJSON                     string          `json:"partial_json"`
				Citation                        json.RawMessage `json:"citation"`
				StopReason                      string          `json:"stop_reason"`
				StopSequence                    *string         `json:"stop_sequence"`
			}
			Usage *usage
			Error *struct{ Type, Message string }
		}](t, []byte(data))
		require.Equal(t, typ, e.Type)
		if typ == "error" {
			require.NotEmpty(t, e.Error.Message)
			r.err = e.Error.Type
			continue
		}
		require.Equal(t, typ == "message_start", r.ID == "", "message_start must come first and once")
		require.False(t, delta && typ != "message_stop", "only message_stop follows message_delta")
		switch typ {
		case "message_start":
			require.Nil(t, e.Message.StopReason)
			require.Empty(t, e.Message.Content)
			r.message = message{ID: e.Message.ID, Type: e.Message.Type, Role: e.Message.Role, Model: e.Message.Model}
			r.start = *e.Message.Usage
		case "ping":
		case "content_block_start":
			require.Nil(t, open, "two open blocks")
			require.Equal(t, r.opened, *e.Index)
			r.opened++
			b := readBlock(t, e.ContentBlock)
			require.Empty(t, b.Text+b.Thinking+b.Signature)
			if b.Type == "tool_use" || b.Type == "server_tool_use" {
				require.Equal(t, "{}", b.Input)
				require.NotEmpty(t, b.ID)
				b.Input = ""
			}
			open, signed = &b, false
		case "content_block_delta":
			require.NotNil(t, open, "delta outside a block: %s", data)
			require.Equal(t, r.opened-1, *e.Index)
			require.False(t, signed, "delta after the signature")
			d := e.Delta
			want := map[string]string{"text": "text_delta citations_delta", "thinking": "thinking_delta signature_delta", "tool_use": "input_json_delta", "server_tool_use": "input_json_delta"}[open.Type]
			require.Contains(t, strings.Fields(want), d.Type)
			open.Text += d.Text
			open.Thinking += d.Thinking
			open.Signature += d.Signature
			open.Input += d.PartialJSON
			if d.Type == "citations_delta" {
				open.Citations = append(open.Citations, string(d.Citation))
			} else {
				require.NotEmpty(t, d.Text+d.Thinking+d.Signature+d.PartialJSON, "empty delta")
			}
			signed = d.Type == "signature_delta"
		case "content_block_stop":
			require.NotNil(t, open)
			require.Equal(t, r.opened-1, *e.Index)
			require.Equal(t, open.Type == "thinking", signed)
			if (open.Type == "tool_use" || open.Type == "server_tool_use") && open.Input == "" {
				open.Input = "{}"
			}
			r.Content = append(r.Content, *open)
			open = nil
		case "message_delta":
			require.Nil(t, open, "message_delta with an open block")
			delta = true
			r.StopReason, r.StopSequence, r.Usage = e.Delta.StopReason, e.Delta.StopSequence, *e.Usage
			require.NotEmpty(t, r.StopReason)
		case "message_stop":
			require.True(t, delta)
			stopped = true
		default:
			require.Fail(t, "unknown event", typ)
		}
	}
	require.True(t, stopped || r.err != "", "no terminal")
	return r
}

// expect returns the blocks that a client must receive for a. Aborted calls have Type "aborted".
func expect(a *event.Answer, started map[int32]bool, o messagesanswer.Options) (out []contentBlock, calls int) {
	valid := func(b []byte) string { return string(jsonw.AppendValid(nil, b)) }
	for i := range a.Blocks {
		b := &a.Blocks[i]
		switch b.Kind {
		case event.Reasoning:
			if o.Thinking == messagesanswer.ThinkingNone || len(b.Data)+len(b.Signature) == 0 {
				continue
			}
			w := contentBlock{Type: "thinking", Thinking: valid(b.Data), Signature: string(b.Signature)}
			if o.Thinking == messagesanswer.ThinkingOmitted {
				w.Thinking = ""
			}
			out = append(out, w)
		case event.Text, event.Refusal:
			w := contentBlock{Type: "text", Text: valid(b.Data)}
			for _, n := range b.Annotations {
				w.Citations = append(w.Citations, strings.ReplaceAll(string(n), "\n", " "))
			}
			if w.Text != "" || w.Citations != nil {
				out = append(out, w)
			}
		case event.ToolStart, event.ToolAbort:
			complete := b.Kind == event.ToolStart && b.Flags.Has(event.Complete)
			if !started[b.Call] || b.Flags.Has(event.InReasoning) && !o.DispatchInReasoning || !complete && o.WholeCalls {
				continue
			}
			w := contentBlock{Type: "tool_use", Name: b.Name, Input: valid(b.Data)}
			if b.Flags.Has(event.Server) {
				w.Type = "server_tool_use"
			} else if complete {
				calls++
			}
			switch {
			case b.Cut():
				w = contentBlock{Type: "cut", Name: b.Name, Input: `{"input":` + string(jsonw.AppendString(nil, b.Data)) + `}`}
			case !complete:
				w = contentBlock{Type: "aborted", Name: b.Name}
			case b.Flags.Has(event.Custom):
				w.Input = `{"input":` + string(jsonw.AppendString(nil, b.Data)) + `}`
			case w.Input == "":
				w.Input = "{}"
			}
			out = append(out, w)
		case event.ToolResult, event.Opaque:
			if jsonw.IsObject(b.Data) {
				raw := strings.ReplaceAll(string(b.Data), "\n", " ")
				out = append(out, contentBlock{Type: "x_thing", Raw: raw})
			}
		}
	}
	return out, calls
}

func TestStreamProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		events := streamtest.Events(rt, 1, true)
		opt := messagesanswer.Options{
			ID: "msg_r", Model: `de"mo`,
			Thinking:            rapid.SampledFrom([]messagesanswer.Thinking{messagesanswer.ThinkingFull, messagesanswer.ThinkingOmitted, messagesanswer.ThinkingNone}).Draw(rt, "thinking"),
			WholeCalls:          rapid.Bool().Draw(rt, "whole"),
			DispatchInReasoning: rapid.Bool().Draw(rt, "dispatch"),
			Signer:              rapid.SampledFrom([]*replay.Signer{nil, testSigner}).Draw(rt, "signer"),
		}
		s := messagesanswer.NewEncoder(opt)
		var stream []byte
		for i := range events {
			stream = s.Append(stream, scrub(events[i])...)
			if rapid.IntRange(0, 9).Draw(rt, "idle") == 0 {
				stream = s.AppendKeepAlive(stream)
			}
		}
		stream = s.Finish(stream)
		require.Equal(rt, len(stream), len(s.Finish(s.Fail(s.Append(stream, events...), apierr.New(event.Internal, "x")))), "nothing follows the end")
		r := rebuild(rt, stream)
		require.Empty(rt, r.err)

		var c event.Collector
		c.Add(events...)
		a := &c.Answers[0]
		want, calls := expect(a, streamtest.Started(events, 0), opt)
		ids := map[string]bool{}
		var kept []contentBlock
		for i, b := range r.Content {
			require.Less(rt, i, len(want), "unexpected block %v", b)
			w := want[i]
			switch {
			case b.Type == "tool_use" || b.Type == "server_tool_use":
				require.Regexp(rt, `^[a-zA-Z0-9_-]+$`, b.ID)
				require.False(rt, ids[b.ID], "id %s twice", b.ID)
				ids[b.ID] = true
				w.ID = b.ID
			case b.Type == "thinking" && w.Signature == "":
				w.Signature = b.Signature
				if _, v := opt.Signer.Open(b.Signature, b.Thinking); opt.Thinking == messagesanswer.ThinkingFull {
					require.Equal(rt, replay.Intact, v)
				}
			}
			if w.Type == "aborted" || w.Type == "cut" {
				require.False(rt, json.Valid([]byte(b.Input)), "an aborted call reads as %s", b.Input)
				require.Equal(rt, w.Name, b.Name)
				if w.Type == "cut" { // the whole response has it with an input that is an object
					b.Input = w.Input
					kept = append(kept, b)
				}
				continue
			}
			require.Empty(rt, cmp.Diff(w, b))
			kept = append(kept, b)
		}
		require.Len(rt, r.Content, len(want))
		if calls == 0 {
			require.NotEqual(rt, "tool_use", r.StopReason)
		} else if a.Finish == event.Stop || a.Finish == event.ToolCalls || a.Finish == event.StopSequence {
			require.Equal(rt, "tool_use", r.StopReason)
		}
		require.Equal(rt, c.Usage.Output, r.Usage.OutputTokens)
		require.Equal(rt, c.Usage.Prompt, r.Usage.InputTokens+r.Usage.CacheCreationInputTokens+r.Usage.CacheReadInputTokens)
		require.Equal(rt, c.Usage.Prompt, r.start.InputTokens+r.start.CacheCreationInputTokens+r.start.CacheReadInputTokens)

		whole := decode(rt, messagesanswer.AppendResponse(nil, &c, opt))
		r.Content = kept
		require.Empty(rt, cmp.Diff(r.message, whole))
	})
}

// scrub returns e in memory that the next call overwrites, like a producer's.
var scratch []byte

func scrub(e event.Event) []event.Event {
	for i := range scratch {
		scratch[i] = 'X'
	}
	scratch = append(append(scratch[:0], e.Data...), e.ID...)
	n := len(e.Data)
	e.Data, e.ID = scratch[:n:n], scratch[n:]
	return []event.Event{e}
}

// anySequence checks that a sequence that violates the grammar does not cause a malformed stream or a repeated ID.
func anySequence(rt *rapid.T) {
	events := streamtest.Any(rt)
	opt := messagesanswer.Options{
		ID: "msg_r", Model: "m", WholeCalls: rapid.Bool().Draw(rt, "whole"), DispatchInReasoning: rapid.Bool().Draw(rt, "dispatch"),
		Thinking: messagesanswer.Thinking(rapid.IntRange(0, 2).Draw(rt, "thinking")),
	}
	s := messagesanswer.NewEncoder(opt)
	var stream []byte
	for _, e := range events {
		stream = s.Append(stream, scrub(e)...)
	}
	r := rebuild(rt, s.Finish(stream))
	ids := map[string]bool{"": true}
	for _, b := range r.Content {
		if b.Type == "tool_use" || b.Type == "server_tool_use" {
			require.False(rt, ids[b.ID], "id %s twice", b.ID)
			ids[b.ID] = true
		}
	}
	var c event.Collector
	c.Add(events...)
	require.True(rt, json.Valid(messagesanswer.AppendResponse(nil, &c, opt)))
}

func TestAnySequence(t *testing.T) { rapid.Check(t, anySequence) }

func FuzzStream(f *testing.F) { f.Fuzz(rapid.MakeFuzz(anySequence)) }

func TestStreamPaths(t *testing.T) {
	opt := messagesanswer.Options{ID: "msg_1", Model: "m"}
	text := event.Event{Kind: event.Text, Data: []byte("hi")}
	stop := event.Event{Kind: event.Finish, Why: event.Stop}
	start := event.Event{Kind: event.ToolStart, Data: []byte("rm")}
	end := event.Event{Kind: event.ToolEnd, Flags: event.Complete}
	run := func(o messagesanswer.Options, events ...event.Event) rebuilt {
		s := messagesanswer.NewEncoder(o)
		return rebuild(t, s.Finish(s.Append(nil, events...)))
	}

	t.Run("no finish", func(t *testing.T) {
		open := event.Event{Kind: event.ToolStart, Data: []byte("f")}
		require.Equal(t, "api_error", run(opt).err)
		require.Equal(t, "api_error", run(opt, event.Event{Kind: event.Start}).err)
		require.Equal(t, "api_error", run(opt, text, open).err)
		require.Equal(t, "end_turn", run(opt, text).StopReason)
		require.Equal(t, "tool_use", run(opt, open, event.Event{Kind: event.ToolEnd, Flags: event.Complete}).StopReason)
	})
	t.Run("error event", func(t *testing.T) {
		r := run(opt, text, event.Event{Kind: event.Error, Why: event.Overloaded, Data: []byte("busy")}, text, stop)
		require.Equal(t, "overloaded_error", r.err)
	})
	t.Run("finish without content", func(t *testing.T) {
		r := run(opt, stop)
		require.Equal(t, "end_turn", r.StopReason)
		require.Empty(t, r.Content)
	})
	t.Run("stop sequence", func(t *testing.T) {
		r := run(opt, text, event.Event{Kind: event.Finish, Why: event.StopSequence, Data: []byte("END")})
		require.Equal(t, "stop_sequence", r.StopReason)
		require.Equal(t, "END", *r.StopSequence)
	})
	t.Run("other choices are refused", func(t *testing.T) {
		s := messagesanswer.NewEncoder(opt)
		other := text
		other.Choice = 1
		r := rebuild(t, s.Finish(s.Append(nil, text, other, stop)))
		require.Len(t, r.Content, 1)
		require.Equal(t, "hi", r.Content[0].Text)
		require.Equal(t, 1, s.Dropped())
	})
	t.Run("aborted call is never runnable", func(t *testing.T) {
		for _, args := range []string{"", "{}", `{"a":1`, `{"a":"`, `{"a":"b"}`} {
			r := run(opt, start, event.Event{Kind: event.ToolArgs, Data: []byte(args)}, event.Event{Kind: event.ToolAbort, Why: event.Truncated},
				event.Event{Kind: event.Finish, Why: event.ToolCalls})
			require.Len(t, r.Content, 1)
			require.False(t, json.Valid([]byte(r.Content[0].Input)), args)
			require.Equal(t, "end_turn", r.StopReason)
		}
	})
	t.Run("aborted call is not sent when calls are whole", func(t *testing.T) {
		o := opt
		o.WholeCalls = true
		r := run(o, start, event.Event{Kind: event.ToolAbort}, text, stop)
		require.Len(t, r.Content, 1)
		require.Equal(t, "text", r.Content[0].Type)
	})
	t.Run("the call precedes what waited for it", func(t *testing.T) {
		r := run(opt, start, text, event.Event{Kind: event.ToolArgs, Data: []byte("{}")}, end, stop)
		require.Equal(t, []string{"tool_use", "text"}, []string{r.Content[0].Type, r.Content[1].Type})
		require.Equal(t, "tool_use", r.StopReason)
	})
	t.Run("ids", func(t *testing.T) {
		kimi := start
		kimi.ID = []byte("functions.rm:0")
		r := run(opt, kimi, end, event.Event{Kind: event.ToolStart, Call: 1, Data: []byte("rm"), ID: kimi.ID},
			event.Event{Kind: event.ToolEnd, Call: 1, Flags: event.Complete}, stop)
		require.Equal(t, "functions.rm:0", callid.Unescape(r.Content[0].ID))
		require.Equal(t, "toolu_1_1", r.Content[1].ID, "a repeated id is replaced")
		require.Equal(t, "toolu_1_1", callid.Unescape("toolu_1_1"))
	})
	t.Run("split character at the end of a block", func(t *testing.T) {
		r := run(opt, event.Event{Kind: event.Text, Data: []byte("a\xe2\x82")}, event.Event{Kind: event.Reasoning, Part: 1, Data: []byte("\xac")}, stop)
		require.Equal(t, "a\uFFFD", r.Content[0].Text)
		require.Equal(t, "\uFFFD", r.Content[1].Thinking)
	})
	t.Run("cache writes, two citations, no cause", func(t *testing.T) {
		note := event.Event{Kind: event.Annotation, Data: []byte(`{"type":"char_location"}`)}
		events := []event.Event{
			{Kind: event.Start, Usage: &event.Tokens{Prompt: 9, Cached: 3, CacheWrite: 4}}, text, note, note, {Kind: event.Finish},
		}
		r := run(opt, events...)
		require.Equal(t, usage{InputTokens: 2, CacheReadInputTokens: 3, CacheCreationInputTokens: 4}, r.Usage)
		require.Len(t, r.Content[0].Citations, 2)
		require.Equal(t, "end_turn", r.StopReason)
		var c event.Collector
		c.Add(events...)
		require.Empty(t, cmp.Diff(r.message, decode(t, messagesanswer.AppendResponse(nil, &c, opt))))
	})
	t.Run("keep-alive", func(t *testing.T) {
		s := messagesanswer.NewEncoder(opt)
		require.Equal(t, ": keep-alive\n\n", string(s.AppendKeepAlive(nil)))
		s.Append(nil, text)
		require.Equal(t, "event: ping\ndata: {\"type\":\"ping\"}\n\n", string(s.AppendKeepAlive(nil)))
	})
	t.Run("fail before anything", func(t *testing.T) {
		s := messagesanswer.NewEncoder(opt)
		r := rebuild(t, s.Fail(nil, apierr.ContextLength(9, 0, 8)))
		require.Equal(t, "invalid_request_error", r.err)
	})
}

func TestSignature(t *testing.T) {
	s := messagesanswer.NewEncoder(messagesanswer.Options{ID: "msg_1", Model: "m"})
	out := s.Append(nil, event.Event{Kind: event.Reasoning, Data: []byte("th")}, event.Event{Kind: event.Reasoning, Data: []byte("ink")}, event.Event{Kind: event.Finish, Why: event.Stop})
	r := rebuild(t, s.Finish(out))
	for thinking, want := range map[string]replay.Verdict{"think": replay.Intact, "thinK": replay.Forged} {
		_, got := (*replay.Signer)(nil).Open(r.Content[0].Signature, thinking)
		require.Equal(t, want, got)
	}
}

// TestLongSignature checks the signatures of long reasoning, which is signed in parts, in two blocks.
func TestLongSignature(t *testing.T) {
	keyed, err := replay.NewSigner([]byte("0123456789abcdef0123456789abcdef"), nil)
	require.NoError(t, err)
	for _, signer := range []*replay.Signer{nil, keyed} {
		for _, form := range []messagesanswer.Thinking{messagesanswer.ThinkingFull, messagesanswer.ThinkingOmitted} {
			s := messagesanswer.NewEncoder(messagesanswer.Options{ID: "msg_1", Model: "m", Signer: signer, Thinking: form})
			var out []byte
			var want [2]string
			for i := range want {
				for k := range 2000 + i {
					delta := fmt.Sprint(" thought ", k, "é\n"[:1+k%3])
					out = s.Append(out, event.Event{Kind: event.Reasoning, Part: int32(i), Data: []byte(delta)})
					want[i] += delta
				}
			}
			r := rebuild(t, s.Finish(s.Append(out, event.Event{Kind: event.Finish, Why: event.Stop})))
			for i := range want {
				want[i] = strings.ToValidUTF8(want[i], "\uFFFD")
				shown := want[i]
				if form == messagesanswer.ThinkingOmitted {
					shown = ""
				}
				require.Equal(t, shown, r.Content[i].Thinking)
				text, got := signer.Open(r.Content[i].Signature, shown)
				if form == messagesanswer.ThinkingOmitted && signer == nil { // nothing can be sealed
					require.Equal(t, replay.Absent, got)
					continue
				}
				require.Equal(t, replay.Intact, got)
				require.Equal(t, want[i], text)
			}
		}
	}
}

// TestSurrogates checks that the input of a call has no lone surrogate, and that a pair that is split between deltas stays one.
func TestSurrogates(t *testing.T) {
	const args, want = `{"a":"\ud83d","b":"\ud83d\ude00","c":"\\ud83d\n\ude00"}`, `{"a":"\ufffd","b":"\ud83d\ude00","c":"\\ud83d\n\ufffd"}`
	for size := 1; size <= len(args); size++ {
		for _, whole := range []bool{false, true} {
			events := []event.Event{{Kind: event.ToolStart, Data: []byte("f")}}
			for at := 0; at < len(args); at += size {
				events = append(events, event.Event{Kind: event.ToolArgs, Data: []byte(args[at:min(at+size, len(args))])})
			}
			events = append(events, event.Event{Kind: event.ToolEnd, Flags: event.Complete}, event.Event{Kind: event.Finish, Why: event.Stop})
			s := messagesanswer.NewEncoder(messagesanswer.Options{ID: "msg_1", Model: "m", WholeCalls: whole})
			r := rebuild(t, s.Finish(s.Append(nil, events...)))
			require.Equal(t, want, r.Content[0].Input, "pieces of %d", size)
			var c event.Collector
			c.Add(events...)
			require.Contains(t, string(messagesanswer.AppendResponse(nil, &c, messagesanswer.Options{ID: "msg_1", Model: "m"})), `"input":`+want+`}`)
		}
	}
	// A call that ends within an escape keeps what a strict reader of incomplete JSON accepts.
	s := messagesanswer.NewEncoder(messagesanswer.Options{ID: "msg_1", Model: "m"})
	out := s.Append(nil, event.Event{Kind: event.ToolStart, Data: []byte("f")}, event.Event{Kind: event.ToolArgs, Data: []byte(`{"a":"\ud83d\ud`)})
	require.NotContains(t, string(out), "ud83d")
	out = s.Finish(s.Append(out, event.Event{Kind: event.ToolAbort, Why: event.Truncated}, event.Event{Kind: event.Finish, Why: event.Length}))
	require.Equal(t, `{"a":"\ufffd\ud`, rebuild(t, out).Content[0].Input)
}

func TestStreamAllocs(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	s := messagesanswer.NewEncoder(messagesanswer.Options{ID: "msg_1", Model: "m"})
	text := []event.Event{{Kind: event.Text, Data: []byte(" some \"word\" é")}}
	dst := s.Append(nil, text...)
	require.Zero(t, testing.AllocsPerRun(100, func() { dst = s.Append(dst[:0], text...) }))
	for _, c := range []*replay.Signer{nil, testSigner} {
		r := messagesanswer.NewEncoder(messagesanswer.Options{ID: "msg_1", Model: "m", Signer: c})
		think := []event.Event{{Kind: event.Reasoning, Data: []byte(" some \"word\" é")}}
		dst = r.Append(dst, think...)
		require.Zero(t, testing.AllocsPerRun(1000, func() { dst = r.Append(dst[:0], think...) }))
	}
	dst = s.Append(dst, event.Event{Kind: event.ToolStart, Data: []byte("f")})
	for _, data := range []string{`{"a":"b"`, `\n \u00e9 \ud83d\ude00 \ud83d \`} {
		args := []event.Event{{Kind: event.ToolArgs, Data: []byte(data)}}
		dst = s.Append(dst[:0], args...)
		require.Zero(t, testing.AllocsPerRun(100, func() { dst = s.Append(dst[:0], args...) }))
	}
}

func ExampleStream() {
	s := messagesanswer.NewEncoder(messagesanswer.Options{ID: "msg_1", Model: "demo"})
	out := s.Append(nil,
		event.Event{Kind: event.Start, Usage: &event.Tokens{Prompt: 12}},
		event.Event{Kind: event.Text, Data: []byte("Hi")},
	)
	out = s.Append(out, event.Event{Kind: event.Finish, Why: event.Stop})
	fmt.Printf("%s", s.Finish(out))
	// Output:
	// event: message_start
	// data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"demo","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":12,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}}
	//
	// event: content_block_start
	// data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
	//
	// event: content_block_delta
	// data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}
	//
	// event: content_block_stop
	// data: {"type":"content_block_stop","index":0}
	//
	// event: message_delta
	// data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"input_tokens":12,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}
	//
	// event: message_stop
	// data: {"type":"message_stop"}
}

func ExampleAppendResponse() {
	var c event.Collector
	c.Add(
		event.Event{Kind: event.Text, Data: []byte("Hi")},
		event.Event{Kind: event.Finish, Why: event.Stop},
	)
	fmt.Printf("%s\n", messagesanswer.AppendResponse(nil, &c, messagesanswer.Options{ID: "msg_1", Model: "demo"}))
	// Output:
	// {"id":"msg_1","type":"message","role":"assistant","model":"demo","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}
}

// BenchmarkReasoning encodes a delta of reasoning, which updates the signature.
func BenchmarkReasoning(b *testing.B) {
	for name, c := range map[string]*replay.Signer{"none": nil, "keyed": testSigner} {
		b.Run("signer="+name, func(b *testing.B) {
			s := messagesanswer.NewEncoder(messagesanswer.Options{ID: "msg_1", Model: "m", Signer: c})
			text := []event.Event{{Kind: event.Reasoning, Data: []byte(" word")}}
			dst := s.Append(nil, text...)
			b.ReportAllocs()
			for b.Loop() {
				dst = s.Append(dst[:0], text...)
			}
		})
	}
}

func BenchmarkStream(b *testing.B) {
	s := messagesanswer.NewEncoder(messagesanswer.Options{ID: "msg_1", Model: "m"})
	text := []event.Event{{Kind: event.Text, Data: []byte(" word")}}
	dst := s.Append(nil, text...)
	b.ReportAllocs()
	for b.Loop() {
		dst = s.Append(dst[:0], text...)
	}
	b.SetBytes(int64(len(dst)))
}
