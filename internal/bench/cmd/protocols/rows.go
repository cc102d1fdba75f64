// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/weft-go/weft/internal/bench"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/messages"
	"github.com/weft-go/weft/protocols/sse"
	"github.com/weft-go/weft/protocols/wire"
)

// rows returns the measurements.
func rows(shared string) ([]bench.Pair, error) {
	dir := filepath.Join(shared, "bench", "protocols")
	body, err := os.ReadFile(filepath.Join(dir, "anthropic_request.json"))
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(filepath.Join(dir, "openai_chunks.jsonl"))
	if err != nil {
		return nil, err
	}
	chunks := bytes.Split(bytes.TrimSpace(raw), []byte("\n"))
	list, err := requests(body)
	if err != nil {
		return nil, err
	}
	list = append(list, encoders()...)
	more, err := decoders(chunks)
	if err != nil {
		return nil, err
	}
	return append(append(list, more...), splitter(chunks)), nil
}

// requests reads and writes a large Messages request.
func requests(body []byte) ([]bench.Pair, error) {
	r, err := messages.Decode(bytes.Clone(body), nil)
	if err != nil {
		return nil, err
	}
	if err := r.Detach(); err != nil {
		return nil, err
	}
	var std request
	if err := json.Unmarshal(body, &std); err != nil {
		return nil, err
	}
	var dst []byte
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	return []bench.Pair{
		{
			Name: "request of 211 KB: decode", Bytes: len(body), Goal: 0.15,
			Ours: func() {
				r, err := messages.Decode(body, nil)
				must(err)
				r.Turns() // they may be made when they are asked for
			},
			Theirs: func() {
				var r request
				must(json.Unmarshal(body, &r))
			},
		},
		{
			Name: "request of 211 KB: encode without its bytes", Bytes: len(body), Goal: 0.3,
			Ours: func() {
				var err error
				dst, err = r.AppendBody(dst[:0])
				must(err)
			},
			Theirs: func() {
				buf.Reset()
				must(enc.Encode(&std))
			},
		},
	}, nil
}

// encoder returns the encoder of a stream.
func encoder(api *wire.API) *wire.Encoder {
	r := block.NewRequest()
	must(r.SetParams(block.Params{Model: "m", Stream: true}))
	return api.NewEncoder(r, &wire.Options{ID: api.IDPrefix() + "1", Details: wire.DetailsNever})
}

// encoders writes one delta in each API; by hand it is three appends of bytes that are ready. A response has 4,096 deltas,
// since encoders may hold the text of a response.
func encoders() []bench.Pair {
	const deltas = 4096
	const text = " the next word"
	start := []event.Event{{Kind: event.Start, Call: -1, Usage: &event.Tokens{Prompt: 9}}}
	call := append(start, event.Event{Kind: event.ToolStart, Data: []byte("ls"), ID: []byte("c1")}, event.Event{Kind: event.ToolArgs, Data: []byte(`{"command":"`)})
	kinds := []struct {
		name   string
		before []event.Event
		delta  event.Event
	}{
		{"text", start, event.Event{Kind: event.Text, Call: -1, Data: []byte(text)}},
		{"reasoning", start, event.Event{Kind: event.Reasoning, Call: -1, Data: []byte(text)}},
		{"arguments", call, event.Event{Kind: event.ToolArgs, Data: []byte(text)}},
	}
	var list []bench.Pair
	for _, k := range kinds {
		for _, api := range []*wire.API{wire.Chat, wire.Messages, wire.Responses} {
			s := encoder(api)
			delta := []event.Event{k.delta}
			dst := s.Append(s.Append(nil, k.before...)[:0], delta...)
			dst = s.Append(dst[:0], delta...)
			head, tail, ok := strings.Cut(string(dst), text)
			if !ok {
				panic("protocols: a delta without its text")
			}
			hand, n := make([]byte, 0, 2*len(dst)), 0
			byHand := func() { hand = append(append(append(hand[:0], head...), text...), tail...) }
			// By hand, too, the events of the Responses API are counted and their text is collected for the events that repeat it.
			if before, after, ok := strings.Cut(head, `"sequence_number":`); ok {
				before += `"sequence_number":`
				after = strings.TrimLeft(after, "0123456789")
				seq := int64(0)
				var all []byte
				byHand = func() {
					if seq++; seq%deltas == 0 {
						all = nil
					}
					all = append(all, text...)
					hand = append(append(append(strconv.AppendInt(append(hand[:0], before...), seq, 10), after...), text...), tail...)
				}
			}
			list = append(list, bench.Pair{
				Name: fmt.Sprintf("stream chunk: encode %s, %s", api, k.name), Bytes: len(dst), Goal: 2.5,
				Ours: func() {
					if n++; n == deltas {
						s, n = encoder(api), 0
						s.Append(dst[:0], k.before...)
					}
					dst = s.Append(dst[:0], delta...)
				},
				Theirs: func() {
					byHand()
				},
			})
		}
	}
	return list
}

