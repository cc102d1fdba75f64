// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bufio"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/protocols/event"
)

// upstreamCase is a case of the test suites of vLLM, SGLang and llama.cpp: an output and what upstream made of it.
type upstreamCase struct {
	ID, Family, Scope, Text, Start string
	Chunks                         []string
	Tools                          []tool
	Open                           bool `json:"-"` // the corpus does not specify where generation begins
	Want                           struct {
		Content, Reasoning string
		Calls              []struct{ Name, Arguments string }
	}
}

func (c *upstreamCase) text() string { return c.Text + strings.Join(c.Chunks, "") }

// want returns upstream's result. Arguments that are not JSON are a string.
func (c *upstreamCase) want(t testing.TB) outcome {
	out := outcome{Calls: []step{}, Content: c.Want.Content, Reasoning: c.Want.Reasoning}
	for _, call := range c.Want.Calls {
		out.Calls = append(out.Calls, step{"call", call.Name, argumentsOf(t, call.Arguments)})
	}
	return out
}

// argumentsOf returns arguments as values, or as a string if they are not JSON.
func argumentsOf(t testing.TB, raw string) any {
	if json.Valid([]byte(raw)) {
		return decoded(t, []byte(raw))
	}
	return raw
}

// setup is how a case is run and compared where the plain way does not give upstream's result.
type setup struct {
	policy  parsers.Policy
	start   parsers.Start
	end     event.Why
	without []string // removed from the text
	opt     func(*parsers.Options)
	got     func(*outcome, event.Answer) // changes weft's result
	prefill bool                         // the prompt ends with the beginning of upstream's text or reasoning
	blanks  bool                         // white space in text and reasoning is not compared
}

// setupOf parses the words of a setup:
//
//	policy WORDS        under that policy
//	start=none|reasoning|response   where generation begins
//	stop                the engine stopped at a stop token
//	without=TEXT        the text lacks TEXT, which the test of upstream adds as tokens that its parser is told to drop
//	quoted              Options.NoCalls: the tool markup remains text
//	uncalled            calls are removed from the result
//	only_reasoning      Options.Channels
//	only_tools          likewise
//	alone               a parser of calls alone takes reasoning for text
//	prefill             the prompt ends with the beginning of the text or reasoning, which upstream returns too
//	blanks              white space in text and reasoning is not compared
func setupOf(text string) (s setup, err error) {
	words := strings.Fields(text)
	for i, w := range words {
		name, value, _ := strings.Cut(w, "=")
		switch name {
		case "policy":
			s.policy, err = parsers.ParsePolicy(strings.Join(words[i+1:], " "))
			return s, err
		case "start":
			if s.start = startOf(value); s.start == 0 {
				return s, fmt.Errorf("setup %q: start %q", text, value)
			}
		case "stop":
			s.end = event.Stop
		case "without":
			s.without = append(s.without, value)
		case "quoted":
			s.opt = func(o *parsers.Options) { o.NoCalls = true }
		case "uncalled":
			s.got = func(o *outcome, _ event.Answer) { o.Calls = []step{} }
		case "only_reasoning":
			s.opt = func(o *parsers.Options) { o.Channels = parsers.OnlyReasoning }
		case "only_tools":
			s.opt = func(o *parsers.Options) { o.Channels = parsers.OnlyTools }
		case "alone":
			s.got = func(o *outcome, a event.Answer) {
				o.Content, o.Reasoning = "", ""
				for _, b := range a.Blocks {
					if b.Kind == event.Text || b.Kind == event.Reasoning {
						o.Content += string(b.Data)
					}
				}
			}
		case "prefill":
			s.prefill = true
		case "blanks":
			s.blanks = true
		default:
			return s, fmt.Errorf("setup %q: unknown word %q", text, w)
		}
	}
	return s, nil
}

// begins returns where generation begins. Cases that do not specify it begin inside reasoning if that is closed before it
// is opened.
func (c *upstreamCase) begins(t testing.TB) parsers.Start {
	if c.Start != "" || !c.Open {
		return startOf(c.Start)
	}
	g, err := parsers.Default().Lookup(c.Family)
	require.NoError(t, err)
	if g.Tagged == nil || g.Tagged.Reasoning == nil {
		return parsers.StartUnspecified
	}
	before, _, ok := strings.Cut(c.text(), g.Tagged.Reasoning.Close.Text)
	if ok && !strings.Contains(before, g.Tagged.Reasoning.Open.Text) {
		return parsers.StartReasoning
	}
	return parsers.StartUnspecified
}

