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

	"github.com/weft-go/weft/examples/kvbench/kvw"
)

// file writes a workload of a few prompts that share their beginning.
func file(t *testing.T) string {
	t.Helper()
	w := kvw.Writer{Header: kvw.Header{Name: "small", BlockSize: 16, Workers: 3}}
	preamble := []uint32{0, 1, 2, 3}
	for i := range 3 {
		w.Store(i, -1, preamble...)
	}
	for i := range uint32(100) {
		own := []uint32{4 + 3*i, 5 + 3*i, 6 + 3*i}
		w.Query(append(preamble[:4:4], own...)...)
		w.Store(int(i%3), 3, own...)
		w.Query(append(preamble[:4:4], own...)...)
		if i%4 == 0 {
			w.Remove(int(i%3), own[2], own[1])
		}
	}
	name := filepath.Join(t.TempDir(), "small.kvw")
	require.NoError(t, os.WriteFile(name, w.Bytes(), 0o600))
	return name
}

func TestReport(t *testing.T) {
	name := file(t)
	o := options{work: name, concurrent: "none", peers: "weft,naive,tree", rounds: 1, sizes: true, most: 10_000, pauses: 20_000}
	var out bytes.Buffer
	ok, err := measure(o, &out)
	require.NoError(t, err)
	require.True(t, ok)
	for _, want := range []string{"small           lean ", "\n                weft ", " naive ", "checksum 2700", "\n       100", "computed from", "100 % of the blocks in the largest shard", "snapshot "} {
		require.Contains(t, out.String(), want)
	}

	out.Reset()
	o.json = true
	ok, err = measure(o, &out)
	require.NoError(t, err)
	require.True(t, ok)
	kinds := map[string]int{}
	for line := range strings.Lines(out.String()) {
		var v map[string]map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &v), line)
		for k := range v {
			kinds[k]++
		}
	}
	require.Equal(t, map[string]int{"run": 1, "workload": 1, "size": 2, "size_computed": 2, "pause": 6}, kinds)
}

func TestErrors(t *testing.T) {
	for _, o := range []options{
		{work: "none", concurrent: "none", peers: "weft,nobody", rounds: 1},
		{work: "no-such-file.kvw", concurrent: "none", peers: "weft", rounds: 1},
		{work: "none", concurrent: "no-such-file.kvw", peers: "weft", rounds: 1},
	} {
		_, err := measure(o, new(bytes.Buffer))
		require.Error(t, err)
	}
}

func TestFiles(t *testing.T) {
	t.Setenv("WEFT_SHARED", "")
	o := options{root: t.TempDir()}
	require.Empty(t, o.files("none"))
	require.Len(t, o.files("all"), 8)
	require.Equal(t, []string{filepath.Join(o.root, "..", "shared", "kv", "workloads", "a.kvw"), "x/b.kvw"}, o.files("a,x/b.kvw"))
}
