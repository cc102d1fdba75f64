// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/messages"
	"github.com/weft-go/weft/protocols/replay"
	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/tokenizers/mini"
	"github.com/weft-go/weft/tokenizers/prompt"
	"github.com/weft-go/weft/tokenizers/template"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Serve a request of the Chat Completions API with a small tokenizer and an engine that always generates the same tokens.
func Example() {
	body := []byte(`{"model":"m","messages":[{"role":"user","content":"Weather in Oslo?"}],"stop":["!"]}`)
	m, err := prompt.Load(mini.FS(), &prompt.Options{Family: "hermes"}) // or os.DirFS("models/Qwen3-8B"), nil
	if err != nil {
		panic(err)
	}
	generate := func(ids []uint32, limit int) []uint32 { // your engine
		return m.Tokenizer().AppendEncode(nil, "It rains! And")
	}

	req, err := wire.Chat.Decode(body, nil) // or wire.Responses, wire.Messages
	if err != nil {
		panic(err)
	}
	p, err := m.Render(req, time.Now()) // text, segments, token ids, losses
	if err != nil {
		panic(err)
	}
	dec, err := m.NewDecoder(req, p, nil) // applies the tools, stops and limits of the request
	if err != nil {
		panic(err)
	}
	enc := wire.Chat.NewEncoder(req, &wire.Options{ID: "chatcmpl-1", Now: func() time.Time { return time.Unix(0, 0) }})
	var out []byte // a stream if the request has "stream":true, or one JSON document
	for _, id := range generate(p.IDs(), dec.Limit()) {
		out = enc.Append(out, dec.AppendTokens(nil, id)...)
	}
	out = enc.Finish(out, dec.Finish(nil)...)
	fmt.Println(string(out))
	// Output:
	// {"id":"chatcmpl-1","object":"chat.completion","created":0,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"It rains","refusal":null},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":16,"completion_tokens":6,"total_tokens":22,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}
}

// Load a model. The file system is normally os.DirFS of a downloaded model's directory; this one only has a small
// tokenizer.
func ExampleLoad() {
	m, err := prompt.Load(mini.FS(), &prompt.Options{Name: "Qwen/Qwen3-8B", Window: 40960})
	if err != nil {
		panic(err)
	}
	fmt.Println("template:", m.Source())
	fmt.Println("family:", m.Family())
	caps := m.Capabilities()
	fmt.Println("prints tools:", caps.Has("tools"))
	fmt.Printf("ends at: %s\n", m.Tokenizer().AppendDecode(nil, m.StopTokens(), false))
	// Output:
	// template: ChatML
	// family: qwen3
	// prints tools: true
	// ends at: <|endoftext|><|im_end|>
}

// Create a model with a custom family and an operator's rule that drops past reasoning.
func ExampleNew() {
	g := *must(parsers.Default().Lookup("hermes"))
	g.Name = "mine"
	m := must(prompt.New(must(template.Lookup("chatml", nil)), &prompt.Options{
		Parsers: must(parsers.Default().Extend(&g)), Family: "mine", Replay: replay.MustRule("none"),
	}))
	req := block.NewRequest(block.NewTurn(block.RoleUser, "Hi"), block.Turn{Role: block.RoleAssistant, Blocks: []block.Block{
		{Kind: block.Reasoning, Text: "A greeting."}, {Kind: block.Text, Text: "Hello!"},
	}}, block.NewTurn(block.RoleUser, "Bye"))
	p := must(m.Render(req, time.Now()))
	fmt.Printf("%q\n", p.Text)
	fmt.Println(p.Outcomes, p.Replay.Thinking)
	// Output:
	// "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello!<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n"
	// [none dropped none] true
}

// Render the requests of conversations that grow. The second prompt costs only what is new in it.
func ExampleMemo() {
	m := must(prompt.Load(mini.FS(), nil))
	memo := prompt.NewMemo(512 << 20) // bytes, for all conversations

	serve := func(tenant, session string, body []byte) (*prompt.Prompt, error) {
		turn := memo.Turn(tenant, "", session)
		req, err := turn.Decode(wire.Chat, body, nil) // as wire.Chat.Decode
		if err != nil {
			return nil, err
		}
		return turn.Render(m, req, time.Now()) // as m.Render
	}
	first := must(serve("acme", "s1", []byte(`{"model":"m","messages":[{"role":"user","content":"Hi"}]}`)))
	second := must(serve("acme", "s1", []byte(`{"model":"m","messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello!"},{"role":"user","content":"Bye"}]}`)))
	fmt.Println(strings.HasPrefix(second.Text, first.Text))
	n, _ := memo.Len()
	fmt.Println(n, "conversation")
	// Output:
	// true
	// 1 conversation
}

