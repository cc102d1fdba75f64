// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/gateway/serve"
)

// codings compresses bodies as clients do: Codex sends zstd when it is told to.
var codings = map[string]func(w io.Writer) (io.WriteCloser, error){
	"gzip": func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
	"zstd": func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) },
}

func TestCompressedBodies(t *testing.T) {
	r := start(t, 1, say("Hello."), func(o *serve.Options) { o.MaxBody = 20_000 })
	post := func(a apiCase, coding string, body []byte) (int, string) {
		var packed bytes.Buffer
		z, err := codings[coding](&packed)
		require.NoError(t, err)
		_, err = z.Write(body)
		require.NoError(t, err)
		require.NoError(t, z.Close())
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+a.path, &packed)
		require.NoError(t, err)
		req.Header.Set("Content-Encoding", coding)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		out, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(out)
	}
	for coding := range codings {
		for _, a := range apiCases {
			t.Run(coding+"/"+a.name, func(t *testing.T) {
				body, err := json.Marshal(a.body("x", true))
				require.NoError(t, err)
				status, out := post(a, coding, body)
				require.Equal(t, 200, status, out)
				require.Equal(t, "Hello.", a.gather(t, out).Text)

				// A bomb: 50 MB of blanks in a few kilobytes.
				status, out = post(a, coding, []byte(strings.Repeat(" ", 50<<20)))
				tooLarge := "invalid_request_error"
				if a.anthropic {
					tooLarge = "request_too_large"
				}
				a.wantError(t, status, out, 413, tooLarge, "20000")
			})
		}
	}
}
