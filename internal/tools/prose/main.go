// SPDX-License-Identifier: Apache-2.0

// Command prose counts phrases that CONTRIBUTING.md advises against, per 1,000 words of comment and of README.
//
//	GOWORK=off go -C internal/tools run ./prose             the rates of the repository and the goal
//	GOWORK=off go -C internal/tools run ./prose -packages   a line for each package, worst first
//	GOWORK=off go -C internal/tools run ./prose -list       each sentence with such a phrase, with its file and line
//	GOWORK=off go -C internal/tools run ./prose -check      exit with status 1 if a rate is above its goal
//	GOWORK=off go -C internal/tools run ./prose -std        measure the standard library and rewrite std.txt
//
// The goal for a group of phrases is twice the highest rate that a package in std.txt has, and at least 0.1. Comments of
// test files, other comments and READMEs are counted separately. Arguments restrict -packages and -list to directories
// below the root that begin with one of them.
package main

import (
	"bufio"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// anchors are the packages of the standard library that set the goals.
var anchors = []string{"net/http", "encoding/json", "database/sql", "bufio", "go/ast", "context", "log/slog", "text/template"}

//go:embed std.txt
var std string

const (
	stdFile = "internal/tools/prose/std.txt"
	factor  = 2   // times the highest rate of the standard library
	floor   = 0.1 // hits per 1,000 words that are always within the goal
)

func main() {
	root := flag.String("root", "../..", "root of the checkout")
	perPackage := flag.Bool("packages", false, "print a line for each package, worst first")
	list := flag.Bool("list", false, "print each sentence with a phrase")
	check := flag.Bool("check", false, "fail if a rate is above its goal")
	measure := flag.Bool("std", false, "measure the standard library and rewrite "+stdFile)
	flag.Parse()
	var err error
	switch {
	case *measure:
		err = writeStd(filepath.Join(*root, stdFile))
	default:
		err = run(os.Stdout, *root, flag.Args(), *perPackage, *list, *check)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, root string, only []string, perPackage, list, check bool) error {
	goals, err := readGoals(std)
	if err != nil {
		return err
	}
	texts, err := collect(root)
	if err != nil {
		return err
	}
	if len(only) > 0 {
		texts = slices.DeleteFunc(texts, func(t text) bool {
			return !slices.ContainsFunc(only, func(dir string) bool { return strings.HasPrefix(t.pkg+"/", strings.TrimSuffix(dir, "/")+"/") })
		})
	}
	if list {
		for _, t := range texts {
			for _, h := range t.hits() {
				fmt.Fprintf(w, "%s:%d: [%s] %s\n", t.file, h.line, groups[h.group].name, h.sentence)
			}
		}
		return nil
	}
	if perPackage {
		return printPackages(w, texts)
	}
	return printTotals(w, texts, goals, check)
}

// A tally holds the figures of some texts.
type tally struct {
	words int
	hits  []int // by group
}

func (t *tally) add(x text) {
	if t.hits == nil {
		t.hits = make([]int, len(groups))
	}
	t.words += x.words()
	for _, h := range x.hits() {
		t.hits[h.group]++
	}
}

// rate returns the hits of a group per 1,000 words.
func (t *tally) rate(group int) float64 {
	if t.words == 0 {
		return 0
	}
	return float64(t.hits[group]) * 1000 / float64(t.words)
}

// sum returns the hits of all groups per 1,000 words.
func (t *tally) sum() (rate float64) {
	for g := range groups {
		rate += t.rate(g)
	}
	return rate
}

func printTotals(w io.Writer, texts []text, goals []float64, check bool) error {
	tallies := make([]tally, len(kinds))
	for i := range tallies {
		tallies[i].hits = make([]int, len(groups))
	}
	for _, t := range texts {
		tallies[t.kind].add(t)
	}
	fmt.Fprintf(w, "%-12s", "per 1,000")
	for _, k := range kinds {
		fmt.Fprintf(w, " %9s", k)
	}
	fmt.Fprintf(w, " %9s   instead\n%-12s", "goal", "words")
	for _, t := range tallies {
		fmt.Fprintf(w, " %9d", t.words)
	}
	fmt.Fprintln(w)
	above := 0
	for g, group := range groups {
		fmt.Fprintf(w, "%-12s", group.name)
		for _, t := range tallies {
			mark := " "
			if t.rate(g) > goals[g] {
				mark = "!"
				above++
			}
			fmt.Fprintf(w, " %8.2f%s", t.rate(g), mark)
		}
		fmt.Fprintf(w, " %9.2f   %s\n", goals[g], group.instead)
	}
	fmt.Fprintf(w, "%-12s", "all")
	for _, t := range tallies {
		fmt.Fprintf(w, " %8.2f ", t.sum())
	}
	fmt.Fprintln(w)
	if check && above > 0 {
		return fmt.Errorf("%d rates are above their goals; -list prints the sentences", above)
	}
	return nil
}

func printPackages(w io.Writer, texts []text) error {
	byPackage := map[string]*tally{}
	for _, t := range texts {
		if byPackage[t.pkg] == nil {
			byPackage[t.pkg] = &tally{}
		}
		byPackage[t.pkg].add(t)
	}
	names := make([]string, 0, len(byPackage))
	for name := range byPackage {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		x, y := byPackage[a].sum(), byPackage[b].sum()
		switch {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		t := byPackage[name]
		var worst []string
		for g, group := range groups {
			if t.hits[g] > 0 {
				worst = append(worst, fmt.Sprintf("%s %d", group.name, t.hits[g]))
			}
		}
		if _, err := fmt.Fprintf(w, "%6.1f %7d words  %-40s %s\n", t.sum(), t.words, name, strings.Join(worst, ", ")); err != nil {
			return err
		}
	}
	return nil
}

// readGoals returns the goal of each group from the rates in data.
func readGoals(data string) ([]float64, error) {
	highest := map[string]float64{}
	s := bufio.NewScanner(strings.NewReader(data))
	for s.Scan() {
		fields := strings.Split(s.Text(), "\t")
		if strings.HasPrefix(s.Text(), "#") || len(fields) != 3 {
			continue
		}
		rate, err := strconv.ParseFloat(fields[2], 64)
		if err != nil {
			return nil, fmt.Errorf("std.txt: %w", err)
		}
		highest[fields[0]] = max(highest[fields[0]], rate)
	}
	goals := make([]float64, len(groups))
	for g, group := range groups {
		rate, ok := highest[group.name]
		if !ok {
			return nil, fmt.Errorf("std.txt has no rates for %q: run prose -std", group.name)
		}
		goals[g] = max(factor*rate, floor)
	}
	return goals, s.Err()
}

// writeStd measures the anchors in GOROOT.
func writeStd(name string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Hits per 1,000 words of comment, without test files, in %s. Written by prose -std.\n", runtime.Version())
	tallies := make([]tally, len(anchors))
	for i, pkg := range anchors {
		tallies[i].hits = make([]int, len(groups))
		dir := filepath.Join(runtime.GOROOT(), "src", filepath.FromSlash(pkg))
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			return err
		}
		for _, file := range files {
			t, ok, err := readGo(file, file, pkg)
			if err != nil {
				return err
			}
			if ok && t.kind == code {
				tallies[i].add(t)
			}
		}
	}
	for g, group := range groups {
		for i, pkg := range anchors {
			fmt.Fprintf(&b, "%s\t%s\t%.2f\n", group.name, pkg, tallies[i].rate(g))
		}
	}
	return os.WriteFile(name, []byte(b.String()), 0o644)
}
