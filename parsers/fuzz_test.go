// SPDX-License-Identifier: Apache-2.0

package parsers_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/protocols/event"
)

// fragments are what random output of a family is made of: its markers, whole and cut, and what stands between them.
func fragments(t testing.TB, family string) []string {
	g, err := parsers.Default().Lookup(family)
	if err != nil {
		t.Fatal(err)
	}
	out := []string{
		" ", "\n", "\n\n", "x", "text. ", "é", "\xff", "東京", "<", "</", "<|", ">", "{", "}", "[", "]", ",", ":", `"`, `\`, `\n`,
		"null", "true", "12", "1.5e3", `{"cmd":"ls"}`, `{}`, `"name"`, `"arguments"`, `"name":"run",`, `"arguments":`, `"parameters":`,
		`{"name": "run", "arguments": {"cmd": "a"}}`, `{"name": "now"}`, "run", "now", "get_weather", "cmd", "city", "=",
		" to=functions.run", "to=", "functions.", "analysis", "commentary", "final", "json", "code", "assistant",
		"think", "response", "tools", "call", "argument", "message", ` tool="run"`, ` key="cmd"`, ` type="string"`, ` type="number"`,
		strings.Repeat("y", 300), strings.Repeat(" ", 300),
	}
	for _, m := range g.Markers() {
		out = append(out, m.Text, m.Text, m.Text, m.Text[:len(m.Text)/2], m.Text[1:])
	}
	if g.Elements != nil {
		for _, n := range []string{"think", "response", "tools", "call", "argument", "json", "message"} {
			out = append(out, "<|open|>"+n+"<|sep|>", "<|close|>"+n+"<|sep|>", "<|close|>"+n+"<|sep|>")
		}
		out = append(out, `<|open|>call tool="run" index="1"<|sep|>`, `<|open|>argument key="cmd" type="string"<|sep|>`,
			`<|open|>argument key="i" type="number"<|sep|>`, `<|open|>json type="object"<|sep|>`)
	}
	if g.Tagged != nil && g.Tagged.Body.Params != nil {
		out = append(out, "<function=run>", "<function=put>", "<parameter=o>", "<parameter=cmd>", "<parameter=i>\n", "</parameter>\n", "</function>\n</tool_call>")
	}
	if g.Channels != nil {
		out = append(out, "<|start|>assistant<|channel|>commentary to=functions.run<|message|>", "<|start|>assistant<|channel|>analysis<|message|>",
			"<|start|>assistant<|channel|>final<|message|>", "<|channel|>commentary to=functions.run <|constrain|>json<|message|>")
	}
	return out
}

// check runs the promises that hold for any output on text, cut as seed says.
func check(t testing.TB, family string, text string, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	opt := parsers.Options{
		Start:      parsers.Start(r.IntN(3)),
		SingleCall: r.IntN(8) == 0,
		NoCalls:    r.IntN(16) == 0,
		Policy: &parsers.Policy{
			KeepBlanks: r.IntN(8) == 0, KeepOrphans: r.IntN(8) == 0, QuoteInReasoning: r.IntN(8) == 0, RejectUnknownTools: r.IntN(8) == 0,
		},
		Tool: "run",
	}
	if r.IntN(4) == 0 {
		opt.Output = parsers.Output(1 + r.IntN(2))
	}
	if r.IntN(4) == 0 {
		opt.Limits = parsers.Limits{ArgumentBytes: r.Int64N(40), HeldBytes: r.IntN(40), Parameters: r.IntN(3)}
	}
	if r.IntN(8) == 0 {
		opt.Channels = parsers.Channels(r.IntN(3))
	}
	whole := parse(t, family, opt, text)
	checkPromises(t, text, whole)
	want := everything(whole)
	for _, chunks := range [][]string{bytewise(text), cuts(r, text), cuts(r, text)} {
		evs := parse(t, family, opt, chunks...)
		checkPromises(t, text, evs)
		if d := cmp.Diff(want, everything(evs)); d != "" {
			t.Fatalf("%s, %q, %+v, cut %q (-whole +cut):\n%s", family, text, opt, chunks, d)
		}
	}
}

// TestRandomOutput puts fragments together at random.
func TestRandomOutput(t *testing.T) {
	rounds := 600
	if testing.Short() || raceEnabled {
		rounds = 300
	}
	for _, family := range parsers.Default().Names() {
		t.Run(family, func(t *testing.T) {
			frags := fragments(t, family)
			for seed := range uint64(rounds) {
				r := rand.New(rand.NewPCG(seed, 2))
				var b strings.Builder
				for range 1 + r.IntN(14) {
					b.WriteString(frags[r.IntN(len(frags))])
				}
				check(t, family, b.String(), seed)
			}
		})
	}
}

func fuzz(f *testing.F, family string) {
	for _, c := range goldens(f) {
		if c.family == family {
			f.Add(c.in, uint64(len(c.in)))
		}
	}
	f.Fuzz(func(t *testing.T, text string, seed uint64) { check(t, family, text, seed) })
}

func FuzzHermes(f *testing.F)     { fuzz(f, "hermes") }
func FuzzQwen3Coder(f *testing.F) { fuzz(f, "qwen3_coder") }
func FuzzHarmony(f *testing.F)    { fuzz(f, "harmony") }
func FuzzKimiK3(f *testing.F)     { fuzz(f, "kimi_k3") }

// TestRandomTokens puts tokens together at random, markers and look-alikes of them, and compares one chunk of all with a
// chunk per token and with chunks that cut tokens.
func TestRandomTokens(t *testing.T) {
	rounds := 600
	if testing.Short() || raceEnabled {
		rounds = 100
	}
	for _, family := range parsers.Default().Names() {
		t.Run(family, func(t *testing.T) {
			g, _ := parsers.Default().Lookup(family)
			vocab := map[string]uint32{}
			for i, m := range g.Markers() {
				if m.Token {
					vocab[m.Text] = uint32(1000 + i)
				}
			}
			frags := fragments(t, family)
			for seed := range uint64(rounds) {
				r := rand.New(rand.NewPCG(seed, 4))
				var pieces []string
				var toks []parsers.Token
				var text string
				for range 1 + r.IntN(14) {
					f := frags[r.IntN(len(frags))]
					id := uint32(1)
					if v, ok := vocab[f]; ok && r.IntN(4) > 0 {
						id = v
					}
					pieces = append(pieces, f)
					text += f
					toks = append(toks, parsers.Token{ID: id, End: len(text)})
				}
				opt := parsers.Options{Tools: tools(), Start: parsers.Start(r.IntN(3)), TokenID: func(m string) (uint32, bool) {
					id, ok := vocab[m]
					return id, ok
				}}
				p, err := parsers.New(family, &opt)
				if err != nil {
					t.Fatal(err)
				}
				feed := func(chunks [][]parsers.Token) string {
					p.Reset()
					var all []event.Event
					from, total := 0, int32(0)
					for _, c := range chunks {
						to := c[len(c)-1].End
						var local []parsers.Token
						for _, k := range c {
							local = append(local, parsers.Token{ID: k.ID, End: k.End - from})
						}
						evs, err := p.FeedTokens(nil, []byte(text[from:to]), local)
						if err != nil {
							t.Fatal(err)
						}
						for _, e := range evs {
							all = append(all, e.Clone())
							total += e.Tokens
						}
						from = to
					}
					evs, err := p.Close(nil)
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, evs...)
					checkPromises(t, text, all)
					if total > int32(len(toks)) {
						t.Fatalf("%d of %d tokens counted", total, len(toks))
					}
					return assembled(all)
				}
				var single [][]parsers.Token
				for i := range toks {
					single = append(single, toks[i:i+1])
				}
				if d := cmp.Diff(feed([][]parsers.Token{toks}), feed(single)); d != "" {
					t.Fatalf("%s, tokens %q %v (-at once +one by one):\n%s", family, pieces, toks, d)
				}
			}
		})
	}
}
