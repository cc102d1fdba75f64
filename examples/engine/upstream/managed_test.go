// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/messages"
	"github.com/weft-go/weft/protocols/wire"
)

// A vendor's own host is strict: it gets no reasoning without its proof, and no fields that it does not know.
func TestManagedConvert(t *testing.T) {
	const past = `{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"sig"},{"type":"text","text":"Yes."}]}`
	const request = `{"model":"m","max_tokens":9,"stream":true,"thinking":{"type":"enabled","budget_tokens":1024},"messages":[{"role":"user","content":"Is it?"},` + past + `,{"role":"user","content":"Sure?"}]}`
	const unsigned = `{"model":"m","messages":[{"role":"user","content":"Is it?"},{"role":"assistant","content":"Yes.","reasoning_content":"Hm."},{"role":"user","content":"Sure?"}]}`
	for _, c := range []struct {
		name string
		from *wire.API
		body string
		kind upstream.Managed
		opt  upstream.ManagedOptions
		want string
		lost []string
	}{
		{
			"OpenAI", wire.Messages, request, upstream.OpenAI, upstream.ManagedOptions{Host: "api.openai.com", Model: "x"},
			`{"model":"x","max_completion_tokens":9,"stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Is it?"},{"role":"assistant","content":"Yes."},{"role":"user","content":"Sure?"}]}`,
			[]string{"thinking.budget_tokens", "thinking", "reasoning"},
		},
		{
			"another host", wire.Messages, request, upstream.OpenAI, upstream.ManagedOptions{Host: "h", Model: "x", MaxTokens: 5},
			`{"model":"x","max_completion_tokens":5,"stream":true,"stream_options":{"include_usage":true},"thinking":{"type":"enabled"},"messages":[{"role":"user","content":"Is it?"},` +
				`{"role":"assistant","content":"Yes.","reasoning_content":"Hm.","reasoning_details":[{"type":"reasoning.text","index":0,"text":"Hm.","signature":"sig"}]},{"role":"user","content":"Sure?"}]}`,
			[]string{"thinking.budget_tokens"},
		},
		{
			"vLLM", wire.Messages, request, upstream.OpenAI.For("vllm"), upstream.ManagedOptions{Host: "h", Model: "x"},
			`{"model":"x","max_completion_tokens":9,"stream":true,"stream_options":{"include_usage":true},"chat_template_kwargs":{"enable_thinking":true,"thinking":true},"messages":[{"role":"user","content":"Is it?"},` +
				`{"role":"assistant","content":"Yes.","reasoning":"Hm.","reasoning_details":[{"type":"reasoning.text","index":0,"text":"Hm.","signature":"sig"}]},{"role":"user","content":"Sure?"}]}`,
			[]string{"thinking.budget_tokens"},
		},
		{
			"no proof", wire.Chat, unsigned, upstream.Anthropic, upstream.ManagedOptions{Host: "h", Model: "x", MaxTokens: 7},
			`{"model":"x","max_tokens":7,"messages":[{"role":"user","content":"Is it?"},{"role":"assistant","content":[{"type":"text","text":"Yes."}]},{"role":"user","content":"Sure?"}]}`,
			[]string{"reasoning"},
		},
		{
			"OpenAI, not encrypted", wire.Chat, unsigned, upstream.Responses, upstream.ManagedOptions{Host: "api.openai.com", Model: "x"},
			`{"model":"x","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Is it?"}]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Yes."}]},` +
				`{"type":"message","role":"user","content":[{"type":"input_text","text":"Sure?"}]}],"include":["reasoning.encrypted_content"],"store":false}`,
			[]string{"reasoning"},
		},
		{
			"count", wire.Chat, `{"model":"m","temperature":1,"service_tier":"priority","messages":[{"role":"user","content":"Hi"}]}`, upstream.Anthropic,
			upstream.ManagedOptions{Host: "h", Model: "x", Count: true}, `{"model":"x","messages":[{"role":"user","content":"Hi"}]}`, []string{"service_tier"},
		},
		{
			"tier not granted", wire.Chat, `{"model":"m","service_tier":"priority","messages":[{"role":"user","content":"Hi"}]}`, upstream.Responses,
			upstream.ManagedOptions{Host: "h", Model: "x", Omit: []string{"service_tier"}, Logprobs: true},
			`{"model":"x","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]}],"include":["reasoning.encrypted_content","message.output_text.logprobs"],"store":false}`, nil,
		},
		{
			"log probabilities", wire.Responses, `{"model":"m","input":"Hi","include":["message.output_text.logprobs"],"top_logprobs":3}`, upstream.OpenAI,
			upstream.ManagedOptions{Host: "h", Model: "x", Logprobs: true},
			`{"model":"x","messages":[{"role":"user","content":"Hi"}],"logprobs":true,"top_logprobs":3}`, []string{"include"},
		},
		{
			"candidates without log probabilities", wire.Responses, `{"model":"m","input":"Hi","top_logprobs":3}`, upstream.OpenAI,
			upstream.ManagedOptions{Host: "h", Model: "x"}, `{"model":"x","messages":[{"role":"user","content":"Hi"}]}`, []string{"top_logprobs"},
		},
		{
			"no output", wire.Messages, `{"model":"m","max_tokens":0,"messages":[{"role":"user","content":"Hi"}]}`, upstream.Anthropic,
			upstream.ManagedOptions{Host: "h", Model: "x", MaxTokens: 7}, `{"model":"x","max_tokens":0,"messages":[{"role":"user","content":"Hi"}]}`, nil,
		},
		{
			"no output, Chat", wire.Messages, `{"model":"m","max_tokens":0,"messages":[{"role":"user","content":"Hi"}]}`, upstream.OpenAI,
			upstream.ManagedOptions{Host: "h", Model: "x"}, `{"model":"x","max_completion_tokens":1,"messages":[{"role":"user","content":"Hi"}]}`, nil,
		},
		{
			"no output, Responses", wire.Messages, `{"model":"m","max_tokens":0,"messages":[{"role":"user","content":"Hi"}]}`, upstream.Responses,
			upstream.ManagedOptions{Host: "h", Model: "x"},
			`{"model":"x","max_output_tokens":16,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]}],"include":["reasoning.encrypted_content"],"store":false}`, nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := c.from.Decode([]byte(c.body), nil)
			require.NoError(t, err)
			out, err := c.kind.Convert(r, &c.opt)
			require.NoError(t, err)
			require.Equal(t, c.want, string(out.Body))
			var lost []string
			for _, l := range out.Losses {
				lost = append(lost, l.Path)
			}
			require.Equal(t, c.lost, lost)
		})
	}
}

