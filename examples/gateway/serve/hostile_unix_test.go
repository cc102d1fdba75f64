// SPDX-License-Identifier: Apache-2.0

//go:build unix

package serve_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/examples/gateway/serve"
)

// spent returns the CPU time of the process.
func spent(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestHostileForms sends bodies of 1 MB whose schemas, demands, tools, items and parameters are as expensive as possible to
// read, translate or pass on, to engines of five kinds. None may allocate 200 MB in all. In long runs, none may take more CPU
// time than permitted either; work that grows with the square of the body takes more.
func TestHostileForms(t *testing.T) {
	const size = 1<<20 - 1000
	rep := func(front, piece, sep, back string) string {
		n := (size - len(front) - len(back)) / (len(piece) + len(sep))
		return front + strings.TrimSuffix(strings.Repeat(piece+sep, n), sep) + back
	}
	each := func(front, format, sep, back string) string {
		var b strings.Builder
		b.WriteString(front)
		for i := 0; b.Len() < size-len(back)-len(format)-10; i++ {
			if i > 0 {
				b.WriteString(sep)
			}
			fmt.Fprintf(&b, format, i)
		}
		return b.String() + back
	}
	nest := func(open, mid, shut string) string {
		n := size / (len(open) + len(shut))
		return strings.Repeat(open, n) + mid + strings.Repeat(shut, n)
	}
	deep := func(n int, open, mid, shut string) string {
		return strings.Repeat(open, n) + mid + strings.Repeat(shut, n)
	}
	half := func(front, format, middle, second string) string {
		const n = 12_000
		var a, b []string
		for i := range n {
			a = append(a, fmt.Sprintf(format, i))
			b = append(b, fmt.Sprintf(second, i, i))
		}
		return front + strings.Join(a, ",") + middle + strings.Join(b, ",") + "}}"
	}
	schemas := map[string]string{
		"enum":        each(`{"enum":[`, `"v%d"`, ",", `]}`),
		"ones":        rep(`{"enum":[`, `1`, ",", `]}`),
		"oneOf":       rep(`{"oneOf":[`, `{"type":"string"}`, ",", `]}`),
		"anyOf":       rep(`{"anyOf":[`, `{}`, ",", `]}`),
		"allOf":       rep(`{"allOf":[`, `{"type":"object"}`, ",", `]}`),
		"properties":  each(`{"type":"object","properties":{`, `"p%d":{}`, ",", `}}`),
		"strings":     each(`{"type":"object","additionalProperties":false,"properties":{`, `"p%d":{"type":"string"}`, ",", `}}`),
		"required":    each(`{"type":"object","required":[`, `"p%d"`, ",", `]}`),
		"nested":      nest(`{"type":"object","properties":{"a":`, `{}`, `}}`),
		"nested 60":   deep(60, `{"type":"object","properties":{"a":`, `{}`, `}}`),
		"arrays":      nest(`{"items":`, `{}`, `}`),
		"arrays 100":  deep(100, `{"type":"array","items":`, `{}`, `}`),
		"pattern":     `{"type":"string","pattern":"` + rep(``, `a`, "", ``) + `"}`,
		"groups":      `{"type":"string","pattern":"` + nest(`(`, `a`, `)`) + `"}`,
		"counts":      `{"type":"string","pattern":"` + deep(9, `(`, `a`, `{1,999}){1,999}`) + `"}`,
		"alternation": `{"type":"string","pattern":"` + rep(``, `a|`, "", ``) + `"}`,
		"classes":     `{"type":"string","pattern":"` + rep(``, `[^a-z]`, "", ``) + `"}`,
		"maxLength":   `{"type":"string","minLength":999999999,"maxLength":1000000000}`,
		"minItems":    `{"type":"array","items":{"type":"integer"},"minItems":999999999,"maxItems":1000000000}`,
		"integers":    `{"type":"integer","minimum":-99999999999999999999999999,"maximum":9999999999999999999999999999}`,
		"refs":        each(`{"$ref":"#/$defs/d0","$defs":{`, `"d%d":{"$ref":"#/$defs/d1"}`, ",", `}}`),
		"double refs": `{"$ref":"#/$defs/d0","$defs":{` + func() string {
			var b strings.Builder
			for i := range 60 {
				fmt.Fprintf(&b, `"d%d":{"type":"object","properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}},`, i, i+1, i+1)
			}
			return b.String()
		}() + `"d60":{"type":"string"}}}`,
		"double allOf": `{"$ref":"#/$defs/d0","$defs":{` + func() string {
			var b strings.Builder
			for i := range 60 {
				fmt.Fprintf(&b, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
			}
			return b.String()
		}() + `"d60":{"type":"object"}}}`,
		"oneOf consts": each(`{"oneOf":[`, `{"const":"v%d"}`, ",", `]}`),
		"oneOf refs":   each(`{"$defs":{"a":{"type":"string"}},"oneOf":[`, `{"$ref":"#/$defs/a%d"}`, ",", `]}`),
		"anyOf refs":   half(`{"anyOf":[`, `{"$ref":"#/$defs/d%d"}`, `],"$defs":{`, `"d%d":{"enum":[%d]}`),
		"letters":      `{"type":"string","pattern":"` + rep(``, `\\pL`, "", ``) + `"}`,
		"folded":       `{"type":"string","pattern":"(?i)` + rep(``, `k`, "", ``) + `"}`,
		"self":         `{"$ref":"#"}`,
		"const":        `{"const":` + nest(`[`, ``, `]`) + `}`,
		"big const":    `{"const":"` + rep(``, `a`, "", ``) + `"}`,
		"description":  `{"type":"object","description":"` + rep(``, `\n`, "", ``) + `"}`,
	}
	type form struct{ path, body string }
	forms := map[string]form{}
	for name, s := range schemas {
		forms["chat tool "+name] = form{"/v1/chat/completions", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"tool_choice":"required","tools":[{"type":"function","function":{"name":"f","parameters":` + s + `}}]}`}
		forms["chat format "+name] = form{"/v1/chat/completions", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema","json_schema":{"name":"a","strict":true,"schema":` + s + `}}}`}
		forms["messages tool "+name] = form{"/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"tool_choice":{"type":"any"},"tools":[{"name":"f","input_schema":` + s + `}]}`}
		forms["messages format "+name] = form{"/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"output_config":{"format":{"type":"json_schema","schema":` + s + `}}}`}
		forms["responses tool "+name] = form{"/v1/responses", `{"model":"m","input":"x","tool_choice":"required","tools":[{"type":"function","name":"f","parameters":` + s + `}]}`}
		forms["responses format "+name] = form{"/v1/responses", `{"model":"m","input":"x","text":{"format":{"type":"json_schema","name":"a","schema":` + s + `}}}`}
	}
	chat := func(name, rest string) {
		forms["chat "+name] = form{"/v1/chat/completions", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],` + rest + `}`}
		forms["responses "+name] = form{"/v1/responses", `{"model":"m","input":"x",` + rest + `}`}
		forms["messages "+name] = form{"/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],` + rest + `}`}
		forms["completions "+name] = form{"/v1/completions", `{"model":"m","max_tokens":9,"prompt":"x",` + rest + `}`}
	}
	chat("logit_bias", each(`"logit_bias":{`, `"%d":1`, ",", `}`))
	chat("stop", each(`"stop":[`, `"s%d"`, ",", `]`))
	chat("stops of one", rep(`"stop":[`, `"a"`, ",", `]`))
	chat("long stop", `"stop":"`+rep(``, `a`, "", ``)+`"`)
	chat("stop_sequences", each(`"stop_sequences":[`, `"s%d"`, ",", `]`))
	chat("stop_token_ids", rep(`"stop_token_ids":[`, `1`, ",", `]`))
	chat("regex", `"structured_outputs":{"regex":"`+rep(``, `(a|b)`, "", ``)+`"}`)
	chat("regex counts", `"structured_outputs":{"regex":"`+deep(9, `(`, `a`, `{1,999}){1,999}`)+`"}`)
	chat("regex nested", `"structured_outputs":{"regex":"`+nest(`(`, `a`, `)`)+`"}`)
	chat("choice", each(`"structured_outputs":{"choice":[`, `"c%d"`, ",", `]}`))
	chat("grammar", each(`"structured_outputs":{"grammar":"`, `r%d ::= \"a\"\n`, "", `"}`))
	chat("guided_grammar", `"guided_grammar":"root ::= `+nest(`(`, `a`, `)`)+`"`)
	chat("tag", `"structured_outputs":{"structural_tag":"`+nest(`[`, ``, `]`)+`"}`)
	chat("tag object", each(`"response_format":{"type":"structural_tag","format":{"type":"or","elements":[`, `{"type":"const_string","value":"%d"}`, ",", `]}}`))
	chat("kwargs", `"chat_template_kwargs":`+each(`{`, `"k%d":[[]]`, ",", `}`))
	chat("fields", each(``, `"f%d":1`, ",", ``))
	chat("user", `"user":"`+rep(``, `a`, "", ``)+`"`)
	chat("metadata", each(`"metadata":{`, `"k%d":"v"`, ",", `}`))
	chat("nvext", each(`"nvext":{"annotations":[`, `"a%d"`, ",", `]}`))
	forms["long model"] = form{"/v1/chat/completions", `{"model":"` + rep(``, `m`, "", ``) + `","messages":[{"role":"user","content":"x"}]}`}
	forms["images"] = form{"/v1/chat/completions", rep(`{"model":"m","messages":[{"role":"user","content":[`, `{"type":"image_url","image_url":{"url":"http://a/b.png"}}`, ",", `]}]}`)}
	forms["image data"] = form{"/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + rep(``, `QUFB`, "", ``) + `"}}]}]}`}
	forms["response images"] = form{"/v1/responses", rep(`{"model":"m","input":[{"role":"user","content":[`, `{"type":"input_image","image_url":"http://a"}`, ",", `]}]}`)}
	forms["tools"] = form{"/v1/chat/completions", each(`{"model":"m","messages":[{"role":"user","content":"x"}],"tool_choice":"required","tools":[`, `{"type":"function","function":{"name":"f%d","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}}`, ",", `]}`)}
	forms["messages tools"] = form{"/v1/messages", each(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"tool_choice":{"type":"any"},"tools":[`, `{"name":"f%d","input_schema":{}}`, ",", `]}`)}
	forms["response tools"] = form{"/v1/responses", each(`{"model":"m","input":"x","tool_choice":"required","tools":[`, `{"type":"function","name":"f%d","parameters":{}}`, ",", `]}`)}
	forms["namespaces"] = form{"/v1/responses", each(`{"model":"m","input":"x","tools":[`, `{"type":"namespace","name":"n%d","tools":[{"type":"function","name":"f"}]}`, ",", `]}`)}
	forms["allowed tools"] = form{"/v1/chat/completions", each(`{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[`, `{"type":"function","function":{"name":"f%d"}}`, ",", `]}}}`)}
	forms["response items"] = form{"/v1/responses", rep(`{"model":"m","input":[`, `{"role":"user","content":"a"}`, ",", `]}`)}
	forms["response calls"] = form{"/v1/responses", each(`{"model":"m","input":[{"role":"user","content":"a"},`, `{"type":"function_call","call_id":"c%d","name":"f","arguments":"{}"}`, ",", `]}`)}
	forms["response pairs"] = form{"/v1/responses", each(`{"model":"m","input":[{"role":"user","content":"a"},`, `{"type":"function_call","call_id":"c%[1]d","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c%[1]d","output":"x"}`, ",", `]}`)}
	forms["response reasoning"] = form{"/v1/responses", rep(`{"model":"m","input":[`, `{"type":"reasoning","summary":[],"encrypted_content":"abc"}`, ",", `]}`)}
	forms["unsigned thinking"] = form{"/v1/messages", rep(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"}`, `,{"role":"assistant","content":[{"type":"thinking","thinking":"a","signature":""}]},{"role":"user","content":"a"}`, "", `]}`)}
	forms["unsigned thinking in a turn"] = form{"/v1/messages", rep(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[`, `{"type":"thinking","thinking":"a","signature":""}`, ",", `]}]}`)}
	forms["chat reasoning"] = form{"/v1/chat/completions", rep(`{"model":"m","messages":[`, `{"role":"user","content":"a"},{"role":"assistant","reasoning_content":"a","content":"b"}`, ",", `]}`)}
	forms["unknown items"] = form{"/v1/responses", rep(`{"model":"m","input":[`, `{"type":"x"}`, ",", `]}`)}
	forms["compaction"] = form{"/v1/responses", rep(`{"model":"m","input":[`, `{"type":"compaction","encrypted_content":"abc"}`, ",", `]}`)}
	forms["chat turns"] = form{"/v1/chat/completions", rep(`{"model":"m","messages":[`, `{"role":"user","content":"a"},{"role":"assistant","content":"b"}`, ",", `]}`)}
	forms["chat systems"] = form{"/v1/chat/completions", rep(`{"model":"m","messages":[`, `{"role":"system","content":"a"}`, ",", `,{"role":"user","content":"b"}]}`)}
	forms["chat calls"] = form{"/v1/chat/completions", each(`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[`, `{"id":"c%d","type":"function","function":{"name":"f","arguments":"{}"}}`, ",", `]}]}`)}
	forms["chat deep arguments"] = form{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"` + nest(`[`, ``, `]`) + `"}}]}]}`}
	forms["chat wide arguments"] = form{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"` + rep(`{\"a\":[`, `{}`, `,`, `]}`) + `"}}]}]}`}
	forms["same keys"] = form{"/v1/chat/completions", rep(`{"model":"m","messages":[{"role":"user","content":"a"}],`, `"a":1`, ",", `}`)}
	forms["emoji"] = form{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"` + rep(``, "🚀", "", ``) + `"}]}`}
	forms["combining"] = form{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"` + rep(``, "\u0323\u0301", "", ``) + `"}]}`}
	forms["escapes"] = form{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"` + rep(``, `\ud83d`, "", ``) + `"}]}`}
	forms["digits"] = form{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"` + rep(``, `1`, "", ``) + `"}]}`}
	forms["number"] = form{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"}],"temperature":` + rep(``, `1`, "", ``) + `}`}
	forms["choices"] = form{"/v1/chat/completions", `{"model":"m","n":16,"messages":[{"role":"user","content":"` + rep(``, `a b `, "", ``) + `"}]}`}
	forms["completions ids"] = form{"/v1/completions", rep(`{"model":"m","prompt":[`, `1`, ",", `]}`)}
	forms["completions text"] = form{"/v1/completions", `{"model":"m","prompt":"` + rep(``, `ab`, "", ``) + `"}`}
	forms["completions prompts"] = form{"/v1/completions", rep(`{"model":"m","prompt":[`, `"a"`, ",", `]}`)}
	forms["embeddings"] = form{"/v1/embeddings", rep(`{"model":"m","input":[`, `"a"`, ",", `]}`)}
	forms["embeddings ids"] = form{"/v1/embeddings", rep(`{"model":"m","input":[`, `[1]`, ",", `]}`)}
	forms["tokenize"] = form{"/v1/tokenize", `{"model":"m","prompt":"` + rep(``, `ab`, "", ``) + `"}`}
	forms["detokenize"] = form{"/v1/detokenize", rep(`{"model":"m","tokens":[`, `1`, ",", `]}`)}
	forms["count_tokens"] = form{"/v1/messages/count_tokens", rep(`{"model":"m","messages":[`, `{"role":"user","content":"a"}`, ",", `]}`)}
	forms["thread"] = form{"/v1/responses", `{"model":"m","input":"x","previous_response_id":"` + rep(``, `a`, "", ``) + `"}`}

	names := slices.Sorted(maps.Keys(forms))
	step := 10
	if longRun() {
		step = 1
	}
	for _, kind := range []upstream.Kind{upstream.VLLM{}, upstream.LlamaCPP{}, upstream.OpenAI, upstream.Anthropic, upstream.Responses} {
		g := stubbed(t, 1, hello(), func(o *serve.Options) {
			o.Engines[0].Kind, o.HealthInterval = kind, -1
			if _, ok := kind.(upstream.Managed); ok {
				o.Prompts = nil
			}
		})
		defer g.Close()
		for i := 0; i < len(names); i += step {
			name, f := names[i], forms[names[i]]
			require.LessOrEqual(t, len(f.body), 1<<20)
			send := func() (w *httptest.ResponseRecorder, cpu time.Duration) {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, f.path, strings.NewReader(f.body))
				w = httptest.NewRecorder()
				cpu = spent(t)
				g.ServeHTTP(w, r)
				return w, spent(t) - cpu
			}
			var w *httptest.ResponseRecorder
			var cpu time.Duration
			used := allocated(func() { w, cpu = send() })
			if !raceEnabled { // the race detector takes more of both
				require.Less(t, used/1e6, uint64(200), "MB allocated for %s by %T", name, kind)
			}
			if !raceEnabled && longRun() {
				limit := permitted(t, cpu, forms["chat turns"].body)
				for again := 0; cpu >= limit && again < 3; again++ { // on a shared machine, some take three times as long
					_, cpu = send()
					limit = permitted(t, cpu, forms["chat turns"].body)
				}
				require.Less(t, cpu, limit, "%s by %T", name, kind)
			}
			require.NotEmpty(t, w.Body.String())
		}
	}
}

