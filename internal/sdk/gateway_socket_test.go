// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"encoding/json"
	"testing"

	"github.com/openai/openai-go/v3"
	oairesp "github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/weft-go/weft/examples/gateway/serve"
)

// TestSocket has the SDK ask over WebSocket, in two lanes, and continue a response.
func TestSocket(t *testing.T) {
	r := start(t, always("Hello."), nil)
	c, err := r.openai.Responses.Connect(t.Context(), oairesp.ResponseConnectionOptions{})
	require.NoError(t, err)
	ask := func(body string) oairesp.ResponsesServerEventUnion {
		t.Helper()
		require.NoError(t, c.SendRaw(t.Context(), json.RawMessage(body)))
		for {
			ev, err := c.Recv(t.Context())
			require.NoError(t, err)
			if kind := gjson.Get(ev.RawJSON(), "type").Str; kind == "response.completed" || kind == "error" {
				return ev
			}
		}
	}
	first := ask(`{"type":"response.create","model":"m","store":false,"input":"a"}`).AsResponseCompleted()
	require.Equal(t, "Hello.", first.Response.OutputText())
	second := ask(`{"type":"response.create","model":"m","store":false,"stream_id":"two","input":"b","previous_response_id":"` + first.Response.ID + `"}`).AsResponseCompleted()
	require.Equal(t, "two", second.StreamID)
	require.Equal(t, first.Response.ID, second.Response.PreviousResponseID)
	require.Regexp(t, `(?s)a<.*Hello\..*b<`, r.prompts[1])
	failed := ask(`{"type":"response.create","model":"m","input":"c","previous_response_id":"resp_none"}`).AsResponsesServerEventResponseWsError()
	require.EqualValues(t, 400, failed.Status)
	require.Equal(t, "previous_response_not_found", failed.Error.Code)
	require.NoError(t, c.Close())
}

// TestStored has the SDK get a stored response, page through its input, and delete it.
func TestStored(t *testing.T) {
	var store serve.Store
	store.Resize(1 << 20)
	r := start(t, always("Hello."), func(o *serve.Options) { o.Store = &store })
	ask := func(input, previous string) *oairesp.Response {
		t.Helper()
		p := oairesp.ResponseNewParams{Model: "m", Input: oairesp.ResponseNewParamsInputUnion{OfString: openai.String(input)}}
		if previous != "" {
			p.PreviousResponseID = openai.String(previous)
		}
		one, err := r.openai.Responses.New(t.Context(), p)
		require.NoError(t, err)
		return one
	}
	first := ask("a", "")
	second := ask("b", first.ID)
	got, err := r.openai.Responses.Get(t.Context(), second.ID, oairesp.ResponseGetParams{})
	require.NoError(t, err)
	require.Equal(t, second.RawJSON(), got.RawJSON())
	var texts []string
	items := r.openai.Responses.InputItems.ListAutoPaging(t.Context(), second.ID, oairesp.InputItemListParams{Order: "asc", Limit: openai.Int(1)})
	for items.Next() {
		item := items.Current()
		texts = append(texts, item.Type+" "+string(item.Role)+" "+gjson.Get(item.RawJSON(), "content.0.text").Str)
	}
	require.NoError(t, items.Err())
	require.Equal(t, []string{"message user a", "message assistant Hello.", "message user b"}, texts)
	require.NoError(t, r.openai.Responses.Delete(t.Context(), second.ID))
	_, err = r.openai.Responses.Get(t.Context(), second.ID, oairesp.ResponseGetParams{})
	require.ErrorContains(t, err, "404")
}
