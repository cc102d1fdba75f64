// SPDX-License-Identifier: Apache-2.0

package parsers_test

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/parsers/family"
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/event"
)

func TestFinish(t *testing.T) {
	for _, in := range []string{
		`<|channel|>commentary to=functions.run<|message|>{"cmd":"a"}`,
		`<|channel|>commentary to=functions.run<|message|>{"cmd":"a"} `,
	} {
		p, err := parsers.New("harmony", nil)
		require.NoError(t, err)
		evs, err := p.Append(nil, []byte(in))
		require.NoError(t, err)
		evs, err = p.Finish(evs, event.Stop)
		require.NoError(t, err)
		require.Equal(t, "call run {\"cmd\":\"a\"}\n", assembled(evs))
	}
	// A call without arguments has none to stream.
	p, err := parsers.New("harmony", nil)
	require.NoError(t, err)
	var all event.Collector
	evs, err := p.Append(nil, []byte("<|channel|>commentary to=functions.now<|message|>"))
	require.NoError(t, err)
	all.Add(evs...)
	evs, err = p.Finish(evs[:0], event.Stop)
	require.NoError(t, err)
	all.Add(evs...)
	require.Equal(t, "{}", string(all.Answers[0].Calls()[0].Data))
	// Cut arguments stay cut.
	p.Reset()
	_, err = p.Append(nil, []byte(`<|channel|>commentary to=functions.run<|message|>{"cmd":"a"`))
	require.NoError(t, err)
	evs, err = p.Finish(nil, event.Stop)
	require.NoError(t, err)
	require.Equal(t, "abort \"run\" truncated\n", assembled(evs))
}

// TestAllow checks that calls of tools that Options.Allow does not list abort, in all forms of output, and that their source
// can become text.
func TestAllow(t *testing.T) {
	call := func(name string) string {
		return `<tool_call>{"name":"` + name + `","arguments":{}}</tool_call>`
	}
	list := `[{"name":"now","arguments":{}},{"name":"run","arguments":{}},{"name":"gone","arguments":{}}]`
	const now, rest = "call now {}\n", "abort \"run\" not_allowed\nabort \"gone\" not_allowed\n"
	allow := []string{"now", "put"}
	native := call("now") + call("run") + call("gone")
	require.Equal(t, now+rest, assembled(parse(t, "hermes", parsers.Options{Allow: allow}, native)))
	require.Equal(t, now+rest, assembled(parse(t, "hermes", parsers.Options{Allow: allow, Output: parsers.GuidedRequired}, list)))
	require.Equal(t, now+"call run {}\ncall gone {}\n", assembled(parse(t, "hermes", parsers.Options{}, native)))
	require.Equal(t, "abort \"now\" not_allowed\n"+rest, assembled(parse(t, "hermes", parsers.Options{Allow: []string{}}, native)))
	got := parse(t, "hermes", parsers.Options{Allow: allow, Policy: policyOf("failed=all")}, call("run"))
	require.Equal(t, fmt.Sprintf("abort \"run\" not_allowed\ntext %q\n", call("run")), assembled(got))
	const harmony = `<|channel|>commentary to=functions.run<|message|>{"cmd":"a"}<|call|>`
	require.Equal(t, "abort \"run\" not_allowed\n", assembled(parse(t, "harmony", parsers.Options{Allow: allow}, harmony)))
}

