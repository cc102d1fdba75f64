// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestManaged runs the command of the README with an endpoint: its key and its name of the model come from the command line,
// and it needs no files.
func TestManaged(t *testing.T) {
	var mu sync.Mutex
	var keys, bodies []string
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		keys, bodies = append(keys, r.Header.Get("X-Api-Key")), append(bodies, string(body))
		mu.Unlock()
		if r.URL.Path == "/api/v1/models" {
			fmt.Fprint(w, `{"data":[{"id":"other"},{"id":"claude-9","max_input_tokens":5000}]}`)
			return
		}
		fmt.Fprint(w, `{"id":"msg_1","type":"message","role":"assistant","model":"claude-9","content":[{"type":"text","text":"Hi there."}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":4}}`)
	}))
	defer up.Close()
	t.Setenv("UP_KEY", "sk-up")
	t.Setenv("ANTHROPIC_API_KEY", "sk-vendor")
	addr, stop, ended := startProgram(t, io.Discard, io.Discard, "-listen", "127.0.0.1:0", "-model", "mine", "-engine", "anthropic="+up.URL+"/api/v1,key_env=UP_KEY,model=claude-9")
	resp, err := http.Post("http://"+addr+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"mine","messages":[{"role":"user","content":"Hello"}]}`))
	require.NoError(t, err)
	raw, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	require.NoError(t, err)
	body := string(raw)
	require.Equal(t, 200, resp.StatusCode, body)
	require.Contains(t, body, "Hi there.")
	require.Contains(t, body, `"model":"mine"`)
	require.Contains(t, bodies[len(bodies)-1], `"model":"claude-9"`)
	resp, err = http.Get("http://" + addr + "/v1/models")
	require.NoError(t, err)
	list, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	require.NoError(t, err)
	require.Contains(t, string(list), "5000")
	require.Equal(t, []string{"sk-up", "sk-up"}, keys)
	stop()
	require.NoError(t, <-ended)

	_, stop, ended = startProgram(t, io.Discard, io.Discard, "-listen", "127.0.0.1:0", "-engine", "anthropic="+up.URL+"/api,model=claude-9")
	stop()
	require.NoError(t, <-ended)
	require.Empty(t, keys[2], "the vendor's key is for the vendor")
}

// The check of the configuration accepts an endpoint that lists no models, but not one that refuses the key.
func TestManagedCheck(t *testing.T) {
	status := http.StatusNotFound
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	defer up.Close()
	args := []string{"-check", "-model", "m", "-engine", "openai=" + up.URL}
	require.NoError(t, run(t.Context(), args, io.Discard, io.Discard, nil))
	status = http.StatusUnauthorized
	require.ErrorContains(t, run(t.Context(), args, io.Discard, io.Discard, nil), "does not accept the key")
}

func TestManagedErrors(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-model", "m", "-engine", "openai=http://127.0.0.1:1,key_env=NOT_SET_HERE"}, "NOT_SET_HERE: the environment variable with the key is not set"},
		{[]string{"-model", "m", "-engine", "openai=http://127.0.0.1:1", "-model-dir", "mini"}, "needs no files"},
		{[]string{"-model", "m", "-engine", "openai=http://127.0.0.1:1", "-engine", "embedded=local"}, "different models"},
		{[]string{"-model", "m", "-engine", "embedded=local,model=x"}, "only managed endpoints"},
		{[]string{"-model", "m", "-engine", "openai=http://127.0.0.1:1,events=tcp://h:1"}, "which publishes none"},
		{[]string{"-engine", "openai=http://127.0.0.1:1"}, "set -model NAME"},
	} {
		require.ErrorContains(t, run(t.Context(), c.args, io.Discard, io.Discard, nil), c.want)
	}
}
