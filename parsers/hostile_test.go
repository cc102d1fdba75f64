// SPDX-License-Identifier: Apache-2.0

package parsers_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/parsers/codec"
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/event"
)

// stream is output that continues and on: head, then units until it is size bytes long.
type stream struct {
	name, head string
	unit       func(i int) string
	size       int
	ends       bool // it must end in an aborted call or a limit error, not at the end of the stream
}

const megabyte = 1 << 20

// before returns what f writes up to its argument.
func before(f func(string) string) string {
	s, _, _ := strings.Cut(f("\x00"), "\x00")
	return s
}

// hostile returns the streams that a model or its prompt can attack a parser of d with.
func (d *dialect) hostile() []stream {
	var out []stream
	seen := map[string]bool{}
	add := func(s stream) {
		if s.size == 0 {
			s.size = megabyte
		}
		out = append(out, s)
	}
	repeat := func(name, head, unit string, ends bool) {
		if unit == "" || head == "" && seen[unit] {
			return
		}
		seen[head+unit] = true
		add(stream{name: name, head: head, unit: func(int) string { return unit }, ends: ends})
	}
	for _, unit := range []string{"<", "<|", "</", " ", "\n", "{", "[", "[f(", `"`, `[f(a="b"), `, `[f(a=1, b={'c':`, "]", "\xf0", `{"name":"f","parameters":`} {
		repeat("repeated", "", unit, false)
	}
	for _, m := range d.g.Markers() {
		repeat("first byte", "", m.Text[:1], false)
		repeat("marker", "", m.Text, false)
		repeat("half marker", "", m.Text[:len(m.Text)-1], false)
		repeat("marker and blanks", "", m.Text+strings.Repeat(" ", d.g.MaxHold-1), false)
		repeat("marker and text", "", m.Text+"x", false)
		repeat("marker and text up to the bound", "", m.Text+strings.Repeat("x", d.g.MaxHold-1), false)
	}
	if d.mute {
		return out
	}
	repeat("bracket and blanks", "", d.block+"["+strings.Repeat(" ", d.g.MaxHold-2), false)
	repeat("blanks and an object", "", strings.Repeat(" ", d.g.MaxHold-2)+"{", false)
	opener := d.block + d.call("run")
	repeat("opened calls", "", opener, false)
	out[len(out)-1].size = 1_000_000 * len(opener)
	repeat("opened calls without a block", "", d.call("run"), false)
	repeat("calls", "", d.block+d.one("now")+d.unblock, true)
	repeat("calls in one block", d.block, d.one("now"), true)
	repeat("closers", "", d.uncall+d.unblock, false)

	str, num, obj := d.head("run", "cmd", "string"), d.head("put", "i", "number"), d.head("put", "o", "object")
	repeat("unclosed string", str, "x", true)
	repeat("unclosed string of brackets", str, "<", true)
	repeat("unclosed string of quotes", str, d.quote(`"'`), true)
	repeat("unclosed string of newlines", str, d.quote("\n"), true)
	repeat("string of closers", str, d.quote(d.unparam("cmd", "string")), true)
	repeat("string of closers and blanks", str, d.quote(d.unparam("cmd", "string"))+strings.Repeat(" ", d.g.MaxHold-1)+"x", true)
	repeat("string of closers and openers", str, d.quote(d.unparam("cmd", "string")+d.param(1, "", "")), true)
	// MiniMax M3's codec holds up to 4 MiB of a value that is not a string, regardless of the limits.
	_, nested := codecOf(d.g).(codec.Nested)
	repeat("endless number", num, "1", true)
	if nested {
		out[len(out)-1].size = 5 * megabyte
	}
	repeat("endless fraction", num+"1.", "0", !nested)
	repeat("endless word", num, "x", !nested)
	repeat("blanks in a value", num, " ", false)
	repeat("deep arrays", obj, "[", !nested)
	repeat("deep objects", obj, `{"a":`, !nested)
	repeat("deep objects with bare keys", obj, `{a:`, !nested)
	repeat("endless array", obj+"[", "1,", !nested)
	repeat("endless name", d.block+before(d.call), "n", false)
	repeat("endless name of blanks", d.block+before(d.call), " ", false)
	repeat("endless key", d.block+d.call("run")+before(func(s string) string { return d.param(0, s, "string") }), "k", d.g.Elements == nil)
	repeat("blanks before parameters", d.block+d.call("run"), " ", false)
	repeat("text before parameters", d.block+d.call("run"), "x", false)
	add(stream{name: "parameters", head: d.block + d.call("run"), ends: true, unit: func(i int) string {
		key := fmt.Sprintf("k%d", i)
		return d.param(i, key, "string") + "v" + d.unparam(key, "string")
	}})
	add(stream{name: "one parameter", head: d.block + d.call("run"), ends: true, unit: func(i int) string {
		return d.param(i, "cmd", "string") + "v" + d.unparam("cmd", "string")
	}})
	if t := d.g.Tagged; t != nil && t.Body.Call != nil {
		open, list := t.Open.Text, t.Open.Text != ""
		if t.Name != nil && t.Body.Params != nil && t.Name.Prefix == "" { // an object follows the block's tag, but no list
			open, list = d.block, false
		}
		object := open != "" && !t.Body.Call.Strict && t.Body.List != grammar.Dicts
		repeat("arguments before the name", open+`{"arguments": {"a": "`, "x", object)
		repeat("arguments as a string", open+`{"name": "run", "arguments": "`, "x", object)
		repeat("other members", open+`{"x": "`, "x", false)
		repeat("other keys", open+`{"`, "x", false)
		repeat("unclosed list", open+"[", `{"name": "now", "arguments": {}}, `, list)
		repeat("blanks in a list", open+"[", " ", false)
	}
	if d.think != "" {
		repeat("unclosed reasoning", d.think, "x\n", false)
		repeat("reasoning again and again", "", d.think+"x"+d.unthink, false)
	}
	return out
}