// TestFinishEvent asserts why a turn ends, for what the engine reports and what the model wrote.
func TestFinishEvent(t *testing.T) {
	const call = `<tool_call>{"name":"now","arguments":{}}</tool_call>`
	for _, c := range []struct {
		in        string
		why, want event.Why
	}{
		{"", event.None, event.Stop},
		{"Hi.", event.None, event.Stop},
		{"Hi.", event.Stop, event.Stop},
		{"Hi.", event.Length, event.Length},
		{call, event.None, event.ToolCalls},
		{call, event.Stop, event.ToolCalls},
		{call, event.Length, event.Length},
		{call, event.StopSequence, event.StopSequence},
		{call, event.ContentFilter, event.ContentFilter},
		{"<think>" + call, event.Stop, event.Stop}, // a call inside reasoning is not dispatched
		{`<tool_call>{"name":"now","arg`, event.None, event.Length},
	} {
		p, err := parsers.New("hermes", &parsers.Options{Tools: tools(), Choice: 2})
		require.NoError(t, err)
		for range 2 {
			evs, err := p.AppendTokens(nil, []byte(c.in), []parsers.Token{{ID: 1, End: len(c.in)}})
			require.NoError(t, err)
			evs, err = p.AppendTokens(evs, nil, []parsers.Token{{ID: 9}}) // the end of the turn
			require.NoError(t, err)
			evs, err = p.Finish(evs, c.why)
			require.NoError(t, err)
			last := evs[len(evs)-1]
			require.Equal(t, event.Finish, last.Kind)
			require.Equal(t, c.want, last.Why, "%q %v", c.in, c.why)
			require.EqualValues(t, 2, last.Choice)
			require.EqualValues(t, len(c.in), last.End)
			tokens := int32(0)
			for _, e := range evs {
				tokens += e.Tokens
			}
			require.EqualValues(t, 2, tokens, "%q %v", c.in, c.why)
			evs, err = p.Finish(nil, c.why)
			require.NoError(t, err)
			require.Empty(t, evs)
			p.Reset()
		}
	}
}

func TestUseAfterFinish(t *testing.T) {
	p, err := parsers.New("hermes", nil)
	require.NoError(t, err)
	_, err = p.Finish(nil, event.None)
	require.NoError(t, err)
	evs, err := p.Finish(nil, event.None)
	require.NoError(t, err)
	require.Empty(t, evs)
	_, err = p.Append(nil, []byte("x"))
	require.ErrorContains(t, err, "Append after Finish")
	p.Reset()
	evs, err = p.Append(nil, []byte("x"))
	require.NoError(t, err)
	require.Len(t, evs, 1)
}

func TestReset(t *testing.T) {
	for i, c := range goldens(t) {
		if testing.Short() && i%5 != 0 {
			continue
		}
		opt := c.opt
		opt.Tools = tools()
		p, err := parsers.New(c.family, &opt)
		require.NoError(t, err)
		// A first response that stops anywhere must leave no trace.
		_, err = p.Append(nil, []byte(c.in[:len(c.in)/2]))
		require.NoError(t, err)
		p.Reset()
		if d := cmp.Diff(c.want, assembled(drive(t, p, c.in))); d != "" {
			t.Fatalf("%s/%s after Reset (-want +got):\n%s", c.family, c.name, d)
		}
	}
}

// TestToolEndIsImmediate asserts that a call can be dispatched while its block is still open.
func TestToolEndIsImmediate(t *testing.T) {
	for family, in := range map[string]string{
		"hermes":      `<tool_call>{"name":"now","arguments":{}}`,
		"qwen3_coder": "<tool_call>\n<function=now>\n</function>",
		"harmony":     "<|channel|>commentary to=functions.now<|message|>{}<|call|>",
		"kimi_k3":     `<|open|>tools<|sep|><|open|>call tool="now"<|sep|><|close|>call<|sep|>`,
	} {
		p, err := parsers.New(family, nil)
		require.NoError(t, err)
		evs, err := p.Append(nil, []byte(in))
		require.NoError(t, err)
		require.NotEmpty(t, evs)
		last := evs[len(evs)-1]
		require.Equal(t, event.ToolEnd, last.Kind, family)
		require.True(t, last.Flags.Has(event.Complete), family)
	}
}

// ids is a vocabulary for tests: some markers are tokens, all else is spelled by token 1.
var ids = map[string]uint32{"<tool_call>": 100, "</tool_call>": 101, "<think>": 102, "</think>": 103}

func tokenID(m string) (uint32, bool) { id, ok := ids[m]; return id, ok }

