// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
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
		last("a negative id", `data: {"choices":[{"index":0,"text":"wrong","token_ids":[-1],"finish_reason":null}]}`+"\n\n"),
		last("deep JSON", "data: "+strings.Repeat("[", 1<<20)+"\n\n"),
		last("more output than was asked for", strings.Repeat(`data: {"choices":[{"index":0,"text":"","token_ids":[],"finish_reason":null}]}`+"\n\n", 1<<13)),
		{"comments without end", func(w http.ResponseWriter, r *http.Request) bool {
			for r.Context().Err() == nil {
				io.WriteString(w, ": wait\n\n")
				w.(http.Flusher).Flush()
				time.Sleep(20 * time.Millisecond)
			}
			return true
		}},
		{"a broken chunk of HTTP", func(w http.ResponseWriter, _ *http.Request) bool {
			w.(http.Flusher).Flush()
			hijack(w, "zz\r\nwrong\r\n")
			return true
		}},
		line("an id outside the vocabulary", `data: {"choices":[{"index":0,"text":"","token_ids":[4294967295],"finish_reason":null}]}`+"\n\n"),
		line("absurd usage", `data: {"choices":[],"usage":`+absurd+"}\n\n"),
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
	func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"error":{"message":"out of memory","code":500}}`)
	},
	func(w http.ResponseWriter) { hijack(w, "HTTP/1.1 200 OK\r\nContent-Ty") },
	func(w http.ResponseWriter) {
		hijack(w, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\nwrong")
	},
	func(w http.ResponseWriter) {
		hijack(w, strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n", 1000))
	},
	func(w http.ResponseWriter) { w.Header().Set("X-Long", loadLong) },
	func(w http.ResponseWriter) { w.WriteHeader(999) },
}

// loadStyles are unusual forms of responses, with which they are right.
var loadStyles = []func(w http.ResponseWriter) http.ResponseWriter{
	func(w http.ResponseWriter) http.ResponseWriter { return trickle{w} },
	func(w http.ResponseWriter) http.ResponseWriter { w.WriteHeader(http.StatusEarlyHints); return w },
	func(w http.ResponseWriter) http.ResponseWriter { w.Header().Set("Content-Type", "text/html"); return w },
	func(w http.ResponseWriter) http.ResponseWriter { w.Header().Set("Connection", "close"); return w },
}

// loadEnds are what follows the reply, instead of usage and [DONE]. The response is right.
var loadEnds = []string{
	"",
	"data: [DONE]\n\ndata: " + wrongText + "\n\n",
	"data: " + wrongText + "\n\ndata: [DONE]\n\n",
	`data: {"choices":[{"index":0,"text":"","finish_reason":"length"}]}` + "\n\ndata: [DONE]\n\n",
	`data: {"error":{"message":"out of memory","code":500}}` + "\n\n",
	`data: {"choices":[],"usage":` + absurd + "}\n\ndata: [DONE]\n\n",
	"data: nonsense\n\n",
}

const (
	wrongText = `{"choices":[{"index":0,"text":"wrong","token_ids":[87],"finish_reason":null}]}`
	absurd    = `{"prompt_tokens":-1,"completion_tokens":9223372036854775807,"prompt_tokens_details":{"cached_tokens":-7}}`
)

// loadLong is longer than the header that Go's client reads.
var loadLong = strings.Repeat("x", 11<<20)

// trickle writes each byte of a response by itself.
type trickle struct{ http.ResponseWriter }

func (t trickle) Write(b []byte) (int, error) {
	for i := range b {
		if _, err := t.ResponseWriter.Write(b[i : i+1]); err != nil {
			return i, err
		}
		t.Flush()
	}
	return len(b), nil
}

func (t trickle) Flush() { t.ResponseWriter.(http.Flusher).Flush() }

// hijack writes text to the connection of a response and resets it.
func hijack(w http.ResponseWriter, text string) {
	c, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	defer c.Close()
	io.WriteString(c, text)
	time.Sleep(time.Millisecond) // a reset discards what was not read
	c.(*net.TCPConn).SetLinger(0)
}

// loadTurns numbers the responses that are wrong.
var loadTurns atomic.Int64

// loadEngine writes the replies, and misbehaves in half of its responses if it is bad, in each way in turn.
func loadEngine(bad bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet { // a probe; it does not tell what it serves
			w.WriteHeader(map[bool]int{true: 200, false: 404}[r.URL.Path == "/health"])
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
		end := fmt.Sprintf("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d}}\n\ndata: [DONE]\n\n", len(req.Prompt), len(ids))
		if bad && rand.IntN(2) == 0 {
			k := int(loadTurns.Add(1)) % (len(loadFaults) + len(loadHeads) + len(loadStyles) + len(loadEnds))
			if k < len(loadFaults) {
				f, at = &loadFaults[k], rand.IntN(len(ids))
			} else if k -= len(loadFaults); k < len(loadHeads) {
				loadHeads[k](w)
				return
			} else if k -= len(loadHeads); k < len(loadStyles) {
				w = loadStyles[k](w)
			} else {
				end = loadEnds[k-len(loadStyles)]
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
		io.WriteString(w, `data: {"choices":[{"index":0,"text":"","finish_reason":"stop"}]}`+"\n\n"+end)
	})
}

// maxLoadMB is the memory that the program may have at the end of the long run of TestLoad: the caches and the requests, twice.
// Some minutes later, it may have restMB.
const (
	maxLoadMB = 450
	restMB    = 80
)

// A program is the gateway as a process of its own.
type program struct {
	*exec.Cmd
	url string
}

// startProgram builds the program and starts it in front of engines.
func startProgram(t *testing.T, engines []serve.Engine) *program {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "gateway")
	out, err := exec.Command("go", "build", "-o", binary, "github.com/weft-go/weft/examples/gateway").CombinedOutput()
	require.NoError(t, err, "%s", out)
	args := []string{"-listen", "127.0.0.1:0", "-model", "m", "-tool-call-parser", "hermes", "-max-per-address", "-1", "-log-level", "warn",
		"-memo-mb", "16", "-engine-silence", "3", "-health-interval", "0.2", "-grace", "5"}
	for _, e := range engines {
		args = append(args, "-engine", "vllm="+e.URL)
	}
	p := &program{Cmd: exec.Command(binary, args...)}
	stdout, err := p.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	t.Cleanup(func() { p.Process.Kill() })
	lines := bufio.NewScanner(stdout)
	for p.url == "" && lines.Scan() { // it prints its address for clients
		p.url = regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+`).FindString(lines.Text())
	}
	require.NotEmpty(t, p.url)
	go io.Copy(io.Discard, stdout)
	return p
}

