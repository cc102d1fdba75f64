// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/protocols/event"
)

// collect runs chunks through p from the start, to the end of the stream, and returns the result. Its memory is
// overwritten by the next run of c.
func collect(t testing.TB, p *parsers.Parser, c *event.Collector, chunks ...string) event.Answer {
	t.Helper()
	return collectUntil(t, p, c, event.None, chunks...)
}

// collectUntil is collect where the engine ended the stream for why.
func collectUntil(t testing.TB, p *parsers.Parser, c *event.Collector, why event.Why, chunks ...string) event.Answer {
	t.Helper()
	feed(t, p, c, chunks...)
	evs, err := p.Finish(nil, why)
	require.NoError(t, err)
	c.Add(evs...)
	if len(c.Answers) == 0 {
		return event.Answer{}
	}
	return c.Answers[0]
}

// feed runs chunks through p from the start and leaves the stream open.
func feed(t testing.TB, p *parsers.Parser, c *event.Collector, chunks ...string) {
	t.Helper()
	var evs []event.Event
	var buf []byte
	var err error
	*c = event.Collector{}
	p.Reset()
	for _, s := range chunks {
		buf = append(buf[:0], s...)
		if evs, err = p.Append(evs[:0], buf); err != nil { // not require, which costs more than Append
			t.Fatal(err)
		}
		c.Add(evs...)
	}
}

// step is one assembled event: kind and text, or "call", name and decoded arguments.
type step []any

// assemble runs chunks through p and lists what came out, as the unified corpus spells it. Aborted calls are left out, and
// so is text that is only white space unless keepBlanks.
func assemble(t testing.TB, p *parsers.Parser, keepBlanks bool, chunks ...string) []step {
	t.Helper()
	var c event.Collector
	out := []step{}
	for _, b := range collect(t, p, &c, chunks...).Blocks {
		s := string(b.Data)
		switch b.Kind {
		case event.ToolStart:
			require.True(t, b.Flags.Has(event.Complete))
			out = append(out, step{"call", b.Name, decoded(t, b.Data)})
			continue
		case event.ToolAbort:
			continue
		case event.Text:
			if !keepBlanks && blank(s) {
				continue
			}
		}
		kind := b.Kind.String()
		if n := len(out); n > 0 && out[n-1][0] == kind {
			out[n-1][1] = out[n-1][1].(string) + s
			continue
		}
		out = append(out, step{kind, s})
	}
	return out
}

// outcome is a response without its order, as most peers report it.
type outcome struct {
	Calls              []step
	Content, Reasoning string
	Aborts             []string // why calls were aborted; not compared with peers
}

// outcomeOf runs chunks through p.
func outcomeOf(t testing.TB, p *parsers.Parser, c *event.Collector, chunks ...string) outcome {
	t.Helper()
	return flat(t, collect(t, p, c, chunks...))
}

func flat(t testing.TB, a event.Answer) outcome {
	t.Helper()
	out := outcome{Calls: []step{}, Content: a.Text(), Reasoning: a.Reasoning()}
	for _, b := range a.Blocks {
		switch b.Kind {
		case event.ToolStart:
			switch {
			case !b.Flags.Has(event.Complete): // the stream is still open
			case b.Flags.Has(event.Custom):
				out.Calls = append(out.Calls, step{"call", b.Name, string(b.Data)})
			default:
				out.Calls = append(out.Calls, step{"call", b.Name, decoded(t, b.Data)})
			}
		case event.ToolAbort:
			out.Aborts = append(out.Aborts, b.Name+" "+b.Why.String())
		}
	}
	return out
}

// String renders o on one line.
func (o outcome) String() string {
	var b strings.Builder
	for _, c := range o.Calls {
		args, _ := json.Marshal(c[2])
		fmt.Fprintf(&b, "%s(%s) ", c[1], args)
	}
	if o.Reasoning != "" {
		fmt.Fprintf(&b, "reasoning %q ", o.Reasoning)
	}
	fmt.Fprintf(&b, "text %q", o.Content)
	if len(o.Aborts) > 0 {
		fmt.Fprintf(&b, " aborted %q", o.Aborts)
	}
	return b.String()
}

// differ returns both outcomes if they are not equal, once normal has been applied to both.
func differ(want, got outcome, normal func(string) string) string {
	a, b := want, got
	for _, o := range []*outcome{&a, &b} {
		o.Content, o.Reasoning, o.Aborts = normal(o.Content), normal(o.Reasoning), nil
	}
	if cmp.Equal(a, b, byValue) {
		return ""
	}
	return fmt.Sprintf("  want %v\n  got  %v", clip(want.String()), clip(got.String()))
}

// blank reports whether s is empty or only white space.
func blank(s string) bool { return strings.TrimSpace(s) == "" }

// decoded returns arguments as values with numbers as they are spelled.
func decoded(t testing.TB, raw []byte) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v), "%s", raw)
	return v
}

// byValue compares numbers by exact value, which their spelling gives.
var byValue = cmp.Comparer(func(a, b json.Number) bool {
	if a == b || len(a) > 40 || len(b) > 40 {
		return a == b
	}
	x, ok := new(big.Rat).SetString(string(a))
	y, ok2 := new(big.Rat).SetString(string(b))
	return ok && ok2 && x.Cmp(y) == 0
})

func bytewise(text string) []string {
	out := make([]string, len(text))
	for i := range out {
		out[i] = text[i : i+1]
	}
	return out
}

// cuts returns text cut at random positions into pieces of at most most bytes.
func cuts(r *rand.Rand, text string, most int) (out []string) {
	for text != "" {
		n := 1 + r.IntN(min(len(text), most))
		out = append(out, text[:n])
		text = text[n:]
	}
	return out
}

// pieces returns text cut into pieces of the given lengths.
func pieces(t testing.TB, text string, lens []int) (out []string) {
	t.Helper()
	at := 0
	for _, n := range lens {
		out = append(out, text[at:at+n])
		at += n
	}
	require.Equal(t, len(text), at)
	return out
}
