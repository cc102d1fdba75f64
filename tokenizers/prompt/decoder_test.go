// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/tokenizers/mini"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// A talk is a request and its prompt.
type talk struct {
	m   *prompt.Model
	req *block.Request
	p   *prompt.Prompt
}

// ask renders a chat request with one question and a tool; more contains further fields.
func ask(t testing.TB, opt prompt.Options, more string) *talk {
	t.Helper()
	m, err := prompt.Load(mini.FS(), &opt)
	require.NoError(t, err)
	req, err := decode("chat", []byte(`{"model":"m","messages":[{"role":"user","content":"Hi"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]`+more+`}`), nil)
	require.NoError(t, err)
	p, err := m.Render(req, noon)
	require.NoError(t, err)
	return &talk{m, req, p}
}

func (k *talk) decoder(t testing.TB, opt *prompt.DecoderOptions) *prompt.Decoder {
	t.Helper()
	d, err := k.m.NewDecoder(k.req, k.p, opt)
	require.NoError(t, err)
	return d
}

// gather collects events.
type gather struct {
	event.Collector
	kinds []event.Kind
}

func (g *gather) take(events []event.Event) {
	for _, e := range events {
		if n := len(g.kinds); n == 0 || g.kinds[n-1] != e.Kind {
			g.kinds = append(g.kinds, e.Kind)
		}
	}
	g.Add(events...)
}

// all decodes an output, split into pieces of random size, as ids or as text.
func (k *talk) all(t testing.TB, opt *prompt.DecoderOptions, output string, ids bool, seed uint64) *gather {
	d, g := k.decoder(t, opt), &gather{}
	r := rand.New(rand.NewPCG(seed, 1))
	if ids {
		list := k.m.Tokenizer().AppendEncode(nil, output)
		for len(list) > 0 {
			n := min(len(list), 1+r.IntN(4))
			g.take(d.AppendTokens(nil, list[:n]...))
			list = list[n:]
		}
	} else {
		for len(output) > 0 {
			n := min(len(output), 1+r.IntN(7))
			g.take(d.Append(nil, output[:n]))
			output = output[n:]
		}
	}
	g.take(d.Finish(nil))
	require.Empty(t, d.Finish(nil), "again")
	return g
}

const spoken = "<think>\nLook, é 你好.\n</think>\n\nI will.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": \"y\"}}\n</tool_call>"

// Any split, as ids or as text, yields the same response.
func TestDecoderSplits(t *testing.T) {
	k := ask(t, prompt.Options{}, "")
	for _, more := range []string{"", "<|im_end|>", "<|im_end|> and more"} {
		for seed := range uint64(20) {
			g := k.all(t, nil, spoken+more, true, seed)
			a := g.Answers[0]
			require.Equal(t, "Look, é 你好.", a.Reasoning())
			require.Equal(t, "I will.", a.Text())
			require.Len(t, a.Calls(), 1)
			require.JSONEq(t, `{"x":"y"}`, string(a.Calls()[0].Data))
			require.Equal(t, event.ToolCalls, a.Finish)
			require.Equal(t, []event.Kind{event.Start, event.Reasoning, event.Text, event.ToolStart, event.ToolArgs, event.ToolEnd, event.Usage, event.Finish}, g.kinds)
			require.EqualValues(t, len(k.p.IDs()), g.Usage.Prompt)
			want := len(k.m.Tokenizer().AppendEncode(nil, spoken))
			if more != "" {
				want++
			}
			require.EqualValues(t, want, g.Usage.Output)
			require.Positive(t, g.Usage.Reasoning)
			require.False(t, g.Usage.ReasoningEstimated)
			if more == "" {
				g := k.all(t, nil, spoken, false, seed)
				require.Empty(t, cmp.Diff(a.Blocks, g.Answers[0].Blocks, cmp.AllowUnexported(event.Block{})))
				require.True(t, g.Usage.ReasoningEstimated)
			}
		}
	}
}