// rss returns the memory of the process in MB of 10^6 bytes, and its maximum.
func (p *program) rss(t *testing.T) (now, most int64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	require.NoError(t, err)
	value := func(name string) int64 {
		m := regexp.MustCompile(name + `:\s+([0-9]+) kB`).FindSubmatch(text)
		require.NotNil(t, m, name)
		kb, err := strconv.ParseInt(string(m[1]), 10, 64)
		require.NoError(t, err)
		return kb * 1024 / 1e6
	}
	return value("VmRSS"), value("VmHWM")
}

// end checks that the process exits within its grace and the time of Server.Shutdown, although clients do not read.
func (p *program) end(t *testing.T) {
	t.Helper()
	for range 20 {
		c, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
		require.NoError(t, err)
		defer c.Close()
		fmt.Fprintf(c, "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
	}
	begun := time.Now()
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.NoError(t, p.Wait())
	t.Logf("exited after %v", time.Since(begun))
	require.Less(t, time.Since(begun), 15*time.Second)
}

// TestLoad keeps many requests of the three APIs running while half of the engines misbehave and some clients leave: each
// response is the engine's text or, if it has an error, the beginning of it, and nothing hangs, leaks or grows. By default, 50
// requests at the same time run for a second. If WEFT_LOAD is a duration, 500 run for it through the program as a process,
// which must end within its grace. All prompts differ, so that the caches are full at the end: 64 MiB of tokens, and 16 MiB
// of conversations. The garbage collector lets the heap become twice as large.
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
	var engines []serve.Engine
	for i := range 8 {
		s := httptest.NewServer(loadEngine(i%2 == 1))
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		t.Cleanup(s.Close)
		engines = append(engines, serve.Engine{Name: fmt.Sprint("e", i), URL: s.URL, Kind: upstream.VLLM{}})
	}
	var gateway *rig
	var process *program
	var url string
	if os.Getenv("WEFT_LOAD") != "" {
		process = startProgram(t, engines)
		url = process.url
		idle, _ := process.rss(t)
		t.Logf("%d MB idle", idle)
	} else {
		gateway = start(t, 0, nil, func(o *serve.Options) {
			o.Engines, o.EngineSilence, o.HealthInterval, o.OnDone = engines, 3*time.Second, 200*time.Millisecond, nil
			o.MemoBytes = 16 << 20 // so that it is full soon
		})
		url = gateway.url
	}
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
		req, err := http.NewRequestWithContext(rctx, http.MethodPost, url+a.path, bytes.NewReader(body))
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
		u := got.Usage
		switch {
		case u.Cached < 0 || u.Cached > u.Prompt || u.Output < 0 || u.Output > 1000:
			return fmt.Errorf("%s: wrong usage: %+v", a.name, u)
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
	var first, last int64 // memory at half and at the end of the time
	memory := func() (mb int64) {
		if process != nil {
			mb, _ = process.rss(t)
			return mb
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc / 1e6)
	}
	half := time.AfterFunc(lasts/2, func() { first = memory() })
	defer half.Stop()
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
			}
		})
	}
	wg.Wait()
	if p := problem.Load(); p != nil {
		t.Fatal(*p)
	}
	last = memory()
	t.Logf("%d requests: %d complete, %d failed, %d left by their clients; %d MB at half, %d MB at the end",
		number.Load(), whole.Load(), failed.Load(), left.Load(), first, last)
	require.Less(t, last, first+64, "memory is flat")
	require.Greater(t, whole.Load(), failed.Load())
	require.Positive(t, failed.Load()+left.Load())
	if process != nil {
		_, most := process.rss(t)
		client.CloseIdleConnections()
		ended := time.Now()
		rest := last
		for rest > restMB && time.Since(ended) < 10*time.Minute { // predictions take 5 minutes, and the runtime's next collection 2
			time.Sleep(5 * time.Second)
			rest, _ = process.rss(t)
		}
		t.Logf("%d MB at most, %d MB %v after", most, rest, time.Since(ended).Round(time.Second))
		require.LessOrEqual(t, rest, int64(restMB))
		process.end(t)
		require.Less(t, last, int64(maxLoadMB))
		return
	}
	s := gateway.gateway.Status("")
	require.Zero(t, s.Waiting)
	for deadline := time.Now().Add(5 * time.Second); s.Running > 0 && time.Now().Before(deadline); s = gateway.gateway.Status("") {
		time.Sleep(10 * time.Millisecond)
	}
	require.Zero(t, s.Running)
}
