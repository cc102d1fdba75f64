// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/examples/internal/cli"
	"github.com/weft-go/weft/examples/internal/cli/clitest"
	"github.com/weft-go/weft/protocols/catalog"
	"github.com/weft-go/weft/protocols/intent"
	"github.com/weft-go/weft/protocols/replay"
	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/tokenizers/mini"
)

// TestPastReasoning checks that prompts keep all past reasoning that the template can print, unless the operator wants less.
func TestPastReasoning(t *testing.T) {
	for text, want := range map[string]string{"": "widest", "template": "", "since_user": "since_user"} {
		rule, err := pastReasoning(text)
		require.NoError(t, err)
		require.Equal(t, want, rule.String())
	}
	dir := t.TempDir()
	files := mini.FS()
	data, err := fs.ReadFile(files, "tokenizer.json")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tokenizer.json"), data, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "chat_template.jinja"), []byte(`{% set ns = namespace(user=-1) %}{% for m in messages %}{% if m.role == 'user' %}{% set ns.user = loop.index0 %}{% endif %}{% endfor %}`+
		`{% for m in messages %}<{{ m.role }}>{% if m.reasoning_content and (keep_it | default(false) or loop.index0 > ns.user) %}{{ m.reasoning_content }}{% endif %}{{ m.content }}{% endfor %}`), 0o600))
	req, err := wire.Chat.Decode([]byte(`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","reasoning_content":"Zqthought"},{"role":"user","content":"c"}]}`), nil)
	require.NoError(t, err)
	for text, want := range map[string]bool{"": true, "template": false} {
		m, err := model(&config{Deployment: Deployment{Model: "m", ModelDir: dir, ToolCallParser: "qwen3", PastReasoning: text}}, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		p, err := m.Render(req, time.Unix(0, 0))
		require.NoError(t, err)
		require.Equal(t, want, strings.Contains(p.Text, "Zqthought"))
	}
}

func TestMain(m *testing.M) {
	if os.Getenv(fakeHarness) != "" {
		os.Exit(playHarness())
	}
	goleak.VerifyTestMain(m)
}

