// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/replay"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// callID finds the id of a call.
var callID = regexp.MustCompile(`("id": "|"call_id": "|\[CALL_ID\]|\[TOOL_RESULTS\])[0-9A-Za-z]{9}`)

// tekken returns a tekken.json of a version, with a vocabulary of bytes.
func tekken(t *testing.T, version string, settings any, special ...string) *fstest.MapFile {
	type object map[string]any
	var vocab, tokens []object
	for i := range 256 {
		vocab = append(vocab, object{"rank": i, "token_bytes": base64.StdEncoding.EncodeToString([]byte{byte(i)}), "token_str": nil})
	}
	for i, s := range append([]string{"<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]",
		"[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]", "[CALL_ID]", "[ARGS]", "[MODEL_SETTINGS]", "[/MODEL_SETTINGS]"}, special...) {
		tokens = append(tokens, object{"rank": i, "token_str": s, "is_control": true})
	}
	file := object{"config": object{"pattern": ".", "num_vocab_tokens": 256, "default_vocab_size": 286, "default_num_special_tokens": 30, "version": version}, "vocab": vocab, "special_tokens": tokens}
	if settings != nil {
		file["model_settings_builder"] = settings
	}
	data, err := json.Marshal(file)
	require.NoError(t, err)
	return &fstest.MapFile{Data: data}
}

// A directory with Mistral's tokenizer file alone has the format of the file's version. Past reasoning is only printed by
// the versions that have it, even if the configured rule is the widest.
func TestLoadMistral(t *testing.T) {
	effort := map[string]any{"reasoning_effort": map[string]any{"type": "enum", "values": []string{"none", "high"}, "accepts_none": true, "default": "none"}}
	const body = `{"model":"m","reasoning_effort":"high","tools":[{"type":"function","function":{"name":"f","parameters":{}}}],"messages":[{"role":"user","content":"Q"},` +
		`{"role":"assistant","reasoning_content":"R","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},{"role":"tool","tool_call_id":"call_1","content":"T"}]}`
	const tools = `[AVAILABLE_TOOLS][{"type": "function", "function": {"name": "f", "description": "", "parameters": {}}}][/AVAILABLE_TOOLS]`
	for _, tt := range []struct {
		version              string
		settings             any
		special              []string
		source, family, want string
	}{
		{"v3", nil, nil, "Mistral's format v3, from tekken.json", "mistral",
			"<s>" + tools + `[INST]Q[/INST][TOOL_CALLS][{"name": "f", "arguments": {"x": 1}, "id": "ID"}]</s>[TOOL_RESULTS]{"content": "T", "call_id": "ID"}[/TOOL_RESULTS]`},
		{"v11", nil, nil, "Mistral's format v11, from tekken.json", "mistral_v11",
			"<s>" + tools + `[INST]Q[/INST][TOOL_CALLS]f[CALL_ID]ID[ARGS]{"x": 1}</s>[TOOL_RESULTS]ID[TOOL_CONTENT]T[/TOOL_RESULTS]`},
		{"v13", nil, []string{"[THINK]", "[/THINK]"}, "Mistral's format v13, from tekken.json", "ministral",
			"<s>" + tools + `[INST]Q[/INST][THINK]R[/THINK][TOOL_CALLS]f[ARGS]{"x": 1}</s>[TOOL_RESULTS]T[/TOOL_RESULTS]`},
		{"v15", effort, []string{"[THINK]", "[/THINK]"}, "Mistral's format v15, from tekken.json", "ministral",
			"<s>" + tools + `[MODEL_SETTINGS]{"reasoning_effort": "high"}[/MODEL_SETTINGS][INST]Q[/INST][THINK]R[/THINK][TOOL_CALLS]f[ARGS]{"x": 1}</s>[TOOL_RESULTS]T[/TOOL_RESULTS]`},
	} {
		m, err := prompt.Load(fstest.MapFS{"tekken.json": tekken(t, tt.version, tt.settings, tt.special...)}, &prompt.Options{Replay: replay.MustRule("widest")})
		require.NoError(t, err)
		require.Equal(t, tt.source, m.Source())
		c := m.Capabilities()
		require.True(t, c.Has("tools") && c.Has("tool_calls") && c.Has("tool_role") && c.Has("system"))
		require.Equal(t, tt.family, m.Family())
		req, err := chat.Decode([]byte(body), nil)
		require.NoError(t, err)
		p, err := m.Render(req, noon)
		require.NoError(t, err)
		require.Equal(t, tt.want, callID.ReplaceAllString(p.Text, "${1}ID"), tt.version)
		require.Equal(t, p.Text, string(m.Tokenizer().AppendDecode(nil, p.IDs(), false)))
		inst, _ := m.Tokenizer().TokenID("[INST]")
		require.Contains(t, p.IDs(), inst)
	}
}

// The name of a SentencePiece model has the version; otherwise its control tokens determine it.
func TestLoadMistralPieces(t *testing.T) {
	if testing.Short() {
		t.Skip("large vocabulary")
	}
	dir := os.Getenv("WEFT_SHARED")
	if dir == "" {
		dir = "../../../shared"
	}
	data, err := os.ReadFile(filepath.Join(dir, "tok", "_spm", "mistral-v3", "tokenizer.model"))
	if err != nil {
		t.Skip("no shared SentencePiece models: set WEFT_SHARED")
	}
	for name, want := range map[string]string{
		"tokenizer.model":    "Mistral's format v3, from the control tokens",
		"tokenizer.model.v3": "Mistral's format v3, from tokenizer.model.v3",
		"tokenizer.model.v2": "Mistral's format v2, from tokenizer.model.v2",
	} {
		m, err := prompt.Load(fstest.MapFS{name: {Data: data}}, nil)
		require.NoError(t, err)
		require.Equal(t, want, m.Source())
		require.Equal(t, "mistral", m.Family())
	}
}