// A stop string ends the response however it is split, inside a token or across tokens, in text and in markup.
func TestDecoderStops(t *testing.T) {
	for _, tt := range []struct{ more, output, text, stop string }{
		{`,"stop":["END"]`, "One two END three", "One two ", "END"},
		{`,"stop":[" two","xx"]`, "One two three", "One", " two"},
		{`,"stop":["nowhere"]`, "One two nowher", "One two nowher", ""},
		{`,"stop":["</tool_call>"]`, spoken, "I will.", "</tool_call>"},
		{`,"stop":["END"],"include_stop_str_in_output":true`, "One END two", "One END", "END"},
		{`,"stop":["e"],"min_tokens":1000`, "One two three", "One two three", ""},
		{`,"stop_token_ids":[ID]`, "One<|endoftext|> two", "One", ""},
		{`,"ignore_eos":true`, "One<|im_end|> two", "One two", ""},
		{``, "One<|im_end|> two", "One", ""},
	} {
		k := ask(t, prompt.Options{}, "")
		id, ok := k.m.Tokenizer().TokenID("<|endoftext|>")
		require.True(t, ok)
		k = ask(t, prompt.Options{}, strings.Replace(tt.more, "ID", fmt.Sprint(id), 1))
		for seed := range uint64(10) {
			for _, ids := range []bool{true, false} {
				if !ids && (tt.stop == "" || strings.Contains(tt.more, "min_tokens")) {
					continue // ended by tokens
				}
				g := k.all(t, nil, tt.output, ids, seed)
				require.Equal(t, tt.text, g.Answers[0].Text(), "%s %t", tt.more, ids)
				require.Equal(t, tt.stop, string(g.Answers[0].Stop), "%s %t", tt.more, ids)
				require.Equal(t, tt.stop != "", g.Answers[0].Finish == event.StopSequence, "%s %v", tt.more, g.Answers[0].Finish)
			}
			if tt.stop != "" { // an engine that applies stops cuts the text
				opt := &prompt.DecoderOptions{EngineStops: true}
				d, g := k.decoder(t, opt), &gather{}
				g.take(d.Append(nil, tt.output))
				d.SetFinish(event.StopSequence, "by the engine")
				require.True(t, d.Done())
				g.take(d.Finish(nil))
				require.Equal(t, "by the engine", string(g.Answers[0].Stop))
			}
		}
	}
	_, err := ask(t, prompt.Options{}, `,"stop":[""]`).new()
	require.Error(t, err)
	for _, n := range []string{"0", "1000", "1e3", "2.0", "null"} {
		_, err := ask(t, prompt.Options{}, `,"min_tokens":`+n).new()
		require.NoError(t, err, n)
	}
	for _, n := range []string{"2.5", "-1", `"3"`, "[]", "99999999999999999999"} {
		_, err := ask(t, prompt.Options{}, `,"min_tokens":`+n).new()
		e, ok := errors.AsType[*apierr.Error](err)
		require.True(t, ok, "%s: %v", n, err)
		require.Equal(t, event.Invalid, e.Why)
		require.Equal(t, "min_tokens", e.Param)
	}
}

func (k *talk) new() (*prompt.Decoder, error) { return k.m.NewDecoder(k.req, k.p, nil) }

