// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/protocols/intent"
	"github.com/weft-go/weft/router/policy"
	"github.com/weft-go/weft/tokenizers/template"
)

// task is an agent's work: three calls with reasoning, and a last response. The template omits the reasoning after the next question.
func task(p vllm.Prompt) vllm.Reply {
	thought := "<think>\n" + strings.Repeat("What does this mean? ", 20) + "\n</think>\n\n"
	if n := strings.Count(p.Text[strings.LastIndex(p.Text, "question"):], "<tool_response>"); n < 3 {
		return vllm.Reply{Text: fmt.Sprintf("%sReading file %d.\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"%d.go\"}}\n</tool_call>", thought, n, n)}
	}
	return vllm.Reply{Text: thought + "Done."}
}

// A prefetchRig is a gateway whose prefetches are recorded.
type prefetchRig struct {
	*rig
	mu   sync.Mutex
	list []serve.Prefetch
}

func startPrefetch(t *testing.T, n int, script vllm.Script, change func(*serve.Options)) *prefetchRig {
	t.Helper()
	jinja, err := template.Parse("agent", agentJinja, nil)
	require.NoError(t, err)
	p := &prefetchRig{}
	p.rig = start(t, n, script, func(o *serve.Options) {
		o.Prompts, o.Policy = prompts(t, jinja, "hermes"), intent.Policy{Prefetch: true}
		for i := range o.Engines {
			o.Engines[i].PrefillPerSecond = 5000 // 50 tokens are worth a request
		}
		o.OnPrefetch = func(x serve.Prefetch) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.list = append(p.list, x)
		}
		if change != nil {
			change(o)
		}
	})
	return p
}

// outcomes waits until there are n outcomes and returns them.
func (p *prefetchRig) outcomes(t *testing.T, n int) (list []string) {
	t.Helper()
	require.Eventually(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.list) >= n
	}, 10*time.Second, time.Millisecond)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.list {
		list = append(list, x.Outcome)
	}
	return list
}

// A talker is a client of the chat API that returns all that it gets.
type talker struct {
	url  string
	ask  string // more fields of the body
	list []any
	key  string

	pause time.Duration // of the tools and the user
}

