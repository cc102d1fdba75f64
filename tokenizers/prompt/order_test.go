// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers/family"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/sse"
	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/tokenizers/template"
)

// A variant is an API and the way in which its client returns reasoning.
type variant struct {
	name, api string
	details   wire.Details
	streamed  bool
}

// flat reports whether the client returns reasoning as one string, which loses its order relative to calls.
func (v variant) flat() bool { return v.api == "chat" && v.details == wire.DetailsNever }

var variants = []variant{
	{name: "responses", api: "responses"},
	{name: "messages", api: "messages"},
	{name: "chat", api: "chat", details: wire.DetailsInterleaved},
	{name: "chat, streamed", api: "chat", details: wire.DetailsInterleaved, streamed: true},
	{name: "chat, always", api: "chat", details: wire.DetailsAlways},
	{name: "chat, always, streamed", api: "chat", details: wire.DetailsAlways, streamed: true},
	{name: "chat, reasoning_content", api: "chat", details: wire.DetailsNever},
	{name: "chat, reasoning_content, streamed", api: "chat", details: wire.DetailsNever, streamed: true},
}

// gathered joins the deltas of a stream as a client does that uses each index as a position in a list, and returns the
// whole response.
func gathered(t testing.TB, stream []byte) []byte {
	t.Helper()
	message := object{"role": "assistant"}
	var add func(have, delta object)
	add = func(have, delta object) {
		for k, v := range delta {
			old, ok := have[k].(string)
			list, _ := v.([]any)
			switch s, is := v.(string); {
			case ok && is && k != "role" && k != "type":
				have[k] = old + s
			case list != nil:
				have[k] = slices.Clone(anys(have[k]))
				for _, e := range list {
					e := e.(object)
					i := int(e["index"].(float64))
					if all := anys(have[k]); i == len(all) {
						have[k] = append(all, object{})
					}
					add(anys(have[k])[i].(object), e)
				}
			default:
				if in, ok := v.(object); ok && have[k] != nil {
					add(have[k].(object), in)
					continue
				}
				have[k] = v
			}
		}
	}
	for ev, err := range new(sse.Reader).Events(bytes.NewReader(stream)) {
		require.NoError(t, err)
		var chunk struct{ Choices []struct{ Delta object } }
		if string(ev.Data) == "[DONE]" {
			continue
		}
		require.NoError(t, json.Unmarshal(ev.Data, &chunk), "%s", ev.Data)
		for _, c := range chunk.Choices {
			add(message, c.Delta)
		}
	}
	for _, c := range anys(message["tool_calls"]) {
		delete(c.(object), "index")
	}
	out, err := json.Marshal(object{"choices": []any{object{"message": message}}})
	require.NoError(t, err)
	return out
}

func anys(v any) []any { list, _ := v.([]any); return list }

// interleaved returns a client that received reasoning, a call, reasoning, a call and text, and has added the results.
func interleaved(t *testing.T, v variant) *client {
	c := &client{t: t, api: v.api, details: v.details, streamed: v.streamed}
	c.user("Zqu")
	list := append([]event.Event{reasoned(0, "Zqone")}, called(1, 0, `{"x":"Zqcall1"}`)...)
	list = append(append(list, reasoned(2, "Zqtwo")), called(3, 1, `{"x":"Zqcall2"}`)...)
	c.answer(append(list, text(4, "Zqtext"))...)
	c.results("Zqt", "")
	return c
}

// segments is a template that prints reasoning between calls, as the renderers of some families do.
const segments = `{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages %}<{{ m.role }}>` +
	`{% if m.reasoning_content is string %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}` +
	`{% for c in m.tool_calls or [] %}{% if m.reasoning_content is defined and m.reasoning_content is not string and m.reasoning_content[loop.index0] %}<think>{{ m.reasoning_content[loop.index0] }}</think>{% endif %}` +
	`[{{ c.function.name }} {{ c.function.arguments }}]{% endfor %}{% endfor %}`

