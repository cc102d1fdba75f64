// SPDX-License-Identifier: Apache-2.0

//go:build unix

package serve_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/router"
	"github.com/weft-go/weft/router/policy"
	"github.com/weft-go/weft/router/zmq"
	"github.com/weft-go/weft/tokenizers/mini"
)

// TestLiveDynamo sends the same requests of coding agents, at the same times, to Dynamo's simulated engines: placed by
// Dynamo's router, which follows their caches, and placed by ours. Dynamo's frontend forwards them in both runs, so that
// only the decision differs. It compares how many prompt tokens were cached and the times to the first token.
func TestLiveDynamo(t *testing.T) {
	python := os.Getenv("WEFT_DYNAMO_PYTHON")
	if python == "" {
		t.Skip("needs Dynamo (run .ci/live)")
	}
	kinds := []struct {
		name string
		args []string
	}{
		{"Dynamo, default", []string{"kv"}},
		{"Dynamo, prefill weight 16", []string{"kv", "--router-prefill-load-scale", "16"}},
		{"weft", []string{"direct"}},
	}
	runs := make([]agentRun, len(kinds))
	for seed := range uint64(2) {
		for i, k := range kinds {
			d := startDynamo(t, python, k.args...)
			var place placer
			if k.name == "weft" {
				place = d.router(t)
			}
			run := d.play(t, seed, place)
			d.stop()
			t.Logf("seed %d: %-26s %v", seed, k.name, run)
			runs[i] = append(runs[i], run...)
		}
	}
	weft := runs[len(runs)-1]
	for i, k := range kinds {
		t.Logf("together: %-26s %v", k.name, runs[i])
		require.GreaterOrEqual(t, weft.hitRate(), runs[i].hitRate()-0.005, k.name)
		require.LessOrEqual(t, weft.mean().Seconds(), 1.02*runs[i].mean().Seconds(), k.name)
	}
}

const (
	dynamoWorkers = 4
	dynamoBlock   = 16 // tokens
)

// A liveDynamo is a frontend of Dynamo over simulated engines, each of which computes 2,000 tokens in about 100 ms.
type liveDynamo struct {
	url       string
	instances []string // ids of the engines, in the order of their event ports
	ports     []string
	processes []*exec.Cmd
}

