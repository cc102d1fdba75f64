// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers/family"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// liveTools are tools as each API has them: with parameters of all types, and without any.
var liveTools = func() map[string]string {
	const schema = `{"type":"object","properties":{"path":{"type":"string"},"mode":{"type":"string","enum":["read","write"]},"count":{"type":"integer","minimum":0,"maximum":99},` +
		`"deep":{"type":"boolean"},"tags":{"type":"array","items":{"type":"string"},"maxItems":3},"box":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],"additionalProperties":false}},` +
		`"required":["path","count","tags"],"additionalProperties":false}`
	const none = `{"type":"object","properties":{},"additionalProperties":false}`
	return map[string]string{
		"chat":      `"tools":[{"type":"function","function":{"name":"open_file","description":"d","parameters":` + schema + `}},{"type":"function","function":{"name":"now","description":"d","parameters":` + none + `}}]`,
		"responses": `"tools":[{"type":"function","name":"open_file","description":"d","parameters":` + schema + `},{"type":"function","name":"now","description":"d","parameters":` + none + `}]`,
		"messages":  `"tools":[{"name":"open_file","description":"d","input_schema":` + schema + `},{"name":"now","description":"d","input_schema":` + none + `}]`,
	}
}()

// liveChoices are values of tool_choice as each API has them, and the number of outputs for each: 24 in all.
var liveChoices = map[string]map[string]int{
	"chat":      {`"tool_choice":"required"`: 4, `"tool_choice":"required","parallel_tool_calls":false`: 2, `"tool_choice":{"type":"function","function":{"name":"open_file"}}`: 2},
	"responses": {`"tool_choice":"required"`: 4, `"tool_choice":"required","parallel_tool_calls":false`: 2, `"tool_choice":{"type":"function","name":"open_file"}`: 2},
	"messages":  {`"tool_choice":{"type":"any"}`: 4, `"tool_choice":{"type":"any","disable_parallel_tool_use":true}`: 2, `"tool_choice":{"type":"tool","name":"open_file"}`: 2},
}

type liveCase struct {
	Tag     json.RawMessage `json:"tag"`
	Ends    [][]uint32      `json:"ends"`    // of free parts
	Closers [][]uint32      `json:"closers"` // what follows the last call
	Runs    int             `json:"runs"`
	Seed    int             `json:"seed"`
	Out     [][]uint32      `json:"out,omitempty"`
	Error   string          `json:"error,omitempty"`

	api    *wire.API
	fields string
}

type liveModel struct {
	Name    string      `json:"name"`
	Vocab   [][]byte    `json:"vocab"`
	Stops   []uint32    `json:"stops"`
	Special []uint32    `json:"special"`
	Cases   []*liveCase `json:"cases"`

	model   *prompt.Model
	refused bool
}

// TestLiveConstraints lets xgrammar, which vLLM and SGLang constrain outputs with, write random outputs under the
// constraint of requests that require calls, for every template at hand. The family's parser must read each as calls with
// the arguments that the schema demands, and nothing of it as text. .ci/live runs it.
func TestLiveConstraints(t *testing.T) {
	python := os.Getenv("WEFT_XGRAMMAR")
	if python == "" {
		t.Skip("set WEFT_XGRAMMAR to a Python that has xgrammar")
	}
	templates := templatesAtHand(t)
	var work struct {
		Models []*liveModel `json:"models"`
	}
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		if m := newLiveModel(t, name, templates[name]); m != nil {
			work.Models = append(work.Models, m)
		}
	}
	file := filepath.Join(t.TempDir(), "work.json")
	data, err := json.Marshal(work)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, data, 0o600))
	cmd := exec.Command(python, "testdata/live/constraint.py", file)
	cmd.Stderr = os.Stderr
	data, err = cmd.Output()
	require.NoError(t, err)
	var done struct {
		Models []*liveModel `json:"models"`
	}
	require.NoError(t, json.Unmarshal(data, &done))
	families := map[string]int{}
	for i, m := range work.Models {
		t.Run(m.Name, func(t *testing.T) {
			for j, c := range m.Cases {
				got := done.Models[i].Cases[j]
				require.Empty(t, got.Error, "%s\n%s", c.fields, c.Tag)
				for _, ids := range got.Out {
					m.check(t, c, ids)
				}
				if strings.Contains(c.fields, "tool_choice") {
					families[m.model.Family()] += len(got.Out)
				}
			}
		})
	}
	for _, f := range slices.Sorted(maps.Keys(families)) {
		t.Logf("%-14s %d forced calls", f, families[f])
	}
}

// newLiveModel returns the model of a template and a vocabulary of bytes and the markers in the template, with the
// constraints of all requests. It is nil if calls cannot be forced.
func newLiveModel(t *testing.T, name, source string) *liveModel {
	tokens := append(specials.FindAllString(source, -1), "<eos>")
	for _, g := range family.All() {
		for _, k := range g.Markers() {
			if k.Token && strings.Contains(source, k.Text) {
				tokens = append(tokens, k.Text)
			}
		}
	}
	slices.Sort(tokens)
	m, err := prompt.Load(fstest.MapFS{
		"tokenizer.json": byteTokenizer(slices.Compact(tokens)...), "chat_template.jinja": file(source),
		"tokenizer_config.json": file(`{"bos_token":"<bos>","eos_token":"<eos>"}`),
	}, &prompt.Options{Name: name})
	if err != nil {
		t.Logf("%s: %v", name, err)
		return nil
	}
	out := &liveModel{Name: name, model: m, Stops: m.StopTokens()}
	for id := range uint32(m.Tokenizer().VocabSize()) {
		out.Vocab = append(out.Vocab, m.Tokenizer().AppendToken(nil, id))
		if id > 255 {
			out.Special = append(out.Special, id)
		}
	}
	for _, api := range []*wire.API{wire.Chat, wire.Responses, wire.Messages} {
		for fields, runs := range liveChoices[api.String()] {
			out.add(t, api, liveTools[api.String()]+","+fields, runs)
		}
	}
	if len(out.Cases) == 0 {
		return nil
	}
	out.add(t, wire.Chat, `"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}}}`, 4)
	return out
}

