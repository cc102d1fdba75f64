// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/tokenizers/mini"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// tokenizerJSON returns a tokenizer that only has special tokens.
func tokenizerJSON(special ...string) *fstest.MapFile {
	var added []string
	for i, m := range special {
		added = append(added, fmt.Sprintf(`{"id":%d,"content":%q,"special":true,"normalized":false,"single_word":false,"lstrip":false,"rstrip":false}`, i+1, m))
	}
	return &fstest.MapFile{Data: []byte(`{"added_tokens":[` + strings.Join(added, ",") + `],"model":{"type":"WordLevel","vocab":{"<unk>":0},"unk_token":"<unk>"}}`)}
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

// Without a template, the vocabulary determines the format, and Source reports that.
func TestLoadFindsTheTemplate(t *testing.T) {
	small := fstest.MapFS{}
	for want, special := range map[string][]string{
		"ChatML": {"<|im_start|>", "<|im_end|>"}, "harmony": {"<|start|>", "<|channel|>", "<|message|>", "<|call|>"},
		"ChatML as plain text: the directory has no template": nil,
	} {
		small["tokenizer.json"] = tokenizerJSON(special...)
		m, err := prompt.Load(small, nil)
		require.NoError(t, err)
		require.Equal(t, want, m.Source())
	}
	small["tokenizer.json"] = tokenizerJSON()
	small["chat_template.jinja"] = file("{% for m in messages %}{{ m.content")
	_, err := prompt.Load(small, nil)
	require.ErrorContains(t, err, "chat template")
	small["chat_template.jinja"] = file("{% set ids = [] %}{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}{% set _ = ids.append(c.id) %}{% endfor %}{% endfor %}")
	_, err = prompt.Load(small, nil)
	require.ErrorContains(t, err, `chat_template.jinja:1:111: access to attribute "append" of list is unsafe: transformers refuses it too`)
}

// The developer role of OpenAI's API gives instructions, also where a format has another use for its name.
func TestLoadDeveloper(t *testing.T) {
	req, err := chat.Decode([]byte(`{"model":"m","messages":[{"role":"developer","content":"D"},{"role":"user","content":"Q"}]}`), nil)
	require.NoError(t, err)
	for kind, want := range map[string]string{
		"deepseek_v32": "<｜begin▁of▁sentence｜>D<｜User｜>Q<｜Assistant｜></think>",
		"deepseek_v4":  "<｜begin▁of▁sentence｜>D<｜User｜>Q<｜Assistant｜></think>",
	} {
		m, err := prompt.Load(fstest.MapFS{"tokenizer.json": tokenizerJSON(), "config.json": file(`{"model_type":"` + kind + `"}`)}, nil)
		require.NoError(t, err)
		p, err := m.Render(req, noon)
		require.NoError(t, err)
		require.Equal(t, want, p.Text)
		require.Empty(t, p.Losses)
	}
}

// callsAs returns a template that prints calls between tags.
const callsAs = `{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages %}<{{ m.role }}>{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}` +
	`{% for c in m.tool_calls or [] %}CALL{% endfor %}<end>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}`

func TestLoadInfersTheFamily(t *testing.T) {
	hermes := strings.Replace(callsAs, "CALL", `<tool_call>{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments if c.function.arguments is string else c.function.arguments | tojson }}}</tool_call>`, 1)
	xml := strings.Replace(callsAs, "CALL", "<tool_call>\n<function={{ c.function.name }}>\n{% for k, v in c.function.arguments | items %}<parameter={{ k }}>\n{{ v }}\n</parameter>\n{% endfor %}</function>\n</tool_call>", 1)
	object := `{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}`
	jamba := strings.Replace(callsAs, "CALL", "<tool_calls>["+object+"]</tool_calls>", 1)
	m1 := strings.Replace(callsAs, "CALL", "<tool_calls>\n"+object+"\n</tool_calls><end_of_sentence>", 1)
	odd := strings.Replace(callsAs, "CALL", `@@{{ c.function.name }}@@{{ c.function.arguments }}@@`, 1)
	plain := `{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}`
	for _, tt := range []struct {
		name, template, config string
		opt                    prompt.Options
		want, err              string
	}{
		{name: "by its calls", template: hermes, want: "hermes"},
		{name: "by its calls, in XML", template: xml, want: "qwen3_coder"},
		{name: "by the tags around its calls", template: jamba, want: "minimax_m1"},
		{name: "by the tags around its calls, without reasoning", template: strings.ReplaceAll(jamba, "think>", "b>"), want: "jamba"},
		{name: "by the end of its turns", template: strings.ReplaceAll(m1, "think>", "b>"), want: "minimax_m1"},
		{name: "a name that agrees", template: hermes, opt: prompt.Options{Name: "Qwen/Qwen3-8B"}, want: "qwen3"},
		{name: "a model_type that agrees", template: hermes, config: `{"model_type":"qwen3_moe"}`, want: "qwen3"},
		{name: "the template decides", template: hermes, opt: prompt.Options{Name: "openai/gpt-oss-20b"}, want: "hermes"},
		{name: "requested", template: hermes, opt: prompt.Options{Family: "qwen25"}, want: "qwen25"},
		{name: "contradicted", template: hermes, opt: prompt.Options{Family: "harmony"},
			err: "the parser harmony contradicts the template (the model's own template), which prints calls as hermes reads them"},
		{name: "raw text", template: hermes, opt: prompt.Options{Family: "passthrough"}, want: "passthrough"},
		{name: "no family reads it", template: odd, want: ""},
		{name: "no family reads it, requested", template: odd, opt: prompt.Options{Family: "hermes"}, want: "hermes"},
		{name: "no calls", template: plain, want: "passthrough"},
		{name: "no calls, but a name", template: plain, opt: prompt.Options{Name: "gpt-oss-20b"}, want: "harmony"},
		{name: "unknown", template: plain, opt: prompt.Options{Family: "klingon"}, err: `klingon`},
		{name: "two that cannot be combined", template: plain, opt: prompt.Options{Family: "hermes+harmony"}, err: `harmony`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := fstest.MapFS{"tokenizer.json": tokenizerJSON(), "chat_template.jinja": file(tt.template)}
			if tt.config != "" {
				files["config.json"] = file(tt.config)
			}
			m, err := prompt.Load(files, &tt.opt)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, m.Family())
			req := block.NewRequest(block.NewTurn(block.RoleUser, "Hi"))
			p, err := m.Render(req, noon)
			require.NoError(t, err)
			_, err = m.NewDecoder(req, p, nil)
			require.Equal(t, tt.want == "", err != nil, "%v", err)
		})
	}
}

