// SPDX-License-Identifier: Apache-2.0

//go:build unix

package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/router/zmq"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// A liveVLLM is a real vLLM. WEFT_LIVE_VLLM is the script that runs it, .ci/live, and WEFT_LIVE_DIR its directory.
type liveVLLM struct {
	t      *testing.T
	args   []string
	url    string
	cancel func()
}

const (
	liveBlock  = 32 // tokens
	liveWindow = 32768
)

// start starts the engine and waits until it is ready.
func (v *liveVLLM) start() {
	v.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, os.Getenv("WEFT_LIVE_VLLM"), append([]string{"serve"}, v.args...)...)
	log, err := os.Create(filepath.Join(os.Getenv("WEFT_LIVE_DIR"), "vllm-"+strings.ReplaceAll(v.t.Name(), "/", "-")+".log"))
	require.NoError(v.t, err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a vLLM that is killed does not end its EngineCore
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	require.NoError(v.t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cmd.Wait()
	}()
	v.cancel = func() { cancel(); <-ended }
	v.t.Cleanup(v.cancel)
	for until := time.Now().Add(5 * time.Minute); time.Now().Before(until); time.Sleep(time.Second) {
		resp, err := http.Get(v.url + "/health")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-ended:
			v.t.Skipf("SKIPPED: vLLM does not start; see %s", log.Name())
		default:
		}
	}
	v.t.Skipf("SKIPPED: vLLM was not ready in 5 minutes; see %s", log.Name())
}

// freePort returns a port of this machine that was free.
func freePort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}

// TestLiveVLLM sends conversations over the three APIs to a real vLLM whose events the gateway follows, and compares
// the number of cached tokens that the index has before a request with the number that the engine reports for it.
func TestLiveVLLM(t *testing.T) {
	if os.Getenv("WEFT_LIVE_VLLM") == "" {
		t.Skip("needs a vLLM (run .ci/live)")
	}
	t.Run("ipc with a restart", func(t *testing.T) {
		events, replay := "ipc://"+filepath.Join(t.TempDir(), "events"), "ipc://"+filepath.Join(t.TempDir(), "replay")
		port := freePort(t)
		v := &liveVLLM{t: t, args: []string{port, events, replay, "0"}, url: "http://127.0.0.1:" + port}
		converse(t, v, events, replay, true)
	})
	t.Run("tcp with evictions", func(t *testing.T) {
		// vLLM connects to such an address of events.
		events, replay := "tcp://127.0.0.1:"+freePort(t), "tcp://127.0.0.1:"+freePort(t)
		port := freePort(t)
		v := &liveVLLM{t: t, args: []string{port, events, replay, "1100"}, url: "http://127.0.0.1:" + port}
		converse(t, v, "@"+events, replay, false)
	})
}

func converse(t *testing.T, v *liveVLLM, events, replay string, restart bool) {
	v.start()
	prompts, err := prompt.Load(os.DirFS(filepath.Join(os.Getenv("WEFT_LIVE_DIR"), "model")), &prompt.Options{Name: "tiny", Window: liveWindow, Family: "hermes"})
	require.NoError(t, err)
	records := make(chan serve.Record, 1)
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	g, err := serve.New(&serve.Options{
		Model: "tiny", Prompts: prompts, BlockSize: liveBlock, Logger: log, OnDone: func(r serve.Record) { records <- r },
		Engines: []serve.Engine{{URL: v.url, Copies: true, Events: func(s *index.Stream) (func(), error) {
			sub, err := zmq.Subscribe(events, s, zmq.Replay(replay), zmq.Logger(log))
			if err != nil {
				return nil, err
			}
			return func() { sub.Close() }, nil
		}}},
	})
	require.NoError(t, err)
	defer g.Close()
	s := httptest.NewServer(g)
	defer s.Close()

	total, equal, exact, cached := 0, 0, 0, int64(0)
	ask := func(path string, body map[string]any) (reply string) {
		time.Sleep(300 * time.Millisecond) // the events of the last request arrive
		b, err := json.Marshal(body)
		require.NoError(t, err)
		resp, err := http.Post(s.URL+path, "application/json", bytes.NewReader(b))
		require.NoError(t, err)
		defer resp.Body.Close()
		out, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, resp.StatusCode, "%s", out)
		r := <-records
		require.False(t, r.Usage.CachedEstimated, "the engine reports cached tokens")
		// vLLM computes the last token of a prompt, and therefore its block, again.
		n := min(r.Decision.CachedEstimate, int(r.Usage.Prompt)-1) / liveBlock * liveBlock
		total++
		cached += r.Usage.Cached
		if r.Decision.State == index.Exact {
			exact++
		}
		if int64(n) == r.Usage.Cached {
			equal++
		} else {
			t.Logf("request %d, %s, %d tokens: index %d (%s), engine %d", total, path, r.Usage.Prompt, n, r.Decision.Why(), r.Usage.Cached)
		}
		return string(out)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	words := func(n int) string {
		var b strings.Builder
		for range n {
			fmt.Fprintf(&b, "%x ", rnd.Uint32N(1<<16))
		}
		return b.String()
	}
	systems := []string{"You are terse.", words(400), words(1500)}
	text := func(out string, key string) string { // of the reply, wherever the API has it
		_, rest, _ := strings.Cut(out, `"`+key+`":"`)
		end := strings.Index(rest, `"`)
		return rest[:max(0, end)]
	}
	for i := range 12 {
		if restart && i == 6 {
			v.cancel()
			v.start()
			time.Sleep(12 * time.Second) // until the subscription has connected again
		}
		path := []string{"/v1/chat/completions", "/v1/messages", "/v1/responses"}[i%3]
		system := systems[rnd.IntN(len(systems))]
		var turns []map[string]any
		for range 1 + rnd.IntN(5) {
			turns = append(turns, map[string]any{"role": "user", "content": words(1 + rnd.IntN(300))})
			body := map[string]any{"model": "tiny", "stream": rnd.IntN(2) == 0}
			key := "content"
			switch path {
			case "/v1/messages":
				body["system"], body["messages"], body["max_tokens"] = system, turns, 16
				key = "text"
			case "/v1/responses":
				body["instructions"], body["input"], body["max_output_tokens"] = system, turns, 16
				key = "text"
			default:
				body["messages"], body["max_tokens"] = append([]map[string]any{{"role": "system", "content": system}}, turns...), 16
			}
			out := ask(path, body)
			if rnd.IntN(3) == 0 {
				ask(path, body) // again: the whole prompt is cached
			}
			turns = append(slices.Clip(turns), map[string]any{"role": "assistant", "content": "reply " + text(out, key)})
		}
	}
	t.Logf("%s: %d requests, %d tokens cached: index = engine in %d, exact in %d", t.Name(), total, cached, equal, exact)
	require.Equal(t, total, equal)
	require.GreaterOrEqual(t, exact, total-2, "all but the first of an engine, which has sent nothing")
	require.Positive(t, cached)
}
