// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/gateway/serve"
)

// A connection is a client's connection to /v1/responses.
type connection struct {
	*websocket.Conn
	t testing.TB
}

func connect(t testing.TB, url string, header ...string) connection {
	t.Helper()
	o := &websocket.DialOptions{HTTPHeader: http.Header{}}
	for i := 0; i < len(header); i += 2 {
		o.HTTPHeader.Set(header[i], header[i+1])
	}
	c, resp, err := websocket.Dial(t.Context(), url+"/v1/responses", o)
	if err != nil && resp != nil {
		body, _ := io.ReadAll(resp.Body)
		t.Fatalf("%v: %s", err, body)
	}
	require.NoError(t, err)
	c.SetReadLimit(-1)
	t.Cleanup(func() { c.CloseNow() })
	return connection{c, t}
}

// send sends a message with these fields besides its type and model.
func (c connection) send(fields string) {
	c.t.Helper()
	require.NoError(c.t, c.Write(c.t.Context(), websocket.MessageText, []byte(`{"type":"response.create","model":"m",`+fields+`}`)))
}

// next returns the next event.
func (c connection) next() object {
	c.t.Helper()
	typ, text, err := c.Read(c.t.Context())
	require.NoError(c.t, err)
	require.Equal(c.t, websocket.MessageText, typ)
	var ev object
	require.NoError(c.t, json.Unmarshal(text, &ev), "%s", text)
	return ev
}

// response returns the next response, with its id and text, and the events.
func (c connection) response() (id, text string, events []object) {
	c.t.Helper()
	for {
		ev := c.next()
		events = append(events, ev)
		switch ev["type"] {
		case "response.output_text.delta":
			text += ev["delta"].(string)
		case "response.completed":
			return ev["response"].(object)["id"].(string), text, events
		case "error", "response.failed":
			c.t.Fatal(ev)
		}
	}
}

// wantError checks that the next event is an error.
func (c connection) wantError(status int, code, has string) object {
	c.t.Helper()
	ev := c.next()
	require.Equal(c.t, "error", ev["type"], ev)
	require.EqualValues(c.t, status, ev["status"], ev)
	e := ev["error"].(object)
	if code != "" {
		require.Equal(c.t, code, e["code"])
	}
	require.Contains(c.t, e["message"], has)
	return ev
}

// TestSocket checks that a connection has the events that a stream has, and that responses continue the last one of the
// connection, with the prompt of the whole conversation and without being stored.
func TestSocket(t *testing.T) {
	r := start(t, 1, say(answer), nil)
	c := connect(t, r.url, "X-Request-Id", "mine")
	const tools = `"tools":[{"type":"function","name":"read","parameters":{"type":"object","properties":{"path":{"type":"string"}}}},
		{"type":"function","name":"grep","parameters":{"type":"object","properties":{"pattern":{"type":"string"}}}}]`
	c.send(`"store":false,"input":[{"role":"user","content":"Read <a.go>."}],` + tools)
	first, _, events := c.response()
	_, _, stream := send(t, r.url+"/v1/responses", `{"model":"m","stream":true,"store":false,"input":[{"role":"user","content":"Read <a.go>."}],`+tools+`}`)
	fs := frames(t, stream)
	require.Len(t, events, len(fs))
	for i, ev := range events {
		require.Equal(t, fs[i].typ, ev["type"])
		require.Equal(t, fs[i].data["delta"], ev["delta"])
		require.EqualValues(t, i, ev["sequence_number"])
	}
	var output []string
	for _, item := range events[len(events)-1]["response"].(object)["output"].([]any) {
		raw, err := json.Marshal(item)
		require.NoError(t, err)
		output = append(output, string(raw))
	}
	var call struct {
		ID string `json:"call_id"`
	}
	require.NoError(t, json.Unmarshal([]byte(output[len(output)-1]), &call))
	result := `{"type":"function_call_output","call_id":"` + call.ID + `","output":"package a"}`
	c.send(fmt.Sprintf(`"store":false,"previous_response_id":%q,"input":[%s],`, first, result) + tools)
	second, _, events := c.response()
	require.Equal(t, first, events[0]["response"].(object)["previous_response_id"])
	joined := r.prompts[len(r.prompts)-1].Text
	status, _, text := send(t, r.url+"/v1/responses", `{"model":"m","input":[{"role":"user","content":"Read <a.go>."},`+strings.Join(output, ",")+`,`+result+`],`+tools+`}`)
	require.Equal(t, 200, status, text)
	require.Equal(t, r.prompts[len(r.prompts)-1].Text, joined)

	c.send(fmt.Sprintf(`"previous_response_id":%q,"input":"x"`, first))
	ev := c.wantError(400, "previous_response_not_found", first)
	require.Equal(t, "previous_response_id", ev["error"].(object)["param"])
	c.send(fmt.Sprintf(`"previous_response_id":%q,"input":"And now?"`, second))
	c.response()
	require.Contains(t, r.prompts[len(r.prompts)-1].Text, "package a")
	other := connect(t, r.url)
	other.send(`"input":"x"`)
	other.response()
	other.send(fmt.Sprintf(`"previous_response_id":%q,"input":"x"`, second))
	other.wantError(400, "previous_response_not_found", second)

	var ids []string
	for _, rec := range r.done(t, 6) { // not in order: a response is sent before its record
		ids = append(ids, rec.RequestID)
	}
	require.Contains(t, ids, "mine.1")
	require.Contains(t, ids, "mine.4")
	require.NoError(t, c.Close(websocket.StatusNormalClosure, ""))
}

