// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"bytes"
	"encoding/json"
	"io"
	"testing/iotest"

	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/completions"
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

// loadMini returns the model of package mini with the default options.
var loadMini = sync.OnceValues(func() (*prompt.Model, error) { return prompt.Load(mini.FS(), nil) })

// ask renders a chat request with one question and a tool; more contains further fields.
func ask(t testing.TB, opt prompt.Options, more string) *talk {
	t.Helper()
	load := func() (*prompt.Model, error) { return prompt.Load(mini.FS(), &opt) }
	if reflect.ValueOf(opt).IsZero() {
		load = loadMini
	}
	m, err := load()
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
	req := block.NewRequest(block.NewTurn(block.RoleUser, "Hi"))
	p, err := m.Render(req, noon)
	require.NoError(t, err)
	g := (&talk{m, req, p}).all(t, nil, "Hm.</think>Yes.", false, 1)
	require.Equal(t, "Hm.", g.Answers[0].Reasoning())
	require.Equal(t, "Yes.", g.Answers[0].Text())
}

// Calls of tools that allowed_tools does not list are aborted, whether a call is required or not, and the tools stay in the
// prompt. Tools of namespaces are allowed by their own name.
func TestDecoderAllowedTools(t *testing.T) {
	call := func(name string) string {
		return "<tool_call>\n{\"name\": \"" + name + "\", \"arguments\": {}}\n</tool_call>\n"
	}
	m, err := loadMini()
	require.NoError(t, err)
	for _, tt := range []struct{ api, tools, choice, allowed string }{
		{"chat", `{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"g"}},{"type":"function","function":{"name":"h"}}`,
			`"allowed_tools":{"mode":"%s","tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"h"}}]}`, "f h"},
		{"responses", `{"type":"function","name":"f"},{"type":"function","name":"g"},{"type":"custom","name":"h"}`,
			`"mode":"%s","tools":[{"type":"function","name":"f"},{"type":"custom","name":"h"}]`, "f h"},
		{"responses", `{"type":"function","name":"f"},{"type":"function","name":"g"},{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"}]},{"type":"function","name":"h"}`,
			`"mode":"%s","tools":[{"type":"function","name":"f"}]`, "f n__f"},
	} {
		for _, mode := range []string{"auto", "required"} {
			turns := `"messages":[{"role":"user","content":"Hi"}]`
			if tt.api == "responses" {
				turns = `"input":"Hi"`
			}
			body := `{"model":"m",` + turns + `,"tools":[` + tt.tools + `]`
			req, err := decode(tt.api, []byte(body+`,"tool_choice":{"type":"allowed_tools",`+fmt.Sprintf(tt.choice, mode)+`}}`), nil)
			require.NoError(t, err)
			p, err := m.Render(req, noon)
			require.NoError(t, err)
			all, err := decode(tt.api, []byte(body+`}`), nil)
			require.NoError(t, err)
			want, err := m.Render(all, noon)
			require.NoError(t, err)
			require.Equal(t, want.Text, p.Text)

			var names, aborted []string
			k := &talk{m, req, p}
			events := k.decoder(t, nil).Append(nil, call("f")+call("g")+call("n__f")+call("h")+call("unknown"))
			for _, ev := range events {
				switch ev.Kind {
				case event.ToolStart:
					names = append(names, string(ev.Data))
				case event.ToolAbort:
					require.Equal(t, event.NotAllowed, ev.Why)
					aborted = append(aborted, string(ev.Data))
				}
			}
			require.Equal(t, tt.allowed, strings.Join(names, " "), "%s: %s", tt.api, mode)
			require.Len(t, aborted, 5-len(names))
		}
	}
}

