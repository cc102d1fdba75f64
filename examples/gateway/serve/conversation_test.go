// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/gateway/serve"
)

// TestConversations plays conversations with the gateway in the form of each harness.
func TestConversations(t *testing.T) {
	for i, h := range ownHarnesses() {
		if i > 0 && testing.Short() {
			break
		}
		for _, family := range []string{"hermes", "qwen3_coder"} {
			for _, mode := range []string{"stream", "whole", "by turns", "sampled"} {
				t.Run(fmt.Sprint(h.name, "/", family, "/", mode), func(t *testing.T) { play(t, h, family, mode) })
			}
		}
	}
}

// TestCapturedConversations plays conversations that begin with recorded requests of real harnesses.
func TestCapturedConversations(t *testing.T) {
	if testing.Short() {
		t.Skip("plays whole conversations")
	}
	for _, h := range capturedHarnesses(t) {
		for _, mode := range []string{"stream", "whole"} {
			t.Run(h.name+"/"+mode, func(t *testing.T) { play(t, h, "hermes", mode) })
		}
	}
}

// A line is the model's output for one prompt, and the parts that a client must decode from it.
type line struct {
	text  string
	parts []part
}

// lines returns the model's output: one call; two calls; text and three calls; the final text; and the response to
// another question.
func lines(t testing.TB, body object, family string) []line {
	t.Helper()
	tools := usables(t, body)
	gap := "\n" // between text and calls in the output of the family
	if family == "qwen3_coder" {
		gap = "\n\n"
	}
	make := func(reasoning, text string, values ...string) line {
		l := line{text: "<think>\n" + reasoning + "\n</think>\n\n" + text, parts: []part{{Kind: "reasoning", Text: reasoning}}}
		if text != "" {
			l.parts = append(l.parts, part{Kind: "text", Text: text})
		}
		for i, v := range values {
			call, p := tools[i%len(tools)].write(family, v)
			switch {
			case i > 0:
				l.text += "\n"
			case text != "":
				l.text += gap
			}
			l.text += call
			l.parts = append(l.parts, p)
		}
		return l
	}
	return []line{
		make("First a look.", "I look around.", "ls"),
		make("Two things at once.", "", "é <b> one", "two"),
		make("Now three.\nAnd mind the rest.", "Almost there.", "a", "b", "ls"),
		make("That was it.", "Done: everything is in order."),
		make("Again?", "As I said."),
	}
}

