// SPDX-License-Identifier: Apache-2.0

// Command harness is a minimal agent loop on raw completions: it renders the conversation, runs each tool as soon as
// its call is complete, and sends the results in the next prompt.
//
//	go run ./examples/harness -h
//
// Command examples/agent adds error handling for broken streams and incomplete calls, limits, and a display.
package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/weft-go/weft/examples/internal/cli"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/tokenizers/prompt"
)

func main() { cli.Exit("harness", run(os.Args[1:], os.Stdout)) }

func run(args []string, stdout io.Writer) error {
	flags := cli.NewFlags("harness", usage, stdout)
	engine := flags.String("engine", "", "`URL` of the engine, without /v1; by default an embedded one")
	dir := flags.String("model-dir", "mini", "`directory` of the model, or mini for the small tokenizer of this repository")
	name := flags.String("model", "m", "`name` of the model at the engine")
	if err := flags.Parse(args); err != nil {
		return err
	}
	files, err := cli.Model("model-dir", *dir)
	if err != nil {
		return err
	}
	m, err := prompt.Load(files, &prompt.Options{Name: *name})
	if err != nil {
		return err
	}
	if *engine == "" {
		local := play(m, *name)
		defer local.Close()
		*engine = local.URL
	}
	conv := block.NewRequest(block.NewTurn(block.RoleUser, cmp.Or(strings.Join(flags.Args(), " "), "Weather in Oslo and Rome?")))
	if err := conv.SetTools(weatherTool); err != nil {
		return err
	}
	for {
		p, err := m.Render(conv, time.Now())
		if err != nil {
			return err
		}
		dec, err := m.NewDecoder(conv, p, &prompt.DecoderOptions{MaxTokens: 2000})
		if err != nil {
			return err
		}
		var response event.Collector
		var pending []chan block.Block
		calls := event.Dispatcher{OnCall: func(c event.Call) { // as soon as the call is complete
			result := make(chan block.Block, 1)
			pending = append(pending, result)
			go func() { result <- block.NewResult(c.ID, weather(c.Arguments)) }()
		}, OnReject: func(c event.Call) {
			dec.Fail(fmt.Errorf("the call of %s cannot run: %v", c.Name, c.Why)) // an agent would report it to the model
		}}
		take := func(events []event.Event) {
			show(stdout, events)
			calls.Add(events...)
			response.Add(events...)
		}
		resp, err := http.Post(*engine+"/v1/completions", "application/json", bytes.NewReader(dec.AppendRequest(nil, *name)))
		if err != nil {
			return err
		}
		for events := range dec.Events(resp.StatusCode, resp.Body) {
			take(events)
		}
		resp.Body.Close()
		if take(dec.Finish(nil)); dec.Err() != nil || pending == nil {
			return dec.Err()
		}
		// The response renders to the bytes that the model wrote, if its template can print them: the next prompt begins with this one.
		err = conv.Append(wire.Turn(&response, 0), block.Turn{Role: block.RoleTool, Blocks: wait(pending)})
		if err != nil {
			return err
		}
	}
}