func TestAppendTokens(t *testing.T) {
	type piece struct {
		text string
		id   uint32
	}
	for _, c := range []struct {
		name   string
		pieces []piece
		want   string
	}{
		{"as the model writes", []piece{
			{"<think>", 102}, {"a", 1}, {"</think>", 103}, {"\n\n", 1}, {"<tool_call>", 100}, {`{"name":"now","arguments":{}}`, 1}, {"</tool_call>", 101},
		}, "reasoning \"a\"\ncall now {}\n"},
		{"look-alikes are data", []piece{
			{"Write <tool", 1}, {"_call>", 1}, {`{"name":"now","arguments":{}}`, 1}, {"</tool_call>", 1}, {" and <think>", 1},
		}, "text \"Write <tool_call>{\\\"name\\\":\\\"now\\\",\\\"arguments\\\":{}}</tool_call> and <think>\"\n"},
		{"look-alike, then the token", []piece{
			{"the <tool_call> tag", 1}, {"<tool_call>", 100}, {`{"name":"now","arguments":{}}`, 1}, {"</tool_call>", 101},
		}, "text \"the <tool_call> tag\"\ncall now {}\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var text string
			var toks []parsers.Token
			for _, p := range c.pieces {
				text += p.text
				toks = append(toks, parsers.Token{ID: p.id, End: len(text)})
			}
			p, err := parsers.New("hermes", &parsers.Options{Tools: tools(), TokenID: tokenID})
			require.NoError(t, err)
			// All in one chunk.
			evs, err := p.AppendTokens(nil, []byte(text), toks)
			require.NoError(t, err)
			evs, err = p.Finish(evs, event.None)
			require.NoError(t, err)
			require.Equal(t, c.want, assembled(evs))
			n := int32(0)
			for _, e := range evs {
				n += e.Tokens
			}
			require.LessOrEqual(t, n, int32(len(toks)))
			// Token by token.
			p.Reset()
			var all []event.Event
			for _, pc := range c.pieces {
				evs, err := p.AppendTokens(nil, []byte(pc.text), []parsers.Token{{ID: pc.id, End: len(pc.text)}})
				require.NoError(t, err)
				for _, e := range evs {
					all = append(all, e.Clone())
				}
			}
			evs, err = p.Finish(nil, event.None)
			require.NoError(t, err)
			require.Equal(t, c.want, assembled(append(all, evs...)))
		})
	}
}

// TestTokensAgreeWithText feeds every golden with ids, each marker that is a token as one: the result equals the result
// of the text.
func TestTokensAgreeWithText(t *testing.T) {
	for i, c := range goldens(t) {
		if testing.Short() && i%9 != 0 {
			continue
		}
		g, err := parsers.Default().Lookup(c.family)
		require.NoError(t, err)
		vocab := map[string]uint32{}
		for i, m := range g.Markers() {
			if m.Token {
				vocab[m.Text] = uint32(1000 + i)
			}
		}
		opt := c.opt
		opt.Tools = tools()
		opt.TokenID = func(m string) (uint32, bool) { id, ok := vocab[m]; return id, ok }
		p, err := parsers.New(c.family, &opt)
		require.NoError(t, err)
		var all []event.Event
		tokens := int32(0)
		for rest := c.in; rest != ""; {
			n, id := 1, uint32(1)
			for m, v := range vocab {
				if strings.HasPrefix(rest, m) {
					n, id = len(m), v
				}
			}
			evs, err := p.AppendTokens(nil, []byte(rest[:n]), []parsers.Token{{ID: id, End: n}})
			require.NoError(t, err)
			for _, e := range evs {
				all = append(all, e.Clone())
			}
			tokens++
			rest = rest[n:]
		}
		evs, err := p.Finish(nil, event.None)
		require.NoError(t, err)
		all = append(all, evs...)
		if d := cmp.Diff(c.want, assembled(all)); d != "" {
			t.Fatalf("%s/%s by token (-want +got):\n%s", c.family, c.name, d)
		}
		counted := int32(0)
		for _, e := range all {
			counted += e.Tokens
		}
		require.LessOrEqual(t, counted, tokens)
	}
}

