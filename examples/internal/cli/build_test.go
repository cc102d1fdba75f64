// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestExitStatus builds a program and runs it.
func TestExitStatus(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	parse := filepath.Join(t.TempDir(), "parse")
	if runtime.GOOS == "windows" {
		parse += ".exe"
	}
	build := exec.Command("go", "build", "-o", parse, "../../parse")
	build.Env = append(os.Environ(), "GOFLAGS=-trimpath")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	good, bad := `{"id":1,"family":"hermes","text":"yes"}`+"\n", `{"id":2,"family":"nope","text":"no"}`+"\n"
	for _, tt := range []struct {
		args, stdin    string
		status         int
		stdout, stderr string // prefixes
	}{
		{"", good, 0, `{"id":1,"content":"yes"`, ""},
		{"", bad + good, 1, `{"id":2,"error":"parsers: unknown family \"nope\"; parse -families lists the families"}` + "\n" + `{"id":1,`, "parse: 1 of 2 records have errors, the first is line 1\n"},
		{"-h", "", 0, "usage: parse ", ""},
		{"-version", "", 0, "parse ", ""},
		{"-families", "", 0, "", ""},
		{"-familes", "", 2, "", "parse: unknown flag -familes; did you mean -families"},
		{"-family qwen3_codr", good, 2, "", `parse: -family: parsers: unknown family "qwen3_codr"; did you mean qwen3_coder`},
		{"no-such-file", "", 1, "", "parse: open no-such-file: "},
	} {
		cmd := exec.Command(parse, strings.Fields(tt.args)...)
		cmd.Stdin = strings.NewReader(tt.stdin)
		var stdout, stderr strings.Builder
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		status := 0
		if err := cmd.Run(); err != nil {
			exit, ok := errors.AsType[*exec.ExitError](err)
			if !ok {
				t.Fatal(err)
			}
			status = exit.ExitCode()
		}
		if status != tt.status || !strings.HasPrefix(stdout.String(), tt.stdout) || !strings.HasPrefix(stderr.String(), tt.stderr) {
			t.Errorf("parse %s: status %d, stdout %q, stderr %q", tt.args, status, &stdout, &stderr)
		}
		if n := strings.Count(stderr.String(), "\n"); (n > 0) != (tt.stderr != "") || n > 1 {
			t.Errorf("parse %s: %d lines on stderr: %q", tt.args, n, &stderr)
		}
	}
}
