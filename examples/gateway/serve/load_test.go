// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/wire"
)

// loadReply is the text that engines write for question n.
func loadReply(n string) string {
	return "Reply " + n + ": " + strings.Repeat("naïve "+n+" 🚀 words, ", 8)
}

// loadNumber finds the number of a question in a prompt.
var loadNumber = regexp.MustCompile(`question <([0-9]+)>`)

// A fault is what an engine does after some chunks of its reply. It returns true if the response is over.
type fault struct {
	name string
	do   func(w http.ResponseWriter, r *http.Request) (over bool)
}

// loadFaults are the ways in which half of the engines misbehave. The text that they send is right.
var loadFaults = func() []fault {
	line := func(name, data string) fault {
		return fault{name, func(w http.ResponseWriter, _ *http.Request) bool { io.WriteString(w, data); return false }}
	}
	last := func(name, data string) fault {
		return fault{name, func(w http.ResponseWriter, _ *http.Request) bool { io.WriteString(w, data); return true }}
	}
	return []fault{
		{"broken connection", func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }},
		{"silence", func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }},
		{"pause", func(http.ResponseWriter, *http.Request) bool { time.Sleep(50 * time.Millisecond); return false }},
		last("end without a finish reason", ""),
		last("[DONE] without a finish reason", "data: [DONE]\n\n"),
		last("half a chunk", `data: {"choices":[{"index":0,"te`),
		last("no JSON", "data: nonsense\n\n"),
		last("an array", "data: []\n\n"),
		last("a choice that was not asked for", `data: {"choices":[{"index":7,"text":"wrong","finish_reason":null}]}`+"\n\n"),
		last("a negative choice", `data: {"choices":[{"index":-1,"text":"wrong","finish_reason":null}]}`+"\n\n"),
		last("an error", `data: {"error":{"message":"out of memory","code":500}}`+"\n\ndata: [DONE]\n\n"),
		last("abort", `data: {"choices":[{"index":0,"text":"","finish_reason":"abort"}]}`+"\n\n"),
		last("a huge line", "data: "+strings.Repeat("x", 20<<20)+"\n\n"),
		last("text as a number", `data: {"choices":[{"index":0,"text":7,"finish_reason":null}]}`+"\n\n"),
		last("ids as text", `data: {"choices":[{"index":0,"text":"wrong","token_ids":"wrong","finish_reason":null}]}`+"\n\n"),
		line("comments", ": wait\n\n: wait\n\n"),
		line("an empty event", "data:\n\n"),
		line("no choices", `data: {"choices":[]}`+"\n\n"),
		line("null choices", `data: {"choices":null}`+"\n\n"),
		line("an empty delta", `data: {"choices":[{"index":0,"text":"","token_ids":[],"finish_reason":null}]}`+"\n\n"),
		line("early usage", `data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}`+"\n\n"),
		line("unknown fields", `data: {"choices":[],"never":{"heard":["of",1e99]}}`+"\n\n"),
		line("another event", "event: ping\ndata: {\"choices\":[]}\n\n"),
		line("CRLF", "data: {\"choices\":[]}\r\n\r\n"),
	}
}()

// loadHeads are responses that are wrong from the beginning.
var loadHeads = []func(w http.ResponseWriter){
	func(w http.ResponseWriter) { w.WriteHeader(500) },
	func(w http.ResponseWriter) { w.WriteHeader(502); io.WriteString(w, "<html>bad gateway</html>") },
	func(w http.ResponseWriter) { w.WriteHeader(503); io.WriteString(w, `{"error":{"message":"loading"}}`) },
	func(w http.ResponseWriter) { w.Header().Set("Retry-After", "99999999999999999999"); w.WriteHeader(429) },
	func(w http.ResponseWriter) { w.Header().Set("Location", "http://127.0.0.1:1/"); w.WriteHeader(307) },
	func(w http.ResponseWriter) { w.WriteHeader(404) },
	func(w http.ResponseWriter) { w.WriteHeader(401); io.WriteString(w, `{"error":{"message":"no key"}}`) },
	func(w http.ResponseWriter) { w.WriteHeader(204) },
	func(w http.ResponseWriter) { w.Header().Set("Content-Length", "1000"); io.WriteString(w, "data: ") },
	func(w http.ResponseWriter) { w.Header().Set("Content-Encoding", "gzip"); io.WriteString(w, "no gzip") },
	func(w http.ResponseWriter) { io.WriteString(w, "<html>hello</html>") },
	func(w http.ResponseWriter) { io.WriteString(w, `{"choices":[{"text":"wrong"}]}`) },
	func(w http.ResponseWriter) { panic(http.ErrAbortHandler) },
}

// loadEngine writes the replies, and misbehaves in half of its responses if it is bad.
func loadEngine(bad bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet { // a probe
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var req struct{ Prompt []uint32 }
		if err := json.Unmarshal(body, &req); err != nil {
			panic(err)
		}
		found := loadNumber.FindAllStringSubmatch(string(tok().AppendDecode(nil, req.Prompt, false)), -1)
		ids := tok().AppendEncode(nil, loadReply(found[len(found)-1][1]))
		var f *fault
		at := 0
		if bad && rand.IntN(2) == 0 {
			if k := rand.IntN(len(loadFaults) + len(loadHeads)); k >= len(loadFaults) {
				loadHeads[k-len(loadFaults)](w)
				return
			} else {
				f, at = &loadFaults[k], rand.IntN(len(ids))
			}
		}
		for i := 0; i < len(ids); i += 3 {
			if f != nil && i >= at {
				if f.do(w, r) {
					return
				}
				f = nil
			}
			piece := ids[i:min(i+3, len(ids))]
			list, _ := json.Marshal(piece)
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"text\":\"\",\"token_ids\":%s,\"finish_reason\":null}]}\n\n", list)
			if rand.IntN(8) == 0 {
				w.(http.Flusher).Flush()
			}
		}
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d}}\n\ndata: [DONE]\n\n", len(req.Prompt), len(ids))
	})
}

