// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/replay"
	"github.com/weft-go/weft/tokenizers/prompt"
	"github.com/weft-go/weft/tokenizers/template"
)

// This file limits what the gateway allocates for the next turn of a long conversation. internal/bench/cmd/turn measures
// the same with real vocabularies, and CPU time.

// agentJinja is a template with the parts of Qwen3's that depend on the length of a conversation: it looks for the last
// question, prints reasoning after it, and prints arguments as JSON.
const agentJinja = `{%- if tools %}<|im_start|>system
{% if messages[0].role == 'system' %}{{ messages[0].content }}

{% endif %}# Tools
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<|im_end|>
{% elif messages[0].role == 'system' %}<|im_start|>system
{{ messages[0].content }}<|im_end|>
{% endif %}
{%- set ns = namespace(last=-1) %}
{%- for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}
{%- for m in messages %}
{%- if m.role == 'user' or m.role == 'system' and not loop.first %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% elif m.role == 'assistant' %}<|im_start|>assistant
{% if loop.index0 > ns.last and m.reasoning_content %}<think>
{{ m.reasoning_content.strip('\n') }}
</think>

{% endif %}{{ m.content }}
{%- for call in m.tool_calls or [] %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {% if call.function.arguments is string %}{{ call.function.arguments }}{% else %}{{ call.function.arguments | tojson }}{% endif %}}
</tool_call>
{%- endfor %}<|im_end|>
{% elif m.role == 'tool' %}<|im_start|>user
<tool_response>
{{ m.content }}
</tool_response><|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}`

// TestWarmTurnMemory checks the allocations and bytes of a turn that adds a response with two calls and their results to
// a conversation of a given number of such turns. The limits are the observed values and a margin of 1 % for allocations
// and 5 % for bytes. Lower them with each improvement.
func TestWarmTurnMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	jinja, err := template.Parse("agent", agentJinja, nil)
	require.NoError(t, err)
	for _, tt := range []struct {
		name   string
		tpl    template.Template
		family string
		turns  int
		allocs float64
		kb     float64
	}{
		{"chatml", nil, "hermes", 20, 1125, 510},
		{"chatml", nil, "hermes", 80, 2800, 1220},
		{"jinja", jinja, "hermes", 20, 548, 428},
		{"jinja", jinja, "hermes", 80, 554, 850},
		{"harmony", lookup("harmony", variables{"sampled_calls": true}), "harmony", 80, 486, 795},
		{"deepseek", lookup("deepseek_v3_2", nil), "deepseek_v3_2", 80, 524, 842},
	} {
		if testing.Short() && tt.turns > 20 {
			continue
		}
		t.Run(fmt.Sprint(tt.name, "/turns=", tt.turns), func(t *testing.T) {
			allocs, kb := warmTurn(t, prompts(t, tt.tpl, tt.family), tt.turns)
			t.Logf("%.0f allocations, %.0f KB", allocs, kb)
			require.LessOrEqual(t, allocs, tt.allocs, "allocations")
			require.LessOrEqual(t, kb, tt.kb, "KB")
		})
	}
}

