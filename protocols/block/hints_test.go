// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/completions"
	"github.com/weft-go/weft/protocols/intent"
	"github.com/weft-go/weft/protocols/messages"
	"github.com/weft-go/weft/protocols/wire"
)

// aHint is a field that is only a hint: its path, and a check of its type.
type aHint struct {
	path string
	good func(v any) bool
}

func isString(v any) bool { _, ok := v.(string); return ok }
func isObject(v any) bool { _, ok := v.(map[string]any); return ok }
func isTTL(v any) bool {
	f, ok := v.(float64)
	return isString(v) || ok && f == math.Trunc(f) && math.Abs(f) <= 1<<53
}

// hintBodies are requests of each API with every hint, and the paths of the hints. markHints are the hints inside a
// mark.
var hintBodies = []struct {
	a     api
	body  string
	marks []string
	hints []aHint
}{
	{
		a: api{block.Messages, messages.Decode, messages.AppendRequest},
		body: `{"model":"m","max_tokens":5,"metadata":{"user_id":"u","x":1},"service_tier":"auto","speed":"fast","cache_control":{"type":"ephemeral","ttl":"1h","scope":"global"},
			"nvext":{"agent_hints":{"osl":4},"router":{"ttft_target":5}},
			"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral","ttl":"1h","scope":"global"}}],
			"tools":[{"name":"t","input_schema":{},"cache_control":{"type":"ephemeral","ttl":"5m","scope":"global"}}],
			"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","cache_control":{"type":"ephemeral","ttl":"5m","scope":"a"},
				"content":[{"type":"text","text":"r","cache_control":{"type":"ephemeral","ttl":300,"scope":"a"}}]}]}]}`,
		marks: []string{"cache_control", "system[0].cache_control", "tools[0].cache_control", "messages[0].content[0].cache_control", "messages[0].content[0].content[0].cache_control"},
		hints: []aHint{{"metadata", isObject}, {"metadata.user_id", isString}, {"service_tier", isString}, {"speed", isString},
			{"nvext", isObject}, {"nvext.agent_hints", isObject}, {"nvext.router", isObject}},
	},
	{
		a: api{block.Chat, chat.Decode, chat.AppendRequest},
		body: `{"model":"m","metadata":{"x":"y"},"service_tier":"flex","user":"u","safety_identifier":"s","prompt_cache_key":"k","prompt_cache_retention":"24h",
			"prompt_cache_options":{"mode":"explicit","ttl":"30m"},"nvext":{"agent_hints":{"osl":4}},
			"tools":[{"type":"function","function":{"name":"t"},"cache_control":{"type":"ephemeral","ttl":"5m","scope":"a"}}],
			"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"1h","scope":"a"}},
			{"type":"text","text":"b","prompt_cache_breakpoint":{"mode":"explicit"}}]},
			{"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"b","prompt_cache_breakpoint":{"mode":"explicit"}}]}]}`,
		marks: []string{"tools[0].cache_control", "messages[0].content[0].cache_control", "messages[0].content[1].prompt_cache_breakpoint", "messages[1].content[0].prompt_cache_breakpoint"},
		hints: openAIHints,
	},
	{
		a: apis[1],
		body: `{"model":"m","metadata":{"x":"y"},"service_tier":"flex","user":"u","safety_identifier":"s","prompt_cache_key":"k","prompt_cache_retention":"24h",
			"prompt_cache_options":{"mode":"explicit","ttl":"30m"},"client_metadata":{"a":"b"},"nvext":{"agent_hints":{"osl":4}},
			"input":[{"role":"user","content":[{"type":"input_text","text":"b","prompt_cache_breakpoint":{"mode":"explicit"}}]},
			{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"b","prompt_cache_breakpoint":{"mode":"explicit"}}]}]}`,
		marks: []string{"input[0].content[0].prompt_cache_breakpoint", "input[1].output[0].prompt_cache_breakpoint"},
		hints: append([]aHint{{"client_metadata", isObject}}, openAIHints...),
	},
	{
		a: api{block.Completions, completions.Decode, completions.AppendRequest},
		body: `{"model":"m","prompt":"a","metadata":{"x":"y"},"service_tier":"flex","user":"u","safety_identifier":"s","prompt_cache_key":"k",
			"prompt_cache_retention":"24h","prompt_cache_options":{"mode":"explicit","ttl":"30m"},"nvext":{"agent_hints":{"osl":4}}}`,
		hints: openAIHints,
	},
}

