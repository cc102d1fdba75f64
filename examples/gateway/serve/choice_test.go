// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/examples/gateway/serve"
)

// choiceForms returns, for an API in the order of apiCases, fields with tool choices that it does not specify, and those of a type
// that may be a tool which another server runs.
func choiceForms(api int) (unknown, hosted []object) {
	tool := object{"type": "function", "name": "read"}
	allowed := object{"type": "allowed_tools", "mode": "zzz", "tools": []any{tool}}
	hosted = []object{{"tool_choice": object{"type": "zzz"}}}
	unknown = []object{{"tool_choice": object{}}}
	switch api {
	case 0:
		allowed = object{"type": "allowed_tools", "allowed_tools": object{"mode": "zzz", "tools": []any{object{"type": "function", "function": object{"name": "read"}}}}}
		unknown = append(unknown, object{"function_call": "zzz"}, object{"tool_choice": "zzz"}, object{"tool_choice": allowed})
	case 1:
		hosted = append(hosted, object{"tool_choice": object{"type": "web_search_preview"}}, object{"tool_choice": object{"type": "mcp", "server_label": "x"}})
		unknown = append(unknown, object{"tool_choice": "zzz"}, object{"tool_choice": allowed})
	}
	return unknown, hosted
}

// undeclared returns, for an API in the order of apiCases, fields with tool choices that name a tool which is not declared.
func undeclared(api int) []object {
	switch api {
	case 0:
		return []object{{"tool_choice": object{"type": "function", "function": object{"name": "gone"}}}, {"function_call": object{"name": "gone"}}}
	case 1:
		return []object{
			{"tool_choice": object{"type": "function", "name": "gone"}},
			{"tool_choice": object{"type": "allowed_tools", "mode": "auto", "tools": []any{object{"type": "function", "name": "read"}, object{"type": "function", "name": "gone"}}}},
		}
	}
	return []object{{"tool_choice": object{"type": "tool", "name": "gone"}}}
}

// with returns a request with a field, and the name of the field.
func (a apiCase) with(field object) (body object, param string) {
	body = a.body("Hi", false)
	for name, value := range field {
		body[name], param = value, name
	}
	return body, param
}

// wantParam requires an error with a field, which the Messages API does not have.
func (a apiCase) wantParam(t testing.TB, status int, text, param string) {
	t.Helper()
	require.Equal(t, 400, status, text)
	if a.anthropic {
		return
	}
	var e struct{ Error struct{ Param string } }
	require.NoError(t, json.Unmarshal([]byte(text), &e), text)
	require.Equal(t, param, e.Error.Param, text)
}

// refuses checks that requests with each of the fields get an error that names the field.
func (a apiCase) refuses(t *testing.T, url string, fields []object) {
	t.Helper()
	for _, field := range fields {
		body, param := a.with(field)
		status, _, text := send(t, url+a.path, body)
		a.wantParam(t, status, text, param)
	}
}

// drops checks that each of the fields has no effect, and that the header names it.
func (a apiCase) drops(t *testing.T, url string, fields []object) {
	t.Helper()
	for _, field := range fields {
		body, param := a.with(field)
		status, head, text := send(t, url+a.path, body)
		require.Equal(t, 200, status, text)
		require.Equal(t, param, head.Get("X-Weft-Dropped"))
	}
}

// A tool choice that is not known is refused and does not become auto. One that names a tool of another server can be
// permitted: it then has no effect, and the header names it.
func TestUnknownToolChoiceIsRefused(t *testing.T) {
	for i, a := range apiCases {
		t.Run(a.name, func(t *testing.T) {
			r := start(t, 1, say(answer), nil)
			lax := start(t, 1, say(answer), func(o *serve.Options) { o.Unconstrained = true })
			unknown, hosted := choiceForms(i)
			a.refuses(t, r.url, append(unknown, append(hosted, undeclared(i)...)...))
			a.refuses(t, lax.url, unknown)
			a.drops(t, lax.url, hosted)
			body, _ := a.with(object{"tool_choice": nil})
			status, head, text := send(t, r.url+a.path, body)
			require.Equal(t, 200, status, text)
			require.Empty(t, head.Get("X-Weft-Dropped"))
		})
	}
}

