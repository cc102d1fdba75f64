// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/gateway/serve"
)

// codings compresses bodies as clients do. Codex can send zstd.
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

				// A decompression bomb: 1 MB of spaces in a few kilobytes.
				status, out = post(a, coding, []byte(strings.Repeat(" ", 1<<20)))
				tooLarge := "invalid_request_error"
				if a.anthropic {
					tooLarge = "request_too_large"
				}
				a.wantError(t, status, out, 413, tooLarge, "20000")
			})
		}
	}
}

// talk writes a raw request to the gateway, closes the sending side of the connection if half is set, and reads the
// response. The gateway must then close the connection.
func (r *rig) talk(t testing.TB, request string, half bool) (*http.Response, string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	_, err = io.WriteString(conn, request)
	require.NoError(t, err)
	if half {
		require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	}
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	_, err = in.ReadByte()
	require.ErrorIs(t, err, io.EOF)
	return resp, string(body)
}

// post returns a request whose Content-Length exceeds its body.
func post(path, body string, missing int, header string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n%s\r\n%s", path, len(body)+missing, header, body)
}

// TestHalfClosed checks that a client that closes its sending side gets an error and not an empty response with status
// 200. A server cannot distinguish it from one that disconnected.
func TestHalfClosed(t *testing.T) {
	r := start(t, 1, func(vllm.Prompt) vllm.Reply { return vllm.Reply{Text: "one", Fail: vllm.Failure{Mode: vllm.Stall}} }, nil)
	for _, a := range apiCases {
		for _, stream := range []bool{true, false} {
			body, err := json.Marshal(a.body("go", stream))
			require.NoError(t, err)
			resp, text := r.talk(t, post(a.path, string(body), 0, ""), true)
			a.wantError(t, resp.StatusCode, text, 499, "invalid_request_error", "canceled by its caller")
			for _, rec := range r.done(t, 0) { // none if the server noticed the end before the prompt was rendered
				require.Equal(t, "canceled", rec.Finish)
			}

			resp, text = r.talk(t, post(a.path, string(body), 10, ""), true)
			a.wantError(t, resp.StatusCode, text, 400, "invalid_request_error", "ends too early")
			for _, coding := range []string{"gzip", "zstd"} {
				resp, text = r.talk(t, post(a.path, "", 10, "Content-Encoding: "+coding+"\r\n"), true)
				a.wantError(t, resp.StatusCode, text, 400, "invalid_request_error", "ends too early")
			}
		}
		resp, text := r.talk(t, post(a.path, `{"model":"nobody","max_tokens":9,"input":"x","messages":[{"role":"user","content":"x"}]}`, 0, ""), true)
		require.Equal(t, 404, resp.StatusCode, text)
	}
}

// TestBodyTimeout checks that a connection is closed if its body does not arrive, whether or not a handler reads it,
// and that long responses are not affected.
func TestBodyTimeout(t *testing.T) {
	r := start(t, 1, say("one two three"), func(o *serve.Options) { o.BodyTimeout = 50 * time.Millisecond })
	for _, a := range apiCases {
		for _, coding := range []string{"", "Content-Encoding: gzip\r\n", "Content-Encoding: zstd\r\n"} {
			for _, begun := range []string{"", `{"model":`} {
				if begun != "" && coding != "" {
					continue
				}
				resp, text := r.talk(t, post(a.path, begun, 10, coding), false)
				a.wantError(t, resp.StatusCode, text, 408, "invalid_request_error", "too long to arrive")
			}
		}
		resp, _ := r.talk(t, post(a.path, "", 10, "Content-Encoding: br\r\n"), false)
		require.Equal(t, 415, resp.StatusCode)
		resp, _ = r.talk(t, strings.Replace(post(a.path, "", 10, ""), "POST", "PUT", 1), false)
		require.Equal(t, 405, resp.StatusCode)
	}
	resp, _ := r.talk(t, post("/v1/moderations", "", 10, ""), false)
	require.Equal(t, 404, resp.StatusCode)

	slow := start(t, 0, nil, func(o *serve.Options) {
		o.BodyTimeout = 50 * time.Millisecond
		o.Engines = []serve.Engine{{URL: engineOf(t, func(w http.ResponseWriter) {
			time.Sleep(150 * time.Millisecond)
			fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"text\":\"late\",\"finish_reason\":\"stop\"}]}\n\n")
		})}}
	})
	for _, a := range apiCases {
		for range 2 { // on the same connection
			_, _, text := send(t, slow.url+a.path, a.body("go", true))
			require.Equal(t, "late", a.gather(t, text).Text)
			time.Sleep(60 * time.Millisecond)
		}
	}
}