// add adds the constraint of a request.
func (m *liveModel) add(t *testing.T, api *wire.API, fields string, runs int) {
	var demand *prompt.Constraint
	req, p, err := m.render(api, fields)
	if err == nil {
		demand, err = m.model.Constraint(req, p)
	}
	if err != nil {
		if !m.refused {
			t.Logf("%s [%s]: %v", m.Name, m.model.Family(), err)
		}
		m.refused = true
		return
	}
	tag := demand.StructuralTag()
	c := &liveCase{Tag: tag, Runs: runs, Seed: len(m.Cases), api: api, fields: fields}
	c.Ends, c.Closers = m.ends(tag)
	m.Cases = append(m.Cases, c)
}

// ends returns the texts that end a free part of a structural tag, and those that end the calls, as tokens.
func (m *liveModel) ends(tag []byte) (ends, closers [][]uint32) {
	var visit func(v any)
	visit = func(v any) {
		switch v := v.(type) {
		case []any:
			free := false
			var after []uint32 // a list that may go on
			for i, e := range v {
				if f, _ := e.(map[string]any); f["type"] == "star" {
					for _, e := range v[i+1:] {
						f := e.(map[string]any)
						if id, ok := f["token"].(float64); ok {
							after = append(after, uint32(id))
						} else if text, ok := f["value"].(string); ok {
							after = m.model.Tokenizer().AppendEncode(after, text)
						}
					}
					if len(after) > 0 {
						closers = append(closers, after)
					}
				}
				f, _ := e.(map[string]any)
				if tag, _ := f["content"].(map[string]any); f["type"] == "star" && tag["type"] == "tag" { // up to a marker
					end := m.model.Tokenizer().AppendEncode(nil, tag["end"].(string))
					ends = append(ends, append(end, uint32(v[i+1].(map[string]any)["token"].(float64))))
				}
				if id, ok := f["token"].(float64); ok && free {
					ends = append(ends, []uint32{uint32(id)})
				}
				free = f["type"] == "any_tokens"
				visit(e)
			}
		case map[string]any:
			if end, ok := v["end"].(string); ok {
				ends = append(ends, m.model.Tokenizer().AppendEncode(nil, end))
			}
			for _, key := range slices.Sorted(maps.Keys(v)) {
				visit(v[key])
			}
		}
	}
	var v any
	json.Unmarshal(tag, &v)
	visit(v)
	return append(ends, []uint32{'"'}), closers
}

// render returns a request and its prompt.
func (m *liveModel) render(api *wire.API, fields string) (*block.Request, *prompt.Prompt, error) {
	turns := `"messages":[{"role":"user","content":"q"}]`
	if api == wire.Responses {
		turns = `"input":"q"`
	}
	req, err := api.Decode([]byte(`{"model":"m","max_tokens":100000,`+turns+`,`+fields+`}`), nil)
	if err != nil {
		return nil, nil, err
	}
	p, err := m.model.Render(req, noon)
	return req, p, err
}

// check decodes an output.
func (m *liveModel) check(t *testing.T, c *liveCase, ids []uint32) {
	req, p, err := m.render(c.api, c.fields)
	require.NoError(t, err)
	d, err := m.model.NewDecoder(req, p, nil)
	require.NoError(t, err)
	var got event.Collector
	got.Add(d.AppendTokens(nil, ids...)...)
	got.Add(d.Finish(nil)...)
	output := string(m.model.Tokenizer().AppendDecode(nil, ids, false))
	about := fmt.Sprintf("%s\n%s\n%q\n%s", m.model.Family(), c.fields, output, c.Tag)
	require.Len(t, got.Answers, 1, about)
	calls, text := got.Answers[0].Calls(), strings.TrimSpace(got.Answers[0].Text())
	if !strings.Contains(c.fields, "tool_choice") {
		var v struct{ A *int }
		require.NoError(t, json.Unmarshal([]byte(text), &v), about)
		require.NotNil(t, v.A, about)
		require.Empty(t, calls, about)
		return
	}
	require.Empty(t, text, about)
	require.NotEmpty(t, calls, about)
	if strings.Contains(c.fields, `"parallel_tool_calls":false`) || strings.Contains(c.fields, "disable_parallel_tool_use") {
		require.Len(t, calls, 1, about)
	}
	for _, call := range calls {
		if call.Name == "now" && !strings.Contains(c.fields, `"name":"open_file"}}`) {
			require.JSONEq(t, `{}`, string(call.Data), about)
			continue
		}
		require.Equal(t, "open_file", call.Name, about)
		dec := json.NewDecoder(strings.NewReader(string(call.Data)))
		dec.DisallowUnknownFields()
		var args struct {
			Path  *string
			Mode  *string
			Count *int
			Deep  *bool
			Tags  *[]string
			Box   *struct{ X *float64 }
		}
		require.NoError(t, dec.Decode(&args), about)
		require.True(t, args.Path != nil && args.Count != nil && args.Tags != nil, about)
		require.True(t, args.Mode == nil || *args.Mode == "read" || *args.Mode == "write", about)
		require.True(t, args.Box == nil || args.Box.X != nil, about)
	}
}
