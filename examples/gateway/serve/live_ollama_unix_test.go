// SPDX-License-Identifier: Apache-2.0

//go:build unix

package serve_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// startOllama starts the program in WEFT_LIVE_OLLAMA, which .ci/live builds, with a model "smol", and returns its address.
func startOllama(t *testing.T, file string) string {
	program, home, address := os.Getenv("WEFT_LIVE_OLLAMA"), t.TempDir(), "127.0.0.1:"+freePort(t)
	env := append(os.Environ(), "HOME="+home, "OLLAMA_HOST="+address, "OLLAMA_NO_CLOUD=1", "OLLAMA_CONTEXT_LENGTH=8192", "NO_PROXY=*", "no_proxy=*")
	log, err := os.Create(filepath.Join(os.Getenv("WEFT_LIVE_DIR"), "ollama-"+t.Name()+".log"))
	require.NoError(t, err)
	defer log.Close()
	cmd := exec.Command(program, "serve")
	cmd.Env, cmd.Stdout, cmd.Stderr = env, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it starts a llama-server for the model
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		timer := time.AfterFunc(10*time.Second, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		cmd.Wait()
		timer.Stop()
	})
	require.Eventually(t, func() bool {
		resp, err := http.Get("http://" + address + "/api/version")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	}, time.Minute, 100*time.Millisecond, log.Name())
	// This version passes --no-mmap to llama-server otherwise, which the newer llama-server of .ci/live does not have.
	modelfile := filepath.Join(home, "Modelfile")
	require.NoError(t, os.WriteFile(modelfile, []byte("FROM "+file+"\nPARAMETER use_mmap true\nPARAMETER num_thread 1\n"), 0o600))
	create := exec.Command(program, "create", "smol", "-f", modelfile)
	create.Env = env
	out, err := create.CombinedOutput()
	require.NoError(t, err, string(out))
	return "http://" + address
}

// TestLiveOllama holds conversations with a real model at a real Ollama. Without randomness, the text of each response
// equals the text of Ollama's own chat.
func TestLiveOllama(t *testing.T) {
	file := os.Getenv("WEFT_LIVE_SMOLLM2")
	if os.Getenv("WEFT_LIVE_OLLAMA") == "" || file == "" {
		t.Skip("needs an Ollama and SmolLM2 (run .ci/live)")
	}
	address := startOllama(t, file)
	e, err := upstream.Ask(t.Context(), address, "")
	require.NoError(t, err)
	require.NoError(t, e.Load(t.Context(), e.Models[0].ID))
	require.Equal(t, []any{upstream.Ollama{}, []upstream.Model{{ID: "smol:latest", Window: 8192}}}, []any{e.Kind, e.Models})
	model := smolLM(t, file)
	for _, text := range []string{"Hello, world! 12345  x\n\n\ty = 2", "naïve — 你好 🙂🇩🇪", "<|im_start|>user\n"} {
		ids, err := e.Tokenize(t.Context(), "smol", text)
		require.NoError(t, err)
		ours := model.Tokenizer().AppendEncode(nil, text)
		require.Equal(t, ours[:len(ours)-1], ids[:len(ours)-1], text)
	}
	url, records := ollamaGateway(t, address, model)
	system := map[string]any{"role": "system", "content": "You are terse."} // Ollama's template has no default
	for _, path := range []string{"/v1/chat/completions", "/v1/responses"} {
		turns, equal := []map[string]any{system}, 0
		questions := []string{"What is the capital of France?", "And of Norway?", "Count from 1 to 10.", "Name three colors.", "Translate \"good morning\" into German.",
			"What is 7 times 8?", "Why is the sky blue?", "List two planets.", "Write 你好 once.", "Goodbye!"}
		for i, q := range questions {
			turns = append(turns, map[string]any{"role": "user", "content": q})
			status, out := postJSON(t, url+path, llamaBody(path, turns, 32, nil))
			require.Equal(t, http.StatusOK, status, out)
			r := <-records
			text, why, _ := readReply(t, out)
			status, out = postJSON(t, address+"/v1/chat/completions", llamaBody("", turns, 32, nil))
			require.Equal(t, http.StatusOK, status, out)
			if own, ownWhy, _ := readReply(t, out); own == text {
				equal++
			} else {
				t.Logf("%s %d: %q (%s, %d tokens), Ollama itself %q (%s)", path, i, text, why, r.Usage.Output, own, ownWhy)
			}
			turns = append(turns, map[string]any{"role": "assistant", "content": text})
		}
		t.Logf("%-21s text equal in %d of %d", path, equal, len(questions))
		require.GreaterOrEqual(t, equal, len(questions)-1) // the best token may change with the part of the prompt that is cached
	}

	ask := func(content string, fields map[string]any) (int, string) {
		status, out := postJSON(t, url+"/v1/chat/completions", llamaBody("", []map[string]any{{"role": "user", "content": content}}, 60, fields))
		return status, out
	}
	schema := map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "boolean"}}, "required": []string{"a"}, "additionalProperties": false}
	status, out := ask("x", map[string]any{"response_format": map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": "n", "schema": schema}}})
	require.Equal(t, http.StatusOK, status, out)
	text, _, _ := readReply(t, out)
	require.Regexp(t, `^\{\s*"a"\s*:\s*(true|false)\s*\}$`, text)
	status, out = ask("Count from 1 to 10, with commas.", map[string]any{"stop": []string{"4"}, "stream": false})
	require.Equal(t, http.StatusOK, status, out)
	text, _, _ = readReply(t, out)
	require.NotContains(t, text, "4")
	for _, tt := range []struct {
		content string
		fields  map[string]any
		want    string
	}{
		{"what is <|im_end|>?", nil, "spells special tokens"},
		{"x", map[string]any{"n": 2}, "generate one answer"},
		{"x", map[string]any{"logprobs": true}, "no log probabilities"},
		{"x", map[string]any{"structured_outputs": map[string]any{"regex": "a+"}}, "enforces only a JSON schema"},
		{strings.Repeat("word ", 9000), nil, "maximum context length is 8192 tokens"},
	} {
		status, out := ask(tt.content, tt.fields)
		require.Equal(t, http.StatusBadRequest, status, out)
		require.Contains(t, out, tt.want)
	}
}

// ollamaGateway returns the address of a gateway for an Ollama, and its records.
func ollamaGateway(t *testing.T, address string, model *prompt.Model) (string, chan serve.Record) {
	records := make(chan serve.Record, 256)
	g, err := serve.New(&serve.Options{
		Model: "smol", Prompts: model, Engines: []serve.Engine{{URL: address, Kind: upstream.Ollama{}}},
		OnDone: func(r serve.Record) { records <- r },
	})
	require.NoError(t, err)
	t.Cleanup(g.Close)
	s := httptest.NewServer(g)
	t.Cleanup(s.Close)
	return s.URL, records
}
