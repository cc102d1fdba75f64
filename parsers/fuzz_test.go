// SPDX-License-Identifier: Apache-2.0

package parsers_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/event"
)

// fragments are the parts of random output of a family: its markup, whole and cut, and content.
func fragments(t testing.TB, family string) []string {
	d := dialectOf(t, family)
	out := []string{
		" ", "\n", "\n\n", "x", "text. ", "é", "\xff", "東京", "<", "</", "<|", ">", "{", "}", "[", "]", "(", ")", ",", ":", `"`, `'`, `\`, `\n`,
		"null", "true", "12", "1.5e3", `{"cmd":"ls"}`, `{}`, `"name"`, `"arguments"`, `"name":"run",`, `"arguments":`, `"parameters":`,
		`{"name": "run", "arguments": {"cmd": "a"}}`, `{"name": "now"}`, "run", "now", "get_weather", "cmd", "city", "=",
		"[run(cmd='a')]", "[now(), run(", "cmd=", "`", "```", "```json\n", ";", "; ", "}}", "]}",
		strings.Repeat("y", 300), strings.Repeat(" ", 300),
	}
	for _, m := range d.g.Markers() {
		n := len(m.Text)
		out = append(out, m.Text, m.Text, m.Text, m.Text[:n/2], m.Text[1:], m.Text[:1], m.Text[:n-1], m.Text[n-1:])
	}
	calls := []string{
		d.one("run", value{"cmd", "string", "a"}), d.one("now"), d.one("other", value{"q", "object", d.object}),
		d.one("put", value{"i", "number", "1"}, value{"s", "string", "<"}, value{"i", "number", "2"}),
	}
	for _, s := range append(calls,
		d.think, d.unthink, d.say, d.unsay, d.block, d.unblock, d.call("run"), d.call("put"), d.call("now"), d.call(""), d.uncall,
		d.param(0, "cmd", "string"), d.param(1, "s", "string"), d.param(0, "i", "number"), d.param(1, "o", "object"), d.param(0, "", "string"),
		d.unparam("cmd", "string"), d.unparam("cmd", "string"), d.unparam("s", "string"), d.unparam("i", "number"), d.object,
		d.head("run", "cmd", "string"), d.head("put", "i", "number"), d.head("put", "o", "object"), d.tail("cmd", "string"), d.tail("i", "number"),
		d.block+calls[0]+calls[1]+d.unblock, d.block+calls[0]+"\n"+calls[3]+d.unblock, "["+calls[0]+", "+calls[1]+"]",
	) {
		if s != "" {
			out = append(out, s)
		}
	}
	if c := d.g.Channels; c != nil {
		out = append(out, " to=functions.run", c.Recipient, c.ToolPrefix, "analysis", "commentary", "final", "json", "code", "assistant", " to=self")
		if len(c.Sections) > 1 {
			out = append(out, "<|channel|>commentary to=functions.run <|constrain|>json<|message|>", "<|constrain|>json<|message|>")
		}
	}
	if d.g.Elements != nil {
		for _, n := range []string{"think", "response", "tools", "call", "argument", "json", "message"} {
			out = append(out, n, "<|open|>"+n+"<|sep|>", "<|close|>"+n+"<|sep|>", "<|close|>"+n+"<|sep|>")
		}
		out = append(out, `<|open|>json type="object"<|sep|>`, ` tool="run"`, ` key="cmd"`, ` type="string"`, ` type="number"`)
	}
	return out
}

// randomOptions returns options for one check. Most fields are at their default most of the time.
func randomOptions(r *rand.Rand) parsers.Options {
	rarely := func() bool { return r.IntN(12) == 0 }
	profile := [...]string{"default", "dynamo", "strict"}[max(0, r.IntN(8)-5)]
	families := parsers.Default().Names()
	rules := policyOf(profile).In(families[r.IntN(len(families))])
	for _, name := range []string{
		"keep_blanks", "drop_after_call", "keep_orphans", "quote_in_reasoning", "break_out", "force_reasoning", "drop_unframed",
		"need_arguments", "reject_unknown_tools", "reject_recovered", "emit_truncated", "repair",
	} {
		if rarely() {
			rules[name] = strconv.FormatBool(rules[name] == "false")
		}
	}
	if rarely() {
		rules["before"] = [...]string{"template", "drop", "keep"}[r.IntN(3)]
	}
	if r.IntN(6) == 0 {
		rules["failed"] = [...]string{"drop", "malformed", "all"}[r.IntN(3)]
	}
	text := ""
	for name, value := range rules {
		text += " " + name + "=" + value
	}
	policy := policyOf(text)
	opt := parsers.Options{
		Start: parsers.Start(r.IntN(4)), SingleCall: rarely(), NoCalls: rarely(), Policy: policy, Allow: []string{"run"},
	}
	if r.IntN(4) == 0 {
		opt.Output = parsers.Output(1 + r.IntN(2))
	}
	if r.IntN(4) == 0 {
		opt.Limits = parsers.Limits{ArgumentBytes: r.Int64N(40), HeldBytes: r.IntN(40), Parameters: r.IntN(3), Calls: r.Int32N(4)}
	}
	if r.IntN(8) == 0 {
		opt.Channels = parsers.Channels(r.IntN(3))
	}
	return opt
}