// The built-in ChatML asks for calls only in a form that the family's parser reads. If there is none, the tools of a
// request are a loss, and Source reports that.
func TestChatMLAsksForReadableCalls(t *testing.T) {
	const tools = `,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"x":{"type":"string"}}}}}]`
	plain := fstest.MapFS{"tokenizer.json": tokenizerJSON()}
	req, err := chat.Decode([]byte(`{"model":"m","messages":[{"role":"user","content":"Hi"}]`+tools+`}`), nil)
	require.NoError(t, err)
	forms := map[string][]string{}
	for _, family := range append(parsers.Default().Names(), "") {
		made, err := prompt.New(nil, &prompt.Options{Family: family})
		require.NoError(t, err)
		models := []*prompt.Model{made}
		if slices.Contains([]string{"hermes", "qwen3_coder", "kimi_k2"}, family) {
			loaded, err := prompt.Load(plain, &prompt.Options{Family: family})
			require.NoError(t, err)
			models = append(models, loaded)
		}
		for i, m := range models {
			source := []string{"ChatML", "ChatML as plain text: the directory has no template"}[i]
			p, err := m.Render(req, noon)
			require.NoError(t, err)
			_, example, ok := strings.Cut(p.Text, "<tool_call>\n")
			if !ok {
				require.NotContains(t, p.Text, "# Tools")
				require.Equal(t, []block.Loss{{Path: "tools", Why: "the model has no template of its own, and the parser " + family + " does not read calls in ChatML"}}, p.Losses)
				require.Equal(t, source+" without tools: the parser "+family+" reads no call in it", m.Source())
				continue
			}
			require.Empty(t, p.Losses)
			require.Equal(t, source, m.Source())
			form := "json"
			if strings.Contains(example, "<function=") {
				form = "xml"
			}
			if i == 0 {
				forms[form] = append(forms[form], family)
			}
			if family == "passthrough" || family == "" {
				continue
			}
			example, _, _ = strings.Cut("<tool_call>\n"+example, "</tool_call>")
			example = strings.NewReplacer("<function-name>", `"f"`, "<args-json-object>", `{"x": "y"}`, "example_function_name", "f", "example_parameter_1", "x").Replace(example)
			d, err := m.NewDecoder(req, p, nil)
			require.NoError(t, err)
			var c event.Collector
			c.Add(d.Append(nil, example+"</tool_call>")...)
			c.Add(d.Finish(nil)...)
			require.Len(t, c.Answers[0].Calls(), 1, "%s does not read %s", family, example)
			require.Equal(t, "f", c.Answers[0].Calls()[0].Name)
		}
	}
	require.Equal(t, map[string][]string{
		"json": {"ernie45", "granite", "hermes", "laguna", "passthrough", "qwen25", "qwen3", "qwen3_thinking", "telechat4", "xlam", ""},
		"xml":  {"mimo", "nemotron_nano", "qwen35", "qwen3_coder", "seed_oss", "step3p5"},
	}, forms)
	m, err := prompt.New(nil, &prompt.Options{Family: "kimi_k2"})
	require.NoError(t, err)
	m, err = m.WithFamily("hermes")
	require.NoError(t, err)
	p, err := m.Render(req, noon)
	require.NoError(t, err)
	require.Contains(t, p.Text, "# Tools")
	m, err = prompt.New(lookup("chatml", nil), nil)
	require.NoError(t, err)
	require.Equal(t, "the caller's own template", m.Source())
}

