// SPDX-License-Identifier: Apache-2.0

// Package clitest checks the rules of package cli that every program follows.
package clitest

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/weft-go/weft/examples/internal/cli"
)

// Check checks -h, -version and the error for an unknown flag of the program called name. run runs the program with the
// given arguments and stdout.
func Check(t *testing.T, name string, run func(args []string, stdout *bytes.Buffer) error) {
	t.Helper()
	var out bytes.Buffer
	for _, flag := range []string{"-h", "--help"} {
		out.Reset()
		if err := run([]string{flag}, &out); !errors.Is(err, cli.ErrDone) {
			t.Errorf("%s: error %v, want ErrDone", flag, err)
		}
		for _, part := range []string{"usage: " + name, "stdin", "Example:\n  ", "\nFlags:\n", "  -version\n"} {
			if !strings.Contains(out.String(), part) {
				t.Errorf("%s does not print %q:\n%s", flag, part, &out)
			}
		}
		for i, line := range strings.Split(out.String(), "\n") {
			if len([]rune(line)) > 170 {
				t.Errorf("%s prints a line of %d characters (%d)", flag, len([]rune(line)), i+1)
			}
		}
	}
	out.Reset()
	if err := run([]string{"-version"}, &out); !errors.Is(err, cli.ErrDone) || !strings.HasPrefix(out.String(), name+" ") || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("-version: error %v, output %q", err, &out)
	}
	out.Reset()
	err := run([]string{"-versoin"}, &out)
	if _, ok := errors.AsType[*cli.UsageError](err); !ok || err.Error() != "unknown flag -versoin; did you mean -version?" || out.Len() > 0 {
		t.Errorf("unknown flag: error %v, output %q", err, &out)
	}
}
