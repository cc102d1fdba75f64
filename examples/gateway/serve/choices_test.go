// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/gateway/serve"
)

// TestChoices requests several choices: one with calls, one truncated, one plain.
func TestChoices(t *testing.T) {
	long := strings.Repeat("on and on ", 200)
	replies := []string{answer, "<think>\nHm.\n</think>\n\n" + long, "Plain.", answer}
	var reported []serve.ToolCall
	r := start(t, 2, func(p vllm.Prompt) vllm.Reply { return vllm.Reply{Text: replies[p.Choice]} }, func(o *serve.Options) {
		o.ToolDispatch = true
		o.OnToolCall = func(_ context.Context, c serve.ToolCall) { reported = append(reported, c) }
	})
	chat := apiCases[0]
	body := chat.body("Look around.", true)
	body["n"], body["max_tokens"] = len(replies), 150
	output := 0
	for _, s := range replies {
		output += min(len(tok().AppendEncode(nil, s))+1, 150)
	}
	want := func(got reply, i int) {
		t.Helper()
		switch i {
		case 1:
			require.Equal(t, "length", got.Finish)
			require.Equal(t, "Hm.", got.text("reasoning"))
			require.True(t, strings.HasPrefix(long, got.text("text")), got.text("text"))
			require.Greater(t, len(got.text("text")), 200)
		case 2:
			require.Empty(t, cmp.Diff([]part{{Kind: "text", Text: "Plain."}}, got.Parts, cmp.AllowUnexported(part{})))
			require.Equal(t, "stop", got.Finish)
		default:
			require.Equal(t, "tool_calls", got.Finish)
			require.Empty(t, cmp.Diff([]part{
				{Kind: "reasoning", Text: "I need two looks."}, {Kind: "text", Text: "Looking."},
				{Kind: "call", Name: "read", Args: `{"path": "a.go"}`}, {Kind: "call", Name: "grep", Args: `{"pattern": "x+"}`},
			}, got.shown(), cmp.AllowUnexported(part{})))
		}
	}
	for k, stream := range []bool{true, false} {
		reported = nil
		got := chat.ask(t, r.url, body, stream, "X-Weft-Tool-Dispatch", "1")
		require.Len(t, got, len(replies))
		ids := map[string]bool{}
		var received []serve.ToolCall
		for i, g := range got {
			want(g, i)
			for _, c := range g.calls() {
				require.False(t, ids[c.ID], "id %s twice", c.ID)
				ids[c.ID] = true
				received = append(received, serve.ToolCall{Choice: i, ID: c.ID, Name: c.Name, Arguments: c.Args})
			}
		}
		require.Len(t, reported, len(received))
		for _, c := range reported {
			c.RequestID = ""
			require.Contains(t, received, c)
		}
		rec := r.done(t, k+1)[k]
		require.EqualValues(t, output, rec.Usage.Output, "the output of all answers")
		require.EqualValues(t, len(r.prompts[0].IDs), rec.Usage.Prompt, "the prompt counts once")
		require.Positive(t, rec.Usage.Reasoning)
		require.Equal(t, "stop", rec.Finish)
	}
	body["stream"] = false
	_, _, text := send(t, r.url+chat.path, body)
	require.Contains(t, text, fmt.Sprintf(`"completion_tokens":%d,`, output))
	body["stream"] = true
	_, _, text = send(t, r.url+chat.path, body, "X-Weft-Tool-Dispatch", "1")
	fs := frames(t, text)
	require.Equal(t, "[DONE]", fs[len(fs)-1].text)
	u := fs[len(fs)-2].data
	require.Empty(t, u["choices"])
	require.EqualValues(t, output, u["usage"].(object)["completion_tokens"])
	require.Equal(t, 4, strings.Count(text, "event: tool_call_dispatch"))
	require.Equal(t, 2, strings.Count(text, `{"choice_index":3,`))
	finished := map[any]bool{}
	for _, f := range fs[:len(fs)-2] {
		if f.typ == "tool_call_dispatch" {
			continue
		}
		c := f.data["choices"].([]any)[0].(object)
		require.False(t, finished[c["index"]], "nothing follows the end of an answer")
		finished[c["index"]] = c["finish_reason"] != nil
	}
	require.Len(t, finished, 4)
}

// TestChoicesWithStops uses a stop string, for which engines send text without token ids.
func TestChoicesWithStops(t *testing.T) {
	r := start(t, 1, func(p vllm.Prompt) vllm.Reply {
		return vllm.Reply{Text: []string{"one END two", "three", "<think>\nx\n</think>\n\nfourEND"}[p.Choice]}
	}, nil)
	body := apiCases[0].body("go", true)
	body["n"], body["stop"] = 3, "END"
	for _, stream := range []bool{true, false} {
		got := apiCases[0].ask(t, r.url, body, stream)
		require.Equal(t, []string{"one ", "three", "four"}, []string{got[0].text("text"), got[1].text("text"), got[2].text("text")})
	}
}

