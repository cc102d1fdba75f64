// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/protocols/catalog"
)

// withRecords adds records of the rig's model and two aliases.
func withRecords(o *serve.Options) {
	o.Aliases = []string{"org/name"}
	o.Models = []catalog.Model{
		{ID: "claude-m", DisplayName: "M", ContextWindow: 300},
		{ID: "m", ContextWindow: 600, MaxOutputTokens: 40, ParallelCalls: new(true), Truncation: catalog.Truncation{Mode: "tokens", Limit: 9000}, BaseInstructions: "Be short."},
	}
}

// get sends a GET request. headers holds names and values in turn.
func get(t *testing.T, url string, headers ...string) (*http.Response, string) {
	t.Helper()
	return do(t, http.MethodGet, url, "", headers...)
}

func TestModelLists(t *testing.T) {
	r := start(t, 1, say("x"), func(o *serve.Options) {
		withRecords(o)
		o.Origins = []string{"https://chat.example"}
	})
	const claude, codex = "claude-cli/2.1.330 (external, sdk-cli)", "codex_exec/0.169.0 (Linux)"
	const rest = `,"shell_type":"default","visibility":"list","supported_in_api":true,"priority":0,"availability_nux":null,"upgrade":null,"base_instructions":"Be short.",` +
		`"supports_reasoning_summaries":false,"support_verbosity":false,"default_verbosity":null,"apply_patch_tool_type":null,"truncation_policy":{"mode":"tokens","limit":9000},"supports_parallel_tool_calls":true,`
	record := func(id, name, window string) string {
		return `{"slug":"` + id + `","display_name":"` + name + `","description":null,"supported_reasoning_levels":[]` + rest + `"context_window":` + window + `,"max_context_window":` + window +
			`,"experimental_supported_tools":[],"input_modalities":["text"]}`
	}
	entry := func(id, name, window string) string {
		return `{"type":"model","id":"` + id + `","display_name":"` + name + `","created_at":"1970-01-01T00:00:00Z","lifecycle":"active","max_input_tokens":` + window + `,"max_tokens":40}`
	}
	for _, tt := range []struct {
		path    string
		headers []string
		want    string
	}{
		{"", nil, `{"object":"list","data":[` +
			`{"id":"claude-m","object":"model","created":0,"owned_by":"weft","display_name":"M","max_model_len":300,"context_window":300,"max_output_tokens":40},` +
			`{"id":"m","object":"model","created":0,"owned_by":"weft","max_model_len":600,"context_window":600,"max_output_tokens":40},` +
			`{"id":"org/name","object":"model","created":0,"owned_by":"weft","max_model_len":600,"context_window":600,"max_output_tokens":40}]}`},
		{"/?limit=1000", []string{"User-Agent", claude}, `{"data":[` + entry("claude-m", "M", "300") + `,` + entry("m", "m", "600") + `,` + entry("org/name", "org/name", "600") + `],"has_more":false,"first_id":"claude-m","last_id":"org/name"}`},
		{"?limit=1&after_id=claude-m", []string{"Anthropic-Version", "2023-06-01"}, `{"data":[` + entry("m", "m", "600") + `],"has_more":true,"first_id":"m","last_id":"m"}`},
		{"?client_version=0.169.0", []string{"User-Agent", codex}, `{"models":[` + record("claude-m", "M", "300") + `,` + record("m", "m", "600") + `,` + record("org/name", "org/name", "600") + `]}`},
		{"/org/name?client_version=0.169.0", nil, record("org/name", "org/name", "600")},
		{"/org/name", []string{"Anthropic-Version", "2023-06-01"}, entry("org/name", "org/name", "600")},
		{"/org%2Fname", []string{"Anthropic-Version", "2023-06-01"}, entry("org/name", "org/name", "600")},
		{"/m", nil, `{"id":"m","object":"model","created":0,"owned_by":"weft","max_model_len":600,"context_window":600,"max_output_tokens":40}`},
	} {
		resp, body := get(t, r.url+"/v1/models"+tt.path, tt.headers...)
		require.Equal(t, 200, resp.StatusCode, body)
		require.Empty(t, cmp.Diff(tt.want, body), tt.path)
		require.Equal(t, catalog.ETag([]byte(body)), resp.Header.Get("ETag"))
		require.Equal(t, []string{"Origin", "Anthropic-Version, User-Agent"}, resp.Header.Values("Vary"))
		tag := resp.Header.Get("ETag")
		for _, match := range []string{tag, "W/" + tag, `"x", ` + tag, "*"} {
			resp, body = get(t, r.url+"/v1/models"+tt.path, append(slices.Clip(tt.headers), "If-None-Match", match)...)
			require.Equal(t, 304, resp.StatusCode, match)
			require.Empty(t, body)
		}
		resp, _ = get(t, r.url+"/v1/models"+tt.path, append(slices.Clip(tt.headers), "If-None-Match", `"x"`)...)
		require.Equal(t, 200, resp.StatusCode)
	}
	for path, want := range map[string]struct {
		status int
		has    string
	}{
		"/nobody":     {404, "`nobody`"},
		"/org%2Fnone": {404, "`org/none`"},
		"/M":          {404, "`M`"},
		"/name":       {404, "`name`"},
	} {
		resp, body := get(t, r.url+"/v1/models"+path)
		apiCases[0].wantError(t, resp.StatusCode, body, want.status, "invalid_request_error", want.has)
		resp, body = get(t, r.url+"/v1/models"+path, "User-Agent", claude)
		apiCases[2].wantError(t, resp.StatusCode, body, want.status, "not_found_error", want.has)
	}
	for _, query := range []string{"limit=0", "limit=1001", "after_id=x", "before_id=x"} {
		resp, body := get(t, r.url+"/v1/models?"+query, "Anthropic-Version", "2023-06-01")
		apiCases[2].wantError(t, resp.StatusCode, body, 400, "invalid_request_error", strings.SplitN(query, "=", 2)[0])
		resp, _ = get(t, r.url+"/v1/models?"+query)
		require.Equal(t, 200, resp.StatusCode, "the others know no pages")
	}
}

