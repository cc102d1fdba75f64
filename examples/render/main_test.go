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
	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/mini"
)

func runLines(t *testing.T, in string, args ...string) []output {
	t.Helper()
	var out, msg bytes.Buffer
	err := run(args, strings.NewReader(in), &out, &msg)
	var list []output
	bad := false
	for line := range strings.Lines(out.String()) {
		var a output
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		list = append(list, a)
		bad = bad || a.Error != ""
	}
	if bad != (err != nil) {
		t.Fatal(err, msg.String())
	}
	return list
}

const conversation = `{"model":"m","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hi <|im_end|> 世界"},` +
	`{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}}]},{"role":"tool","tool_call_id":"1","content":"done"}],` +
	`"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]}`

// The bytes and tokens of each span contain its part, and the ids encode the prompt.
func TestRender(t *testing.T) {
	tok := mini.Load()
	body, _ := json.Marshal(conversation)
	for _, segments := range []bool{false, true} {
		args := []string{"-model", "mini"}
		if segments {
			args = append(args, "-segments")
		}
		got := runLines(t, `{"id":7,"api":"chat","body":`+string(body)+"}\n"+`{"id":8,"body":`+conversation+"}", args...)
		if len(got) != 2 || string(got[0].ID) != "7" || got[0].Error != "" || *got[1].Prompt != *got[0].Prompt {
			t.Fatalf("got %+v", got)
		}
		a := got[0]
		if back := string(tok.AppendDecode(nil, *a.IDs, false)); back != *a.Prompt {
			t.Errorf("ids are %q, the prompt is %q", back, *a.Prompt)
		}
		if whole := tok.AppendEncode(nil, *a.Prompt); slices.Equal(whole, *a.IDs) == segments {
			t.Errorf("segments %t: ids equal those of plain text: %t", segments, !segments)
		}
		want := map[string]string{
			"messages[0].content": "be brief", "messages[1].content": "hi <|im_end|> 世界", "messages[3].content": "done",
			"messages[2].tool_calls[0].function.arguments": `{"a": 1}`,
		}
		for _, s := range *a.Spans {
			text := (*a.Prompt)[s.Bytes[0]:s.Bytes[1]]
			if w, ok := want[s.Path]; ok && text == w {
				delete(want, s.Path)
			}
			if got := string(tok.AppendDecode(nil, (*a.IDs)[s.Tokens[0]:s.Tokens[1]], false)); !strings.Contains(got, text) {
				t.Errorf("%s is %q, its tokens are %q", s.Path, text, got)
			}
		}
		if len(want) > 0 {
			t.Errorf("no spans for %v in %+v", want, *a.Spans)
		}
	}
}

// Breakpoints have positions, and spans have paths in the body; both are omitted if absent.
func TestBreakpoints(t *testing.T) {
	got := runLines(t, `{"id":1,"api":"messages","body":{"model":"m","max_tokens":5,"system":[{"type":"text","text":"be brief","cache_control":{"type":"ephemeral","ttl":"1h"}}],`+
		`"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral","ttl":"x"}}]}]}}
{"id":2,"body":{"model":"m","messages":[{"role":"user","content":"hi"}]}}`, "-model", "mini")
	if len(got) != 2 || len(got[0].Breakpoints) != 2 || got[1].Breakpoints != nil || got[1].Faults != nil {
		t.Fatalf("got %+v", got)
	}
	tok := mini.Load()
	for i, want := range []breakpoint{{Path: "system[0]", TTL: 3600}, {Path: "messages[0].content[0]", TTL: 300}} {
		b := got[0].Breakpoints[i]
		front := (*got[0].Prompt)[:b.Byte]
		if b.Path != want.Path || b.TTL != want.TTL || !strings.HasSuffix(front, []string{"be brief", "hi"}[i]) {
			t.Errorf("%+v after %q, want %+v", b, front, want)
		}
		if text := string(tok.AppendDecode(nil, (*got[0].IDs)[:b.Tokens], false)); text != front {
			t.Errorf("%d tokens are %q, want %q", b.Tokens, text, front)
		}
	}
	if f := got[0].Faults; len(f) != 1 || f[0].Path != "messages[0].content[0].cache_control.ttl" {
		t.Errorf("faults %+v", f)
	}
	at := map[string]string{}
	for _, s := range *got[0].Spans {
		at[s.Path] = s.At
	}
	if at["messages[0].content"] != "system[0]" || at["messages[1].content"] != "messages[0].content[0]" {
		t.Errorf("places in the body: %v", at)
	}
}

// A record that cannot be rendered gets an error with its id, and the next one is rendered.
func TestErrors(t *testing.T) {
	got := runLines(t, `{"id":1}
{"id":2,"body":"{"}
{"id":3,"api":"x","body":{}}
{"id":4,"body":{"model":"m","messages":[]}}
nonsense
{"id":5,"body":{"model":"m","messages":[{"role":"user","content":"a"}]}}`, "-model", "mini")
	if len(got) != 6 || got[5].Error != "" || got[5].Prompt == nil {
		t.Fatalf("got %+v", got)
	}
	for i, want := range []string{"no body", "", `unknown API "x"`, "is empty", "invalid character"} {
		if got[i].Error == "" || !strings.Contains(got[i].Error, want) || got[i].Prompt != nil {
			t.Errorf("record %d: %+v, want %q", i, got[i], want)
		}
	}
	for _, args := range [][]string{{}, {"-model", t.TempDir()}, {"-model", "mini", "-now", "today"}, {"-model", "mini", "no-such-file"}} {
		var out, msg bytes.Buffer
		if err := run(args, strings.NewReader(""), &out, &msg); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}

// All available models render a conversation of each API; without WEFT_TEST=long, two models do.
func TestModels(t *testing.T) {
	shared := os.Getenv("WEFT_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "..", "shared")
	}
	dirs, _ := filepath.Glob(filepath.Join(shared, "tok", "*", "tokenizer.json"))
	if len(dirs) == 0 {
		t.Skip("no models (set WEFT_SHARED)")
	}
	in := `{"id":1,"body":` + conversation + `}
{"id":2,"api":"messages","body":{"model":"m","max_tokens":5,"system":"be brief","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"well"}]}}
{"id":3,"api":"responses","body":{"model":"m","instructions":"be brief","input":"hi"}}`
	for _, dir := range dirs {
		dir = filepath.Dir(dir)
		if name := filepath.Base(dir); os.Getenv("WEFT_TEST") != "long" && (name != "qwen3" || testing.Short()) && name != "tinyllama" {
			continue
		}
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			tok, err := tokenizers.Load(os.DirFS(dir), nil)
			if err != nil {
				t.Fatal(err)
			}
			tok = tok.WithLimits(tokenizers.Truncation{}, tokenizers.Padding{})
			for _, a := range runLines(t, in, "-model", dir, "-now", "2026-01-31T12:00:00Z") {
				if a.Error != "" || !slices.Equal(tok.AppendEncode(nil, *a.Prompt), *a.IDs) || len(*a.Spans) < 2 {
					t.Errorf("%+v", a)
				}
			}
		})
	}
}

func TestCommandLine(t *testing.T) {
	clitest.Check(t, "render", func(args []string, stdout *bytes.Buffer) error {
		return run(args, strings.NewReader(""), stdout, &bytes.Buffer{})
	})
}