// TestSocketWarmUp checks that a message with generate: false or prewarm: true reaches no engine, and that the next response continues it.
func TestSocketWarmUp(t *testing.T) {
	r := start(t, 1, say("Hello."), nil)
	c := connect(t, r.url)
	c.send(`"generate":false,"instructions":"Be brief.","input":[]`)
	id, text, events := c.response()
	require.Empty(t, text)
	require.Empty(t, events[len(events)-1]["response"].(object)["output"])
	require.Empty(t, r.prompts)
	c.send(fmt.Sprintf(`"previous_response_id":%q,"instructions":"Be brief.","input":"Go."`, id))
	id, text, _ = c.response()
	require.Equal(t, "Hello.", text)
	c.send(fmt.Sprintf(`"generate":false,"previous_response_id":%q,"input":"A."`, id))
	id, _, _ = c.response()
	c.send(fmt.Sprintf(`"previous_response_id":%q,"input":"B."`, id))
	c.response()
	require.Len(t, r.prompts, 2)
	require.Regexp(t, `(?s)Go\..*Hello\..*A\..*B\.`, r.prompts[1].Text)
	for _, prewarm := range []string{"true", `true,"mode":"explicit"`} {
		c.send(`"generate":true,"prompt_cache_options":{"prewarm":` + prewarm + `},"input":"x"`)
		_, text, _ = c.response()
		require.Empty(t, text)
		require.Len(t, r.prompts, 2)
	}
	c.send(`"generate":false,"input":[{"role":"nobody","content":"x"}]`)
	c.wantError(400, "", "role")
	c.send(`"generate":"no","input":"C."`)
	c.wantError(400, "", "generate must be true or false")
	require.Len(t, r.prompts, 2)
}

// TestSocketSteer checks that a message that is to steer a response gets its input back, without an error event, which would end
// the response.
func TestSocketSteer(t *testing.T) {
	c := connect(t, start(t, 1, say("Hello."), nil).url)
	steer := func(fields string) {
		require.NoError(t, c.Write(t.Context(), websocket.MessageText, []byte(`{"type":"response.steer"`+fields+`}`)))
	}
	for _, input := range []any{"a <b>", []any{object{"role": "user", "content": "a"}}} {
		text, err := json.Marshal(input)
		require.NoError(t, err)
		steer(`,"previous_response_id":"resp_1","input":` + string(text))
		ev := c.next()
		require.Equal(t, "response.steer.failed", ev["type"])
		require.Equal(t, object{"previous_response_id": "resp_1", "input": input}, ev["steer"])
		require.Equal(t, "steering_not_supported", ev["error"].(object)["code"])
		require.EqualValues(t, 0, ev["sequence_number"])
	}
	steer(`,"previous_response_id":7,"input":"a"`)
	c.wantError(400, "", "response.steer must have an input")
	steer(`,"previous_response_id":"resp_1"`)
	c.wantError(400, "", "response.steer must have an input")
	c.send(`"input":"x"`)
	_, text, _ := c.response()
	require.Equal(t, "Hello.", text)
}

