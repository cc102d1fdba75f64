// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/tokenizers/prompt"
)

const usage = `
usage: harness [-engine URL] [-model-dir DIR] [-model NAME] [QUESTION]

Harness answers a question with a tool that knows the weather. It does not read stdin; it prints what the model writes.
-engine has /v1/completions and runs the model in -model-dir; without one, an embedded engine plays a script.

Example:
  harness "Weather in Oslo and Rome?"
`

var weatherTool = block.Tool{Name: "weather", Description: "The weather in a city.",
	Schema: []byte(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)}

func weather(args []byte) string {
	var a struct{ City string }
	if err := json.Unmarshal(args, &a); err != nil {
		return "error: " + err.Error()
	}
	return fmt.Sprintf("%s: %d °C", a.City, 10+len(a.City))
}

// wait returns the results of the calls, in their order.
func wait(pending []chan block.Block) (results []block.Block) {
	for _, result := range pending {
		results = append(results, <-result)
	}
	return results
}

// show prints events.
func show(w io.Writer, events []event.Event) {
	for _, ev := range events {
		switch ev.Kind {
		case event.Text, event.Reasoning, event.ToolArgs:
			fmt.Fprintf(w, "%s", ev.Data)
		case event.ToolStart:
			fmt.Fprintf(w, "\n→ %s ", ev.Data)
		case event.Finish:
			fmt.Fprintln(w)
		}
	}
}

// play serves an embedded engine with scripted output in the form of the family hermes.
func play(m *prompt.Model, name string) *httptest.Server {
	return httptest.NewServer(vllm.New(m.Tokenizer(), &vllm.Options{Model: name, MaxModelLen: m.Window(), Script: script}))
}

var script = vllm.Rules(
	vllm.Rule{When: "<|im_start|>user\n", Say: "<think>\nI need both.\n</think>\n\nLet me look.\n" +
		"<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>\n" +
		"<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>"},
	vllm.Rule{When: "<tool_response>", Say: "It is 14 °C in both cities."},
)
