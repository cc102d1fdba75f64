// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-go/weft/protocols/apierr"
)

// An Engine is the description that an engine gives of itself. Fields that it does not report are zero.
type Engine struct {
	URL       string // base address, without /v1
	Kind      Kind   // nil if unknown
	Owner     string // owned_by in /v1/models, from which Kind is inferred
	Version   string
	Models    []Model
	BlockSize int // tokens per cache block
	Blocks    int // cache blocks that fit on its devices, of all data-parallel ranks; 0 means unknown
	Slots     int // requests at the same time
	Events    []Source

	client *http.Client
	key    string
}

// A Model is a model that an engine serves, or an adapter.
type Model struct {
	ID     string
	Root   string // directory or repository from which the engine loaded it
	Parent string // the model that an adapter belongs to
	Window int    // tokens of prompt and output
}

// A Source is where a data-parallel rank of an engine publishes cache events. Without a wildcard or ipc in its endpoint, the
// engine usually connects there instead of listening.
type Source struct {
	Rank           int
	Events, Replay string // addresses of ZeroMQ, with the engine's host for a wildcard; Replay may be ""
	Listens        bool   // the engine listens at Events
	Topic          string
}

// timeout limits each request, and maxBody the bytes of a response.
const (
	timeout = 30 * time.Second // a busy vLLM takes seconds
	maxBody = 64 << 20         // an Ollama shows the vocabulary
)

// Ask asks the engine at a base address, with or without /v1. key is sent as a bearer token if it is not empty. It sends
// up to five requests. An engine that cannot be reached, or has no /v1/models, is an error. It may refuse all others, but not
// leave them without a response.
func Ask(ctx context.Context, address, key string) (*Engine, error) {
	e := newEngine(address, key)
	defer e.client.CloseIdleConnections()
	var list struct {
		Data []struct {
			ID     string `json:"id"`
			Owner  string `json:"owned_by"`
			Root   string `json:"root"`
			Parent string `json:"parent"`
			Window int    `json:"max_model_len"`
			Meta   struct {
				Context int `json:"n_ctx"`
			} `json:"meta"`
		} `json:"data"`
	}
	if err := e.get(ctx, "/v1/models", &list); err != nil {
		return nil, err
	}
	for _, m := range list.Data {
		e.Owner = cmp.Or(e.Owner, m.Owner)
		e.Models = append(e.Models, Model{m.ID, m.Root, m.Parent, cmp.Or(m.Window, m.Meta.Context)})
	}
	if len(e.Models) == 0 {
		return nil, fmt.Errorf("probe: %s serves no model", e.URL)
	}
	for _, k := range Kinds() {
		if owner := k.Traits().Owner; owner != "" && owner == e.Owner {
			e.Kind = k
			return e, k.Probe(ctx, e)
		}
	}
	return e, nil
}

// newEngine returns an engine of which nothing but the address is known.
func newEngine(address, key string) *Engine {
	return &Engine{URL: strings.TrimSuffix(strings.TrimRight(address, "/"), "/v1"), key: key, client: &http.Client{Timeout: timeout}}
}

// optional returns nil for the error of a request that the engine refused, unless it refused the key.
func optional(err error) error {
	if _, ok := errors.AsType[*apierr.Error](err); ok && !errors.Is(err, ErrKey) {
		return nil
	}
	return err
}

// ErrKey reports that the engine does not accept the key.
var ErrKey = errors.New("the engine does not accept the key")

// get reads a JSON value.
func (e *Engine) get(ctx context.Context, path string, to any) error {
	body, err := e.do(ctx, http.MethodGet, path, nil)
	if err == nil {
		err = json.Unmarshal(body, to)
	}
	if err != nil {
		return fmt.Errorf("probe: %s%s: %w", e.URL, path, err)
	}
	return nil
}

// post sends a JSON value and reads another one into to unless it is nil.
func (e *Engine) post(ctx context.Context, path string, value, to any) error {
	body, err := json.Marshal(value)
	if err == nil {
		body, err = e.do(ctx, http.MethodPost, path, body)
	}
	if err == nil && to != nil {
		err = json.Unmarshal(body, to)
	}
	if err != nil {
		return fmt.Errorf("probe: %s%s: %w", e.URL, path, err)
	}
	return nil
}

// do sends a request.
func (e *Engine) do(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, e.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if m, ok := e.Kind.(Managed); ok {
		m.SetHeaders(r.Header, r.URL.Hostname(), e.key)
	} else if e.key != "" {
		r.Header.Set("Authorization", "Bearer "+e.key)
	}
	resp, err := e.client.Do(r)
	if err != nil {
		return nil, errors.Unwrap(err) // without the method and the address
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("HTTP %d: %w", resp.StatusCode, apierr.Parse(resp.StatusCode, out))
		// vLLM has 403 for endpoints that are off, so it means a key only where every engine has the endpoint.
		if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden && path == "/v1/models" {
			err = fmt.Errorf("%w: %w", ErrKey, err)
		}
	}
	return out, err
}

// readVersion reads the engine's version from a path.
func (e *Engine) readVersion(ctx context.Context, path string) error {
	var reply struct{ Version string }
	err := e.get(ctx, path, &reply)
	e.Version = reply.Version
	return err
}

