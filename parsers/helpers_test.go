// SPDX-License-Identifier: Apache-2.0

package parsers_test

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/protocols/event"
)

// tools are the tools of every test in this package.
func tools() []parsers.Tool {
	return []parsers.Tool{
		{Name: "get_weather", Schema: []byte(`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}}}`)},
		{Name: "put", Schema: []byte(`{"type":"object","properties":{"s":{"type":"string"},"i":{"type":"integer"},"f":{"type":"number"},
			"b":{"type":"boolean"},"n":{"type":["null","object"]},"a":{"type":"array"},"o":{"$ref":"#/$defs/o"}},"$defs":{"o":{"type":"object"}}}`)},
		{Name: "run", Schema: []byte(`{"type":"object","properties":{"cmd":{"type":"string"}}}`)},
		{Name: "now", Schema: []byte(`{"type":"object","properties":{}}`)},
	}
}

// parse feeds chunks to a new parser and returns all events, cloned.
func parse(t testing.TB, family string, opt parsers.Options, chunks ...string) []event.Event {
	t.Helper()
	opt.Tools = tools()
	p, err := parsers.New(family, &opt)
	require.NoError(t, err)
	return drive(t, p, chunks...)
}

func drive(t testing.TB, p *parsers.Parser, chunks ...string) []event.Event {
	t.Helper()
	var all, evs []event.Event
	take := func() {
		for _, e := range evs {
			all = append(all, e.Clone())
		}
	}
	for _, c := range chunks {
		var err error
		// The chunk is overwritten after the call: a parser that retains it fails the comparison.
		buf := []byte(c)
		evs, err = p.Append(evs[:0], buf)
		require.NoError(t, err, "%q", chunks)
		take()
		for i := range buf {
			buf[i] = '#'
		}
	}
	evs, err := p.Finish(evs[:0], event.None)
	require.NoError(t, err)
	take()
	return all
}

// assembled renders events with adjacent deltas of one block joined, one line each.
func assembled(evs []event.Event) string {
	var c event.Collector
	c.Add(evs...)
	return collected(&c, false)
}

// everything is assembled with the arguments of aborted calls too.
func everything(evs []event.Event) string {
	var c event.Collector
	c.Add(evs...)
	return collected(&c, true)
}

// flagNames are the flags of a call as goldens spell them.
var flagNames = []struct {
	flag event.Flags
	name string
}{
	{event.Recovered, " recovered"}, {event.Repaired, " repaired"}, {event.InReasoning, " in-reasoning"}, {event.Custom, " custom"},
}

// collected renders what c holds; aborted reports whether the arguments of aborted calls belong to it.
func collected(c *event.Collector, aborted bool) string {
	var b strings.Builder
	for _, a := range c.Answers {
		for _, bl := range a.Blocks {
			switch bl.Kind {
			case event.ToolStart:
				fmt.Fprintf(&b, "call %s %s", bl.Name, bl.Data)
				if bl.ID != "" {
					fmt.Fprintf(&b, " id=%s", bl.ID)
				}
				if !bl.Flags.Has(event.Complete) {
					b.WriteString(" INCOMPLETE")
				}
				for _, f := range flagNames {
					if bl.Flags.Has(f.flag) {
						b.WriteString(f.name)
					}
				}
				b.WriteByte('\n')
			case event.ToolAbort:
				fmt.Fprintf(&b, "abort %q %s\n", bl.Name, bl.Why)
			default:
				fmt.Fprintf(&b, "%s %q\n", bl.Kind, bl.Data)
			}
		}
	}
	for _, a := range c.Answers {
		for _, bl := range a.Blocks {
			if aborted && bl.Kind == event.ToolAbort {
				fmt.Fprintf(&b, "before call %d was aborted: %q\n", bl.Call, bl.Data)
			}
		}
	}
	return b.String()
}

// cuts returns text cut at random positions.
func cuts(r *rand.Rand, text string) []string {
	var out []string
	for len(text) > 0 {
		n := 1 + r.IntN(min(len(text), 1+r.IntN(12)))
		out = append(out, text[:n])
		text = text[n:]
	}
	return out
}

func bytewise(text string) []string {
	out := make([]string, len(text))
	for i := range len(text) {
		out[i] = text[i : i+1]
	}
	return out
}

