// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/event"
)

// sample is any text of the corpora with the options to parse it.
type sample struct {
	id, family, text string
	opt              *parsers.Options
}

// samples returns every text of the corpora and workloads, by family.
func samples(t *testing.T) map[string][]sample {
	out := map[string][]sample{}
	add := func(id, family, text string, opt *parsers.Options) {
		out[family] = append(out[family], sample{id, family, text, opt})
	}
	for _, list := range loadUnified(t) {
		for _, r := range list {
			add(r.ID, r.Family, r.Text, r.options())
		}
	}
	for _, list := range loadParity(t) {
		for _, r := range list {
			opt := r.options(parsers.Policy{})
			add(r.ID, r.Family, r.Text+strings.Join(r.Chunks, ""), opt)
			both := *opt
			both.Channels = parsers.Both
			add(r.ID+" both channels", r.Family, r.Text+strings.Join(r.Chunks, ""), &both)
		}
	}
	for _, peer := range []string{"ollama", "smg", "harmony"} {
		for _, list := range load(t, shared(t, "corpus", "parsers", peer+".jsonl"), func(v *vector) string { return v.Family }) {
			for _, v := range list {
				add(v.ID, v.Family, v.Text+strings.Join(v.Chunks, ""), v.options(peer))
			}
		}
	}
	tools := workloadTools(t)
	for _, file := range []string{"short", "plain", "agentic", "hostile"} {
		for _, list := range load(t, shared(t, "bench", "parsers", file+".jsonl"), func(r *workload) string { return r.Family }) {
			for _, r := range list {
				add(r.Name, r.Family, r.Text, r.options(tools))
			}
		}
	}
	return out
}

// TestSpans asserts that reasoning, text, call structure and markers cover every text of the corpora exactly once: the spans
// of events are in order and apart, text and reasoning are their source, and what no event covers is structure. However the
// text is cut, the result is the same.
func TestSpans(t *testing.T) {
	for family, list := range samples(t) {
		t.Run(family, func(t *testing.T) {
			t.Parallel()
			g, err := parsers.Default().Lookup(family)
			if err != nil {
				t.Skipf("%s is not built: %d texts", family, len(list))
			}
			for i, s := range list {
				if testing.Short() && i%16 != 0 {
					continue
				}
				if err := s.account(t, g); err != nil {
					t.Errorf("%s, %q: %s", s.id, clip(s.text), clip(err.Error()))
				}
			}
			t.Logf("%s: %d texts", family, len(list))
		})
	}
}

// account parses s whole, in chunks and byte by byte, and returns what is wrong with the spans or differs.
func (s *sample) account(t *testing.T, g *grammar.Grammar) error {
	if s.opt.Output != parsers.Native {
		g = nil // a guided document has no markers of its own; what it is wrapped in may have any
	}
	p, err := parsers.New(s.family, s.opt)
	require.NoError(t, err)
	var whole outcome
	for i, size := range []int{len(s.text), 5, 1} {
		if size == 1 && len(s.text) > 1<<14 {
			break
		}
		evs := events(t, p, s.text, size)
		if err := covered(g, s.text, evs); err != nil {
			return fmt.Errorf("in chunks of %d: %w", size, err)
		}
		var c event.Collector
		c.Add(evs...)
		var got outcome
		if len(c.Answers) > 0 {
			got = flat(t, c.Answers[0])
		}
		if i == 0 {
			whole = got
		} else if !reflect.DeepEqual(whole, got) {
			return fmt.Errorf("in chunks of %d (-whole +cut):\n%s", size, cmp.Diff(whole, got))
		}
	}
	return nil
}

// events returns all events of text in chunks of size bytes.
func events(t *testing.T, p *parsers.Parser, text string, size int) (evs []event.Event) {
	p.Reset()
	keep := func(n int) {
		for i := range evs[n:] {
			evs[n+i] = evs[n+i].Clone()
		}
	}
	var err error
	for at := 0; at < len(text); at += size {
		n := len(evs)
		if evs, err = p.Append(evs, []byte(text[at:min(at+size, len(text))])); err != nil {
			t.Fatal(err)
		}
		keep(n)
	}
	n := len(evs)
	evs, err = p.Finish(evs, event.None)
	require.NoError(t, err)
	keep(n)
	return evs
}

