// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/gateway/serve"
)

// TestStateOfWrongType checks that a field that specifies what a request continues, or whether its response is stored, is refused if
// the API does not permit its type, and not treated as absent.
func TestStateOfWrongType(t *testing.T) {
	wrong := map[string][]string{
		"previous_response_id": {`5`, `["a"]`, `true`, `{"id":"x"}`},
		"conversation":         {`5`, `[]`, `true`, `{}`, `{"id":5}`, `{"id":"c"}`, `"c"`}, // this server keeps none
		"store":                {`"true"`, `1`, `{}`},
		"background":           {`"true"`, `0`, `[]`},
	}
	for _, store := range []*serve.Store{nil, storeOf(1 << 20)} {
		r := start(t, 1, say("Hello."), func(o *serve.Options) { o.Store = store })
		c := connect(t, r.url)
		for name, values := range wrong {
			for _, value := range values {
				field := `"` + name + `":` + value + `,"input":"x"`
				for _, path := range []string{"", "/input_tokens", "/compact"} {
					status, _, text := send(t, r.url+"/v1/responses"+path, `{"model":"m",`+field+`}`)
					require.Equal(t, 400, status, field)
					apiCases[1].wantParam(t, status, text, name)
				}
				c.send(field)
				ev := c.wantError(400, "", "")
				require.Equal(t, name, ev["error"].(object)["param"], field)
			}
			field := `"` + name + `":null,"input":"x"`
			status, _, text := send(t, r.url+"/v1/responses", `{"model":"m",`+field+`}`)
			require.Equal(t, 200, status, text)
			c.send(field)
			c.response()
		}
		require.Len(t, r.prompts, 2*len(wrong))
		status, _, text := send(t, r.url+"/v1/messages", `{"model":"m","max_tokens":9,"thread":"t","messages":[{"role":"user","content":"x"}]}`)
		require.Equal(t, 400, status, text)
		require.Contains(t, text, "thread must be an object")
	}
	for _, k := range managedKinds {
		e := newEndpoint(t, playing(k, lengthScene))
		url := managed(t, k, nil, e).url
		for name, values := range wrong {
			status, _, text := send(t, url+"/v1/responses", `{"model":"m","input":"x","`+name+`":`+values[0]+`}`)
			apiCases[1].wantParam(t, status, text, name)
		}
		require.Empty(t, e.paths)
	}
}

