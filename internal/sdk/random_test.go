// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/wire"
)

// TestRandom sees random responses come across, streamed and whole.
func TestRandom(t *testing.T) {
	d := newDesk(t)
	for _, a := range apis {
		t.Run(a.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := drawSetup(t)
				events := drawResponse(t, a, !s.wholeCalls) // calls that overlap would come in another order
				d.stream(a.encode(s, events, rapid.IntRange(0, 3).Draw(t, "alive") == 0))
				got, err := a.stream(t, d)
				require.NoError(t, err)
				compare(t, (&meaning{api: a, setup: s}).of(collect(events)), got)

				d.whole(a.whole(s, events))
				got, err = a.read(t, d)
				require.NoError(t, err)
				compare(t, (&meaning{api: a, setup: s, whole: true}).of(collect(events)), got)
			})
		})
	}
}

// TestRandomFailures sees an error wherever a random response breaks off.
func TestRandomFailures(t *testing.T) {
	d := newDesk(t)
	for _, a := range apis {
		t.Run(a.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := drawSetup(t)
				events := drawResponse(t, a, true)
				first := 0 // after the first finish, the response of the two APIs with one choice is complete
				for events[first].Kind != event.Finish || events[first].Choice != 0 {
					first++
				}
				events = events[:rapid.IntRange(0, first).Draw(t, "until")]
				enc := a.encoder(s, true)
				out := enc.Append(nil, events...)
				want := ""
				switch rapid.IntRange(0, 1).Draw(t, "how") {
				case 0:
					want = "broken \"é\" <here>"
					out = enc.Append(out, event.Event{Kind: event.Error, Call: -1, Why: event.EngineFailed, Data: []byte(want)})
				case 1:
					want = "overloaded"
					out = enc.Fail(out, &apierr.Error{Why: event.Overloaded, Message: want})
				}
				out = enc.Append(out, event.Event{Kind: event.Text, Call: -1, Data: []byte("nobody hears this")}) // nothing follows an error
				d.stream(enc.Finish(out))
				_, err := a.stream(t, d)
				require.Error(t, err)
				require.False(t, errors.Is(err, errCut), "the stream just ended")
				require.Equal(t, want, message(t, err))
			})
		})
	}
}

func drawSetup(t *rapid.T) setup {
	return setup{
		reasoning: rapid.SampledFrom([]wire.Reasoning{
			wire.ReasoningUnspecified, wire.ReasoningPlain, wire.ReasoningBoth, wire.ReasoningOmitted, wire.ReasoningNone,
		}).Draw(t, "reasoning"),
		seal:             rapid.Bool().Draw(t, "seal"),
		wholeCalls:       rapid.IntRange(0, 3).Draw(t, "whole calls") == 0,
		callsInReasoning: rapid.IntRange(0, 3).Draw(t, "calls in reasoning") == 0,
	}
}

// drawResponse draws a response of one choice, for the chat API of up to three, from Start to the last Finish.
func drawResponse(t *rapid.T, a *api, overlap bool) []event.Event {
	n := 1
	if a == chatAPI {
		n = rapid.IntRange(1, 3).Draw(t, "n")
	}
	u := drawTokens(t)
	s := begin(event.Tokens{Prompt: u.Prompt, Cached: rapid.Int64Range(0, 300).Draw(t, "predicted")})
	tracks := make([][]event.Event, n)
	for i := range tracks {
		from := len(s.events)
		drawChoice(t, a, s.choice(int32(i)), overlap)
		tracks[i] = append([]event.Event(nil), s.events[from:]...)
		s.events = s.events[:from]
	}
	out := s.events
	for left := n; left > 0; {
		i := rapid.IntRange(0, n-1).Draw(t, "next")
		for len(tracks[i]) == 0 {
			i = (i + 1) % n
		}
		k := rapid.IntRange(1, len(tracks[i])).Draw(t, "run")
		out = append(out, tracks[i][:k]...)
		if tracks[i] = tracks[i][k:]; len(tracks[i]) == 0 {
			left--
		}
	}
	at := rapid.IntRange(1, len(out)).Draw(t, "usage at")
	return append(out[:at:at], append([]event.Event{{Kind: event.Usage, Call: -1, Usage: &u}}, out[at:]...)...)
}

func drawTokens(t *rapid.T) event.Tokens {
	n := func(what string) int64 { return rapid.Int64Range(0, 300).Draw(t, what) }
	return event.Tokens{Prompt: n("prompt"), Cached: n("cached"), CacheWrite: n("written"), Output: n("output"), Reasoning: n("reasoning")}
}

