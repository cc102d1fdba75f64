// SPDX-License-Identifier: Apache-2.0

//go:build unix

package serve_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
	"github.com/weft-go/weft/parsers/family"
	"github.com/weft-go/weft/router/zmq"
	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/mini"
	"github.com/weft-go/weft/tokenizers/prompt"
	"github.com/weft-go/weft/tokenizers/template"
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
		g := startGateway(t, "ipc://"+filepath.Join(t.TempDir(), "events"), "ipc://"+filepath.Join(t.TempDir(), "replay"), "0", tiny(t))
		g.converse(true, false)
	})
	t.Run("tcp with evictions and salts", func(t *testing.T) {
		g := startGateway(t, "tcp://127.0.0.1:"+freePort(t), "tcp://127.0.0.1:"+freePort(t), "1100", tiny(t))
		g.evaluate() // not with an adapter: vLLM 0.32 fails then
		g.converse(false, true)
	})
	t.Run("with an adapter", func(t *testing.T) {
		dir := filepath.Join(os.Getenv("WEFT_LIVE_DIR"), "adapter")
		writeAdapter(t, dir)
		g := startGateway(t, "tcp://127.0.0.1:"+freePort(t), "tcp://127.0.0.1:"+freePort(t), "0", tiny(t),
			"--enable-lora", "--lora-modules", "sql="+dir, "--max-lora-rank", "8")
		g.models = []string{"tiny", "sql"}
		g.converse(false, true)
	})
	// Constraints hold from the first token there, which a reasoning parser would prevent with /v1/completions.
	t.Run("token ids with a reasoning parser", func(t *testing.T) {
		g := startGateway(t, "tcp://127.0.0.1:"+freePort(t), "tcp://127.0.0.1:"+freePort(t), "0", tiny(t), "--enable-scale-out", "--reasoning-parser", "qwen3")
		require.IsType(t, upstream.VLLMTokens{}, g.kind)
		g.evaluate()
		g.converse(false, true)
		t.Logf("%d forced calls", startCalls(t, g.kind, g.engine.url, tiny(t).prompts).force(t))
	})
	// The engine has less than its events tell, until they are read again.
	t.Run("removals that are lost", func(t *testing.T) {
		events, replay := "tcp://127.0.0.1:"+freePort(t), "tcp://127.0.0.1:"+freePort(t)
		model := tiny(t)
		var subscriptions atomic.Int64
		g := newGateway(t, startEngine(t, events, replay, "1100", model), model, func(o *serve.Options) {
			o.HealthInterval = 200 * time.Millisecond
			o.Engines[0].Events = func(s *index.Stream) (func(), error) {
				if to := s; subscriptions.Add(1) == 1 {
					x := index.New(liveBlock, nil)
					s = x.NewStream(x.AddWorker(index.Key{}), &index.StreamOptions{OnBatch: func(b *kvevent.Batch) {
						kept := *b
						kept.Events = slices.DeleteFunc(slices.Clone(b.Events), func(e kvevent.Event) bool { return e.Kind == kvevent.Removed })
						to.Add(kept)
					}})
				}
				sub, err := zmq.Subscribe("@"+events, s, zmq.Replay(replay), zmq.Logger(o.Logger))
				if err != nil {
					return nil, err
				}
				return func() { sub.Close() }, nil
			}
		})
		var prompts []string
		for range 24 { // more than the cache holds
			prompts = append(prompts, g.words(700))
		}
		wrong := 0
		for i := 0; subscriptions.Load() == 1; i++ {
			require.Less(t, i, 3*len(prompts), "the events are never read again")
			_, r := g.send(livePaths[0], g.body(livePaths[0], prompts[i%len(prompts)], []map[string]any{{"role": "user", "content": "go"}}))
			if r.CacheExcess < 0 {
				wrong++
			}
		}
		t.Logf("read again after %d requests of which the engine had less", wrong)
		require.GreaterOrEqual(t, wrong, 5)
		time.Sleep(3 * time.Second)
		g.converse(false, false)
	})
	t.Run("gpt-oss", func(t *testing.T) {
		g := startGateway(t, "tcp://127.0.0.1:"+freePort(t), "tcp://127.0.0.1:"+freePort(t), "0", tinyGPTOSS(t))
		g.converse(false, false)
	})
}

// A liveModel is a model directory and what the gateway makes of it.
type liveModel struct {
	dir     string
	prompts *prompt.Model
}

// tiny returns the model that .ci/live makes.
func tiny(t *testing.T) liveModel {
	dir := filepath.Join(os.Getenv("WEFT_LIVE_DIR"), "model")
	prompts, err := prompt.Load(os.DirFS(dir), &prompt.Options{Name: "tiny", Window: liveWindow, Family: "hermes"})
	require.NoError(t, err)
	return liveModel{dir, prompts}
}