// run feeds chunks to p, from its beginning, and returns all events, cloned.
func run(p *parsers.Parser, stopped bool, chunks []string) ([]event.Event, error) {
	p.Reset()
	var all, evs []event.Event
	var err error
	var buf []byte
	take := func() {
		for _, e := range evs {
			all = append(all, e.Clone())
		}
		for i := range buf { // a chunk that is retained must not count
			buf[i] = '#'
		}
	}
	for _, c := range chunks {
		buf = append(buf[:0], c...)
		if evs, err = p.Append(evs[:0], buf); err != nil {
			take()
			return all, err
		}
		take()
	}
	buf = buf[:0]
	if stopped {
		evs, err = p.Finish(evs[:0], event.Stop)
	} else {
		evs, err = p.Finish(evs[:0], event.None)
	}
	take()
	return all, err
}

// outcome is all that must not depend on how output is cut.
func outcome(evs []event.Event, err error) string {
	s := everything(evs)
	if err != nil {
		s += "error: " + err.Error() + "\n"
	}
	return s
}

// check asserts the promises that hold for any output.
func check(t testing.TB, c trial) {
	t.Helper()
	opt := c.opt
	opt.Tools = tools()
	p, err := parsers.New(c.family, &opt)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := run(p, c.stopped, []string{c.text})
	if _, limit := errors.AsType[*parsers.LimitError](err); err != nil && !limit {
		t.Fatal(err)
	}
	checkPromises(t, c.text, whole)
	checkArguments(t, whole)
	checkLeaks(t, p, &opt, c.text, whole)
	want := outcome(whole, err)
	r := rand.New(rand.NewPCG(c.seed, 1))
	for i, chunks := range [][]string{bytewise(c.text), cuts(r, c.text), cuts(r, c.text)} {
		evs, err := run(p, c.stopped, chunks) // the same parser again: Reset must leave no trace
		checkPromises(t, c.text, evs)
		if got := outcome(evs, err); got != want {
			if i == 0 {
				chunks = []string{"everywhere"}
			}
			t.Fatalf("cut %q (-whole +cut):\n%s", chunks, cmp.Diff(want, got))
		}
	}
}

// randomTrial parses text with options and cuts derived from seed.
func randomTrial(family, text string, seed uint64) trial {
	r := rand.New(rand.NewPCG(seed, 1))
	return trial{family: family, text: text, opt: randomOptions(r), stopped: r.IntN(4) == 0, seed: seed}
}

// checkArguments asserts that the arguments of a complete call are one JSON object.
func checkArguments(t testing.TB, evs []event.Event) {
	t.Helper()
	var c event.Collector
	c.Add(evs...)
	for _, a := range c.Answers {
		for _, b := range a.Blocks {
			if b.Kind != event.ToolStart || !b.Flags.Has(event.Complete) || b.Flags.Has(event.Custom) {
				continue
			}
			if !json.Valid(b.Data) || strings.TrimLeft(string(b.Data), " \t\r\n")[0] != '{' {
				t.Errorf("call %d is complete with arguments %q", b.Call, b.Data)
			}
		}
	}
}