// TestSocketStore checks that responses over WebSocket are stored like others if the client and the gateway want it.
func TestSocketStore(t *testing.T) {
	r := start(t, 1, say("Hello."), func(o *serve.Options) { o.Store = storeOf(1 << 20) })
	c := connect(t, r.url)
	c.send(`"input":"x"`)
	stored, _, _ := c.response()
	c.send(`"store":false,"input":"y"`)
	own, _, _ := c.response()
	status, _, text := send(t, r.url+"/v1/responses", fmt.Sprintf(`{"model":"m","input":"z","previous_response_id":%q}`, stored))
	require.Equal(t, 200, status, text)
	status, _, _ = send(t, r.url+"/v1/responses", fmt.Sprintf(`{"model":"m","input":"z","previous_response_id":%q}`, own))
	require.Equal(t, 400, status)
	c.send(fmt.Sprintf(`"previous_response_id":%q,"input":"z"`, stored))
	c.response()
}

// TestSocketMemory checks that the responses of connections have a limit together.
func TestSocketMemory(t *testing.T) {
	r := start(t, 1, say("Hello."), func(o *serve.Options) { o.SocketBytes = 8 << 10 })
	a, b := connect(t, r.url), connect(t, r.url)
	a.send(`"input":"x"`)
	id, _, _ := a.response()
	b.send(`"input":"` + strings.Repeat("word ", 1200) + `"`)
	b.response()
	a.send(fmt.Sprintf(`"previous_response_id":%q,"input":"y"`, id))
	a.wantError(400, "previous_response_not_found", "Send the whole conversation")
}

// TestSocketErrors checks that a message that cannot be served gets an error and does not end the connection.
func TestSocketErrors(t *testing.T) {
	r := start(t, 1, say("Hello."), nil)
	c := connect(t, r.url)
	for _, tt := range []struct {
		text   string
		status int
		has    string
	}{
		{`{`, 400, "JSON object"},
		{`[]`, 400, "JSON object"},
		{`"x"`, 400, "JSON object"},
		{`{"type":1}`, 400, "type and stream_id are strings"},
		{`{"type":"response.create","stream_id":1}`, 400, "stream_id"},
		{`{}`, 400, "type ''"},
		{`null`, 400, "JSON object"},
		{`{"type":"response.steer"}`, 400, "response.steer"},
		{`{"type":"response.create"}`, 400, "model"},
		{`{"type":"response.create","model":"nobody","input":"x"}`, 404, "nobody"},
		{`{"type":"response.create","model":"m","input":"x","background":true}`, 400, "background"},
		{`{"type":"response.create","model":"m","input":[]}`, 400, "empty"},
		{`{"type":"response.create","model":"m","input":"x","temperature":"hot"}`, 400, "temperature"},
	} {
		require.NoError(t, c.Write(t.Context(), websocket.MessageText, []byte(tt.text)))
		ev := c.wantError(tt.status, "", tt.has)
		require.Equal(t, "invalid_request_error", ev["error"].(object)["type"])
	}
	require.NoError(t, c.Write(t.Context(), websocket.MessageBinary, []byte(`{"type":"response.create","model":"m","input":"x"}`)))
	c.wantError(400, "", "must be text")
	require.NoError(t, c.Write(t.Context(), websocket.MessageText, []byte(`{"type":"response.processed","response_id":"resp_1"}`)))
	c.send(`"input":"x","stream":false`)
	_, text, _ := c.response()
	require.Equal(t, "Hello.", text)
}

