// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/tokenizers/mini"
)

// modelFiles writes the small tokenizer and a template to a new directory.
func modelFiles(t *testing.T, dir string) {
	require.NoError(t, os.MkdirAll(dir, 0o700))
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json"} {
		data, err := fs.ReadFile(mini.FS(), name)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
}

// A told is an engine with fixed descriptions of itself, which tokenizes text if tokenize is set.
type told struct {
	models   string
	metrics  string
	events   string
	tokenize func(text string) []uint32
	thinks   string // what the engine's chat template prints before the response
}

func (e *told) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/v1/models" && e.models != "":
		fmt.Fprint(w, e.models)
	case r.URL.Path == "/metrics" && e.metrics != "":
		fmt.Fprint(w, e.metrics)
	case r.URL.Path == "/kv_event_sources" && e.events != "":
		fmt.Fprint(w, e.events)
	case r.URL.Path == "/tokenize" && e.tokenize != nil:
		prompt := e.conversation(r)
		json.NewEncoder(w).Encode(map[string]any{"tokens": e.tokenize(prompt)})
	case r.URL.Path == "/apply-template":
		json.NewEncoder(w).Encode(map[string]any{"prompt": e.conversation(r)})
	case r.URL.Path == "/v1/completions":
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"text\":\"Hi.\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	case r.URL.Path != "/health":
		w.WriteHeader(404)
	}
}

// conversation returns the prompt in a request, or for the messages in it.
func (e *told) conversation(r *http.Request) string {
	var req struct {
		Prompt   string
		Messages []struct{ Role, Content string }
	}
	json.NewDecoder(r.Body).Decode(&req)
	for _, m := range req.Messages {
		req.Prompt += "<|im_start|>" + m.Role + "\n" + m.Content + "<|im_end|>\n"
	}
	if req.Messages != nil {
		req.Prompt += "<|im_start|>" + e.thinks + "assistant\n"
	}
	return req.Prompt
}

func exact(text string) []uint32 { return mini.Load().AppendEncode(nil, text) }