// Convert the cache breakpoints of a request to numbers of tokens in its prompt.
func ExampleModel_Render() {
	m := must(prompt.Load(mini.FS(), nil))
	req := must(messages.Decode([]byte(`{"model":"m","max_tokens":9,"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],`+
		`"messages":[{"role":"user","content":"Tell me about blocks."},{"role":"assistant","content":"They have 4 tokens."},`+
		`{"role":"user","content":[{"type":"text","text":"Why?","cache_control":{"type":"ephemeral","ttl":"1h"}}]}]}`), nil))
	p := must(m.Render(req, time.Now()))
	fmt.Println(len(p.Text), "bytes,", len(p.IDs()), "tokens")
	marks, _ := p.Breakpoints(req)
	for i, b := range p.Tokens(m.Tokenizer(), marks, p.IDs(), p.Cuts()...) {
		fmt.Printf("%s: %d tokens for %v: %q\n", marks[i].Path, b.Tokens, b.TTL, p.Text[:marks[i].Byte])
	}
	// Output:
	// 194 bytes, 47 tokens
	// system[0]: 10 tokens for 5m0s: "<|im_start|>system\nBe brief."
	// messages[2].content[0]: 42 tokens for 1h0m0s: "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nTell me about blocks.<|im_end|>\n<|im_start|>assistant\nThey have 4 tokens.<|im_end|>\n<|im_start|>user\nWhy?"
}

// Decode a model's output from text. For token ids, use AppendTokens.
func ExampleModel_NewDecoder() {
	m := must(prompt.Load(mini.FS(), &prompt.Options{Family: "hermes"}))
	req := block.NewRequest(block.NewTurn(block.RoleUser, "Weather in Oslo?"))
	if err := req.SetTools(block.Tool{Name: "weather", Schema: []byte(`{"type":"object"}`)}); err != nil {
		panic(err)
	}
	p := must(m.Render(req, time.Now()))
	dec := must(m.NewDecoder(req, p, &prompt.DecoderOptions{ID: "1"}))
	for _, chunk := range []string{"Let me look.\n<tool_", "call>\n{\"name\": \"weather\", \"arguments\": {\"city\":", " \"Oslo\"}}\n</tool_call>"} {
		for _, ev := range dec.Append(nil, chunk) {
			fmt.Println(ev)
		}
	}
	for _, ev := range dec.Finish(nil) {
		fmt.Println(ev)
	}
	// Output:
	// start
	// text "Let me look."
	// tool_start call=0 "weather" id="call_1_0"
	// tool_args call=0 "{\"city\":"
	// tool_args call=0 " \"Oslo\"}"
	// tool_end call=0
	// usage
	// finish "" why=tool_calls
}

// A server of the Completions API continues token ids, without a template and without a parser.
func ExampleModel_Raw() {
	m, err := prompt.New(nil, &prompt.Options{Tokenizer: mini.Load(), Family: "passthrough"})
	if err != nil {
		panic(err)
	}
	req, err := wire.Completions.Decode([]byte(`{"model":"m","prompt":"Once upon","max_tokens":8}`), nil)
	if err != nil {
		panic(err)
	}
	p := m.Raw(m.Tokenizer().AppendEncode(nil, "Once upon"))
	dec, err := m.NewDecoder(req, p, nil)
	if err != nil {
		panic(err)
	}
	events := dec.AppendTokens(nil, m.Tokenizer().AppendEncode(nil, " a <tool_call>")...)
	var answer event.Collector
	answer.Add(dec.Finish(events)...)
	fmt.Printf("%q\n", answer.Answers[0].Text())
	// Output: " a <tool_call>"
}

// A program that computes the known part of the next prompt while the user reads: the template omits past reasoning.
func ExamplePrompt_Next() {
	t, err := template.Lookup("harmony", nil)
	if err != nil {
		panic(err)
	}
	m := must(prompt.New(t, &prompt.Options{Tokenizer: mini.Load(), Family: "gpt_oss"}))
	req := must(wire.Chat.Decode([]byte(`{"model":"m","messages":[{"role":"user","content":"Hi"}]}`), nil))
	p := must(m.Render(req, time.Now()))
	dec := must(m.NewDecoder(req, p, nil))
	var answer event.Collector
	answer.Add(dec.Append(nil, "<|channel|>analysis<|message|>A greeting.<|end|><|start|>assistant<|channel|>final<|message|>Hello!")...)
	answer.Add(dec.Finish(nil)...)

	ids := must(p.Next(req, wire.Turn(&answer, 0))) // for a request with max_tokens 1
	text := string(m.Tokenizer().AppendDecode(nil, ids, false))
	fmt.Println(strings.ReplaceAll(text[strings.LastIndex(text, "<|start|>user<|message|>Hi"):], "<|start|>", "\n<|start|>"))
	// Output:
	// <|start|>user<|message|>Hi<|end|>
	// <|start|>assistant<|channel|>final<|message|>Hello!<|end|>
	// <|start|>user<|message|>
}