func TestDecoderLimit(t *testing.T) {
	k := ask(t, prompt.Options{}, "")
	n := len(k.p.IDs())
	require.Equal(t, k.m.Window()-n, k.decoder(t, nil).Limit())
	m, err := prompt.New(nil, &prompt.Options{Family: "hermes"})
	require.NoError(t, err)
	require.Equal(t, math.MaxInt32, (&talk{m, k.req, k.p}).decoder(t, nil).Limit())
	require.Equal(t, 7, k.decoder(t, &prompt.DecoderOptions{MaxTokens: 7}).Limit())
	require.Equal(t, 5, ask(t, prompt.Options{}, `,"max_tokens":5`).decoder(t, &prompt.DecoderOptions{MaxTokens: 7}).Limit())
	require.Equal(t, 3, ask(t, prompt.Options{Window: n + 3}, `,"max_tokens":5`).decoder(t, nil).Limit())
	_, err = ask(t, prompt.Options{Window: n}, ``).new()
	require.Equal(t, apierr.CodeContextLength, apierr.Wrap(err).Code)
	require.ErrorContains(t, err, fmt.Sprintf("maximum context length is %d tokens", n))

	k = ask(t, prompt.Options{}, `,"max_tokens":2`)
	g := k.all(t, nil, "One two three four", true, 1)
	require.Equal(t, event.Length, g.Answers[0].Finish)
	require.EqualValues(t, 2, g.Usage.Output)
	require.Equal(t, "On", g.Answers[0].Text()[:2])
	require.Less(t, len(g.Answers[0].Text()), len("One two three"))
	// A call that the limit cuts is aborted.
	k = ask(t, prompt.Options{}, `,"max_tokens":20`)
	g = k.all(t, nil, "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": \""+strings.Repeat("y ", 50), true, 1)
	require.Equal(t, event.Length, g.Answers[0].Finish)
	require.Empty(t, g.Answers[0].Calls())
}

func TestDecoderTools(t *testing.T) {
	call := func(name string) string {
		return "<tool_call>\n{\"name\": \"" + name + "\", \"arguments\": {}}\n</tool_call>\n"
	}
	for more, want := range map[string]int{
		``: 3, `,"tool_choice":"none"`: 0, `,"parallel_tool_calls":false`: 1, `,"tool_choice":{"type":"function","function":{"name":"f"}}`: 2,
	} {
		g := ask(t, prompt.Options{}, more).all(t, nil, call("f")+call("g")+call("f"), true, 1)
		require.Len(t, g.Answers[0].Calls(), want, more)
	}
	// Generation can begin inside reasoning.
	m, err := prompt.New(compiled(`{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<assistant><think>{% endif %}`)(t), &prompt.Options{Family: "qwen3"})
	require.NoError(t, err)
	req := block.NewRequest(block.UserText("Hi"))
	p, err := m.Render(req, noon)
	require.NoError(t, err)
	g := (&talk{m, req, p}).all(t, nil, "Hm.</think>Yes.", false, 1)
	require.Equal(t, "Hm.", g.Answers[0].Reasoning())
	require.Equal(t, "Yes.", g.Answers[0].Text())
}

// Choices of one response share token counts and have different call ids.
func TestDecoderChoices(t *testing.T) {
	k := ask(t, prompt.Options{}, "")
	first := k.decoder(t, &prompt.DecoderOptions{ID: "r"})
	second := k.decoder(t, &prompt.DecoderOptions{ID: "r", Choice: 1, Shared: first})
	ids := k.m.Tokenizer().AppendEncode(nil, spoken)
	var g gather
	for _, d := range []*prompt.Decoder{first, second} {
		g.take(d.AppendTokens(nil, ids...))
		g.take(d.Finish(nil))
	}
	require.Len(t, g.Answers, 2)
	require.Equal(t, "call_r_0", g.Answers[0].Calls()[0].ID)
	require.Equal(t, "call_r_1x0", g.Answers[1].Calls()[0].ID)
	require.EqualValues(t, 2*len(ids), g.Usage.Output)
	require.EqualValues(t, len(k.p.IDs()), g.Usage.Prompt)
	require.Equal(t, first.Usage(), second.Usage())
	require.Equal(t, event.Start, g.kinds[0])
	require.NotContains(t, g.kinds[1:], event.Start)
}

// Ids are new in the conversation and keep the model's form.
func TestDecoderCallIDs(t *testing.T) {
	kimi := "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}<|tool_call_end|>" +
		"<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>"
	hermes := strings.Repeat("<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>\n", 2)
	for family, output := range map[string]string{"kimi_k2": kimi, "hermes": hermes} {
		m, err := prompt.New(nil, &prompt.Options{Family: family})
		require.NoError(t, err)
		req := block.NewRequest(block.UserText("Hi"))
		seen := map[string]bool{}
		for range 3 {
			p, err := m.Render(req, noon)
			require.NoError(t, err)
			g := (&talk{m, req, p}).all(t, nil, output, false, 1)
			turn := block.Turn{Role: block.RoleAssistant}
			for _, c := range g.Answers[0].Calls() {
				require.False(t, seen[c.ID], "%s twice", c.ID)
				seen[c.ID] = true
				require.Equal(t, family == "kimi_k2", strings.HasPrefix(c.ID, "functions.f:"), c.ID)
				turn.Blocks = append(turn.Blocks, block.Block{Kind: block.ToolCall, CallID: c.ID, Name: c.Name, Args: string(c.Data)})
			}
			require.NoError(t, req.AppendTurn(turn))
		}
		require.Len(t, seen, 6)
	}
}

