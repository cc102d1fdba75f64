// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/weft-go/weft/protocols/catalog"
)

func ExampleAppendList() {
	list := []catalog.Model{{ID: "qwen/qwen3", Created: 1700000000, OwnedBy: "qwen"}}
	fmt.Println(string(catalog.AppendList(nil, list, catalog.OpenAI)))
	fmt.Println(string(catalog.AppendList(nil, list, catalog.Anthropic)))
	// Output:
	// {"object":"list","data":[{"id":"qwen/qwen3","object":"model","created":1700000000,"owned_by":"qwen"}]}
	// {"data":[{"type":"model","id":"qwen/qwen3","display_name":"qwen/qwen3","created_at":"2023-11-14T22:13:20Z","lifecycle":"active"}],"has_more":false,"first_id":"qwen/qwen3","last_id":"qwen/qwen3"}
}

func ExampleNew() {
	c, err := catalog.New(
		catalog.Model{ID: "qwen/qwen3", ContextWindow: 131072, ParallelCalls: new(true), Truncation: catalog.Truncation{Mode: "tokens", Limit: 10000}},
		catalog.Model{ID: "claude-qwen3", AliasOf: "qwen/qwen3", DisplayName: "Qwen 3"}, // Claude Code's menu lists only IDs that start with claude or anthropic
	)
	if err != nil {
		panic(err)
	}
	m, _ := c.Lookup("claude-qwen3")
	fmt.Println(m.ID, m.ServedBy(), m.ContextWindow)
	fmt.Println(string(catalog.AppendModel(nil, m, catalog.Anthropic)))
	// Output:
	// claude-qwen3 qwen/qwen3 131072
	// {"type":"model","id":"claude-qwen3","display_name":"Qwen 3","created_at":"1970-01-01T00:00:00Z","lifecycle":"active","max_input_tokens":131072}
}

func ExampleAppendPage() {
	query, _ := url.ParseQuery("limit=1&after_id=a")
	body, _ := catalog.AppendPage(nil, []catalog.Model{{ID: "a"}, {ID: "b"}, {ID: "c"}}, query.Get)
	fmt.Println(string(body))
	// Output: {"data":[{"type":"model","id":"b","display_name":"b","created_at":"1970-01-01T00:00:00Z","lifecycle":"active"}],"has_more":true,"first_id":"b","last_id":"b"}
}

func ExamplePathID() {
	id, ok := catalog.PathID("/v1/models/org/name")
	fmt.Println(id, ok)
	// Output: org/name true
}

func ExampleParseList() {
	list, err := catalog.ParseList([]byte(`{"object":"list","data":[{"id":"qwen3","object":"model","max_model_len":40960,"root":"/models/qwen3"}]}`)) // from vLLM
	if err != nil {
		panic(err)
	}
	one, err := catalog.ParseModel([]byte(`{"type":"model","id":"claude-m","display_name":"M","max_tokens":8192}`))
	if err != nil {
		panic(err)
	}
	fmt.Println(list[0].ID, list[0].ContextWindow, one.DisplayName, one.MaxOutputTokens)
	// Output: qwen3 40960 M 8192
}

func ExampleDetectStyle() {
	r, err := http.NewRequest("GET", "/v1/models?client_version=0.169.0", nil) // from Codex
	if err != nil {
		panic(err)
	}
	fmt.Println(catalog.DetectStyle(r.Header.Get, r.URL.Query().Get) == catalog.Codex)
	// Output: true
}