func TestLimits(t *testing.T) {
	t.Run("calls", func(t *testing.T) {
		p, err := parsers.New("hermes", &parsers.Options{Limits: parsers.Limits{Calls: 3}})
		require.NoError(t, err)
		evs, err := p.Append(nil, []byte(strings.Repeat(`<tool_call>{"name":"now","arguments":{}}</tool_call>`, 5)))
		limit, ok := errors.AsType[*parsers.LimitError](err)
		require.True(t, ok, "%v", err)
		require.EqualError(t, err, "parsers: calls exceed 3 at offset 156")
		require.EqualValues(t, 3*52, limit.Offset)
		require.Equal(t, strings.Repeat("call now {}\n", 3), assembled(evs))
		_, err = p.Append(nil, []byte("x"))
		require.ErrorIs(t, err, limit)
	})
	t.Run("argument bytes", func(t *testing.T) {
		for family, in := range map[string]string{
			"hermes":      `<tool_call>{"name":"run","arguments":{"cmd":"` + strings.Repeat("x", 500) + `"}}</tool_call>ok`,
			"qwen3_coder": "<tool_call>\n<function=run>\n<parameter=cmd>\n" + strings.Repeat("x", 500) + "\n</parameter>\n</function>\n</tool_call>ok",
		} {
			p, err := parsers.New(family, &parsers.Options{Tools: tools(), Limits: parsers.Limits{ArgumentBytes: 100}})
			require.NoError(t, err)
			require.Equal(t, "abort \"run\" limit\ntext \"ok\"\n", assembled(drive(t, p, bytewise(in)...)), family)
		}
	})
	t.Run("held bytes", func(t *testing.T) {
		in := "<tool_call>\n<function=put>\n<parameter=o>\n" + strings.Repeat("[", 500)
		p, err := parsers.New("qwen3_coder", &parsers.Options{Tools: tools(), Limits: parsers.Limits{HeldBytes: 100}})
		require.NoError(t, err)
		require.Equal(t, "abort \"put\" limit\n", assembled(drive(t, p, bytewise(in)...)))
	})
	t.Run("depth", func(t *testing.T) {
		in := `<tool_call>{"name":"run","arguments":{"a":` + strings.Repeat("[", 100_000) + `</tool_call>ok`
		require.Equal(t, "abort \"run\" limit\ntext \"ok\"\n", assembled(parse(t, "hermes", parsers.Options{}, in)))
	})
}

// TestLimitsWhateverTheCuts asserts that a limit is met at the same byte however the output is cut, and that what an
// aborted call held is not treated as text or for other calls.
func TestLimitsWhateverTheCuts(t *testing.T) {
	const value = `aaaaaaaaaaaaaaa</tool_call><function=now></function>aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa`
	for _, c := range []struct {
		family   string
		opt      parsers.Options
		in, want string
	}{
		{"hermes", parsers.Options{}, `<tool_call>{"name":"run","arguments":{"cmd":"` + value + `"}}</tool_call>ok`, "abort \"run\" limit\ntext \"ok\"\n"},
		{"hermes", parsers.Options{}, `<tool_call>{"arguments":{"cmd":"` + value + `"},"name":"run"}</tool_call>ok`, "abort \"\" limit\ntext \"ok\"\n"},
		{"hermes", parsers.Options{}, `<tool_call>{"` + strings.Repeat("k", 2000) + `":1,"name":"now"}</tool_call>ok`, "call now {} recovered\ntext \"ok\"\n"},
		{"qwen3_coder", parsers.Options{}, "<function=run><parameter=cmd>" + value + "</parameter></function>ok", "abort \"run\" limit\ntext \"ok\"\n"},
		{"qwen3_coder", parsers.Options{}, "<function=put><parameter=o>" + value + "</parameter></function>ok", "abort \"put\" limit\ntext \"ok\"\n"},
		{"harmony", parsers.Options{}, `<|channel|>commentary to=functions.run<|message|>{"cmd":"` + value + `<|call|>"}<|call|>ok`, "abort \"run\" limit\ntext \"ok\"\n"},
		{"kimi_k3", parsers.Options{}, `<|open|>call tool="put"<|sep|><|open|>argument key="o" type="object"<|sep|>` + value + `<|close|>argument<|sep|><|close|>call<|sep|>ok`, "abort \"put\" limit\ntext \"ok\"\n"},
		{"hermes", parsers.Options{Output: parsers.GuidedRequired}, `[{"name":"run","arguments":{"cmd":"` + value + `"}}]`, "text \"[{\\\"name\\\":\\\"run\\\",\\\"arguments\\\":{\\\"cmd\\\":\\\"aaaaaaaaaaaaaaa<function=now></function>" + strings.Repeat("a", 42) + "\\\"}}]\"\n"},
	} {
		c.opt.Limits = parsers.Limits{ArgumentBytes: 30, HeldBytes: 40}
		whole := parse(t, c.family, c.opt, c.in)
		require.Equal(t, c.want, assembled(whole), "%s %q", c.family, c.in)
		checkInvariant(t, c.family, c.opt, c.in)
		checkPromises(t, c.in, whole)
	}
}

