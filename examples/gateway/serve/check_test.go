// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/upstream"
)

// An empty stop sequence is refused before an engine gets it, except by endpoints of the client's API, which check it themselves.
func TestEmptyStopSequenceIsRefused(t *testing.T) {
	for _, tt := range []struct{ path, body, param string }{
		{"chat/completions", fieldsChat + `"stop":[""]}`, "stop"},
		{"chat/completions", fieldsChat + `"stop":["a",""]}`, "stop"},
		{"chat/completions", fieldsChat + `"stop":""}`, "stop"},
		{"completions", `{"model":"m","prompt":"x","stop":[""]}`, "stop"},
		{"messages", fieldsMessages + `"stop_sequences":[""]}`, "stop_sequences"},
	} {
		engine, post := fieldsRig(t, false, true, false)
		w := post(tt.path, tt.body)
		require.Equal(t, 400, w.Code, tt.body)
		require.Contains(t, w.Body.String(), "A stop sequence must not be empty.")
		require.Empty(t, engine.host)
		if tt.path != "messages" {
			require.Contains(t, w.Body.String(), `"param":"`+tt.param+`"`)
		}
	}
	for _, field := range []string{`"stop":null`, `"stop":[]`, `"stop":["a"]`} {
		_, post := fieldsRig(t, false, true)
		require.Equal(t, 200, post("chat/completions", fieldsChat+field+`}`).Code, field)
	}
	for i, field := range map[int]string{0: "stop", 2: "stop_sequences"} {
		a := apiCases[i]
		body, _ := a.with(object{field: []any{""}})
		for _, k := range managedKinds {
			e := newEndpoint(t, playing(k, lengthScene))
			status, _, text := send(t, managed(t, k, nil, e).url+a.path, body)
			if k.API().Path() == a.path {
				require.Equal(t, 200, status, text)
				continue
			}
			a.wantParam(t, status, text, field)
			require.Empty(t, e.paths)
		}
	}
}

// Input of which no item is known is refused, and not rendered as an empty conversation.
func TestInputOfUnknownItemsIsRefused(t *testing.T) {
	for _, more := range []string{``, `,"instructions":"Be brief."`} {
		body := `{"model":"m","input":[{"type":"zzz"},{"type":"yyy"}]` + more + `}`
		r := start(t, 1, say(answer), nil)
		for _, path := range []string{"/v1/responses", "/v1/responses/input_tokens"} {
			status, _, text := send(t, r.url+path, body)
			apiCases[1].wantParam(t, status, text, "input")
			require.Contains(t, text, `The input has no message: items of the type \"zzz\" are not known.`)
		}
		status, _, text := send(t, r.url+"/v1/responses", `{"model":"m","input":[{"type":"zzz"},{"role":"user","content":"Hi"}]`+more+`}`)
		require.Equal(t, 200, status, text)
		for _, k := range managedKinds {
			e := newEndpoint(t, playing(k, lengthScene))
			status, _, text := send(t, managed(t, k, nil, e).url+"/v1/responses", body)
			if k == upstream.Responses {
				require.Equal(t, 200, status, text)
				continue
			}
			apiCases[1].wantParam(t, status, text, "input")
			require.Empty(t, e.paths)
		}
	}
}

// The error of a number that no float64 can hold says so.
func TestNumberOutOfRangeIsRefused(t *testing.T) {
	_, post := fieldsRig(t, false, true)
	w := post("chat/completions", fieldsChat+`"temperature":1e999}`)
	require.Equal(t, 400, w.Code)
	var e struct {
		Error struct{ Message, Param string }
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &e))
	require.Equal(t, "temperature", e.Error.Param)
	require.Contains(t, e.Error.Message, "the number is out of range")
}
