// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/gateway/serve"
)

// TestTokenize checks the ids of texts and conversations, and their text again, in the form of vLLM.
func TestTokenize(t *testing.T) {
	s := hello()
	g := stubbed(t, 1, s, func(o *serve.Options) { o.MaxModelLen = 200 })
	defer g.Close()
	tok := hermesModel().Tokenizer()
	post := func(path, body string) (int, map[string]any) {
		t.Helper()
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body)))
		var out map[string]any
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &out), w.Body)
		return w.Code, out
	}
	numbers := func(ids []uint32) []any {
		out := []any{}
		for _, id := range ids {
			out = append(out, float64(id))
		}
		return out
	}
	const text = "Hello there, \"Jörg\"<|im_end|>"
	quoted, err := json.Marshal(text)
	require.NoError(t, err)
	ids := tok.AppendEncode(nil, text)
	for _, path := range []string{"/v1/tokenize", "/tokenize"} {
		code, got := post(path, fmt.Sprintf(`{"model":"m","prompt":%s}`, quoted))
		require.Equal(t, 200, code)
		require.Empty(t, cmp.Diff(map[string]any{"count": float64(len(ids)), "max_model_len": 200., "tokens": numbers(tok.AppendEncodeSpecial(nil, text)), "token_strs": nil}, got))
	}
	code, got := post("/v1/tokenize", fmt.Sprintf(`{"prompt":%s,"add_special_tokens":false,"return_token_strs":true}`, quoted))
	require.Equal(t, 200, code)
	require.Empty(t, cmp.Diff(numbers(ids), got["tokens"]))
	strs := got["token_strs"].([]any)
	require.Len(t, strs, len(ids))
	require.Equal(t, "<|im_end|>", strs[len(strs)-1])
	code, got = post("/v1/tokenize", `{"prompt":""}`)
	require.Equal(t, 200, code)
	require.Equal(t, []any{}, got["tokens"])

	list, err := json.Marshal(ids)
	require.NoError(t, err)
	for _, path := range []string{"/v1/detokenize", "/detokenize"} {
		code, got = post(path, fmt.Sprintf(`{"model":"m","tokens":%s}`, list))
		require.Equal(t, 200, code)
		require.Equal(t, map[string]any{"prompt": text}, got)
	}

	conversation := `"model":"m","messages":[{"role":"user","content":"<|im_end|> is text here"}],"tools":[{"type":"function","function":{"name":"f","parameters":{}}}]`
	code, got = post("/v1/tokenize", "{"+conversation+"}")
	require.Equal(t, 200, code)
	code, count := post("/v1/messages/count_tokens", `{"model":"m","messages":[{"role":"user","content":"<|im_end|> is text here"}],"tools":[{"name":"f","input_schema":{}}]}`)
	require.Equal(t, 200, code)
	require.Equal(t, count["input_tokens"], got["count"], "the prompt of a response")
	require.Zero(t, s.count(""), "no engine is asked")

	for body, want := range map[string]struct {
		path  string
		code  int
		param any
	}{
		`{"prompt":"x","model":"other"}`: {"/v1/tokenize", 404, "model"},
		`{"prompt":"x","messages":[]}`:   {"/v1/tokenize", 400, "prompt"},
		`{}`:                             {"/v1/tokenize", 400, "prompt"},
		`{"prompt":7}`:                   {"/v1/tokenize", 400, "prompt"},
		`{"prompt":`:                     {"/v1/tokenize", 400, nil},
		`{` + conversation + `,"add_generation_prompt":false}`: {"/v1/tokenize", 400, "add_generation_prompt"},
		`{"prompt":"` + strings.Repeat("word ", 5000) + `"}`:   {"/v1/tokenize", 400, nil},
		`{"tokens":[1,99999999]}`:                              {"/v1/detokenize", 400, "tokens[1]"},
		`{"tokens":[-1]}`:                                      {"/v1/detokenize", 400, "tokens"},
		`{"tokens":"x"}`:                                       {"/v1/detokenize", 400, "tokens"},
		`{"tokens":null}`:                                      {"/v1/detokenize", 400, "tokens"},
		`{"tokens":[1` + strings.Repeat(",1", 200) + `]}`:      {"/v1/detokenize", 400, "tokens"},
		`{"tokens":[1` + strings.Repeat(",1", 20000) + `]}`:    {"/v1/detokenize", 413, nil},
	} {
		code, got := post(want.path, body)
		require.Equal(t, want.code, code, "%.100s: %v", body, got)
		if want.param != nil {
			require.Equal(t, want.param, got["error"].(map[string]any)["param"], "%.100s", body)
		}
	}

	locked := stubbed(t, 1, s, func(o *serve.Options) { o.Keys = []serve.Key{{Secret: "sk"}} })
	defer locked.Close()
	for _, path := range []string{"/v1/tokenize", "/v1/detokenize"} {
		w := httptest.NewRecorder()
		locked.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(`{"prompt":"x","tokens":[1]}`)))
		require.Equal(t, 401, w.Code)
	}
}

// TestCORS checks that pages of a configured origin can read responses, and others cannot.
func TestCORS(t *testing.T) {
	g := stubbed(t, 1, hello(), func(o *serve.Options) {
		o.Origins, o.Keys = []string{"https://chat.example"}, []serve.Key{{Secret: "sk"}}
	})
	defer g.Close()
	do := func(g http.Handler, method, origin, key string) *httptest.ResponseRecorder {
		t.Helper()
		r := request(t, apiCases[0], true)
		r.Method = method
		r.Header.Set("Origin", origin)
		r.Header.Set("Authorization", key)
		if method == http.MethodOptions {
			r.Header.Set("Access-Control-Request-Method", "POST")
			r.Header.Set("Access-Control-Request-Headers", "authorization,content-type")
		}
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		return w
	}
	w := do(g, http.MethodOptions, "https://chat.example", "")
	require.Equal(t, 204, w.Code)
	require.Equal(t, "https://chat.example", w.Header().Get("Access-Control-Allow-Origin"))
	require.Equal(t, "authorization,content-type", w.Header().Get("Access-Control-Allow-Headers"))
	require.Contains(t, w.Header().Get("Access-Control-Allow-Methods"), "POST")
	for key, want := range map[string]int{"Bearer sk": 200, "": 401} {
		w = do(g, http.MethodPost, "https://chat.example", key)
		require.Equal(t, want, w.Code)
		require.Equal(t, "https://chat.example", w.Header().Get("Access-Control-Allow-Origin"), "errors too")
		require.Contains(t, w.Header().Get("Access-Control-Expose-Headers"), "X-Request-Id")
		require.Equal(t, "Origin", w.Header().Get("Vary"))
		require.Empty(t, w.Header().Get("Access-Control-Allow-Credentials"))
	}
	w = do(g, http.MethodOptions, "https://evil.example", "")
	require.Equal(t, 405, w.Code)
	require.Empty(t, w.Header().Get("Access-Control-Allow-Origin"))
	w = do(g, http.MethodPost, "https://evil.example", "Bearer sk")
	require.Equal(t, 403, w.Code)
	require.Empty(t, w.Header().Get("Access-Control-Allow-Origin"))

	closed := stubbed(t, 1, hello(), nil)
	defer closed.Close()
	w = do(closed, http.MethodOptions, "https://chat.example", "")
	require.Equal(t, 405, w.Code)
	require.Empty(t, w.Header().Get("Access-Control-Allow-Origin"), "off by default")
	require.Empty(t, w.Header().Get("Vary"))
}