// codecOf returns the codec of the arguments of g, or nil.
func codecOf(g *grammar.Grammar) grammar.Codec {
	if g.Tagged == nil {
		return nil
	}
	return g.Tagged.Body.Codec
}

// chunks calls f with the bytes of s in chunks of n, until f returns false.
func (s *stream) chunks(n int, f func([]byte) bool) {
	buf := append(make([]byte, 0, n+4096), s.head...)
	for i, size := 0, 0; size < s.size; i++ {
		buf = append(buf, s.unit(i)...)
		at := 0
		for len(buf)-at >= n {
			if !f(buf[at : at+n]) {
				return
			}
			at += n
			size += n
		}
		buf = buf[:copy(buf, buf[at:])]
	}
	f(buf)
}

// small are limits that a quarter of a megabyte exceeds.
var small = parsers.Limits{ArgumentBytes: 200 << 10, HeldBytes: 32 << 10, Calls: 1024}

// TestHostileStreams asserts that endless output of any kind ends in an aborted call or a limit error, or is text, and
// that its memory stays within the limits. Without WEFT_TEST=long, each family reads every fourth of the streams up to a
// megabyte, shortened, beginning with another one.
func TestHostileStreams(t *testing.T) {
	if testing.Short() {
		t.Skip("many megabytes")
	}
	if raceEnabled {
		t.Skip("gigabytes, and nothing in them is concurrent")
	}
	const chunk = 4093
	for first, d := range dialects(t) {
		t.Run(d.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			p, err := parsers.New(d.name, &parsers.Options{Tools: tools(), Start: parsers.StartTurn, Limits: small})
			require.NoError(t, err)
			for i, s := range d.hostile() {
				if !long() {
					if s.size > megabyte || (first+i)%4 != 0 {
						continue
					}
					s.size /= 4
				}
				p.Reset()
				var evs []event.Event
				var err error
				held, aborted := 0, false
				s.chunks(chunk, func(b []byte) bool {
					evs, err = p.Append(evs[:0], b)
					held = max(held, p.Held())
					for _, e := range evs {
						aborted = aborted || e.Kind == event.ToolAbort && e.Why != event.Truncated
					}
					return err == nil
				})
				if err == nil {
					_, err = p.Finish(evs[:0], event.None)
				}
				_, limit := errors.AsType[*parsers.LimitError](err)
				if err != nil && !limit {
					t.Errorf("%s: %v", s.name, err)
				}
				if s.ends && !limit && !aborted {
					t.Errorf("%s: %q… goes on to the end", s.name, s.head+s.unit(0))
				}
				if most := small.HeldBytes + d.g.MaxHold + chunk; held > most {
					t.Errorf("%s: %q… makes the parser hold %d bytes", s.name, s.head+s.unit(0), held)
				}
			}
			// Slices grow by a quarter, and two of them may hold the same bytes.
			if most := 4*(small.HeldBytes+d.g.MaxHold+chunk) + int(small.ArgumentBytes); p.Kept() > most {
				t.Errorf("the parser keeps %d bytes", p.Kept())
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 2*megabyte {
				t.Errorf("%d bytes of heap are left", grown)
			}
			runtime.KeepAlive(p)
		})
	}
}