// TestSocketLanes checks that the responses of a stream come in order, those of several at the same time, that a stream
// may continue the response of another one, and that their number is limited.
func TestSocketLanes(t *testing.T) {
	wait := make(chan struct{})
	r := start(t, 1, func(p vllm.Prompt) vllm.Reply {
		if strings.Contains(p.Text, "slow") {
			<-wait
		}
		return vllm.Reply{Text: "Hello."}
	}, nil)
	c := connect(t, r.url)
	c.send(`"input":"slow"`)
	c.send(`"input":"after it"`)
	c.send(`"input":"other","stream_id":"a\"b"`)
	id, text, events := c.response()
	require.Equal(t, "Hello.", text)
	for _, ev := range events {
		require.Equal(t, `a"b`, ev["stream_id"])
	}
	c.send(fmt.Sprintf(`"input":"fork","stream_id":"c","previous_response_id":%q`, id))
	_, _, events = c.response()
	require.Equal(t, "c", events[0]["stream_id"])
	c.send(fmt.Sprintf(`"input":"fork","stream_id":"d","previous_response_id":%q`, "none"))
	require.Equal(t, "d", c.wantError(400, "previous_response_not_found", "none")["stream_id"])
	close(wait)
	for _, want := range []string{"slow", "after it"} {
		id, _, events := c.response()
		require.NotContains(t, events[0], "stream_id")
		for _, ev := range events[1:] { // of one response after the other
			if resp, ok := ev["response"].(object); ok {
				require.Equal(t, id, resp["id"], want)
			}
		}
	}
	for i := 3; i < 32; i++ {
		c.send(fmt.Sprintf(`"input":"x","stream_id":"%d"`, i))
		c.response()
	}
	c.send(`"input":"x","stream_id":"one more"`)
	require.Equal(t, "one more", c.wantError(400, "websocket_stream_limit_reached", "32")["stream_id"])
	c.send(`"input":"x","stream_id":"31"`)
	c.response()
}

// TestSocketClients checks that an upgrade needs a key and an origin that may send requests, and that the limits of a key
// hold for each response.
func TestSocketClients(t *testing.T) {
	r := start(t, 1, say("Hello."), func(o *serve.Options) {
		o.Keys = []serve.Key{{Secret: "one", Tenant: "a"}, {Secret: "two", RequestsPerMinute: 2}}
		o.Hosts, o.Origins = []string{"ai.example"}, []string{"https://chat.example"}
	})
	for _, tt := range []struct {
		host, key, origin, site string
		status                  int
		has                     string
	}{
		{"", "wrong", "", "", 401, "invalid_api_key"},
		{"", "", "", "", 401, "invalid_api_key"},
		{"", "one", "https://evil.example", "", 403, "evil.example"},
		{"", "one", "https://evil.example", "cross-site", 403, "evil.example"},
		{"", "one", "null", "", 403, "null"},
		{"evil.example", "one", "http://evil.example", "same-origin", 403, "evil.example"}, // DNS rebinding
		{"", "one", "https://chat.example", "cross-site", 101, ""},
		{"ai.example", "one", "", "", 101, ""},
	} {
		o := &websocket.DialOptions{Host: tt.host, HTTPHeader: http.Header{}}
		for k, v := range map[string]string{"Authorization": "Bearer " + tt.key, "Origin": tt.origin, "Sec-Fetch-Site": tt.site} {
			if v != "" {
				o.HTTPHeader.Set(k, v)
			}
		}
		c, resp, err := websocket.Dial(t.Context(), r.url+"/v1/responses", o)
		require.NotNil(t, resp, "%v", err)
		require.Equal(t, tt.status, resp.StatusCode, tt)
		if err == nil {
			one := connection{c, t}
			one.send(`"input":"x"`)
			one.response()
			c.CloseNow()
			continue
		}
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Contains(t, string(body), tt.has)
	}
	c := connect(t, r.url, "X-Api-Key", "two")
	for range 2 {
		c.send(`"input":"x"`)
		c.response()
	}
	c.send(`"input":"x"`)
	ev := c.wantError(429, "rate_limit_exceeded", "2 requests per minute")
	require.NotEmpty(t, ev["headers"].(object)["retry-after"])

	status, _, _ := send(t, r.url+"/v1/responses", `{"model":"m","input":"x"}`, "X-Api-Key", "two")
	require.Equal(t, 429, status, "requests of both kinds count")
}