var openAIHints = []aHint{
	{"metadata", isObject}, {"service_tier", isString}, {"user", isString}, {"safety_identifier", isString}, {"prompt_cache_key", isString},
	{"prompt_cache_retention", isString}, {"prompt_cache_options", isObject}, {"prompt_cache_options.mode", isString},
	{"prompt_cache_options.ttl", isTTL}, {"nvext", isObject}, {"nvext.agent_hints", isObject},
}

// step finds the object that contains the field at a path, or nil if the path does not exist, and the field's name.
func step(root any, path string) (obj map[string]any, name string) {
	parts := strings.FieldsFunc(path, func(c rune) bool { return c == '.' || c == '[' || c == ']' })
	for _, p := range parts[:len(parts)-1] {
		switch v := root.(type) {
		case map[string]any:
			root = v[p]
		case []any:
			root = v[p[0]-'0']
		}
	}
	obj, _ = root.(map[string]any)
	return obj, parts[len(parts)-1]
}

// faultsOf returns the faults in a request's hints.
func faultsOf(r *block.Request) (list []intent.Fault) {
	_, list = intent.Read(intent.Source{API: r.API().String(), Field: r.Field})
	_, more := wire.Breakpoints(r)
	return append(list, more...)
}

// TestHintsOfAnyType replaces hints by values of any type: decoding succeeds, nothing else changes, and each hint is
// reported.
func TestHintsOfAnyType(t *testing.T) {
	for _, tt := range hintBodies {
		hints := slices.Clone(tt.hints)
		for _, m := range tt.marks {
			hints = append(hints, aHint{m, isObject})
			for _, key := range []string{"type", "ttl", "scope", "mode"} {
				if at := m + "." + key; key == "ttl" {
					hints = append(hints, aHint{at, isTTL})
				} else if key != "mode" || strings.HasSuffix(m, "breakpoint") {
					hints = append(hints, aHint{at, isString})
				}
			}
		}
		t.Run(tt.a.api.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				var odd, without any
				for _, p := range []*any{&odd, &without} {
					if err := json.Unmarshal([]byte(tt.body), p); err != nil {
						t.Fatal(err)
					}
				}
				var bad []string
				for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, len(hints)-1), 1, 6, rapid.ID).Draw(t, "which") {
					h := hints[i]
					obj, name := step(odd, h.path)
					clean, _ := step(without, h.path)
					if obj == nil || clean == nil {
						continue // the object that contained it is gone
					}
					if slices.ContainsFunc(bad, func(b string) bool { return strings.HasPrefix(b, h.path+".") }) {
						continue
					}
					text := rapid.SampledFrom([]string{
						"null", "true", "false", "1.5", "600", "-1e300", `""`, `"x"`, "[]", `["a"]`, "{}",
					}).Draw(t, "value")
					var v, also any
					_, _ = json.Unmarshal([]byte(text), &v), json.Unmarshal([]byte(text), &also)
					if obj[name], clean[name] = v, also; v != nil && !h.good(v) {
						delete(clean, name)
						bad = append(bad, h.path)
					}
				}
				body, err := json.Marshal(odd)
				if err != nil {
					t.Fatal(err)
				}
				r, err := tt.a.decode(bytes.Clone(body), nil)
				if err != nil {
					t.Fatalf("%v\n%s", err, body)
				}
				if out, err := r.AppendBody(nil); err != nil || !bytes.Equal(out, body) {
					t.Fatalf("%v\n%s\n%s", err, out, body)
				}
				least, _ := json.Marshal(without)
				plain, err := tt.a.decode(least, nil)
				if err != nil {
					t.Fatal(err)
				}
				if !r.Equal(plain) {
					t.Fatalf("more is different\n%s\n%s", body, least)
				}
				faults := faultsOf(r)
				for _, path := range bad {
					if !slices.ContainsFunc(faults, func(f intent.Fault) bool { return f.Where == path }) {
						t.Fatalf("%s is not reported: %v\n%s", path, faults, body)
					}
				}
				for _, o := range apis { // treated as absent there, too
					if o.api == tt.a.api {
						continue
					}
					got, _, err := o.encode(nil, r, nil)
					want, _, also := o.encode(nil, plain, nil)
					if err != nil || also != nil || !bytes.Equal(got, want) {
						t.Fatalf("to %v: %v %v\n%s\n%s\n%s", o.api, err, also, body, got, want)
					}
				}
				off, err := detached(tt.a, body)
				if err != nil {
					t.Fatal(err)
				}
				if out, err := off.AppendBody(nil); err != nil {
					t.Fatal(err)
				} else if same, diff := equalJSON(out, body); !same || !off.Equal(r) {
					t.Fatalf("detached: %s", diff)
				}
				for _, path := range bad {
					if !slices.ContainsFunc(faultsOf(off), func(f intent.Fault) bool { return f.Where == path }) {
						t.Fatalf("detached: %s is not reported: %v\n%s", path, faultsOf(off), body)
					}
				}
			})
		})
	}
}