// run parses the case, whole and, if cut is set, in its own chunks, byte by byte and at random splits, which must all
// give the same result. It returns the difference from upstream's.
func (c *upstreamCase) run(t testing.TB, s *setup, cut bool) string {
	opt := &parsers.Options{Tools: toolsOf(c.Tools), Start: c.begins(t), Policy: s.policy}
	if s.start != 0 {
		opt.Start = s.start
	}
	if s.opt != nil {
		s.opt(opt)
	}
	p, err := parsers.New(c.Family, opt)
	require.NoError(t, err)
	text := c.text()
	for _, w := range s.without {
		text = strings.ReplaceAll(text, w, "")
	}
	var col event.Collector
	parse := func(chunks ...string) outcome {
		a := collectUntil(t, p, &col, s.end, chunks...)
		out := flat(t, a)
		if s.got != nil {
			s.got(&out, a)
		}
		return out
	}
	got := parse(text)
	if cut {
		same := func(how string, chunks ...string) {
			if o := parse(chunks...); !reflect.DeepEqual(got, o) {
				t.Errorf("%s, %s: %v, not %v as whole", c.ID, how, o, got)
			}
		}
		if len(s.without) == 0 && len(c.Chunks) > 1 {
			same("as recorded", c.Chunks...)
		}
		same("byte by byte", bytewise(text)...)
		rnd := rand.New(rand.NewPCG(uint64(len(text)), 9))
		for range 3 {
			same("a random split", cuts(rnd, text, 24)...)
		}
	}
	want := c.want(t)
	switch c.Scope { // upstream's parsers read one of them
	case "tools":
		want.Reasoning = got.Reasoning
	case "reasoning":
		want.Content, want.Calls = got.Content, got.Calls
	}
	if s.prefill && strings.HasSuffix(want.Content, got.Content) && strings.HasSuffix(want.Reasoning, got.Reasoning) {
		want.Content, want.Reasoning = got.Content, got.Reasoning
	}
	normal := func(s string) string { return s }
	if s.blanks {
		normal = unblanked
	}
	return differ(want, got, normal)
}

// difference is the reason why a case is not equal. With a setup, it is equal in that.
type difference struct {
	why   reason
	setup string
	line  int
	used  bool
}

// differences reads a table of differences. A line with a reason and perhaps a setup, after a colon, is followed by
// lines with the ids of cases, each of which begins with a space and the source of the cases:
//
//	reason: setup
//	 vllm 12 15-19
func differences(t *testing.T, file string) map[string]*difference {
	t.Helper()
	in, err := os.Open(file)
	require.NoError(t, err)
	defer in.Close()
	out := map[string]*difference{}
	var d difference
	s := bufio.NewScanner(in)
	for n := 1; s.Scan(); n++ {
		line := s.Text()
		switch {
		case line == "" || line[0] == '#':
		case line[0] != ' ':
			why, setup, _ := strings.Cut(line, ":")
			d = difference{why: reason(why), setup: strings.TrimSpace(setup)}
			checkReason(t, fmt.Sprintf("%s:%d", file, n), d.why)
		default:
			f := strings.Fields(line)
			for _, id := range f[1:] {
				from, to, ok := strings.Cut(id, "-")
				if !ok {
					to = from
				}
				for id := from; ; id = after(id) {
					key := f[0] + " " + id
					require.Nil(t, out[key], "%s:%d: %s is listed twice", file, n, key)
					one := d
					one.line = n
					out[key] = &one
					if id == to {
						break
					}
				}
			}
		}
	}
	require.NoError(t, s.Err())
	return out
}

// after returns the decimal number after id, with as many digits.
func after(id string) string {
	b := []byte(id)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i]++; b[i] <= '9' {
			break
		}
		b[i] = '0'
	}
	return string(b)
}

// hashed returns a short hash of an id that is text.
func hashed(id string) string {
	h := fnv.New32a()
	h.Write([]byte(id))
	return fmt.Sprintf("x%08x", h.Sum32())
}

// sampled reports whether record i of a corpus is in the sample: every record with WEFT_TEST=long, otherwise every n-th.
func sampled(i, n int) bool {
	switch {
	case long():
		return true
	case testing.Short():
		n *= 24
	}
	return i%n == 0
}