// TestTokensWithoutBytes asserts that tokens are counted although the detokenizer holds their bytes back.
func TestTokensWithoutBytes(t *testing.T) {
	p, err := parsers.New("hermes", nil)
	require.NoError(t, err)
	evs, err := p.AppendTokens(nil, nil, []parsers.Token{{ID: 1}, {ID: 2}})
	require.NoError(t, err)
	evs, err = p.AppendTokens(evs, []byte("é"), []parsers.Token{{ID: 3, End: 2}})
	require.NoError(t, err)
	require.Len(t, evs, 1)
	require.EqualValues(t, 3, evs[0].Tokens)
}

func TestUnknownFamily(t *testing.T) {
	_, err := parsers.New("qwen3-codr", nil)
	unknown, ok := errors.AsType[*parsers.UnknownFamilyError](err)
	require.True(t, ok)
	require.Equal(t, "qwen3_coder", unknown.Near[0])
	require.EqualError(t, err, `parsers: unknown family "qwen3-codr"; did you mean `+strings.Join(unknown.Near, ", ")+"?")
	known := "; known are " + strings.Join(parsers.Default().Names(), ", ")
	for name, want := range map[string]string{
		"nope":                 `parsers: unknown family "nope"` + known,
		"":                     `parsers: unknown family ""` + known,
		"hermes+hermes+hermes": `parsers: unknown family "hermes+hermes+hermes"` + known,
		"qwen":                 "",
		"qwne3":                `parsers: unknown family "qwne3"; did you mean qwen25, qwen3?`,
		"kimi_k4":              `parsers: unknown family "kimi_k4"; did you mean kimi_k2, kimi_k3, kimi?`,
		"deepsek":              `parsers: unknown family "deepsek"; did you mean deepseek_v3, deepseek_v3_1?`,
		"gpt-oss-":             "",
		"lama-3.1-8b-instruct": `parsers: unknown family "lama-3.1-8b-instruct"` + known,
	} {
		if _, err := parsers.New(name, nil); want != "" {
			require.EqualError(t, err, want)
		} else {
			require.NoError(t, err)
		}
	}
	_, err = new(parsers.Registry).Lookup("nope")
	require.EqualError(t, err, `parsers: unknown family "nope"`)
	for _, name := range []string{"Qwen3-Coder", "QWEN3.CODER", "qwen3coder", "gpt-oss", "kimi-k3", "qwen2.5"} {
		_, err := parsers.New(name, nil)
		require.NoError(t, err, name)
	}
}

func TestRegistry(t *testing.T) {
	own := family.New("hermes")
	own.Name, own.Aliases = "mine", []string{"hermes"}
	own.Tagged.Open, own.Tagged.Close = grammar.Lit("<call>"), grammar.Lit("</call>")
	r, err := new(parsers.Registry).Extend(append(family.All(), own)...)
	require.NoError(t, err)
	p, err := r.New("hermes", nil) // shadowed by its alias
	require.NoError(t, err)
	require.Equal(t, "call f {}\n", assembled(drive(t, p, `<call>{"name":"f","arguments":{}}</call>`)))
	require.Contains(t, r.Names(), "mine")

	own.MaxHold = 0
	_, err = new(parsers.Registry).Extend(own)
	require.ErrorContains(t, err, "MaxHold")
	_, err = parsers.NewParser(&grammar.Grammar{Name: "x", MaxHold: 1}, nil)
	require.ErrorContains(t, err, "exactly one layout")
}

