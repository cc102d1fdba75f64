// SPDX-License-Identifier: Apache-2.0

package parsers_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/protocols/event"
)

// holds feeds head, then body in chunks of n bytes, and returns how many bytes of body were after the last event at
// most, at the end of any call.
func holds(t testing.TB, p *parsers.Parser, head, body string, n int) int64 {
	t.Helper()
	p.Reset()
	evs, err := p.Append(nil, []byte(head))
	require.NoError(t, err)
	fed, seen, most := int64(len(head)), int64(len(head)), int64(0)
	for _, chunk := range pieces(body, n) {
		evs, err = p.Append(evs[:0], chunk)
		require.NoError(t, err)
		fed += int64(len(chunk))
		for _, e := range evs {
			require.NotEqual(t, event.ToolAbort, e.Kind, "%s", head)
			seen = max(seen, e.End)
		}
		most = max(most, fed-seen)
	}
	return most
}

// plainWords and oddWords are 20 KB of text: one with nothing in it that could be structure, one that is full of it.
var (
	plainWords = strings.Repeat("lorem ipsum dolor sit amet ", 750)
	oddWords   = strings.Repeat("a < b && c > d; {x: [1, 2]}\n\t\n  if x[\"k\"] != 'v' { return `</p>` } // é東京\n"+strings.Repeat(" ", 70)+"</x>\n", 130)
)

// TestLatency asserts that events of a chunk are emitted by the call that brings it: all of them for words, and all but
// MaxHold bytes for any text. That holds for text, reasoning and string arguments. What is held by declaration is not
// here: values that are not strings, lists of calls without a tag or in the syntax of Python until they are whole, and
// guided documents of several calls. With -short it runs every sixth family.
func TestLatency(t *testing.T) {
	for i, d := range dialects(t) {
		if testing.Short() && i%15 != 0 {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			p, err := parsers.New(d.name, &parsers.Options{Tools: tools(), Start: parsers.StartTurn})
			require.NoError(t, err)
			places := []struct {
				name, head string
				quote      func(string) string
			}{{"text", d.say, same}, {"reasoning", d.think, same}, {"a string argument", d.head("run", "cmd", "string"), d.quote}}
			for _, c := range places {
				if c.name == "a string argument" && (d.held || d.mute) || c.name == "reasoning" && c.head == "" {
					continue
				}
				sizes := []int{4}
				if long() {
					sizes = []int{1, 4}
				}
				for _, n := range sizes {
					require.LessOrEqual(t, holds(t, p, c.head, c.quote(plainWords), n), int64(0), "words in %s, %d bytes at a time", c.name, n)
					require.LessOrEqual(t, holds(t, p, c.head, c.quote(oddWords), n), int64(d.g.MaxHold), "%s, %d bytes at a time", c.name, n)
				}
			}
		})
	}
}

// TestHeldByDeclaration asserts that what cannot stream is held under Limits.HeldBytes, and not longer than it must.
func TestHeldByDeclaration(t *testing.T) {
	for _, c := range []struct {
		family string
		opt    parsers.Options
		in     string
	}{
		{"pythonic", parsers.Options{}, `[run(cmd="` + plainWords + `")]`},
		{"hermes", parsers.Options{Output: parsers.GuidedRequired}, `[{"name":"run","arguments":{"cmd":"` + plainWords + `"}}]`},
		{"qwen3_coder", parsers.Options{}, "<function=put><parameter=o>[\"" + plainWords + "\"]</parameter></function>"},
	} {
		c.opt.Tools = tools()
		p, err := parsers.New(c.family, &c.opt)
		require.NoError(t, err)
		var evs []event.Event
		for i, b := range pieces(c.in, 100) {
			evs, err = p.Append(evs[:0], b)
			require.NoError(t, err)
			require.LessOrEqual(t, p.Held(), 100*(i+1))
		}
		require.NotEmpty(t, evs, "%s: the call is complete with its last byte", c.family)
		require.Equal(t, event.ToolEnd, evs[len(evs)-1].Kind, c.family)
		require.Zero(t, p.Held(), c.family)
	}
}

// TestFeedAllocatesNothing is a promise of the package documentation: text, reasoning and string arguments, once the
// parser has its buffers.
func TestFeedAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("allocation counts differ under the race detector")
	}
	for _, d := range dialects(t) {
		t.Run(d.name, func(t *testing.T) {
			p, err := parsers.New(d.name, &parsers.Options{Tools: tools(), Start: parsers.StartTurn})
			require.NoError(t, err)
			for _, c := range []struct{ name, head, body string }{
				{"text", d.say, "plain text with a < in it, and é. \n"},
				{"reasoning", d.think, "line by line,\n< and é\n"},
				{"a string argument", d.head("run", "cmd", "string"), d.quote("argument \"text\" < é\n")},
			} {
				if c.name == "a string argument" && (d.held || d.mute) || c.name == "reasoning" && c.head == "" {
					continue
				}
				p.Reset()
				evs, err := p.Append(make([]event.Event, 0, 16), []byte(c.head))
				require.NoError(t, err)
				body := []byte(c.body)
				feed := func() {
					for _, cut := range []int{len(body), 5, 1} {
						for at := 0; at < len(body); at += cut {
							evs, err = p.Append(evs[:0], body[at:min(len(body), at+cut)])
						}
					}
				}
				feed() // the buffers
				if n := testing.AllocsPerRun(100, feed); n != 0 {
					t.Errorf("%s: %v allocations", c.name, n)
				}
				require.NoError(t, err)
			}
		})
	}
}
