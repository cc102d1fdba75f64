// SPDX-License-Identifier: Apache-2.0

// Command kvindex compares weft's index of KV caches with prefix trees that have one node per block and with a naive
// model.
//
//	go run ./cmd/kvindex [-work all|NAMES|FILES] [-rounds N] [-quick] [-sizes] [-json]
//
// It prints tables, or with -json a line per measurement. It exits with status 1 if a result is wrong and, with -check,
// if a goal is missed. README.md of the module describes the measurements.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/weft-go/weft/examples/kvbench/kvw"
	"github.com/weft-go/weft/internal/bench"
	"github.com/weft-go/weft/internal/bench/kvindex"
	"github.com/weft-go/weft/internal/bench/remote"
)

// options are the flags.
type options struct {
	work, concurrent string
	peers            string
	rounds           int
	quick, full      bool
	sizes            bool
	pauses           int
	most             int
	json, check      bool
	root             string
}

func main() {
	var o options
	flag.StringVar(&o.work, "work", "all", "workloads: all, none, or names or .kvw files, separated by commas")
	flag.StringVar(&o.concurrent, "concurrent", "agent_n64_bs16,conv_n64_bs64", "workloads for readers and a writer at once: all, none, names or files")
	flag.StringVar(&o.peers, "peers", "lean,tree,weft,naive", "what to measure; the lean tree is always there, its answers are the reference; own is weft with different hashes for each worker; radix and crtc are the indexes of Dynamo's crate, which cargo builds")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds of each measurement; medians count")
	flag.BoolVar(&o.quick, "quick", false, "half a minute: four workloads and one for concurrency, three rounds, no naive model, sizes up to a million")
	flag.BoolVar(&o.full, "full", false, "the naive model answers all queries: minutes for each workload")
	flag.BoolVar(&o.sizes, "sizes", false, "also measure cost against size")
	flag.IntVar(&o.pauses, "pauses", 0, "also measure the pauses of an index with that many residencies, such as 10000000")
	flag.IntVar(&o.most, "max-size", 10_000_000, "with -sizes: the most residencies")
	flag.BoolVar(&o.json, "json", false, "print a line of JSON per measurement instead of tables")
	flag.BoolVar(&o.check, "check", false, "exit with 1 when a goal is missed")
	flag.StringVar(&o.root, "root", "../..", "the root of the repository, to find test data beside it; WEFT_SHARED goes first")
	flag.Parse()
	if o.quick {
		set := map[string]bool{}
		flag.Visit(func(f *flag.Flag) { set[f.Name] = true })
		def := func(name string, f func()) {
			if !set[name] {
				f()
			}
		}
		def("work", func() { o.work = "conv_n16_bs64,conv_n64_bs64,agent_n16_bs64,agent_n64_bs16" })
		def("concurrent", func() { o.concurrent = "agent_n64_bs16" })
		def("rounds", func() { o.rounds = 3 })
		def("peers", func() { o.peers = "lean,tree,weft" })
		def("max-size", func() { o.most = 1_000_000 })
	}
	if o.rounds < 1 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ok, err := measure(o, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kvindex:", err)
		os.Exit(1)
	}
	if !ok {
		os.Exit(1)
	}
}

// files returns the files that a flag names.
func (o *options) files(list string) (files []string) {
	dir := filepath.Join(sharedDir(o.root), "kv", "workloads")
	switch list {
	case "none", "":
		return nil
	case "all":
		list = strings.Join(kvindex.Names, ",")
	}
	for name := range strings.SplitSeq(list, ",") {
		if !strings.HasSuffix(name, ".kvw") {
			name = filepath.Join(dir, name+".kvw")
		}
		files = append(files, name)
	}
	return files
}

func sharedDir(root string) string {
	if dir := bench.Shared(root); dir != "" {
		return dir
	}
	return filepath.Join(root, "..", "shared")
}