// TestLoadShared loads models of the shared data; with -short, one of them.
func TestLoadShared(t *testing.T) {
	if testing.Short() {
		t.Skip("large models")
	}
	if _, err := os.Stat(sharedDir()); err != nil {
		t.Skip("no shared data: set WEFT_SHARED")
	}
	for dir, want := range map[string][2]string{
		"qwen3": {"qwen3", "the model's own template"}, "qwen2.5": {"qwen25", "the model's own template"}, "kimi-k2": {"kimi_k2", "the model's own template"},
		"gpt-oss": {"harmony", "harmony"}, "phi-4": {"phi4", "the model's own template"}, "qwen3.5-renum": {"qwen35", "the model's own template"},
	} {
		m, err := prompt.Load(os.DirFS(filepath.Join(sharedDir(), "tok", dir)), nil)
		require.NoError(t, err)
		require.Equal(t, want, [2]string{m.Family(), m.Source()})
	}
	dir := filepath.Join(sharedDir(), "tok", "gpt-oss")
	_, err := prompt.Load(os.DirFS(dir), &prompt.Options{Family: "hermes"})
	require.EqualError(t, err, "prompt: load "+dir+": the parser hermes contradicts the template (harmony), which prints calls as harmony reads them")
}

func TestLoadFindsTheWindow(t *testing.T) {
	for config, want := range map[string]int{
		``: 0, `{`: 0, `{"max_position_embeddings":40960}`: 40960, `{"n_positions":1024}`: 1024, `{"max_seq_len":2048,"seq_length":4096}`: 2048,
		`{"max_position_embeddings":4096,"max_sequence_length":2048}`:                                                                 2048,
		`{"text_config":{"max_position_embeddings":131072},"max_position_embeddings":5}`:                                              131072,
		`{"max_position_embeddings":32768,"rope_scaling":{"rope_type":"yarn","factor":4,"original_max_position_embeddings":32768}}`:   131072,
		`{"max_position_embeddings":163840,"rope_scaling":{"type":"yarn","factor":40,"original_max_position_embeddings":4096}}`:       163840,
		`{"max_position_embeddings":131072,"rope_scaling":{"rope_type":"llama3","factor":8,"original_max_position_embeddings":8192}}`: 131072,
		`{"max_position_embeddings":8192,"rope_scaling":{"type":"linear","factor":2}}`:                                                16384,
		`{"max_position_embeddings":8192,"model_max_length":131072}`:                                                                  131072,
		`{"max_position_embeddings":1e30}`: 1<<31 - 1,
	} {
		files := fstest.MapFS{"tokenizer.json": tokenizerJSON("<|im_start|>", "<|im_end|>")}
		if config != "" {
			files["config.json"] = file(config)
		}
		m, err := prompt.Load(files, nil)
		require.NoError(t, err)
		require.Equal(t, want, m.Window(), config)
		files["tokenizer_config.json"] = file(`{"model_max_length":1000}`)
		m, err = prompt.Load(files, nil)
		require.NoError(t, err)
		require.Equal(t, 1000, m.Window(), config)
		files["tokenizer_config.json"] = file(`{"model_max_length":1000000000000000019884624838656}`)
		m, err = prompt.Load(files, &prompt.Options{Window: 7})
		require.NoError(t, err)
		require.Equal(t, 7, m.Window(), config)
	}
}

