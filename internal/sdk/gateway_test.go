// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"math"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/openai/openai-go/v3"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/mini"
	"github.com/weft-go/weft/tokenizers/prompt"
)

var tok = sync.OnceValue(func() *tokenizers.Tokenizer { return mini.Load() })

// slashed is the name under which most tests ask for the model.
const slashed = "org/demo-1"

// A rig is a gateway with an embedded engine, on loopback, and clients of it.
type rig struct {
	url    string
	openai openai.Client
	claude anthropic.Client

	mu      sync.Mutex
	prompts []string // as the engine got them
}

// start serves a gateway whose engine follows script.
func start(t testing.TB, script vllm.Script, change func(*serve.Options)) *rig {
	r := &rig{}
	e := vllm.New(tok(), &vllm.Options{Model: "m", Speed: math.Inf(1), Script: func(p vllm.Prompt) vllm.Reply {
		r.mu.Lock()
		r.prompts = append(r.prompts, p.Text)
		r.mu.Unlock()
		return script(p)
	}})
	engine := httptest.NewServer(e)
	prompts, err := prompt.New(nil, &prompt.Options{Tokenizer: tok(), Family: "hermes"})
	require.NoError(t, err)
	opt := serve.Options{
		Model: "m", Aliases: []string{slashed}, Prompts: prompts, Engines: []serve.Engine{{Name: "e", URL: engine.URL, Events: e.Events}},
	}
	if change != nil {
		change(&opt)
	}
	g, err := serve.New(&opt)
	require.NoError(t, err)
	front := httptest.NewServer(g)
	t.Cleanup(func() {
		g.Close()
		front.Close()
		e.Close()
		engine.Close()
	})
	r.url = front.URL
	r.openai, r.claude = clients(front)
	return r
}

// through puts another gateway in front, which uses the first one as a managed endpoint of a kind.
func (r *rig) through(t testing.TB, kind upstream.Managed) {
	g, err := serve.New(&serve.Options{Model: "front", Aliases: []string{slashed}, Engines: []serve.Engine{{URL: r.url, Kind: kind, Model: "m"}}})
	require.NoError(t, err)
	front := httptest.NewServer(g)
	t.Cleanup(func() {
		g.Close()
		front.Close()
	})
	r.openai, r.claude = clients(front)
}

func always(text string) vllm.Script {
	return func(vllm.Prompt) vllm.Reply { return vllm.Reply{Text: text} }
}
