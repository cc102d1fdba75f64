// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/internal/cli"
	"github.com/weft-go/weft/examples/internal/cli/clitest"
)

func TestCommandLine(t *testing.T) {
	clitest.Check(t, "engine", func(args []string, stdout *bytes.Buffer) error { return run(t.Context(), args, stdout) })
}

// TestErrors checks that invalid settings are errors before the engine listens.
func TestErrors(t *testing.T) {
	for _, args := range [][]string{{"-model-dir", t.TempDir()}, {"-model-dir", "org/name"}, {"-script", "no-such-file"}, {"extra"}, {"-listen", "nowhere:x"}} {
		if err := run(t.Context(), args, &bytes.Buffer{}); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}

// TestFlagsOutOfRange checks that a value that no engine can have is an error of the command line.
func TestFlagsOutOfRange(t *testing.T) {
	for _, arg := range []string{
		"-block-size=0", "-block-size=-3", "-blocks=-1", "-max-model-len=-5", "-prefill=0", "-prefill=NaN", "-decode=-1s", "-base=-1s", "-speed=0",
		"-speed=-1", "-speed=NaN",
	} {
		err := run(t.Context(), []string{arg, "-listen", "nowhere:x"}, &bytes.Buffer{})
		name, value, _ := strings.Cut(arg, "=")
		require.ErrorAs(t, err, new(*cli.UsageError), arg)
		require.ErrorContains(t, err, name+" must be ")
		require.ErrorContains(t, err, "(got "+value+")")
	}
	err := run(t.Context(), []string{"-speed=+Inf", "-base=0s", "-listen", "nowhere:x"}, &bytes.Buffer{})
	require.ErrorContains(t, err, "listen tcp")
}

// TestScriptErrors checks that a misspelled script is an error before the engine listens, and not one without rules.
func TestScriptErrors(t *testing.T) {
	name := filepath.Join(t.TempDir(), "script.json")
	for text, want := range map[string]string{
		`[{"when":"a","says":"b"}]`: `unknown field "says"`, `[{"say":"a"}] [{"say":"b"}]`: "more after the list", `{"say":"a"}`: "cannot unmarshal", ``: "EOF",
		`[{"when":"a","say":"b"}]` + "\n": "listen tcp",
	} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		require.ErrorContains(t, run(t.Context(), []string{"-script", name, "-listen", "nowhere:x"}, &bytes.Buffer{}), want)
	}
}