// TestInterleaved checks that reasoning and calls keep their order in all APIs, and that a loss is reported if a
// template cannot print that order. A client of the Chat API that only returns reasoning_content loses the order; its
// prompt equals the prompt of other clients with a template that prints all reasoning of a turn together.
func TestInterleaved(t *testing.T) {
	words := []string{"Zqone", "Zqcall1", "Zqtwo", "Zqcall2", "Zqtext"}
	flat := []string{"Zqone", "Zqtwo", "Zqcall1", "Zqcall2"}

	prompts := map[string]string{} // by client of the Chat API
	for i, v := range variants {
		if testing.Short() && i%3 != 0 {
			continue
		}
		api := v.name
		req := interleaved(t, v).request(true, "")
		var got []string
		for _, b := range req.Turns()[1].Blocks {
			switch b.Kind {
			case block.ToolCall:
				got = append(got, "call "+b.Args)
			default:
				got = append(got, b.Kind.String()+" "+b.Text)
			}
		}
		want := []string{"reasoning Zqone", `call {"x":"Zqcall1"}`, "reasoning Zqtwo", `call {"x":"Zqcall2"}`, "text Zqtext"}
		switch {
		case v.flat(): // a message has one string for its reasoning, one for its text, and then its calls
			want = []string{"reasoning Zqone\nZqtwo", "text Zqtext", `call {"x":"Zqcall1"}`, `call {"x":"Zqcall2"}`}
		case v.api == "chat": // the text moves relative to the calls, but remains after the same reasoning
			want[3], want[4] = want[4], want[3]
		}
		require.Empty(t, cmp.Diff(want, got), api)

		for name, template := range map[string]func(testing.TB) template.Template{
			"segments": compiled(segments), "small": small("true", ""), "chatml": written(lookup("chatml", nil)), "kimi k3": written(lookup("kimi_k3", nil)),
			"harmony": written(lookup("harmony", nil)), "deepseek v3.2": written(lookup("deepseek_v3_2", variables{"thinking": true})),
			"inline": compiled(`{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls or [] %}[{{ c.function.name }} {{ c.function.arguments }}]{% endfor %}{% endfor %}`),
		} {
			p, err := familyModel(t, template(t), family.New("qwen3")).Render(req, noon)
			require.NoError(t, err, name)
			losses := p.Losses
			for _, w := range words {
				require.Equal(t, 1, strings.Count(p.Text, w), "%s, %s: %s", api, name, p.Text)
			}
			if v.api == "chat" && name != "segments" {
				if prompts[name] == "" {
					prompts[name] = p.Text
				}
				require.Equal(t, prompts[name], p.Text, "%s, %s", api, name)
			}
			order := flat
			if name == "segments" && !v.flat() {
				order = words[:4]
			}
			rest := p.Text
			for _, w := range order {
				_, after, ok := strings.Cut(rest, w)
				require.True(t, ok, "%s, %s: %s is not after what it should be: %s", api, name, w, p.Text)
				rest = after
			}
			reported := map[string]bool{}
			for _, l := range losses {
				reported[l.Why] = true
			}
			require.Equal(t, !v.flat(), reported["the order of text after calls"], "%s, %s: %v", api, name, losses)
			require.Equal(t, !v.flat() && name != "segments", reported["the order of reasoning after text or calls"], "%s, %s: %v", api, name, losses)
		}
	}
}

// The reasoning of a response is kept or dropped as a whole, even if it is between calls.
func TestInterleavedWhole(t *testing.T) {
	for _, v := range variants {
		api, c := v.name, interleaved(t, v)
		c.answer(reasoned(0, "Zqthree"), text(1, "Zqend"))
		c.user("Zqagain")
		for _, keep := range []bool{false, true} {
			more := ""
			if keep {
				more = `"chat_template_kwargs":{"clear_thinking":false}`
			}
			p, err := familyModel(t, small("clear_thinking is defined and not clear_thinking or loop.index0 > ns.user", "")(t), nil).Render(c.request(true, more), noon)
			require.NoError(t, err)
			for _, w := range []string{"Zqone", "Zqtwo", "Zqthree"} {
				require.Equal(t, keep, strings.Contains(p.Text, w), "%s: %s", api, p.Text)
			}
		}
	}
}