// TestClaudeCodeMenu decodes the list as Claude Code does: ids with the expected prefix and their display names.
func TestClaudeCodeMenu(t *testing.T) {
	r := start(t, 1, say("x"), withRecords)
	for _, headers := range [][]string{{"User-Agent", "claude-code/2.1.330"}, {"Anthropic-Version", "2023-06-01"}, nil} {
		_, body := get(t, r.url+"/v1/models?limit=1000", headers...)
		var list struct {
			Data []struct {
				ID   string
				Name string `json:"display_name"`
			}
		}
		require.NoError(t, json.Unmarshal([]byte(body), &list))
		var menu []string
		for _, m := range list.Data {
			if strings.HasPrefix(m.ID, "claude") || strings.HasPrefix(m.ID, "anthropic") {
				menu = append(menu, m.ID+" "+m.Name)
			}
		}
		require.Equal(t, []string{"claude-m M"}, menu)
	}
}

// TestRecordLimits checks that requests obey the limits in their model's record, and that responses contain the
// requested name.
func TestRecordLimits(t *testing.T) {
	r := start(t, 1, say(strings.Repeat("one two ", 100)), withRecords)
	for _, a := range apiCases {
		for _, stream := range []bool{false, true} {
			for _, name := range []string{"m", "claude-m", "org/name"} {
				body := a.body("go on", stream)
				delete(body, "max_tokens")
				if a.path == "/v1/messages" {
					body["max_tokens"] = 500
				}
				body["model"] = name
				status, _, text := send(t, r.url+a.path, body)
				require.Equal(t, 200, status, text)
				require.Contains(t, text, `"model":"`+name+`"`)
				require.Regexp(t, `"(completion|output)_tokens":40\b`, text, "no more than max_output_tokens")
			}
			body := a.body(strings.Repeat("one two three ", 30), stream) // too long for the alias alone
			body["model"] = "org/name"
			status, _, text := send(t, r.url+a.path, body)
			require.Equal(t, 200, status, text)
			body["model"] = "claude-m"
			status, _, text = send(t, r.url+a.path, body)
			require.Equal(t, 400, status, text)
			require.Contains(t, text, "300")
		}
	}
}

// TestMaxInputTokens checks that a prompt that fits the context window, but exceeds max_input_tokens, is refused.
func TestMaxInputTokens(t *testing.T) {
	r := start(t, 1, say("x"), func(o *serve.Options) {
		o.Models = []catalog.Model{{ID: "m", ContextWindow: 600, MaxInputTokens: 50}}
	})
	status, _, text := send(t, r.url+apiCases[0].path, apiCases[0].body(strings.Repeat("one two three ", 30), false))
	require.Equal(t, 400, status, text)
	require.Contains(t, text, "maximum context length is 50 tokens")
}