// A tool choice that is not known, or that names a tool which is not declared, is refused where the request would be converted.
// An endpoint of the client's API gets it, since it may know more.
func TestManagedToolChoiceIsCheckedForConversions(t *testing.T) {
	for i, a := range apiCases {
		for _, k := range managedKinds {
			t.Run(a.name+" to "+k.String(), func(t *testing.T) {
				e := newEndpoint(t, playing(k, lengthScene))
				r := managed(t, k, nil, e)
				lax := managed(t, k, func(o *serve.Options) { o.Unconstrained = true }, e)
				unknown, hosted := choiceForms(i)
				for _, field := range append(unknown, append(hosted, undeclared(i)...)...) {
					body, param := a.with(field)
					sent := len(e.paths)
					status, head, text := send(t, r.url+a.path, body)
					if k.API().Path() == a.path {
						require.Equal(t, 200, status, text)
						require.Empty(t, head.Get("X-Weft-Dropped"))
						got, _ := e.last(t)
						want, err := json.Marshal(field[param])
						require.NoError(t, err)
						require.Contains(t, got, `"`+param+`":`+string(want))
						continue
					}
					a.wantParam(t, status, text, param)
					require.Len(t, e.paths, sent, "it is not sent")
				}
				if k.API().Path() == a.path {
					return
				}
				a.refuses(t, lax.url, append(unknown, undeclared(i)...))
				a.drops(t, lax.url, hosted)
			})
		}
	}
}

// A tool that another server runs is not converted, and neither is the demand to call it.
func TestManagedToolChoiceOfLostToolIsRefused(t *testing.T) {
	e := newEndpoint(t, playing(upstream.OpenAI, lengthScene))
	r := managed(t, upstream.OpenAI, nil, e)
	for _, choice := range []string{`{"type":"tool","name":"web_search"}`, `{"type":"any"}`} {
		status, _, text := send(t, r.url+"/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"tools":[{"type":"web_search_20250305","name":"web_search"}],"tool_choice":`+choice+`}`)
		apiCases[2].wantParam(t, status, text, "tool_choice")
	}
	require.Empty(t, e.paths)
}

// TestFunctionCall checks a conversation in the form of the Chat API before tools: the client gets a function_call, the only call,
// and the model gets it back with its result.
func TestFunctionCall(t *testing.T) {
	r := start(t, 1, say(answer), nil)
	const ask = `{"model":"m","functions":[{"name":"read"},{"name":"grep"}],"messages":[{"role":"user","content":"Where is it?"}`
	status, _, text := send(t, r.url+"/v1/chat/completions", ask+`]}`)
	require.Equal(t, 200, status, text)
	const call = `"function_call":{"name":"read","arguments":"{\"path\": \"a.go\"}"}`
	require.Contains(t, text, `"content":"Looking.","refusal":null,"reasoning_content":"I need two looks.",`+call+`}`)
	require.Contains(t, text, `"finish_reason":"function_call"`)

	status, _, text = send(t, r.url+"/v1/chat/completions", ask+`],"stream":true}`)
	require.Equal(t, 200, status, text)
	require.Contains(t, text, `"delta":{"function_call":{"name":"read","arguments":""}}`)
	require.NotContains(t, text, "grep")
	require.Contains(t, text, `"finish_reason":"function_call"`)

	status, _, text = send(t, r.url+"/v1/chat/completions", ask+`,{"role":"assistant","content":null,`+call+`},{"role":"function","name":"read","content":"package a"}]}`)
	require.Equal(t, 200, status, text)
	require.Contains(t, r.prompts[2].Text, `{"name": "read", "arguments": {"path": "a.go"}}`)
	require.Contains(t, r.prompts[2].Text, "package a")
}
