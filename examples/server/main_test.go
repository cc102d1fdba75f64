// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/internal/cli/clitest"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/tokenizers/mini"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// start serves the program in front of an engine with a script.
func start(t *testing.T, reply vllm.Reply) (url string) {
	m, err := prompt.Load(mini.FS(), &prompt.Options{Window: 2000})
	require.NoError(t, err)
	e := vllm.New(m.Tokenizer(), &vllm.Options{Model: "m", Speed: math.Inf(1), Script: func(vllm.Prompt) vllm.Reply { return reply }})
	engine := httptest.NewServer(e)
	front := httptest.NewServer(newServer(m, "m", engine.URL, nil))
	t.Cleanup(func() { front.Close(); e.Close(); engine.Close(); http.DefaultClient.CloseIdleConnections() })
	return front.URL
}

func send(t *testing.T, url, body string) (status int, typ, text string) {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, resp.Header.Get("Content-Type"), string(data)
}

// collect decodes a response.
func collect(t *testing.T, api *wire.API, body string) *event.Collector {
	t.Helper()
	dec, c := api.NewDecoder(nil), &event.Collector{}
	events, err := dec.Append(nil, []byte(body))
	require.NoError(t, err)
	c.Add(events...)
	events, err = dec.Finish(nil)
	require.NoError(t, err)
	c.Add(events...)
	require.Len(t, c.Answers, 1, body)
	return c
}

const tool = `{"type":"function","function":{"name":"weather","parameters":{"type":"object"}}}`

// bodies returns a request with a tool for each API.
func bodies(stream bool, more string) map[*wire.API]string {
	return map[*wire.API]string{
		wire.Chat:      fmt.Sprintf(`{"model":"m","stream":%t,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Hi"}],"tools":[%s]%s}`, stream, tool, more),
		wire.Responses: fmt.Sprintf(`{"model":"m","stream":%t,"input":"Hi","tools":[{"type":"function","name":"weather","parameters":{"type":"object"}}]%s}`, stream, more),
		wire.Messages:  fmt.Sprintf(`{"model":"m","stream":%t,"max_tokens":500,"messages":[{"role":"user","content":"Hi"}],"tools":[{"name":"weather","input_schema":{"type":"object"}}]%s}`, stream, more),
	}
}

func TestAnswers(t *testing.T) {
	url := start(t, vllm.Reply{Text: "<think>\nWhere is it?\n</think>\n\nI will look.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>"})
	for _, stream := range []bool{true, false} {
		for api, body := range bodies(stream, "") {
			t.Run(fmt.Sprint(api, stream), func(t *testing.T) {
				status, typ, text := send(t, url+api.Path(), body)
				require.Equal(t, 200, status, text)
				require.Equal(t, stream, strings.HasPrefix(typ, "text/event-stream"))
				c := collect(t, api, text)
				a := &c.Answers[0]
				require.Equal(t, "Where is it?", a.Reasoning())
				require.Equal(t, "I will look.", strings.TrimSpace(a.Text()))
				require.Len(t, a.Calls(), 1)
				require.Equal(t, "weather", a.Calls()[0].Name)
				require.JSONEq(t, `{"city":"Oslo"}`, string(a.Calls()[0].Data))
				require.Equal(t, event.ToolCalls, a.Finish)
				require.Positive(t, c.Usage.Prompt)
				require.Positive(t, c.Usage.Output)
			})
		}
	}
}

// An error has a status if the response has not started, and otherwise ends the stream.
func TestFailures(t *testing.T) {
	url := start(t, vllm.Reply{Text: "Hello there, and a good day to you, whoever you are.", Fail: vllm.Failure{Mode: vllm.Cut, AfterTokens: 4}})
	for _, stream := range []bool{true, false} {
		for api, body := range bodies(stream, "") {
			status, _, text := send(t, url+api.Path(), body)
			if want := map[bool]int{true: 200, false: 500}[stream]; stream {
				require.Equal(t, want, status)
			} else {
				require.GreaterOrEqual(t, status, want)
			}
			require.Contains(t, text, `"error"`)
			status, _, text = send(t, url+api.Path(), `{"model":"m"`)
			require.Equal(t, 400, status, text)
			long := strings.Replace(body, `"Hi"`, `"`+strings.Repeat("Hello ", 3000)+`"`, 1)
			status, _, text = send(t, url+api.Path(), long)
			require.Equal(t, 400, status, text)
			require.Contains(t, text, "2000", "the window")
		}
	}
	url = start(t, vllm.Reply{Fail: vllm.Failure{Mode: vllm.Refuse}})
	status, _, text := send(t, url+"/v1/chat/completions", bodies(true, "")[wire.Chat])
	require.GreaterOrEqual(t, status, 500, text)
}

// A message that the template cannot have is logged. If nothing is left, the client gets an error for it.
func TestLosses(t *testing.T) {
	url := start(t, vllm.Reply{Text: "Yes."})
	var logged bytes.Buffer
	log.SetOutput(&logged)
	defer log.SetOutput(os.Stderr)
	const bot, lost = `{"role":"bot","content":"Hello"}`, "messages[0]: a turn of an unknown role"
	status, _, text := send(t, url+"/v1/chat/completions", `{"model":"m","messages":[`+bot+`,{"role":"user","content":"Hi"}]}`)
	log.SetOutput(os.Stderr)
	require.Equal(t, 200, status, text)
	require.Contains(t, logged.String(), `["`+lost+`"]`)
	status, _, text = send(t, url+"/v1/chat/completions", `{"model":"m","messages":[`+bot+`]}`)
	require.Equal(t, 400, status, text)
	require.Contains(t, text, lost)
	require.Contains(t, text, `"param":"messages[0]"`)
}

// Stop strings and limits of a request end the response, although stop strings are not sent to the engine.
func TestStops(t *testing.T) {
	url := start(t, vllm.Reply{Text: "one two three four five six seven"})
	_, _, text := send(t, url+"/v1/chat/completions", bodies(true, `,"stop":[" three"]`)[wire.Chat])
	a := &collect(t, wire.Chat, text).Answers[0]
	require.Equal(t, "one two", a.Text())
	require.Equal(t, event.Stop, a.Finish)
	_, _, text = send(t, url+"/v1/chat/completions", bodies(false, `,"max_tokens":2`)[wire.Chat])
	c := collect(t, wire.Chat, text)
	require.Equal(t, event.Length, c.Answers[0].Finish)
	require.EqualValues(t, 2, c.Usage.Output)
}

// Without -engine the program serves an embedded engine, which repeats the user's text.
func TestEmbedded(t *testing.T) {
	m, err := prompt.Load(mini.FS(), nil)
	require.NoError(t, err)
	front := httptest.NewUnstartedServer(nil)
	front.Config.Handler = newServer(m, "m", "", front.Listener.Addr())
	front.Start()
	t.Cleanup(func() { front.Close(); http.DefaultClient.CloseIdleConnections() })
	status, _, text := send(t, front.URL+"/v1/messages", `{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"Hello there"}]}`)
	require.Equal(t, 200, status, text)
	require.Equal(t, "Hello there", collect(t, wire.Messages, text).Answers[0].Text())
}

func TestFlags(t *testing.T) {
	clitest.Check(t, "server", func(args []string, stdout *bytes.Buffer) error { return run(args, stdout) })
	var out bytes.Buffer
	require.Error(t, run([]string{"-model-dir", "/no/such/folder"}, &out))
	require.Error(t, run([]string{"-listen", "nowhere"}, &out))
}