// say adds a question and runs calls until a response has none. It returns the prompt and cached tokens of the first request.
func (c *talker) say(t *testing.T, question string) (prompt, cached int) {
	t.Helper()
	c.list = append(c.list, object{"role": "user", "content": question})
	for i := 0; ; i++ {
		list, err := json.Marshal(c.list)
		require.NoError(t, err)
		status, _, body := send(t, c.url+"/v1/chat/completions", `{"model":"m","messages":`+string(list)+readTool+c.ask+`}`, "Authorization", "Bearer "+c.key)
		require.Equal(t, 200, status, body)
		var r struct {
			Choices []struct{ Message object }
			Usage   struct {
				Prompt  int `json:"prompt_tokens"`
				Details struct {
					Cached int `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
			}
		}
		require.NoError(t, json.Unmarshal([]byte(body), &r))
		if i == 0 {
			prompt, cached = r.Usage.Prompt, r.Usage.Details.Cached
		}
		m := r.Choices[0].Message
		c.list = append(c.list, m)
		time.Sleep(c.pause)
		calls, _ := m["tool_calls"].([]any)
		if len(calls) == 0 {
			return prompt, cached
		}
		for _, x := range calls {
			c.list = append(c.list, object{"role": "tool", "tool_call_id": x.(object)["id"], "content": strings.Repeat("package main // and so on\n", 30)})
		}
	}
}

const readTool = `,"tools":[{"type":"function","function":{"name":"read","parameters":{"type":"object"}}}]`

const asksPrefetch = `,"nvext":{"agent_hints":{"speculative_prefill":true}}`

// TestPrefetch checks that the engine computes what is known of the next prompt after a response, and that the next prompt then is cached up to
// the new question. In the middle of a task, the engine already has all of it.
func TestPrefetch(t *testing.T) {
	var cached [2]int
	for i, ask := range []string{"", asksPrefetch} {
		p := startPrefetch(t, 2, task, nil)
		c := talker{url: p.url, ask: ask, pause: 50 * time.Millisecond}
		c.say(t, "First question: what is in these files?")
		if ask != "" {
			require.Equal(t, []string{serve.PrefetchIdle, serve.PrefetchIdle, serve.PrefetchIdle, serve.PrefetchDone}, p.outcomes(t, 4))
		}
		var prompt int
		prompt, cached[i] = c.say(t, "Second question: and why?")
		if ask == "" {
			require.Empty(t, p.list)
			continue
		}
		require.Less(t, prompt-cached[i], 48, "of %d tokens", prompt) // the question, the next opening, and a part of a block
		require.Equal(t, serve.PrefetchUsed, p.outcomes(t, 5)[4])
		require.Equal(t, p.list[3].Tokens, p.list[4].Tokens)
		require.Equal(t, cached[1]-cached[0], p.list[4].Tokens)
		require.Equal(t, "m", p.list[4].Model)
	}
	require.Greater(t, cached[1], 4*cached[0]+300, "%v", cached)
}

// TestPrefetchNot checks when nothing is computed, and that the client is told if the hint has no effect.
func TestPrefetchNot(t *testing.T) {
	long := say("<think>\n" + strings.Repeat("What does this mean? ", 50) + "\n</think>\n\n" + strings.Repeat("An answer. ", 60))
	const question = `{"role":"user","content":"A question of some length, so that there are blocks."}`
	for name, tt := range map[string]struct {
		ask     string
		change  func(*serve.Options)
		path    string
		dropped string // of the response
		n       int    // outcomes
	}{
		"asked":         {ask: asksPrefetch, n: 1},
		"own spelling":  {ask: `,"agent":{"prefetch":true}`, n: 1},
		"not asked":     {},
		"not permitted": {ask: asksPrefetch, change: func(o *serve.Options) { o.Policy = intent.Policy{} }},
		"cut":           {ask: asksPrefetch + `,"max_tokens":40`},
		"two choices":   {ask: asksPrefetch + `,"n":2`, dropped: "nvext.agent_hints.speculative_prefill"},
		"last request": {ask: `,"agent":{"prefetch":true,"final":true,"session":"s"}`, dropped: "agent.prefetch",
			change: func(o *serve.Options) { o.Policy.Trust = intent.MustHints("final") }},
	} {
		t.Run(name, func(t *testing.T) {
			p := startPrefetch(t, 1, long, tt.change)
			status, header, body := send(t, p.url+"/v1/chat/completions", `{"model":"m","messages":[`+question+`]`+tt.ask+`}`)
			require.Equal(t, 200, status, body)
			require.Equal(t, tt.dropped, header.Get("X-Weft-Dropped"))
			require.Len(t, p.outcomes(t, tt.n), tt.n)
			p.gateway.Close() // waits
			require.Len(t, p.list, tt.n)
			p.rig.mu.Lock()
			defer p.rig.mu.Unlock()
			require.Len(t, p.rig.prompts, 1+tt.n+strings.Count(tt.ask, `"n":2`))
		})
	}
}

// An aheadEngine responds at once, and computes prompts in advance in ten seconds.
type aheadEngine struct {
	*stub
	mu            sync.Mutex
	bodies, ahead []object          // of requests, and of those in advance
	running       int               // requests in advance
	contexts      []context.Context // of those that run and were not canceled
	most          int               // contexts at a time
}

func newAheadEngine() *aheadEngine {
	e := &aheadEngine{stub: &stub{}}
	e.answer = func(_ string, r *http.Request) (*http.Response, error) {
		body, _ := r.GetBody()
		var b object
		if err := json.NewDecoder(body).Decode(&b); err != nil {
			return nil, err
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if b["max_tokens"] != 1.0 {
			e.bodies = append(e.bodies, b)
			return answerOf(200, chunkOf(longAnswer, "stop")+"data: [DONE]\n\n"), nil
		}
		e.ahead = append(e.ahead, b)
		e.running++
		e.contexts = append(slices.DeleteFunc(e.contexts, func(c context.Context) bool { return c.Err() != nil }), r.Context())
		e.most = max(e.most, len(e.contexts))
		return streamed(func(w *io.PipeWriter) {
			select {
			case <-time.After(10 * time.Second):
				io.WriteString(w, whole)
			case <-r.Context().Done():
			}
			e.mu.Lock()
			defer e.mu.Unlock()
			e.running--
			e.contexts = slices.DeleteFunc(e.contexts, func(c context.Context) bool { return c == r.Context() })
		}), nil
	}
	return e
}

var longAnswer = strings.TrimSpace(strings.Repeat("An answer. ", 50))

// An aheadRig is a gateway with such an engine.
type aheadRig struct {
	*aheadEngine
	g    *serve.Gateway
	list []string // outcomes
}

func startAhead(t *testing.T, engines int, change func(*serve.Options)) *aheadRig {
	a := &aheadRig{aheadEngine: newAheadEngine()}
	a.g = stubbed(t, engines, a.stub, func(o *serve.Options) {
		o.Policy.Prefetch = true
		for i := range o.Engines {
			o.Engines[i].PrefillPerSecond = 1000
			o.Engines[i].Hints, _ = intent.NewTarget("vllm", "", "priority scheduling")
		}
		o.OnPrefetch = func(x serve.Prefetch) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.list = append(a.list, x.Outcome)
		}
		if change != nil {
			change(o)
		}
	})
	return a
}

// state waits until all goroutines are blocked and returns the outcomes, and the numbers of requests in advance that were sent and that run.
func (a *aheadRig) state() (outcomes []string, sent, running int) {
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.list), len(a.ahead), a.running
}

// talk sends a conversation with n questions, the last one without a response, with a key.
func (a *aheadRig) talk(t *testing.T, topic string, n int, more, key string) {
	var messages []any
	for i := range n {
		if i > 0 {
			messages = append(messages, object{"role": "assistant", "content": longAnswer})
		}
		messages = append(messages, object{"role": "user", "content": strings.Repeat(topic+" ", 50)})
	}
	body, err := json.Marshal(messages)
	require.NoError(t, err)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(`{"model":"m","messages":`+string(body)+more+`}`))
	r.Header.Set("Authorization", "Bearer "+key)
	w := httptest.NewRecorder()
	a.g.ServeHTTP(w, r)
	require.Equal(t, 200, w.Code, w.Body)
}

// TestPrefetchGivesWay checks that any request that is placed on the engine, and the conversation's next one in any case, cancels what is
// computed in advance, and that the load is zero afterwards.
func TestPrefetchGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var trace endRecorder
		a := startAhead(t, 1, func(o *serve.Options) { o.Tracer = &trace })
		defer a.g.Close()
		check := func(outcomes []string, sent, running int) {
			t.Helper()
			got, s, r := a.state()
			require.Equal(t, []any{outcomes, sent, running}, []any{got, s, r})
		}
		a.talk(t, "birds", 1, asksPrefetch, "")
		check(nil, 1, 1)
		require.Equal(t, 1.0, a.ahead[0]["priority"], "after all others")
		require.Equal(t, 1, a.g.Status("").Running)
		a.talk(t, "birds", 2, "", "")
		check([]string{"canceled"}, 1, 0)
		a.talk(t, "fish", 1, asksPrefetch, "")
		check([]string{"canceled"}, 2, 1)
		a.talk(t, "cats", 1, "", "")
		check([]string{"canceled", "canceled"}, 2, 0)
		a.talk(t, "dogs", 1, asksPrefetch, "")
		time.Sleep(time.Minute)
		check([]string{"canceled", "canceled", "done"}, 3, 0)
		a.talk(t, "dogs", 2, "", "")
		check([]string{"canceled", "canceled", "done", "used"}, 3, 0)
		a.talk(t, "dogs", 2, "", "") // once
		check([]string{"canceled", "canceled", "done", "used"}, 3, 0)
		require.Zero(t, a.g.Status("").Running)
		slices.Sort(trace.ends)
		require.Equal(t, []string{"chat ", "chat ", "chat ", "chat ", "chat ", "chat ", "chat ", "prefetch ", "prefetch canceled", "prefetch canceled"}, trace.ends)
	})
}

// TestPrefetchElsewhere checks that the next request of a conversation ends what an engine computes for it, even if the request is placed on another engine.
func TestPrefetchElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := startAhead(t, 2, func(o *serve.Options) { o.Placement, _ = policy.Named("round_robin") })
		defer a.g.Close()
		a.talk(t, "birds", 1, asksPrefetch, "")
		_, sent, running := a.state()
		require.Equal(t, [2]int{1, 1}, [2]int{sent, running})
		a.talk(t, "birds", 2, "", "")
		got, _, running := a.state()
		require.Equal(t, []string{"canceled"}, got)
		require.Zero(t, running)
	})
}

// TestPrefetchClose checks that a gateway that drains does not wait, and that one that closes ends what runs.
func TestPrefetchClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := startAhead(t, 1, nil)
		a.talk(t, "birds", 1, asksPrefetch, "")
		_, _, running := a.state()
		require.Equal(t, 1, running)
		begun := time.Now()
		require.NoError(t, a.g.Drain(t.Context()))
		a.g.Close()
		require.Zero(t, time.Since(begun))
		got, _, running := a.state()
		require.Equal(t, []string{"canceled"}, got)
		require.Zero(t, running)
	})
}

// TestPrefetchHerd checks that no more than one prompt is computed in advance on an engine, however many conversations ask for it at once.
func TestPrefetchHerd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := startAhead(t, 4, nil)
		defer a.g.Close()
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() { a.talk(t, fmt.Sprint("topic", i), 1, asksPrefetch, "") })
		}
		all.Wait()
		got, sent, running := a.state()
		require.LessOrEqual(t, a.most, 4)
		require.Equal(t, 100, len(got)+running, "each has an outcome: %d were sent, %v", sent, got)
		time.Sleep(time.Minute)
		_, _, running = a.state()
		require.Zero(t, running)
		require.Zero(t, a.g.Status("").Running)
	})
}

// TestPrefetchTenants checks that what is computed in advance has the cache salt of its tenant, and counts towards the limits of the key.
func TestPrefetchTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := startAhead(t, 3, func(o *serve.Options) {
			o.Keys = []serve.Key{
				{Name: "a", Secret: "sk-a", Tenant: "a"}, {Name: "b", Secret: "sk-b", Tenant: "b"},
				{Name: "c", Secret: "sk-c", Tenant: "c", RequestsPerMinute: 1}, {Name: "d", Secret: "sk-d", Tenant: "d", TokensPerMinute: 400},
			}
		})
		defer a.g.Close()
		for i, key := range []string{"sk-a", "sk-b"} {
			a.talk(t, "birds", 1, asksPrefetch, key)
			_, sent, _ := a.state()
			require.Equal(t, i+1, sent)
			require.NotEmpty(t, a.ahead[i]["cache_salt"])
			require.Equal(t, a.bodies[i]["cache_salt"], a.ahead[i]["cache_salt"])
		}
		require.NotEqual(t, a.ahead[0]["cache_salt"], a.ahead[1]["cache_salt"])
		a.talk(t, "birds", 1, asksPrefetch, "sk-c") // its only request
		got, sent, _ := a.state()
		require.Equal(t, 2, sent)
		require.Contains(t, got, "busy")
		time.Sleep(time.Minute)

		a.talk(t, "birds", 1, asksPrefetch, "sk-d") // about 160 tokens, and as many in advance
		_, sent, _ = a.state()
		require.Equal(t, 3, sent)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"Hi"}]}`))
		r.Header.Set("Authorization", "Bearer sk-d")
		w := httptest.NewRecorder()
		a.g.ServeHTTP(w, r)
		require.Equal(t, 429, w.Code, w.Body)
	})
}

