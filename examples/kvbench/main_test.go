// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/internal/cli/clitest"
	"github.com/weft-go/weft/examples/kvbench/kvw"
)

// write writes a file whose checksum can be verified by hand.
func write(t *testing.T, f func(w *kvw.Writer)) string {
	t.Helper()
	w := kvw.Writer{Header: kvw.Header{Name: "small", BlockSize: 16, Workers: 2}}
	f(&w)
	name := filepath.Join(t.TempDir(), "small.kvw")
	require.NoError(t, os.WriteFile(name, w.Bytes(), 0o600))
	return name
}

func TestSmall(t *testing.T) {
	name := write(t, func(w *kvw.Writer) {
		w.Query(0, 1, 2)       // no worker
		w.Store(0, -1, 0, 1)   //
		w.Store(0, 1, 2)       //
		w.Store(1, -1, 0)      //
		w.Query(0, 1, 2, 3)    // 3 + 1
		w.Remove(0, 1)         //
		w.Query(0, 1, 2)       // 1 + 1
		w.Store(0, 0, 1)       //
		w.Query(0, 1, 2)       // 3 + 1
		w.Query(0, 1, 4, 5, 6) // 2 + 1
		w.Query()              //
	})
	var out bytes.Buffer
	require.NoError(t, run([]string{"-rounds", "2", name, name}, &out))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 2)
	var f map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[1]), &f))
	for k, want := range map[string]any{
		"workload": "small", "checksum": 13.0, "queries": 6.0, "residencies": 4.0, "allocs_per_query": 0.0, "rounds": 2.0,
		"blocks_per_query": 3.0, "hit_rate": 0.5,
	} {
		require.Equal(t, want, f[k], k)
	}
	for _, k := range []string{"us_per_query", "ns_per_event_block", "bytes_per_residency", "allocs_per_event", "block_ops_per_s"} {
		require.Contains(t, f, k)
	}
	require.Greater(t, f["ns_per_event_block"].(float64), 0.0)
	require.Greater(t, f["bytes_per_residency"].(float64), 0.0)
}

// A file without queries or without events is valid and has no figures for them.
func TestNothing(t *testing.T) {
	for _, name := range []string{
		write(t, func(*kvw.Writer) {}),
		write(t, func(w *kvw.Writer) { w.Query(0, 1) }),
		write(t, func(w *kvw.Writer) { w.Store(0, -1, 0, 1) }),
	} {
		var out bytes.Buffer
		require.NoError(t, run([]string{"-rounds", "1", name}, &out))
		require.Contains(t, out.String(), `"checksum":0,`)
	}
}

func TestErrors(t *testing.T) {
	bad := write(t, func(w *kvw.Writer) { w.Header.Workers = 0 })
	gone := write(t, func(w *kvw.Writer) { w.Store(0, -1, 0, 1); w.Store(1, 1, 2) }) // worker 1 has no block 1
	for _, args := range [][]string{{}, {"-rounds", "0", bad}, {bad}, {gone}, {"no-such-file"}, {"-nope"}} {
		var out bytes.Buffer
		require.Error(t, run(args, &out), "%v", args)
		require.Empty(t, out.String())
	}
}

// The checksum of a shared workload equals that of four other implementations.
func TestShared(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	dir := os.Getenv("WEFT_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	name := filepath.Join(dir, "kv", "workloads", "conv_n16_bs64.kvw")
	if _, err := os.Stat(name); err != nil {
		t.Skip("no workloads: set WEFT_SHARED")
	}
	var out bytes.Buffer
	require.NoError(t, run([]string{"-rounds", "1", name}, &out))
	require.Contains(t, out.String(), `"workload":"conv_n16_bs64","checksum":2301659,"queries":12031,`)
}

func TestCommandLine(t *testing.T) {
	clitest.Check(t, "kvbench", func(args []string, stdout *bytes.Buffer) error { return run(args, stdout) })
}
