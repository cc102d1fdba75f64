// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/internal/cli/clitest"
	"github.com/weft-go/weft/tokenizers/mini"
)

// Each prompt begins with the previous one and its response.
func TestRun(t *testing.T) {
	var mu sync.Mutex
	var prompts []string
	e := vllm.New(mini.Load(), &vllm.Options{Model: "m", Speed: math.Inf(1), Script: func(p vllm.Prompt) vllm.Reply {
		mu.Lock()
		defer mu.Unlock()
		prompts = append(prompts, p.Text)
		r := script(p)
		prompts = append(prompts, r.Text)
		return r
	}})
	s := httptest.NewServer(e)
	t.Cleanup(func() { e.Close(); s.Close(); http.DefaultClient.CloseIdleConnections() })
	var out bytes.Buffer
	require.NoError(t, run([]string{"-engine", s.URL, "Weather?"}, &out))
	require.Equal(t, "I need both.Let me look.\n→ weather {\"city\": \"Oslo\"}\n→ weather {\"city\": \"Rome\"}\nIt is 14 °C in both cities.\n", out.String())
	require.Len(t, prompts, 4)
	require.True(t, strings.HasPrefix(prompts[2], prompts[0]+prompts[1]+"<|im_end|>\n"), prompts[2])
	require.Contains(t, prompts[2], "Oslo: 14 °C")
	require.Less(t, strings.Index(prompts[2], "Oslo: "), strings.Index(prompts[2], "Rome: "))
}

func TestEmbedded(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(nil, &out))
	require.Contains(t, out.String(), "It is 14 °C in both cities.")
}

func TestFailures(t *testing.T) {
	for want, reply := range map[string]vllm.Reply{
		"engine": {Text: "One two three four five six.", Fail: vllm.Failure{Mode: vllm.ErrorLine, AfterTokens: 3}},
		"ended":  {Text: "One two three four five six.", Fail: vllm.Failure{Mode: vllm.Cut, AfterTokens: 3}},
		"fail":   {Fail: vllm.Failure{Mode: vllm.Refuse}},
	} {
		e := vllm.New(mini.Load(), &vllm.Options{Model: "m", Speed: math.Inf(1), Script: func(vllm.Prompt) vllm.Reply { return reply }})
		s := httptest.NewServer(e)
		var out bytes.Buffer
		require.Error(t, run([]string{"-engine", s.URL}, &out), want)
		t.Log(want, run([]string{"-engine", s.URL}, &out))
		e.Close()
		s.Close()
	}
	require.Error(t, run([]string{"-engine", "http://127.0.0.1:1"}, &bytes.Buffer{}))
}

func TestFlags(t *testing.T) {
	clitest.Check(t, "harness", func(args []string, stdout *bytes.Buffer) error { return run(args, stdout) })
	require.Error(t, run([]string{"-model-dir", "/no/such/folder"}, &bytes.Buffer{}))
}