// TestInvalidMarksReported checks the paths and reasons of faults in marks, with the body and without.
func TestInvalidMarksReported(t *testing.T) {
	body := `{"model":"m","max_tokens":1,"cache_control":7,"service_tier":3,"metadata":{"user_id":[1]},
		"tools":[{"name":"x","input_schema":{},"cache_control":true},{"type":"web_search_20250305","name":"w","cache_control":{"ttl":[]}}],
		"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b","cache_control":{"type":"ephemeral","ttl":300}},
			{"type":"text","text":"c","cache_control":{"type":1,"ttl":{},"scope":null}},{"type":"new","cache_control":{"ttl":1.5}},
			{"type":"text","text":"d","cache_control":{"ttl":86400}}]}]}`
	r, err := messages.Decode([]byte(body), nil)
	require.NoError(t, err)
	off, err := detached(apis[2], []byte(body))
	require.NoError(t, err)
	for _, r := range []*block.Request{r, off} {
		require.Equal(t, &block.Cache{Type: "ephemeral", TTL: "300"}, r.Turns()[0].Blocks[1].Cache)
		require.Equal(t, &block.Cache{}, r.Turns()[0].Blocks[2].Cache)
		list, _ := wire.Breakpoints(r)
		require.Len(t, list, 5, "of the second tool and of four blocks")
		var lines []string
		for _, f := range faultsOf(r) {
			lines = append(lines, f.Where+" "+f.Value+": "+f.Why)
		}
		if diff := cmp.Diff([]string{
			"metadata.user_id [1]: not a string", "service_tier 3: not a string", "cache_control 7: not an object",
			"tools[0].cache_control true: not an object", "tools[1].cache_control.ttl []: not a string",
			"messages[0].content[2].cache_control.type 1: not a string", "messages[0].content[2].cache_control.ttl {}: not a string",
			"messages[0].content[3].cache_control.ttl 1.5: not a string",
			"messages[0].content[4].cache_control.ttl 86400: not from 300 to 3600 seconds; the nearest is used",
			"cache_control 5: more than 4 breakpoints",
		}, lines); diff != "" {
			t.Error(diff)
		}
	}

	// A mark that was corrected is no longer reported.
	b := off.Turns()[0].Blocks[2]
	b.Cache = &block.Cache{TTL: "1h"}
	require.NoError(t, off.Set(b.At, b))
	for _, f := range faultsOf(off) {
		require.NotContains(t, f.Where, "content[2].cache_control.ttl")
	}

	// The other APIs' handling of times to live.
	fromChat, err := chat.Decode([]byte(`{"model":"m","messages":[{"role":"user","content":[
		{"type":"text","text":"a","cache_control":{"ttl":300,"scope":"global"}},{"type":"text","text":"b","cache_control":{"ttl":600}}]}],
		"tools":[{"type":"function","function":{"name":"t"},"cache_control":{"ttl":"24h"}}]}`), nil)
	require.NoError(t, err)
	out, losses, err := messages.AppendRequest(nil, fromChat, nil)
	require.NoError(t, err)
	require.Contains(t, string(out), `"content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"5m","scope":"global"}},{"type":"text","text":"b","cache_control":{"type":"ephemeral"}}]`)
	var lines []string
	for _, l := range losses {
		lines = append(lines, l.String())
	}
	require.Contains(t, lines, "messages[0].content[1]: a time to live that the Messages API does not have: 600")
	require.Contains(t, lines, "tools[0]: a time to live that the Messages API does not have: 24h")
	_, losses, err = chat.AppendRequest(nil, r, nil)
	require.NoError(t, err)
	require.NotContains(t, losses, block.Loss{Path: "messages[0].content[1]", Why: "the scope of a cache breakpoint"})
	scoped, err := messages.Decode([]byte(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"scope":"global"}}]}]}`), nil)
	require.NoError(t, err)
	for _, o := range apis[:2] {
		_, losses, err = o.encode(nil, scoped, nil)
		require.NoError(t, err)
		require.Equal(t, []block.Loss{{Path: "messages[0].content[0]", Why: "the scope of a cache breakpoint"}}, losses)
	}
}
