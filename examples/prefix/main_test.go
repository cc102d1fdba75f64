// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weft-go/weft/examples/internal/cli/clitest"
)

// Two requests of one harness with different versions, directories and messages, on one line and on several lines.
const first = `{"system":[{"type":"text","text":"x-anthropic-billing-header: v=1;"},{"type":"text","text":"You.\nPlatform: linux\nBe kind."}],` +
	`"messages":[{"role":"user","content":"hi"}],"tools":[{"name":"t","input_schema":{}}]}`

func second(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(strings.NewReplacer("v=1", "v=2", "linux", "macos", "hi", "ho").Replace(first)), "", "  "); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func runFiles(t *testing.T, in string, args []string, files ...string) ([]output, error) {
	t.Helper()
	dir := t.TempDir()
	for i, text := range files {
		name := filepath.Join(dir, string(rune('a'+i)))
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, name)
	}
	var out bytes.Buffer
	err := run(args, strings.NewReader(in), &out)
	var list []output
	for line := range strings.Lines(out.String()) {
		var a output
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		list = append(list, a)
	}
	return list, err
}

func TestPrefix(t *testing.T) {
	for _, tt := range []struct {
		args, cause, rule, path, excerpt string
		offset                           int64
	}{
		{"", "billing header", "claude-code/billing", "system[0]+30", "", 60},
		{"-strip", "environment", "env/platform", "system[1]+15", "You.\nPlatform: macos\nBe kind.", 45},
		{"-relocate", "environment", "env/platform", "system[1]+31", "", 74},
		{"-order system", "billing header", "claude-code/billing", "system[0]+30", "", 30},
	} {
		got, err := runFiles(t, "", append([]string{"-api", "messages"}, strings.Fields(tt.args)...), first, second(t))
		if err != nil || len(got) != 1 {
			t.Fatalf("%s: %v, %v", tt.args, got, err)
		}
		a := got[0]
		if a.Relation != "diverges" || a.Cause != tt.cause || a.Rule != tt.rule || a.Paths[1] != tt.path || a.Offset != tt.offset || a.Shared != a.Offset {
			t.Errorf("%s: %+v", tt.args, a)
		}
		if tt.excerpt != "" && a.Excerpts[1] != tt.excerpt || !strings.Contains(a.Text, tt.cause) {
			t.Errorf("%s: %+v", tt.args, a)
		}
	}
}

// Records of several APIs from stdin: each adjacent pair is compared.
func TestRecords(t *testing.T) {
	quoted, _ := json.Marshal(`{"instructions":"You.","input":"hi"}`)
	got, err := runFiles(t, `{"id":1,"api":"responses","body":`+string(quoted)+`}
{"id":"two","body":{"messages":[{"role":"system","content":"You."},{"role":"user","content":"hi"},{"role":"assistant","content":"yes"}]}}

{"messages":[{"role":"system","content":"You."}]}`, nil)
	if err != nil || len(got) != 2 {
		t.Fatal(got, err)
	}
	if a := got[0]; string(a.A) != "1" || string(a.B) != `"two"` || a.Relation != "extends" || a.Shared != 6 || a.Lost != 0 {
		t.Errorf("%+v", a)
	}
	if a := got[1]; string(a.B) != `"stdin"` || a.Relation != "shorter" || a.Lost != 5 {
		t.Errorf("%+v", a)
	}
}

func TestErrors(t *testing.T) {
	for _, in := range []string{
		"", first, first + "\n{", first + "\nnonsense", first + `{"id":1,"body":null}`, first + `{"id":1,"body":"{"}`, first + `{"api":"x","body":{}}`, "[]",
	} {
		got, err := runFiles(t, in, []string{"-api", "messages"})
		if err == nil || slices.ContainsFunc(got, func(a output) bool { return a.Relation != "" }) {
			t.Errorf("%s: %v, no error", in, got)
		}
	}
	// After a bad request, the next one is compared with the last good one.
	var out bytes.Buffer
	err := run([]string{"-api", "messages"}, strings.NewReader(first+`{"id":7,"body":"{"}`+first), &out)
	if err == nil || err.Error() != "1 of 3 requests have errors" {
		t.Error(err)
	}
	if lines := strings.Split(out.String(), "\n"); len(lines) != 3 || !strings.HasPrefix(lines[0], `{"id":7,"error":"`) || !strings.Contains(lines[1], `"relation":"same"`) {
		t.Errorf("%q", lines)
	}
	for _, args := range [][]string{{"-order", "x"}, {"no-such-file", "b"}, {"-x"}} {
		if _, err := runFiles(t, "", args); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}

func TestGuess(t *testing.T) {
	for body, want := range map[string]string{
		`{"messages":[{"role":"user","content":"hi"}]}`:                                                   "chat",
		`{"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"max_tokens":1}`:           "chat",
		`{"system":"s","messages":[]}`:                                                                    "messages",
		`{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c"}]}]}`:             "messages",
		`{"messages":[{"role":"assistant","content":null},{"role":"a","content":[{"type":"thinking"}]}]}`: "messages",
		`{"input":"hi"}`:                         "responses",
		`{"instructions":"i","input":[{"a":1}]}`: "responses",
		`[]`:                                     "chat",
	} {
		if got := guess([]byte(body)); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}

// TestRecording reads the API of a recorded request from its path.
func TestRecording(t *testing.T) {
	first := `{"path":"/v1/messages","body":{"messages":[{"role":"user","content":"a"}]}}`
	got, err := runFiles(t, first+"\n"+first, nil)
	if err != nil || len(got) != 1 || got[0].Relation != "same" {
		t.Error(got, err)
	}
}

func TestCommandLine(t *testing.T) {
	clitest.Check(t, "prefix", func(args []string, stdout *bytes.Buffer) error { return run(args, strings.NewReader(""), stdout) })
}