// tinyGPTOSS returns a model with the layers of gpt-oss, every second one with a sliding window of 128 tokens.
func tinyGPTOSS(t *testing.T) liveModel {
	file := filepath.Join(os.Getenv("WEFT_TEMPLATES"), "openai-gpt-oss-120b.jinja")
	source, err := os.ReadFile(file)
	if err != nil {
		t.Skip("needs the template of gpt-oss (run .ci/live)")
	}
	dir := filepath.Join(os.Getenv("WEFT_LIVE_DIR"), "gpt-oss")
	writeMarkers(t, dir, []string{file})
	config := readJSON(t, filepath.Join(dir, "config.json"))
	maps.Copy(config, map[string]any{
		"architectures": []string{"GptOssForCausalLM"}, "model_type": "gpt_oss", "layer_types": []string{"sliding_attention", "full_attention"},
		"sliding_window": 128, "num_local_experts": 4, "num_experts_per_tok": 2, "experts_per_token": 2,
		"router_aux_loss_coef": 0.9, "attention_bias": true, "rope_theta": 150000, "tie_word_embeddings": false,
	})
	writeJSON(t, filepath.Join(dir, "config.json"), config)
	tokenizer, err := tokenizers.Load(os.DirFS(dir), nil)
	require.NoError(t, err)
	parsed, err := template.Parse("gpt-oss", string(source), nil)
	require.NoError(t, err)
	prompts, err := prompt.New(parsed, &prompt.Options{Tokenizer: tokenizer, Name: "tiny", Window: liveWindow, Family: "harmony"})
	require.NoError(t, err)
	return liveModel{dir, prompts}
}

// writeAdapter writes a LoRA adapter with random weights for the model of .ci/live.
func writeAdapter(t *testing.T, dir string) {
	require.NoError(t, os.MkdirAll(dir, 0o700))
	writeJSON(t, filepath.Join(dir, "adapter_config.json"), map[string]any{
		"peft_type": "LORA", "r": 8, "lora_alpha": 16, "target_modules": []string{"q_proj", "v_proj"}, "task_type": "CAUSAL_LM", "bias": "none",
	})
	header := map[string]any{}
	var data []byte
	rnd := rand.New(rand.NewPCG(3, 4))
	for layer := range 2 {
		for name, rows := range map[string]int{"q_proj": 128, "v_proj": 64} {
			for part, shape := range map[string][2]int{"lora_A": {8, 64}, "lora_B": {rows, 8}} {
				begin := len(data)
				for range shape[0] * shape[1] {
					data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(rnd.NormFloat64())))
				}
				header[fmt.Sprintf("base_model.model.model.layers.%d.self_attn.%s.%s.weight", layer, name, part)] =
					map[string]any{"dtype": "F32", "shape": shape, "data_offsets": [2]int{begin, len(data)}}
			}
		}
	}
	head, err := json.Marshal(header)
	require.NoError(t, err)
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head...)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "adapter_model.safetensors"), append(file, data...), 0o600))
}

// A liveGateway is a gateway in front of a vLLM.
type liveGateway struct {
	t       *testing.T
	models  []string // names for the conversations in turn
	engine  *liveVLLM
	kind    upstream.Kind // as the engine was found
	url     string
	records chan serve.Record
	rnd     *rand.Rand

	total, equal, exact int
	cached              int64
}

// startEngine starts a vLLM that sends events to an address, with a number of cache blocks ("0": many). It connects to
// an address with tcp:// and binds one with ipc://.
func startEngine(t *testing.T, events, replay, blocks string, model liveModel, options ...string) *liveVLLM {
	port := freePort(t)
	v := &liveVLLM{t: t, args: append([]string{port, events, replay, blocks, model.dir}, options...), url: "http://127.0.0.1:" + port}
	v.start()
	return v
}

