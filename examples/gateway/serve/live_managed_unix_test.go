// SPDX-License-Identifier: Apache-2.0

//go:build unix

package serve_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/examples/gateway/serve"
)

// managedLive uses the three APIs of a real engine as managed endpoints, from clients of each API, streamed and whole: at
// temperature 0 the text equals its own chat's, and the tokens are counted.
func managedLive(t *testing.T, url, model, dialect string) {
	turns := []map[string]any{{"role": "user", "content": "What is the capital of France?"}}
	status, out := postJSON(t, url+"/v1/chat/completions", llamaBody("", turns, 24, object{"model": model}))
	require.Equal(t, http.StatusOK, status, out)
	own, _, _ := readReply(t, out)
	eachPair(t, func(t *testing.T, a apiCase, kind upstream.Managed) {
		kind = kind.For(dialect)
		r := managed(t, kind, func(o *serve.Options) {
			o.Engines = []serve.Engine{{URL: url, Kind: kind, Model: model}}
		})
		for _, stream := range []bool{true, false} {
			status, head, out := send(t, r.url+a.path, llamaBody(a.path, turns, 24, object{"model": "m", "stream": stream}))
			require.Equal(t, http.StatusOK, status, out)
			require.Equal(t, own, collected(t, a, out).Answers[0].Text(), out)
			require.Empty(t, head.Get("X-Weft-Dropped"))
		}
		for _, rec := range r.done(t, 2) {
			t.Logf("%+v", rec.Usage)
			require.NotZero(t, rec.Usage.Prompt)
			require.EqualValues(t, 24, rec.Usage.Output)
		}
	})
}

func TestLiveLlamaCPPManaged(t *testing.T) {
	needsLlama(t)
	file := os.Getenv("WEFT_LIVE_SMOLLM2")
	if file == "" {
		t.Skip("needs SmolLM2 (run .ci/live)")
	}
	l := &liveLlama{t: t, file: file, port: freePort(t), args: []string{"-c", "16384", "-a", "smol"}}
	l.start()
	managedLive(t, l.url(), "smol", "")
}

func TestLiveVLLMManaged(t *testing.T) {
	if os.Getenv("WEFT_LIVE_VLLM") == "" {
		t.Skip("needs a vLLM (run .ci/live)")
	}
	template := filepath.Join(t.TempDir(), "chatml.jinja") // the model has none
	require.NoError(t, os.WriteFile(template, []byte("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"), 0o600))
	v := startEngine(t, "tcp://127.0.0.1:"+freePort(t), "tcp://127.0.0.1:"+freePort(t), "0", tiny(t), "--chat-template", template)
	managedLive(t, v.url, "tiny", "vllm")
}
