// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/gateway/serve"
)

// lateReader is an HTTP client that fails the first attempt of each request, and responds to the second one, after half
// of the body. It reads and closes bodies later than that, as clients may.
type lateReader struct {
	t  *testing.T
	mu sync.Mutex

	failed *http.Request // the first attempt of a request
	bodies []lateBody
}

type lateBody struct {
	io.ReadCloser
	length int64
	front  string
	copy   io.ReadCloser // from GetBody
}

func (l *lateReader) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	again, err := r.GetBody()
	require.NoError(l.t, err)
	front := make([]byte, r.ContentLength/2)
	_, err = io.ReadFull(r.Body, front)
	require.NoError(l.t, err)
	if l.failed == nil {
		l.failed = r
		return &http.Response{StatusCode: http.StatusTooManyRequests, Body: http.NoBody, Request: r}, nil
	}
	rest, err := io.ReadAll(l.failed.Body)
	require.NoError(l.t, err)
	whole, err := l.failed.GetBody()
	require.NoError(l.t, err)
	require.True(l.t, strings.HasSuffix(string(must(io.ReadAll(whole))), string(rest)))
	require.EqualValues(l.t, l.failed.ContentLength, len(rest)+int(l.failed.ContentLength/2), "of the body of the first attempt")
	l.failed = nil
	l.bodies = append(l.bodies, lateBody{r.Body, r.ContentLength, string(front), again})
	const stream = `data: {"choices":[{"index":0,"text":"Done","finish_reason":"stop","stop_reason":null}]}` + "\n\ndata: [DONE]\n\n"
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(stream)), Request: r}, nil
}

// TestEngineBodyMemory checks that bodies do not change when the ids of the next prompt are written after the ids that they share.
func TestEngineBodyMemory(t *testing.T) {
	late := &lateReader{t: t}
	g, err := serve.New(&serve.Options{
		Model: "m", Prompts: hermesModel(), Engines: []serve.Engine{{Name: "a", URL: "http://a.invalid"}, {Name: "b", URL: "http://b.invalid"}},
		Transport: late,
	})
	require.NoError(t, err)
	defer g.Close()
	const n = 10
	messages := `{"role":"user","content":"` + strings.Repeat("again ", 50) + `"}`
	for i := range n {
		body := fmt.Sprintf(`{"model":"m","max_tokens":%d,"messages":[%s]}`, 100+i, messages)
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body)))
		require.Equal(t, http.StatusOK, w.Code, w.Body.String())
		messages += `,{"role":"assistant","content":"Done"},{"role":"user","content":"more"}`
	}
	var last []uint32
	for i, b := range late.bodies {
		rest, err := io.ReadAll(b)
		require.NoError(t, err)
		require.NoError(t, b.Close())
		for _, text := range []string{b.front + string(rest), string(must(io.ReadAll(b.copy)))} {
			var got struct {
				Prompt    []uint32
				MaxTokens int `json:"max_tokens"`
			}
			require.NoError(t, json.Unmarshal([]byte(text), &got))
			require.Equal(t, 100+i, got.MaxTokens)
			require.EqualValues(t, b.length, len(text))
			require.GreaterOrEqual(t, len(got.Prompt), len(last))
			last = got.Prompt
		}
		require.NoError(t, b.copy.Close())
	}
	require.Len(t, late.bodies, n)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestAnthropicVersion checks what a request with the API version of October 2026 must not have, and that citations that no
// engine makes are named as dropped.
func TestAnthropicVersion(t *testing.T) {
	g := stubbed(t, 1, hello(), nil)
	defer g.Close()
	document := `"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"d"}}]},{"role":"user","content":"y"}]`
	const cited = `"messages":[{"role":"user","content":[{"type":"text","text":"x","citations":[{"type":"char_location","cited_text":"x","document_index":0,"document_title":null,"start_char_index":0,"end_char_index":1}]}]}]`
	const sources = `"messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"d"},"citations":{"enabled":true}},{"type":"text","text":"x","citations":null}]},` +
		`{"role":"assistant","content":[{"type":"text","text":"d","citations":[{"type":"char_location","cited_text":"d"}]},{"type":"tool_use","id":"c","name":"f","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"search_result","title":"t","source":"s","content":[{"type":"text","text":"r"}],"citations":{"enabled":true}}]},` +
		`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"d"},"citations":{"enabled":false}}]}]`
	dropped := map[string]string{cited: "messages[0].content[0].citations", sources: "messages[0].content[0].citations, messages[2].content[0].content[0].citations"}
	for _, version := range []string{"", "2023-06-01", "latest", "2026-10-21", "2027-01-01"} {
		want := map[bool]int{true: 400, false: 200}[version > "2026" && version < "3"]
		for fields, status := range map[string]int{
			`"messages":[{"role":"user","content":"x"}]`:                    200,
			`"messages":[{"role":"user","content":"x"}],"temperature":null`: 200,
			`"messages":[{"role":"user","content":"x"}],"temperature":1`:    want,
			`"messages":[{"role":"user","content":"x"}],"top_p":0.9`:        want,
			`"messages":[{"role":"user","content":"x"}],"top_k":5`:          want,
			document: want,
			cited:    want,
			sources:  200,
		} {
			r := httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(`{"model":"m","max_tokens":9,`+fields+`}`))
			if version != "" {
				r.Header.Set("Anthropic-Version", version)
			}
			w := httptest.NewRecorder()
			g.ServeHTTP(w, r)
			require.Equal(t, status, w.Code, "%s %s: %s", version, fields, w.Body)
			if status == 200 {
				require.Equal(t, dropped[fields], w.Header().Get("X-Weft-Dropped"))
			}
		}
	}
}
