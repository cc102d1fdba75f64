// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/examples/gateway/serve"
)

// storeOf returns a store with a limit in bytes.
func storeOf(limit int64) *serve.Store {
	s := new(serve.Store)
	s.Resize(limit)
	return s
}

// TestStore checks that a request that names the previous response gets the prompt that the whole conversation would have,
// that other clients cannot name it, and that memory is limited.
func TestStore(t *testing.T) {
	r := start(t, 1, say("<think>\nhm\n</think>\n\nLooking.\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a.go\"}}\n</tool_call>"), func(o *serve.Options) {
		o.Store = storeOf(16 << 10)
		o.Keys = []serve.Key{{Secret: "one", Tenant: "a"}, {Secret: "two", Tenant: "a"}}
	})
	const tools = `"tools":[{"type":"function","name":"read","parameters":{"type":"object","properties":{"path":{"type":"string"}}}}]`
	ask := func(key, fields string) (status int, header string, text string) {
		t.Helper()
		status, h, text := send(t, r.url+"/v1/responses", `{"model":"m",`+tools+`,`+fields+`}`, "Authorization", "Bearer "+key)
		return status, h.Get("X-Weft-Dropped"), text
	}
	type response struct {
		ID       string
		Previous string `json:"previous_response_id"`
		Output   []json.RawMessage
	}
	decode := func(text string, stream bool) (out response) {
		t.Helper()
		if stream {
			fs := frames(t, text)
			raw, err := json.Marshal(fs[len(fs)-1].data["response"])
			require.NoError(t, err)
			text = string(raw)
		}
		require.NoError(t, json.Unmarshal([]byte(text), &out))
		return out
	}
	for _, stream := range []bool{false, true} {
		for _, input := range []string{`"Read a.go."`, `[{"role":"user","content":"Read a.go."}]`} {
			status, dropped, text := ask("one", fmt.Sprintf(`"stream":%t,"store":true,"input":%s`, stream, input))
			require.Equal(t, 200, status, text)
			require.Empty(t, dropped)
			first := decode(text, stream)
			call := first.Output[len(first.Output)-1]
			var id struct {
				Call string `json:"call_id"`
			}
			require.NoError(t, json.Unmarshal(call, &id))
			result := `{"type":"function_call_output","call_id":"` + id.Call + `","output":"package a"}`

			status, _, text = ask("one", fmt.Sprintf(`"stream":%t,"previous_response_id":%q,"input":[%s]`, stream, first.ID, result))
			require.Equal(t, 200, status, text)
			second := decode(text, stream)
			require.Equal(t, first.ID, second.Previous)
			joined := r.prompts[len(r.prompts)-1].Text

			var items []string
			for _, o := range first.Output {
				items = append(items, string(o))
			}
			whole := `[{"role":"user","content":"Read a.go."},` + strings.Join(items, ",") + "," + result
			status, _, text = ask("one", `"store":false,"input":`+whole+`]`)
			require.Equal(t, 200, status, text)
			require.Equal(t, r.prompts[len(r.prompts)-1].Text, joined)

			refs := `[{"role":"user","content":"Read a.go."}`
			for i, o := range first.Output {
				var item struct{ ID string }
				require.NoError(t, json.Unmarshal(o, &item))
				refs += fmt.Sprintf([]string{`,{"type":"item_reference","id":%q}`, `,{"id":%q}`}[i%2], item.ID)
			}
			status, _, text = ask("one", `"store":false,"input":`+refs+","+result+`]`)
			require.Equal(t, 200, status, text)
			require.Equal(t, joined, r.prompts[len(r.prompts)-1].Text, "references to items")
			status, _, text = ask("two", `"input":`+refs+","+result+`]`)
			apiCases[1].wantError(t, status, text, 404, "invalid_request_error", "not found")
			require.Contains(t, text, "item_not_found")

			status, _, text = ask("one", fmt.Sprintf(`"previous_response_id":%q,"input":"And now?"`, second.ID))
			require.Equal(t, 200, status, text)
			require.Contains(t, r.prompts[len(r.prompts)-1].Text, "package a")

			status, _, text = ask("two", fmt.Sprintf(`"previous_response_id":%q,"input":"x"`, first.ID))
			apiCases[1].wantError(t, status, text, 400, "invalid_request_error", "not found")
			require.Contains(t, text, "previous_response_not_found")
			status, _, text = ask("one", fmt.Sprintf(`"store":false,"previous_response_id":%q,"input":"x"`, first.ID))
			require.Equal(t, 200, status, text)
			status, _, text = ask("one", fmt.Sprintf(`"previous_response_id":%q,"input":"x"`, decode(text, false).ID))
			require.Equal(t, 400, status, "store was false")
			require.Contains(t, text, "not found")
		}
	}
	_, _, text := ask("one", `"input":"x"`)
	first := decode(text, false)
	for range 16 {
		ask("one", `"input":"`+strings.Repeat("word ", 200)+`"`)
	}
	status, _, text := ask("one", fmt.Sprintf(`"previous_response_id":%q,"input":"x"`, first.ID))
	require.Equal(t, 400, status, "it was not used for longest")
	require.Contains(t, text, "not found")
}

