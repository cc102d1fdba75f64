// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/tokenizers/mini"
)

// A gateway in front of one embedded engine, which calls a tool.
func Example() {
	tok := mini.Load()
	engine := vllm.New(tok, &vllm.Options{Model: "m", Script: func(vllm.Prompt) vllm.Reply {
		return vllm.Reply{Text: "<tool_call>\n{\"name\": \"ls\", \"arguments\": {\"path\": \".\"}}\n</tool_call>"}
	}})
	defer engine.Close()
	upstream := httptest.NewServer(engine)
	defer upstream.Close()

	gateway, err := serve.New(&serve.Options{
		Model: "m", Tokenizer: tok, ToolParser: "hermes",
		Engines:    []serve.Engine{{Name: "a", URL: upstream.URL, Events: engine.Events}},
		OnToolCall: func(_ context.Context, c serve.ToolCall) { fmt.Println("run", c.Name, c.Arguments) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer gateway.Close()
	front := httptest.NewServer(gateway)
	defer front.Close()

	resp, err := http.Post(front.URL+"/v1/messages", "application/json", strings.NewReader(
		`{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"What is here?"}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body) // an error shows as a short answer
	fmt.Println(strings.Contains(string(body), `"stop_reason":"tool_use"`))
	http.DefaultClient.CloseIdleConnections()
	// Output:
	// run ls {"path": "."}
	// true
}