// One flag is enough: the engine tells the rest.
func TestDiscover(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HF_HUB_CACHE", home)
	repo := filepath.Join(home, "models--org--tiny")
	modelFiles(t, filepath.Join(repo, "snapshots", "abc"))
	require.NoError(t, os.MkdirAll(filepath.Join(repo, "refs"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(repo, "refs", "main"), []byte("abc\n"), 0o600))
	local := t.TempDir()
	modelFiles(t, local)
	for _, root := range []string{"org/tiny", local} {
		engine := httptest.NewServer(&told{
			models:   fmt.Sprintf(`{"data":[{"id":"tiny","owned_by":"vllm","root":%q,"max_model_len":4096},{"id":"sql","root":"/a","parent":"tiny"}]}`, root),
			metrics:  "vllm:cache_config_info{block_size=\"32\",num_gpu_blocks=\"1100\"} 1.0\n",
			tokenize: exact,
		})
		defer engine.Close()
		var out, log bytes.Buffer
		addr, cancel, ended := startProgram(t, &out, &log, "-engine", engine.URL, "-listen", "127.0.0.1:0", "-tool-call-parser", "hermes")
		url := "http://" + addr
		resp, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"tiny","messages":[{"role":"user","content":"x"}]}`))
		require.NoError(t, err)
		var reply struct {
			Choices []struct{ Message struct{ Content string } }
		}
		require.NoError(t, json.NewDecoder(resp.Body).Decode(&reply))
		resp.Body.Close()
		require.Equal(t, "Hi.", reply.Choices[0].Message.Content)
		resp, err = http.Get(url + "/v1/models/sql")
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, http.StatusOK, resp.StatusCode, "an adapter of the engine")
		http.DefaultClient.CloseIdleConnections()
		cancel()
		require.NoError(t, <-ended)
		require.Contains(t, log.String(), "kind=vllm")
		require.Contains(t, log.String(), "block_size=32 blocks=1100")
		require.Contains(t, out.String(), "Serving tiny at "+url)
		require.Contains(t, out.String(), "ANTHROPIC_BASE_URL="+url+" ANTHROPIC_AUTH_TOKEN=x ANTHROPIC_MODEL=tiny")
	}
}

// A vLLM with an endpoint for token ids is asked over that, unless it gets hints that only /v1/completions reads.
func TestDiscoverTokens(t *testing.T) {
	for features, want := range map[string]upstream.Kind{
		"":                    upstream.VLLMTokens{Defaults: "{}"},
		"priority scheduling": upstream.VLLMTokens{Defaults: "{}"},
		"session field":       upstream.VLLM{},
		"thinking budget":     upstream.VLLM{},
	} {
		e := engineConfig{Features: features}
		require.NoError(t, e.complete(&upstream.Engine{Kind: upstream.VLLMTokens{Defaults: "{}"}}))
		require.Equal(t, "vllm", e.Kind)
		require.Equal(t, want, e.kind(), features)
	}
	engine := httptest.NewServer(&told{models: `{"data":[{"id":"tiny","owned_by":"vllm","root":"/m"}]}`}) // restarted without it
	defer engine.Close()
	c := &config{Deployment: Deployment{Model: "tiny"}}
	e := engineConfig{Kind: "vllm", URL: engine.URL}
	require.NoError(t, c.checkAgain(e, mini.Load())(t.Context()))
	e.Found = upstream.VLLMTokens{}
	require.ErrorContains(t, c.checkAgain(e, mini.Load())(t.Context()), "no longer has the endpoint /inference/v1/generate")
}

// An embedded engine is asked like any other one, unless it is in the process.
func TestDiscoverEmbedded(t *testing.T) {
	e := vllm.New(mini.Load(), &vllm.Options{Model: "m", BlockSize: 32, MaxModelLen: 4096})
	t.Cleanup(e.Close)
	engine := httptest.NewServer(e)
	t.Cleanup(engine.Close)
	check := func(args ...string) error {
		return run(t.Context(), append(args, "-tool-call-parser", "hermes", "-check"), io.Discard, io.Discard, nil)
	}
	for _, kind := range []string{"embedded", "vllm"} {
		require.NoError(t, check("-engine", kind+"="+engine.URL, "-model-dir", "mini"))
		require.ErrorContains(t, check("-engine", kind+"="+engine.URL, "-model", "other", "-model-dir", "mini"), "serves m, not other")
		require.ErrorContains(t, check("-engine", kind+"="+engine.URL, "-block-size", "16", "-model-dir", "mini"), "have 32 tokens, -block-size is 16")
		require.ErrorContains(t, check("-engine", kind+"="+engine.URL, "-max-model-len", "5000", "-model-dir", "mini"), "takes 4096 tokens")
		require.ErrorContains(t, check("-engine", kind+"=http://127.0.0.1:1", "-model", "m", "-model-dir", "mini"), "127.0.0.1:1")
		_, stop, ended := startProgram(t, io.Discard, io.Discard, "-listen", "127.0.0.1:0", "-engine", kind+"=http://127.0.0.1:1", "-model", "m", "-tool-call-parser", "hermes")
		stop() // it may start later
		require.NoError(t, <-ended)
		require.ErrorContains(t, run(t.Context(), []string{"-listen", "127.0.0.1:0", "-engine", kind + "=" + engine.URL, "-block-size", "16", "-tool-call-parser", "hermes"}, io.Discard, io.Discard, nil), "-block-size is 16")
	}
	require.NoError(t, check("-engine", "embedded=local", "-model", "m"))
}

// An Ollama loads the model, whose window counts. What text cannot have is in the log.
func TestDiscoverOllama(t *testing.T) {
	dir := t.TempDir()
	modelFiles(t, dir)
	ids := func(text string) []uint32 { return append(exact(text), 7) }
	mux := http.NewServeMux()
	model, loads := "tiny:1b", 0
	mux.HandleFunc("/v1/models", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"data":[{"id":%q,"owned_by":"library"}]}`, model)
	})
	mux.HandleFunc("/api/ps", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"models":[{"name":"tiny:1b","context_length":2048}]}`)
	})
	mux.HandleFunc("/api/generate", func(w http.ResponseWriter, r *http.Request) {
		loads++
		var req struct{ Prompt string }
		json.NewDecoder(r.Body).Decode(&req)
		json.NewEncoder(w).Encode(map[string]any{"done": true, "context": ids(req.Prompt)})
	})
	engine := httptest.NewServer(mux)
	defer engine.Close()
	check := func(more ...string) (string, error) {
		var log bytes.Buffer
		err := run(t.Context(), append([]string{"-engine", engine.URL, "-model-dir", dir, "-check"}, more...), io.Discard, &log, nil)
		return log.String(), err
	}
	log, err := check("-tool-call-parser", "hermes")
	require.NoError(t, err)
	require.Contains(t, log, "kind=ollama")
	require.Contains(t, log, "window=2048")
	require.Contains(t, log, "omits markers of the family from its output")
	_, err = check("-tool-call-parser", "hermes", "-max-model-len", "4096")
	require.ErrorContains(t, err, "takes 2048 tokens")
	ids = func(string) []uint32 { return []uint32{1, 2} }
	_, err = check("-tool-call-parser", "hermes")
	require.ErrorContains(t, err, "differs from the tokenizer of the engine")
	ids = func(string) []uint32 { return nil }
	log, err = check("-tool-call-parser", "hermes")
	require.NoError(t, err)
	require.Contains(t, log, "its tokenizer cannot be compared")

	// It is not loaded again to be compared again.
	c := &config{Deployment: Deployment{ModelDir: dir, Engines: []engineConfig{{URL: engine.URL}}}}
	_, err = (&program{log: slog.New(slog.DiscardHandler)}).discover(t.Context(), c)
	require.NoError(t, err)
	again := c.checkAgain(c.Engines[0], mini.Load())
	loads = 0
	require.NoError(t, again(t.Context()))
	model = "other:1b"
	err = again(t.Context())
	require.ErrorIs(t, err, serve.ErrContradiction)
	require.ErrorContains(t, err, "serves other:1b, not tiny:1b")
	require.Zero(t, loads)
}

// A chat template that differs from the engine's is logged, with both sides.
func TestDiscoverTemplate(t *testing.T) {
	dir := t.TempDir()
	modelFiles(t, dir)
	for _, tt := range []struct{ thinks, owner, want string }{
		{"", "vllm", ""},
		{"so ", "vllm", `engine_prints="m_end|>\n<|im_start|>so assistant\n" gateway_prints="m_end|>\n<|im_start|>assistant\n"`},
		{"", "llamacpp", ""},
		{"so ", "llamacpp", "<|im_start|>so assistant"},
	} {
		e := &told{models: fmt.Sprintf(`{"data":[{"id":"tiny","owned_by":%q}]}`, tt.owner), tokenize: exact, thinks: tt.thinks}
		engine := httptest.NewServer(e)
		defer engine.Close()
		var log bytes.Buffer
		require.NoError(t, run(t.Context(), []string{"-engine", engine.URL, "-model-dir", dir, "-tool-call-parser", "hermes", "-check"}, io.Discard, &log, nil))
		if tt.want == "" {
			require.NotContains(t, log.String(), "chat template differs")
			continue
		}
		require.Contains(t, log.String(), "chat template differs")
		require.Contains(t, log.String(), tt.want)
	}
}

// What contradicts an engine is an error that says both sides and what to do.
func TestDiscoverErrors(t *testing.T) {
	t.Setenv("HF_HUB_CACHE", t.TempDir())
	dir := t.TempDir()
	modelFiles(t, dir)
	model := func(fields string) string { return `{"data":[{"id":"tiny",` + fields + `}]}` }
	vllm := fmt.Sprintf(`"owned_by":"vllm","root":%q,"max_model_len":4096`, dir)
	blocks := "vllm:cache_config_info{block_size=\"32\"} 1.0\n"
	for _, tt := range []struct {
		engine told
		args   string
		want   string
	}{
		{told{models: model(vllm)}, "-model other", "serves tiny, not other: set -model to a name that it serves, and -alias other for clients"},
		{told{models: model(`"owned_by":"vllm","parent":"base"`)}, "", "tiny is an adapter of base at the engine"},
		{told{models: model(vllm)}, "-max-model-len 5000", "takes 4096 tokens of prompt and output, -max-model-len is 5000"},
		{told{models: model(vllm), metrics: blocks}, "-block-size 16", "have 32 tokens, -block-size is 16"},
		{told{models: model(vllm), tokenize: func(string) []uint32 { return []uint32{1, 2} }}, "", "differs from the tokenizer of the engine"},
		{told{models: model(`"owned_by":"vllm","root":"org/other"`)}, "", "neither org/other nor"},
		{told{models: model(`"owned_by":"llamacpp"`)}, "", "neither tiny nor"},
		{told{models: model(`"owned_by":"someone"`)}, "", `is of an unknown kind ("someone"): if it has vLLM's /v1/completions, write -engine vllm=`},
		{told{}, "", "HTTP 404"},
		{told{models: model(`"owned_by":"llamacpp"`)}, "-model-dir mini -engine vllm=URL", "is llama.cpp, not vllm: write -engine llamacpp=http"},
		{told{models: model(`"owned_by":"llamacpp"`)}, "-model-dir mini -engine llamacpp=URL,events=tcp://127.0.0.1:1", "an engine of the kind llamacpp, which publishes none"},
		{told{models: model(vllm)}, "-engine other=URL", `engine kind "other"`},
	} {
		s := httptest.NewServer(&tt.engine)
		args := append(strings.Fields(strings.ReplaceAll(tt.args, "URL", s.URL)), "-listen", "127.0.0.1:0", "-tool-call-parser", "hermes")
		if !strings.Contains(tt.args, "-engine") {
			args = append(args, "-engine", s.URL)
		}
		err := run(t.Context(), args, &bytes.Buffer{}, io.Discard, nil)
		require.ErrorContains(t, err, tt.want)
		s.Close()
	}
}