// warmTurn returns the mean allocations and KB of turns, the first of which follows the given number of turns.
func warmTurn(t *testing.T, model *prompt.Model, turns int) (allocs, kb float64) {
	t.Helper()
	const measured = 8
	signer, err := replay.NewSigner(make([]byte, replay.KeySize), nil)
	require.NoError(t, err)
	var last serve.Record
	opt := &serve.Options{
		Model: "m", Prompts: model, MaxModelLen: 1 << 20, StripPreamble: true, Signer: signer, OnDone: func(r serve.Record) { last = r },
		Transport: instantEngine{},
	}
	for i := range 4 {
		opt.Engines = append(opt.Engines, serve.Engine{URL: fmt.Sprintf("http://e%d.invalid", i)})
	}
	g, err := serve.New(opt)
	require.NoError(t, err)
	defer g.Close()
	a := newAgent(signer.With("\x00"))
	for range turns {
		a.turn()
	}
	send := func() {
		body := a.body()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/messages", bytes.NewReader(body))
		require.NoError(t, err)
		r.Header = http.Header{"User-Agent": {"claude-cli/2.1.330 (external, cli)"}, "X-Claude-Code-Session-Id": {"s"}, "Anthropic-Version": {"2023-06-01"}}
		w := &blank{header: http.Header{}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		g.ServeHTTP(w, r)
		runtime.ReadMemStats(&after)
		require.Equal(t, event.Stop.String(), last.Finish)
		require.Empty(t, last.Reasoning, "all reasoning is intact")
		allocs += float64(after.Mallocs-before.Mallocs) / measured
		kb += float64(after.TotalAlloc-before.TotalAlloc) / measured / 1024
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // collections empty pools
	send()
	a.turn()
	send()
	allocs, kb = 0, 0
	for range measured {
		a.turn()
		cached := last.Decision.CachedEstimate
		send()
		require.Greater(t, last.Decision.CachedEstimate, cached, "the prompt extends the previous one")
	}
	return allocs, kb
}

// instantEngine responds to each completion request at once.
type instantEngine struct{}

func (instantEngine) RoundTrip(r *http.Request) (*http.Response, error) {
	defer r.Body.Close()
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	const stream = `data: {"choices":[{"index":0,"text":"Done","finish_reason":null}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"text":".","finish_reason":"stop","stop_reason":null}]}` + "\n\n" +
		`data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}` + "\n\ndata: [DONE]\n\n"
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(stream)), Request: r}, nil
}

// blank is a response writer that discards the response.
type blank struct{ header http.Header }

func (b *blank) Header() http.Header         { return b.header }
func (b *blank) WriteHeader(int)             {}
func (b *blank) Write(p []byte) (int, error) { return len(p), nil }
func (b *blank) Flush()                      {}

// An agent writes the requests of a conversation in the form of Claude Code: see anthropicTurn and markLast.
type agent struct {
	signer   *replay.Signer
	messages []byte // without the end of the last one
	turns    int
}

func newAgent(signer *replay.Signer) *agent {
	return &agent{signer: signer, messages: []byte(`{"role":"user","content":[{"type":"text","text":"Find the bug."`)}
}

// turn adds a response of the model and the results of its calls.
func (a *agent) turn() {
	a.turns++
	thought := fmt.Sprintf("Step %d: the file <conn_%d.go> \"first\".\nThen the test.", a.turns, a.turns)
	text, err := json.Marshal(thought)
	if err != nil {
		panic(err)
	}
	var file strings.Builder
	for i := range 30 {
		fmt.Fprintf(&file, `%6d\tfunc f%d(s string) error { return fmt.Errorf(\"%%w: %d\", s) }\n`, i, i*a.turns, a.turns)
	}
	n := a.turns
	a.messages = fmt.Appendf(a.messages, `}]},{"role":"assistant","content":[{"type":"thinking","thinking":%s,"signature":"%s"},{"type":"text","text":"Reading on."},`+
		`{"type":"tool_use","id":"toolu_%da","name":"tool_0","input":{"path":"/src/conn_%d.go","limit":30}},{"type":"tool_use","id":"toolu_%db","name":"tool_1","input":{"path":"/src/conn_%d.go","old":"a := \"b\"\n","new":"a := 1\n"}}]},`+
		`{"role":"user","content":[{"tool_use_id":"toolu_%da","type":"tool_result","content":"%s","is_error":false},{"tool_use_id":"toolu_%db","type":"tool_result","content":"The file has been updated.","is_error":false`,
		text, a.signer.AppendSigned(nil, []byte(thought)), n, n, n, n, n, file.String(), n)
}

// body returns the request.
func (a *agent) body() []byte {
	b := append([]byte(`{"model":"m","messages":[`), a.messages...)
	b = fmt.Appendf(b, `,"cache_control":{"type":"ephemeral"}}]}],"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1.330.%x; cc_entrypoint=cli;"},`+
		`{"type":"text","text":"You are an agent.","cache_control":{"type":"ephemeral"}}],"tools":[`, a.turns)
	for i := range 10 {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"name":"tool_%d","description":"Reads or writes a file.","input_schema":{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer"},"old":{"type":"string"},"new":{"type":"string"}},"required":["path"]}}`, i)
	}
	return append(b, `],"max_tokens":1000,"thinking":{"type":"enabled","budget_tokens":500},"stream":true}`...)
}