// cacheLabel matches the labels of vLLM's vllm:cache_config_info that are read.
var cacheLabel = regexp.MustCompile(`[{,](block_size|kv_cache_size_tokens|num_gpu_blocks)="([0-9]+)"`)

// readMetrics reads the size and the number of blocks from vLLM's vllm:cache_config_info, which each data-parallel rank has. It prefers
// kv_cache_size_tokens, which newer versions have: if layers of several kinds share the cache, num_gpu_blocks counts several blocks
// for the same tokens.
func (e *Engine) readMetrics(ctx context.Context) error {
	body, err := e.do(ctx, http.MethodGet, "/metrics", nil)
	if err != nil {
		return fmt.Errorf("probe: %s/metrics: %w", e.URL, err)
	}
	for s := bufio.NewScanner(bytes.NewReader(body)); s.Scan(); {
		if !strings.HasPrefix(s.Text(), "vllm:cache_config_info{") {
			continue
		}
		labels := map[string]int{}
		for _, m := range cacheLabel.FindAllStringSubmatch(s.Text(), -1) {
			labels[m[1]], _ = strconv.Atoi(m[2])
		}
		size, tokens := labels["block_size"], labels["kv_cache_size_tokens"]
		e.BlockSize = cmp.Or(size, e.BlockSize)
		if size > 0 && tokens > 0 {
			e.Blocks += tokens / size
		} else {
			e.Blocks += labels["num_gpu_blocks"]
		}
	}
	return nil
}

// An eventSource describes where an engine publishes cache events, as its configuration does.
type eventSource struct {
	Publisher string `json:"publisher"`
	Endpoint  string `json:"endpoint"`
	Replay    string `json:"replay_endpoint"`
	Topic     string `json:"topic"`
}

// addSource adds a source of events. An engine listens at addresses with a wildcard, and connects to others.
func (e *Engine) addSource(rank int, s *eventSource) {
	listens := strings.Contains(s.Endpoint, "*") || !strings.HasPrefix(s.Endpoint, "tcp://")
	e.Events = append(e.Events, Source{rank, e.reach(s.Endpoint), e.reach(s.Replay), listens, s.Topic})
}

// readSources reads vLLM's /kv_event_sources.
func (e *Engine) readSources(ctx context.Context) error {
	var sources map[string]struct {
		Enabled bool `json:"enable_kv_cache_events"`
		eventSource
	}
	if err := e.get(ctx, "/kv_event_sources", &sources); err != nil {
		return err
	}
	for _, rank := range slices.Sorted(maps.Keys(sources)) {
		if s := sources[rank]; s.Enabled && s.Publisher == "zmq" {
			n, _ := strconv.Atoi(rank)
			e.addSource(n, &s.eventSource)
		}
	}
	return nil
}

// reach returns the address at which a socket of the engine can be reached from here: with the engine's host instead of a
// wildcard.
func (e *Engine) reach(address string) string {
	rest, ok := strings.CutPrefix(address, "tcp://*:")
	if !ok {
		return address
	}
	u, err := url.Parse(e.URL)
	if err != nil {
		return address
	}
	return "tcp://" + net.JoinHostPort(u.Hostname(), rest)
}

// Tokenize returns the token ids that the engine has for a text, without special tokens around it, or an error that
// matches [errors.ErrUnsupported] if it has no endpoint for that. For an Ollama, the ids of a token of output follow, and may
// have become one with the last ids of the text.
func (e *Engine) Tokenize(ctx context.Context, model, text string) ([]uint32, error) {
	defer e.client.CloseIdleConnections()
	path, body := "/tokenize", map[string]any{"model": model, "prompt": text, "content": text, "add_special_tokens": false, "add_special": false}
	if _, ok := e.Kind.(Ollama); ok { // it has no endpoint for that, but returns the ids of prompt and output
		path, body = "/api/generate", map[string]any{
			"model": model, "prompt": text, "template": "{{ .Prompt }}", "stream": false, "think": false, "truncate": false,
			"options": map[string]any{"num_predict": 1},
		}
	}
	var reply struct{ Tokens, Context []uint32 }
	if err := e.post(ctx, path, body, &reply); err != nil {
		return nil, fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	if reply.Tokens == nil && reply.Context == nil {
		return nil, fmt.Errorf("probe: %s%s: no ids: %w", e.URL, path, errors.ErrUnsupported)
	}
	return append(reply.Tokens, reply.Context...), nil
}

// Render returns the prompt that the engine's own chat template prints for a conversation, a JSON array of messages of the
// Chat Completions API: its token ids, or its text if the engine has only that. The error matches [errors.ErrUnsupported] if
// the engine has no endpoint for that.
func (e *Engine) Render(ctx context.Context, model string, messages json.RawMessage) (ids []uint32, text string, err error) {
	defer e.client.CloseIdleConnections()
	path, body := "/tokenize", map[string]any{"model": model, "messages": messages}
	if _, ok := e.Kind.(LlamaCPP); ok {
		path = "/apply-template"
	}
	var reply struct {
		Tokens []uint32
		Prompt string
	}
	if err := e.post(ctx, path, body, &reply); err != nil {
		return nil, "", fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	if reply.Tokens == nil && reply.Prompt == "" {
		return nil, "", fmt.Errorf("probe: %s%s: no prompt: %w", e.URL, path, errors.ErrUnsupported)
	}
	return reply.Tokens, reply.Prompt, nil
}
