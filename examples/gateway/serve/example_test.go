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
	"github.com/weft-go/weft/tokenizers/prompt"
)

// A gateway in front of an embedded engine that generates a call.
func Example() {
	tok := mini.Load()
	engine := vllm.New(tok, &vllm.Options{Model: "m", Script: func(vllm.Prompt) vllm.Reply {
		return vllm.Reply{Text: "<tool_call>\n{\"name\": \"ls\", \"arguments\": {\"path\": \".\"}}\n</tool_call>"}
	}})
	defer engine.Close()
	upstream := httptest.NewServer(engine)
	defer upstream.Close()

	prompts, err := prompt.New(nil, &prompt.Options{Tokenizer: tok, Family: "hermes"})
	if err != nil {
		fmt.Println(err)
		return
	}
	gateway, err := serve.New(&serve.Options{
		Model: "m", Prompts: prompts,
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
		`{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"What is here?"}],"tools":[{"name":"ls","input_schema":{"type":"object"}}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body) // after an error the body is incomplete
	fmt.Println(strings.Contains(string(body), `"stop_reason":"tool_use"`))
	http.DefaultClient.CloseIdleConnections()
	// Output:
	// run ls {"path": "."}
	// true
}