// drawChoice adds one choice to s.
func drawChoice(t *rapid.T, a *api, s *script, overlap bool) {
	for range rapid.IntRange(0, 6).Draw(t, "parts") {
		switch rapid.IntRange(0, 12).Draw(t, "part") {
		case 0, 1, 2:
			s.think(drawText(t)...)
			if rapid.IntRange(0, 2).Draw(t, "signed") == 0 {
				s.sign(split(t, rapid.StringMatching(`[a-zA-Z0-9+/]{1,12}`).Draw(t, "signature"))...)
			}
		case 3, 4:
			s.text(drawText(t)...)
			if rapid.IntRange(0, 3).Draw(t, "noted") == 0 {
				s.text("!").note(map[*api]string{chatAPI: chatNote, responsesAPI: responseNote, messagesAPI: messageNote}[a])
			}
		case 5:
			s.refuse(drawText(t)...)
		case 6, 7, 8:
			n := drawOpen(t, s, s.at().calls)
			drawEnd(t, s, n)
		case 9:
			if overlap {
				drawParallel(t, s)
			}
		case 10:
			s.nameless()
		case 11:
			if a == messagesAPI {
				s.other(event.Opaque, `{"type":"redacted_thinking","data":"eA=="}`)
			} else {
				s.other(event.Opaque, `{"type":"compaction","id":"cmp_`+strings.Repeat("x", len(s.events))+`","encrypted_content":"eA=="}`)
			}
		case 12:
			s.next().text("") // a run without text
		}
		if rapid.IntRange(0, 3).Draw(t, "split") == 0 {
			s.next()
		}
	}
	why := rapid.SampledFrom([]event.Why{
		event.Stop, event.Stop, event.StopSequence, event.Length, event.ContextFull, event.ToolCalls, event.ContentFilter, event.Refused,
		event.Paused,
	}).Draw(t, "finish")
	if why == event.StopSequence {
		s.finish(why, rapid.SampledFrom([]string{"\n\n", "</s>", "stöp"}).Draw(t, "stop"))
		return
	}
	s.finish(why)
}

// drawn is an open call with what is left of its arguments.
type drawn struct {
	call int32
	args []string
	end  int // 0: aborted, 1: never ended
}

func drawOpen(t *rapid.T, s *script, call int32) *drawn {
	d := &drawn{call: call, end: rapid.IntRange(0, 6).Draw(t, "end")}
	flags := rapid.SampledFrom([]event.Flags{0, 0, 0, 0, 0, event.Custom, event.InReasoning, event.Server, event.Recovered}).Draw(t, "flags")
	args := rapid.SampledFrom([]string{
		`{}`, ``, `{"a":1.50,"b":[true,null]}`, `{"s":"é\"\\ {[😀"}`, `{ "k" : "` + strings.Repeat("x", 20) + `" }`, `{"a":{"b":{}}}`,
	}).Draw(t, "args")
	if flags == event.Custom {
		args = strings.Join(drawText(t), "")
	}
	if d.end < 2 {
		args = args[:rapid.IntRange(0, len(args)).Draw(t, "cut short")]
	}
	d.args = split(t, args)
	id := rapid.SampledFrom([]string{"", "", "", "functions.get:0", "call_same", "tc_x"}).Draw(t, "id")
	s.open(flags, rapid.SampledFrom([]string{"get", "put_all", "näme"}).Draw(t, "name"), id)
	return d
}

// step writes the next piece of the call and reports whether there was one.
func (d *drawn) step(s *script) bool {
	if len(d.args) > 0 {
		s.args(d.call, d.args[0])
		d.args = d.args[1:]
		return true
	}
	switch d.end {
	case 0:
		s.abort(d.call, event.Truncated)
	case 1:
	default:
		s.end(d.call)
	}
	return false
}

func drawEnd(t *rapid.T, s *script, d *drawn) {
	for d.step(s) {
	}
	if d.end == 1 { // it stays open until the end of the response, so nothing may follow in this part
		s.next()
	}
}

// drawParallel adds two calls whose arguments interleave, with text between them now and then.
func drawParallel(t *rapid.T, s *script) {
	a := drawOpen(t, s, s.at().calls)
	b := drawOpen(t, s, s.at().calls)
	open := []*drawn{a, b}
	for len(open) > 0 {
		i := rapid.IntRange(0, len(open)).Draw(t, "which")
		switch {
		case i == len(open):
			s.text("meanwhile")
		case !open[i].step(s):
			open = append(open[:i], open[i+1:]...)
		}
	}
}

// drawText draws text in pieces that end anywhere, also inside characters.
func drawText(t *rapid.T) []string {
	if rapid.IntRange(0, 4).Draw(t, "damaged") == 0 {
		raw := rapid.SliceOfN(rapid.SampledFrom([]byte("a\"\\\n\x00\x7f\x80\xbf\xc3\xa9\xe2\x82\xac\xed\xa0\xf0\x9f\x98\x80\xf4\xff")), 1, 12).Draw(t, "raw")
		return split(t, string(raw))
	}
	return split(t, rapid.StringN(1, 10, 30).Draw(t, "text"))
}

func split(t *rapid.T, s string) (out []string) {
	for s != "" {
		k := rapid.IntRange(0, len(s)).Draw(t, "cut")
		out, s = append(out, s[:k]), s[k:]
	}
	return out
}
