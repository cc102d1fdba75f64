// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/internal/cli"
	"github.com/weft-go/weft/examples/internal/cli/clitest"
)

func convert(t *testing.T, args []string, records ...string) (out []map[string]any) {
	t.Helper()
	var buf bytes.Buffer
	err := run(args, strings.NewReader(strings.Join(records, "\n")), &buf)
	lines := bufio.NewScanner(&buf)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		var m map[string]any
		require.NoError(t, json.Unmarshal(lines.Bytes(), &m))
		out = append(out, m)
	}
	bad := slices.ContainsFunc(out, func(m map[string]any) bool { return m["error"] != nil })
	require.Equal(t, bad, err != nil, "%v", err)
	require.Len(t, out, len(records))
	return out
}

func TestConvert(t *testing.T) {
	body := `{ "model":"m","max_tokens":9, "messages":[{"role":"user","content":[{"type":"text","text":"h\u0069 <&>"}]}],"x":1.0 }`
	quoted, err := json.Marshal(body)
	require.NoError(t, err)
	rec := `{"id":7,"body":` + string(quoted) + `}`

	got := convert(t, []string{"-from", "messages", "-to", "messages"}, rec)[0]
	require.Equal(t, map[string]any{"id": 7.0, "body": body, "losses": []any{}}, got)

	got = convert(t, []string{"-from", "messages", "-to", "chat"}, rec)[0]
	require.Equal(t, `{"model":"m","max_completion_tokens":9,"messages":[{"role":"user","content":"hi <&>"}]}`, got["body"])
	require.Equal(t, []any{map[string]any{"path": "x", "why": "no counterpart in the other API"}}, got["losses"])

	got = convert(t, []string{"-from", "messages", "-to", "messages", "-reencode"}, rec)[0]
	require.Equal(t, `{"model":"m","max_tokens":9,"x":1.0,"messages":[{"role":"user","content":[{"type":"text","text":"hi <&>"}]}]}`, got["body"])

	got = convert(t, []string{"-from", "messages", "-to", "chat", "-strict"}, rec)[0]
	require.Equal(t, "loss", got["error"].(map[string]any)["kind"])

	got = convert(t, []string{"-to", "completions"}, `{"id":"a","from":"chat","body":{"model":"m","messages":[{"role":"user","content":"hi"}]}}`)[0]
	require.Equal(t, `{"model":"m","max_tokens":8192,"prompt":"hi"}`, got["body"], "without max_tokens, engines write 16 tokens")
	require.Len(t, got["losses"], 1)

	got = convert(t, []string{"-from", "messages", "-to", "chat", "-engine", "ollama"}, rec)[0]
	require.Contains(t, got["body"], `"max_tokens":9`, "Ollama ignores max_completion_tokens")
	require.ErrorContains(t, run([]string{"-from", "messages", "-to", "chat", "-engine", "ollam"}, strings.NewReader(rec), io.Discard), "ollama")
}

func TestErrors(t *testing.T) {
	got := convert(t, []string{"-from", "chat", "-to", "messages"},
		`{"id":1,"body":"{\"messages\":[{\"role\":\"user\",\"role\":\"user\"}]}"}`, `{"id":2}`, `not json`, `{"id":3,"body_b64":"eyJtIjoi/yJ9"}`,
		`{"id":4,"from":"cobol","body":"{}"}`, `{"id":5,"body":"{\"messages\":3}"}`)
	fault := func(i int) map[string]any { return got[i]["error"].(map[string]any) }
	require.Equal(t, "malformed JSON", fault(0)["kind"])
	require.Equal(t, "messages[0].role", fault(0)["path"])
	require.Equal(t, 28.0, fault(0)["offset"])
	require.Equal(t, "record", fault(1)["kind"])
	require.Equal(t, "record", fault(2)["kind"])
	require.Equal(t, "malformed JSON", fault(3)["kind"])
	require.Equal(t, "usage", fault(4)["kind"])
	require.Equal(t, "messages", fault(5)["path"])
	require.Error(t, run([]string{"-from", "cobol"}, strings.NewReader(""), &bytes.Buffer{}))
	require.Error(t, run([]string{"no such file"}, strings.NewReader(""), &bytes.Buffer{}))
}

