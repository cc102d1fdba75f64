// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/event"
)

// errCut reports that a stream ended before its last event, which the SDK leaves to its user to detect.
var errCut = errors.New("the stream was cut")

// A failedResponse is a response with the status failed. The SDK treats it like any other response.
type failedResponse struct{ *responses.Response }

func (f failedResponse) Error() string {
	return fmt.Sprintf("%s: %s", f.Response.Error.Code, f.Response.Error.Message)
}

func responseParams() responses.ResponseNewParams {
	return responses.ResponseNewParams{
		Model: model, Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("?")},
	}
}

func streamResponse(t require.TestingT, d *desk) (response, error) {
	h, _, err := accumulateResponse(t, d.openai.Responses.NewStreaming(context.Background(), responseParams()))
	return h, err
}

// accumulateResponse reads a stream in three ways that must agree: the response of the last event, the items of the done
// events (which is all that Codex reads), and the SDK's accumulator, which puts deltas together.
func accumulateResponse(t require.TestingT, s *ssestream.Stream[responses.ResponseStreamEventUnion]) (response, *responses.Response, error) {
	defer s.Close()
	var acc, bare responses.ResponseAccumulator // bare never sees the output of the last event
	var before responses.ResponseAccumulatorSnapshot
	var last *responses.Response
	items := responseItems{open: map[int64]bool{}, deltas: map[int64]string{}, held: map[int64]string{}}
	n := int64(0)
	for s.Next() {
		ev := s.Current()
		require.True(t, last == nil, "an event after the last one: %s", ev.Type)
		require.NotNil(t, ev.AsAny(), "unknown event %s", ev.Type)
		require.Equal(t, n, ev.SequenceNumber)
		require.Equal(t, n == 0, ev.Type == "response.created")
		require.Equal(t, n == 1, ev.Type == "response.in_progress" || n == 1 && ev.Type == "response.failed")
		n++
		raw := ev.RawJSON()
		switch ev.Type {
		case "response.completed", "response.incomplete", "response.failed":
			r := ev.Response
			last, before = &r, acc.Snapshot()
			require.Equal(t, ev.Type, "response."+string(r.Status))
			require.NoError(t, bare.AddEvent(withoutOutput(t, raw)))
		default:
			require.NoError(t, bare.AddEvent(socketEvent(t, raw)))
		}
		require.NoError(t, acc.AddEvent(socketEvent(t, raw)), "%s", raw)
		items.add(t, &ev)
	}
	switch {
	case s.Err() != nil:
		return response{}, last, s.Err()
	case last == nil:
		return response{}, nil, errCut
	}

	rebuilt, err := acc.ReconstructedResponse()
	require.NoError(t, err)
	require.Equal(t, last.RawJSON(), rebuilt.RawJSON())
	rebuilt, err = bare.ReconstructedResponse()
	require.NoError(t, err)
	done := items.done()
	require.Equal(t, done, rawItems(last.Output), "the last response has the items of the done events")
	require.Equal(t, len(done), len(rebuilt.Output))
	for i, it := range rebuilt.Output {
		require.JSONEq(t, done[i], it.RawJSON())
	}
	if last.Status == responses.ResponseStatusFailed {
		return response{}, last, failedResponse{last}
	}
	require.Equal(t, last.ID, before.ResponseID)
	require.Len(t, before.Output, len(last.Output))
	for i, it := range last.Output {
		o := before.Output[i]
		require.Equal(t, []string{it.ID, it.Type, it.CallID, it.Name, it.Input}, []string{o.ItemID, o.Type, o.CallID, o.Name, o.Input})
		if it.Type == "function_call" {
			require.Equal(t, it.Arguments.OfString, o.Arguments)
		}
	}
	require.Equal(t, last.OutputText(), before.OutputText())
	return responsesResponse(t, last), last, nil
}

// socketEvent converts a stream's event to the WebSocket form that the SDK's accumulator accepts.
func socketEvent(t require.TestingT, raw string) (ev responses.ResponsesServerEventUnion) {
	require.NoError(t, json.Unmarshal([]byte(raw), &ev))
	return ev
}

// withoutOutput drops the output of a response, as some servers do.
func withoutOutput(t require.TestingT, raw string) responses.ResponsesServerEventUnion {
	var ev, resp map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(raw), &ev))
	require.NoError(t, json.Unmarshal(ev["response"], &resp))
	delete(resp, "output")
	ev["response"], _ = json.Marshal(resp)
	b, err := json.Marshal(ev)
	require.NoError(t, err)
	return socketEvent(t, string(b))
}

func rawItems(items []responses.ResponseOutputItemUnion) (out []string) {
	for i := range items {
		out = append(out, items[i].RawJSON())
	}
	return out
}

// responseItems follows the items of a stream. Items open in order of their index; calls may be open at once, and an item is
// done once.
type responseItems struct {
	ids    []string
	open   map[int64]bool
	deltas map[int64]string // text or arguments
	held   map[int64]string // items of done events
}