// longRun reports whether tests take long and measure time.
func longRun() bool { return os.Getenv("WEFT_TEST") == "long" }

// permitted returns the CPU time that a request may take which took cpu: 40 times decoding body, of 1 MB, with encoding/json at the
// machine's present speed, which takes 12 to 90 ms. It does not measure that for requests that take less on any machine.
func permitted(t *testing.T, cpu time.Duration, body string) time.Duration {
	if fast := 200 * time.Millisecond; cpu < fast {
		return fast
	}
	begun := spent(t)
	var v any
	require.NoError(t, json.Unmarshal([]byte(body), &v))
	return 40 * (spent(t) - begun)
}

// TestManagedHostileFields sends a body of 1 MB with fields that an endpoint's API does not have.
func TestManagedHostileFields(t *testing.T) {
	var b strings.Builder
	for i := 0; b.Len() < 1<<20-200; i++ {
		fmt.Fprintf(&b, `"f%d":1,`, i)
	}
	e := newEndpoint(t, playing(upstream.Anthropic, callScene))
	r := managed(t, upstream.Anthropic, nil, e)
	sent := `{` + b.String() + `"model":"m","messages":[{"role":"user","content":"x"}]}`
	var status int
	var body string
	begun := spent(t)
	used := allocated(func() { status, _, body = send(t, r.url+"/v1/chat/completions", sent) })
	cpu := spent(t) - begun
	require.Equal(t, 200, status, body)
	if !raceEnabled {
		require.Less(t, used/1e6, uint64(200), "MB allocated")
	}
	if !raceEnabled && longRun() {
		require.Less(t, cpu, permitted(t, cpu, sent))
	}
}
