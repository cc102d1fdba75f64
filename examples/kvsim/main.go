// SPDX-License-Identifier: Apache-2.0

// Command kvsim compares routing policies in simulated fleets and prints one JSON line for each policy, load and number of
// workers.
//
//	go run ./examples/kvsim -h
//
// The router that places the requests is the one that a gateway uses; the engines, and time, are those of package
// router/sim. All policies get the same requests, so ratios between them are more certain than the times themselves.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weft-go/weft/examples/internal/cli"
	"github.com/weft-go/weft/router/policy"
	"github.com/weft-go/weft/router/sim"
)

const usage = `
usage: kvsim [flags]

Kvsim simulates fleets of engines in virtual time and compares policies of package router/policy. It does not read stdin.

Each line of output is a JSON object for one policy, load and number of workers:
  policy, workload, workers, load, seeds
                        what was simulated
  requests              requests that were measured, of all seeds
  ttft_mean_ms, ttft_p50_ms, ttft_p90_ms
                        time to first token, averaged over the seeds
  end_mean_ms           time to the end of the response
  cached                part of the prompt tokens that were cached
  ttft_mean_ratio, ttft_p90_ratio
                        geometric mean over the seeds of the ratio to the first policy of -policies with the same seed
  ttft_mean_ratio_ci, ttft_p90_ratio_ci
                        half of the 95 % confidence interval of the ratio, as a factor minus 1; absent with one seed
With -calibrate, the engines have the costs of a recorded run: a first line has them, as conditions of the workload, and the median
relative errors of the fitted times to the first token and between tokens.
With -trace, a line before has the trace's requests, its blocks, and the part of these that a cache without limits would have had.

Example:
  kvsim -seeds 5 -policies cost_ms,llm_d,lmetric -loads 0.5,0.75,0.9 -html report.html
  kvsim -workload agents:kv=0.67,lost=0.05 -workers 16
  kvsim -trace mooncake_conversation.jsonl -workers 16
  kvsim -trace requests.jsonl -workers 2    # recorded by gateway -trace requests.jsonl
  kvsim -calibrate pi_request_trace.jsonl.gz -workload chat
`

func main() { cli.Exit("kvsim", run(os.Args[1:], os.Stdout, os.Stderr)) }

// row is a line of output.
type row struct {
	Policy      string   `json:"policy"`
	Workload    string   `json:"workload"`
	Workers     int      `json:"workers"`
	Load        float64  `json:"load"`
	Seeds       int      `json:"seeds"`
	Requests    int      `json:"requests"`
	Mean        float64  `json:"ttft_mean_ms"`
	P50         float64  `json:"ttft_p50_ms"`
	P90         float64  `json:"ttft_p90_ms"`
	End         float64  `json:"end_mean_ms"`
	Cached      float64  `json:"cached"`
	MeanRatio   float64  `json:"ttft_mean_ratio"`
	MeanRatioCI *float64 `json:"ttft_mean_ratio_ci,omitempty"`
	P90Ratio    float64  `json:"ttft_p90_ratio"`
	P90RatioCI  *float64 `json:"ttft_p90_ratio_ci,omitempty"`

	results []*sim.Result // by seed
}