// play plays a conversation: three turns with calls, a final turn, and another question. In the mode sampled, the model writes
// each byte as a token, except for markers.
func play(t *testing.T, h harness, family, mode string) {
	body := h.first(t)
	say := lines(t, body, family)
	step := 0
	r := start(t, 2, func(vllm.Prompt) vllm.Reply {
		if mode == "sampled" {
			return vllm.Reply{IDs: inBytes(say[step].text)}
		}
		return vllm.Reply{Text: say[step].text}
	}, func(o *serve.Options) {
		o.Aliases, o.StripPreamble, o.Prompts = []string{"mock-model"}, true, prompts(t, nil, family)
	})
	key := h.api.key()
	msgs := body[key].([]any)
	var tail []any
	if h.tail != "" {
		msgs, tail = slices.Clip(msgs[:len(msgs)-1]), msgs[len(msgs)-1:]
	}
	ids := map[string]bool{"": true}
	for step = range say {
		stream := mode == "stream" || mode == "by turns" && step%2 == 0
		request := slices.Concat(msgs, tail)
		if h.final != nil {
			h.final(request)
		}
		body[key] = request
		replies := h.api.ask(t, r.url, body, stream, h.header...)
		require.Len(t, replies, 1)
		got := replies[0]
		require.Empty(t, cmp.Diff(say[step].parts, got.shown(), cmp.AllowUnexported(part{})))
		finish := map[string][2]string{"chat": {"stop", "tool_calls"}, "responses": {"completed", "completed"}, "messages": {"end_turn", "tool_use"}}
		require.Equal(t, finish[h.api.name][min(len(got.calls()), 1)], got.Finish)
		for _, c := range got.calls() {
			require.False(t, ids[c.ID], "id %q twice", c.ID)
			ids[c.ID] = true
		}

		prompts := r.prompts
		require.Len(t, prompts, step+1)
		if step > 0 && step < 4 {
			grown(t, h, prompts[step-1].Text, say[step-1], prompts[step].Text)
			if known := slices.Concat(prompts[step-1].IDs, inBytes(say[step-1].text)); mode == "sampled" && h.tail == "" {
				require.Equal(t, known, prompts[step].IDs[:min(len(known), len(prompts[step].IDs))], "the engine has them in its cache")
			}
		}
		rec := r.done(t, step+1)[step]
		require.EqualValues(t, len(prompts[step].IDs), rec.Usage.Prompt)
		require.Equal(t, "stop", rec.Finish)

		// The tools end in a different order than the calls.
		var done []result
		for i, c := range got.calls() {
			done = append(done, result{c, fmt.Sprintf("result %d of step %d", i, step)})
		}
		slices.Reverse(done)
		msgs = append(msgs, h.turn(got, done)...)
		if step == 3 {
			question := object{"role": "user", "content": "And what did you find?"}
			if h.api.name == "messages" {
				question["content"] = []any{object{"type": "text", "text": "And what did you find?"}}
			}
			msgs = append(msgs, question)
		}
	}
	last := r.prompts[4].Text
	for i, l := range say {
		for k := range count(l.parts) {
			require.Contains(t, last, fmt.Sprintf("result %d of step %d", k, i), "nothing is lost")
		}
	}
	require.Contains(t, last, "Done: everything is in order.")
}

// inBytes returns the ids of the bytes of a text, and of the added tokens in it.
func inBytes(text string) (ids []uint32) {
	added, bytes := map[uint32]bool{}, map[byte]uint32{}
	for _, a := range tok().AddedTokens() {
		added[a.ID] = true
	}
	for id := range uint32(tok().VocabSize()) {
		if b := tok().AppendToken(nil, id); len(b) == 1 && !added[id] {
			bytes[b[0]] = id
		}
	}
	for _, id := range tok().AppendEncode(nil, text) {
		if added[id] {
			ids = append(ids, id)
			continue
		}
		for _, b := range tok().AppendToken(nil, id) {
			ids = append(ids, bytes[b])
		}
	}
	return ids
}

// grown checks that a prompt begins with the previous one and the model's output for it, and continues with the results
// in the order of the calls.
func grown(t *testing.T, h harness, before string, reply line, prompt string) {
	t.Helper()
	answer := reply.text + "<|im_end|>\n"
	want := before + answer
	if h.tail != "" { // it was at the end, alone or after a tool result, and has moved
		i := strings.LastIndex(before, h.tail)
		require.Positive(t, i)
		head := strings.TrimSuffix(strings.TrimSuffix(before[:i], "<|im_start|>user\n"), "\n")
		between, _, ok := strings.Cut(strings.TrimPrefix(prompt, head), answer)
		require.True(t, ok)
		require.Contains(t, []string{"\n<|im_start|>assistant\n", "\n</tool_response><|im_end|>\n<|im_start|>assistant\n"}, between)
		want = head + between + answer
	}
	require.True(t, strings.HasPrefix(prompt, want), "%s\n---\n%s", want, prompt)
	rest := prompt[len(want):]
	at := -1
	for i := range count(reply.parts) {
		k := strings.Index(rest, fmt.Sprintf("result %d of step", i))
		require.Greater(t, k, at, "results stand in the order of the calls: %s", rest)
		at = k
	}
	require.Equal(t, count(reply.parts), strings.Count(rest, "<tool_response>"))
}

// count returns the number of calls in parts.
func count(parts []part) (n int) {
	for _, p := range parts {
		if p.Kind == "call" {
			n++
		}
	}
	return n
}
