// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/wire"
)

// TestCompletions checks that a prompt is encoded as engines do, that the output is not parsed, and that it has the limit
// and the form of the Completions API.
func TestCompletions(t *testing.T) {
	raw := "<think>\nhm\n</think>\n<tool_call>\n{\"name\": \"read\"}\n</tool_call> one two three four five six seven eight nine ten"
	r := start(t, 1, say(raw), func(o *serve.Options) { o.Aliases = []string{"a"} })
	var body struct {
		ID, Object, Model string
		Choices           []struct {
			Index  int
			Text   string
			Finish string `json:"finish_reason"`
		}
		Usage struct {
			Prompt int `json:"prompt_tokens"`
			Output int `json:"completion_tokens"`
		}
	}
	ask := func(fields string) {
		t.Helper()
		status, _, text := send(t, r.url+"/v1/completions", `{"model":"a",`+fields+`}`)
		require.Equal(t, 200, status, text)
		body.Choices = nil
		require.NoError(t, json.Unmarshal([]byte(text), &body))
		require.Equal(t, "text_completion", body.Object)
		require.Equal(t, "a", body.Model)
		require.True(t, strings.HasPrefix(body.ID, "cmpl-"))
	}
	const prompt = "Once <|im_start|>upon"
	ids := tok().AppendEncodeSpecial(nil, prompt)
	ask(`"prompt":"` + prompt + `","max_tokens":500`)
	require.Equal(t, raw, body.Choices[0].Text)
	require.Equal(t, "stop", body.Choices[0].Finish)
	require.Equal(t, len(ids), body.Usage.Prompt)
	require.Equal(t, ids, r.prompts[0].IDs, "names of special tokens are those, as in engines")

	ask(`"prompt":"` + prompt + `"`)
	require.Equal(t, 16, body.Usage.Output, "the default of the API")
	require.Equal(t, "length", body.Choices[0].Finish)
	list, err := json.Marshal(ids)
	require.NoError(t, err)
	ask(`"prompt":` + string(list) + `,"max_tokens":3,"n":2`)
	require.Equal(t, ids, r.prompts[2].IDs)
	require.Len(t, body.Choices, 2)
	require.Equal(t, 6, body.Usage.Output)

	status, header, text := send(t, r.url+"/v1/completions", `{"model":"m","prompt":"x","max_tokens":500,"stream":true,"stream_options":{"include_usage":true},"nonsense":1,"temperature":0.5}`)
	require.Equal(t, 200, status)
	require.Equal(t, "nonsense", header.Get("X-Weft-Dropped"))
	var out string
	for _, f := range frames(t, text) {
		for _, c := range list0(f.data["choices"]) {
			out += c.(object)["text"].(string)
		}
	}
	require.Equal(t, raw, out)
	require.Contains(t, text, `"usage":{"prompt_tokens":1,`)
	require.True(t, strings.HasSuffix(text, "data: [DONE]\n\n"))

	rec := r.done(t, 4)[0]
	require.Equal(t, "completions", rec.API)
	for fields, has := range map[string]string{
		`"prompt":"x","echo":true,"logprobs":1`:                  "(embedded) report no log probabilities of a prompt",
		`"prompt":"x","suffix":"y"`:                              "suffix",
		`"prompt":"x","best_of":2`:                               "best_of must be equal to n",
		`"prompt":"x","prompt_logprobs":1`:                       "send echo and logprobs",
		`"prompt":["x",""]`:                                      "prompt[1]",
		`"prompt":[[1],[2,99999999]]`:                            "prompt[1][1]",
		`"prompt":["x"` + strings.Repeat(`,"x"`, 64) + `],"n":2`: "at most 128 answers to all of its prompts together, not 130",
		`"prompt":""`:                                            "prompt is empty",
		`"prompt":[99999999]`:                                    "vocabulary has no token 99999999",
		`"max_tokens":3`:                                         "prompt",
		`"prompt":"x","max_tokens":0`:                            "at least 1",
		`"prompt":"` + strings.Repeat("word ", 200_000) + `"`:    "maximum context length",
	} {
		status, _, text := send(t, r.url+"/v1/completions", `{"model":"m",`+fields+`}`)
		require.Equal(t, 400, status, "%.100s %s", fields, text)
		require.Contains(t, text, has)
	}
}

// TestMessagesWithoutOutput checks that max_tokens 0 of the Messages API fills the cache of an engine, or of an endpoint in its own
// way, and that the response is empty and counts no output.
func TestMessagesWithoutOutput(t *testing.T) {
	check := func(url string, wantPrompt int) {
		t.Helper()
		a := apiCases[2]
		for _, stream := range []bool{false, true} {
			b := a.body("Where is it?", stream)
			b["max_tokens"] = 0
			status, header, text := send(t, url+a.path, b)
			require.Equal(t, 200, status, text)
			require.Empty(t, header.Get("X-Weft-Dropped"))
			got := collected(t, a, text)
			require.Empty(t, got.Answers[0].Blocks)
			require.Equal(t, event.Length, got.Answers[0].Finish)
			require.Contains(t, text, `"output_tokens":0}`)
			require.EqualValues(t, wantPrompt, got.Usage.Prompt)
			require.Zero(t, got.Usage.Output)
		}
	}
	r := start(t, 1, say(answer), nil)
	b := apiCases[2].body("Where is it?", false)
	status, _, text := send(t, r.url+"/v1/messages/count_tokens", b)
	require.Equal(t, 200, status)
	var count struct {
		Tokens int `json:"input_tokens"`
	}
	require.NoError(t, json.Unmarshal([]byte(text), &count))
	check(r.url, count.Tokens)
	require.Zero(t, r.done(t, 2)[0].Usage.Output)
	require.Equal(t, "length", r.done(t, 2)[0].Finish)
	require.NotZero(t, r.done(t, 2)[1].Usage.Cached, "the first request has filled the cache")
	for _, k := range managedKinds {
		e := newEndpoint(t, playing(k, lengthScene))
		if k.API() == wire.Messages {
			e = newEndpoint(t, func(w http.ResponseWriter, _ *http.Request, body object) {
				const usage = `"usage":{"input_tokens":26,"cache_read_input_tokens":64,"output_tokens":0}`
				if body["stream"] == true {
					writeEvents(w, messageStart, `{"type":"message_delta","delta":{"stop_reason":"max_tokens","stop_sequence":null},`+usage+`}`, messageStop)
					return
				}
				io.WriteString(w, `{"id":"msg_up","type":"message","role":"assistant","model":"up/model-2","content":[],"stop_reason":"max_tokens","stop_sequence":null,`+usage+`}`)
			})
		}
		check(managed(t, k, nil, e).url, 90)
		sent, _ := e.last(t)
		require.Equal(t, k.API() == wire.Messages, strings.Contains(sent, `"max_tokens":0`), sent)
	}
}