// newGateway returns a gateway in front of an engine.
func newGateway(t *testing.T, v *liveVLLM, model liveModel, set func(*serve.Options)) *liveGateway {
	engine, err := upstream.Ask(t.Context(), v.url, "")
	require.NoError(t, err)
	l := &liveGateway{t: t, models: []string{"tiny"}, engine: v, kind: engine.Kind, records: make(chan serve.Record, 1), rnd: rand.New(rand.NewPCG(1, 2))}
	o := &serve.Options{
		Model: "tiny", Prompts: model.prompts, BlockSize: liveBlock, OnDone: func(r serve.Record) { l.records <- r },
		Engines: []serve.Engine{{URL: v.url, Copies: true, Kind: engine.Kind, Adapters: []string{"sql"}}},
		Logger:  slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	if set != nil {
		set(o)
	}
	g, err := serve.New(o)
	require.NoError(t, err)
	t.Cleanup(func() { g.Close() })
	s := httptest.NewServer(g)
	t.Cleanup(s.Close)
	l.url = s.URL
	return l
}

// startGateway starts a vLLM and a gateway that follows its events.
func startGateway(t *testing.T, events, replay, blocks string, model liveModel, options ...string) *liveGateway {
	v := startEngine(t, events, replay, blocks, model, options...)
	if strings.HasPrefix(events, "tcp:") {
		events = "@" + events
	}
	return newGateway(t, v, model, func(o *serve.Options) {
		o.Engines[0].Events = func(s *index.Stream) (func(), error) {
			sub, err := zmq.Subscribe(events, s, zmq.Replay(replay), zmq.Logger(o.Logger))
			if err != nil {
				return nil, err
			}
			return func() { sub.Close() }, nil
		}
	})
}

// send sends a request and returns the response and what the gateway recorded.
func (l *liveGateway) send(path string, body map[string]any) (string, serve.Record) {
	time.Sleep(300 * time.Millisecond) // the events of the last request arrive
	b, err := json.Marshal(body)
	require.NoError(l.t, err)
	resp, err := http.Post(l.url+path, "application/json", bytes.NewReader(b))
	require.NoError(l.t, err)
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	require.NoError(l.t, err)
	require.Equal(l.t, http.StatusOK, resp.StatusCode, "%s", out)
	return string(out), <-l.records
}

// ask sends a request and compares the index with the engine.
func (l *liveGateway) ask(path string, body map[string]any) string {
	out, r := l.send(path, body)
	require.False(l.t, r.Usage.CachedEstimated, "the engine reports cached tokens")
	// vLLM computes the last token of a prompt, and therefore its block, again.
	n := min(r.Decision.CachedEstimate, int(r.Usage.Prompt)-1) / liveBlock * liveBlock
	l.total++
	l.cached += r.Usage.Cached
	if r.Decision.CachedEstimate == 0 || r.Decision.State() == index.Exact { // without blocks there is no state
		l.exact++
	}
	if int64(n) == r.Usage.Cached {
		l.equal++
	} else {
		l.t.Logf("request %d, %s, %d tokens: index %d (%s), engine %d", l.total, path, r.Usage.Prompt, n, r.Decision.Why(), r.Usage.Cached)
	}
	return out
}

func (l *liveGateway) words(n int) string {
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, "%x ", l.rnd.Uint32N(1<<16))
	}
	return b.String()
}

var livePaths = []string{"/v1/chat/completions", "/v1/messages", "/v1/responses"}

// body returns a request with a system text and turns, of at most 16 tokens of output.
func (l *liveGateway) body(path, system string, turns []map[string]any) map[string]any {
	switch path {
	case "/v1/messages":
		return map[string]any{"model": "tiny", "system": system, "messages": turns, "max_tokens": 16}
	case "/v1/responses":
		return map[string]any{"model": "tiny", "instructions": system, "input": turns, "max_output_tokens": 16}
	default:
		return map[string]any{"model": "tiny", "messages": append([]map[string]any{{"role": "system", "content": system}}, turns...), "max_tokens": 16}
	}
}

// converse sends twelve conversations. Restart kills the engine after half of them; salts separates some from the others.
func (l *liveGateway) converse(restart, salts bool) {
	t, rnd := l.t, l.rnd
	systems := []string{"You are terse.", l.words(400), l.words(1500)}
	for i := range 12 {
		if restart && i == 6 {
			l.engine.cancel()
			l.engine.start()
			time.Sleep(12 * time.Second) // until the subscription has connected again
		}
		path := livePaths[i%3]
		key := map[bool]string{true: "content", false: "text"}[path == "/v1/chat/completions"]
		system := systems[rnd.IntN(len(systems))]
		var turns []map[string]any
		for range 1 + rnd.IntN(5) {
			turns = append(turns, map[string]any{"role": "user", "content": l.words(1 + rnd.IntN(300))})
			body := l.body(path, system, turns)
			body["stream"], body["model"] = rnd.IntN(2) == 0, l.models[i%len(l.models)]
			if salts && i%4 != 0 {
				body["cache_salt"] = []string{"one", "two"}[i%2]
			}
			out := l.ask(path, body)
			if rnd.IntN(3) == 0 {
				l.ask(path, body) // again: the whole prompt is cached
			}
			_, rest, _ := strings.Cut(out, `"`+key+`":"`) // wherever the API has the text
			turns = append(slices.Clip(turns), map[string]any{"role": "assistant", "content": "reply " + rest[:max(0, strings.Index(rest, `"`))]})
		}
	}
	t.Logf("%s: %d requests, %d tokens cached: index = engine in %d, exact in %d", t.Name(), l.total, l.cached, l.equal, l.exact)
	require.Equal(t, l.total, l.equal)
	require.Equal(t, l.total, l.exact)
	require.Positive(t, l.cached)
}

