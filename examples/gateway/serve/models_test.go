// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/examples/prompt"
)

// modelFolders returns the folders of tokenizers beside the repository, or skips.
func modelFolders(t *testing.T) []string {
	shared := os.Getenv("WEFT_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "..", "..", "shared")
	}
	files, err := filepath.Glob(filepath.Join(shared, "tok", "*", "tokenizer.json"))
	if err != nil || len(files) == 0 {
		t.Skip("no models (set WEFT_SHARED):", err)
	}
	var dirs []string
	for _, f := range files {
		dir := filepath.Dir(f)
		if name := filepath.Base(dir); !testing.Short() || name == "qwen3" || name == "tinyllama" {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// withModel serves the model of a folder.
func withModel(t *testing.T, dir string, reply string) (url string, prompts func() []string) {
	t.Helper()
	tok, template, source, err := prompt.Load(os.DirFS(dir))
	require.NoError(t, err)
	t.Log(source)
	var mu sync.Mutex
	var seen []string
	e := vllm.New(tok, &vllm.Options{Model: "m", Speed: math.Inf(1), Script: func(p vllm.Prompt) vllm.Reply {
		mu.Lock()
		seen = append(seen, string(tok.AppendDecode(nil, p.IDs, false)))
		mu.Unlock()
		return vllm.Reply{Text: reply}
	}})
	engine := httptest.NewServer(e)
	g, err := serve.New(&serve.Options{Model: "m", Tokenizer: tok, Template: template, Engines: []serve.Engine{{URL: engine.URL, Events: e.Events}}})
	require.NoError(t, err)
	front := httptest.NewServer(g)
	t.Cleanup(func() {
		g.Close()
		front.Close()
		e.Close()
		engine.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return front.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return seen
	}
}

// Every model at hand answers an agent's conversation with everything that templates refuse: system text in the middle,
// two turns of the user in a row, calls and results. What was said stands in the prompt, and both ways to count agree.
func TestModels(t *testing.T) {
	for _, dir := range modelFolders(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			const reply = "all done here"
			url, prompts := withModel(t, dir, reply)
			tool := `{"type":"function","function":{"name":"read","description":"reads","parameters":{"type":"object","properties":{"path":{"type":"string"}}}}}`
			chat := `{"model":"m","messages":[
				{"role":"system","content":"alpha"},{"role":"user","content":"bravo"},{"role":"user","content":"charlie"},
				{"role":"assistant","content":"delta","reasoning_content":"echo","tool_calls":[{"id":"call_1","type":"function","function":{"name":"read","arguments":"{\"path\":\"foxtrot\"}"}}]},
				{"role":"tool","tool_call_id":"call_1","content":"golf"},{"role":"system","content":"hotel"},{"role":"user","content":"india"}],"tools":[` + tool + `]}`
			messages := `{"model":"m","max_tokens":50,"system":"alpha","messages":[
				{"role":"user","content":"bravo"},{"role":"user","content":"charlie"},
				{"role":"assistant","content":[{"type":"text","text":"delta"},{"type":"tool_use","id":"toolu_1","name":"read","input":{"path":"foxtrot"}}]},
				{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"golf"},{"type":"text","text":"<system-reminder>hotel</system-reminder>"}]},
				{"role":"user","content":"india"}],"tools":[{"name":"read","input_schema":{"type":"object","properties":{"path":{"type":"string"}}}}]}`
			words := []string{"alpha", "bravo", "charlie", "delta", "foxtrot", "golf", "hotel", "india"}
			for path, body := range map[string]string{"/v1/chat/completions": chat, "/v1/messages": messages} {
				status, _, got := send(t, url+path, body)
				require.Equal(t, 200, status, "%s: %s", path, got)
				require.Contains(t, strings.ToLower(strings.ReplaceAll(got, "\u003c/w\u003e", " ")), reply) // CLIP shows where words end
			}
			for i, p := range prompts() {
				at := 0
				low := strings.ToLower(p)
				for _, w := range words {
					k := strings.Index(low[at:], w)
					require.GreaterOrEqual(t, k, 0, "prompt %d lacks %q behind byte %d: %q", i, w, at, p)
					at += k
				}
			}
			_, _, got := send(t, url+"/v1/messages", messages)
			var answer struct{ Usage map[string]any }
			require.NoError(t, json.Unmarshal([]byte(got), &answer))
			_, _, counted := send(t, url+"/v1/messages/count_tokens", messages)
			var count struct {
				Tokens float64 `json:"input_tokens"`
			}
			require.NoError(t, json.Unmarshal([]byte(counted), &count))
			cached, _ := answer.Usage["cache_read_input_tokens"].(float64)
			require.Equal(t, count.Tokens, answer.Usage["input_tokens"].(float64)+cached)
		})
	}
}

// In the messages API the model goes on with a last message of the assistant.
func TestContinue(t *testing.T) {
	for _, dir := range modelFolders(t) {
		if name := filepath.Base(dir); name != "qwen2.5" && name != "qwen3" && name != "phi-4" {
			continue
		}
		t.Run(filepath.Base(dir), func(t *testing.T) {
			url, prompts := withModel(t, dir, "and done")
			status, _, got := send(t, url+"/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"go on"},{"role":"assistant","content":"first this"}]}`)
			require.Equal(t, 200, status, got)
			require.True(t, strings.HasSuffix(prompts()[0], "first this"), prompts()[0])
			status, _, got = send(t, url+"/v1/chat/completions", `{"model":"m","continue_final_message":true,"add_generation_prompt":false,"messages":[{"role":"user","content":"go on"},{"role":"assistant","content":"first this"}]}`)
			require.Equal(t, 200, status, got)
			require.Equal(t, prompts()[0], prompts()[1])
		})
	}
}

// A folder without a template is judged by what it has, and says so.
func TestTemplateSource(t *testing.T) {
	small := fstest.MapFS{}
	for name, marks := range map[string][]string{"ChatML": {"<|im_start|>", "<|im_end|>"}, "harmony": {"<|start|>", "<|channel|>", "<|message|>", "<|call|>"}, "ChatML as plain text: the folder has no template": nil} {
		var added []string
		for i, m := range marks {
			added = append(added, fmt.Sprintf(`{"id":%d,"content":%q,"special":true,"normalized":false,"single_word":false,"lstrip":false,"rstrip":false}`, i+1, m))
		}
		small["tokenizer.json"] = &fstest.MapFile{Data: []byte(`{"added_tokens":[` + strings.Join(added, ",") + `],"model":{"type":"WordLevel","vocab":{"<unk>":0},"unk_token":"<unk>"}}`)}
		_, template, source, err := prompt.Load(small)
		require.NoError(t, err)
		require.NotNil(t, template)
		require.Equal(t, name, source)
	}
	small["tokenizer.json"] = &fstest.MapFile{Data: []byte(`{"model":{"type":"WordLevel","vocab":{"<unk>":0},"unk_token":"<unk>"}}`)}
	small["chat_template.jinja"] = &fstest.MapFile{Data: []byte("{% for m in messages %}{{ m.content")}
	_, _, _, err := prompt.Load(small)
	require.ErrorContains(t, err, "chat template")
}
