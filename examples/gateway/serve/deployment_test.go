// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/catalog"
)

// TestModelsOfTheirOwn checks that each model has its own engines, template, window and parser, that names that are not
// listed go to the first one, and that one model without an engine leaves the others.
func TestModelsOfTheirOwn(t *testing.T) {
	big := vllm.New(tok(), &vllm.Options{Model: "org/big", Speed: math.Inf(1), Script: func(p vllm.Prompt) vllm.Reply {
		return vllm.Reply{Text: "from " + p.Model + "<tool_call>\n<function=read>\n<parameter=path>\na.go\n</parameter>\n</function>\n</tool_call>"}
	}})
	engine := httptest.NewServer(big)
	defer func() { big.Close(); engine.Close() }()
	var mu sync.Mutex
	var refused []string
	r := start(t, 1, func(p vllm.Prompt) vllm.Reply { return vllm.Reply{Text: "from " + p.Model} }, func(o *serve.Options) {
		o.AnyModel = true
		o.Models = []catalog.Model{{ID: "m", ContextWindow: 2000}}
		o.More = []serve.Model{
			{Name: "org/big", Aliases: []string{"large"}, Records: []catalog.Model{{ID: "org/big", ContextWindow: 9000}}, Prompts: prompts(t, nil, "qwen3_coder"),
				Engines: []serve.Engine{{Name: "far", URL: engine.URL, Events: big.Events}}, BlockSize: 32},
			{Name: "gone", Prompts: hermesModel(), Engines: []serve.Engine{{URL: "http://127.0.0.1:1"}}},
		}
		o.OnRefuse = func(model, api string, err *apierr.Error) {
			mu.Lock()
			defer mu.Unlock()
			refused = append(refused, model+" "+api)
		}
	})
	for _, a := range apiCases {
		for name, want := range map[string]gathered{
			"m": {Text: "from m"}, "gpt-5": {Text: "from m"},
			"org/big": {Text: "from org/big", Calls: []string{`read({"path": "a.go"})`}}, "large": {Text: "from org/big", Calls: []string{`read({"path": "a.go"})`}},
		} {
			body := a.body("go", true)
			body["model"] = name
			status, _, text := send(t, r.url+a.path, body)
			require.Equal(t, 200, status, text)
			got := a.gather(t, text)
			require.Equal(t, want.Text, got.Text)
			require.Equal(t, len(want.Calls), len(got.Calls), text)
			require.Contains(t, text, `"model":"`+name+`"`)
		}
		long := a.body(strings.Repeat("one two three ", 800), true)
		long["model"] = "large"
		status, _, text := send(t, r.url+a.path, long)
		require.Equal(t, 200, status, text)
		long["model"] = "m"
		status, _, text = send(t, r.url+a.path, long)
		require.Equal(t, 400, status, text)
		require.Contains(t, text, "2000")
		gone := a.body("go", false)
		gone["model"] = "gone"
		status, _, text = send(t, r.url+a.path, gone)
		require.GreaterOrEqual(t, status, 500, text)
	}
	recs := r.done(t, 18)
	count := map[string]int{}
	for _, rec := range recs {
		count[rec.Model+" "+rec.Worker]++
	}
	require.Equal(t, map[string]int{"m e0": 6, "org/big far": 9, "gone http://127.0.0.1:1": 3}, count)
	require.Equal(t, []string{"m chat", "m responses", "m messages"}, refused)

	_, list := get(t, r.url+"/v1/models")
	for _, name := range []string{`"m"`, `"org/big"`, `"large"`, `"gone"`} {
		require.Contains(t, list, `"id":`+name)
	}
	status, _, text := send(t, r.url+"/v1/tokenize", `{"model":"org/big","prompt":"hello"}`)
	require.Equal(t, 200, status, text)
	require.Contains(t, text, `"max_model_len":9000`)
	status, _, text = send(t, r.url+"/v1/detokenize", `{"model":"large","tokens":[1,2]}`)
	require.Equal(t, 200, status, text)
	ready, _ := get(t, r.url+"/ready")
	require.Equal(t, 200, ready.StatusCode, "other models can serve")

	var workers []string
	for _, w := range r.gateway.Status("").Workers {
		workers = append(workers, fmt.Sprint(w.Name, " ", w.Ejected))
	}
	require.Equal(t, []string{"e0 false", "far false", "http://127.0.0.1:1 true"}, workers)
	require.Len(t, r.gateway.Status("org/big").Workers, 1)
	require.Empty(t, r.gateway.Status("nobody").Workers)
}

