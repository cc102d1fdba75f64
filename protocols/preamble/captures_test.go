// SPDX-License-Identifier: Apache-2.0

package preamble

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/messages"
	"github.com/weft-go/weft/protocols/responses"
)

// capture returns the body of a recorded request after replacements: old, new, old, new.
func capture(t testing.TB, name string, replace ...string) *block.Request {
	t.Helper()
	dir := os.Getenv("WEFT_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	raw, err := os.ReadFile(filepath.Join(dir, "captures", name+".json"))
	if err != nil {
		t.Skip("no captures: set WEFT_SHARED to the folder of shared test data")
	}
	var c struct {
		Path string
		Body json.RawMessage
	}
	require.NoError(t, json.Unmarshal(raw, &c))
	var body bytes.Buffer
	require.NoError(t, json.Compact(&body, c.Body))
	text := body.String()
	for i := 0; i < len(replace); i += 2 {
		require.Contains(t, text, replace[i], name)
		text = strings.ReplaceAll(text, replace[i], replace[i+1])
	}
	decode := map[string]func([]byte, *block.Limits) (*block.Request, error){
		"/v1/messages": messages.Decode, "/v1/responses": responses.Decode, "/v1/chat/completions": chat.Decode,
	}[c.Path]
	r, err := decode([]byte(text), nil)
	require.NoError(t, err)
	return r
}

// treatments are the options that a server may apply to both requests.
var treatments = []struct {
	name string
	do   func(*block.Request, Prompt) (Report, error)
}{
	{"as sent", func(*block.Request, Prompt) (Report, error) { return Report{}, nil }},
	{"stripped", func(r *block.Request, p Prompt) (Report, error) {
		return Stabilize(r, &Options{Prompt: p})
	}},
	{"relocated", func(r *block.Request, p Prompt) (Report, error) {
		return Stabilize(r, &Options{Canonical: true, Relocate: true, DeferredLast: true, Prompt: p})
	}},
}

// harnesses lists the recorded harnesses, with the replacements for another user, directory and day.
var harnesses = []struct {
	name, file     string
	user, dir, day []string
}{
	{"Claude Code", "claude-code/A1-001", first("user1", "user2"), first("projA", "projB"), first("2026-11-21", "2026-11-22")},
	{"Codex", "codex/A1-001", []string{"user1", "user2"}, []string{"projA", "projB"}, []string{"2026-11-21", "2026-11-22"}},
	{"OpenCode", "opencode/A1-002", []string{"user1", "user2"}, []string{"projA", "projB"}, []string{"Sat Nov 21 2026", "Sun Nov 22 2026"}},
	{"OpenClaw", "openclaw/A1-001", nil, []string{"projA", "projB"}, []string{"2026-11-21", "2026-11-22"}},
	{"pi", "pi/A1-001", nil, []string{"projA", "projB"}, []string{"2026-11-21", "2026-11-22"}},
}

// first adds the replacement for another first message in the header of Claude Code.
func first(replace ...string) []string { return append(replace, "2.1.330.1ad", "2.1.330.080") }

// TestFigures checks the stable prefix of every recorded harness against the table in the package comment.
func TestFigures(t *testing.T) {
	var table []string
	for _, h := range harnesses {
		for _, v := range []struct {
			what    string
			replace []string
		}{{"user", h.user}, {"directory", h.dir}, {"day", h.day}} {
			if v.replace == nil {
				continue
			}
			row := fmt.Appendf(nil, "%-11s %-9s", h.name, v.what)
			for _, p := range []Prompt{{}, {SystemFirst: true}} {
				for _, tr := range treatments {
					a, b := capture(t, h.file), capture(t, h.file, v.replace...)
					rep, err := tr.do(a, p)
					require.NoError(t, err)
					_, err = tr.do(b, p)
					require.NoError(t, err)
					br := Compare(a, b, &CompareOptions{Prompt: p})
					require.Equal(t, Diverges, br.Relation)
					require.LessOrEqual(t, rep.Stable.Offset, br.Offset, "%s, other %s: %v", h.name, v.what, br)
					back := Compare(b, a, &CompareOptions{Prompt: p})
					require.Equal(t, br.Offset, back.Offset)
					require.Equal(t, br.Cause, back.Cause)
					row = fmt.Appendf(row, " %6d", br.Offset)
				}
			}
			table = append(table, string(row))
		}
	}
	src, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	var want []string
	for line := range strings.Lines(string(src)) {
		if line = strings.TrimSpace(strings.TrimPrefix(line, "//")); isFigure(line) {
			want = append(want, line)
		}
	}
	if diff := cmp.Diff(want, table); diff != "" {
		t.Errorf("the figures in doc.go are not those seen:\n%s", diff)
	}
	readme, err := os.ReadFile(filepath.Join("..", "README.md"))
	require.NoError(t, err)
	for _, line := range table {
		f := strings.Fields(line)
		f = f[len(f)-7:]
		row := fmt.Sprintf("| %s | %s / %s / %s | %s / %s / %s |", f[0], f[1], f[2], f[3], f[4], f[5], f[6])
		require.Contains(t, string(readme), row, "the figures of the README are others")
	}
}

func isFigure(line string) bool {
	for _, h := range harnesses {
		if strings.HasPrefix(line, h.name+" ") && len(strings.Fields(line)) >= 8 && strings.Trim(line[len(line)-3:], "0123456789") == "" {
			return true
		}
	}
	return false
}

// TestBreaks tests that divergences in recorded requests are found at their known offsets, in bytes.
func TestBreaks(t *testing.T) {
	other := func(h int, replace []string) func(*testing.T) (a, b *block.Request) {
		return func(t *testing.T) (a, b *block.Request) {
			return capture(t, harnesses[h].file), capture(t, harnesses[h].file, replace...)
		}
	}
	sessions := func(t *testing.T) (a, b *block.Request) {
		return capture(t, "claude-code/A1-001"), capture(t, "claude-code/B-001")
	}
	tests := []struct {
		name  string
		pair  func(*testing.T) (a, b *block.Request)
		treat int
		path  string
		at    int
		cause string
		class string
	}{
		{"Claude Code A and B", sessions, 0, "system[0]", 47, causeBillingHeader, classVolatile},
		{"Claude Code A and B", sessions, 1, "system[2]", 3623 + 4, causeMemoryPath, classSession},
		{"Claude Code A and B", sessions, 2, "system[2]", 103, causeMemoryPath, classSession},
		{"Claude Code users", other(0, harnesses[0].user), 0, "system[0]", 47, causeBillingHeader, classVolatile},
		{"Claude Code users", other(0, harnesses[0].user), 1, "system[2]", 3573 + 4, causeMemoryPath, classSession},
		{"Claude Code days", other(0, harnesses[0].day), 1, "messages[1].content[0]", 9137, causeDate, classSession},
		{"Codex users", other(1, harnesses[1].user), 0, "input[1].content[0]", 334, causeSkillRoot, classSession},
		{"Codex users", other(1, harnesses[1].user), 2, "input[1].content[2]", 45, causeSkillRoot, classSession},
		{"Codex folders", other(1, harnesses[1].dir), 0, "input[2].content[0]", 43, causeProjectFile, classSession},
		{"Codex days", other(1, harnesses[1].day), 0, "input[2].content[1]", 98, causeDate, classSession},
		{"OpenCode users", other(2, harnesses[2].user), 0, "tools[0]", 473, causeTempDir, classSession},
		{"OpenCode folders", other(2, harnesses[2].dir), 0, "messages[0].content", 8723 + 4, causeWorkingDir, classSession},
		{"OpenCode folders", other(2, harnesses[2].dir), 2, "messages[0].content", 8733, causeProjectFile, classSession},
		{"OpenCode days", other(2, harnesses[2].day), 0, "messages[0].content", 8836, causeDate, classSession},
		{"OpenClaw folders", other(3, harnesses[3].dir), 0, "messages[0].content", 21712 + 4, causeWorkingDir, classSession},
		{"OpenClaw folders", other(3, harnesses[3].dir), 2, "messages[0].content", 22833, causeProjectFile, classSession},
		{"pi folders", other(4, harnesses[4].dir), 0, "messages[0].content", 2330, causeProjectFile, classSession},
		{"pi days", other(4, harnesses[4].day), 0, "messages[0].content", 2401, causeDate, classSession},
	}
	for _, tt := range tests {
		t.Run(tt.name+", "+treatments[tt.treat].name, func(t *testing.T) {
			a, b := tt.pair(t)
			for _, r := range []*block.Request{a, b} {
				if tt.treat == 1 { // positions refer to the body as sent
					_, err := Stabilize(r, nil)
					require.NoError(t, err)
					continue
				}
				_, err := treatments[tt.treat].do(r, Prompt{})
				require.NoError(t, err)
			}
			br := Compare(a, b, nil)
			t.Log(br)
			type seen struct {
				Path  string
				At    int
				Cause string
				Class string
			}
			if diff := cmp.Diff(seen{tt.path, tt.at, tt.cause, tt.class}, seen{br.B.Path, br.B.At, br.Cause, br.Class}); diff != "" {
				t.Error(diff)
			}
			var history History
			history.Next(a, nil)
			tb := history.Next(b, nil)
			require.Equal(t, Diverges, tb.Relation)
			require.LessOrEqual(t, tb.Offset, br.Offset)
			require.Greater(t, tb.Offset+tb.within, br.Offset)
			require.Equal(t, br.Class, tb.Class)
			require.Equal(t, br.Cause, tb.Cause)
			require.Equal(t, br.Rule, tb.Rule)
			require.Equal(t, br.B.Path, tb.B.Path)
		})
	}
}

// TestExtends tests that a later request of a session extends the previous one with all options, and in canonical form
// also in the bytes of its body.
func TestExtends(t *testing.T) {
	for _, h := range []string{"claude-code", "codex"} {
		for _, tr := range treatments {
			t.Run(h+", "+tr.name, func(t *testing.T) {
				a, b := capture(t, h+"/A1-001"), capture(t, h+"/A1-003")
				for _, r := range []*block.Request{a, b} {
					_, err := tr.do(r, Prompt{})
					require.NoError(t, err)
				}
				br := Compare(a, b, nil)
				require.Equal(t, Extends, br.Relation, br.String())
				require.Equal(t, br.A.Bytes, br.Offset)
				var history History
				require.Equal(t, Extends, history.Next(a, nil).Relation)
				tb := history.Next(b, nil)
				require.Equal(t, Extends, tb.Relation, tb.String())
				require.Equal(t, br.Offset, tb.Offset)
				require.Equal(t, Same, history.Next(b, nil).Relation)
				require.Equal(t, Shorter, history.Next(a, nil).Relation)
				if tr.name == "relocated" {
					require.Zero(t, br.cosmetic)
					extendsRaw(t, a, b)
				} else if h == "claude-code" {
					require.Equal(t, "cache breakpoints, content form", br.cosmetic)
				}
				again, err := treatments[2].do(b, Prompt{})
				require.NoError(t, err)
				if tr.name == "relocated" {
					require.Empty(t, again.Changes, "not idempotent")
				}
			})
		}
	}
}

// extendsRaw tests that b has the same bytes of tools and system text as a, and that its messages extend the messages
// of a.
func extendsRaw(t *testing.T, a, b *block.Request) {
	t.Helper()
	for _, member := range []string{"tools", "system", "instructions"} {
		require.True(t, bytes.Equal(a.Field(member), b.Field(member)), member)
	}
	for _, member := range []string{"messages", "input"} {
		if was := a.Field(member); was != nil {
			require.True(t, bytes.HasPrefix(b.Field(member), was[:len(was)-1]), member)
		}
	}
}

// TestCanonicalPrompt tests that the canonical form renders to the same prompt as the request as sent.
func TestCanonicalPrompt(t *testing.T) {
	for _, f := range []string{
		"claude-code/A1-001", "claude-code/A1-003", "claude-code/B-001", "codex/A1-001", "codex/A1-003", "opencode/A1-002",
		"openclaw/A1-001", "pi/A1-001",
	} {
		t.Run(f, func(t *testing.T) {
			a, b := capture(t, f), capture(t, f)
			_, err := Stabilize(a, nil)
			require.NoError(t, err)
			_, err = Stabilize(b, &Options{Canonical: true, DeferredLast: true})
			require.NoError(t, err)
			require.Equal(t, Same, Compare(a, b, nil).Relation)
			for _, render := range []func([]byte, *block.Request) []byte{
				func(dst []byte, r *block.Request) []byte { dst, _ = chat.AppendMessages(dst, r, nil); return dst },
				func(dst []byte, r *block.Request) []byte { dst, _ = chat.AppendTools(dst, r); return dst },
			} {
				if diff := cmp.Diff(string(render(nil, a)), string(render(nil, b))); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}