func read(file string) (*kvw.Workload, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	w, err := kvw.Read(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return w, nil
}

// makers returns the peers that are asked for, the lean tree first. dynamo is nil unless a peer runs in it.
func (o *options) makers(dynamo *remote.Dynamo) ([]kvindex.Maker, error) {
	all := kvindex.Makers()
	if dynamo != nil {
		all = append(all, kvindex.Maker{Name: remote.Radix, Remote: dynamo}, kvindex.Maker{Name: remote.CRTC, Remote: dynamo})
	}
	out := all[:1:1]
next:
	for name := range strings.SplitSeq(o.peers, ",") {
		if name == all[0].Name {
			continue
		}
		for _, m := range all {
			if m.Name == name {
				out = append(out, m)
				continue next
			}
		}
		return nil, fmt.Errorf("no peer %q", name)
	}
	return out, nil
}

// dynamo starts the process with the indexes of Dynamo's crate, or returns nil if no peer is one of them. If it cannot be
// built or started, those peers are left out, with a message.
func (o *options) dynamo() *remote.Dynamo {
	dynamos := func(name string) bool { return name == remote.Radix || name == remote.CRTC }
	names := strings.Split(o.peers, ",")
	if !slices.ContainsFunc(names, dynamos) {
		return nil
	}
	d, err := remote.StartDynamo()
	if err != nil {
		fmt.Fprintln(os.Stderr, "SKIPPED: radix and crtc:", err)
		o.peers = strings.Join(slices.DeleteFunc(names, dynamos), ",")
		return nil
	}
	return d
}

// measure measures what is asked for and reports whether all is right, and met if that is asked for.
func measure(o options, out io.Writer) (bool, error) {
	dynamo := o.dynamo()
	if dynamo != nil {
		defer dynamo.Close()
	}
	makers, err := o.makers(dynamo)
	if err != nil {
		return false, err
	}
	p := &printer{out: out}
	if o.json {
		p.enc = json.NewEncoder(out)
	}
	p.head(o.rounds)
	ok := true

	procs := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(procs)
	p.comparisonHead()
	for _, file := range o.files(o.work) {
		w, err := read(file)
		if err != nil {
			return false, err
		}
		if dynamo != nil {
			if err := dynamo.Load(file); err != nil {
				return false, err
			}
		}
		c, err := kvindex.Compare(w, makers, o.rounds, o.full)
		if err != nil {
			return false, err
		}
		goals := c.Goals()
		for i := range c.Costs {
			ok = ok && c.Costs[i].Wrong == ""
		}
		for _, g := range goals {
			ok = ok && (g.Met || !o.check)
		}
		p.comparison(c, goals)
	}
	p.comparisonEnd()
	if o.sizes {
		sizes(p, o.most)
	}
	runtime.GOMAXPROCS(procs)
	if o.pauses > 0 {
		p.pauses(kvindex.Pauses(o.pauses, 16))
	}

	files := o.files(o.concurrent)
	if len(files) > 0 && procs < 2 {
		fmt.Fprintln(os.Stderr, "kvindex: one processor: nothing runs beside anything")
		files = nil
	}
	for _, file := range files {
		w, err := read(file)
		if err != nil {
			return false, err
		}
		b, readers, err := kvindex.Concurrent(w, o.rounds, 500*time.Millisecond)
		if err != nil {
			return false, err
		}
		goals := b.Goals()
		for _, g := range goals {
			ok = ok && (g.Met || !o.check)
		}
		p.concurrent(b, readers, goals)
	}
	return ok, nil
}

// Limits of memory: nothing is measured that would take more than fits, and what is collected too late is collected earlier near
// the second.
const (
	fits      = 4 << 30
	mostBytes = 6 << 30
)

// sizes measures the made-up fleet: every size with every number of workers that it has room for, and that there is room for.
func sizes(p *printer, most int) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(mostBytes))
	p.sizeHead()
	last := map[int]kvindex.Sized{} // by workers: the largest
	workers := []int{1, 16, 64, 256, 1024}
	for n := 10_000; n <= most; n *= 10 {
		for _, w := range workers {
			if last[w].BytesPerResidency*float64(n) > fits {
				continue
			}
			if s, ok := kvindex.Size(n, w); ok {
				p.size(s)
				last[w] = s
			}
		}
	}
	for _, w := range workers {
		if s, ok := last[w]; ok {
			p.sizeEnd(s)
		}
	}
}