// checkLeaks asserts that no marker occurs in visible text or reasoning if that can be decided without parsing: frames
// never occur, and tags of reasoning do not occur in text if reasoning is parsed.
func checkLeaks(t testing.TB, p *parsers.Parser, opt *parsers.Options, text string, evs []event.Event) {
	t.Helper()
	g := p.Grammar()
	var never []string
	switch {
	case opt.Output != parsers.Native || opt.Limits.HeldBytes > 0:
		return
	case g.Tagged == nil && g.Elements != nil:
		for _, m := range g.Markers() {
			never = append(never, m.Text)
		}
	case g.Channels != nil:
		for _, s := range g.Channels.Sections {
			never = append(never, s.Marker.Text)
		}
		if g.Channels.Body.Text != "" {
			never = append(never, g.Channels.Body.Text)
		}
		for _, m := range g.Channels.Ends {
			never = append(never, m.Text)
		}
	case g.Tagged.Reasoning != nil && !g.Tagged.Reasoning.Inline && opt.Channels != parsers.OnlyTools && opt.Start != parsers.StartResponse:
		r := g.Tagged.Reasoning
		never = append(never, r.Open.Text)
		rules := opt.Policy.In(g.Name)
		thinks := opt.Start == parsers.StartReasoning || r.Prompted || rules["force_reasoning"] == "true" ||
			slices.ContainsFunc(append(r.Open.Also, r.Open), func(m grammar.Marker) bool { return strings.Contains(text, m.Text) })
		if r.Close.Token && rules["keep_orphans"] == "false" && (!thinks || rules["drop_orphans"] == "true") {
			never = append(never, r.Close.Text)
		}
	}
	// Adjacent parts of the source are checked together.
	for i := 0; i < len(evs); {
		j := i + 1
		for j < len(evs) && evs[j].Kind == evs[i].Kind && evs[j].Off == evs[j-1].End {
			j++
		}
		from, to, kind := evs[i].Off, evs[j-1].End, evs[i].Kind
		i = j
		if kind != event.Text {
			continue
		}
		for _, m := range never {
			if strings.Contains(text[from:to], m) {
				t.Errorf("marker %q is visible", m)
			}
		}
	}
}

// roundsOf returns how many random outputs a test makes for one family: n with WEFT_TEST=long, a part of them without, or
// the value of WEFT_ROUNDS.
func roundsOf(t testing.TB, n int) int {
	t.Helper()
	if s := os.Getenv("WEFT_ROUNDS"); s != "" {
		v, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	switch {
	case raceEnabled:
		n /= 20
	case testing.Short():
		n /= 50
	case !long():
		n /= 6
	}
	return n
}

// damaged returns a reply of d with random damage.
func (d *dialect) damaged(r *rand.Rand, frags []string) string {
	calls := ""
	for range 1 + r.IntN(2) {
		calls += [...]string{
			d.one("now"), d.one("run", value{"cmd", "string", "ls -l"}),
			d.one("put", value{"s", "string", "a b"}, value{"i", "number", "12"}, value{"o", "object", d.object}),
		}[r.IntN(3)]
	}
	reply := d.block + calls + d.unblock
	if r.IntN(2) == 0 && !d.bare {
		reply = d.say + "Well. " + d.unsay + reply
	}
	if r.IntN(2) == 0 {
		reply = d.think + "so" + d.unthink + reply
	}
	for range 1 + r.IntN(3) {
		at := r.IntN(len(reply) + 1)
		to := min(len(reply), at+r.IntN(1+r.IntN(20)))
		switch r.IntN(4) {
		case 0:
			reply = reply[:at] + reply[to:]
		case 1:
			reply = reply[:to] + reply[at:]
		case 2:
			reply = reply[:at] + frags[r.IntN(len(frags))] + reply[to:]
		default:
			reply = reply[:at] + frags[r.IntN(len(frags))] + reply[at:]
		}
	}
	if r.IntN(3) == 0 {
		reply = reply[:r.IntN(len(reply)+1)]
	}
	return reply
}

// TestRandomOutput puts fragments together at random, or damages a reply.
func TestRandomOutput(t *testing.T) {
	rounds := roundsOf(t, 300)
	for _, d := range dialects(t) {
		t.Run(d.name, func(t *testing.T) {
			frags := fragments(t, d.name)
			for seed := range uint64(rounds) {
				r := rand.New(rand.NewPCG(seed, 2))
				var text string
				if seed%2 == 0 {
					text = d.damaged(r, frags)
				} else {
					for range 1 + r.IntN(14) {
						text += frags[r.IntN(len(frags))]
					}
				}
				verify(t, randomTrial(d.name, text, seed), check)
			}
		})
	}
}

// TestRandomTokens puts tokens together at random, markers and look-alikes of them, and compares one chunk of all with a
// chunk per token.
func TestRandomTokens(t *testing.T) {
	rounds := roundsOf(t, 200)
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
				opt := randomOptions(r)
				opt.Tools = tools()
				opt.TokenID = func(m string) (uint32, bool) {
					id, ok := vocab[m]
					return id, ok
				}
				p, err := parsers.New(family, &opt)
				if err != nil {
					t.Fatal(err)
				}
				var single [][]parsers.Token
				for i := range toks {
					single = append(single, toks[i:i+1])
				}
				want := feedTokens(t, p, text, [][]parsers.Token{toks})
				if got := feedTokens(t, p, text, single); got != want {
					opt.TokenID = nil
					t.Fatalf("tokens %q %v, %s (-at once +one by one):\n%s", pieces, toks, trial{family: family, opt: opt}, cmp.Diff(want, got))
				}
			}
		})
	}
}

