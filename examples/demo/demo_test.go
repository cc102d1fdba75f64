// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/weft-go/weft/examples/internal/cli"
	"github.com/weft-go/weft/examples/internal/cli/clitest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDemo(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), newPrinter(&out, false, false), 500))
	text := out.String()
	t.Log("\n" + text)
	require.NotContains(t, text, "\x1b", "no colors in a file")
	require.LessOrEqual(t, strings.Count(text, "\n"), 50)
	for _, line := range strings.Split(text, "\n") {
		require.LessOrEqual(t, len([]rune(line)), 150, line)
	}
	at := -1
	for _, has := range []string{ // in this order: the results come first
		"weft demo: ", "playing /v1/chat/completions", ".... done\n", "........ done\n", "RESULT 1  Without the volatile header", "% fewer", "RESULT 2  Early dispatch saves",
		"/v1/chat/completions  hermes", "→ ada", "grep and read_file", "turn 4", "the final text\n", "/v1/responses  qwen3_coder", "→ bob", "/v1/messages  qwen3_coder",
		"Terms\n", "ada, bob ", "cached ", "move", "Next\n",
	} {
		i := strings.Index(text[at+1:], has)
		require.GreaterOrEqual(t, i, 0, "no %q after byte %d", has, at)
		at += 1 + i
	}
	require.NotContains(t, text, "<tool_call>")
	require.Regexp(t, `what ends the shared prefix +billing header +nothing\n`, text)
	kept, stripped := twoNumbers(t, text, "prompt tokens computed")
	require.Greater(t, kept, 3*stripped)
	kept, stripped = twoNumbers(t, text, "prompt tokens")
	require.Greater(t, kept, stripped)
}

// TestVerbose prints what arrived in each turn.
func TestVerbose(t *testing.T) {
	if testing.Short() {
		t.Skip("the demo again")
	}
	var out bytes.Buffer
	require.NoError(t, command(t.Context(), []string{"-v", "-speed", "500"}, &out, false))
	for _, has := range []string{
		"reasoning   The test wants five attempts.", "call        run_tests", "dispatched  read_file", "turn ended", "TestRetry passes.", "of billing header", " ms = new ",
	} {
		require.Contains(t, out.String(), has)
	}
}

// TestTitle prints the first line before any work is done, and progress for each turn.
func TestTitle(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var first string
	w := writerFunc(func(b []byte) (int, error) {
		if first == "" {
			first = string(b)
		}
		if string(b) == "." {
			cancel() // at the end of the first turn
		}
		return len(b), nil
	})
	require.ErrorIs(t, run(ctx, newPrinter(w, false, false), math.Inf(1)), context.Canceled)
	require.True(t, strings.HasPrefix(first, "weft demo: "), first)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestCommandLine(t *testing.T) {
	clitest.Check(t, "demo", func(args []string, stdout *bytes.Buffer) error { return command(t.Context(), args, stdout, false) })
	for _, args := range [][]string{{"-speed", "0"}, {"-speed", "NaN"}, {"file"}} {
		_, ok := errors.AsType[*cli.UsageError](command(t.Context(), args, &bytes.Buffer{}, false))
		require.True(t, ok, args)
	}
}

// twoNumbers returns the numbers of the first row of a table with the given label.
func twoNumbers(t *testing.T, text, label string) (a, b int) {
	t.Helper()
	m := regexp.MustCompile(`(?m)^  ` + regexp.QuoteMeta(label) + ` +(\d+) +(\d+)$`).FindStringSubmatch(text)
	require.NotNil(t, m, label)
	a, err := strconv.Atoi(m[1])
	require.NoError(t, err)
	b, err = strconv.Atoi(m[2])
	require.NoError(t, err)
	return a, b
}

func TestColors(t *testing.T) {
	var out bytes.Buffer
	newPrinter(&out, true, false).story(stories[0])
	require.Contains(t, out.String(), "\x1b[1m")
}

type badWriter struct{}

func (badWriter) Write([]byte) (int, error) { return 0, errors.New("no more paper") }

func TestDemoReportsErrors(t *testing.T) {
	require.ErrorContains(t, run(t.Context(), newPrinter(badWriter{}, false, false), math.Inf(1)), "no more paper")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, run(ctx, newPrinter(&bytes.Buffer{}, false, false), math.Inf(1)), context.Canceled)
}

func TestWorld(t *testing.T) {
	w := newWorld(clockOff)
	do := func(name, args string) string {
		out, _ := w.call(t.Context(), name, args)
		return out
	}
	require.Contains(t, do("run_tests", `{}`), "FAIL")
	require.Contains(t, do("read_file", `{"path":"retry.go"}`), "  6  const MaxAttempts = 3\n")
	require.Equal(t, "error: no file \"x\"", do("read_file", `{"path":"x"}`))
	require.Equal(t, "retry.go:6: const MaxAttempts = 3\n", do("grep", `{"pattern":"MaxAttempts ="}`))
	require.Equal(t, "no match", do("grep", `{"pattern":"zebra"}`))
	require.Contains(t, do("grep", `{"pattern":"("}`), "error: ")
	require.Contains(t, do("edit_file", `{"path":"retry.go","old":"package","new":""}`), "edited")
	require.Contains(t, do("edit_file", `{"path":"retry.go","old":"time","new":""}`), "occurs 4 times")
	require.Contains(t, do("edit_file", `{"path":"retry.go","old":"MaxAttempts = 3","new":"MaxAttempts = 5"}`), "edited")
	require.Contains(t, do("run_tests", `{}`), "ok")
	require.Contains(t, do("fly", `{}`), "no tool")
	require.Contains(t, do("grep", `{`), "error: ")
}