// TestCodexOverflow checks that Codex gets the error for a long prompt in a stream and other clients get a status,
// whether the gateway or the engine detects it.
func TestCodexOverflow(t *testing.T) {
	small := vllm.New(tok(), &vllm.Options{Model: "m", MaxModelLen: 500})
	engine := httptest.NewServer(small)
	defer func() { small.Close(); engine.Close() }()
	for name, change := range map[string]func(*serve.Options){
		"gateway": func(o *serve.Options) { o.MaxModelLen = 600 },
		"engine":  func(o *serve.Options) { o.Engines = []serve.Engine{{URL: engine.URL}} },
	} {
		r := start(t, 1, say("x"), change)
		long := strings.Repeat("one two three ", 500)
		for _, a := range apiCases {
			for _, stream := range []bool{false, true} {
				for _, agent := range []string{"codex_exec/0.169.0 (Linux)", "OpenAI/JS 7.57.0"} {
					status, header, text := send(t, r.url+a.path, a.body(long, stream), "User-Agent", agent)
					if a.path != "/v1/responses" || !stream || !strings.HasPrefix(agent, "codex") {
						require.Equal(t, 400, status, text)
						require.Equal(t, "application/json", header.Get("Content-Type"))
						continue
					}
					require.Equal(t, 200, status, name)
					require.Equal(t, "text/event-stream", header.Get("Content-Type"))
					require.NotEmpty(t, header.Get("X-Request-Id"))
					var events []string
					for line := range strings.Lines(text) {
						if event, ok := strings.CutPrefix(line, "event: "); ok {
							events = append(events, strings.TrimSpace(event))
						}
					}
					require.Equal(t, []string{"response.created", "response.in_progress", "response.failed"}, events)
					require.Contains(t, text, `"error":{"code":"context_length_exceeded","message":"This model's maximum context length is `)
				}
			}
		}
	}
	r := start(t, 1, say("x"), nil)
	status, _, text := send(t, r.url+"/v1/responses", `{"model":"nobody","stream":true,"input":"x"}`, "User-Agent", "codex_exec/0.169.0")
	apiCases[1].wantError(t, status, text, 404, "invalid_request_error", "nobody")
}

func TestInvalidOptions(t *testing.T) {
	for _, o := range []serve.Options{{BlockSize: -1}, {MaxChoices: -1}, {MaxModelLen: -1}, {MaxBody: -1}, {KeepAlive: -1}, {BodyTimeout: -1}, {EngineSilence: -1}} {
		o.Model, o.Prompts, o.Engines = "m", hermesModel(), []serve.Engine{{URL: "http://127.0.0.1:1"}}
		_, err := serve.New(&o)
		require.ErrorContains(t, err, "negative")
	}
}

func TestInvalidRecords(t *testing.T) {
	for name, c := range map[string]struct {
		opt  serve.Options
		want string
	}{
		"twice":         {serve.Options{Aliases: []string{"a", "a"}}, `serve: catalog: model "a": id: duplicate`},
		"its own alias": {serve.Options{Aliases: []string{"m"}}, `serve: catalog: model "m": id: duplicate`},
		"empty":         {serve.Options{Aliases: []string{""}}, `serve: catalog: model "": id: empty`},
		"of nothing":    {serve.Options{Models: []catalog.Model{{ID: "a", AliasOf: "b"}}}, `serve: catalog: model "a": alias_of: unknown model "b"`},
		"no model":      {serve.Options{Models: []catalog.Model{{ID: "a"}, {ID: "m", AliasOf: "a"}}}, `serve: catalog: model "m": alias_of: must be empty for the model itself`},
		"too long":      {serve.Options{MaxModelLen: 9, Models: []catalog.Model{{ID: "a", ContextWindow: 10}}}, `serve: catalog: model "a": context_window: exceeds the limit of 9 tokens per request`},
		"too long, m":   {serve.Options{MaxModelLen: 9, Models: []catalog.Model{{ID: "m", ContextWindow: 10}}}, `serve: catalog: model "m": context_window: exceeds the limit of 9 tokens per request`},
		"input":         {serve.Options{MaxModelLen: 9, Models: []catalog.Model{{ID: "m", MaxInputTokens: 10}}}, `serve: catalog: model "m": max_input_tokens: greater than the context window`},
	} {
		c.opt.Model, c.opt.Prompts, c.opt.Engines = "m", hermesModel(), []serve.Engine{{URL: "http://127.0.0.1:1"}}
		_, err := serve.New(&c.opt)
		require.EqualError(t, err, c.want, name)
	}
}

// TestAnyModel checks that requests for unlisted names are served under these names if the options permit it, with the
// limits of the model, and are otherwise refused in the form of each API.
func TestAnyModel(t *testing.T) {
	for _, any := range []bool{false, true} {
		r := start(t, 1, say(strings.Repeat("one two ", 100)), func(o *serve.Options) {
			withRecords(o)
			o.AnyModel = any
		})
		for _, a := range apiCases {
			body := a.body("go on", false)
			body["model"] = "claude-haiku-4-5"
			status, _, text := send(t, r.url+a.path, body)
			if !any {
				a.wantError(t, status, text, 404, map[bool]string{true: "not_found_error", false: "invalid_request_error"}[a.anthropic], "claude-haiku-4-5")
				continue
			}
			require.Equal(t, 200, status, text)
			require.Contains(t, text, `"model":"claude-haiku-4-5"`)
			require.Regexp(t, `"(completion|output)_tokens":40\b`, text)
		}
		status, _, text := send(t, r.url+"/v1/tokenize", `{"model":"gpt-5","prompt":"hello"}`)
		require.Equal(t, map[bool]int{true: 200, false: 404}[any], status, text)
		resp, _ := get(t, r.url+"/v1/models/gpt-5")
		require.Equal(t, 404, resp.StatusCode, "only listed names are listed")
	}
}