func TestLoadFindsStopTokens(t *testing.T) {
	files := fstest.MapFS{
		"tokenizer.json":         tokenizerJSON("<|im_start|>", "<|im_end|>", "<a>", "<b>", "<c>", "<|eot_id|>"),
		"config.json":            file(`{"eos_token_id":3,"text_config":{"eos_token_id":[4]}}`),
		"generation_config.json": file(`{"eos_token_id":[5]}`),
	}
	m, err := prompt.Load(files, nil)
	require.NoError(t, err)
	require.Equal(t, []uint32{2, 3, 4, 5, 6}, m.StopTokens())
	for _, odd := range []string{`{"eos_token_id":null}`, `{"eos_token_id":"x"}`, `{"eos_token_id":-1}`} {
		files["config.json"] = file(odd)
		m, err = prompt.Load(files, nil)
		require.NoError(t, err)
		require.Equal(t, []uint32{2, 5, 6}, m.StopTokens())
	}
}

// Errors name the directory as the user gave it and the files in it.
func TestLoadErrors(t *testing.T) {
	dir := t.TempDir()
	_, err := prompt.Load(os.DirFS(dir), nil)
	require.ErrorContains(t, err, "prompt: load: tokenizers: "+dir+": tokenizer.json (or tokenizer.model, tiktoken.model, tekken.json, vocab.json, vocab.txt) is missing; the directory is empty")
	for _, name := range []string{"config.json", "model.safetensors"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	_, err = prompt.Load(os.DirFS(dir), nil)
	require.ErrorContains(t, err, "prompt: load: tokenizers: "+dir+": tokenizer.json (or tokenizer.model, tiktoken.model, tekken.json, vocab.json, vocab.txt) is missing; found config.json, model.safetensors")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tokenizer.json"), []byte("{"), 0o600))
	_, err = prompt.Load(os.DirFS(dir), nil)
	require.ErrorContains(t, err, "prompt: load: tokenizers: "+dir+"/tokenizer.json: ")
	_, err = prompt.Load(os.DirFS("Qwen/Qwen3-8B"), nil)
	require.ErrorContains(t, err, "prompt: load Qwen/Qwen3-8B: no such directory: download the model first, as its id is not a path")
	_, err = prompt.Load(os.DirFS(filepath.Join(dir, "nowhere")), nil)
	require.ErrorContains(t, err, "nowhere: no such directory")
	_, err = prompt.Load(fstest.MapFS{}, nil)
	require.ErrorContains(t, err, "prompt: load model: tokenizers: tokenizer.json (or tokenizer.model, tiktoken.model, tekken.json, vocab.json, vocab.txt) is missing; the directory is empty")
}

func TestNewErrors(t *testing.T) {
	_, err := prompt.New(nil, &prompt.Options{Window: -1})
	require.ErrorContains(t, err, "Window")
	_, err = prompt.New(nil, &prompt.Options{Family: "vulcan"})
	require.ErrorContains(t, err, "vulcan")
	m, err := prompt.New(lookup("chatml", nil), &prompt.Options{Family: "hermes"})
	require.NoError(t, err)
	_, err = m.WithFamily("vulcan")
	require.ErrorContains(t, err, "vulcan")
	require.Equal(t, "hermes", m.Family())
	m, err = prompt.Load(mini.FS(), &prompt.Options{Family: "qwen3_coder"})
	require.NoError(t, err)
	req := block.NewRequest(block.NewTurn(block.RoleUser, "Hi"), block.Turn{Role: block.RoleAssistant, Blocks: []block.Block{{Kind: block.ToolCall, CallID: "1", Name: "f", Args: `{"x":"y"}`}}})
	p, err := m.Render(req, noon)
	require.NoError(t, err)
	require.Contains(t, p.Text, "<function=f>", "ChatML is written as the family writes it")
	m, err = m.WithFamily("hermes")
	require.NoError(t, err)
	p, err = m.Render(req, noon)
	require.NoError(t, err)
	require.Contains(t, p.Text, `{"name": "f"`)
}
