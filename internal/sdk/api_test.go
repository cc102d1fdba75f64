// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/wire"
)

const (
	model   = "demo"
	created = 1700000000
)

// An api holds the differences between the three APIs.
type api struct {
	*wire.API
	name   string
	id     string // of the response
	golden string // worked example of protocols/testdata

	// stream requests a stream from the desk with the official client and accumulates it; read requests a whole response.
	// Both check on the way what only that API has.
	stream func(t require.TestingT, d *desk) (response, error)
	read   func(t require.TestingT, d *desk) (response, error)
}

var (
	chatAPI = &api{
		API: wire.Chat, name: "chat", id: "chatcmpl-1", golden: "../../protocols/internal/chatanswer/testdata/example.sse",
	}
	responsesAPI = &api{
		API: wire.Responses, name: "responses", id: "resp_1", golden: "../../protocols/internal/responsesanswer/testdata/example.sse",
	}
	messagesAPI = &api{
		API: wire.Messages, name: "messages", id: "msg_1", golden: "../../protocols/internal/messagesanswer/testdata/example.sse",
	}
	apis = []*api{chatAPI, responsesAPI, messagesAPI}
)

func init() { // here, because the methods name the variables
	chatAPI.stream, chatAPI.read = streamChat, readChat
	responsesAPI.stream, responsesAPI.read = streamResponse, readResponse
	messagesAPI.stream, messagesAPI.read = streamMessage, readMessage
}

// encoder returns an encoder for the response to the request of s.
func (a *api) encoder(s setup, stream bool) *wire.Encoder {
	return a.NewEncoder(s.request(a, stream), a.options(s))
}

// options returns the options of s, with a clock that advances by a second.
func (a *api) options(s setup) *wire.Options {
	now := time.Unix(created-1, 0)
	return &wire.Options{
		ID: a.id, Now: func() time.Time { now = now.Add(time.Second); return now }, Reasoning: s.reasoning, Details: wire.DetailsNever,
		WholeCalls: s.wholeCalls, CallsInReasoning: s.callsInReasoning,
	}
}

// request returns the request of s to a, of the Responses API if that has to seal reasoning and else of none.
func (s setup) request(a *api, stream bool) *block.Request {
	r := block.NewRequest()
	seal := s.seal && a == responsesAPI
	if seal {
		var err error
		if r, err = wire.Responses.Decode([]byte(`{"model":"demo","input":[],"store":false}`), nil); err != nil {
			panic(err)
		}
	}
	if err := r.SetTools(s.tools...); err != nil {
		panic(err)
	}
	p := r.Params()
	p.Model, p.Stream, p.StreamUsage = model, stream, !seal
	if err := r.SetParams(p); err != nil {
		panic(err)
	}
	return r
}

// encode returns the stream of the events. With alive, a keep-alive comes before every event and at the end.
func (a *api) encode(s setup, events []event.Event, alive bool) []byte {
	enc := a.encoder(s, true)
	var out []byte
	for i := range events {
		if alive {
			out = enc.AppendKeepAlive(out)
		}
		out = enc.Append(out, events[i])
	}
	if alive {
		out = enc.AppendKeepAlive(out)
	}
	return enc.Finish(out)
}

// whole returns the events as a whole response.
func (a *api) whole(s setup, events []event.Event) []byte {
	return a.encoder(s, false).Finish(nil, events...)
}

// collect returns the content of the events.
func collect(events []event.Event) *event.Collector {
	var c event.Collector
	c.Add(events...)
	return &c
}
