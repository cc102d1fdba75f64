// SPDX-License-Identifier: Apache-2.0

package protocols_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/intent"
	"github.com/weft-go/weft/protocols/messages"
	"github.com/weft-go/weft/protocols/preamble"
	"github.com/weft-go/weft/protocols/replay"
	"github.com/weft-go/weft/protocols/sse"
	"github.com/weft-go/weft/protocols/wire"
)

func Example() {
	r, err := messages.Decode([]byte(`{"model":"m", "max_tokens":9, "messages":[ {"role":"user", "content":"Hi"} ]}`), nil)
	if err != nil {
		panic(err) // *block.Error: the problem and its position
	}
	hi := r.Turns()[0].Blocks[0]
	_ = r.SetText(hi.At, hi.Text+" there")
	same, _ := r.AppendBody(nil)
	other, losses, _ := chat.AppendRequest(nil, r, nil)
	fmt.Printf("%s\n%s %v\n", same, other, losses)
	// Output:
	// {"model":"m", "max_tokens":9, "messages":[ {"role":"user", "content":"Hi there"} ]}
	// {"model":"m","max_completion_tokens":9,"messages":[{"role":"user","content":"Hi there"}]} []
}

// Example_serve serves an engine with the Chat API as the Messages API.
func Example_serve() {
	r, err := wire.Messages.Decode([]byte(`{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"Hi"}]}`), nil)
	if err != nil {
		panic(err)
	}
	upstream := strings.NewReader(`data: {"id":"c1","choices":[{"index":0,"delta":{"role":"assistant","reasoning":"Hm."}}]}

data: {"choices":[{"index":0,"delta":{"content":"Hello."},"finish_reason":"stop"}]}

data: [DONE]

`)
	out := wire.Messages.NewEncoder(r, &wire.Options{ID: "msg_1"}) // a stream or a whole response, as requested
	var client bytes.Buffer
	for ev, err := range wire.Chat.Events(upstream, nil) {
		if err != nil {
			panic(err)
		}
		client.Write(out.Append(nil, ev))
	}
	client.Write(out.Finish(nil))

	var sent sse.Reader
	for ev, err := range sent.Events(&client) {
		if err == nil && string(ev.Type) == "content_block_delta" {
			fmt.Printf("%s\n", ev.Data)
		}
	}
	// Output:
	// {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm."}}
	// {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"weft3.u.3.ZRfxMg"}}
	// {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hello."}}
}

// Example_agents prepares a coding agent's request for an engine.
func Example_agents() {
	header := http.Header{"X-Claude-Code-Session-Id": {"s1"}}
	req, err := wire.Messages.Decode([]byte(`{"model":"m","max_tokens":9,"service_tier":"auto",`+
		`"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1.330.1ad; cch=97bd6;"},{"type":"text","text":"You are an agent."}],`+
		`"messages":[{"role":"user","content":"Hi"}]}`), nil)
	if err != nil {
		panic(err)
	}
	var (
		policy  intent.Policy    // one per tenant
		history preamble.History // one per session
		signer  *replay.Signer   // of replay.NewSigner; nil creates unsigned tokens
		family  = replay.MustRule("since_user; off: none")
	)
	engine, err := intent.NewTarget("vllm", "", "session field")
	if err != nil {
		panic(err)
	}

	in, faults := intent.Read(intent.Source{API: "messages", Header: header, Field: req.Field}) // hints, in any dialect
	in, limited := policy.Clamp("acme", in)                                                     // what this tenant may use
	report, err := preamble.Stabilize(req, nil)                                                 // keeps the start of the prompt stable
	if err != nil {
		panic(err)
	}
	checks, err := wire.CheckReasoning(req, signer) // drops forged reasoning
	if err != nil {
		panic(err)
	}
	plan := replay.NewPlan(replay.Model{Family: family}, replay.ParsePreference(req.Field, nil)) // which past reasoning to include
	why := history.Next(req, nil)                                                                // where this prompt diverges from the previous one
	out := engine.Emit(&in)                                                                      // the hints that the engine supports
	body, err := out.AppendBody(nil, []byte(`{"prompt":[1,2,3]}`))

	fmt.Println(len(faults), len(limited), len(checks), report.Bytes(), why.Relation, plan.Rule)
	fmt.Println(string(body), err)
	// Output:
	// 0 0 0 62 extends since_user; off: none
	// {"prompt":[1,2,3],"session_id":"s1"} <nil>
}