func startDynamo(t *testing.T, python string, mode ...string) *liveDynamo {
	t.Helper()
	dir := t.TempDir()
	model := filepath.Join(dir, "model")
	require.NoError(t, os.CopyFS(model, mini.FS()))
	writeJSON(t, filepath.Join(model, "config.json"), map[string]any{
		"architectures": []string{"Qwen3ForCausalLM"}, "model_type": "qwen3", "vocab_size": 4096, "hidden_size": 1024, "num_hidden_layers": 28,
		"num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 3072, "max_position_embeddings": 131072,
	})
	writeJSON(t, filepath.Join(model, "generation_config.json"), map[string]any{"eos_token_id": []int{0}})
	require.NoError(t, os.WriteFile(filepath.Join(model, "chat_template.jinja"), []byte("{{ messages[0].content }}"), 0o600))
	d := &liveDynamo{}
	t.Cleanup(d.stop)
	for range dynamoWorkers {
		d.ports = append(d.ports, freePort(t))
	}
	state := filepath.Join(dir, "kv")
	start := func(name string, args ...string) {
		log, err := os.Create(filepath.Join(dir, name+".log"))
		require.NoError(t, err)
		defer log.Close()
		cmd := exec.Command(python, append([]string{"-m", "dynamo." + name}, args...)...)
		cmd.Env = append(os.Environ(), "DYN_DISCOVERY_BACKEND=file", "DYN_FILE_KV="+state, "DYN_EVENT_PLANE=zmq", "DYN_REQUEST_PLANE=tcp", "DYN_LOG=warn",
			"HF_HUB_OFFLINE=1", "TRANSFORMERS_OFFLINE=1", "DYN_TCP_RPC_HOST=127.0.0.1", "DYN_EVENT_PLANE_HOST=127.0.0.1", "DYN_TCP_RESPONSE_STREAM_HOST=127.0.0.1", "HOME="+dir)
		cmd.Stdout, cmd.Stderr = log, log
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		require.NoError(t, cmd.Start())
		d.processes = append(d.processes, cmd)
	}
	start("mocker", "--model-path", model, "--model-name", "tiny", "--num-workers", strconv.Itoa(dynamoWorkers), "--block-size", strconv.Itoa(dynamoBlock),
		"--num-gpu-blocks-override", "20000", "--speedup-ratio", "0.5", "--zmq-kv-events-ports", strings.Join(d.ports, ","))
	port := freePort(t)
	start("frontend", append([]string{"--http-host", "127.0.0.1", "--http-port", port, "--router-mode"}, mode...)...)
	d.url = "http://127.0.0.1:" + port
	for until := time.Now().Add(2 * time.Minute); ; time.Sleep(500 * time.Millisecond) {
		if time.Now().After(until) {
			t.Skipf("SKIPPED: Dynamo was not ready in 2 minutes; see %s", dir)
		}
		resp, err := http.Get(d.url + "/v1/models")
		if err != nil {
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		found, err := filepath.Glob(filepath.Join(state, "v1", "instances", "*backend%2Fgenerate%2F*"))
		require.NoError(t, err)
		if !bytes.Contains(body, []byte(`"tiny"`)) || len(found) < dynamoWorkers {
			continue
		}
		for _, file := range found {
			id, _ := readJSON(t, file)["instance_id"].(json.Number)
			d.instances = append(d.instances, id.String())
		}
		return d
	}
}

func (d *liveDynamo) stop() {
	for _, p := range d.processes {
		syscall.Kill(-p.Process.Pid, syscall.SIGKILL)
		p.Wait()
	}
	d.processes = nil
}

// An agentRequest is a request and its result.
type agentRequest struct {
	tokens, cached int
	first          time.Duration
}

type agentRun []agentRequest

func (r agentRun) hitRate() float64 {
	var cached, tokens int
	for _, q := range r {
		cached, tokens = cached+q.cached, tokens+q.tokens
	}
	return float64(cached) / float64(tokens)
}

func (r agentRun) mean() (sum time.Duration) {
	for _, q := range r {
		sum += q.first
	}
	return sum / time.Duration(len(r))
}

func (r agentRun) String() string {
	times := make([]time.Duration, len(r))
	for i, q := range r {
		times[i] = q.first
	}
	slices.Sort(times)
	return fmt.Sprintf("%d requests, %.2f %% cached, first token after %v, median %v, p90 %v", len(r), 100*r.hitRate(),
		r.mean().Round(time.Millisecond), times[len(times)/2].Round(time.Millisecond), times[len(times)*9/10].Round(time.Millisecond))
}

// A placer chooses the engine for a prompt. It returns the engine's number and a function to call when the first token
// arrives and another one for the end.
type placer func(prompt []uint32) (worker int, first func(), end func(cached, output int))

// router returns a placer that uses our router, with the events of the engines.
func (d *liveDynamo) router(t *testing.T) placer {
	x := index.New(dynamoBlock, nil)
	r := router.New(x, nil)
	workers := map[index.WorkerID]int{}
	for i, port := range d.ports {
		id, err := r.AddWorker(index.Key{Instance: d.instances[i]}, policy.Both, nil)
		require.NoError(t, err)
		sub, err := zmq.Subscribe("tcp://127.0.0.1:"+port, x.NewStream(id, nil))
		require.NoError(t, err)
		t.Cleanup(func() { sub.Close() })
		workers[id] = i
	}
	d.match(t, x)
	return func(prompt []uint32) (int, func(), func(int, int)) {
		hashes := kvhash.Scheme{}.AppendBlocks(nil, prompt, dynamoBlock, nil)
		ticket, err := r.Place(t.Context(), &router.Request{Hashes: hashes, Tokens: len(prompt)})
		require.NoError(t, err)
		return workers[ticket.Decision().Worker], func() { ticket.FirstToken(time.Now()) }, func(cached, output int) { ticket.Finish(time.Now(), cached, output) }
	}
}

// match puts the instances in the order of the event ports: each gets a prompt, and the worker that then holds it has the
// events of its port.
func (d *liveDynamo) match(t *testing.T, x *index.Index) {
	found := make([]string, len(d.ports))
	for n, instance := range d.instances {
		prompt := make([]uint32, 4*dynamoBlock)
		for i := range prompt {
			prompt[i] = uint32(20 + 100*n + i)
		}
		hashes := kvhash.Scheme{}.AppendBlocks(nil, prompt, dynamoBlock, nil)
		require.Eventually(t, func() bool { // the subscription may not be there yet when the prompt is computed
			prompt[0]++
			hashes = kvhash.Scheme{}.AppendBlocks(hashes[:0], prompt, dynamoBlock, nil)
			d.send(t, prompt, 1, instance, nil)
			time.Sleep(200 * time.Millisecond)
			for _, m := range x.AppendMatches(nil, hashes) {
				found[m.Worker] = instance
				return true
			}
			return false
		}, 20*time.Second, time.Millisecond)
	}
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(found))), len(d.ports))
	d.instances = found
}