func TestFamiliesAreValid(t *testing.T) {
	for _, g := range family.All() {
		require.NoError(t, g.Validate())
		require.Equal(t, g.Name == "passthrough" || g.Name == "json", len(g.Markers()) == 0, g.Name)
	}
}

func TestPolicies(t *testing.T) {
	keep := parsers.Options{Policy: policyOf("keep_blanks keep_orphans")}
	require.Equal(t, "text \" \"\ncall now {}\ntext \"\\n</tool_call>\"\n",
		assembled(parse(t, "hermes", keep, ` <tool_call>{"name":"now","arguments":{}}</tool_call>`+"\n</tool_call>")))
	quote := parsers.Options{Policy: policyOf("quote_in_reasoning")}
	require.Equal(t, "reasoning \"a<tool_call>b\"\ntext \"c\"\n",
		assembled(parse(t, "hermes", quote, "<think>a<tool_call>b</think>c")))
	strict := parsers.Options{Policy: policyOf("reject_unknown_tools")}
	require.Equal(t, "abort \"other\" unknown_tool\ncall now {}\n",
		assembled(parse(t, "hermes", strict, `<tool_call>{"name":"other","arguments":{}}</tool_call><tool_call>{"name":"now","arguments":{}}</tool_call>`)))
}

func TestParsePolicy(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "default"},
		{" strict\n", "strict"},
		{"failed=malformed  dynamo=x", `parsers: policy: unknown word "dynamo=x": want default, dynamo, strict, keep_blanks, before=template|drop|keep, keep_tail, join_thoughts, drop_after_call, keep_orphans, drop_orphans, quote_in_reasoning, break_out, opener_ends_thought, force_reasoning, drop_unframed, bare_anywhere, untyped_json, typed_by_schema, unwrap, need_arguments, reject_unknown_tools, reject_recovered, unclosed, emit_truncated, repair, failed=drop|malformed|all`},
		{"dynamo repair failed=malformed keep_blanks=false before=template", "dynamo keep_blanks=false before=template repair failed=malformed"},
		{"default before=keep repair keep_blanks=false before=template", "default repair"},
		{"repair=true failed=all", "default repair failed=all"},
		{"repair dynamo", `parsers: policy "repair dynamo": the profile dynamo must be the first word`},
		{"repair=yes", `parsers: policy: word "repair=yes": want repair=false|true`},
		{"before", `parsers: policy: word "before": want before=template|drop|keep`},
	} {
		p, err := parsers.ParsePolicy(c.text)
		if err != nil {
			require.Equal(t, c.want, err.Error())
			require.Zero(t, p)
			continue
		}
		require.Equal(t, c.want, p.String())
		require.True(t, p == policyOf(p.String()), c.text)
	}
	require.True(t, policyOf("before=template repair=false") == parsers.Policy{})
	require.Equal(t, "all", policyOf("dynamo").In("hermes")["failed"])
	require.Equal(t, "drop", policyOf("dynamo failed=drop").In("hermes")["failed"])
	require.Equal(t, "true", policyOf("strict").In("hermes")["reject_recovered"])
}

// TestPolicyDoc tests that the doc comment of Policy lists the rules of the profile dynamo for each family, and every rule.
func TestPolicyDoc(t *testing.T) {
	raw, err := os.ReadFile("policy.go")
	require.NoError(t, err)
	_, doc, _ := strings.Cut(string(raw), "// Policy selects")
	doc, table, ok := strings.Cut(doc, "The profile dynamo is ")
	require.True(t, ok)
	for name := range policyOf("").In("") {
		require.Regexp(t, `\n//\t`+name+`(  |=VALUE  )`, doc)
	}
	table, _, _ = strings.Cut(table, "type Policy")
	listed := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^//\t(\S+(?:, \S+)*)  +(.+)$`).FindAllStringSubmatch(table, -1) {
		for _, name := range strings.Split(m[1], ", ") {
			listed[name] = m[2]
		}
	}
	require.NotEmpty(t, listed)
	for _, name := range parsers.Default().Names() {
		require.Equal(t, policyOf("drop_after_call drop_orphans before=keep "+listed[name]).In(name), policyOf("dynamo").In(name), name)
		delete(listed, name)
	}
	require.Empty(t, listed, "no family has the name")
}