// TestPrefetchManaged checks that clients are told that managed endpoints compute nothing in advance.
func TestPrefetchManaged(t *testing.T) {
	back := start(t, 1, say("Yes."), nil)
	front := managed(t, upstream.OpenAI, func(o *serve.Options) {
		o.Engines = []serve.Engine{{URL: back.url, Kind: upstream.OpenAI, Model: "m"}}
		o.Policy.Prefetch = true
	})
	status, header, body := send(t, front.url+"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"Hi"}]`+asksPrefetch+`}`)
	require.Equal(t, 200, status, body)
	require.Equal(t, "nvext.agent_hints.speculative_prefill", header.Get("X-Weft-Dropped"))
}

// TestPrefetchPanics checks that a panic ends only the prefetch.
func TestPrefetchPanics(t *testing.T) {
	p := startPrefetch(t, 1, task, func(o *serve.Options) { o.Tracer = panicker{&endRecorder{}} })
	c := talker{url: p.url, ask: asksPrefetch, pause: 50 * time.Millisecond}
	c.say(t, "First question: what is in these files?")
	require.Equal(t, serve.PrefetchFailed, p.outcomes(t, 4)[3])
	c.say(t, "Second question: and why?")
}

// A panicker is a Tracer that panics when a prefetch is placed.
type panicker struct{ *endRecorder }

func (panicker) Place(_ context.Context, r *serve.Record) {
	if r.API == "prefetch" {
		panic("no tracing today")
	}
}