// TestStoreIsReported checks that responses report whether they are stored, and not what the request asks for.
func TestStoreIsReported(t *testing.T) {
	ask := func(url string, wants bool) {
		t.Helper()
		for field, want := range map[string]bool{`"store":true,`: wants, `"store":false,`: false, "": wants} {
			for _, stream := range []bool{false, true} {
				status, h, text := send(t, url+"/v1/responses", fmt.Sprintf(`{"model":"m",%s"stream":%t,"input":"x"}`, field, stream))
				require.Equal(t, 200, status, text)
				require.Contains(t, text, fmt.Sprintf(`"store":%t`, want), field)
				require.NotContains(t, text, fmt.Sprintf(`"store":%t`, !want), field)
				require.Equal(t, field == `"store":true,` && !wants, h.Get("X-Weft-Dropped") == "store", field)
			}
		}
	}
	for _, store := range []*serve.Store{nil, storeOf(1 << 20)} {
		r := start(t, 1, say("Hello."), func(o *serve.Options) { o.Store = store })
		ask(r.url, store != nil)
		c := connect(t, r.url)
		for _, generate := range []bool{false, true} {
			c.send(fmt.Sprintf(`"store":true,"generate":%t,"input":"x"`, generate))
			_, _, events := c.response()
			for _, i := range []int{0, len(events) - 1} {
				require.Equal(t, store != nil, events[i]["response"].(object)["store"])
			}
		}
	}
	for _, k := range managedKinds {
		ask(managed(t, k, nil, newEndpoint(t, playing(k, lengthScene))).url, false)
	}
}

