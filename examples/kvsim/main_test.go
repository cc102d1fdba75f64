// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/internal/cli/clitest"
)

func lines(t *testing.T, args ...string) []map[string]any {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, run(append(args, "-quiet", "-duration", "90s"), &out, io.Discard))
	var rows []map[string]any
	for d := json.NewDecoder(&out); d.More(); {
		var r map[string]any
		require.NoError(t, d.Decode(&r))
		rows = append(rows, r)
	}
	return rows
}

func TestRun(t *testing.T) {
	page := filepath.Join(t.TempDir(), "report.html")
	rows := lines(t, "-workload", "chat:lost=0.05", "-policies", "cost_ms, dynamo:scale=4 decay=0.5", "-workers", "1,2", "-loads", "0.5", "-seeds", "3", "-html", page)
	require.Len(t, rows, 4)
	for i, r := range rows {
		require.Equal(t, []string{"cost_ms", "dynamo:scale=4,decay=0.5"}[i%2], r["policy"])
		require.EqualValues(t, 1+i/2, r["workers"])
		require.Greater(t, r["requests"], 10.0)
		require.Greater(t, r["ttft_p90_ms"], r["ttft_p50_ms"])
		require.Greater(t, r["end_mean_ms"], r["ttft_mean_ms"])
		require.Contains(t, r, "ttft_p90_ratio_ci")
		if i%2 == 0 {
			require.EqualValues(t, 1, r["ttft_mean_ratio"])
			require.EqualValues(t, 0, r["ttft_mean_ratio_ci"])
		}
	}
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, want := range []string{"chat:lost=0.05, 1 workers, load 0.5", "2 workers", "<svg", "dynamo:scale=4,decay=0.5", "-seeds 3"} {
		require.Contains(t, string(html), want)
	}
	one := lines(t, "-workload", "chat", "-policies", "cost_ms", "-workers", "1")
	require.NotContains(t, one[0], "ttft_mean_ratio_ci")
}

func TestTrace(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for range 4 {
		io.WriteString(z, `{"timestamp":0,"input_length":1024,"output_length":2,"hash_ids":[1,2]}`+"\n")
	}
	require.NoError(t, z.Close())
	name := filepath.Join(t.TempDir(), "trace.jsonl.gz")
	require.NoError(t, os.WriteFile(name, b.Bytes(), 0o600))
	rows := lines(t, "-trace", name, "-policies", "cost_ms", "-workers", "1")
	require.Equal(t, map[string]any{"trace": name, "requests": 4.0, "blocks": 8.0, "reuse": 0.75}, rows[0])
	require.Equal(t, name, rows[1]["workload"])
}

func TestCalibrate(t *testing.T) {
	var b bytes.Buffer
	for i := range 8 {
		fmt.Fprintf(&b, `{"event":{"event_type":"request_end","request":{"input_tokens":%d,"output_tokens":9,"request_received_ms":%d,"prefill_wait_time_ms":1,"prefill_time_ms":%d,"total_time_ms":9000,"avg_itl_ms":12,"replay":{"trace_block_size":16,"input_length":100}}}}`+"\n", 1000*i+100, 10000*i, 60+100*i)
	}
	name := filepath.Join(t.TempDir(), "trace.jsonl")
	require.NoError(t, os.WriteFile(name, b.Bytes(), 0o600))
	for _, workload := range []string{"chat", "chat:named=0"} {
		rows := lines(t, "-calibrate", name, "-workload", workload, "-policies", "cost_ms", "-workers", "1")
		require.Len(t, rows, 2)
		require.Equal(t, name, rows[0]["calibrated"])
		require.Less(t, rows[0]["ttft_error"], 0.01)
		require.Contains(t, rows[1]["workload"], workload)
		require.Contains(t, rows[1]["workload"], "base=5")
		require.Contains(t, rows[1]["workload"], "token=0.1,")
	}
}

func TestPaired(t *testing.T) {
	require.InDelta(t, 12.706, student(1), 1e-9)
	require.InEpsilon(t, 2.093, student(19), 0.01)
	require.InEpsilon(t, 2.201, student(11), 0.01)
	require.Less(t, student(math.MaxInt), 1.97)
}

func TestProgress(t *testing.T) {
	var b bytes.Buffer
	p := newProgress(&b, 2, false)
	p.step()
	p.step()
	p.done()
	require.True(t, strings.HasSuffix(strings.TrimSpace(b.String()), "[########################################] 2 of 2 simulations, 0s left"), b.String())
}

func TestErrors(t *testing.T) {
	for args, want := range map[string]string{
		"-policies x":       "-policies: policy: unknown name \"x\"",
		"-workers 0":        "-workers 0: want positive numbers",
		"-loads -1":         "-loads -1: want positive numbers",
		"-seeds 0":          "-seeds 0, -parallel",
		"-workload x":       "sim: unknown workload \"x\"",
		"-trace no.txt":     "no.txt",
		"-calibrate no.txt": "no.txt",
	} {
		require.ErrorContains(t, run(append(strings.Fields(args), "-quiet"), io.Discard, io.Discard), want)
	}
}

func TestFlags(t *testing.T) {
	clitest.Check(t, "kvsim", func(args []string, stdout *bytes.Buffer) error { return run(args, stdout, io.Discard) })
}
