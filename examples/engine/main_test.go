// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"testing"

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