// TestSocketUpgrade checks that an incorrect upgrade gets an error in the form of the API.
func TestSocketUpgrade(t *testing.T) {
	r := start(t, 1, say("Hello."), nil)
	key := base64.StdEncoding.EncodeToString(make([]byte, 16))
	for _, tt := range []struct {
		header []string
		status int
		has    string
	}{
		{[]string{"Upgrade", "websocket", "Connection", "Upgrade"}, 426, "only 13 is supported"}, // without a version
		{[]string{"Upgrade", "websocket", "Connection", "Upgrade", "Sec-WebSocket-Version", "8", "Sec-WebSocket-Key", key}, 426, "only 13 is supported"},
		{[]string{"Upgrade", "websocket", "Connection", "Upgrade", "Sec-WebSocket-Version", "13"}, 400, "missing Sec-WebSocket-Key"},
		{[]string{"Upgrade", "websocket", "Connection", "Upgrade", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "x"}, 400, "invalid Sec-WebSocket-Key"},
		{[]string{"Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", key}, 426, "Connection header"},
		{[]string{"Upgrade", "h2c", "Connection", "Upgrade"}, 405, "Use POST"},
		{nil, 405, "Use POST"},
	} {
		resp, body := get(t, r.url+"/v1/responses", tt.header...)
		apiCases[1].wantError(t, resp.StatusCode, body, tt.status, "invalid_request_error", tt.has)
		require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
		require.NotEmpty(t, resp.Header.Get("X-Request-Id"))
		if tt.has == "only 13 is supported" {
			require.Equal(t, "13", resp.Header.Get("Sec-WebSocket-Version"))
		}
		if tt.status == 426 {
			require.Equal(t, "websocket", resp.Header.Get("Upgrade"))
		}
	}
}

// TestSocketServer serves connections over TLS and next to HTTP/2, through the reader of heads.
func TestSocketServer(t *testing.T) {
	for _, tr := range transports(t) {
		t.Run(tr.name, func(t *testing.T) {
			servedWith(t, tr.server, hello(), nil, func(t *testing.T, _ *serve.Server, l *pipeListener) {
				h := &http.Transport{TLSClientConfig: tr.client().TLSClientConfig, DialContext: func(context.Context, string, string) (net.Conn, error) { return l.dialFrom("192.0.2.1"), nil }}
				c, _, err := websocket.Dial(t.Context(), tr.scheme+"://example.com/v1/responses", &websocket.DialOptions{HTTPClient: &http.Client{Transport: h}})
				require.NoError(t, err)
				defer c.CloseNow()
				for range 3 {
					one := connection{c, t}
					one.send(`"input":"x"`)
					_, text, _ := one.response()
					require.Equal(t, "Hello.", text)
				}
			})
		})
	}
}

// slowly is a stub whose responses take 20 seconds.
func slowly() *stub {
	return &stub{answer: func(string, *http.Request) (*http.Response, error) {
		return streamed(func(w *io.PipeWriter) {
			time.Sleep(20 * time.Second)
			io.WriteString(w, whole)
		}), nil
	}}
}

// dialSocket connects to a server in a bubble.
func dialSocket(t *testing.T, l *pipeListener) connection {
	t.Helper()
	h := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return l.dialFrom("192.0.2.1"), nil }}
	c, _, err := websocket.Dial(t.Context(), "http://example.com/v1/responses", &websocket.DialOptions{HTTPClient: &http.Client{Transport: h}})
	require.NoError(t, err)
	t.Cleanup(func() { c.CloseNow() })
	return connection{c, t}
}

