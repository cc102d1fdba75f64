// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/messages"
	"github.com/weft-go/weft/protocols/responses"
)

const (
	model   = "demo"
	created = 1700000000
)

// An api is what differs between the three.
type api struct {
	name   string
	id     string // of the response
	golden string // worked example of protocols/testdata
	stream func(s setup) encoder
	whole  func(c *event.Collector, s setup) []byte

	// hear asks the desk for a stream with the official client and accumulates it; read asks for a whole answer. Both check
	// on the way what only that API has.
	hear func(t require.TestingT, d *desk) (heard, error)
	read func(t require.TestingT, d *desk) (heard, error)
}

type encoder interface {
	Append(dst []byte, events ...event.Event) []byte
	Close(dst []byte) []byte
	Fail(dst []byte, e *apierr.Error) []byte
	KeepAlive(dst []byte) []byte
}

var (
	chatAPI = &api{
		name: "chat", id: "chatcmpl-1", golden: "../../protocols/chat/testdata/example.sse",
		stream: func(s setup) encoder { return chat.NewStream(chatOptions(s)) },
		whole:  func(c *event.Collector, s setup) []byte { return chat.AppendResponse(nil, c, chatOptions(s)) },
	}
	responsesAPI = &api{
		name: "responses", id: "resp_1", golden: "../../protocols/responses/testdata/example.sse",
		stream: func(s setup) encoder { return responses.NewStream(responsesOptions(s)) },
		whole:  func(c *event.Collector, s setup) []byte { return responses.AppendResponse(nil, c, responsesOptions(s)) },
	}
	messagesAPI = &api{
		name: "messages", id: "msg_1", golden: "../../protocols/messages/testdata/example.sse",
		stream: func(s setup) encoder { return messages.NewStream(messagesOptions(s)) },
		whole:  func(c *event.Collector, s setup) []byte { return messages.AppendResponse(nil, c, messagesOptions(s)) },
	}
	apis = []*api{chatAPI, responsesAPI, messagesAPI}
)

func init() { // here, because the methods name the variables
	chatAPI.hear, chatAPI.read = hearChat, readChat
	responsesAPI.hear, responsesAPI.read = hearResponse, readResponse
	messagesAPI.hear, messagesAPI.read = hearMessage, readMessage
}

func chatOptions(s setup) chat.StreamOptions {
	return chat.StreamOptions{
		ID: "chatcmpl-1", Model: model, Created: created, IncludeUsage: true, Reasoning: s.field, Custom: s.custom,
		WholeCalls: s.wholeCalls, DispatchInReasoning: s.callsInReasoning,
	}
}

func responsesOptions(s setup) responses.StreamOptions {
	return responses.StreamOptions{
		ID: "resp_1", Model: model, Created: created, CompletedAt: created + 1, Reasoning: s.shown, Seal: s.seal,
		Namespace: s.namespace, Custom: s.custom, WholeCalls: s.wholeCalls, DispatchInReasoning: s.callsInReasoning,
	}
}

func messagesOptions(s setup) messages.StreamOptions {
	return messages.StreamOptions{
		ID: "msg_1", Model: model, Thinking: s.thinking, WholeCalls: s.wholeCalls, DispatchInReasoning: s.callsInReasoning,
	}
}

// encode returns the stream of the events. With alive a keep-alive stands in front of every event and at the end.
func (a *api) encode(s setup, events []event.Event, alive bool) []byte {
	enc := a.stream(s)
	var out []byte
	for i := range events {
		if alive {
			out = enc.KeepAlive(out)
		}
		out = enc.Append(out, events[i])
	}
	if alive {
		out = enc.KeepAlive(out)
	}
	return enc.Close(out)
}

// collect returns what the events say.
func collect(events []event.Event) *event.Collector {
	var c event.Collector
	c.Add(events...)
	return &c
}
