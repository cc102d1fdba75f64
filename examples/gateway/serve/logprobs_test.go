// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/examples/gateway/serve"
)

// probEngine is an engine that writes a text, a token per chunk, with the log probabilities that it is asked for. asked gets
// the number.
func probEngine(t *testing.T, text string, asked func(n any)) serve.Engine {
	ids := tok().AppendEncode(nil, text)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var req object
		if err := json.Unmarshal(body, &req); err != nil {
			t.Error(err)
		}
		asked(req["logprobs"])
		for i, id := range ids {
			token := strings.ToValidUTF8(string(tok().AppendToken(nil, id)), "\uFFFD")
			choice := object{"index": 0, "text": token, "token_ids": []uint32{id}}
			if req["logprobs"] != nil {
				choice["logprobs"] = object{"tokens": []string{token}, "token_logprobs": []float64{-float64(i)}, "text_offset": []int{0},
					"top_logprobs": []object{{token: -float64(i), "other": -50, "rare": -60}}}
			}
			b, err := json.Marshal(object{"choices": []object{choice}})
			if err != nil {
				t.Error(err)
			}
			fmt.Fprintf(w, "data: %s\n\n", b)
		}
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return serve.Engine{URL: s.URL, Kind: upstream.VLLM{}}
}

// A shownProb is an entry that clients get.
type shownProb struct {
	Token   string
	Logprob float64
	Bytes   []byte
	Top     []shownProb `json:"top_logprobs"`
}

// TestLogprobs checks that log probabilities reach clients of each API that has them, stream or not: one entry for each
// token of the text, in its order, and none of reasoning, calls and markers.
func TestLogprobs(t *testing.T) {
	const text = "It is naïve 🚀 indeed. "
	var wanted []any
	r := start(t, 0, nil, func(o *serve.Options) {
		o.Engines = []serve.Engine{probEngine(t, "<think>\nhidden thought\n</think>\n\n"+text+"<tool_call>\n{\"name\": \"read\", \"arguments\": {}}\n</tool_call>", func(n any) { wanted = append(wanted, n) })}
	})
	for _, stream := range []bool{false, true} {
		for path, fields := range map[string]string{
			"/v1/chat/completions": `"logprobs":true,"top_logprobs":2,"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"read"}}]`,
			"/v1/responses":        `"include":["message.output_text.logprobs"],"top_logprobs":2,"input":"x","tools":[{"type":"function","name":"read"}]`,
		} {
			status, header, body := send(t, r.url+path, fmt.Sprintf(`{"model":"m","stream":%t,%s}`, stream, fields))
			require.Equal(t, 200, status, body)
			require.Empty(t, header.Get("X-Weft-Dropped"))
			var got []shownProb
			add := func(v any) {
				raw, err := json.Marshal(v)
				require.NoError(t, err)
				var list []shownProb
				var ints []struct{ Bytes []int }
				var plain []object
				require.NoError(t, json.Unmarshal(raw, &plain))
				require.NoError(t, json.Unmarshal(raw, &ints))
				for i := range plain {
					delete(plain[i], "bytes")
					for _, c := range plain[i]["top_logprobs"].([]any) {
						delete(c.(object), "bytes")
					}
				}
				raw, err = json.Marshal(plain)
				require.NoError(t, err)
				require.NoError(t, json.Unmarshal(raw, &list))
				for i := range list {
					for _, b := range ints[i].Bytes {
						list[i].Bytes = append(list[i].Bytes, byte(b))
					}
				}
				got = append(got, list...)
			}
			var whole object
			switch {
			case !stream:
				require.NoError(t, json.Unmarshal([]byte(body), &whole))
				if path == "/v1/responses" {
					for _, item := range whole["output"].([]any) {
						if parts, ok := item.(object)["content"].([]any); ok && item.(object)["type"] == "message" {
							add(parts[0].(object)["logprobs"])
						}
					}
				} else {
					add(whole["choices"].([]any)[0].(object)["logprobs"].(object)["content"])
				}
			default:
				for _, f := range frames(t, body) {
					if f.typ == "response.output_text.delta" {
						add(f.data["logprobs"])
					}
					for _, c := range list0(f.data["choices"]) {
						if l, ok := c.(object)["logprobs"].(object); ok {
							add(l["content"])
						}
					}
				}
			}
			var all []byte
			for i, p := range got {
				all = append(all, p.Bytes...)
				require.Len(t, p.Top, 2)
				require.Equal(t, "other", p.Top[1].Token)
				require.Equal(t, p.Logprob, p.Top[0].Logprob)
				if i > 0 {
					require.Less(t, p.Logprob, got[i-1].Logprob)
				}
			}
			require.Equal(t, strings.TrimSpace(text), strings.TrimSpace(string(all)), "%s %t", path, stream)
			require.Equal(t, 2.0, wanted[len(wanted)-1])
		}
	}
	status, _, body := send(t, r.url+"/v1/completions", `{"model":"m","prompt":"x","logprobs":1,"max_tokens":500}`)
	require.Equal(t, 200, status, body)
	require.Contains(t, body, `"logprobs":{"tokens":["`)
	send(t, r.url+"/v1/chat/completions", `{"model":"m","logprobs":false,"messages":[{"role":"user","content":"x"}]}`)
	require.Nil(t, wanted[len(wanted)-1])
	_, header, _ := send(t, r.url+"/v1/responses", `{"model":"m","top_logprobs":3,"input":"x"}`)
	require.Equal(t, "top_logprobs", header.Get("X-Weft-Dropped"))
	for fields, has := range map[string]string{`"logprobs":true,"top_logprobs":21`: "from 0 to 20", `"top_logprobs":2`: "requires logprobs", `"logprobs":true,"top_logprobs":-1`: "from 0 to 20"} {
		status, _, body := send(t, r.url+"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"}],`+fields+`}`)
		apiCases[0].wantError(t, status, body, 400, "invalid_request_error", has)
		require.Contains(t, body, `"param":"top_logprobs"`)
	}
	embedded := start(t, 1, say("x"), nil)
	status, _, body = send(t, embedded.url+"/v1/chat/completions", `{"model":"m","logprobs":true,"messages":[{"role":"user","content":"x"}]}`)
	require.Equal(t, 400, status, body)
	require.Contains(t, body, "report no log probabilities")
}
