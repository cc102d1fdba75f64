// SPDX-License-Identifier: Apache-2.0

package parsers_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/protocols/event"
)

// TestGoldens runs every case of testdata whole, byte by byte, at two-way splits and at random cuts, and checks the
// promises that hold for any output. With WEFT_TEST=long it runs every split, otherwise every second, with -short every
// fourth; which ones depends on the case.
func TestGoldens(t *testing.T) {
	for i, c := range goldens(t) {
		if testing.Short() && i%3 != 0 {
			continue
		}
		t.Run(c.family+"/"+c.name, func(t *testing.T) {
			t.Parallel()
			whole := parse(t, c.family, c.opt, c.in)
			if d := cmp.Diff(c.want, assembled(whole)); d != "" {
				t.Fatalf("%s (-want +got):\n%s", c.file, d)
			}
			checkInvariant(t, c.family, c.opt, c.in)
			checkPromises(t, c.in, whole)
			checkPromises(t, c.in, parse(t, c.family, c.opt, bytewise(c.in)...))
		})
	}
}

// checkInvariant compares every way of cutting with the whole text. One parser reads them all, so that nothing may
// stay after a Reset either.
func checkInvariant(t testing.TB, family string, opt parsers.Options, in string) {
	t.Helper()
	opt.Tools = tools()
	p, err := parsers.New(family, &opt)
	require.NoError(t, err)
	var c event.Collector
	var evs []event.Event
	result := func(chunks ...string) string {
		p.Reset()
		c = event.Collector{}
		take := func(err error) {
			if err != nil {
				t.Fatalf("%s, %q: %v", family, chunks, err)
			}
			c.Add(evs...)
		}
		for _, chunk := range chunks {
			evs, err = p.Append(evs[:0], []byte(chunk))
			take(err)
		}
		evs, err = p.Finish(evs[:0], event.None)
		take(err)
		return collected(&c, true)
	}
	want := everything(parse(t, family, opt, in))
	same := func(how string, chunks ...string) {
		t.Helper()
		if got := result(chunks...); got != want {
			if got = everything(parse(t, family, opt, chunks...)); got == want {
				how += " after a Reset"
			}
			t.Fatalf("%s, %q: %s changes the result (-whole +cut):\n%s", family, in, how, cmp.Diff(want, result(chunks...)))
		}
	}
	same("byte by byte", bytewise(in)...)
	if len(in) < 2000 {
		step := 2
		switch {
		case long():
			step = 1
		case testing.Short():
			step = 12
		}
		for i := 1 + len(in)%step; i < len(in); i += step {
			same("a two-way split", in[:i], in[i:])
		}
	}
	r := rand.New(rand.NewPCG(uint64(len(in)), 7))
	rounds := 10
	if testing.Short() {
		rounds = 3
	}
	for range rounds {
		same("a random split", cuts(r, in)...)
	}
}

// checkPromises checks what must hold for the events of any output: source spans in order and inside the input, text
// and reasoning equal to their source, arguments that only grow, calls that open once and end once.
func checkPromises(t testing.TB, in string, evs []event.Event) {
	t.Helper()
	var at int64
	open := map[int32]bool{}
	ended := map[int32]bool{}
	part := int32(-1)
	var first event.Event // of the part
	for i, e := range evs {
		must := func(ok bool, what string) { // not require: that is most of the time of the tests of this package
			if !ok {
				t.Helper()
				t.Fatalf("%q: event %d %v: %s", in, i, e, what)
			}
		}
		must(at <= e.Off, "it goes back")
		must(e.Off <= e.End, "it ends before it begins")
		must(e.End <= int64(len(in)), "it goes beyond the input")
		at = e.End
		if e.Kind == event.Finish {
			must(i == len(evs)-1 && e.Why != event.None, "it is not the end")
			must(e.Off == e.End && e.End == int64(len(in)) && e.Call == -1, "it is not at the end of the input")
			break
		}
		must(e.Part >= part, "parts go back")
		if e.Part != part {
			must(e.Part == part+1, "a part is left out")
			part, first = e.Part, e
		}
		must(e.Call == first.Call, "it continues the part of another call")
		must(e.Call >= 0 || e.Kind == first.Kind, "it continues a part of another kind")
		switch e.Kind {
		case event.Text, event.Reasoning:
			must(len(e.Data) > 0, "it is empty")
			must(e.Call == -1, "it has a call")
			// An inserted separator has no source.
			must(e.Off == e.End || in[e.Off:e.End] == string(e.Data), "it is not its source")
		case event.ToolStart:
			must(!open[e.Call] && !ended[e.Call], "the call opens twice")
			must(len(e.Data) > 0, "the call has no name")
			open[e.Call] = true
		case event.ToolArgs:
			must(open[e.Call], "arguments outside a call")
		case event.ToolEnd:
			must(open[e.Call] && e.Flags.Has(event.Complete), "the call ends")
			open[e.Call], ended[e.Call] = false, true
		case event.ToolAbort:
			must(e.Why != event.None, "no reason")
			must(!ended[e.Call], "the call aborts after its end")
			open[e.Call], ended[e.Call] = false, true
		default:
			must(false, "a parser does not emit that")
		}
	}
	for n, o := range open {
		require.False(t, o, "call %d was left open", n)
	}
}