// covered returns why events do not account for text.
func covered(g *grammar.Grammar, text string, evs []event.Event) error {
	var at int64
	var before event.Event
	for i, e := range evs {
		if e.Off < at || e.End < e.Off || e.End > int64(len(text)) {
			return fmt.Errorf("event %d %v has span [%d,%d) after %d of %d", i, e, e.Off, e.End, at, len(text))
		}
		if (e.Kind == event.Text || e.Kind == event.Reasoning) && e.Off != e.End && string(e.Data) != text[e.Off:e.End] {
			return fmt.Errorf("event %d %v is not its source %q", i, e, text[e.Off:e.End])
		}
		if gap := text[at:e.Off]; gap != "" && !structure(g, gap, before, e) {
			return fmt.Errorf("%q between %v and %v belongs to nothing", gap, before, e)
		}
		at, before = e.End, e
	}
	if gap := text[at:]; gap != "" && !structure(g, gap, before, event.Event{Call: -1}) {
		return fmt.Errorf("%q after %v belongs to nothing", gap, before)
	}
	return nil
}

// structure reports whether gap, which no event covers, is markup: inside a call; markers and white space alone; or
// what markers give their meaning to, such as a header or the beginning of a call.
func structure(g *grammar.Grammar, gap string, before, after event.Event) bool {
	if blank(gap) || g == nil {
		return true
	}
	if before.Kind != 0 && after.Kind != 0 && before.Call >= 0 && before.Call == after.Call {
		return true
	}
	marked, rest := false, gap
	for _, m := range markersByLength(g) {
		if strings.Contains(rest, m) {
			marked, rest = true, strings.ReplaceAll(rest, m, " ")
		}
	}
	rest = strings.TrimSpace(rest)
	switch {
	case rest == "":
		return marked
	case before.Kind == event.ToolAbort || after.Kind == event.ToolAbort:
		return true // what is left of a call
	case g.Tagged == nil:
		return marked // a header is between markers, or before the first one
	case after.Kind == event.ToolStart:
		// What introduces a name is punctuation, or one of a few words.
		for _, word := range []string{"functions.", "function", "call:"} {
			rest = strings.TrimPrefix(rest, word)
		}
		return rest == "" || !unicode.IsLetter([]rune(rest)[0])
	case before.Kind == event.ToolEnd:
		return strings.Trim(rest, "{}[]()`;,\"' \t\r\n") == ""
	}
	return false
}

func markersByLength(g *grammar.Grammar) (out []string) {
	for _, m := range g.Markers() {
		out = append(out, m.Text)
	}
	if g.Tagged != nil && g.Tagged.Reasoning != nil && !blank(g.Tagged.Reasoning.Label) {
		out = append(out, g.Tagged.Reasoning.Label)
	}
	slices.SortFunc(out, func(a, b string) int { return len(b) - len(a) })
	return out
}

// TestCoveredSeesLoss asserts that the check of spans notices what must not happen.
func TestCoveredSeesLoss(t *testing.T) {
	g, err := parsers.Default().Lookup("hermes")
	require.NoError(t, err)
	ev := func(kind event.Kind, call int32, off, end int64, data string) event.Event {
		return event.Event{Kind: kind, Call: call, Off: off, End: end, Data: []byte(data)}
	}
	const call = `a<tool_call>{"name":"f","arguments":{}}</tool_call> b`
	start, args, end := ev(event.ToolStart, 0, 21, 22, "f"), ev(event.ToolArgs, 0, 36, 38, "{}"), ev(event.ToolEnd, 0, 38, 38, "")
	for name, c := range map[string]struct {
		text string
		evs  []event.Event
		ok   bool
	}{
		"all":                {call, []event.Event{ev(event.Text, -1, 0, 1, "a"), start, args, end, ev(event.Text, -1, 51, 53, " b")}, true},
		"text before lost":   {call, []event.Event{start, args, end, ev(event.Text, -1, 51, 53, " b")}, false},
		"text after it lost": {call, []event.Event{ev(event.Text, -1, 0, 1, "a"), start, args, end}, false},
		"text twice":         {call, []event.Event{ev(event.Text, -1, 0, 1, "a"), ev(event.Text, -1, 0, 1, "a"), start, args, end}, false},
		"text changed":       {"ab", []event.Event{ev(event.Text, -1, 0, 2, "aB")}, false},
		"text lost":          {"a lost b", []event.Event{ev(event.Text, -1, 0, 1, "a"), ev(event.Text, -1, 7, 8, "b")}, false},
		"thought lost":       {"<think>x</think>a", []event.Event{ev(event.Text, -1, 16, 17, "a")}, false},
		"beyond the end":     {"ab", []event.Event{ev(event.Text, -1, 0, 3, "ab")}, false},
	} {
		require.Equal(t, c.ok, covered(g, c.text, c.evs) == nil, name)
	}
}