// done returns the items that are done, in order.
func (r *responseItems) done() (out []string) {
	for _, i := range slices.Sorted(maps.Keys(r.held)) {
		out = append(out, r.held[i])
	}
	return out
}

func (r *responseItems) add(t require.TestingT, ev *responses.ResponseStreamEventUnion) {
	at := ev.OutputIndex
	place := func() {
		require.True(t, r.open[at], "%s for item %d, which is not open", ev.Type, at)
		require.Equal(t, r.ids[at], ev.ItemID)
	}
	switch ev.Type {
	case "response.output_item.added":
		require.EqualValues(t, len(r.ids), at, "output_index is dense")
		require.NotEmpty(t, ev.Item.ID)
		require.NotContains(t, r.ids, ev.Item.ID)
		r.ids, r.open[at] = append(r.ids, ev.Item.ID), true
	case "response.output_text.delta", "response.refusal.delta", "response.reasoning_text.delta",
		"response.reasoning_summary_text.delta", "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		place()
		require.NotEmpty(t, ev.Delta)
		r.deltas[at] += ev.Delta
	case "response.output_text.done", "response.refusal.done", "response.reasoning_text.done",
		"response.reasoning_summary_text.done", "response.function_call_arguments.done", "response.custom_tool_call_input.done":
		place()
		require.Equal(t, r.deltas[at], ev.Text+ev.Refusal+ev.Arguments+ev.Input, "%s repeats the deltas", ev.Type)
	case "response.content_part.added", "response.content_part.done", "response.reasoning_summary_part.added",
		"response.reasoning_summary_part.done", "response.output_text.annotation.added":
		place()
	case "response.output_item.done":
		require.True(t, r.open[at])
		require.Equal(t, r.ids[at], ev.Item.ID)
		r.open[at] = false
		r.held[at] = ev.Item.RawJSON()
		text := ev.Item.Arguments.OfString + ev.Item.Input
		for _, p := range ev.Item.Content {
			text += p.Text + p.Refusal
		}
		for _, p := range ev.Item.Summary {
			text += p.Text
		}
		switch ev.Item.Type {
		case "message", "reasoning", "function_call", "custom_tool_call":
			require.Equal(t, r.deltas[at], text, "the item has the text of its deltas")
		}
	case "response.completed", "response.incomplete":
		require.Equal(t, len(r.ids), len(r.held), "an item was never done")
	}
}

func readResponse(t require.TestingT, d *desk) (response, error) {
	r, err := d.openai.Responses.New(context.Background(), responseParams())
	if err != nil {
		return response{}, err
	}
	if r.Status == responses.ResponseStatusFailed {
		return response{}, failedResponse{r}
	}
	return responsesResponse(t, r), nil
}

func responsesResponse(t require.TestingT, r *responses.Response) response {
	require.EqualValues(t, "response", r.Object)
	require.Equal(t, r.Status == "incomplete", r.IncompleteDetails.Reason != "")
	u := &r.Usage
	require.Equal(t, u.TotalTokens, u.InputTokens+u.OutputTokens)
	h := response{ID: r.ID, Model: string(r.Model), Usage: event.Tokens{
		Prompt: u.InputTokens, Output: u.OutputTokens, Cached: u.InputTokensDetails.CachedTokens,
		CacheWrite: u.InputTokensDetails.CacheWriteTokens, Reasoning: u.OutputTokensDetails.ReasoningTokens,
	}}
	c := choice{Finish: string(r.Status)}
	for _, it := range r.Output {
		var p piece
		switch v := it.AsAny().(type) {
		case responses.ResponseOutputMessage:
			require.Len(t, v.Content, 1)
			part := v.Content[0]
			p = piece{Kind: "text", Text: part.Text}
			if part.Type == "refusal" {
				p = piece{Kind: "refusal", Text: part.Refusal}
			}
			p.Status = string(v.Status)
			for _, n := range part.Annotations {
				p.Notes = append(p.Notes, n.RawJSON())
			}
			for _, l := range part.Logprobs {
				c.Tokens = append(c.Tokens, l.Token)
			}
		case responses.ResponseReasoningItem:
			p = piece{Kind: "reasoning", Signature: v.EncryptedContent, Status: string(v.Status)}
			for _, s := range v.Summary {
				p.Text += s.Text
			}
			for _, s := range v.Content {
				p.Text += s.Text
			}
		case responses.ResponseFunctionToolCall:
			p = piece{
				Kind: "call", ID: v.CallID, Namespace: v.Namespace, Name: v.Name, Text: v.Arguments, Status: string(v.Status),
			}
			require.NotEqual(t, v.ID, v.CallID)
		case responses.ResponseCustomToolCall:
			p = piece{Kind: "custom", ID: v.CallID, Namespace: v.Namespace, Name: v.Name, Text: v.Input, Status: it.Status}
		case nil:
			require.Fail(t, "unknown item", it.RawJSON())
		default:
			p = piece{Kind: "other", Text: it.RawJSON()}
		}
		c.Pieces = append(c.Pieces, p)
	}
	h.Choices = []choice{c}
	return h
}