// TestSocketEnds checks how connections end: after an hour, and when the gateway drains, is replaced or closes. Responses
// that have begun are completed, except by Close, which gives them an error.
func TestSocketEnds(t *testing.T) {
	quiet := func(o *serve.Options) { o.KeepAlive = time.Hour }
	closed := func(c connection, want websocket.StatusCode) {
		c.t.Helper()
		_, _, err := c.Read(c.t.Context())
		require.Equal(c.t, want, websocket.CloseStatus(err), "%v", err)
	}
	t.Run("an hour", func(t *testing.T) {
		served(t, slowly(), quiet, func(t *testing.T, _ *serve.Server, l *pipeListener) {
			c := dialSocket(t, l)
			time.Sleep(time.Hour - 10*time.Second)
			c.send(`"input":"x"`)
			_, text, _ := c.response()
			require.Equal(t, "Hello.", text)
			c.wantError(400, "websocket_connection_limit_reached", "60 minutes")
			closed(c, websocket.StatusNormalClosure)
		})
	})
	t.Run("drain", func(t *testing.T) {
		served(t, slowly(), quiet, func(t *testing.T, s *serve.Server, l *pipeListener) {
			c, idle := dialSocket(t, l), dialSocket(t, l)
			c.send(`"input":"x"`)
			c.send(`"input":"y"`)
			synctest.Wait()
			ended := make(chan error, 1)
			begun := time.Now()
			go func() { ended <- s.Shutdown(t.Context()) }()
			closed(idle, websocket.StatusGoingAway)
			_, text, _ := c.response()
			require.Equal(t, "Hello.", text)
			c.wantError(503, "", "shutting down")
			closed(c, websocket.StatusGoingAway)
			require.NoError(t, <-ended)
			require.Less(t, time.Since(begun), 23*time.Second)
		})
	})
	t.Run("replace", func(t *testing.T) {
		served(t, slowly(), quiet, func(t *testing.T, s *serve.Server, l *pipeListener) {
			c := dialSocket(t, l)
			c.send(`"input":"x"`)
			c.send(`"input":"y"`)
			synctest.Wait()
			next := stubbed(t, 1, hello(), nil)
			defer next.Close()
			old := s.Replace(next)
			ended := make(chan error, 1)
			go func() { ended <- old.Drain(t.Context()); old.Close() }()
			for range 2 {
				_, text, _ := c.response()
				require.Equal(t, "Hello.", text)
			}
			closed(c, websocket.StatusGoingAway)
			require.NoError(t, <-ended)
			d := dialSocket(t, l)
			d.send(`"input":"z"`)
			d.response()
			d.Close(websocket.StatusNormalClosure, "")
		})
	})
	t.Run("close", func(t *testing.T) {
		served(t, slowly(), quiet, func(t *testing.T, s *serve.Server, l *pipeListener) {
			c, silent := dialSocket(t, l), dialSocket(t, l) // silent reads nothing, also not what the server closes with
			c.send(`"input":"x"`)
			silent.send(`"input":"x"`)
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			begun := time.Now()
			ended := make(chan error, 1)
			go func() { ended <- s.Shutdown(ctx) }()
			c.wantError(503, "", "shutting down")
			closed(c, websocket.StatusGoingAway)
			require.ErrorIs(t, <-ended, context.DeadlineExceeded)
			require.LessOrEqual(t, time.Since(begun), 5*time.Second)
			time.Sleep(time.Minute) // the engine ends
		})
	})
}

