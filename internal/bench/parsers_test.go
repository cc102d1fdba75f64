// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/internal/bench"
	"github.com/weft-go/weft/parsers"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil))) // Ollama's parsers log what they cannot read
	os.Exit(m.Run())
}

// root is the path of the repository from this directory.
const root = "../.."

// load returns the samples of one family and work with their tools: of the workload files, else the built-in ones.
func load(tb testing.TB, family, work string) ([]bench.Sample, bench.Tools) {
	tb.Helper()
	shared := bench.Shared(root)
	if shared != "" {
		got, err := bench.Load(filepath.Join(shared, "bench", "parsers", work+".jsonl"), family)
		require.NoError(tb, err)
		if len(got) > 0 {
			tools, err := bench.LoadTools(shared)
			require.NoError(tb, err)
			return got, tools
		}
	}
	tools, err := bench.LoadTools("")
	require.NoError(tb, err)
	return bench.Builtin(family, work), tools
}

// BenchmarkParse times weft and Ollama on one reply, or on the short ones together. The time per chunk is wall time;
// cmd/parsers has CPU time, the minimal machine and growth.
func BenchmarkParse(b *testing.B) {
	for _, f := range bench.Families() {
		b.Run("family="+f.Name, func(b *testing.B) {
			for _, work := range []string{"plain", "agentic", "short"} {
				samples, tools := load(b, f.Name, work)
				for _, chunks := range []string{"atomic", "runes"} {
					ins := bench.Inputs(samples, chunks)
					if len(ins) == 0 {
						continue
					}
					name := fmt.Sprintf("work=%s/chunks=%s/impl=", work, chunks)
					b.Run(name+"weft", func(b *testing.B) {
						w, err := bench.NewWeft(f, samples[0].Prefill, tools, false)
						if _, ok := errors.AsType[*parsers.UnknownFamilyError](err); ok {
							b.Skip("not built")
						}
						require.NoError(b, err)
						if _, err := bench.Try(w, ins); err != nil {
							b.Fatal("weft is wrong, so it has no time: ", err)
						}
						drive(b, w, ins)
					})
					b.Run(name+"ollama", func(b *testing.B) {
						o, err := bench.NewOllama(f, tools)
						if err != nil {
							b.Skip(err)
						}
						if _, err := bench.Try(o, ins); err != nil {
							b.Skip("Ollama is wrong, so it has no time: ", err)
						}
						drive(b, o, ins)
					})
				}
			}
		})
	}
}

func drive(b *testing.B, r bench.Runner, ins []bench.Input) {
	chunks, bytes := bench.Size(ins)
	b.SetBytes(int64(bytes))
	b.ReportAllocs()
	for b.Loop() {
		for i := range ins {
			r.Drive(&ins[i])
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*chunks), "ns/chunk")
}

// TestBuiltin runs the built-in workload through weft, since figures measured without the workload files must rest on
// right results.
func TestBuiltin(t *testing.T) {
	tools, err := bench.LoadTools("")
	require.NoError(t, err)
	for _, family := range []string{"hermes", "qwen3_coder", "harmony", "kimi_k3"} {
		f, ok := bench.FamilyNamed(family)
		require.True(t, ok)
		for _, work := range []string{"plain", "agentic", "short", "growth", "more"} {
			samples := bench.Builtin(family, work)
			require.NotEmpty(t, samples)
			w, err := bench.NewWeft(f, samples[0].Prefill, tools, false)
			require.NoError(t, err)
			for _, chunks := range []string{"whole", "runes", "atomic", "bytes"} {
				ins := bench.Inputs(samples, chunks)
				require.Len(t, ins, len(samples))
				_, err := bench.Try(w, ins)
				require.NoError(t, err, "%s %s %s", family, work, chunks)
			}
		}
	}
	require.Nil(t, bench.Builtin("hermes", "none"))
	require.Nil(t, bench.Builtin("none", "plain"))
}

// TestOllama shows that Ollama's parsers are called as they expect: each parses a plain response correctly. Where it is
// wrong on other workloads, that is its own doing.
func TestOllama(t *testing.T) {
	ran := 0
	for _, f := range bench.Families() {
		samples, tools := load(t, f.Name, "plain")
		o, err := bench.NewOllama(f, tools)
		if err != nil || len(samples) == 0 {
			continue
		}
		ran++
		_, err = bench.Try(o, bench.Inputs(samples, "atomic"))
		require.NoError(t, err, f.Name)
		require.Positive(t, o.Drive(&bench.Inputs(samples, "atomic")[0]))
	}
	require.GreaterOrEqual(t, ran, 3)
	_, err := bench.NewOllama(bench.Family{Name: "x"}, bench.Tools{})
	require.Error(t, err)
	_, err = bench.NewOllama(bench.Family{Name: "x", Ollama: "x"}, bench.Tools{})
	require.Error(t, err)
}
