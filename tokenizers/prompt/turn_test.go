// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/prompt"
	"github.com/weft-go/weft/tokenizers/template"
)

// An agent writes the requests of a coding agent: a system prompt, 30 tools, and turns of reasoning, text, calls and
// results.
type agent struct {
	api  string
	rand *rand.Rand
	list []any
	size int // bytes of text
	call int
}

func newAgent(api string, size int) *agent {
	a := &agent{api: api, rand: rand.New(rand.NewPCG(1, 2))}
	a.user("Find out why the nightly build fails, and repair it.")
	for a.size < size {
		a.turn()
	}
	return a
}

// code returns n lines of text with what JSON has to escape.
func (a *agent) code(n int) string {
	words := strings.Fields("func return if err != nil { } ctx request := range values \"quoted\" path/to/file.go // comment\tÜbung import const 0x1F , ; the of and value is not")
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%5d\t", i+1)
		for range 4 + a.rand.IntN(9) {
			b.WriteString(words[a.rand.IntN(len(words))])
			b.WriteByte(' ')
		}
		b.WriteByte('\n')
	}
	a.size += b.Len()
	return b.String()
}

func (a *agent) user(text string) {
	a.size += len(text)
	if a.api == "messages" {
		a.list = append(a.list, object{"role": "user", "content": []any{object{"type": "text", "text": text}}})
		return
	}
	a.list = append(a.list, object{"role": "user", "content": text})
}

// turn adds a response with one or two calls, and their results.
func (a *agent) turn() {
	thought, text := a.code(3), a.code(1)
	var uses, calls, results []any
	for range 1 + a.rand.IntN(2) {
		a.call++
		id := fmt.Sprintf("call_%08d", a.call)
		input := object{"file_path": fmt.Sprintf("/src/pkg/file%d.go", a.call), "old_string": a.code(2), "limit": a.call, "all": true}
		args, _ := json.Marshal(input) // always encodes
		result := a.code(2 + a.rand.IntN(50))
		uses = append(uses, object{"type": "tool_use", "id": id, "name": "Edit", "input": input})
		calls = append(calls, object{"id": id, "type": "function", "function": object{"name": "Edit", "arguments": string(args)}})
		if a.api == "messages" {
			results = append(results, object{"type": "tool_result", "tool_use_id": id, "content": []any{object{"type": "text", "text": result}}})
		} else {
			results = append(results, object{"role": "tool", "tool_call_id": id, "content": result})
		}
	}
	if a.api == "messages" {
		parts := append([]any{object{"type": "thinking", "thinking": thought, "signature": "c2ln"}, object{"type": "text", "text": text}}, uses...)
		a.list = append(a.list, object{"role": "assistant", "content": parts}, object{"role": "user", "content": results})
		return
	}
	a.list = append(append(a.list, object{"role": "assistant", "content": text, "reasoning_content": thought, "tool_calls": calls}), results...)
}

// body returns the request with the conversation so far.
func (a *agent) body() []byte {
	var tools []any
	rules := strings.Repeat("Use this tool when the task requires it. Prefer absolute paths; quote \"names\" with spaces.\n", 12)
	for i := range 30 {
		schema := object{"type": "object", "required": []string{"file_path"}, "additionalProperties": false, "properties": object{
			"file_path": object{"type": "string", "description": "The absolute path of the file"}, "old_string": object{"type": "string", "description": "The text to replace"},
			"limit": object{"type": "integer", "description": "The number of lines to read", "minimum": 0}, "all": object{"type": "boolean", "default": false},
			"mode": object{"type": "string", "enum": []string{"content", "files", "count"}}, "list": object{"type": "array", "items": object{"type": "object", "properties": object{"id": object{"type": "string"}}}},
		}}
		name := "Edit"
		if i > 0 {
			name = fmt.Sprint("Tool", i)
		}
		if a.api == "messages" {
			tools = append(tools, object{"name": name, "description": rules, "input_schema": schema})
		} else {
			tools = append(tools, object{"type": "function", "function": object{"name": name, "description": rules, "parameters": schema}})
		}
	}
	system := strings.Repeat("You are an agent. Follow the rules of the repository and test each change before you report it.\n", 60)
	body := object{"model": "m", "max_tokens": 1000, "tools": tools, "messages": a.list}
	if a.api == "messages" {
		body["system"] = []any{object{"type": "text", "text": system}}
	} else {
		body["messages"] = append([]any{object{"role": "system", "content": system}}, a.list...)
	}
	data, _ := json.Marshal(body) // always encodes
	return data
}

// BenchmarkTurn measures an agent's request of about 100,000 tokens: Render, cold, and with IDs whose prefix is in the
// cache.
func BenchmarkTurn(b *testing.B) {
	for _, m := range []struct{ name, dir, format string }{
		{"qwen3", "qwen3", ""}, {"gpt-oss", "gpt-oss", ""}, {"deepseek", "hybrid-deepseek-v3", "deepseek_v3_2"},
	} {
		for _, api := range []string{"messages", "chat"} {
			b.Run("template="+m.name+"/api="+api, func(b *testing.B) {
				fsys := os.DirFS(filepath.Join(sharedDir(), "tok", m.dir))
				model, err := prompt.Load(fsys, nil)
				if err != nil {
					b.Skipf("test data not there: %v (set WEFT_SHARED)", err)
				}
				if m.format != "" {
					tok, err := tokenizers.Load(fsys, nil)
					require.NoError(b, err)
					tpl, err := template.Lookup(m.format, nil)
					require.NoError(b, err)
					model, err = prompt.New(tpl, &prompt.Options{Family: m.format, Tokenizer: tok})
					require.NoError(b, err)
				}
				a := newAgent(api, 280_000)
				req, err := decode(api, a.body(), nil)
				require.NoError(b, err)
				p, err := model.Render(req, noon)
				require.NoError(b, err)
				tokens := len(p.IDs())
				b.Run("stage=Render", func(b *testing.B) {
					b.ReportAllocs()
					b.SetBytes(int64(len(p.Text)))
					for b.Loop() {
						_, _ = model.Render(req, noon)
					}
					b.ReportMetric(float64(tokens), "tokens")
				})
				b.Run("stage=IDs", func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						b.StopTimer()
						p, _ := model.Render(req, noon)
						b.StartTimer()
						p.IDs()
					}
				})
			})
		}
	}
}