// feedTokens feeds text in chunks of whole tokens, whose ends count from the beginning of text.
func feedTokens(t testing.TB, p *parsers.Parser, text string, chunks [][]parsers.Token) string {
	t.Helper()
	p.Reset()
	var all, evs []event.Event
	var err error
	from, fed, counted := 0, int32(0), int32(0)
	for _, c := range chunks {
		to := c[len(c)-1].End
		var local []parsers.Token
		for _, k := range c {
			local = append(local, parsers.Token{ID: k.ID, End: k.End - from})
		}
		fed += int32(len(c))
		evs, err = p.AppendTokens(evs[:0], []byte(text[from:to]), local)
		for _, e := range evs {
			all = append(all, e.Clone())
			counted += e.Tokens
		}
		if err != nil {
			break
		}
		from = to
	}
	if err == nil {
		evs, err = p.Finish(evs[:0], event.None)
		for _, e := range evs {
			all = append(all, e.Clone())
			counted += e.Tokens
		}
	}
	if _, limit := errors.AsType[*parsers.LimitError](err); err != nil && !limit {
		t.Fatal(err)
	}
	checkPromises(t, text, all)
	checkArguments(t, all)
	if counted > fed {
		t.Fatalf("%d of %d tokens counted", counted, fed)
	}
	return outcome(all, err)
}

// fuzz is the body of every fuzz target: the bytes of the output and a seed for the options and cuts.
func fuzz(f *testing.F, family string) {
	every := 1
	if testing.Short() {
		every = 16
	}
	for i, c := range goldens(f) {
		if c.family == family && i%every == 0 {
			f.Add(c.in, uint64(len(c.in)))
		}
	}
	for i, s := range fragments(f, family) {
		if i%every == 0 {
			f.Add(s, uint64(i))
		}
	}
	d := dialectOf(f, family)
	f.Add(d.think+"a"+d.unthink+d.say+"b"+d.unsay+d.block+d.one("run", value{"cmd", "string", "c"})+d.one("now")+d.unblock, uint64(0))
	f.Fuzz(func(t *testing.T, text string, seed uint64) { verify(t, randomTrial(family, text, seed), check) })
}