// goldenCase is one case of testdata/*.txt: a name, options, the output of a model and the assembled events.
type goldenCase struct {
	file, family, name string
	opt                parsers.Options
	in, want           string
}

// goldens reads testdata/FAMILY.txt. A case is
//
//	== name [option]...
//	output, with \n for a newline, \\ for a backslash, \xHH for a byte, and a backslash before the end of a line that
//	goes on; any other backslash is one
//	--
//	assembled events
//
// The options are
//
//	start=none|reasoning|response   where generation begins
//	guided=required|NAME            guided output
//	single, nocalls                 one call, no calls
//	only=tools|reasoning            one channel
//	policy=dynamo|strict            the profile, before what follows changes it
//	another word                    a word of parsers.Policy
//
// The files are read once; the caller must not modify the cases.
func goldens(t testing.TB) []goldenCase {
	t.Helper()
	readGoldens.Do(func() { goldenCases = parseGoldens(t) })
	require.NotEmpty(t, goldenCases)
	return goldenCases
}

var (
	readGoldens sync.Once
	goldenCases []goldenCase
)

func parseGoldens(t testing.TB) []goldenCase {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var out []goldenCase
	for _, f := range files {
		raw, err := os.ReadFile(f)
		require.NoError(t, err)
		_, body, _ := strings.Cut("\n"+string(raw), "\n== ")
		seen := map[string]bool{}
		for _, part := range strings.Split(body, "\n== ") {
			head, rest, _ := strings.Cut(part, "\n")
			in, want, ok := strings.Cut("\n"+rest, "\n--\n")
			require.True(t, ok, "%s: %s has no --", f, head)
			words := strings.Fields(head)
			c := goldenCase{file: f, family: strings.TrimSuffix(filepath.Base(f), ".txt"), name: words[0]}
			require.False(t, seen[c.name], "%s: two cases are called %s", f, c.name)
			seen[c.name] = true
			for _, w := range words[1:] {
				c.option(t, w)
			}
			c.in = unescaped(strings.TrimPrefix(in, "\n"))
			c.want = strings.TrimRight(want, "\n")
			if c.want != "" {
				c.want += "\n"
			}
			out = append(out, c)
		}
	}
	return out
}

var escapes = regexp.MustCompile(`\\(\\|n|x[0-9a-f]{2}|\n)`)

// unescaped returns the input of a case with escapes replaced.
func unescaped(s string) string {
	return escapes.ReplaceAllStringFunc(s, func(esc string) string {
		switch esc[1] {
		case '\\':
			return `\`
		case 'n':
			return "\n"
		case 'x':
			b, _ := hex.DecodeString(esc[2:])
			return string(b)
		}
		return ""
	})
}

// policyOf returns the policy that text describes, which must be valid.
func policyOf(text string) parsers.Policy {
	p, err := parsers.ParsePolicy(text)
	if err != nil {
		panic(err)
	}
	return p
}

// option applies word, an option of a case.
func (c *goldenCase) option(t testing.TB, word string) {
	t.Helper()
	key, val, _ := strings.Cut(word, "=")
	ok := true
	switch key {
	case "start":
		c.opt.Start, ok = map[string]parsers.Start{
			"none": parsers.StartTurn, "reasoning": parsers.StartReasoning, "response": parsers.StartResponse,
		}[val]
	case "guided":
		c.opt.Output = parsers.GuidedRequired
		if val != "required" {
			c.opt.Output, c.opt.Allow = parsers.GuidedNamed, []string{val}
		}
	case "single":
		c.opt.SingleCall = true
	case "nocalls":
		c.opt.NoCalls = true
	case "only":
		c.opt.Channels, ok = map[string]parsers.Channels{"tools": parsers.OnlyTools, "reasoning": parsers.OnlyReasoning}[val]
	case "policy":
		require.Zero(t, c.opt.Policy, "%s: %s: the profile comes first", c.file, c.name)
		c.opt.Policy = policyOf(val)
	default:
		c.opt.Policy = policyOf(c.opt.Policy.String() + " " + word)
	}
	require.True(t, ok, "%s: %s: unknown option %q", c.file, c.name, word)
}