// evaluate asks for the log probabilities of prompts, as harnesses that evaluate models do, and compares them with those that
// clients of the engine get.
func (l *liveGateway) evaluate() {
	t, compared := l.t, 0
	for _, path := range []string{`[[5,6,7,8],[9,10,11,12,13,14]]`, `["one two three","four five"]`} {
		for _, most := range []int{0, 1, 3} {
			body := fmt.Sprintf(`{"model":"tiny","prompt":%s,"echo":true,"max_tokens":%d,"logprobs":1,"temperature":0,"seed":1}`, path, most)
			if most == 0 {
				body = strings.Replace(body, `"logprobs":1,`, "", 1)
			}
			var got, want struct {
				Choices []struct {
					Index    int
					Text     string
					Logprobs *struct {
						Tokens []string
						Values []*float64           `json:"token_logprobs"`
						Top    []map[string]float64 `json:"top_logprobs"`
					}
				}
			}
			done := make(chan bool)
			go func() {
				for range 2 {
					<-l.records
				}
				close(done)
			}()
			texts := map[string]string{}
			for url, to := range map[string]any{l.url: &got, l.engine.url: &want} {
				resp, err := http.Post(url+"/v1/completions", "application/json", strings.NewReader(body))
				require.NoError(t, err)
				text, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				require.NoError(t, err)
				require.Equal(t, http.StatusOK, resp.StatusCode, "%s", text)
				texts[url] = string(text)
				require.NoError(t, json.Unmarshal(text, to))
			}
			<-done
			require.Len(t, got.Choices, 2)
			for i, w := range want.Choices {
				g := got.Choices[i]
				require.Equal(t, w.Index, g.Index)
				if most == 0 {
					require.Equal(t, w.Text, g.Text)
					continue
				}
				require.Len(t, g.Logprobs.Values, len(w.Logprobs.Values), "%v", texts)
				require.Equal(t, len(g.Logprobs.Values), len(g.Logprobs.Top))
				for k, v := range w.Logprobs.Values {
					require.Equal(t, v == nil, g.Logprobs.Values[k] == nil)
					if v != nil {
						require.InDelta(t, *v, *g.Logprobs.Values[k], 0.01)
						require.Len(t, g.Logprobs.Top[k], 1)
						compared++
					}
				}
			}
		}
	}
	t.Logf("%d log probabilities of prompts and output are the engine's", compared)
}

// TestLiveVLLMHeaders sends prompts of about 16,000 tokens to a real vLLM, each with a header that differs from the one
// before, and compares the time to the first token if the gateway leaves the header where it is with the time if it does not.
func TestLiveVLLMHeaders(t *testing.T) {
	if os.Getenv("WEFT_LIVE_VLLM") == "" {
		t.Skip("needs a vLLM (run .ci/live)")
	}
	model := tiny(t)
	v := startEngine(t, "tcp://127.0.0.1:"+freePort(t), "tcp://127.0.0.1:"+freePort(t), "0", model)
	gateways := []*liveGateway{
		newGateway(t, v, model, nil),
		newGateway(t, v, model, func(o *serve.Options) { o.Relocate = true }),
	}
	headers := []struct{ harness, format string }{
		{"Claude Code", "x-anthropic-billing-header: cc_version=2.1.330.%03x; cc_entrypoint=cli; cch=%[1]x;\n"},
		{"Claude Code 1, OpenCode", "<env>\nWorking directory: /home/u/%x\nPlatform: linux\n</env>\n"},
		{"OpenClaw, pi", "Current date: 2026-11-%x\n"},
		{"Codex", "- `r0` = `/home/u/%x/skills`\n"},
	}
	for _, h := range headers {
		for _, path := range livePaths {
			filler := gateways[0].words(4500)
			var medians [2]time.Duration
			var tokens, cached [2]int64
			for i, g := range gateways {
				var times []time.Duration
				for k := range 4 {
					body := g.body(path, fmt.Sprintf(h.format, g.rnd.Uint32N(1<<12))+filler, []map[string]any{{"role": "user", "content": "go"}})
					body["stream"] = true
					if _, r := g.send(path, body); k > 0 { // the first one has nothing to find
						times = append(times, r.FirstByte-r.Queued)
						tokens[i], cached[i] = r.Usage.Prompt, r.Usage.Cached
					}
				}
				slices.Sort(times)
				medians[i] = times[1]
			}
			ratio := float64(medians[0]) / float64(medians[1])
			t.Logf("%-24s %-22s %d tokens, cached %d kept, %d moved: first token after %v and %v, %.0f ×", h.harness, path, tokens[1], cached[0], cached[1], medians[0].Round(time.Millisecond), medians[1].Round(time.Millisecond), ratio)
			require.Greater(t, cached[1], tokens[1]-200)
			require.Less(t, cached[0], int64(200))
			require.Greater(t, ratio, 20.0)
		}
	}
}

