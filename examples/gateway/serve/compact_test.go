// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/protocols/catalog"
)

// TestCompaction checks that a trigger and the endpoint return exactly one item with a sealed summary, that the next request
// continues from it, and that no other client's item is accepted.
func TestCompaction(t *testing.T) {
	const summary = "The user wants a boat."
	empty := false
	r := start(t, 1, func(p vllm.Prompt) vllm.Reply {
		switch {
		case empty:
			return vllm.Reply{Text: "<think>\nNothing.\n</think>\n"}
		case strings.Contains(p.Text, "is about to be replaced by a summary"):
			return vllm.Reply{Text: "<think>\nWhat mattered?\n</think>\n\n" + summary}
		}
		return vllm.Reply{Text: "fine"}
	}, func(o *serve.Options) {
		o.Keys = []serve.Key{{Secret: "one", Tenant: "a"}, {Secret: "two", Tenant: "b"}}
	})
	const tools = `"tools":[{"type":"function","name":"read","parameters":{"type":"object","properties":{}}}],"tool_choice":"auto"`
	const past = `{"role":"user","content":"Build a boat."},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Which one?"}]}`
	ask := func(path, body, key string) (int, string) {
		t.Helper()
		status, _, text := send(t, r.url+path, body, "Authorization", "Bearer "+key)
		return status, text
	}
	type item struct{ Type, ID, Encrypted string }
	items := func(raw any) (out []item) {
		for _, v := range raw.([]any) {
			o := v.(object)
			id, _ := o["id"].(string)
			text, _ := o["encrypted_content"].(string)
			out = append(out, item{o["type"].(string), id, text})
		}
		return out
	}
	var sealed string
	for _, stream := range []bool{true, false} {
		status, text := ask("/v1/responses", `{"model":"m","stream":`+map[bool]string{true: "true", false: "false"}[stream]+`,`+tools+`,"text":{"format":{"type":"text"}},"input":[`+past+`,{"type":"compaction_trigger"}]}`, "one")
		require.Equal(t, 200, status, text)
		require.NotContains(t, text, summary)
		require.NotContains(t, text, "What mattered")
		var last object
		if stream {
			var done []any
			for _, f := range frames(t, text) {
				if f.typ == "response.output_item.done" {
					done = append(done, f.data["item"])
				}
				last, _ = f.data["response"].(object)
			}
			require.Len(t, items(done), 1)
			require.Equal(t, items(done), items(last["output"]))
		} else {
			require.NoError(t, json.Unmarshal([]byte(text), &last))
		}
		got := items(last["output"])
		require.Len(t, got, 1)
		require.Equal(t, "compaction", got[0].Type)
		require.Equal(t, "completed", last["status"])
		require.NotEmpty(t, got[0].ID)
		sealed = got[0].Encrypted
	}
	prompt := r.prompts[0].Text
	require.Contains(t, prompt, "Which one?")
	require.Contains(t, prompt, `"read"`, "the tools stay, so that the engine has the beginning cached")

	status, text := ask("/v1/responses/compact", `{"model":"m","instructions":"Be brief.","input":[`+past+`]}`, "one")
	require.Equal(t, 200, status, text)
	var body object
	require.NoError(t, json.Unmarshal([]byte(text), &body))
	require.Equal(t, "response.compaction", body["object"])
	got := items(body["output"])
	require.Equal(t, "compaction", got[0].Type)
	require.Equal(t, sealed, got[0].Encrypted)
	require.Positive(t, body["usage"].(object)["input_tokens"])

	next := `{"model":"m","input":[{"type":"compaction","encrypted_content":"` + sealed + `"},{"role":"user","content":"Go on."}]}`
	status, text = ask("/v1/responses", next, "one")
	require.Equal(t, 200, status, text)
	prompt = r.prompts[len(r.prompts)-1].Text
	require.Contains(t, prompt, "which it replaces:\n\n"+summary)
	require.Less(t, strings.Index(prompt, summary), strings.Index(prompt, "Go on."))
	require.NotContains(t, prompt, "Build a boat")

	status, text = ask("/v1/responses", next, "two")
	require.Equal(t, 400, status, text)
	require.Contains(t, text, "input[0]")
	require.Contains(t, text, "not made by this server, or for another client")
	status, text = ask("/v1/responses", strings.Replace(next, sealed, "gAAAAA", 1), "one")
	require.Equal(t, 400, status, text)
	status, text = ask("/v1/responses/compact", `{"model":"m","stream":true,"input":"x"}`, "one")
	require.Equal(t, 400, status, text)
	require.Contains(t, text, `"param":"stream"`)

	empty = true
	status, text = ask("/v1/responses/compact", `{"model":"m","input":[`+past+`]}`, "one")
	require.Equal(t, 502, status, text)
	status, text = ask("/v1/responses", `{"model":"m","stream":true,"input":[`+past+`,{"type":"compaction_trigger"}]}`, "one")
	require.Equal(t, 200, status)
	require.Contains(t, text, "event: response.failed")
	require.NotContains(t, text, "output_item")
}

