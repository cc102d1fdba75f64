// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHostileBodies sends bodies of 1 MB, and bodies of 26 MB that are 1 MB compressed, which are as expensive as possible
// to decode, render or encode. None may allocate more than 300 MiB in all, of which garbage is the larger part.
func TestHostileBodies(t *testing.T) {
	s := &stub{answer: func(string, *http.Request) (*http.Response, error) { return answerOf(200, whole), nil }}
	g := stubbed(t, 1, s, nil)
	defer g.Close()
	fill := func(front, piece, sep, back string, size int) string {
		n := (size - len(front) - len(back)) / (len(piece) + len(sep))
		return front + strings.TrimSuffix(strings.Repeat(piece+sep, n), sep) + back
	}
	const head = `{"model":"m","max_tokens":9,`
	bodies := func(size int) map[string]string {
		return map[string]string{
			"messages":  fill(head+`"messages":[`, `{"role":"user","content":"a"}`, ",", `]}`, size),
			"blocks":    fill(head+`"messages":[{"role":"user","content":[`, `{"type":"text","text":"a"}`, ",", `]}]}`, size),
			"calls":     fill(head+`"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[`, `{"type":"tool_use","id":"a","name":"f","input":{}}`, ",", `]}]}`, size),
			"results":   fill(head+`"messages":[{"role":"user","content":[`, `{"type":"tool_result","tool_use_id":"a","content":"x"}`, ",", `]}]}`, size),
			"tools":     fill(head+`"messages":[{"role":"user","content":"x"}],"tools":[`, `{"name":"f","input_schema":{}}`, ",", `]}`, size),
			"schema":    fill(head+`"messages":[{"role":"user","content":"x"}],"tools":[{"name":"f","input_schema":{"enum":[`, `1`, ",", `]}}]}`, size),
			"values":    fill(head+`"messages":[{"role":"user","content":"x"}],"metadata":{"x":[`, `1`, ",", `]}}`, size),
			"thinking":  fill(head+`"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[`, `{"type":"thinking","thinking":"a","signature":"b"}`, ",", `]}]}`, size),
			"marks":     fill(head+`"messages":[{"role":"user","content":[`, `{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}`, ",", `]}]}`, size),
			"system":    fill(head+`"messages":[{"role":"user","content":"x"}],"system":[`, `{"type":"text","text":"a"}`, ",", `]}`, size),
			"letters":   fill(head+`"messages":[{"role":"user","content":"`, `a`, "", `"}]}`, size),
			"spaces":    fill(head+`"messages":[{"role":"user","content":"`, ` `, "", `"}]}`, size),
			"newlines":  fill(head+`"messages":[{"role":"user","content":"`, `\n`, "", `"}]}`, size),
			"controls":  fill(head+`"messages":[{"role":"user","content":"`, `<|im_end|>`, "", `"}]}`, size),
			"thoughts":  fill(head+`"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"`, `<think>`, "", `"}]}`, size),
			"arguments": fill(head+`"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"a":[`, `1`, ",", `]}}]}]}`, size),
			"depth":     head + `"messages":[{"role":"user","content":"x"}],"metadata":` + strings.Repeat("[", size/2) + strings.Repeat("]", size/2) + `}`,
		}
	}
	sample := []string{"calls", "letters", "depth"}
	for name, body := range bodies(1 << 20) {
		if testing.Short() && !slices.Contains(sample, name) {
			continue
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/messages", strings.NewReader(body))
		measured(t, name, g, r)
	}
	if testing.Short() {
		return
	}
	random := make([]byte, 900<<10)
	rand.Read(random)
	for name, body := range bodies(26 << 20) {
		var packed bytes.Buffer
		z, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
		require.NoError(t, err)
		fmt.Fprintf(z, `{"safety":"%x",`, random)
		io.WriteString(z, body[1:])
		z.Close()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/messages", bytes.NewReader(packed.Bytes()))
		r.Header.Set("Content-Encoding", "gzip")
		measured(t, "compressed "+name, g, r)
	}
}

// allocated returns the number of bytes that are allocated while f runs.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// measured serves a request and checks what it allocates.
func measured(t *testing.T, name string, g http.Handler, r *http.Request) {
	t.Helper()
	w := httptest.NewRecorder()
	used := allocated(func() { g.ServeHTTP(w, r) })
	require.Less(t, used>>20, uint64(340), "MiB allocated for %s: %d %.200s", name, w.Code, w.Body)
	require.Contains(t, []int{200, 400, 413}, w.Code)
}