// TestManagedReasoningLimit checks that the number of changes to past reasoning is limited in a turn, but not in a request.
func TestManagedReasoningLimit(t *testing.T) {
	thought := `{"type":"thinking","thinking":"a","signature":""},`
	turn := func(thoughts int) string {
		return `{"role":"user","content":"a"},{"role":"assistant","content":[` + strings.Repeat(thought, thoughts) + `{"type":"text","text":"b"}]},`
	}
	for _, tt := range []struct {
		turns string
		path  string
	}{
		{turn(256), ""},
		{turn(1) + turn(257), "messages[3]"},
		{strings.Repeat(turn(1), 10_000), ""},
	} {
		body := `{"model":"m","max_tokens":9,"messages":[` + tt.turns + `{"role":"user","content":"c"}]}`
		r, err := messages.Decode([]byte(body), nil)
		require.NoError(t, err)
		out, err := upstream.Anthropic.Convert(r, &upstream.ManagedOptions{Model: "x"})
		if tt.path == "" {
			require.NoError(t, err)
			require.NotContains(t, string(out.Body), "thinking")
			require.Equal(t, strings.Count(body, `"b"`), strings.Count(string(out.Body), `"b"`))
			continue
		}
		var e *block.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, block.LimitPassed, e.Kind)
		require.Equal(t, tt.path, e.Path)
	}
}

func TestManagedHeaders(t *testing.T) {
	for _, c := range []struct {
		kind upstream.Managed
		host string
		want http.Header
	}{
		{upstream.OpenAI, "h", http.Header{"Authorization": {"Bearer k"}}},
		{upstream.Responses, "api.openai.com", http.Header{"Authorization": {"Bearer k"}}},
		{upstream.Anthropic, "api.anthropic.com", http.Header{"X-Api-Key": {"k"}, "Anthropic-Version": {"2023-06-01"}}},
		{upstream.Anthropic, "h", http.Header{"X-Api-Key": {"k"}, "Anthropic-Version": {"2023-06-01"}, "Authorization": {"Bearer k"}}},
	} {
		h := http.Header{}
		c.kind.SetHeaders(h, c.host, "k")
		require.Equal(t, c.want, h)
		h = http.Header{}
		c.kind.SetHeaders(h, c.host, "")
		require.Empty(t, h.Get("Authorization")+h.Get("X-Api-Key"))
	}
}

// A stream ends soon after its last choice, even if the endpoint keeps it open.
func TestManagedOpenEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body, to := io.Pipe()
		go io.WriteString(to, `data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}`+"\n\n")
		begun := time.Now()
		finished, pauses := false, 0
		for ev, err := range upstream.OpenAI.Events(body, 1, func() bool { pauses++; return true }) {
			finished = finished || ev.Kind == event.Finish
			require.True(t, err == nil || finished, "only the usage is missing")
		}
		require.True(t, finished)
		require.Equal(t, 2*time.Second, time.Since(begun))
		require.Greater(t, pauses, 1)
	})
}