// TestFieldOfWrongType checks that fields whose type the API specifies are refused if they have another one, except for endpoints of
// the client's API, which check them themselves.
func TestFieldOfWrongType(t *testing.T) {
	words := []string{"truncation", "user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"}
	right := map[string][]string{
		"logit_bias": {`{}`, `{"7":-100}`}, "metadata": {`{}`, `{"a":"b"}`, `{ "a\\" : "}\"5" , "b":"" }`},
		"include": {`[]`, `["reasoning.encrypted_content"]`, `[ "\"" , "\\", "5]" ]`}, "max_tool_calls": {`3`},
		"service_tier": {`"auto"`, `"priority"`, `"ultrafast"`}, "instructions": {`"Be brief."`, `""`},
	}
	wrong := map[string][]string{
		"logit_bias": {`[]`, `"x"`, `5`}, "metadata": {`5`, `[]`, `["a"]`, `{"a":5}`, `{"a":{}}`, `{"a":"b","c":null}`},
		"include": {`"a"`, `{}`, `[5]`, `["a",null]`, `["a",["b"]]`}, "max_tool_calls": {`"3"`, `{}`},
		"service_tier": {`5`, `["auto"]`, `{}`, `"zzz"`, `""`}, "instructions": {`[]`, `["a"]`, `[{"role":"developer","content":"a"}]`},
	}
	for _, name := range words {
		right[name], wrong[name] = []string{`"auto"`, `""`}, []string{`5`, `["a"]`, `{}`, `true`}
	}
	for i, names := range [][]string{{"user", "logit_bias"}, append(words, "metadata", "include", "max_tool_calls", "service_tier", "instructions"), {"metadata"}} {
		a := apiCases[i]
		with := func(name, value string) string {
			b := a.body("Hi", false)
			delete(b, name)
			body, err := json.Marshal(b)
			require.NoError(t, err)
			return strings.TrimSuffix(string(body), "}") + `,"` + name + `":` + value + `}`
		}
		r := start(t, 1, say("Hello."), nil)
		for _, name := range names {
			for _, value := range append(right[name], "null") {
				status, _, text := send(t, r.url+a.path, with(name, value))
				require.Equal(t, 200, status, "%s: %s: %s", name, value, text)
			}
			for _, value := range wrong[name] {
				if i == 2 && value[0] == '{' {
					continue // the values are not specified there
				}
				status, _, text := send(t, r.url+a.path, with(name, value))
				a.wantParam(t, status, text, name)
				require.Contains(t, text, name+" must be ")
			}
		}
		for _, k := range managedKinds {
			e := newEndpoint(t, playing(k, lengthScene))
			status, _, text := send(t, managed(t, k, nil, e).url+a.path, with(names[0], wrong[names[0]][0]))
			if k.API().Path() == a.path {
				require.Equal(t, 200, status, text)
				continue
			}
			a.wantParam(t, status, text, names[0])
			require.Empty(t, e.paths)
		}
	}
	r := start(t, 1, say("Hello."), nil)
	status, _, text := send(t, r.url+"/v1/messages", `{"model":"m","max_tokens":9,"metadata":5,"messages":[{"role":"user","content":"x"}]}`)
	apiCases[2].wantParam(t, status, text, "metadata")
	status, _, text = send(t, r.url+"/v1/completions", `{"model":"m","prompt":"x","user":[1]}`)
	apiCases[0].wantParam(t, status, text, "user")
	status, _, text = send(t, r.url+"/v1/completions", `{"model":"m","prompt":"x","echo":1}`)
	apiCases[0].wantParam(t, status, text, "echo")
}

// TestToolWithoutType checks that a tool without a type, which no tool of OpenAI's APIs is, is refused and not left out, and that one of
// an unknown type is only without effect. Endpoints of the client's API check it themselves.
func TestToolWithoutType(t *testing.T) {
	const good = `{"type":"function","name":"f","function":{"name":"f"}}` // in both APIs
	for i, cases := range []map[string]string{
		{`{}`: "type", `{"name":"f"}`: "type", `{"type":"","x":1}`: "type", `{"type":"function"}`: "function", `{"type":"function","name":"f"}`: "function"},
		{`{}`: "type", `{"name":"f"}`: "type", `{"type":null,"name":"f","parameters":{}}`: "type", `{"type":"function"}`: "name"},
	} {
		a := apiCases[i]
		r := start(t, 1, say("Hello."), nil)
		body := func(tools string) object {
			b := a.body("Hi", false)
			b["tools"] = json.RawMessage(`[` + tools + `]`)
			return b
		}
		for tool, field := range cases {
			status, _, text := send(t, r.url+a.path, body(good+","+tool))
			require.Equal(t, 400, status, text)
			require.Contains(t, text, `"param":"tools[1].`+field+`"`)
		}
		require.Empty(t, r.prompts)
		status, h, text := send(t, r.url+a.path, body(`{"type":"zzz"},`+good))
		require.Equal(t, 200, status, text)
		require.Equal(t, "tools[0]", h.Get("X-Weft-Dropped"))
		for _, k := range managedKinds {
			e := newEndpoint(t, playing(k, lengthScene))
			status, _, text := send(t, managed(t, k, nil, e).url+a.path, body("{}"))
			if k.API().Path() == a.path {
				require.Equal(t, 200, status, text)
				continue
			}
			a.wantParam(t, status, text, "tools[0].type")
			require.Empty(t, e.paths)
		}
	}
}