// A request without tools gets no calls in any API: the model was not told how to call. Tools that the server runs are not
// in the prompt, and those that are deferred can be, once a result names them.
func TestDecoderWithoutTools(t *testing.T) {
	const (
		hermes  = "Hi. <tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>"
		harmony = "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>"
	)
	answer := func(family, api, fields, output string) *event.Answer {
		m, err := prompt.Load(mini.FS(), &prompt.Options{Family: family})
		require.NoError(t, err)
		turns := `"messages":[{"role":"user","content":"Hi"}]`
		if api == "responses" {
			turns = `"input":"Hi"`
		}
		req, err := decode(api, []byte(`{"model":"m","max_tokens":99,`+turns+fields+`}`), nil)
		require.NoError(t, err)
		p, err := m.Render(req, noon)
		require.NoError(t, err)
		return &(&talk{m, req, p}).all(t, nil, output, true, 1).Answers[0]
	}
	for api, tool := range map[string]string{
		"chat":      `{"type":"function","function":{"name":"f"}}`,
		"responses": `{"type":"function","name":"f","parameters":null,"strict":false}`,
		"messages":  `{"name":"f","input_schema":{"type":"object"}}`,
	} {
		for _, fields := range []string{``, `,"tools":[]`} {
			got := answer("hermes", api, fields, hermes)
			require.Equal(t, hermes, got.Text(), "%s%s", api, fields)
			require.Empty(t, got.Calls())
			require.Equal(t, event.Stop, got.Finish)
			require.Empty(t, answer("gpt_oss", api, fields, harmony).Calls())
		}
		require.Len(t, answer("hermes", api, `,"tools":[`+tool+`]`, hermes).Calls(), 1, api)
		require.Len(t, answer("gpt_oss", api, `,"tools":[`+tool+`]`, harmony).Calls(), 1, api)
	}
	require.Equal(t, hermes, answer("hermes", "responses", `,"tools":[{"type":"web_search"}]`, hermes).Text())
	require.Len(t, answer("hermes", "messages", `,"tools":[{"name":"f","input_schema":{"type":"object"},"defer_loading":true}]`, hermes).Calls(), 1)

	// A prompt that is given as ids can declare tools where the request does not.
	m, err := loadMini()
	require.NoError(t, err)
	req := block.NewRequest(block.NewTurn(block.RoleUser, "Hi"))
	require.Len(t, (&talk{m, req, m.Raw([]uint32{1})}).all(t, nil, hermes, true, 1).Answers[0].Calls(), 1)
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
		req := block.NewRequest(block.NewTurn(block.RoleUser, "Hi"))
		require.NoError(t, req.SetTools(block.Tool{Name: "f"}))
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
			require.NoError(t, req.Append(turn))
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
	g.take(d.Append(nil, "One"))
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

// The body for an engine has the prompt and the sampling parameters of the request.
func TestAppendRequest(t *testing.T) {
	type body struct {
		Model         string
		Prompt        any
		MaxTokens     int64 `json:"max_tokens"`
		MinTokens     any   `json:"min_tokens"`
		Stream        bool
		StreamOptions map[string]bool `json:"stream_options"`
		SkipSpecial   *bool           `json:"skip_special_tokens"`
		AddSpecial    *bool           `json:"add_special_tokens"`
		TokenIDs      bool            `json:"return_token_ids"`
		Stop          []string
		StopTokens    []int64 `json:"stop_token_ids"`
		Temperature   *float64
		TopK          *int64 `json:"top_k"`
		N             any
	}
	read := func(d *prompt.Decoder) body {
		var b body
		dec := json.NewDecoder(bytes.NewReader(d.AppendRequest([]byte(" "), `a"b`)))
		dec.DisallowUnknownFields()
		require.NoError(t, dec.Decode(&b))
		require.Equal(t, `a"b`, b.Model)
		require.True(t, b.Stream && b.StreamOptions["include_usage"])
		require.False(t, *b.SkipSpecial || *b.AddSpecial)
		return b
	}
	k := ask(t, prompt.Options{Window: 5000}, `,"temperature":0,"top_k":4,"min_tokens":3,"stop":["X"],"stop_token_ids":[7],"n":2`)
	b := read(k.decoder(t, nil))
	var ids []any
	for _, id := range k.p.IDs() {
		ids = append(ids, float64(id))
	}
	require.Equal(t, ids, b.Prompt)
	require.EqualValues(t, 5000-len(ids), b.MaxTokens)
	require.Equal(t, 0.0, *b.Temperature)
	require.EqualValues(t, 4, *b.TopK)
	require.EqualValues(t, 3, b.MinTokens)
	require.Equal(t, []int64{7}, b.StopTokens)
	require.True(t, b.TokenIDs)
	require.Empty(t, b.Stop)
	require.Nil(t, b.N)

	b = read(k.decoder(t, &prompt.DecoderOptions{EngineStops: true, MaxTokens: 9}))
	require.Equal(t, []string{"X"}, b.Stop)
	require.False(t, b.TokenIDs)
	require.EqualValues(t, 9, b.MaxTokens)

	m, err := prompt.New(lookup("chatml", nil), &prompt.Options{Family: "hermes"}) // no tokenizer
	require.NoError(t, err)
	k = &talk{m: m, req: k.req}
	k.p, err = m.Render(k.req, noon)
	require.NoError(t, err)
	b = read(k.decoder(t, nil))
	require.Equal(t, k.p.Text, b.Prompt)
	require.EqualValues(t, completions.DefaultMaxTokens, b.MaxTokens)
	require.False(t, b.TokenIDs)
}

// Events reads an engine's response up to its end, an error, or the end that the decoder finds.
func TestDecoderEvents(t *testing.T) {
	data := func(chunks ...string) string {
		var s string
		for _, c := range chunks {
			s += "data: " + c + "\n\n"
		}
		return s
	}
	text := func(s string) string { return fmt.Sprintf(`{"choices":[{"index":0,"text":%q}]}`, s) }
	const end = `{"choices":[{"index":0,"text":"","finish_reason":"length"}]}`
	const usage = `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13,"prompt_tokens_details":{"cached_tokens":8}}}`
	run := func(t *testing.T, status int, body, more string) (*gather, *prompt.Decoder, int) {
		k := ask(t, prompt.Options{}, more)
		d, g, r := k.decoder(t, nil), &gather{}, iotest.OneByteReader(strings.NewReader(body))
		for events := range d.Events(status, r) {
			require.NotEmpty(t, events)
			g.take(events)
		}
		rest, err := io.ReadAll(r)
		require.NoError(t, err)
		g.take(d.Finish(nil))
		return g, d, len(rest)
	}
	t.Run("whole", func(t *testing.T) {
		g, d, _ := run(t, 200, ": hello\n\n"+data(text("One"), text(" two"), end, usage, "[DONE]"), "")
		require.NoError(t, d.Err())
		require.Equal(t, "One two", g.Answers[0].Text())
		require.Equal(t, event.Length, g.Answers[0].Finish)
		require.Equal(t, event.Tokens{Prompt: 9, Output: 4, Cached: 8}, g.Usage)
	})
	t.Run("stop string", func(t *testing.T) {
		g, d, rest := run(t, 200, data(text("One t"), text("wo thr"), text("ee"), text(" four"), end), `,"stop":["two"]`)
		require.NoError(t, d.Err())
		require.Equal(t, "One ", g.Answers[0].Text())
		require.Equal(t, event.StopSequence, g.Answers[0].Finish)
		require.Positive(t, rest, "the loop ends before the stream")
	})
	t.Run("token ids", func(t *testing.T) {
		tok := mini.Load()
		ids, err := json.Marshal(tok.AppendEncode(nil, "One two"))
		require.NoError(t, err)
		g, _, _ := run(t, 200, data(fmt.Sprintf(`{"choices":[{"index":0,"text":"other","token_ids":%s,"finish_reason":"stop"}]}`, ids), "[DONE]"), "")
		require.Equal(t, "One two", g.Answers[0].Text())
	})
	t.Run("stop token of the engine", func(t *testing.T) { // not one of the model's, as from vLLM's generation_config.json
		ids := mini.Load().AppendEncode(nil, "One two")
		list, err := json.Marshal(ids)
		require.NoError(t, err)
		stop := ids[0]
		for _, reason := range []string{fmt.Sprint(stop), "null", fmt.Sprint(stop + 1)} {
			last := fmt.Sprintf(`{"choices":[{"index":0,"text":"","token_ids":[%d],"finish_reason":"stop","stop_reason":%s}]}`, stop, reason)
			g, d, _ := run(t, 200, data(fmt.Sprintf(`{"choices":[{"index":0,"text":"other","token_ids":%s}]}`, list), last), "")
			want := "One two"
			if reason != fmt.Sprint(stop) {
				want = string(mini.Load().AppendDecode(nil, append(ids[:len(ids):len(ids)], stop), false))
			}
			require.Equal(t, want, g.Answers[0].Text())
			require.EqualValues(t, len(ids)+1, d.Usage().Output)
		}
	})
	for name, c := range map[string]struct {
		status          int
		body, err, text string
		why             event.Why
	}{
		"status":    {400, `{"error":{"message":"too hot","code":"x"}}`, "too hot", "", event.Invalid},
		"page":      {502, `<html>`, "status 502", "", event.EngineFailed},
		"cut":       {200, data(text("One")), "", "One", event.EngineFailed},
		"cut chunk": {200, data(text("One")) + `data: {"choi`, "JSON", "One", event.EngineFailed},
		"no JSON":   {200, data(text("One"), "oops", text(" two"), end), "prompt: read the engine's stream", "One", event.EngineFailed},
		"reported":  {200, data(text("One"), `{"error":{"message":"out of memory"}}`), "out of memory", "One", event.EngineFailed},
		"empty":     {200, "", "", "", event.EngineFailed},
	} {
		t.Run(name, func(t *testing.T) {
			g, d, _ := run(t, c.status, c.body, "")
			require.Error(t, d.Err())
			require.ErrorContains(t, d.Err(), c.err)
			require.Equal(t, c.why, g.Err)
			if c.text != "" {
				require.Equal(t, c.text, g.Answers[0].Text())
			} else if len(g.Answers) > 0 {
				require.Empty(t, g.Answers[0].Text())
			}
		})
	}
	t.Run("left early", func(t *testing.T) {
		d := ask(t, prompt.Options{}, "").decoder(t, nil)
		for range d.Events(200, strings.NewReader(data(text("One two three"), end))) {
			break
		}
		require.Equal(t, event.Finish, d.Finish(nil)[1].Kind)
	})
}