func FuzzCohere(f *testing.F)             { fuzz(f, "cohere") }
func FuzzDeepSeekR1(f *testing.F)         { fuzz(f, "deepseek_r1") }
func FuzzDeepSeekV3(f *testing.F)         { fuzz(f, "deepseek_v3") }
func FuzzDeepSeekV31(f *testing.F)        { fuzz(f, "deepseek_v3_1") }
func FuzzDeepSeekV32(f *testing.F)        { fuzz(f, "deepseek_v3_2") }
func FuzzDeepSeekV4(f *testing.F)         { fuzz(f, "deepseek_v4") }
func FuzzDeepSeekV41(f *testing.F)        { fuzz(f, "deepseek_v41") }
func FuzzFunctionGemma(f *testing.F)      { fuzz(f, "functiongemma") }
func FuzzGemma4(f *testing.F)             { fuzz(f, "gemma4") }
func FuzzGLM45(f *testing.F)              { fuzz(f, "glm45") }
func FuzzGLM47(f *testing.F)              { fuzz(f, "glm47") }
func FuzzGranite(f *testing.F)            { fuzz(f, "granite") }
func FuzzHarmony(f *testing.F)            { fuzz(f, "harmony") }
func FuzzHermes(f *testing.F)             { fuzz(f, "hermes") }
func FuzzInkling(f *testing.F)            { fuzz(f, "inkling") }
func FuzzJamba(f *testing.F)              { fuzz(f, "jamba") }
func FuzzJSON(f *testing.F)               { fuzz(f, "json") }
func FuzzKimi(f *testing.F)               { fuzz(f, "kimi") }
func FuzzKimiK2(f *testing.F)             { fuzz(f, "kimi_k2") }
func FuzzKimiK25(f *testing.F)            { fuzz(f, "kimi_k25") }
func FuzzKimiK3(f *testing.F)             { fuzz(f, "kimi_k3") }
func FuzzLaguna(f *testing.F)             { fuzz(f, "laguna") }
func FuzzLFM2(f *testing.F)               { fuzz(f, "lfm2") }
func FuzzLlama3JSON(f *testing.F)         { fuzz(f, "llama3_json") }
func FuzzMiMo(f *testing.F)               { fuzz(f, "mimo") }
func FuzzMiniMaxAppendThink(f *testing.F) { fuzz(f, "minimax_append_think") }
func FuzzMiniMaxM2(f *testing.F)          { fuzz(f, "minimax_m2") }
func FuzzMiniMaxM3(f *testing.F)          { fuzz(f, "minimax_m3") }
func FuzzMinistral(f *testing.F)          { fuzz(f, "ministral") }
func FuzzMistral(f *testing.F)            { fuzz(f, "mistral") }
func FuzzMistralV11(f *testing.F)         { fuzz(f, "mistral_v11") }
func FuzzMuseGlimmer(f *testing.F)        { fuzz(f, "muse_glimmer") }
func FuzzNemotronDeci(f *testing.F)       { fuzz(f, "nemotron_deci") }
func FuzzNemotronNano(f *testing.F)       { fuzz(f, "nemotron_nano") }
func FuzzOlmo3(f *testing.F)              { fuzz(f, "olmo3") }
func FuzzOlmo3Think(f *testing.F)         { fuzz(f, "olmo3_think") }
func FuzzPassthrough(f *testing.F)        { fuzz(f, "passthrough") }
func FuzzPhi4(f *testing.F)               { fuzz(f, "phi4") }
func FuzzPythonic(f *testing.F)           { fuzz(f, "pythonic") }
func FuzzQwen25(f *testing.F)             { fuzz(f, "qwen25") }
func FuzzQwen3(f *testing.F)              { fuzz(f, "qwen3") }
func FuzzQwen35(f *testing.F)             { fuzz(f, "qwen35") }
func FuzzQwen3Coder(f *testing.F)         { fuzz(f, "qwen3_coder") }
func FuzzQwen3Thinking(f *testing.F)      { fuzz(f, "qwen3_thinking") }
func FuzzSarashina(f *testing.F)          { fuzz(f, "sarashina") }
func FuzzStep3(f *testing.F)              { fuzz(f, "step3") }
func FuzzApriel(f *testing.F)             { fuzz(f, "apriel") }
func FuzzApertus(f *testing.F)            { fuzz(f, "apertus") }
func FuzzDots(f *testing.F)               { fuzz(f, "dots") }
func FuzzERNIE45(f *testing.F)            { fuzz(f, "ernie45") }
func FuzzGigaChat3(f *testing.F)          { fuzz(f, "gigachat3") }
func FuzzGranite20B(f *testing.F)         { fuzz(f, "granite_20b_fc") }
func FuzzHunyuanA13B(f *testing.F)        { fuzz(f, "hunyuan_a13b") }
func FuzzHyV3(f *testing.F)               { fuzz(f, "hy_v3") }
func FuzzInternLM(f *testing.F)           { fuzz(f, "internlm") }
func FuzzLing3(f *testing.F)              { fuzz(f, "ling3") }
func FuzzLongCat(f *testing.F)            { fuzz(f, "longcat") }
func FuzzMiniCPM5(f *testing.F)           { fuzz(f, "minicpm5") }
func FuzzSeedOSS(f *testing.F)            { fuzz(f, "seed_oss") }
func FuzzXLAM(f *testing.F)               { fuzz(f, "xlam") }
func FuzzStep35(f *testing.F)             { fuzz(f, "step3p5") }
func FuzzFunctionaryV31(f *testing.F)     { fuzz(f, "functionary_v3_1") }
func FuzzGigaChat35(f *testing.F)         { fuzz(f, "gigachat35") }
func FuzzHy3(f *testing.F)                { fuzz(f, "hy3") }
func FuzzHyV4(f *testing.F)               { fuzz(f, "hy_v4") }
func FuzzIQuestQ1(f *testing.F)           { fuzz(f, "iquest_q1") }
func FuzzMiniMaxM1(f *testing.F)          { fuzz(f, "minimax_m1") }
func FuzzSolarOpen2(f *testing.F)         { fuzz(f, "solar_open2") }
func FuzzSpark25(f *testing.F)            { fuzz(f, "spark25") }
func FuzzTeleChat4(f *testing.F)          { fuzz(f, "telechat4") }

// TestFuzzTargets asserts that every family has its fuzz target above.
func TestFuzzTargets(t *testing.T) {
	src, err := os.ReadFile("fuzz_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range parsers.Default().Names() {
		if !strings.Contains(string(src), `{ fuzz(f, "`+name+`") }`) {
			t.Errorf("no fuzz target for %s", name)
		}
	}
}

// long reports whether to run tests in full: WEFT_TEST=long is set.
func long() bool { return os.Getenv("WEFT_TEST") == "long" }