// send sends a prompt to the frontend, and to an engine unless instance is "". first is called when output begins.
func (d *liveDynamo) send(t *testing.T, prompt []uint32, output int, instance string, first func()) (r agentRequest) {
	body, err := json.Marshal(map[string]any{"model": "tiny", "prompt": prompt, "max_tokens": output, "ignore_eos": true, "stream": true, "stream_options": map[string]any{"include_usage": true}})
	require.NoError(t, err)
	req, err := http.NewRequest(http.MethodPost, d.url+"/v1/completions", bytes.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	if instance != "" {
		req.Header.Set("X-Worker-Instance-Id", instance)
	}
	start := time.Now()
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		if r.first == 0 {
			if r.first = time.Since(start); first != nil {
				first()
			}
		}
		var chunk struct {
			Usage *struct {
				PromptTokens        int `json:"prompt_tokens"`
				PromptTokensDetails struct {
					CachedTokens int `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
			}
		}
		require.NoError(t, json.Unmarshal([]byte(data), &chunk))
		if chunk.Usage != nil {
			r.tokens, r.cached = chunk.Usage.PromptTokens, chunk.Usage.PromptTokensDetails.CachedTokens
		}
	}
	require.NoError(t, lines.Err())
	require.Equal(t, len(prompt), r.tokens)
	return r
}

// play plays sessions of coding agents: prompts of 4,000 shared tokens that grow by the output, the result of a tool and a
// pause with each turn. What a session sends and when it begins depends on the seed only. nil means that the frontend
// places the requests.
func (d *liveDynamo) play(t *testing.T, seed uint64, place placer) (run agentRun) {
	const sessions, turns = 90, 9
	var mu sync.Mutex
	var wg sync.WaitGroup
	random := func(rnd *rand.Rand, n int) []uint32 {
		ids := make([]uint32, n)
		for i := range ids {
			ids[i] = 20 + rnd.Uint32N(2500)
		}
		return ids
	}
	var systems [3][]uint32
	for i := range systems {
		systems[i] = random(rand.New(rand.NewPCG(seed, uint64(1000+i))), 4000)
	}
	begin := time.Now()
	for s := range sessions {
		rnd := rand.New(rand.NewPCG(seed, uint64(s)))
		starts := time.Duration(rnd.ExpFloat64()*0.2*float64(time.Second)) + time.Duration(s)*500*time.Millisecond
		prompt := append(slices.Clone(systems[rnd.IntN(len(systems))]), random(rnd, 500+rnd.IntN(4000))...)
		wg.Go(func() {
			time.Sleep(time.Until(begin.Add(starts)))
			for range turns {
				output := 20 + rnd.IntN(60)
				worker, first, end := -1, func() {}, func(int, int) {}
				instance := ""
				if place != nil {
					worker, first, end = place(prompt)
					instance = d.instances[worker]
				}
				r := d.send(t, prompt, output, instance, first)
				end(r.cached, output)
				mu.Lock()
				run = append(run, r)
				mu.Unlock()
				prompt = append(prompt, random(rnd, output+100+int(rnd.ExpFloat64()*1200))...)
				time.Sleep(time.Duration((0.3 + rnd.ExpFloat64()*2) * float64(time.Second)))
			}
		})
	}
	wg.Wait()
	return run
}
