// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"fmt"
	"slices"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/messages"
)

// An agent builds a conversation turn by turn; it can be sent to any API.
func ExampleNewRequest() {
	conv := block.NewRequest(block.NewTurn(block.RoleSystem, "Be brief."), block.NewTurn(block.RoleUser, "Weather in Oslo?"))
	must(conv.SetParams(block.Params{Model: "m"}))
	must(conv.SetTools(block.Tool{
		Name:        "weather",
		Description: "Current weather of a city",
		Schema:      []byte(`{"type":"object","properties":{"city":{"type":"string"}}}`),
	}))

	// The assistant's turn: the output of the model.
	must(conv.Append(block.Turn{Role: block.RoleAssistant, Blocks: []block.Block{
		{Kind: block.Reasoning, Text: "Ask the tool."},
		{Kind: block.ToolCall, CallID: "call_1", Name: "weather", Args: `{"city":"Oslo"}`},
	}}))
	must(conv.Append(block.Turn{Role: block.RoleTool, Blocks: []block.Block{block.NewResult("call_1", "4 °C, rain")}}))
	must(conv.Append(block.NewTurn(block.RoleAssistant, "Rain, 4 °C.")))

	body, losses, err := chat.AppendRequest(nil, conv, nil)
	must(err)
	fmt.Printf("%s\n%d losses\n", body, len(losses))
	// Output:
	// {"model":"m","tools":[{"type":"function","function":{"name":"weather","description":"Current weather of a city","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}],"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Weather in Oslo?"},{"role":"assistant","content":null,"reasoning_content":"Ask the tool.","tool_calls":[{"id":"call_1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Oslo\"}"}}]},{"role":"tool","tool_call_id":"call_1","content":"4 °C, rain"},{"role":"assistant","content":"Rain, 4 °C."}]}
	// 0 losses
}

// Edits change only their own span of the body.
func ExampleRequest_SetText() {
	req, err := messages.Decode([]byte(`{"max_tokens":9, "messages":[ {"role":"user", "content":"Hi"} ]}`), nil)
	must(err)
	must(req.SetText(req.Turns()[0].Blocks[0].At, "Hello"))
	body, err := req.AppendBody(nil)
	must(err)
	fmt.Printf("%s\n", body)
	// Output: {"max_tokens":9, "messages":[ {"role":"user", "content":"Hello"} ]}
}

// Edits of all kinds are recorded as changes of the body and written at once.
func ExampleRequest_Insert() {
	req, err := messages.Decode([]byte(`{"max_tokens":9, "note":1, "messages":[
  {"role":"user", "content":[{"type":"text", "text":"Hi"}]},
  {"role":"assistant", "content":"Yes?"}]}`), nil)
	must(err)
	must(req.Delete(req.Turns()[1].At))
	must(req.Insert(req.Turns()[0].Blocks[0].At, block.Block{Kind: block.Text, Text: "Today is Monday."}))
	must(req.SetTools(slices.Insert(req.Tools(), 0, block.Tool{Name: "clock", Schema: []byte(`{"type":"object"}`)})...))
	body, err := req.AppendBody(nil)
	must(err)
	fmt.Printf("%s\n", body)
	// Output:
	// {"max_tokens":9, "note":1, "messages":[
	//   {"role":"user", "content":[{"type":"text","text":"Today is Monday."},{"type":"text", "text":"Hi"}]}],"tools":[{"name":"clock","input_schema":{"type":"object"}}]}
}

// Field reads fields by name that have no Go field, from the request down to a block.
func ExampleBlock_Field() {
	req, err := messages.Decode([]byte(`{"max_tokens":9, "speed":"fast",
		"tools":[{"name":"f", "input_schema":{}, "input_examples":[{"a":1}]}],
		"messages":[{"role":"assistant", "content":[{"type":"text", "text":"Hi", "citations":[]}]}]}`), nil)
	must(err)
	turn, tool := req.Turns()[0], req.Tools()[0]
	fmt.Printf("%s %s %s %s\n", req.Field("speed"), tool.Field("input_examples"), turn.Field("role"), turn.Blocks[0].Field("citations"))
	// Output: "fast" [{"a":1}] "assistant" []
}

// Two requests are equal if they have the same parameters, turns and tools, regardless of their APIs.
func ExampleRequest_Equal() {
	a, err := messages.Decode([]byte(`{"model":"m", "max_tokens":9, "messages":[{"role":"user", "content":"Hi"}]}`), nil)
	must(err)
	b, err := chat.Decode([]byte(`{"messages":[{"role":"user", "content":[{"type":"text", "text":"Hi"}]}], "max_tokens":9, "model":"m"}`), nil)
	must(err)
	fmt.Println(a.Equal(b))
	// Output: true
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