// TestCompactionIsWhole checks that a summary that is cut or blank is an error, because the client would replace its conversation
// by it.
func TestCompactionIsWhole(t *testing.T) {
	long := strings.Repeat("The user wants a boat. ", 20)
	for name, tt := range map[string]struct {
		text, fields  string
		change        func(o *serve.Options)
		status        int
		code, failure string // of the endpoint, and of a stream
		message       string
	}{
		"window":               {long, "", func(o *serve.Options) { o.MaxModelLen = 140 }, 400, `"context_length_exceeded"`, "context_length_exceeded", "too little of the model's context window"},
		"limit of the request": {long, `"max_output_tokens":3,`, nil, 400, "null", "invalid_prompt", "cut at max_output_tokens (3)"},
		"limit of the model": {long, `"max_output_tokens":30,`, func(o *serve.Options) {
			o.Models = []catalog.Model{{ID: "m", MaxOutputTokens: 20}}
		}, 400, "null", "invalid_prompt", "cut at the model's limit of output tokens"},
		"cut in reasoning": {"<think>\n" + long, `"max_output_tokens":9,`, nil, 400, "null", "invalid_prompt", "cut at max_output_tokens (9)"},
		"blank":            {" \n\t \n", "", nil, 502, "null", "server_error", "no summary that can be used"},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, 1, say(tt.text), tt.change)
			const past = `{"role":"user","content":"Build a boat."}`
			status, _, text := send(t, r.url+"/v1/responses/compact", `{"model":"m",`+tt.fields+`"input":[`+past+`]}`)
			require.Equal(t, tt.status, status, text)
			require.Contains(t, text, tt.message)
			require.Contains(t, text, `"code":`+tt.code)
			trigger := `{"model":"m",` + tt.fields + `"stream":%t,"input":[` + past + `,{"type":"compaction_trigger"}]}`
			status, _, text = send(t, r.url+"/v1/responses", fmt.Sprintf(trigger, false))
			require.Equal(t, tt.status, status, text)
			require.Contains(t, text, tt.message)
			status, _, text = send(t, r.url+"/v1/responses", fmt.Sprintf(trigger, true))
			require.Equal(t, 200, status, text)
			require.NotContains(t, text, "output_item")
			all := frames(t, text)
			last := all[len(all)-1]
			require.Equal(t, "response.failed", last.typ)
			fault := last.data["response"].(object)["error"].(object)
			require.Equal(t, tt.failure, fault["code"])
			require.Contains(t, fault["message"], tt.message)
		})
	}
}

// TestManagedCompactionIsWhole is TestCompactionIsWhole for an endpoint with an API of its own.
func TestManagedCompactionIsWhole(t *testing.T) {
	k := upstream.OpenAI
	r := managed(t, k, nil, newEndpoint(t, playing(k, lengthScene)))
	for fields, message := range map[string]string{``: "model's limit", `"max_output_tokens":30,`: "max_output_tokens (30)"} {
		status, _, text := send(t, r.url+"/v1/responses/compact", `{"model":"m",`+fields+`"input":"Build a boat."}`)
		require.Equal(t, 400, status, text)
		require.Contains(t, text, message)
	}
	k = upstream.Anthropic
	r = managed(t, k, nil, newEndpoint(t, playing(k, refusalScene)))
	status, _, text := send(t, r.url+"/v1/responses/compact", `{"model":"m","input":"Build a boat."}`)
	require.Equal(t, 502, status, "a refusal is no summary: %s", text)
}