// TestAdapters checks that an adapter is served as a model, only by the engines that have it, and never with the cache of
// the model.
func TestAdapters(t *testing.T) {
	r := start(t, 3, func(p vllm.Prompt) vllm.Reply { return vllm.Reply{Text: "from " + p.Model} }, func(o *serve.Options) {
		o.Engines[1].Adapters, o.Engines[2].Adapters = []string{"sql", "law"}, []string{"law"}
		o.Models = []catalog.Model{{ID: "law", DisplayName: "Law"}}
	})
	ask := func(a apiCase, name, text string) string {
		body := a.body(text, true)
		body["model"] = name
		status, _, out := send(t, r.url+a.path, body)
		require.Equal(t, 200, status, out)
		require.Contains(t, out, `"model":"`+name+`"`)
		require.Equal(t, "from "+name, a.gather(t, out).Text)
		return name
	}
	workers := map[string]map[string]bool{"": {}, "sql": {}, "law": {}}
	for i := range 8 {
		for _, a := range apiCases {
			for name := range workers {
				ask(a, cmp.Or(name, "m"), fmt.Sprint("new ", i))
			}
		}
	}
	for _, rec := range r.done(t, 72) {
		require.Equal(t, "m", rec.Model)
		workers[rec.Adapter][rec.Worker] = true
	}
	require.Equal(t, map[string]bool{"e1": true}, workers["sql"])
	require.NotContains(t, workers["law"], "e0")
	_, list := get(t, r.url+"/v1/models")
	require.Contains(t, list, `"id":"sql"`)

	long := strings.Repeat("one two three ", 200)
	for i, name := range []string{"sql", "sql", "law"} {
		ask(apiCases[0], name, long)
		cached := r.done(t, 73+i)[72+i].Decision.CachedEstimate
		require.Equal(t, i == 1, cached > 500, "request %d, of %s: %d", i, name, cached)
	}
}

func TestInvalidMore(t *testing.T) {
	for want, m := range map[string]serve.Model{
		"serve: no model name": {Prompts: hermesModel(), Engines: []serve.Engine{{URL: "http://h"}}},
		"serve: no engine":     {Name: "b", Prompts: hermesModel()},
		"serve: Prompts must have a tokenizer and a family":                                    {Name: "b", Engines: []serve.Engine{{URL: "http://h"}}},
		`serve: catalog: model "m": id: duplicate`:                                             {Name: "m", Prompts: hermesModel(), Engines: []serve.Engine{{URL: "http://h"}}},
		`serve: engine "": invalid URL "h": want http:// or https://`:                          {Name: "b", Prompts: hermesModel(), Engines: []serve.Engine{{URL: "h"}}},
		`serve: catalog: model "b": context_window: exceeds the limit of 9 tokens per request`: {Name: "b", Prompts: hermesModel(), Engines: []serve.Engine{{URL: "http://h"}}, MaxModelLen: 9, Records: []catalog.Model{{ID: "b", ContextWindow: 10}}},
	} {
		_, err := serve.New(&serve.Options{Model: "m", Prompts: hermesModel(), Engines: []serve.Engine{{URL: "http://h"}}, More: []serve.Model{m}})
		require.EqualError(t, err, want)
	}
}

// TestEngineBlocks checks that an engine without events is not expected to hold more blocks than fit on it.
func TestEngineBlocks(t *testing.T) {
	for blocks, want := range map[int]int{0: 12, 5: 5} {
		var last serve.Record
		g := stubbed(t, 1, hello(), func(o *serve.Options) {
			o.Engines[0].Blocks, o.BlockSize, o.OnDone = blocks, 16, func(r serve.Record) { last = r }
		})
		defer g.Close()
		body := `{"model":"m","prompt":"` + strings.Repeat("a b c d ", 50) + `"}`
		for range 2 {
			w := httptest.NewRecorder()
			g.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/completions", strings.NewReader(body)))
			require.Equal(t, http.StatusOK, w.Code, w.Body.String())
		}
		require.Equal(t, want, last.Decision.CachedEstimate/16)
		require.EqualValues(t, 201, last.Usage.Prompt)
	}
	_, err := serve.New(&serve.Options{Model: "m", Prompts: hermesModel(), Engines: []serve.Engine{{URL: "http://e", Blocks: -1}}})
	require.ErrorContains(t, err, "Blocks must not be negative")
}
