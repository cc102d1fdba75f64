// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// text is a named set of documents. One pass encodes all of them.
type text struct {
	name  string
	docs  []string
	bytes int
}

const (
	docSize   = 16 << 10
	docs      = 8
	agentSize = 157 << 10
)

// loadTexts makes the texts, the same on every machine with the same Go: code is net/http, prose Newton's Opticks, both from
// Go's source tree, in documents of 16 KB; agent is one prompt of 157 KB.
func loadTexts(root string) ([]text, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOROOT: %w", err)
	}
	src := filepath.Join(strings.TrimSpace(string(out)), "src")
	var files []string
	for _, name := range []string{"net/http/server.go", "net/http/transport.go", "testdata/Isaac.Newton-Opticks.txt"} {
		data, err := os.ReadFile(filepath.Join(src, name))
		if err != nil {
			return nil, err
		}
		files = append(files, strings.ToValidUTF8(string(data), "?"))
	}
	system, err := os.ReadFile(filepath.Join(root, "tokenizers", "mini", "corpus", "agent.txt"))
	if err != nil {
		return nil, err
	}
	list := []text{
		{name: "code", docs: cut(files[0]+files[1], docSize, docs)},
		{name: "prose", docs: cut(files[2], docSize, docs)},
		{name: "agent", docs: []string{agent(string(system), files)}},
	}
	for i := range list {
		for _, d := range list[i].docs {
			list[i].bytes += len(d)
		}
	}
	return list, nil
}

// cut takes n documents of size bytes, in lines, from positions spread over s.
func cut(s string, size, n int) (out []string) {
	step := len(s) / n
	for i := range n {
		at := i * step
		at += strings.IndexByte(s[at:], '\n') + 1
		end := at + size
		out = append(out, s[at:at+strings.LastIndexByte(s[at:end], '\n')+1])
	}
	return out
}

// agent writes what a coding agent's prompt looks like after some turns: tools, files with line numbers, matches of a search,
// output of tests, edits as JSON. The draws are seeded.
func agent(system string, files []string) string {
	r := rand.New(rand.NewPCG(1, 52))
	code := strings.SplitAfter(files[0]+files[1], "\n")
	prose := strings.SplitAfter(files[2], ". ")
	pick := func(lines []string, n int) []string {
		at := r.IntN(len(lines) - n)
		return lines[at : at+n]
	}
	path := func() string {
		dirs := []string{"internal/server", "pkg/transport", "cmd/gateway", "lib/http2", "test/e2e"}
		return fmt.Sprintf("%s/%s_%d.go", dirs[r.IntN(len(dirs))], []string{"conn", "pool", "handler", "stream"}[r.IntN(4)], r.IntN(90))
	}
	call := func(name string, arguments map[string]any) string {
		a, err := json.Marshal(arguments)
		if err != nil {
			panic(err)
		}
		return fmt.Sprintf("<tool_call>\n{\"name\": %q, \"arguments\": %s}\n</tool_call>", name, a)
	}
	var b strings.Builder
	turn := func(role, content string) { fmt.Fprintf(&b, "<|im_start|>%s\n%s<|im_end|>\n", role, content) }
	turn("system", system)
	for b.Len() < agentSize {
		turn("user", strings.Join(pick(prose, 1+r.IntN(3)), ""))
		for range 2 + r.IntN(4) {
			think := "<think>\n" + strings.Join(pick(prose, 2), "") + "\n</think>\n\n"
			var do string
			var result strings.Builder
			switch file := path(); r.IntN(5) {
			case 0, 1:
				first := 1 + r.IntN(900)
				do = call("read_file", map[string]any{"file_path": "/work/repo/" + file, "offset": first})
				for i, line := range pick(code, 30+r.IntN(90)) {
					fmt.Fprintf(&result, "%6d\t%s", first+i, line)
				}
			case 2:
				do = call("bash", map[string]any{"command": "grep -rn 'ctx.Done()' --include=*.go . | head -40"})
				for range 12 + r.IntN(20) {
					fmt.Fprintf(&result, "./%s:%d:%s", path(), 1+r.IntN(2500), pick(code, 1)[0])
				}
			case 3:
				do = call("bash", map[string]any{"command": "go test -race ./... 2>&1 | tail -60", "timeout": 600})
				for range 15 + r.IntN(20) {
					fmt.Fprintf(&result, "--- FAIL: TestConn%04x (%.2fs)\n    %s:%d: got 0x%016x, want 0x%08x\n", r.IntN(1<<16), r.Float64()*9,
						path(), 1+r.IntN(900), r.Uint64(), r.Uint32())
				}
			case 4:
				do = call("edit_file", map[string]any{"file_path": "/work/repo/" + file,
					"old_string": strings.Join(pick(code, 6), ""), "new_string": strings.Join(pick(code, 9), "")})
				result.WriteString("The file " + file + " has been updated.")
			}
			turn("assistant", think+do)
			turn("user", "<tool_response>\n"+result.String()+"\n</tool_response>")
		}
	}
	return strings.ToValidUTF8(b.String()[:agentSize], "")
}