func list0(v any) []any { l, _ := v.([]any); return l }

// TestEmbeddings checks that the inputs reach an engine under its name for the model, without the client's other fields,
// that vectors return in the form that was asked for, and that errors and a failing engine are those of the other APIs.
func TestEmbeddings(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	engine := func(broken bool) serve.Engine {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			asked = append(asked, r.URL.Path+" "+string(body))
			mu.Unlock()
			switch {
			case broken:
				w.WriteHeader(500)
			case strings.Contains(string(body), "absent"):
				w.WriteHeader(404)
			case strings.Contains(string(body), "refuse"):
				w.WriteHeader(400)
				fmt.Fprint(w, `{"error":{"message":"The model does not support dimensions.","type":"BadRequestError","code":400}}`)
			default:
				fmt.Fprint(w, `{"object":"list","model":"m","data":[{"object":"embedding","index":0,"embedding":[1,-0.5]}],"usage":{"prompt_tokens":4,"total_tokens":4}}`)
			}
		}))
		t.Cleanup(s.Close)
		return serve.Engine{URL: s.URL}
	}
	var recs []serve.Record
	g, err := serve.New(&serve.Options{
		Model: "m", Aliases: []string{"embed"}, Prompts: hermesModel(), Engines: []serve.Engine{engine(false), engine(true)}, HealthInterval: -1,
		OnDone: func(r serve.Record) { recs = append(recs, r) },
	})
	require.NoError(t, err)
	defer g.Close()
	post := func(body string) (int, string) {
		t.Helper()
		w := serveOne(t, g, "/v1/embeddings", body)
		return w.Code, w.Body.String()
	}
	for range 4 { // one of them meets the engine that fails
		status, text := post(`{"model":"embed","input":"hello there","dimensions":2,"cache_salt":"stolen","user":"u"}`)
		require.Equal(t, 200, status, text)
		require.JSONEq(t, `{"object":"list","model":"embed","data":[{"object":"embedding","index":0,"embedding":[1,-0.5]}],"usage":{"prompt_tokens":4,"total_tokens":4}}`, text)
	}
	w := serveOne(t, g, "/v1/embeddings", `{"model":"embed","input":"x","dimensions":2,"user":"u","cache_salt":"s","priority":0,"input_type":"query"}`)
	require.Equal(t, "cache_salt, input_type", w.Header().Get("X-Weft-Dropped"))
	recs, asked = recs[:4], slices.DeleteFunc(asked, func(s string) bool { return strings.Contains(s, `"x"`) })

	require.Len(t, recs, 4)
	require.Greater(t, len(asked), 4, "an engine failed, and another one was asked")
	require.Equal(t, "embeddings stop 4", fmt.Sprint(recs[0].API, " ", recs[0].Finish, " ", recs[0].Usage.Prompt))
	for _, a := range asked {
		require.Contains(t, a, `/v1/embeddings {"model":"m","input":["hello there"],"dimensions":2`)
		require.NotContains(t, a, "stolen")
	}
	status, text := post(`{"model":"m","input":[[1,2],[3]],"encoding_format":"base64"}`)
	require.Equal(t, 200, status, text)
	require.Contains(t, text, `"embedding":"AACAPwAAAL8="`)
	for range 5 {
		status, text := post(`{"model":"m","input":"absent"}`)
		require.Equal(t, 400, status, text)
		require.Contains(t, text, "compute no embeddings")
	}
	require.False(t, g.Status("").Workers[0].Ejected, "an engine of another purpose has not failed")
	for body, has := range map[string]string{
		`{"model":"nobody","input":"x"}`:                                   "nobody",
		`{"input":"x"}`:                                                    "model",
		`{"model":"m","input":"refuse"}`:                                   "does not support dimensions",
		`{"model":"m","messages":[{"role":"user"}]}`:                       "input, not messages",
		`{"model":"m","input":"x","encoding_format":"zz"}`:                 `"param":"encoding_format"`,
		`{"model":"m","input":"` + strings.Repeat("word ", 200_000) + `"}`: "maximum context length",
	} {
		status, text := post(body)
		require.Contains(t, []int{400, 404}, status, text)
		require.Contains(t, text, has)
	}
}

func TestVersion(t *testing.T) {
	r := start(t, 1, say("x"), func(o *serve.Options) { o.Version = "v9" })
	resp, body := get(t, r.url+"/version")
	require.Equal(t, 200, resp.StatusCode)
	require.Equal(t, `{"version":"v9"}`, body)
}

// serveOne passes a request to a gateway, without a connection.
func serveOne(t testing.TB, g http.Handler, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	g.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body)))
	return w
}
