// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/tokenizers/mini"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve returns the address of an engine with the given responses.
func serve(t *testing.T, replies map[string]string) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reply, ok := replies[r.URL.Path]
		if !ok {
			w.WriteHeader(404)
		}
		fmt.Fprint(w, reply)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// The responses are those of vLLM 0.32.0 and llama.cpp, build 11434 (shortened), and of SGLang as documented.
func TestAsk(t *testing.T) {
	url := serve(t, map[string]string{
		"/v1/models": `{"object":"list","data":[{"id":"tiny","object":"model","created":1,"owned_by":"vllm","root":"/models/tiny","parent":null,"max_model_len":32768},` +
			`{"id":"sql","object":"model","owned_by":"vllm","root":"/adapters/sql","parent":"tiny"}]}`,
		"/version": `{"version":"0.32.0"}`,
		"/metrics": "# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{_block_size_resolved=\"True\",block_size=\"32\",engine=\"0\",kv_cache_size_tokens=\"32000\",num_cpu_blocks=\"None\",num_gpu_blocks=\"1100\",num_gpu_blocks_override=\"1100\"} 1.0\n" +
			"vllm:cache_config_info{_block_size_resolved=\"True\",block_size=\"32\",engine=\"1\",num_cpu_blocks=\"None\",num_gpu_blocks=\"1090\",num_gpu_blocks_override=\"None\"} 1.0\n",
		"/kv_event_sources": `{"1":{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5558","replay_endpoint":"tcp://*:5658","topic":"kv"},"0":{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://10.0.0.9:5557","replay_endpoint":null,"topic":""},"2":{"enable_kv_cache_events":false,"publisher":"null"}}`,
	})
	e, err := upstream.Ask(t.Context(), url+"/v1/", "")
	require.NoError(t, err)
	require.Equal(t, upstream.VLLM{}, e.Kind)
	require.Equal(t, "0.32.0", e.Version)
	require.Equal(t, []upstream.Model{{ID: "tiny", Root: "/models/tiny", Window: 32768}, {ID: "sql", Root: "/adapters/sql", Parent: "tiny"}}, e.Models)
	require.Equal(t, [2]int{32, 1000 + 1090}, [2]int{e.BlockSize, e.Blocks})
	require.Equal(t, []upstream.Source{{Rank: 0, Events: "tcp://10.0.0.9:5557"}, {Rank: 1, Events: "tcp://127.0.0.1:5558", Replay: "tcp://127.0.0.1:5658", Listens: true, Topic: "kv"}}, e.Events)

	e, err = upstream.Ask(t.Context(), serve(t, map[string]string{ // with --enable-scale-out
		"/v1/models": `{"data":[{"id":"tiny","owned_by":"vllm","max_model_len":32768}]}`,
		"/v1/completions/render": `[{"request_id":"cmpl-1","token_ids":[0],"features":null,"sampling_params":{"presence_penalty":0.0,"temperature":0.7,"top_k":20,"stop":[],"stop_token_ids":[],"output_kind":2},` +
			`"model":"tiny","reasoning_ended":null,"output_mode":"tokens","stream":false,"priority":0}]`,
	}), "")
	require.NoError(t, err)
	require.Equal(t, upstream.VLLMTokens{Defaults: `{"temperature":0.7,"top_k":20,"presence_penalty":0}`}, e.Kind)

	e, err = upstream.Ask(t.Context(), serve(t, map[string]string{
		"/v1/models":       `{"data":[{"id":"m","owned_by":"sglang","root":"m","max_model_len":4096}]}`,
		"/get_server_info": `{"version":"0.5.23","page_size":64,"max_total_num_tokens":130000}`,
	}), "")
	require.NoError(t, err)
	require.Equal(t, []any{upstream.SGLang{}, "0.5.23", 64, 2031}, []any{e.Kind, e.Version, e.BlockSize, e.Blocks})
	require.Empty(t, e.Events)
	for config, want := range map[string][]upstream.Source{
		`{"publisher":"zmq"}`: {{Rank: 0, Events: "tcp://127.0.0.1:5557", Listens: true}, {Rank: 1, Events: "tcp://127.0.0.1:5558", Listens: true}},
		`{"publisher":"zmq","endpoint":"tcp://10.0.0.9:7000","replay_endpoint":"tcp://*:8000","topic":"kv"}`: {
			{Rank: 0, Events: "tcp://10.0.0.9:7000", Replay: "tcp://127.0.0.1:8000", Topic: "kv"}, {Rank: 1, Events: "tcp://10.0.0.9:7001", Replay: "tcp://127.0.0.1:8001", Topic: "kv"},
		},
		`{"publisher":"null"}`: nil,
		`{`:                    nil,
	} {
		e, err = upstream.Ask(t.Context(), serve(t, map[string]string{
			"/v1/models":   `{"data":[{"id":"m","owned_by":"sglang"}]}`,
			"/server_info": fmt.Sprintf(`{"version":"0.5.23","page_size":64,"dp_size":2,"kv_events_config":%q}`, config),
		}), "")
		require.NoError(t, err)
		require.Equal(t, want, e.Events, config)
	}

	e, err = upstream.Ask(t.Context(), serve(t, map[string]string{ // written as its sources do
		"/v1/models": `{"object":"list","data":[{"id":"m","object":"model","created":1,"owned_by":"tensorrt_llm"}]}`,
		"/version":   `{"version":"1.3.0"}`,
	}), "")
	require.NoError(t, err)
	require.Equal(t, []any{upstream.TensorRTLLM{}, "1.3.0", []upstream.Model{{ID: "m"}}}, []any{e.Kind, e.Version, e.Models})

	e, err = upstream.Ask(t.Context(), serve(t, map[string]string{
		"/v1/models": `{"data":[{"id":"m","owned_by":"llamacpp","meta":{"n_ctx":8192,"n_ctx_train":8192}}]}`,
		"/props":     `{"default_generation_settings":{"params":{},"n_ctx":4096},"total_slots":2,"model_path":"/models/m.gguf","build_info":"b1-unknown"}`,
	}), "")
	require.NoError(t, err)
	require.Equal(t, []any{upstream.LlamaCPP{}, "b1-unknown", 2, []upstream.Model{{ID: "m", Root: "/models/m.gguf", Window: 4096}}}, []any{e.Kind, e.Version, e.Slots, e.Models})
}