// TestPlainPath compares Append, which passes plain chunks at once, with AppendTokens, which never does.
func TestPlainPath(t *testing.T) {
	for i, c := range goldens(t) {
		if testing.Short() && i%9 != 0 {
			continue
		}
		opt := c.opt
		opt.Tools = tools()
		fast, err := parsers.New(c.family, &opt)
		require.NoError(t, err)
		slow, err := parsers.New(c.family, &opt)
		require.NoError(t, err)
		sizes := []int{1, 2, 3, 7}
		if !long() {
			sizes = [][]int{{7}, {2}}[i%2]
		}
		for _, size := range sizes {
			fast.Reset()
			slow.Reset()
			for i, chunk := range pieces(c.in, size) {
				want, err := slow.AppendTokens(nil, chunk, nil)
				require.NoError(t, err)
				got, err := fast.Append(nil, chunk)
				require.NoError(t, err)
				if !reflect.DeepEqual(want, got) {
					t.Fatalf("%s/%s, chunk %d of %d bytes (-slow +fast):\n%s", c.family, c.name, i, size, cmp.Diff(want, got))
				}
			}
		}
	}
}

// TestFinishOfCutCall tests that a stream that ends inside a call, for an unknown reason, counts as cut, whatever calls
// came before: a client that acts on the calls must not act on half of one.
func TestFinishOfCutCall(t *testing.T) {
	for why, want := range map[event.Why]event.Why{event.None: event.Length, event.Length: event.Length, event.Stop: event.ToolCalls} {
		p, err := parsers.New("hermes", nil)
		require.NoError(t, err)
		evs, err := p.Append(nil, []byte(`<tool_call>{"name": "now", "arguments": {}}</tool_call><tool_call>{"name": "run", "arguments": {"cmd": "l`))
		require.NoError(t, err)
		evs, err = p.Finish(evs, why)
		require.NoError(t, err)
		require.Equal(t, want, evs[len(evs)-1].Why)
	}
}

// A list of calls that is held until it closes is text if the end of the stream cuts it, and the turn then ends with Length.
func TestFinishOfCutList(t *testing.T) {
	for _, c := range []struct {
		family, in string
		output     parsers.Output
		want       event.Why
	}{
		{"pythonic", `[run(cmd="l`, parsers.Native, event.Length},
		{"pythonic", `[ run (cmd="a"), `, parsers.Native, event.Length},
		{"pythonic", `[Smith (2004) has more.`, parsers.Native, event.Stop},
		{"pythonic", `[run(cmd="a") is how.]`, parsers.Native, event.Stop},
		{"hermes", `[{"name":"run","arguments":{"cmd":"l`, parsers.GuidedRequired, event.Length},
		{"hermes", `[`, parsers.GuidedRequired, event.Length},
		{"hermes", `[1]`, parsers.GuidedRequired, event.Stop},
		{"hermes", `[so`, parsers.GuidedRequired, event.Stop},
		{"hermes", `{"cmd":"l`, parsers.GuidedNamed, event.Length},
	} {
		opt := parsers.Options{Output: c.output}
		if c.output == parsers.GuidedNamed {
			opt.Allow = []string{"run"}
		}
		for _, chunks := range [][]string{{c.in}, bytewise(c.in)} {
			evs := parse(t, c.family, opt, chunks...)
			require.Equal(t, c.want, evs[len(evs)-1].Why, "%s %q", c.family, c.in)
			if c.output != parsers.GuidedNamed {
				require.Equal(t, fmt.Sprintf("text %q\n", c.in), assembled(evs))
			}
		}
	}
}