func run(args []string, stdout, stderr io.Writer) error {
	flags := cli.NewFlags("kvsim", usage, stdout)
	workload := flags.String("workload", "agents", "`name` of the workload, agents or chat, with conditions such as :kv=0.67,slow=0.6,lost=0.05,drop=1,split=0.5; package router/sim lists all of them")
	traceFile := flags.String("trace", "", "`file` with recorded requests in the format of Mooncake or of Dynamo's request traces, as gateway -trace writes them, also compressed with gzip")
	calibrate := flags.String("calibrate", "", "`file` with a request trace of Dynamo with measured times, also compressed with gzip, to which the costs of the engines are fitted")
	policies := flags.String("policies", "cost_ms,llm_d,dynamo:scale=16,lmetric,round_robin", "`names` of policies; those with several options are separated by a space instead of a comma")
	workers := flags.String("workers", "8", "`numbers` of engines, separated by commas")
	loads := flags.String("loads", "0.75", "parts of the engines' time that requests need at least, as `numbers` separated by commas")
	seeds := flags.Int("seeds", 1, "`number` of simulations for each line")
	first := flags.Uint64("seed", 0, "first `seed`")
	duration := flags.Duration("duration", 30*time.Minute, "simulated `time`, of which the last two thirds are measured")
	html := flags.String("html", "", "`file` for a report with plots")
	parallel := flags.Int("parallel", runtime.GOMAXPROCS(0), "`number` of simulations at the same time")
	quiet := flags.Bool("quiet", false, "do not show progress on stderr")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *seeds < 1 || *parallel < 1 {
		return cli.Usagef("-seeds %d, -parallel %d: want at least 1", *seeds, *parallel)
	}
	data, err := readTrace(*traceFile)
	if err != nil {
		return err
	}
	out := json.NewEncoder(stdout)
	if *calibrate != "" {
		recorded, err := readTrace(*calibrate)
		if err != nil {
			return err
		}
		conditions, first, between, err := sim.Calibrate(recorded)
		if err != nil {
			return fmt.Errorf("%s: %w", *calibrate, err)
		}
		if err := out.Encode(map[string]any{"calibrated": *calibrate, "conditions": conditions, "ttft_error": first, "itl_error": between}); err != nil {
			return err
		}
		if strings.Contains(*workload, ":") {
			conditions = "," + conditions
		} else {
			conditions = ":" + conditions
		}
		*workload += conditions
	}
	name := *workload
	if data != nil {
		requests, blocks, cached, err := sim.Reuse(data)
		if err != nil {
			return fmt.Errorf("%s: %w", *traceFile, err)
		}
		name = *traceFile
		if err := out.Encode(map[string]any{"trace": name, "requests": requests, "blocks": blocks, "reuse": float64(cached) / float64(max(blocks, 1))}); err != nil {
			return err
		}
	}
	rows, err := cells(name, *policies, *workers, *loads, *seeds)
	if err != nil {
		return err
	}
	show := newProgress(stderr, len(rows)**seeds, *quiet)
	if err := simulate(rows, *parallel, func(r *row, seed int) (*sim.Result, error) {
		p, err := policy.Named(r.Policy)
		if err != nil {
			return nil, err
		}
		res, err := sim.Run(&sim.Options{Policy: p, Workload: *workload, Trace: data, Workers: r.Workers, Load: r.Load, Duration: *duration, Seed: *first + uint64(seed)})
		show.step()
		return res, err
	}); err != nil {
		return err
	}
	show.done()
	summarize(rows)
	for _, r := range rows {
		if err := out.Encode(r); err != nil {
			return err
		}
	}
	if *html == "" {
		return nil
	}
	return os.WriteFile(*html, report(rows, strings.Join(args, " ")), 0o644)
}

// readTrace reads a file, which may be compressed. It returns nil if there is no name.
func readTrace(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	data, err := os.ReadFile(name)
	if err != nil || !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return data, err
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	const limit = 4 << 30
	if data, err = io.ReadAll(io.LimitReader(z, limit)); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}

// cells returns the rows, those that are compared next to each other.
func cells(name, policies, workers, loads string, seeds int) (rows []*row, err error) {
	for w := range strings.SplitSeq(workers, ",") {
		n, err := strconv.Atoi(w)
		if err != nil || n < 1 {
			return nil, cli.Usagef("-workers %s: want positive numbers", workers)
		}
		for l := range strings.SplitSeq(loads, ",") {
			load, err := strconv.ParseFloat(l, 64)
			if err != nil || !(load > 0) {
				return nil, cli.Usagef("-loads %s: want positive numbers", loads)
			}
			for p := range strings.SplitSeq(policies, ",") {
				p = strings.ReplaceAll(strings.TrimSpace(p), " ", ",")
				if _, err := policy.Named(p); err != nil {
					return nil, cli.Usagef("-policies: %v", err)
				}
				rows = append(rows, &row{Policy: p, Workload: name, Workers: n, Load: load, Seeds: seeds, results: make([]*sim.Result, seeds)})
			}
		}
	}
	return rows, nil
}

// simulate runs all seeds of all rows, several at the same time.
func simulate(rows []*row, parallel int, one func(r *row, seed int) (*sim.Result, error)) error {
	type job struct {
		row  *row
		seed int
	}
	jobs := make(chan job)
	var wg sync.WaitGroup
	var once sync.Once
	var failed error
	for range parallel {
		wg.Go(func() {
			for j := range jobs {
				res, err := one(j.row, j.seed)
				if err != nil {
					once.Do(func() { failed = err })
					res = new(sim.Result)
				}
				j.row.results[j.seed] = res
			}
		})
	}
	for _, r := range rows {
		for seed := range r.Seeds {
			jobs <- job{r, seed}
		}
	}
	close(jobs)
	wg.Wait()
	return failed
}

// progress is a bar on a terminal.
type progress struct {
	mu    sync.Mutex
	w     io.Writer
	total int
	n     int
	begun time.Time
}

func newProgress(w io.Writer, total int, quiet bool) *progress {
	if quiet {
		w = io.Discard
	}
	return &progress{w: w, total: total, begun: time.Now()}
}

func (p *progress) step() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n++
	const width = 40
	full := width * p.n / p.total
	left := time.Duration(float64(time.Since(p.begun)) / float64(p.n) * float64(p.total-p.n)).Round(time.Second)
	fmt.Fprintf(p.w, "\r[%s%s] %d of %d simulations, %v left   ", strings.Repeat("#", full), strings.Repeat(".", width-full), p.n, p.total, left)
}

func (p *progress) done() { fmt.Fprintln(p.w) }