// decoders reads recorded chat chunks, and deltas of the other APIs as our own encoders write them.
func decoders(chunks [][]byte) ([]bench.Pair, error) {
	var list []bench.Pair
	add := func(name string, d *wire.Decoder, goal float64, events []sse.Event, std func(data []byte)) error {
		var out []event.Event
		size := 0
		for _, e := range events {
			var err error
			if out, err = d.AppendEvent(out[:0], e.Type, e.Data); err != nil {
				return err
			}
			size += len(e.Data)
		}
		i, k := 0, 0
		list = append(list, bench.Pair{
			Name: name, Bytes: size / len(events), Goal: goal,
			Ours: func() {
				e := &events[i]
				if i++; i == len(events) {
					i = 0
				}
				var err error
				out, err = d.AppendEvent(out[:0], e.Type, e.Data)
				must(err)
			},
			Theirs: func() {
				std(events[k].Data)
				if k++; k == len(events) {
					k = 0
				}
			},
		})
		return nil
	}
	var recorded []sse.Event
	for _, c := range chunks {
		var x chunk
		if err := json.Unmarshal(c, &x); err != nil {
			return nil, err
		}
		if len(x.Choices) == 1 && x.Choices[0].FinishReason == "" && len(x.Choices[0].Delta.ToolCalls) == 0 {
			recorded = append(recorded, sse.Event{Data: c})
		}
	}
	if err := add("chat chunk: decode", wire.Chat.NewDecoder(nil), 0.3, recorded, func(data []byte) {
		var x chunk
		must(json.Unmarshal(data, &x))
	}); err != nil {
		return nil, err
	}
	var words []event.Event
	words = append(words, event.Event{Kind: event.Start, Call: -1, Usage: &event.Tokens{Prompt: 9}})
	for range 500 {
		words = append(words, event.Event{Kind: event.Text, Call: -1, Data: []byte(" the next\nword")})
	}
	deltas := func(s *wire.Encoder, typ string) (before, deltas []sse.Event) {
		r := sse.Reader{}
		r.Add(s.Append(nil, words...))
		for ev, ok, _ := r.Next(); ok; ev, ok, _ = r.Next() {
			e := sse.Event{Type: bytes.Clone(ev.Type), Data: bytes.Clone(ev.Data)}
			if string(e.Type) == typ {
				deltas = append(deltas, e)
			} else {
				before = append(before, e)
			}
		}
		return before, deltas
	}
	warm := func(d *wire.Decoder, before []sse.Event) (*wire.Decoder, error) {
		for _, e := range before {
			if _, err := d.AppendEvent(nil, e.Type, e.Data); err != nil {
				return nil, err
			}
		}
		return d, nil
	}
	before, events := deltas(encoder(wire.Messages), "content_block_delta")
	d, err := warm(wire.Messages.NewDecoder(nil), before)
	if err != nil {
		return nil, err
	}
	if err := add("messages delta: decode", d, 0.3, events, func(data []byte) {
		var x messagesDelta
		must(json.Unmarshal(data, &x))
	}); err != nil {
		return nil, err
	}
	before, events = deltas(encoder(wire.Responses), "response.output_text.delta")
	if d, err = warm(wire.Responses.NewDecoder(nil), before); err != nil {
		return nil, err
	}
	if err := add("responses delta: decode", d, 0.3, events, func(data []byte) {
		var x responsesDelta
		must(json.Unmarshal(data, &x))
	}); err != nil {
		return nil, err
	}
	return list, nil
}

// splitter splits a stream of the recorded chunks; the plain way looks for line ends and blank lines.
func splitter(chunks [][]byte) bench.Pair {
	var body []byte
	for _, c := range chunks {
		body = sse.AppendEvent(body, "", c)
	}
	pieces := func(feed func(piece []byte)) {
		for i := 0; i < len(body); i += 16 << 10 {
			feed(body[i:min(len(body), i+16<<10)])
		}
	}
	var r sse.Reader
	var buf []byte
	return bench.Pair{
		Name: fmt.Sprintf("SSE: split %d events", len(chunks)), Bytes: len(body), Goal: 3,
		Ours: func() {
			pieces(func(piece []byte) {
				r.Add(piece)
				for _, ok, _ := r.Next(); ok; _, ok, _ = r.Next() {
				}
			})
		},
		Theirs: func() {
			buf = buf[:0]
			pieces(func(piece []byte) {
				buf = append(buf, piece...)
				at := 0
				var data []byte
				for {
					n := bytes.IndexByte(buf[at:], '\n')
					if n < 0 {
						break
					}
					line := buf[at : at+n]
					at += n + 1
					if len(line) == 0 {
						data = nil
					} else if rest, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
						data = rest
					}
				}
				if data != nil { // an event that is not whole stays
					at -= len(data) + len("data: ") + 1
				}
				buf = buf[:copy(buf, buf[at:])]
			})
		},
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