// TestChoicesBounds checks the limit of n, and that n is ignored or refused in APIs without it.
func TestChoicesBounds(t *testing.T) {
	r := start(t, 1, say("fine"), nil)
	few := start(t, 1, say("fine"), func(o *serve.Options) { o.MaxChoices = 2 })
	for _, tt := range []struct {
		url    string
		api    apiCase
		n      any
		answer int
	}{
		{r.url, apiCases[0], nil, 1}, {r.url, apiCases[0], 1, 1}, {r.url, apiCases[0], 16, 16}, {r.url, apiCases[0], 17, 0}, {r.url, apiCases[0], 0, 0},
		{r.url, apiCases[0], -1, 0}, {r.url, apiCases[0], int64(1) << 40, 0}, {few.url, apiCases[0], 2, 2}, {few.url, apiCases[0], 3, 0},
		{r.url, apiCases[1], 1, 1}, {r.url, apiCases[1], nil, 1}, {r.url, apiCases[1], 2, 1}, {r.url, apiCases[2], 1, 1}, {r.url, apiCases[2], 2, 1}, {r.url, apiCases[2], "2", 1}, // not their field
	} {
		t.Run(fmt.Sprint(tt.api.name, " ", tt.n), func(t *testing.T) {
			body := tt.api.body("go", false)
			body["n"] = tt.n
			if tt.answer > 0 {
				require.Len(t, tt.api.ask(t, tt.url, body, false), tt.answer)
				return
			}
			status, _, text := send(t, tt.url+tt.api.path, body)
			tt.api.wantError(t, status, text, 400, "invalid_request_error", "answer")
			if !tt.api.anthropic {
				require.Contains(t, text, `"param":"n"`)
			}
		})
	}
}

// TestChoicesFail checks that the request fails once if one of three choices fails.
func TestChoicesFail(t *testing.T) {
	r := start(t, 1, func(p vllm.Prompt) vllm.Reply {
		rep := vllm.Reply{Text: "one two three four"}
		if p.Choice == 1 {
			rep.Fail = vllm.Failure{Mode: vllm.Cut, AfterTokens: 3}
		}
		return rep
	}, nil)
	body := apiCases[0].body("go", true)
	body["n"] = 3
	_, _, text := send(t, r.url+apiCases[0].path, body)
	require.Equal(t, 1, strings.Count(text, `"error":`))
	require.NotContains(t, text, "[DONE]")
	body["stream"] = false
	status, _, text := send(t, r.url+apiCases[0].path, body)
	apiCases[0].wantError(t, status, text, 502, "server_error", "engine")
}

// TestEngineChoices tests engines that ignore or misinterpret n.
func TestEngineChoices(t *testing.T) {
	for name, tt := range map[string]struct {
		chunks []string
		want   []string // nil means an error
	}{
		"several in a chunk": {[]string{`{"choices":[{"index":1,"text":"b"},{"index":0,"text":"a"}]}`,
			`{"choices":[{"index":0,"text":"A","finish_reason":"stop"},{"index":1,"text":"B","finish_reason":"length"}],"usage":{"prompt_tokens":9,"completion_tokens":4}}`}, []string{"aA", "bB"}},
		"output after the finish of a choice": {[]string{`{"choices":[{"index":0,"text":"a","finish_reason":"stop"}]}`, `{"choices":[{"index":0,"text":"more"}]}`,
			`{"choices":[{"index":1,"text":"b","finish_reason":"stop"}]}`}, []string{"a", "b"}},
		"an empty one":      {[]string{`{"choices":[{"index":0,"text":"a","finish_reason":"stop"}]}`, `{"choices":[{"index":1,"text":"","finish_reason":"stop"}]}`}, []string{"a", ""}},
		"only one is given": {[]string{`{"choices":[{"index":0,"text":"a","finish_reason":"stop"}]}`}, nil},
		"one too many":      {[]string{`{"choices":[{"index":2,"text":"a","finish_reason":"stop"}]}`}, nil},
		"below the first":   {[]string{`{"choices":[{"index":-1,"text":"a","finish_reason":"stop"}]}`}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			requests := 0
			engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var req struct{ N int }
				if json.NewDecoder(r.Body).Decode(&req) == nil {
					requests = req.N
				}
				for _, c := range append(tt.chunks, "[DONE]") {
					fmt.Fprintf(w, "data: %s\n\n", c)
				}
			}))
			defer engine.Close()
			r := start(t, 0, nil, func(o *serve.Options) { o.Engines = []serve.Engine{{URL: engine.URL}} })
			body := apiCases[0].body("go", true)
			body["n"] = 2
			if tt.want == nil {
				body["stream"] = false
				status, _, text := send(t, r.url+apiCases[0].path, body)
				apiCases[0].wantError(t, status, text, 502, "server_error", "engine")
				return
			}
			got := apiCases[0].ask(t, r.url, body, true)
			require.Equal(t, tt.want, []string{got[0].text("text"), got[1].text("text")})
			require.Equal(t, 2, requests)
		})
	}
}