// A vLLM without --enable-scale-out has 403 for the endpoints of token ids. It is no refusal of the key.
func TestAskForbidden(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" {
			w.WriteHeader(403)
			fmt.Fprint(w, `{"error":{"message":"Scale-out endpoints are disabled. Restart vllm serve with --enable-scale-out to enable them.","type":"Forbidden","param":null,"code":403}}`)
			return
		}
		fmt.Fprint(w, `{"data":[{"id":"tiny","owned_by":"vllm","max_model_len":32768}]}`)
	}))
	defer s.Close()
	e, err := upstream.Ask(t.Context(), s.URL, "key")
	require.NoError(t, err)
	require.Equal(t, upstream.VLLM{}, e.Kind)
}

// Ollama 0.30.0 responds so, at greater length.
func TestAskOllama(t *testing.T) {
	adds, loaded := "", 0
	mux := http.NewServeMux()
	reply := func(pattern, text string) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) })
	}
	reply("GET /v1/models", `{"object":"list","data":[{"id":"other:7b","object":"model","created":1,"owned_by":"library"},{"id":"smol:latest","object":"model","created":1,"owned_by":"library"}]}`)
	reply("GET /api/version", `{"version":"0.30.0"}`)
	mux.HandleFunc("GET /api/ps", func(w http.ResponseWriter, _ *http.Request) {
		if loaded > 0 {
			fmt.Fprint(w, `{"models":[{"name":"smol:latest","model":"smol:latest","expires_at":"2026-11-23T19:53:59Z","size_vram":0,"context_length":4096}]}`)
		}
	})
	mux.HandleFunc("POST /api/show", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"template":"x","model_info":{"general.architecture":"llama",%s"tokenizer.ggml.bos_token_id":1,"tokenizer.ggml.model":"gpt2","tokenizer.ggml.tokens":["<unk>","<s>","</s>"]}}`, adds)
	})
	mux.HandleFunc("POST /api/generate", func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Model, Prompt, Template string }
		json.NewDecoder(r.Body).Decode(&body)
		switch {
		case body.Model != "smol:latest":
			w.WriteHeader(404)
			fmt.Fprint(w, `{"error":"model 'nope' not found"}`)
		case body.Prompt == "":
			loaded++
			fmt.Fprint(w, `{"model":"smol:latest","response":"","done":true,"done_reason":"load"}`)
		case body.Template == "{{ .Prompt }}":
			fmt.Fprint(w, `{"model":"smol:latest","response":" I","done":true,"done_reason":"length","context":[4093,198,339],"prompt_eval_count":7,"eval_count":1}`)
		}
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	for fields, want := range map[string]upstream.Kind{
		`"tokenizer.ggml.add_bos_token":true,`:  upstream.Ollama{BOS: "<s>"},
		`"tokenizer.ggml.add_bos_token":false,`: upstream.Ollama{},
		``:                                      upstream.Ollama{},
	} {
		adds, loaded = fields, 0
		e, err := upstream.Ask(t.Context(), s.URL, "")
		require.NoError(t, err)
		require.Equal(t, upstream.Ollama{}, e.Kind)
		require.NoError(t, e.Load(t.Context(), "nope"))
		require.NoError(t, e.Load(t.Context(), "smol:latest"))
		require.Equal(t, 1, loaded)
		require.Equal(t, []any{want, "0.30.0", []upstream.Model{{ID: "other:7b"}, {ID: "smol:latest", Window: 4096}}}, []any{e.Kind, e.Version, e.Models})
		ids, err := e.Tokenize(t.Context(), "smol:latest", "x")
		require.NoError(t, err)
		require.Equal(t, []uint32{4093, 198, 339}, ids)
	}
}

// The embedded engine tells the same.
func TestAskEmbedded(t *testing.T) {
	engine := vllm.New(mini.Load(), &vllm.Options{Model: "m", MaxModelLen: 4096, BlockSize: 64})
	defer engine.Close()
	s := httptest.NewServer(engine)
	defer s.Close()
	e, err := upstream.Ask(t.Context(), s.URL, "")
	require.NoError(t, err)
	require.Equal(t, []any{upstream.Embedded{}, "embedded", []upstream.Model{{ID: "m", Root: "m", Window: 4096}}, 64}, []any{e.Kind, e.Version, e.Models, e.BlockSize})
	ids, err := e.Tokenize(t.Context(), "m", "Hello, world!")
	require.NoError(t, err)
	require.Equal(t, mini.Load().AppendEncode(nil, "Hello, world!"), ids)
}

func TestAskErrors(t *testing.T) {
	for reply, want := range map[string]string{
		`{"data":[]}`: "serves no model",
		`hello`:       "invalid character",
	} {
		_, err := upstream.Ask(t.Context(), serve(t, map[string]string{"/v1/models": reply}), "")
		require.ErrorContains(t, err, want)
	}
	_, err := upstream.Ask(t.Context(), "http://127.0.0.1:1", "")
	require.ErrorContains(t, err, "http://127.0.0.1:1/v1/models: dial tcp 127.0.0.1:1")

	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, `{"data":[{"id":"m","owned_by":"vllm"}]}`)
	}))
	defer broken.Close()
	_, err = upstream.Ask(t.Context(), broken.URL, "")
	require.ErrorContains(t, err, "/version: EOF", "the block size would be unknown")

	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer k" {
			w.WriteHeader(401)
			fmt.Fprint(w, `{"error":{"message":"no such key"}}`)
			return
		}
		if !strings.HasSuffix(r.URL.Path, "/models") {
			w.WriteHeader(404)
		}
		fmt.Fprint(w, `{"data":[{"id":"m"}]}`)
	}))
	defer s.Close()
	_, err = upstream.Ask(t.Context(), s.URL, "")
	require.ErrorContains(t, err, "HTTP 401")
	require.ErrorContains(t, err, "no such key")
	locked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" { // llama.cpp tells its models to everyone
			w.WriteHeader(401)
			fmt.Fprint(w, `{"error":{"message":"Invalid API Key","type":"authentication_error","code":401}}`)
			return
		}
		fmt.Fprint(w, `{"data":[{"id":"m","owned_by":"llamacpp"}]}`)
	}))
	defer locked.Close()
	_, err = upstream.Ask(t.Context(), locked.URL, "k")
	require.ErrorContains(t, err, "/props: the engine does not accept the key")

	e, err := upstream.Ask(t.Context(), s.URL, "k")
	require.NoError(t, err)
	require.Nil(t, e.Kind)
	_, err = e.Tokenize(t.Context(), "m", "x")
	require.ErrorIs(t, err, errors.ErrUnsupported)
}