// evalTasks are tasks of lm-eval, with the documents in evalDocs.
var evalTasks = map[string]string{
	"choice": `output_type: multiple_choice
doc_to_text: "{{q}}"
doc_to_choice: "{{choices}}"
doc_to_target: 0
target_delimiter: ""
metric_list: [{metric: acc}]`,
	"rolling": `output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{q * 300}}"
metric_list: [{metric: bits_per_byte}]`,
	"generate": `output_type: generate_until
doc_to_text: "{{q}}"
doc_to_target: "x"
generation_kwargs: {until: ["\n\n", "zzz"], max_gen_toks: 24, temperature: 0, do_sample: false}
metric_list: [{metric: exact_match}]`,
}

const evalDocs = `{"q": "The capital of Norway is", "choices": [" Oslo", " Bergen and more words"]}
{"q": "def add(a, b):\n    return", "choices": [" a + b", " a - b"]}
{"q": "naïve 🚀", "choices": [" café", " 猫"]}
`

// TestLiveVLLMEval has lm-eval evaluate a vLLM and a gateway in front of it: each log probability and each text is the same.
// WEFT_LIVE_LMEVAL is a virtual environment that has it.
func TestLiveVLLMEval(t *testing.T) {
	program := filepath.Join(os.Getenv("WEFT_LIVE_LMEVAL"), "bin", "lm-eval")
	if _, err := os.Stat(program); err != nil || os.Getenv("WEFT_LIVE_VLLM") == "" {
		t.Skip("set WEFT_LIVE_LMEVAL, or run .ci/live vllm")
	}
	model := tiny(t)
	v := startEngine(t, "tcp://127.0.0.1:"+freePort(t), "tcp://127.0.0.1:"+freePort(t), "0", model)
	g := newGateway(t, v, model, func(o *serve.Options) { o.OnDone = nil })
	dir := t.TempDir()
	docs := filepath.Join(dir, "docs.jsonl")
	require.NoError(t, os.WriteFile(docs, []byte(evalDocs), 0o600))
	for name, task := range evalTasks {
		task = fmt.Sprintf("task: %s\ndataset_path: json\ndataset_kwargs: {data_files: {test: %q}}\ntest_split: test\n%s\n", name, docs, task)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(task), 0o600))
	}
	evaluate := func(kind, endpoint, options, tasks string, args ...string) (samples []string) {
		t.Helper()
		out := t.TempDir()
		cmd := exec.CommandContext(t.Context(), program, append([]string{"run", "--model", kind, "--tasks", tasks, "--include_path", dir, "--output_path", out, "--log_samples",
			"--model_args", "model=tiny,max_retries=1,base_url=" + endpoint + options}, args...)...)
		cmd.Env = append(os.Environ(), "HF_HUB_OFFLINE=1", "HF_DATASETS_CACHE="+out, "OPENAI_API_KEY=x")
		log, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", log)
		files, err := filepath.Glob(filepath.Join(out, "*", "samples_*.jsonl"))
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for line := range strings.Lines(string(text)) {
				var s struct {
					ID    int             `json:"doc_id"`
					Resps json.RawMessage `json:"resps"`
				}
				require.NoError(t, json.Unmarshal([]byte(line), &s))
				samples = append(samples, fmt.Sprint(strings.SplitAfter(filepath.Base(file), "_")[1], s.ID, string(s.Resps)))
			}
		}
		slices.Sort(samples)
		return samples
	}
	for _, o := range []struct{ model, batch string }{{"", "1"}, {",tokenized_requests=False", "4"}} { // token ids; several texts
		options := ",max_length=2048,num_concurrent=2,tokenizer_backend=huggingface,tokenizer=" + model.dir + o.model
		direct := evaluate("local-completions", v.url+"/v1/completions", options, "choice,rolling,generate", "--batch_size", o.batch)
		require.Len(t, direct, 9)
		require.Equal(t, direct, evaluate("local-completions", g.url+"/v1/completions", options, "choice,rolling,generate", "--batch_size", o.batch))
	}
	require.Len(t, evaluate("local-chat-completions", g.url+"/v1/chat/completions", "", "generate", "--apply_chat_template"), 3) // vLLM has no template
}