func TestDecoderFails(t *testing.T) {
	k := ask(t, prompt.Options{}, "")
	d := k.decoder(t, nil)
	d.Fail(nil)
	require.False(t, d.Done())
	d.Fail(context.DeadlineExceeded)
	d.Fail(errors.New("later"))
	require.True(t, d.Done())
	require.ErrorIs(t, d.Err(), context.DeadlineExceeded)
	events := d.Finish(nil)
	require.Len(t, events, 1, "no Start, so that a server can send a status")
	require.Equal(t, event.Error, events[0].Kind)

	d = k.decoder(t, nil)
	require.Len(t, d.AppendTokens(nil), 1, "no ids open the response")
	d.Fail(errors.New("secret"))
	require.Empty(t, d.Append(nil, "more"))
	events = d.Finish(nil)
	require.Len(t, events, 1)
	require.Equal(t, event.Internal, events[0].Why)
	require.NotContains(t, string(events[0].Data), "secret")

	d = k.decoder(t, &prompt.DecoderOptions{Parser: parsers.Options{Limits: parsers.Limits{Calls: 1}}})
	call := "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>\n"
	d.Append(nil, call+call)
	_, ok := errors.AsType[*parsers.LimitError](d.Err())
	require.True(t, ok, "%v", d.Err())
	events = d.Finish(nil)
	require.Equal(t, event.EngineFailed, events[len(events)-1].Why)

	m, err := prompt.New(nil, &prompt.Options{Family: "hermes"})
	require.NoError(t, err)
	p, err := m.Render(k.req, noon)
	require.NoError(t, err)
	require.Nil(t, p.IDs())
	d, err = m.NewDecoder(k.req, p, nil)
	require.NoError(t, err)
	d.AppendTokens(nil, 1)
	require.ErrorContains(t, d.Err(), "without a tokenizer")
}

// The events of an engine's stream are used.
func TestDecoderChunks(t *testing.T) {
	k := ask(t, prompt.Options{}, "")
	d, g := k.decoder(t, nil), &gather{}
	for ev := range d.Events("One") {
		g.take([]event.Event{ev})
	}
	g.take(d.AppendChunk(nil, nil, event.Event{Kind: event.Text, Data: []byte(" two")}, event.Event{Kind: event.Finish, Why: event.Length}))
	g.take(d.AppendChunk(nil, nil, event.Event{Kind: event.Text, Data: []byte(" three")}))
	g.take(d.AppendChunk(nil, nil, event.Event{Kind: event.Usage, Usage: &event.Tokens{Output: 9, Cached: 4}}))
	g.take(d.Finish(nil))
	require.Equal(t, "One two", g.Answers[0].Text())
	require.Equal(t, event.Length, g.Answers[0].Finish)
	require.Equal(t, event.Tokens{Prompt: int64(len(k.p.IDs())), Output: 9, Cached: 4}, g.Usage)

	d, g = k.decoder(t, nil), &gather{}
	ids := k.m.Tokenizer().AppendEncode(nil, "One two")
	g.take(d.AppendChunk(nil, ids, event.Event{Kind: event.Text, Data: []byte("not this")}, event.Event{Kind: event.Error, Why: event.Overloaded, Data: []byte("busy")}))
	g.take(d.Finish(nil))
	require.Equal(t, "One two", g.Answers[0].Text())
	require.Equal(t, event.Overloaded, g.Err)
	require.Equal(t, "busy", g.Message)
}