// TestCaptures converts recorded requests of real harnesses: to the same API with the same bytes, and to the others and
// back.
func TestCaptures(t *testing.T) {
	dir := os.Getenv("WEFT_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	files, err := filepath.Glob(filepath.Join(dir, "captures", "*", "*.json"))
	require.NoError(t, err)
	if len(files) == 0 {
		t.Skip("no captures: set WEFT_SHARED to the folder of shared test data")
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		require.NoError(t, err)
		var c struct {
			Path string
			Body json.RawMessage
		}
		require.NoError(t, json.Unmarshal(raw, &c))
		var body bytes.Buffer
		require.NoError(t, json.Compact(&body, c.Body))
		from := strings.NewReplacer("/v1/", "", "/completions", "", "?beta=true", "").Replace(c.Path)
		quoted, err := json.Marshal(body.String())
		require.NoError(t, err)
		rec := `{"id":"x","body":` + string(quoted) + `}`
		require.Equal(t, body.String(), convert(t, []string{"-from", from, "-to", from}, rec)[0]["body"])
		for _, to := range []string{"chat", "responses", "messages", "completions"} {
			got := convert(t, []string{"-from", from, "-to", to}, rec)[0]
			require.Nil(t, got["error"])
			quoted, err := json.Marshal(got["body"])
			require.NoError(t, err)
			back := convert(t, []string{"-from", to, "-to", from}, `{"body":`+string(quoted)+`}`)[0]
			require.Nil(t, back["error"])
		}
	}
}

// TestBadRecords checks that unreadable records keep their ids and that errors give the position without internal
// terms.
func TestBadRecords(t *testing.T) {
	for _, tt := range []struct {
		record string
		id     any
		has    string
	}{
		{`{"id":1,"body_b64":"!"}`, 1.0, "body_b64"},
		{`{"id":2,"body_b64":7}`, 2.0, "body_b64 is not a string"},
		{`{"id":"c","from":7,"body":"{}"}`, "c", "from is not a string"},
		{`{"id":4,"to":{},"body":"{}"}`, 4.0, "to is not a string"},
		{`{"id":5}`, 5.0, "no body"},
		{`[1]`, nil, "not a JSON object"},
		{`null`, nil, "not a JSON object"},
		{`"x"`, nil, "not a JSON object"},
		{`{"id":6,`, nil, "not JSON"},
		{`not json`, nil, "at byte 1"},
		{"{\"id\":7,\"body\":\"{\xff}\"}", 7.0, "use body_b64"},
		{"{\"id\":7,\"body\":\"{\xff}\"}", 7.0, "not valid UTF-8"},
		{`{"id":8,"body":"{\ud83d}"}`, 8.0, "or use body_b64"},
		{`{"id":8,"body":"{\ud83d\ud83d\ude00}"}`, 8.0, "surrogate"},
		{`{"id":8,"body":"{\ude00}"}`, 8.0, "surrogate"},
		{`{"id":8,"body":"{}\ud83d"}`, 8.0, "surrogate"},
		{`{"id":8,"body":"{}\ud83d\n\ude00"}`, 8.0, "surrogate"},
	} {
		t.Run(tt.record, func(t *testing.T) {
			got := convert(t, []string{"-from", "chat", "-to", "chat"}, `{"id":0,"body":{"messages":[]}}`, tt.record)[1]
			require.Equal(t, tt.id, got["id"])
			e := got["error"].(map[string]any)
			require.Equal(t, "record", e["kind"])
			require.Equal(t, 2.0, e["line"])
			require.NotContains(t, e, "file")
			require.Contains(t, e["message"], tt.has)
			require.NotContains(t, e["message"], "Go ")
			require.NotContains(t, e["message"], "main.")
		})
	}
	// Valid text is accepted: surrogate pairs, an escaped backslash before a u, and escapes of the body.
	for _, quoted := range []string{`\ud83d\ude00`, `😀`, `\\ud83d`, `\\\\ud83d`, `\ufffd`, "\ufffd"} {
		var want string
		rec := `{"body":"{\"messages\":[{\"role\":\"user\",\"content\":\"` + quoted + `\"}]}"}`
		require.NoError(t, json.Unmarshal([]byte(`"{\"messages\":[{\"role\":\"user\",\"content\":\"`+quoted+`\"}]}"`), &want))
		require.Equal(t, want, convert(t, []string{"-from", "chat", "-to", "chat"}, rec)[0]["body"], quoted)
	}
}

// TestFiles reads several files, one of which does not end its last line.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	require.NoError(t, os.WriteFile(one, []byte("{\"id\":1,\"body\":{\"messages\":[]}}\r\n\r\n{\"id\":2,\"body\":{\"messages\":[]}}"), 0o600))
	require.NoError(t, os.WriteFile(two, []byte("\n{\"id\":3}\n"), 0o600))
	var out bytes.Buffer
	require.EqualError(t, run([]string{"-from", "chat", "-to", "chat", one, two}, strings.NewReader(""), &out), "1 of 3 records have errors, the first is line 2 of "+two)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 3)
	require.JSONEq(t, `{"id":2,"body":"{\"messages\":[]}","losses":[]}`, lines[1])
	quoted, err := json.Marshal(two)
	require.NoError(t, err)
	require.JSONEq(t, `{"id":3,"error":{"kind":"record","message":"record has no body","line":2,"file":`+string(quoted)+`}}`, lines[2])
}

// TestMissingAPI checks that there is one error for all records if neither the flags nor the first record specify the
// API.
func TestMissingAPI(t *testing.T) {
	var out bytes.Buffer
	err := run([]string{"-from", "chat"}, strings.NewReader(`{"id":1,"body":{}}`+"\n"+`{"id":2,"body":{}}`), &out)
	require.EqualError(t, err, `no API to convert to: use -to, or "to" in each record`)
	_, usage := errors.AsType[*cli.UsageError](err)
	require.True(t, usage)
	require.Empty(t, out.String())

	got := convert(t, []string{"-from", "chat"}, `{"id":1,"to":"chat","body":{"messages":[]}}`, `{"id":2,"body":{}}`)
	require.Nil(t, got[0]["error"])
	require.Equal(t, map[string]any{"kind": "usage", "message": `no API: set "to" in the record or -to`}, got[1]["error"])
}

func TestCommandLine(t *testing.T) {
	clitest.Check(t, "convert", func(args []string, stdout *bytes.Buffer) error { return run(args, strings.NewReader(""), stdout) })
}
