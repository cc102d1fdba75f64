// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// modelDirs returns the directories of two of the shared tokenizers, with WEFT_TEST=long of all, or skips the test.
func modelDirs(t *testing.T) []string {
	if testing.Short() {
		t.Skip("large models")
	}
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
		if name := filepath.Base(dir); os.Getenv("WEFT_TEST") == "long" || name == "qwen3" || name == "tinyllama" {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// withModel serves the model in a directory.
func withModel(t *testing.T, dir string, reply string) (url string, prompts func() []string) {
	t.Helper()
	m, err := prompt.Load(os.DirFS(dir), nil)
	require.NoError(t, err)
	t.Log(m.Source(), m.Family())
	tok := m.Tokenizer()
	var mu sync.Mutex
	var seen []string
	e := vllm.New(tok, &vllm.Options{Model: "m", MaxModelLen: m.Window(), Speed: math.Inf(1), Script: func(p vllm.Prompt) vllm.Reply {
		mu.Lock()
		seen = append(seen, string(tok.AppendDecode(nil, p.IDs, false)))
		mu.Unlock()
		return vllm.Reply{Text: reply}
	}})
	engine := httptest.NewServer(e)
	g, err := serve.New(&serve.Options{Model: "m", Prompts: m, Engines: []serve.Engine{{URL: engine.URL, Events: e.Events}}})
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

// TestModels sends a conversation with elements that some templates refuse to each available model: system text in the
// middle, consecutive user turns, calls and results. The prompt must contain the text of all turns in their order, except
// the system text, which Mistral's first formats print last, and count_tokens must equal the usage.
func TestModels(t *testing.T) {
	for _, dir := range modelDirs(t) {
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
			words := []string{"bravo", "charlie", "delta", "foxtrot", "golf", "hotel", "india"}
			for path, body := range map[string]string{"/v1/chat/completions": chat, "/v1/messages": messages} {
				status, _, got := send(t, url+path, body)
				require.Equal(t, 200, status, "%s: %s", path, got)
				require.Contains(t, strings.ToLower(strings.ReplaceAll(got, "\u003c/w\u003e", " ")), reply) // CLIP marks the ends of words
			}
			for i, p := range prompts() {
				at := 0
				low := strings.ToLower(p)
				require.Contains(t, low, "alpha")
				for _, w := range words {
					k := strings.Index(low[at:], w)
					require.GreaterOrEqual(t, k, 0, "prompt %d lacks %q after byte %d: %q", i, w, at, p)
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

// In the Messages API, the model continues a final assistant message.
func TestContinue(t *testing.T) {
	for _, dir := range modelDirs(t) {
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
