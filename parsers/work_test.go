// SPDX-License-Identifier: Apache-2.0

//go:build weftcount

package parsers_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/parsers/internal/work"
	"github.com/weft-go/weft/protocols/event"
)

// The tests of this file count the bytes that loops look at. Run them with
//
//	go test -tags weftcount -run TestWork ./...

// agentic is a reply as agents get it: reasoning, text, and a call with an argument of 20 KB.
func (d *dialect) agentic() string {
	code := strings.Repeat("if a < b && x[\"k\"] != nil {\n\treturn x[i] // next line, é\n}\n", 340)
	s := ""
	if d.think != "" {
		s += d.think + strings.Repeat("The user wants a file. I look at it first; then I write.\n", 40) + d.unthink
	}
	if !d.bare {
		s += d.say + strings.Repeat("I will write the file now. ", 40) + d.unsay
	}
	if !d.mute {
		s += d.block + d.one("run", value{"cmd", "string", code}) + d.unblock
	}
	return s
}

// TestWork asserts that a reply costs at most two looks at each byte, however it is cut.
func TestWork(t *testing.T) {
	for _, d := range dialects(t) {
		t.Run(d.name, func(t *testing.T) {
			text := d.agentic()
			p, err := parsers.New(d.name, &parsers.Options{Tools: tools(), Start: parsers.StartTurn})
			require.NoError(t, err)
			for _, n := range []int{1, 3, 4, 64, len(text)} {
				p.Reset()
				work.Take()
				var evs []event.Event
				aborted := false
				for _, b := range pieces(text, n) {
					evs, err = p.Append(evs[:0], b)
					require.NoError(t, err)
					for _, e := range evs {
						aborted = aborted || e.Kind == event.ToolAbort
					}
				}
				_, err = p.Finish(nil, event.None)
				require.NoError(t, err)
				require.False(t, aborted)
				looks := float64(work.Take()) / float64(len(text))
				most := 2.0
				switch {
				case d.held:
					most = 4 // to find the end, twice to read it, to write it
				case n == 64:
					most = 3 // most chunks are looked at to learn that they are not plain
				}
				if looks > most {
					t.Errorf("%.2f looks at each byte, %d bytes at a time", looks, n)
				}
			}
		})
	}
}

// TestWorkOnHostileStreams asserts that no stream costs more than five looks at each byte: in text, the bytes after an
// opening tag are examined again if the tag is prose; in arguments, an apparent end of a value is examined again if it
// is not the end, once more if a second closing tag follows it, and once more to escape it.
func TestWorkOnHostileStreams(t *testing.T) {
	for _, d := range dialects(t) {
		t.Run(d.name, func(t *testing.T) {
			p, err := parsers.New(d.name, &parsers.Options{Tools: tools(), Start: parsers.StartTurn, Limits: small})
			require.NoError(t, err)
			for _, s := range d.hostile() {
				for _, n := range []int{1, 4, 1000} {
					looks := func(size int) float64 {
						s.size = size
						p.Reset()
						work.Take()
						var evs []event.Event
						var err error
						fed := 0
						s.chunks(n, func(b []byte) bool {
							fed += len(b)
							evs, err = p.Append(evs[:0], b)
							return err == nil
						})
						_, _ = p.Finish(evs[:0], event.None)
						return float64(work.Take()) / float64(fed)
					}
					short, long := looks(20_000), looks(80_000)
					if long > 5 || long > 1.1*short+0.1 {
						t.Errorf("%s: %.1f looks at each byte of 20 KB, %.1f of 80 KB, %d bytes at a time: %.80q", s.name, short, long, n, s.head+s.unit(0))
					}
				}
			}
		})
	}
}