func TestParse(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
listen: 127.0.0.1:7
model: from-file
aliases: [a, b]
tool_call_parser: qwen3_coder
tool_dispatch: true
reasoning_dispatch: true
max_choices: 4
models:
  - id: from-file
    context_window: 65536
    max_input_tokens: 60000
    auto_compact_token_limit: 50000
    truncation_policy: {mode: tokens, limit: 9000}
    reasoning_levels: [{effort: low, description: Quick}, {effort: high}]
    default_reasoning_level: low
    parallel_tool_calls: true
    verbosity: false
    apply_patch_tool_type: freeform
    base_instructions: |
      Be short.
    capabilities: {thinking: {supported: true}}
  - {id: claude-m, display_name: M, parallel_tool_calls: false, reasoning_levels: []}
keep_alive: 2.5
engines:
  - {kind: vllm, url: "http://gpu1:8000", name: one, version: 0.20.0, features: "priority scheduling, session field"}
  - {kind: embedded, url: local, dialect: weft}
relocate: true
sort_tools: true
keep_empty: true
priority_is: lower is sooner
policy: {max_ttl: 30m}
tenants:
  - name: ops
    keys: [sk-1, sk-2]
    policy: {max_priority: 10, trust: [tier, salt], prefetch: true, isolate: false}
    limits: {requests_per_minute: 60, tokens_per_minute: 1000000, concurrent: 8}
keys_file: keys
limits: {concurrent: -1}
anonymous: true
hosts: [h]
origins: ["https://o"]
retries: 2
grace: 5
`), 0o600))
	with := func(c config) config { // defaults
		d := defaults()
		if c.Listen == "" {
			c.Listen = d.Listen
		}
		if c.Retries == 0 {
			c.Retries, c.Grace = d.Retries, d.Grace
		}
		c.MaxRequests, c.MaxQueue, c.QueueTimeout, c.EngineRequests, c.MaxMemoryMB, c.MaxBodyMB = d.MaxRequests, d.MaxQueue, d.QueueTimeout, d.EngineRequests, d.MaxMemoryMB, d.MaxBodyMB
		c.HealthInterval, c.EngineSilence, c.PerAddress, c.Metrics, c.LogFormat = d.HealthInterval, d.EngineSilence, d.PerAddress, d.Metrics, d.LogFormat
		return c
	}
	fromFile := with(config{Deployment: Deployment{Model: "from-file", Aliases: []string{"a", "b"}, ToolCallParser: "qwen3_coder", Models: []modelConfig{
		{ID: "from-file", ContextWindow: 65536, MaxInputTokens: 60000, AutoCompactTokenLimit: 50000, TruncationPolicy: truncation{"tokens", 9000},
			ReasoningLevels: []level{{"low", "Quick"}, {"high", ""}}, DefaultReasoningLevel: "low", ParallelToolCalls: new(true), Verbosity: new(false),
			ApplyPatchToolType: "freeform", BaseInstructions: "Be short.\n", Capabilities: map[string]any{"thinking": map[string]any{"supported": true}}},
		{ID: "claude-m", DisplayName: "M", ParallelToolCalls: new(false), ReasoningLevels: []level{}},
	}, Engines: []engineConfig{
		{Kind: "vllm", URL: "http://gpu1:8000", Name: "one", Version: "0.20.0", Features: "priority scheduling, session field"},
		{Kind: "embedded", URL: "local", Dialect: "weft"},
	}, KeepEmpty: true}, Listen: "127.0.0.1:7", ToolDispatch: true, ReasoningDispatch: true, MaxChoices: 4, KeepAlive: 2.5, Policy: policyConfig{MaxTTL: 30 * time.Minute}, PriorityIs: intent.LowerSooner, Relocate: true, SortTools: true, Tenants: []tenantConfig{{Name: "ops", Keys: []string{"sk-1", "sk-2"}, Policy: policyConfig{MaxPriority: 10, Trust: []string{"tier", "salt"}, Prefetch: true, Isolate: new(false)},
		Limits: limitsConfig{RequestsPerMinute: 60, TokensPerMinute: 1_000_000, Concurrent: 8}}}, KeysFile: "keys", Limits: limitsConfig{Concurrent: -1}, Hosts: []string{"h"}, Origins: []string{"https://o"}, Anonymous: true, Retries: 2, Grace: 5})
	won := fromFile
	won.Model, won.Engines, won.Aliases, won.StripPreamble = "from-flag", []engineConfig{{Kind: "vllm", URL: "http://x"}}, []string{"c"}, true
	engine := []engineConfig{{Kind: "vllm", URL: "http://x"}}
	for _, tt := range []struct {
		args string
		want *config
		err  string
	}{
		{"-config " + file, &fromFile, ""},
		{"-config " + file + " -model from-flag -alias c -engine vllm=http://x -strip-preamble", &won, ""},
		{"-model m -engine vllm=http://x", new(with(config{Deployment: Deployment{Model: "m", Engines: engine}})), ""},
		{"-model m -engine vllm=http://x --strip-anthropic-preamble --enable-streaming-tool-dispatch --enable-streaming-reasoning-dispatch --enable-anthropic-api",
			new(with(config{Deployment: Deployment{Model: "m", Engines: engine}, StripPreamble: true, ToolDispatch: true, ReasoningDispatch: true})), ""},
		{"-model m", nil, "no engine: set -engine"},
		{"-engine http://x", new(with(config{Deployment: Deployment{Engines: []engineConfig{{URL: "http://x"}}}})), ""},
		{"-model m -engine gpu1:8000", nil, "KIND=URL"},
		{"-model m -engine vllm=http://x more", nil, "more"},
		{"-model m -engine vllm=http://x -keep-alive NaN", nil, "keep_alive"},
		{"-model m -engine vllm=http://x -keep-alive -1", nil, "keep_alive"},
		{"-model m -engine vllm=http://x -keep-alive 1e300", nil, "keep_alive"},
		{"-model m -engine embedded=local -block-size -16", nil, "block_size"},
		{"-model m -engine embedded=local -max-choices -1", nil, "max_choices"},
		{"-model m -engine embedded=local -memo-mb -1", nil, "memo_mb"},
		{"-model m -engine embedded=local -store-mb -1", nil, "store_mb"},
		{"-model m -engine embedded=local -max-model-len -1", nil, "max_model_len"},
		{"-model m -engine embedded=local -past-reasoning most", nil, `-past-reasoning: replay: rule "most"`},
		{"-model m -engine embedded=local -retries -1", nil, "retries"},
		{"-model m -engine embedded=local -max-queue 0", nil, "max_queue"},
		{"-model m -engine embedded=local -grace NaN", nil, "grace"},
		{"-model m -engine embedded=local -max-per-address 0", nil, "max_per_address"},
		{"-model m -engine embedded=local -metrics all", nil, "metrics"},
		{"-model m -engine embedded=local -log-format xml", nil, "log format"},
		{"-model m -engine embedded=local -log-level loud", nil, "log-level"},
		{"-config nowhere.yaml", nil, "nowhere.yaml"},
	} {
		got, err := parse(strings.Fields(tt.args), io.Discard)
		if tt.err != "" {
			require.ErrorContains(t, err, tt.err)
			continue
		}
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(tt.want, got), tt.args)
	}
	for _, text := range []string{"modle: m\n", "models: [{id: m, contex_window: 1}]\n", "models: [{id: m, truncation_policy: {mod: bytes}}]\n"} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := parse([]string{"-config", file}, io.Discard)
		require.ErrorContains(t, err, "unknown field", text)
	}

	for text, has := range map[string]string{
		"policy: {trust: [importance]}\n":                     "unknown hint",
		"engines: [{kind: vllm, url: x, features: warp}]\n":   "unknown feature",
		"engines: [{kind: vllm, url: x, dialect: klingon}]\n": "unknown dialect",
		"priority_is: sooner\n":                               "unknown polarity",
		"tenants: [{name: a, policy: {max_prio: 1}}]\n":       "unknown field",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := parse([]string{"-config", file}, io.Discard)
		require.ErrorContains(t, err, has, text)
	}

	list, err := records(fromFile.Models)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]catalog.Model{
		{ID: "from-file", ContextWindow: 65536, MaxInputTokens: 60000, AutoCompactTokens: 50000, Truncation: catalog.Truncation{Mode: "tokens", Limit: 9000},
			Efforts: []catalog.Effort{{Effort: "low", Description: "Quick"}, {Effort: "high"}}, DefaultEffort: "low", ParallelCalls: new(true), Verbosity: new(false),
			ApplyPatch: "freeform", BaseInstructions: "Be short.\n", Capabilities: []byte(`{"thinking":{"supported":true}}`)},
		{ID: "claude-m", DisplayName: "M", ParallelCalls: new(false), Efforts: []catalog.Effort{}},
	}, list))
}

// TestWrongFlags checks that what is wrong with flags is an error of the command line, before engines are asked and models loaded.
func TestWrongFlags(t *testing.T) {
	for args, has := range map[string]string{
		"-key-requests 5":                         "-key-requests, -key-tokens and -key-concurrent are limits of the keys in a file",
		"-key-concurrent -1":                      "set -keys-file",
		"-keys-file k -key-requests -5":           "-key-requests must not be negative",
		"-keys-file k -key-tokens -5":             "-key-tokens must not be negative",
		"-keys-file k -key-concurrent -2":         "-key-concurrent must be at least 0",
		"-listen nonsense":                        `-listen "nonsense": `,
		"-listen 127.0.0.1:99999":                 `-listen "127.0.0.1:99999": `,
		"-listen 127.0.0.1:nonsense":              `-listen "127.0.0.1:nonsense": `,
		"-allow-origin nonsense":                  "-allow-origin: ",
		"-allow-origin https://a -allow-origin b": "-allow-origin: ",
		"-tool-call-parser bogus":                 `-tool-call-parser: parsers: unknown family "bogus"`,
		"-reasoning-parser bogus":                 `-reasoning-parser: parsers: unknown family "bogus"`,
		"-alias m":                                `-alias "m"`,
		"-alias a -alias a":                       `-alias "a"`,
		"-alias=":                                 `-alias ""`,
	} {
		for _, more := range []string{"", " -check"} {
			c, err := parse(strings.Fields("-model m -engine embedded=local -model-dir nowhere "+args+more), io.Discard)
			if err == nil {
				err = c.checkModel() // -check reports it with what else is wrong with the model
			}
			require.ErrorAs(t, err, new(*cli.UsageError), args)
			require.ErrorContains(t, err, has)
		}
	}
	for _, args := range []string{
		"-listen :0", "-listen [::1]:8080", "-listen localhost:http", "-allow-origin https://chat.example:8443", "-alias a -alias b",
		"-keys-file k -key-requests 5 -key-tokens 5 -key-concurrent -1", "-tool-call-parser hermes -reasoning-parser qwen3",
	} {
		_, err := parse(strings.Fields("-model m -engine embedded=local "+args), io.Discard)
		require.NoError(t, err, args)
	}
}

func TestFlags(t *testing.T) {
	clitest.Check(t, "gateway", func(args []string, stdout *bytes.Buffer) error {
		return run(t.Context(), args, stdout, io.Discard, nil)
	})
}

func TestRunErrors(t *testing.T) {
	for args, has := range map[string]string{
		"-engine tgi=http://x":                                      `unknown engine kind "tgi"`,
		"-model m -engine vllm=http://u:sk-secret@x":                "engine x: a URL with a user",
		"-model m -engine vllm=http://x?key=sk-secret":              "engine x: a URL with a user, a query",
		"-model m -engine http://u:sk-secret@x:y":                   "must begin with http:// or https:// and a host",
		"-engine embedded=local":                                    "no model: set -model NAME",
		"-engine http://127.0.0.1:1":                                "cannot ask the engine what it is",
		"-model m -engine vllm=x":                                   "http://",
		"-model m -engine vllm=http://x -tool-call-parser klingon":  "klingon",
		"-model m -engine vllm=http://x -reasoning-parser klingon":  "klingon",
		"-model m -engine vllm=http://x -model-dir nowhere":         "nowhere",
		"-model m -engine vllm=http://x -listen 256.0.0.1:1":        "256.0.0.1",
		"-model m -engine vllm=http://x -listen :0":                 "not a loopback address: set -keys-file",
		"-model m -engine vllm=http://x -keys-file nowhere":         "nowhere",
		"-model m -engine embedded=local -tool-call-parser klingon": "klingon",
	} {
		err := run(t.Context(), strings.Fields(args), io.Discard, io.Discard, nil)
		require.ErrorContains(t, err, has)
		require.NotContains(t, err.Error(), "sk-secret")
	}
}

// TestConfigIsExact checks that what the YAML library would accept without a notice is an error: fractions of integers, further
// documents, and sizes that overflow.
func TestConfigIsExact(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	const engine = "model: m\nengines: [{kind: embedded, url: local}]\n"
	for text, has := range map[string]string{
		engine + "max_requests: 5.5\n":     "max_requests must be a whole number",
		engine + "max_requests: \"5.5\"\n": "max_requests must be a whole number",
		engine + "block_size: 16.5\n":      "block_size must be a whole number",
		"model: m\nengines: [{kind: embedded, url: local}, {kind: embedded, url: local, max_requests: 1.5}]\n": "engines[1].max_requests must be a whole number",
		engine + "tenants: [{name: a, policy: {max_tier: 0.5}}]\n":                                             "tenants[0].policy.max_tier must be a whole number",
		engine + "---\nmodel: n\n":                "second document",
		engine + "max_memory_mb: 9999999999999\n": "max_memory_mb must be at most",
		engine + "store_mb: 9999999999999\n":      "store_mb must be at most",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := parse([]string{"-config", file, "-check"}, io.Discard)
		require.ErrorContains(t, err, has, text)
	}
	for _, text := range []string{
		engine + "max_requests: 5\nkeep_alive: 2.5\nmodels: [{id: m, capabilities: {x: 1.5}}]\npolicy: {max_ttl: 1.5h}\n",
		"---\n" + engine + "---\n", engine + "tenants: [{name: \"1.5\", keys: [\"2.5\"]}]\n",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := parse([]string{"-config", file, "-check"}, io.Discard)
		require.NoError(t, err, text)
	}
	var help bytes.Buffer
	_, err := parse([]string{"-h"}, &help)
	require.EqualError(t, err, "done")
	require.Contains(t, help.String(), "limits, with requests_per_minute, tokens_per_minute and concurrent (-key-requests, -key-tokens, -key-concurrent)")
}

// TestConfigErrorsHideKeys checks that an error in the file names its position and prints no lines, which may have keys.
func TestConfigErrorsHideKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	for text, has := range map[string]string{
		"tenants:\n  - {name: a, keys: [sk-secret], nonsense: 1}\n": `[2:34] unknown field "nonsense"`,
		"tenants:\n  - name: a\n    keys: [sk-secret\n  - x\n":      "[4:3]",
		"tenants: [{name: a, keys: {sk-secret: 1}}]\n":              "[1:",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := parse([]string{"-config", file}, io.Discard)
		require.ErrorContains(t, err, file+": ")
		require.ErrorContains(t, err, has)
		require.NotContains(t, err.Error(), "sk-secret")
	}
}

// The family is inferred from the model unless a flag sets it; flags that contradict the model are an error.
func TestModelInfersFamily(t *testing.T) {
	calls := `{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls or [] %}` +
		`<tool_call>{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments if c.function.arguments is string else c.function.arguments | tojson }}}</tool_call>{% endfor %}{% endfor %}` +
		`{% if add_generation_prompt %}<assistant>{% endif %}`
	dir := t.TempDir()
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json"} {
		data, err := fs.ReadFile(mini.FS(), name)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "chat_template.jinja"), []byte(calls), 0o600))
	for _, tt := range []struct {
		c         config
		want, err string
	}{
		{config{Deployment: Deployment{Model: "m"}}, "hermes", ""},
		{config{Deployment: Deployment{Model: "Qwen/Qwen3-Coder-30B"}}, "qwen3_coder", ""},
		{config{Deployment: Deployment{Model: "openai/gpt-oss-20b"}}, "hermes", ""}, // gpt-oss does not write ChatML
		{config{Deployment: Deployment{Model: "m", ToolCallParser: "kimi_k2"}}, "kimi_k2", ""},
		{config{Deployment: Deployment{Model: "m", ReasoningParser: "qwen3"}}, "hermes+qwen3", ""},
		{config{Deployment: Deployment{Model: "m", ToolCallParser: "qwen25", ReasoningParser: "deepseek_r1"}}, "qwen25+deepseek_r1", ""},
		{config{Deployment: Deployment{Model: "m", ModelDir: dir}}, "hermes", ""},
		{config{Deployment: Deployment{Model: "Qwen/Qwen3-8B", ModelDir: dir}}, "qwen3", ""},
		{config{Deployment: Deployment{Model: "m", ModelDir: dir, ToolCallParser: "harmony"}}, "", dir + ": the parser harmony contradicts the template (the model's own template), which prints calls as hermes reads them"},
	} {
		m, err := model(&tt.c, slog.New(slog.DiscardHandler))
		if tt.err != "" {
			require.ErrorContains(t, err, tt.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, tt.want, m.Family(), tt.c)
	}
}

func TestTenants(t *testing.T) {
	c := &config{Policy: policyConfig{MinPriority: -5}, Tenants: []tenantConfig{
		{Name: "ops", Keys: []string{"sk-1", "sk-2"}, Policy: policyConfig{MaxPriority: 10}}, {Name: "web", Keys: []string{"sk-3"}},
	}}
	c.Tenants[1].Policy.Isolate = new(false)
	c.Tenants[1].Limits = limitsConfig{RequestsPerMinute: 5, Concurrent: 2}
	who, err := tenants(c)
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"ops": false, "web": true}, who.shared, "tenants are isolated unless they are configured otherwise")
	require.EqualValues(t, 10, who.policies["ops"].MaxPriority)

	file := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.WriteFile(file, []byte("# the team\nsk-4\n\nada sk-5\n"), 0o600))
	require.NoError(t, who.addFile(file, &limitsConfig{TokensPerMinute: 9}))
	require.Equal(t, []serve.Key{
		{Secret: "sk-1", Tenant: "ops"}, {Secret: "sk-2", Tenant: "ops"}, {Secret: "sk-3", Tenant: "web", RequestsPerMinute: 5, Concurrent: 2},
		{Secret: "sk-4", Name: "line 2", TokensPerMinute: 9}, {Secret: "sk-5", Name: "ada", TokensPerMinute: 9},
	}, who.keys)
	require.NoError(t, os.WriteFile(file, []byte("a b c\n"), 0o600))
	require.ErrorContains(t, new(access).addFile(file, &limitsConfig{}), "line 1: want a key")
	require.NoError(t, os.WriteFile(file, []byte("#\n"), 0o600))
	require.ErrorContains(t, new(access).addFile(file, &limitsConfig{}), "no keys")
	for has, list := range map[string][]tenantConfig{
		"tenant 1 has no name":                          {{Keys: []string{"x"}}},
		`tenant "a": limits must not be negative`:       {{Name: "a", Limits: limitsConfig{TokensPerMinute: -1}}},
		`duplicate tenant "a"`:                          {{Name: "a"}, {Name: "a"}},
		`tenant "b": key 1 is also a key of tenant "a"`: {{Name: "a", Keys: []string{"x"}}, {Name: "b", Keys: []string{"x"}}},
		`tenant "a": key 1 is empty`:                    {{Name: "a", Keys: []string{""}}},
	} {
		_, err := tenants(&config{Tenants: list})
		require.ErrorContains(t, err, has)
	}
}

func TestCarrier(t *testing.T) {
	one, two := strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	old, err := signer(one)
	require.NoError(t, err)
	now, err := signer(two + ", " + one)
	require.NoError(t, err)
	text, verdict := now.Open(string(old.AppendSigned(nil, []byte("thought"))), "thought")
	require.Equal(t, "thought", text)
	require.Equal(t, replay.Intact, verdict)
	random, err := signer(" ")
	require.NoError(t, err)
	_, verdict = random.Open(string(old.AppendSigned(nil, []byte("thought"))), "thought")
	require.NotEqual(t, replay.Intact, verdict)
	for _, bad := range []string{"xyz", "abcd", one + "," + "ab", one + ","} {
		_, err := signer(bad)
		require.ErrorContains(t, err, "WEFT_REASONING_KEY", bad)
	}
}

// TestRun serves with an engine in the process and one at a URL until its context is canceled.
func TestRun(t *testing.T) {
	e := vllm.New(mini.Load(), &vllm.Options{Model: "m"})
	url, stop, err := listen("127.0.0.1:0", e)
	require.NoError(t, err)
	defer func() { e.Close(); stop() }()
	addr, cancel, ended := startProgram(t, io.Discard, io.Discard, "-listen", "127.0.0.1:0", "-model", "m", "-engine", "embedded=local", "-engine", "embedded="+url)
	resp, err := http.Post("http://"+addr+"/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"m","max_tokens":3,"messages":[{"role":"user","content":"hello hello hello"}]}`))
	require.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Contains(t, string(b), `"content":"hel`)
	require.Contains(t, string(b), `"finish_reason":"length"`)
	http.DefaultClient.CloseIdleConnections()
	cancel()
	require.NoError(t, <-ended)
}

// TestModelConfig checks that the configuration has a key for each field of a record.
func TestModelConfig(t *testing.T) {
	m, c := reflect.TypeFor[catalog.Model](), reflect.TypeFor[modelConfig]()
	require.Equal(t, m.NumField(), c.NumField())
	var one modelConfig
	v := reflect.ValueOf(&one).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Interface().(type) {
		case string:
			f.SetString("x")
		case int64, int32:
			f.SetInt(7)
		case *bool:
			f.Set(reflect.ValueOf(new(true)))
		case []string:
			f.Set(reflect.ValueOf([]string{"x"}))
		case []level:
			f.Set(reflect.ValueOf([]level{{"x", "y"}}))
		case truncation:
			f.Set(reflect.ValueOf(truncation{"x", 7}))
		case map[string]any:
			f.Set(reflect.ValueOf(map[string]any{"x": 1}))
		default:
			t.Fatal("a new type:", f.Type())
		}
	}
	list, err := records([]modelConfig{one})
	require.NoError(t, err)
	got := reflect.ValueOf(list[0])
	for i := range got.NumField() {
		name := m.Field(i).Name
		require.False(t, got.Field(i).IsZero(), name)
	}
}