// TestLiveVLLMConstraints demands calls of a real vLLM, whose model without weights writes random tokens where it may, and
// checks that every response is calls with valid arguments and nothing else: 24 for each API and each family of which
// WEFT_TEMPLATES has a template.
func TestLiveVLLMConstraints(t *testing.T) {
	if os.Getenv("WEFT_LIVE_VLLM") == "" || os.Getenv("WEFT_TEMPLATES") == "" {
		t.Skip("needs a vLLM and templates (run .ci/live)")
	}
	files, err := filepath.Glob(filepath.Join(os.Getenv("WEFT_TEMPLATES"), "*.jinja"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	dir := filepath.Join(os.Getenv("WEFT_LIVE_DIR"), "constraints")
	writeMarkers(t, dir, files)
	port := freePort(t)
	v := &liveVLLM{t: t, args: []string{port, "tcp://127.0.0.1:" + freePort(t), "tcp://127.0.0.1:" + freePort(t), "0", dir}, url: "http://127.0.0.1:" + port}
	v.start()
	forceFamilies(t, upstream.VLLM{}, v.url, dir, files)
}

// forceFamilies forces calls for each family of which there is a template. The tokenizer of the engine is in dir.
func forceFamilies(t *testing.T, kind upstream.Kind, url, dir string, files []string) {
	tokenizer, err := tokenizers.Load(os.DirFS(dir), nil)
	require.NoError(t, err)
	data, err := fs.ReadFile(mini.FS(), "tokenizer.json")
	require.NoError(t, err)
	small := fstest.MapFS{"tokenizer.json": &fstest.MapFile{Data: data}}
	done, strict := map[string]int{}, map[string]int{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jinja")
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		var model *prompt.Model
		parsed, err := template.Parse(name, string(source), &template.Options{Variables: map[string]any{"bos_token": "<|endoftext|>", "eos_token": "<|im_end|>"}})
		if err == nil { // Load infers the family, but would find the markers of harmony in the large vocabulary
			small["chat_template.jinja"] = &fstest.MapFile{Data: source}
			model, err = prompt.Load(small, &prompt.Options{Name: name})
		}
		if err == nil {
			model, err = prompt.New(parsed, &prompt.Options{Tokenizer: tokenizer, Name: name, Window: liveWindow, Family: model.Family()})
		}
		if err == nil && model.Family() == "" {
			err = errors.New("no family")
		}
		if err != nil {
			t.Logf("%s: %v", name, err)
			continue
		}
		if done[model.Family()] == 0 {
			t.Run(name, func(t *testing.T) { done[model.Family()] += startCalls(t, kind, url, model).force(t) })
			t.Run(name+" strict", func(t *testing.T) { strict[model.Family()] += startCalls(t, kind, url, model).permit(t) })
		}
	}
	families, calling := 0, 0
	for _, f := range slices.Sorted(maps.Keys(done)) {
		t.Logf("%-28s %d responses with forced calls, %d with calls of strict tools", f, done[f], strict[f])
		families += min(done[f], 1)
		calling += min(strict[f], 1)
	}
	require.GreaterOrEqual(t, families, 20)
	require.GreaterOrEqual(t, calling, 20)
}

var templateMarkers = regexp.MustCompile(`<\|[^|<>\s]{1,40}\|>|<｜[^｜\s]{1,40}｜>|\[/?[A-Z_]{3,20}\]`)

// writeMarkers writes the model of TestLiveVLLM to the directory dir, with the markers of all families and templates as
// tokens.
func writeMarkers(t *testing.T, dir string, templates []string) {
	from := filepath.Join(os.Getenv("WEFT_LIVE_DIR"), "model")
	read := func(name string) map[string]any { return readJSON(t, filepath.Join(from, name)) }
	write := func(name string, value any) { writeJSON(t, filepath.Join(dir, name), value) }
	require.NoError(t, os.MkdirAll(dir, 0o700))
	tokenizer, config := read("tokenizer.json"), read("config.json")
	config["vocab_size"] = addMarkers(t, tokenizer, templates)/64*64 + 64
	write("tokenizer.json", tokenizer)
	write("config.json", config)
	write("tokenizer_config.json", read("tokenizer_config.json"))
}

// addMarkers adds the markers of all families and templates to a tokenizer, and returns the number of its tokens.
func addMarkers(t *testing.T, tokenizer map[string]any, templates []string) (next int64) {
	added := tokenizer["added_tokens"].([]any)
	known := map[string]bool{}
	for _, a := range added {
		known[a.(map[string]any)["content"].(string)] = true
		id, err := a.(map[string]any)["id"].(json.Number).Int64()
		require.NoError(t, err)
		next = max(next, id+1)
	}
	add := func(text string) {
		if !known[text] {
			known[text] = true
			added = append(added, map[string]any{"id": next, "content": text, "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false})
			next++
		}
	}
	for _, g := range family.All() {
		for _, m := range g.Markers() {
			if m.Token {
				add(m.Text)
			}
		}
	}
	for _, file := range templates {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range templateMarkers.FindAllString(string(source), -1) {
			add(m)
		}
	}
	tokenizer["added_tokens"] = added
	return next
}

func readJSON(t *testing.T, file string) (out map[string]any) {
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	require.NoError(t, dec.Decode(&out))
	return out
}

func writeJSON(t *testing.T, file string, value any) {
	data, err := json.Marshal(value)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, data, 0o600))
}

// liveDemands are requests with tools, for each API. Each tool has a place for the field strict.
var liveDemands = func() map[string]liveDemand {
	const schema = `{"type":"object","properties":{"mode":{"type":"string","enum":["read","write"]},"count":{"type":"integer","minimum":0,"maximum":99},` +
		`"tags":{"type":"array","items":{"enum":["a","b"]},"maxItems":3},"deep":{"type":"boolean"}},"required":["mode","count"],"additionalProperties":false}`
	const none = `{"type":"object","properties":{},"additionalProperties":false}`
	return map[string]liveDemand{
		"/v1/chat/completions": {
			`"messages":[{"role":"user","content":"x"}],"max_tokens":400,"tools":[{"type":"function","function":{"name":"open_file","strict":STRICT,"description":"opens","parameters":` + schema + `}},{"type":"function","function":{"name":"now","strict":STRICT,"description":"tells","parameters":` + none + `}}]`,
			[]string{`"tool_choice":"required"`, `"tool_choice":{"type":"function","function":{"name":"open_file"}}`, `"tool_choice":"required","parallel_tool_calls":false`},
			`"content":"[^"]`,
		},
		"/v1/responses": {
			`"input":"x","max_output_tokens":400,"tools":[{"type":"function","name":"open_file","strict":STRICT,"description":"opens","parameters":` + schema + `},{"type":"function","name":"now","strict":STRICT,"description":"tells","parameters":` + none + `}]`,
			[]string{`"tool_choice":"required"`, `"tool_choice":{"type":"function","name":"open_file"}`, `"tool_choice":"required","parallel_tool_calls":false`},
			`output_text`,
		},
		"/v1/messages": {
			`"messages":[{"role":"user","content":"x"}],"max_tokens":400,"tools":[{"name":"open_file","strict":STRICT,"description":"opens","input_schema":` + schema + `},{"name":"now","strict":STRICT,"description":"tells","input_schema":` + none + `}]`,
			[]string{`"tool_choice":{"type":"any"}`, `"tool_choice":{"type":"tool","name":"open_file"}`, `"tool_choice":{"type":"any","disable_parallel_tool_use":true}`},
			`"type":"text"`,
		},
	}
}()

type liveDemand struct {
	fields  string
	choices []string
	text    string // matches a response with visible text
}

// liveCalls makes a model call tools.
type liveCalls struct {
	kind    upstream.Kind
	model   *prompt.Model
	url     string
	calls   []serve.ToolCall // of the last response
	records chan serve.Record
}

// startCalls starts a gateway in front of an engine, which ends with the test.
func startCalls(t *testing.T, kind upstream.Kind, engine string, model *prompt.Model) *liveCalls {
	l := &liveCalls{kind: kind, model: model, records: make(chan serve.Record, 1)}
	g, err := serve.New(&serve.Options{
		Model: "tiny", Prompts: l.model, BlockSize: liveBlock, Engines: []serve.Engine{{URL: engine, Kind: l.kind}},
		OnToolCall: func(_ context.Context, c serve.ToolCall) { l.calls = append(l.calls, c) },
		OnDone:     func(r serve.Record) { l.records <- r },
		Logger:     slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	require.NoError(t, err)
	t.Cleanup(g.Close)
	s := httptest.NewServer(g)
	t.Cleanup(s.Close)
	l.url = s.URL
	return l
}

// bias returns the logit_bias with which markers are likely: random tokens would hardly ever end reasoning, and hardly ever
// begin a call.
func (l *liveCalls) bias(call bool) map[string]int {
	bias := map[string]int{}
	own, weight := call, 20
	if l.kind == (upstream.LlamaCPP{}) { // which is slow where the best token is not the one that a grammar permits
		own, weight = true, 6
	}
	for _, g := range family.All() {
		if own && !slices.Contains(strings.Split(l.model.Family(), "+"), g.Name) {
			continue
		}
		for _, m := range g.Markers() {
			if id, ok := l.model.Tokenizer().TokenID(m.Text); ok {
				bias[fmt.Sprint(id)] = weight
			}
		}
	}
	return bias
}

// send sends a request and returns the response.
func (l *liveCalls) send(t *testing.T, path string, stream bool, bias map[string]int, fields string) (*http.Response, string, serve.Record) {
	weights, err := json.Marshal(bias)
	require.NoError(t, err)
	l.calls = nil
	resp, err := http.Post(l.url+path, "application/json", strings.NewReader(fmt.Sprintf(`{"model":"tiny","temperature":1,"stream":%t,"logit_bias":%s,%s}`, stream, weights, fields)))
	require.NoError(t, err)
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	if resp.StatusCode == http.StatusBadRequest { // no form of calls, or a template that needs variables
		t.Skipf("%s: %s", l.model.Family(), out)
	}
	require.Equal(t, http.StatusOK, resp.StatusCode, "%s", out)
	return resp, string(out), <-l.records
}

// permit sends requests with strict tools over each API, and returns the number of responses with calls. Half of them make
// the model call a tool, in the others it writes text. It skips a model whose calls cannot be told from text.
func (l *liveCalls) permit(t *testing.T) (n int) {
	each := 8
	if l.kind == (upstream.LlamaCPP{}) { // which is faster, and calls less often with its smaller bias
		each = 24
	}
	for path, d := range liveDemands {
		called, spoke := 0, 0
		for i := range each {
			bias := map[string]int{}
			if i%2 == 0 {
				bias = l.bias(true)
			}
			resp, out, r := l.send(t, path, i%4 < 2, bias, strings.Replace(strings.ReplaceAll(d.fields, "STRICT", "true"), "400", "150", 1))
			if dropped := resp.Header.Get("X-Weft-Dropped"); dropped != "" {
				t.Skipf("%s: without effect: %s", l.model.Family(), dropped)
			}
			about := fmt.Sprintf("%s %s\n%s", l.model.Family(), path, out)
			require.Contains(t, []string{"stop", "length"}, r.Finish, about)
			l.check(t, "", about)
			called += min(len(l.calls), 1)
			if regexp.MustCompile(d.text).MatchString(out) {
				spoke++
			}
		}
		t.Logf("%-12s %-22s %d of %d with calls, %d with text", l.model.Family(), path, called, each, spoke)
		n += called
	}
	return n
}

// check checks the arguments of the calls.
func (l *liveCalls) check(t *testing.T, choice, about string) {
	for _, c := range l.calls {
		if c.Name == "now" && !strings.Contains(choice, "open_file") {
			require.JSONEq(t, "{}", cmp.Or(strings.TrimSpace(c.Arguments), "{}"), about)
			continue
		}
		require.Equal(t, "open_file", c.Name, about)
		var args struct {
			Mode  string
			Count *int
			Tags  []string
			Deep  *bool
		}
		dec := json.NewDecoder(strings.NewReader(c.Arguments))
		dec.DisallowUnknownFields()
		require.NoError(t, dec.Decode(&args), about)
		require.True(t, (args.Mode == "read" || args.Mode == "write") && args.Count != nil && *args.Count >= 0 && *args.Count <= 99, about)
	}
}

// force sends 24 requests that demand calls over each API, and returns their number. It skips a model of which calls
// cannot be forced.
func (l *liveCalls) force(t *testing.T) (n int) {
	bias := l.bias(false)
	for path, d := range liveDemands {
		for i, done := 0, 0; done < 24; i++ {
			if i == 36 || i == 6 && done == 0 {
				t.Skipf("%s: random tokens do not end", l.model.Family())
			}
			choice := d.choices[i%len(d.choices)]
			_, out, r := l.send(t, path, i%2 == 0, bias, strings.ReplaceAll(d.fields, "STRICT", "false")+","+choice)
			about := fmt.Sprintf("%s %s %s\n%s", l.model.Family(), path, choice, out)
			if r.Finish == "length" {
				continue // random tokens ended neither the reasoning nor the series of calls
			}
			require.Contains(t, []string{"stop", "tool_calls"}, r.Finish, about) // of the engine, or of the decoder
			done++
			require.NotRegexp(t, d.text, out, about)
			require.NotEmpty(t, l.calls, about)
			if strings.Contains(choice, "parallel") {
				require.Len(t, l.calls, 1, about)
			}
			l.check(t, choice, about)
			n++
		}
	}
	return n
}