// TestStored checks that a client can get and delete its stored responses and list their input, and that a gateway with the
// same store has them, with other keys too.
func TestStored(t *testing.T) {
	store := storeOf(1 << 20)
	keys := []serve.Key{{Secret: "one", Tenant: "a"}, {Secret: "two", Tenant: "a"}}
	options := func(o *serve.Options) { o.Store, o.Keys = store, keys }
	r := start(t, 1, say("Hello."), options)
	do := func(method, key, path string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, r.url+"/v1/responses/"+path, nil)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(text)
	}
	ask := func(body string) (id, text string) {
		t.Helper()
		status, _, text := send(t, r.url+"/v1/responses", body, "Authorization", "Bearer one")
		require.Equal(t, 200, status, text)
		var response struct{ ID string }
		require.NoError(t, json.Unmarshal([]byte(text), &response))
		return response.ID, text
	}
	first, text := ask(`{"model":"m","input":"a"}`)
	second, _ := ask(fmt.Sprintf(`{"model":"m","previous_response_id":%q,"input":[{"id":"mine","role":"user","content":[{"type":"input_text","text":"b"}]}]}`, first))

	status, got := do("GET", "one", first)
	require.Equal(t, 200, status)
	require.Equal(t, text, got)
	type page struct {
		Data []struct {
			ID, Type, Role, Status string
			Content                []struct{ Type, Text string }
		}
		First string `json:"first_id"`
		Last  string `json:"last_id"`
		More  bool   `json:"has_more"`
	}
	list := func(query string) (p page) {
		t.Helper()
		status, text := do("GET", "one", second+"/input_items"+query)
		require.Equal(t, 200, status, text)
		require.NoError(t, json.Unmarshal([]byte(text), &p))
		return p
	}
	all := list("")
	require.Len(t, all.Data, 3)
	require.Equal(t, "completed", all.Data[1].Status)
	tools, _ := ask(`{"model":"m","input":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},` +
		`{"type":"function_call_output","call_id":"c","output":"d"}]}`)
	status, got = do("GET", "one", tools+"/input_items")
	require.Equal(t, 200, status)
	require.Equal(t, 3, strings.Count(got, `"status":"completed"`), got)
	require.False(t, all.More)
	for i, want := range []string{"input_text b", "output_text Hello.", "input_text a"} {
		item := all.Data[i]
		require.Equal(t, "message", item.Type)
		require.Equal(t, want, item.Content[0].Type+" "+item.Content[0].Text)
	}
	require.Equal(t, []string{"mine", "mine", all.Data[2].ID}, []string{all.Data[0].ID, all.First, all.Last})
	two := list("?order=asc&limit=2")
	require.Equal(t, all.Data[2], two.Data[0])
	require.True(t, two.More)
	rest := list("?order=asc&limit=2&after=" + two.Last)
	require.Len(t, rest.Data, 1)
	require.Equal(t, "mine", rest.First)
	require.False(t, rest.More)
	require.Empty(t, list("?after="+all.Last).Data)

	for _, tt := range []struct {
		method, key, path string
		status            int
		has               string
	}{
		{"GET", "two", first, 404, "not found"},
		{"DELETE", "two", first, 404, "not found"},
		{"GET", "two", first + "/input_items", 404, "not found"},
		{"GET", "wrong", first, 401, "API key"},
		{"GET", "one", "resp_none", 404, "not found"},
		{"GET", "one", first + "?stream=true", 400, "stream"},
		{"GET", "one", first + "/input_items?limit=0", 400, "limit"},
		{"GET", "one", first + "/input_items?order=up", 400, "order"},
		{"GET", "one", first + "/input_items?after=none", 400, "none"},
		{"PUT", "one", first, 405, "GET or DELETE"},
		{"POST", "one", first + "/cancel", 404, "Invalid URL"},
	} {
		status, text := do(tt.method, tt.key, tt.path)
		require.Equal(t, tt.status, status, text)
		require.Contains(t, text, tt.has)
	}

	keys = append(keys[1:], serve.Key{Secret: "three"}, keys[0])
	r = start(t, 1, say("Hello."), options)
	status, text = do("DELETE", "one", first)
	require.Equal(t, 200, status)
	require.JSONEq(t, fmt.Sprintf(`{"id":%q,"object":"response","deleted":true}`, first), text)
	status, _ = do("GET", "one", first)
	require.Equal(t, 404, status)
	ask(fmt.Sprintf(`{"model":"m","previous_response_id":%q,"input":"c"}`, second))
	require.Regexp(t, `(?s)a<.*Hello\..*b<.*Hello\..*c<`, r.prompts[0].Text)

	store.Resize(0)
	status, _ = do("GET", "one", second)
	require.Equal(t, 404, status)
	status, _, text = send(t, r.url+"/v1/responses", `{"model":"m","input":[null]}`, "Authorization", "Bearer one")
	require.Equal(t, 400, status, "items are objects: %s", text)
}