// An id after the arguments comes too late for the start of the call, so that its end has it.
func TestLateID(t *testing.T) {
	for _, in := range []string{
		`[TOOL_CALLS][{"name": "run", "arguments": {"cmd": "a"}, "id": "abcDEF123"}, {"name": "run", "arguments": {}}]`,
		`[TOOL_CALLS][{"id": "abcDEF123", "name": "run", "arguments": {"cmd": "a"}}, {"name": "run", "arguments": {}}]`,
	} {
		p, err := parsers.New("mistral", nil)
		require.NoError(t, err)
		var early, late []string
		add := func(evs []event.Event, err error) {
			require.NoError(t, err)
			for _, ev := range evs {
				switch ev.Kind {
				case event.ToolStart:
					early = append(early, string(ev.ID))
				case event.ToolEnd:
					late = append(late, string(ev.ID))
				}
			}
		}
		for i := range in { // byte by byte
			add(p.Append(nil, []byte(in[i:i+1])))
		}
		add(p.Finish(nil, event.Stop))
		want := []string{"abcDEF123", ""}
		if strings.HasPrefix(in, `[TOOL_CALLS][{"id"`) {
			early, late = late, early
		}
		require.Equal(t, want, late, in)
		require.Equal(t, []string{"", ""}, early, in)
	}
}

// A value that Length cut may end in a closing tag: half of a command must not run. Where the engine reports something
// else, the tag completes the call.
func TestFinishOfCutValue(t *testing.T) {
	for _, c := range []struct{ family, in, args string }{
		{"glm47", `<tool_call>run<arg_key>cmd</arg_key><arg_value>echo '</tool_call>`, `{"cmd":"echo '"}`},
		{"qwen3_coder", "<tool_call>\n<function=run>\n<parameter=cmd>\necho '</function>", `{"cmd":"echo '"}`},
		{"qwen3_coder", "<tool_call>\n<function=run>\n<parameter=cmd>\nrm -rf /tmp/x </tool_call>", `{"cmd":"rm -rf /tmp/x "}`},
		{"minimax_m2", `<minimax:tool_call><invoke name="run"><parameter name="cmd">echo </invoke>`, `{"cmd":"echo "}`},
		{"deepseek_v3_2", `<｜DSML｜function_calls><｜DSML｜invoke name="run"><｜DSML｜parameter name="cmd" string="true">echo </｜DSML｜invoke>`, `{"cmd":"echo "}`},
		{"seed_oss", `<seed:tool_call><function=run><parameter=cmd>echo '</function>`, `{"cmd":"echo '"}`},
		{"qwen3_coder", "<tool_call>\n<function=put>\n<parameter=a>\n[\"</parameter></function>", `{"a":"[\""}`},
		{"kimi_k3", `<|open|>tools<|sep|><|open|>call tool="run"<|sep|><|open|>argument key="cmd" type="string"<|sep|>echo <|close|>call<|sep|>`, `{"cmd":"echo "}`},
	} {
		p, err := parsers.New(c.family, &parsers.Options{Tools: tools()})
		require.NoError(t, err)
		for _, chunks := range [][]string{{c.in}, bytewise(c.in)} {
			for why, complete := range map[event.Why]bool{event.Length: false, event.None: true, event.Stop: true} {
				p.Reset()
				var all event.Collector
				for _, chunk := range chunks {
					evs, err := p.Append(nil, []byte(chunk))
					require.NoError(t, err)
					all.Add(evs...)
				}
				evs, err := p.Finish(nil, why)
				require.NoError(t, err)
				all.Add(evs...)
				last := all.Answers[0].Blocks[len(all.Answers[0].Blocks)-1]
				require.Equal(t, complete, last.Flags.Has(event.Complete), "%s %v: %q", c.family, why, c.in)
				if complete {
					require.Equal(t, c.args, string(last.Data), "%s %v: %q", c.family, why, c.in)
				} else {
					require.Equal(t, event.ToolAbort, last.Kind)
					require.Equal(t, event.Truncated, last.Why)
				}
			}
		}
	}
}