// TestSocketHostile has clients that leave, send too much, too slowly or nothing, or do not read.
func TestSocketHostile(t *testing.T) {
	var canceled chan serve.Record
	// raw returns a connection after the upgrade.
	raw := func(t *testing.T, l *pipeListener) (net.Conn, *bufio.Reader) {
		conn := l.dialFrom("192.0.2.1")
		io.WriteString(conn, "GET /v1/responses HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
		r := bufio.NewReader(conn)
		resp, err := http.ReadResponse(r, nil)
		require.NoError(t, err)
		require.Equal(t, 101, resp.StatusCode)
		return conn, r
	}
	// head returns the head of a masked frame, whose mask is 0.
	head := func(op byte, size uint64) []byte {
		b := binary.BigEndian.AppendUint64([]byte{op, 0xff}, size)
		return append(b, 0, 0, 0, 0)
	}
	for _, tt := range []struct {
		name  string
		stub  *stub
		alive bool // the server sends keep-alives
		test  func(t *testing.T, l *pipeListener)
	}{
		{"leaves during a response", slowly(), false, func(t *testing.T, l *pipeListener) {
			c := dialSocket(t, l)
			c.send(`"input":"x"`)
			c.send(`"input":"y"`)
			synctest.Wait()
			begun := time.Now()
			c.CloseNow()
			require.Equal(t, "canceled", (<-canceled).Finish)
			require.Zero(t, time.Since(begun))
		}},
		{"announces a huge frame", hello(), false, func(t *testing.T, l *pipeListener) {
			conn, r := raw(t, l)
			defer conn.Close()
			conn.Write(head(0x81, 1<<60))
			go func() {
				for {
					if _, err := conn.Write(make([]byte, 32<<10)); err != nil {
						return
					}
					time.Sleep(time.Millisecond)
				}
			}()
			text, err := io.ReadAll(r)
			require.NoError(t, err)
			require.Contains(t, string(text), `"status":413`)
			require.Contains(t, string(text), "\x03\xf1", "close code 1009")
		}},
		{"sends a huge message in fragments", hello(), false, func(t *testing.T, l *pipeListener) {
			conn, r := raw(t, l)
			defer conn.Close()
			go func() {
				for op := byte(0x01); ; op = 0 {
					if _, err := conn.Write(append(head(op, 1<<10), make([]byte, 1<<10)...)); err != nil {
						return
					}
					time.Sleep(time.Millisecond)
				}
			}()
			text, err := io.ReadAll(r)
			require.NoError(t, err)
			require.Contains(t, string(text), `"status":413`)
		}},
		{"sends a message slowly", hello(), false, func(t *testing.T, l *pipeListener) {
			conn, r := raw(t, l)
			defer conn.Close()
			begun := time.Now()
			go func() {
				conn.Write(head(0x81, 1<<10))
				for {
					time.Sleep(time.Second)
					if _, err := conn.Write([]byte{' '}); err != nil {
						return
					}
				}
			}()
			_, err := io.ReadAll(r)
			require.NoError(t, err)
			require.LessOrEqual(t, time.Since(begun), 61*time.Second)
		}},
		{"sends pings and reads nothing", hello(), false, func(t *testing.T, l *pipeListener) {
			conn, _ := raw(t, l)
			defer conn.Close()
			begun := time.Now()
			for {
				if _, err := conn.Write(bytes.Repeat(append([]byte{0x89, 0xfd, 0, 0, 0, 0}, make([]byte, 125)...), 100)); err != nil {
					break
				}
			}
			require.LessOrEqual(t, time.Since(begun), 15*time.Second)
		}},
		{"breaks the framing", hello(), false, func(t *testing.T, l *pipeListener) {
			conn, r := raw(t, l)
			defer conn.Close()
			io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			text, err := io.ReadAll(r)
			require.NoError(t, err)
			require.NotContains(t, string(text), "HTTP/1.1")
		}},
		{"does not read a response", &stub{answer: func(string, *http.Request) (*http.Response, error) {
			return answerOf(200, chunkOf(strings.Repeat("word ", 200_000), "null")+chunkOf("", "stop")+"data: [DONE]\n\n"), nil
		}}, false, func(t *testing.T, l *pipeListener) {
			c := dialSocket(t, l)
			begun := time.Now()
			c.send(`"input":"x"`)
			require.Equal(t, "canceled", (<-canceled).Finish)
			require.Equal(t, 30*time.Second, time.Since(begun))
		}},
		{"vanishes during a response", &stub{answer: func(string, *http.Request) (*http.Response, error) {
			return streamed(func(w *io.PipeWriter) {
				time.Sleep(5 * time.Minute)
				io.WriteString(w, whole)
			}), nil
		}}, true, func(t *testing.T, l *pipeListener) {
			c := dialSocket(t, l)
			begun := time.Now()
			c.send(`"input":"x"`)
			require.Equal(t, "canceled", (<-canceled).Finish)
			require.Equal(t, 40*time.Second, time.Since(begun), "a keep-alive, and the time for a response to it")
		}},
		{"sends more than is read", slowly(), false, func(t *testing.T, l *pipeListener) {
			c := dialSocket(t, l)
			written := make(chan int, 1)
			go func() {
				n := 0
				for c.Write(t.Context(), websocket.MessageText, fmt.Appendf(nil, `{"type":"response.create","model":"nobody","input":%q}`, strings.Repeat("x", 100<<10))) == nil {
					n++
				}
				written <- n
			}()
			c.send(`"input":"x","stream_id":"s"`) // keeps the connection alive, and its own responses come
			for range 15 {
				c.wantError(404, "", "nobody")
			}
			c.CloseNow()
			<-written
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			served(t, tt.stub, func(o *serve.Options) {
				canceled = make(chan serve.Record, 1)
				o.MaxBody, o.OnDone = 1<<20, func(r serve.Record) { canceled <- r }
				if !tt.alive {
					o.KeepAlive = time.Hour // a bubble's time stops while a keep-alive waits for a lock
				}
			}, func(t *testing.T, _ *serve.Server, l *pipeListener) {
				tt.test(t, l)
				time.Sleep(time.Hour) // the engine ends
			})
		})
	}
}

// TestSocketLimits checks that connections count towards MaxRequests, and messages towards the memory of requests.
func TestSocketLimits(t *testing.T) {
	r := start(t, 1, say("Hello."), func(o *serve.Options) { o.MaxRequests, o.MaxMemory = 1, 1<<20 })
	c := connect(t, r.url)
	_, resp, err := websocket.Dial(t.Context(), r.url+"/v1/responses", nil)
	require.Error(t, err)
	require.Equal(t, 503, resp.StatusCode)
	c.send(`"input":"x"`)
	c.response()
	c.send(`"input":"` + strings.Repeat("word ", 100_000) + `"`)
	c.wantError(503, "", "")
	_, _, err = c.Read(t.Context())
	require.Equal(t, websocket.StatusMessageTooBig, websocket.CloseStatus(err))
	for {
		c, _, err := websocket.Dial(t.Context(), r.url+"/v1/responses", nil)
		if err != nil { // the first one ends
			continue
		}
		one := connection{c, t}
		for range 3 {
			one.send(`"input":"` + strings.Repeat("word ", 5_000) + `"`)
			one.response()
		}
		c.CloseNow()
		return
	}
}

// TestSocketManyClients has clients of all kinds at once, for the race detector.
func TestSocketManyClients(t *testing.T) {
	r := start(t, 2, say("Hello."), nil)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			c := connect(t, r.url)
			for n := range 8 {
				c.send(fmt.Sprintf(`"input":"%d","stream_id":"%d"`, n, n%3))
			}
			if i%2 == 0 {
				c.CloseNow()
				return
			}
			for done := 0; done < 8; {
				if c.next()["type"] == "response.completed" {
					done++
				}
			}
		})
	}
	all.Wait()
	s := httptest.NewServer(r.gateway)
	defer s.Close()
	c := connect(t, s.URL)
	r.gateway.Close()
	_, _, err := c.Read(t.Context())
	require.Equal(t, websocket.StatusGoingAway, websocket.CloseStatus(err), "%v", err)
}

// TestSocketPanic checks that a panic while a message is served ends its connection and nothing else.
func TestSocketPanic(t *testing.T) {
	r := start(t, 1, say("Hello."), func(o *serve.Options) {
		o.OnDone = func(rec serve.Record) {
			if rec.Usage.Output > 0 {
				panic("a callback")
			}
		}
	})
	c := connect(t, r.url)
	c.send(`"input":"x"`)
	for {
		if _, _, err := c.Read(t.Context()); err != nil {
			break
		}
	}
	d := connect(t, r.url)
	d.send(`"generate":false,"input":"x"`)
	d.response()
}