// TestStoreField checks that a response has store: true if and only if it was stored.
func TestStoreField(t *testing.T) {
	r := start(t, 1, say("Hello."), func(o *serve.Options) { o.Store = storeOf(1 << 20) })
	for fields, want := range map[string]bool{``: true, `"store":null,`: true, `"store":true,`: true, `"store":false,`: false} {
		for _, stream := range []bool{false, true} {
			status, h, text := send(t, r.url+"/v1/responses", fmt.Sprintf(`{"model":"m",%s"stream":%t,"input":"x"}`, fields, stream))
			require.Equal(t, 200, status, text)
			require.Empty(t, h.Get("X-Weft-Dropped"))
			var response object
			if stream {
				for _, f := range frames(t, text) {
					if o, ok := f.data["response"].(object); ok {
						response = o
						require.Equal(t, want, response["store"], f.typ)
					}
				}
			} else {
				require.NoError(t, json.Unmarshal([]byte(text), &response))
			}
			require.Equal(t, want, response["store"], fields)
			resp, err := http.Get(r.url + "/v1/responses/" + response["id"].(string))
			require.NoError(t, err)
			kept, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			resp.Body.Close()
			require.Equal(t, want, resp.StatusCode == 200)
			if want {
				require.Contains(t, string(kept), `"store":true`)
			}
		}
	}
	k := upstream.Responses
	e := newEndpoint(t, playing(k, lengthScene))
	r = managed(t, k, func(o *serve.Options) { o.Store = storeOf(1 << 20) }, e)
	status, h, text := send(t, r.url+"/v1/responses", `{"model":"m","input":"x"}`)
	require.Equal(t, 200, status, text)
	require.Contains(t, text, `"store":true`)
	require.Empty(t, h.Get("X-Weft-Dropped"))
	sent, _ := e.last(t)
	require.Contains(t, sent, `"store":false`, "the client has not asked the endpoint for it")
}

// TestStoreNames checks that fields are read by their exact names, that a name that occurs twice is an error with its position in
// the client's body, and that the order of the fields does not matter.
func TestStoreNames(t *testing.T) {
	r := start(t, 1, say("Hello."), func(o *serve.Options) { o.Store = storeOf(1 << 20) })
	ask := func(body string) (int, http.Header, object) {
		t.Helper()
		status, h, text := send(t, r.url+"/v1/responses", body)
		var o object
		require.NoError(t, json.Unmarshal([]byte(text), &o))
		return status, h, o
	}
	_, _, first := ask(`{"model":"m","input":"a"}`)
	id := first["id"].(string)

	status, h, got := ask(`{"model":"m","input":"x","store":false,"Store":true}`)
	require.Equal(t, 200, status)
	require.Equal(t, "Store", h.Get("X-Weft-Dropped"))
	status, _, _ = ask(fmt.Sprintf(`{"model":"m","input":"x","previous_response_id":%q}`, got["id"]))
	require.Equal(t, 400, status, "store was false")

	status, h, _ = ask(fmt.Sprintf(`{"model":"m","input":"x","Previous_Response_ID":%q,"INPUT":"y"}`, id))
	require.Equal(t, 200, status)
	require.Equal(t, "Previous_Response_ID, INPUT", h.Get("X-Weft-Dropped"))
	require.NotContains(t, r.prompts[len(r.prompts)-1].Text, "Hello.")
	require.Contains(t, r.prompts[len(r.prompts)-1].Text, "x")

	twice := fmt.Sprintf(`{"previous_response_id":%q,"model":"m","input":"a","input":"b"}`, id)
	want := fmt.Sprintf("the name occurs twice at byte %d", strings.LastIndex(twice, `"input"`))
	status, _, got = ask(twice)
	require.Equal(t, 400, status)
	require.Contains(t, got["error"].(object)["message"], want)

	c := connect(t, r.url)
	write := func(body string) {
		t.Helper()
		require.NoError(t, c.Write(t.Context(), websocket.MessageText, []byte(body)))
	}
	for body, second := range map[string]string{
		`{"type":"response.create","model":"m","input":"a","input":"b"}`:                `"input":"b"`,
		`{"type":"response.create","model":"m","input":"a","store":true,"store":false}`: `"store":false`,
		`{"type":"none","type":"response.create","model":"m","input":"a"}`:              `"type":"response`,
	} {
		write(body)
		c.wantError(400, "", fmt.Sprintf("the name occurs twice at byte %d", strings.Index(body, second)))
	}
	odd := `{"type":"response.create","model":"m","input":"a","temperature":"hot"}`
	write(odd)
	c.wantError(400, "", fmt.Sprint("at byte ", strings.Index(odd, `"hot"`)))
	write(`{"type":"response.create","Type":"none","Stream_ID":"s","Generate":false,"model":"m","input":"a"}`)
	ev := c.next()
	require.Equal(t, "response.created", ev["type"], ev)
	require.NotContains(t, ev, "stream_id")
	_, text, _ := c.response()
	require.Equal(t, "Hello.", text)
	write(`{"Type":"response.create","model":"m","input":"a"}`)
	c.wantError(400, "", "type ''")
}