// TestLoad keeps many requests of the three APIs running while half of the engines misbehave and some clients leave: each
// response is the engine's text or, if it has an error, the beginning of it, and nothing hangs, leaks or grows. WEFT_LOAD is
// the duration, and 500 requests run at the same time; by default a second with 50.
func TestLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	lasts, streams := time.Second, 50
	if s := os.Getenv("WEFT_LOAD"); s != "" {
		d, err := time.ParseDuration(s)
		require.NoError(t, err)
		lasts, streams = d, 500
	}
	r := start(t, 0, nil, func(o *serve.Options) {
		o.EngineSilence, o.HealthInterval, o.OnDone = 3*time.Second, 200*time.Millisecond, nil
		o.MemoBytes = 16 << 20 // so that it is full soon
		for i := range 8 {
			s := httptest.NewServer(loadEngine(i%2 == 1))
			s.Config.ErrorLog = nil
			t.Cleanup(s.Close)
			o.Engines = append(o.Engines, serve.Engine{Name: fmt.Sprint("e", i), URL: s.URL, Kind: upstream.VLLM{}})
		}
	})
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: streams}}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	var number, whole, failed, left atomic.Int64
	var problem atomic.Pointer[string]
	one := func() error {
		n := fmt.Sprint(number.Add(1))
		a := apiCases[rand.IntN(len(apiCases))]
		api, err := wire.Lookup(a.path)
		if err != nil {
			return err
		}
		body, err := json.Marshal(a.body("question <"+n+">", rand.IntN(3) > 0))
		if err != nil {
			return err
		}
		rctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer stop()
		leaves := rand.IntN(10) == 0
		if leaves {
			time.AfterFunc(time.Duration(rand.IntN(20))*time.Millisecond, stop)
		}
		req, err := http.NewRequestWithContext(rctx, http.MethodPost, r.url+a.path, bytes.NewReader(body))
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err == nil {
			defer resp.Body.Close()
		}
		if leaves && (err != nil || rctx.Err() != nil) {
			left.Add(1)
			return nil
		}
		switch {
		case err != nil:
			return err
		case resp.StatusCode >= 500:
			failed.Add(1)
			_, err := io.Copy(io.Discard, resp.Body)
			return err
		case resp.StatusCode != 200:
			text, _ := io.ReadAll(resp.Body)
			return fmt.Errorf("%s: HTTP %d: %s", a.name, resp.StatusCode, text)
		}
		var got event.Collector
		for ev, err := range api.Events(resp.Body, nil) {
			if err != nil {
				if leaves && rctx.Err() != nil {
					left.Add(1)
					return nil
				}
				return err
			}
			got.Add(ev)
		}
		text := ""
		if len(got.Answers) > 0 {
			text = got.Answers[0].Text()
		}
		want := loadReply(n)
		switch {
		case got.Err != event.None && strings.HasPrefix(want, text):
			if leaves && rctx.Err() != nil {
				left.Add(1)
			} else {
				failed.Add(1)
			}
		case got.Err == event.None && text == want && got.Answers[0].Finish == event.Stop:
			whole.Add(1)
		default:
			return fmt.Errorf("%s: wrong response to %s: %q (error %v, finish %v)", a.name, n, text, got.Err, got.Answers)
		}
		return nil
	}
	var first runtime.MemStats
	var once sync.Once
	begun := time.Now()
	var wg sync.WaitGroup
	for range streams {
		wg.Go(func() {
			for ctx.Err() == nil && problem.Load() == nil {
				if err := one(); err != nil {
					text := err.Error()
					if errors.Is(err, context.DeadlineExceeded) {
						text = "a request hangs: " + text
					}
					problem.CompareAndSwap(nil, &text)
				}
				if time.Since(begun) > lasts/4 {
					once.Do(func() { runtime.GC(); runtime.ReadMemStats(&first) })
				}
			}
		})
	}
	wg.Wait()
	if p := problem.Load(); p != nil {
		t.Fatal(*p)
	}
	var last runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&last)
	t.Logf("%d requests: %d complete, %d failed, %d left by their clients; heap %d MB at a quarter, %d MB at the end",
		number.Load(), whole.Load(), failed.Load(), left.Load(), first.HeapAlloc>>20, last.HeapAlloc>>20)
	require.Less(t, last.HeapAlloc, first.HeapAlloc+64<<20, "memory is flat")
	require.Greater(t, whole.Load(), failed.Load())
	require.Positive(t, failed.Load()+left.Load())
	s := r.gateway.Status("")
	require.Zero(t, s.Waiting)
	for deadline := time.Now().Add(5 * time.Second); s.Running > 0 && time.Now().Before(deadline); s = r.gateway.Status("") {
		time.Sleep(10 * time.Millisecond)
	}
	require.Zero(t, s.Running)
}