// Two engines are asked: the window is the smaller one, and their blocks must be alike.
func TestDiscoverSeveral(t *testing.T) {
	dir := t.TempDir()
	modelFiles(t, dir)
	var urls []string
	for i, window := range []int{8192, 4096, 8192} {
		s := httptest.NewServer(&told{
			models:  fmt.Sprintf(`{"data":[{"id":"tiny","owned_by":"vllm","root":%q,"max_model_len":%d}]}`, dir, window),
			metrics: fmt.Sprintf("vllm:cache_config_info{block_size=\"%d\"} 1.0\n", []int{16, 16, 32}[i]),
			events:  `{"0":{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5557","replay_endpoint":"tcp://*:5657"}}`,
		})
		defer s.Close()
		urls = append(urls, s.URL)
	}
	p := &program{log: slog.New(slog.DiscardHandler)}
	c := &config{Deployment: Deployment{Engines: []engineConfig{{URL: urls[0]}, {Kind: "vllm", URL: urls[1]}, {Kind: "vllm", URL: "http://127.0.0.1:1"}}}}
	found, err := p.discover(t.Context(), c)
	require.NoError(t, err)
	require.Len(t, found, 2)
	require.Equal(t, &config{Deployment: Deployment{Model: "tiny", ModelDir: dir, MaxModelLen: 4096, BlockSize: 16, Engines: []engineConfig{
		{Kind: "vllm", URL: urls[0], Events: "tcp://127.0.0.1:5557", Replay: "tcp://127.0.0.1:5657", Asked: true},
		{Kind: "vllm", URL: urls[1], Asked: true}, // its events are configured, or not
		{Kind: "vllm", URL: "http://127.0.0.1:1", Asked: true, Silent: true},
	}}}, c)
	_, err = p.discover(t.Context(), &config{Deployment: Deployment{Engines: []engineConfig{{URL: urls[0]}, {URL: urls[2]}}}})
	require.ErrorContains(t, err, "have 32 tokens, the blocks of another engine 16")
}
