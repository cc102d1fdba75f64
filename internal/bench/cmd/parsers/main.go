// SPDX-License-Identifier: Apache-2.0

// Command parsers compares weft's parsers with the minimal machine and with Ollama's parsers, family by family.
//
//	go run ./cmd/parsers -family hermes,harmony -work plain,agentic
//
// For each family it prints a table and one line of JSON, and at the end a summary. It exits with 1 when a result of
// weft is wrong. README.md of the module explains the columns.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/weft-go/weft/internal/bench"
)

// options are the flags.
type options struct {
	families, works []string
	rounds          int
	chunks          string
	fresh           bool
	root            string
	raw             string
}

func main() {
	family := flag.String("family", "", "families, separated by commas; all when empty")
	work := flag.String("work", "plain,agentic,short,growth", "workloads, separated by commas")
	var o options
	flag.IntVar(&o.rounds, "rounds", 7, "rounds of each measurement; the median counts")
	flag.StringVar(&o.chunks, "chunks", "runes", "how texts are cut: runes, as for the minimal machine, or atomic")
	flag.BoolVar(&o.fresh, "fresh", false, "make a new weft parser for every reply instead of resetting one")
	flag.StringVar(&o.root, "root", "../..", "the root of the repository, to find test data beside it; WEFT_SHARED goes first")
	flag.StringVar(&o.raw, "floor-out", "", "write what the minimal machine printed, in all its runs, to this file")
	flag.Parse()
	for _, f := range bench.Families() {
		if *family == "" || contains(*family, f.Name) {
			o.families = append(o.families, f.Name)
		}
	}
	for _, name := range strings.Split(*family, ",") {
		if _, ok := bench.FamilyNamed(name); !ok && name != "" {
			fmt.Fprintf(os.Stderr, "parsers: no family %q\n", name)
			os.Exit(2)
		}
	}
	for _, name := range strings.Split(*work, ",") {
		switch name {
		case "plain", "agentic", "short", "growth":
			o.works = append(o.works, name)
		default:
			fmt.Fprintf(os.Stderr, "parsers: no workload %q\n", name)
			os.Exit(2)
		}
	}
	if o.rounds < 1 || (o.chunks != "runes" && o.chunks != "atomic") {
		flag.Usage()
		os.Exit(2)
	}
	// As the minimal machine does; and Ollama's parsers log what they cannot read.
	runtime.GOMAXPROCS(1)
	slog.SetDefault(slog.New(slog.DiscardHandler))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ok, err := compare(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "parsers:", err)
		os.Exit(1)
	}
	if !ok {
		os.Exit(1)
	}
}

func contains(list, name string) bool {
	for _, s := range strings.Split(list, ",") {
		if s == name {
			return true
		}
	}
	return false
}

// every is the age at which a run of the minimal machine is too old to compare with.
const every = 30 * time.Second

// compare measures all families and prints what it found. It reports whether weft was right everywhere.
func compare(ctx context.Context, o options) (bool, error) {
	shared := bench.Shared(o.root)
	dir, err := os.MkdirTemp("", "parsers")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	s := source{shared: shared}
	fmt.Printf("%s %s/%s, %s, %s, chunks %s, %d rounds, %s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, cpuName(),
		ollamaVersion(), o.chunks, o.rounds, time.Now().UTC().Format("2006-01-02 15:04 MST"))
	if shared == "" {
		fmt.Println("no shared test data (WEFT_SHARED): built-in workloads, and no minimal machine to compare with")
	} else if s.floor, err = bench.NewFloor(ctx, shared, dir); err != nil {
		return false, err
	}
	floors := newFloors(s.floor, o.raw)
	var reports []*report
	for _, name := range o.families {
		f, _ := bench.FamilyNamed(name)
		if err := ctx.Err(); err != nil {
			return false, err
		}
		before, err := floors.recent(ctx, every)
		if err != nil {
			return false, err
		}
		r, err := measure(o, f, s)
		if err != nil {
			return false, err
		}
		r.before = before
		reports = append(reports, r)
	}
	if _, err := floors.recent(ctx, 0); err != nil {
		return false, err
	}
	ok := true
	for _, r := range reports {
		r.setFloor(floors.around(r.before))
		r.print(os.Stdout)
		ok = ok && r.right()
	}
	floors.print(os.Stdout)
	summary(os.Stdout, reports)
	return ok, nil
}

// source finds the samples.
type source struct {
	shared string
	floor  *bench.Floor
}

// samples returns a workload of a family and where it is from.
func (s source) samples(family, work string) ([]bench.Sample, string, error) {
	if s.shared != "" {
		file := filepath.Join(s.shared, "bench", "parsers", work+".jsonl")
		switch work {
		case "growth":
			file = s.floor.Growth(family)
		case "more":
			file = s.floor.More(family)
		}
		if _, err := os.Stat(file); err == nil {
			got, err := bench.Load(file, family)
			if err != nil || len(got) > 0 {
				return got, "files", err
			}
		}
	}
	return bench.Builtin(family, work), "built-in", nil
}

// tools returns the tools for samples from that source.
func (s source) tools(from string) (bench.Tools, error) {
	if from == "files" {
		return bench.LoadTools(s.shared)
	}
	return bench.LoadTools("")
}

func cpuName() string {
	raw, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(raw)) {
			if name, ok := strings.CutPrefix(line, "model name"); ok {
				return fmt.Sprintf("%s ×%d", strings.TrimLeft(strings.TrimSpace(name), " :\t"), runtime.NumCPU())
			}
		}
	}
	return fmt.Sprintf("%d CPUs", runtime.NumCPU())
}

func ollamaVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "github.com/ollama/ollama" {
				return "ollama " + m.Version
			}
		}
	}
	return "ollama"
}
