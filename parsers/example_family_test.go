// SPDX-License-Identifier: Apache-2.0

package parsers_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/parsers/family"
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/event"
)

// Lines is an argument syntax that weft does not have: one "key: value" a line, up to an empty line.
type Lines struct{}

func (Lines) NewDecoder() grammar.Decoder { return &lines{} }

type lines struct {
	schema grammar.Schema
	n      int // arguments so far
}

func (l *lines) Begin(schema grammar.Schema) { *l = lines{schema: schema} }

// Append takes whole lines only, since a value is typed by the schema when its end is known.
func (l *lines) Append(dst, src []byte, final bool) (out []byte, n int, st grammar.Status) {
	for {
		end := bytes.IndexByte(src[n:], '\n')
		if end < 0 {
			return dst, n, grammar.More
		}
		line := src[n : n+end]
		if len(line) == 0 {
			if l.n == 0 {
				dst = append(dst, '{')
			}
			return append(dst, '}'), n + 1, grammar.Done
		}
		key, value, ok := bytes.Cut(line, []byte(": "))
		if !ok {
			return dst, n, grammar.Bad
		}
		quoted, _ := json.Marshal(string(key))
		dst = append(dst, "{,"[min(l.n, 1)])
		dst = append(append(dst, quoted...), ':')
		dst = l.schema.AppendValue(dst, key, value)
		l.n++
		n += end + 1
	}
}

// Adding a family: a grammar with a codec of one's own, in a registry of one's own.
func ExampleRegistry_Extend() {
	memo := &grammar.Grammar{
		Name:    "memo",
		Aliases: []string{"memo_v2"},
		Tagged: &grammar.Tagged{
			Reasoning: &grammar.Reasoning{Open: grammar.Tok("<muse>"), Close: grammar.Tok("</muse>")},
			Open:      grammar.Tok("<memo>"),
			Close:     grammar.Tok("</memo>"),
			Name:      &grammar.Name{Ends: []string{"\n"}},
			Body:      grammar.Body{Codec: Lines{}},
		},
		MaxHold: 256,
	}
	registry, err := parsers.Default().Extend(memo)
	if err != nil {
		panic(err)
	}
	p, err := registry.New("Memo-v2", &parsers.Options{Tools: []parsers.Tool{
		{Name: "remind", Schema: []byte(`{"properties":{"what":{"type":"string"},"minutes":{"type":"integer"}}}`)},
	}})
	if err != nil {
		panic(err)
	}
	var answer event.Collector
	for _, chunk := range []string{"<muse>Tea", "?</muse>Fine.<memo>remind\nwhat: tea\nmin", "utes: 4\n\n</memo>"} {
		events, _ := p.Append(nil, []byte(chunk))
		answer.Add(events...)
	}
	events, _ := p.Finish(nil, event.None)
	answer.Add(events...)
	for _, b := range answer.Answers[0].Blocks {
		fmt.Printf("%v %s%s\n", b.Kind, b.Name, b.Data)
	}
	// Output:
	// reasoning Tea?
	// text Fine.
	// tool_start remind{"what":"tea","minutes":4}
}

// Shout is a parser of the user's own: all output is text, in capitals.
type shout struct{ buf []byte }

func (s *shout) Append(dst []event.Event, chunk []byte, _ []parsers.Token) ([]event.Event, error) {
	s.buf = append(s.buf[:0], bytes.ToUpper(chunk)...)
	return append(dst, event.Event{Kind: event.Text, Call: -1, Data: s.buf}), nil
}
func (s *shout) Finish(dst []event.Event, why event.Why) ([]event.Event, error) { return dst, nil }
func (s *shout) Reset()                                                         {}

func ExampleRegistry_ExtendFunc() {
	registry := parsers.Default().ExtendFunc("shout", func(*parsers.Options) (parsers.Stream, error) { return &shout{}, nil })
	p, err := registry.New("shout", nil)
	if err != nil {
		panic(err)
	}
	events, _ := p.Append(nil, []byte("hello"))
	fmt.Println(events[0])
	// Output:
	// text "HELLO"
}

func TestRegistryExtends(t *testing.T) {
	r := parsers.Default()
	for name, want := range map[string]string{
		"qwen3_coder+nemotron_deci": "qwen3_coder+nemotron_deci",
		"Qwen3-Coder+Hermes":        "qwen3_coder+hermes",
		"hermes+hermes":             "hermes",
		"harmony+gpt-oss":           "harmony",
		"DeepSeek-V3.1":             "deepseek_v3_1",
	} {
		g, err := r.Lookup(name)
		require.NoError(t, err, name)
		require.Equal(t, want, g.Name)
	}
	for name, want := range map[string]string{
		"qwen3_coda":       `parsers: unknown family "qwen3_coda"; did you mean qwen3_coder`,
		"hermes+nobody":    `parsers: unknown family "nobody"`,
		"hermes+harmony":   "grammar: the calls of hermes cannot be combined with the reasoning of harmony",
		"gemma4+kimi_k3":   "grammar: the calls of gemma4 cannot be combined with the reasoning of kimi_k3",
		"hermes+a+b":       `parsers: unknown family "hermes+a+b"`,
		"a completely new": `parsers: unknown family "a completely new"`,
	} {
		_, err := r.New(name, nil)
		require.ErrorContains(t, err, want)
	}
	g, err := r.Lookup("glm47+mistral")
	require.NoError(t, err)
	again, err := r.Lookup("GLM-47+Mistral")
	require.NoError(t, err)
	require.Same(t, g, again)

	// A grammar shadows a built-in one, and only in the new registry.
	mine := family.New("hermes")
	mine.Tagged.Open = grammar.Lit("<call>")
	own, err := r.Extend(mine)
	require.NoError(t, err)
	h, err := own.Lookup("HERMES")
	require.NoError(t, err)
	require.Equal(t, "<call>", h.Tagged.Open.Text)
	h, err = r.Lookup("hermes")
	require.NoError(t, err)
	require.Equal(t, "<tool_call>", h.Tagged.Open.Text)
	require.Equal(t, r.Names(), own.Names())

	// So does a parser of the user's own. It cannot be combined.
	fn := own.ExtendFunc("hermes", func(*parsers.Options) (parsers.Stream, error) { return &shout{}, nil })
	p, err := fn.New("hermes", nil)
	require.NoError(t, err)
	require.Nil(t, p.Grammar())
	evs, err := p.Finish(nil, event.None)
	require.NoError(t, err)
	require.Equal(t, []event.Event{{Kind: event.Finish, Why: event.Stop, Call: -1}}, evs)
	_, err = p.Append(nil, []byte("x"))
	require.Error(t, err)
	p.Reset()
	evs, err = p.Append(nil, []byte("x"))
	require.NoError(t, err)
	require.Len(t, evs, 1)
	_, err = fn.New("hermes+glm47", nil)
	require.ErrorContains(t, err, "only grammars can be combined")

	broken := family.New("hermes")
	broken.Tagged.Body.Call = nil
	_, err = r.Extend(broken)
	require.ErrorContains(t, err, "parsers: grammar hermes: a call needs a body")
}
