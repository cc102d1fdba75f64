// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// report makes rows of the series.
func (f *family) report() {
	for _, t := range f.o.texts {
		for _, cache := range []string{"cold", "warm"} {
			ours := f.series["weft "+t.name+" "+cache]
			r := row{What: "encode", Text: t.name, Cache: cache, With: "hf", Unit: "MB/s", Goal: encodeGoal(f.kind, t.name, cache), Wrong: f.wrong[t.name]}
			if cache == "warm" {
				r.Allocs = f.allocs
			}
			f.row(r, ours, f.series["hf "+t.name+" "+cache], 1e3)
			if cache == "cold" {
				r.Cache, r.Goal = "cold, theirs warm", 0
				f.row(r, ours, f.series["hf "+t.name+" warm"], 1e3)
			}
		}
	}
	if f.o.hf != nil {
		f.row(row{What: "decode", Text: "code", With: "hf", Unit: "Mtok/s", Goal: decodeGoal}, f.series["weft decode"], f.series["hf decode "], 1e3)
		f.row(row{What: "decode less calls", Text: "code", With: "hf", Unit: "Mtok/s"}, f.series["weft decode"],
			less(f.series["hf decode "], f.series["hf decode none"]), 1e3)
		f.row(row{What: "stream", Text: "code", With: "hf", Unit: "Mtok/s", Allocs: round(f.streamAllocs)}, f.series["weft stream"], f.series["hf decode "], 1e3)
		load := row{What: "load", With: "hf", Unit: "ms"}
		if f.name == "qwen3" {
			load.Goal = loadGoal
		}
		f.row(load, f.series["weft load"], f.series["hf load"], 0)
	}
	if hits := f.series["prefix"]; len(hits) > 0 {
		last := f.o.texts[len(f.o.texts)-1].name
		f.row(row{What: "prefix", Text: last, Cache: "hit", With: "weft", Unit: "MB/s", Goal: prefixGoal, Allocs: round(f.prefixAllocs), Wrong: f.wrong["prefix"]},
			hits, f.series["weft "+last+" cold"], 1e3)
	}
	for _, name := range peerNames {
		for _, t := range f.o.texts {
			if theirs := f.series[name+" "+t.name]; len(theirs) > 0 {
				// Theirs have seen the text before, as ours have when warm; most of them keep nothing, so that cold
				// times are as informative.
				for _, cache := range []string{"cold", "warm"} {
					r := row{What: "encode", Text: t.name, Cache: cache, With: name, Unit: "MB/s", Wrong: f.wrong[name+" "+t.name]}
					if cache == "warm" && r.Wrong == "" {
						r.Goal = peerGoal
					}
					f.row(r, f.series["weft "+t.name+" "+cache], theirs, 1e3)
				}
			}
		}
		if theirs := f.series[name+" decode"]; len(theirs) > 0 {
			f.row(row{What: "decode", Text: "code", With: name, Unit: "Mtok/s"}, f.series["weft decode"], theirs, 1e3)
		}
	}
}

// row adds r with the medians of two series of nanoseconds: as they are when scale is 0, else as scale over them. The ratio is
// the median of the ratios of the rounds.
func (f *family) row(r row, ours, theirs []float64, scale float64) {
	if len(ours) == 0 || len(theirs) == 0 {
		return
	}
	r.Tok, r.Kind = f.name, f.kind
	if r.Wrong == "" || slices.Contains(peerNames, r.With) {
		var ratios []float64
		for i := range ours { // hf load has several a round
			ratios = append(ratios, theirs[i*len(theirs)/len(ours)]/ours[i])
		}
		r.Ours, r.Theirs, r.Ratio = median(ours), median(theirs), round(median(ratios))
		r.Met = r.Goal == 0 || r.Ratio >= r.Goal
		if scale > 0 {
			r.Ours, r.Theirs = scale/r.Ours, scale/r.Theirs
		} else {
			r.Ratio = round(1 / median(ratios))
			r.Met = r.Goal == 0 || r.Ratio <= r.Goal
		}
		r.Ours, r.Theirs = round(r.Ours), round(r.Theirs)
		if r.What == "stream" || r.Cache == "warm" {
			r.Met = r.Met && r.Allocs < 0.01
		}
	}
	f.o.rows = append(f.o.rows, r)
}

func less(a, b []float64) []float64 {
	var out []float64
	for i := range min(len(a), len(b)) {
		out = append(out, max(a[i]-b[i], 1))
	}
	return out
}

func median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	return s[len(s)/2]
}

func round(x float64) float64 { return math.Round(x*1000) / 1000 }

// tables summarizes the rows: one table for Hugging Face, one for the other libraries.
func (o *options) tables() string {
	var b strings.Builder
	var toks []string
	at := make(map[string]*row)
	for i := range o.rows {
		r := &o.rows[i]
		if !slices.Contains(toks, r.Tok) {
			toks = append(toks, r.Tok)
		}
		at[r.Tok+" "+r.What+" "+r.Text+" "+r.Cache+" "+r.With] = r
	}
	cell := func(key string, format string) string {
		r := at[key]
		switch {
		case r == nil:
			return "-"
		case r.Wrong != "" && !slices.Contains(peerNames, r.With):
			return "WRONG"
		case r.Wrong != "":
			return fmt.Sprintf(format+" wrong", r.Ratio)
		case !r.Met:
			return fmt.Sprintf(format, r.Ratio) + fmt.Sprintf(" (%.3g) MISSED", r.Goal)
		case r.Goal == 0:
			return fmt.Sprintf(format, r.Ratio)
		}
		return fmt.Sprintf(format+" (%.3g)", r.Ratio, r.Goal)
	}
	if o.hf != nil {
		b.WriteString("\nTimes faster than Hugging Face (goal); load: weft's time over theirs\n\n")
		b.WriteString("| tokenizer | code cold | prose cold | agent cold | code warm | prose warm | agent warm | ours cold, theirs warm: code | prose | agent | decode | load | MB/s code cold, warm | stream ns, allocs a token | prefix hit, times cheaper than cold |\n|" + strings.Repeat("---|", 15) + "\n")
		for _, t := range toks {
			fmt.Fprintf(&b, "| %s |", t)
			for _, cache := range []string{"cold", "warm", "cold, theirs warm"} {
				for _, text := range o.texts {
					fmt.Fprintf(&b, " %s |", cell(t+" encode "+text.name+" "+cache+" hf", "%.1f"))
				}
			}
			fmt.Fprintf(&b, " %s | %s |", cell(t+" decode code  hf", "%.0f"), cell(t+" load   hf", "%.2f"))
			cold, warm := at[t+" encode code cold hf"], at[t+" encode code warm hf"]
			if cold != nil && warm != nil {
				fmt.Fprintf(&b, " %.0f, %.0f |", cold.Ours, warm.Ours)
			}
			if s := at[t+" stream code  hf"]; s != nil {
				fmt.Fprintf(&b, " %.1f, %g |", 1e3/s.Ours, s.Allocs)
			}
			fmt.Fprintf(&b, " %s |", cell(t+" prefix agent hit weft", "%.0f"))
			b.WriteByte('\n')
		}
	}
	if o.idle > 0 {
		fmt.Fprintf(&b, "\nA call of Hugging Face's encode takes %.0f µs with nothing to encode.\n", o.idle)
	}
	if len(o.exact) > 0 {
		b.WriteString("\nGo libraries: exact vectors; times weft is faster than they are, weft cold, weft warm (goal)\n\n")
		b.WriteString("| tokenizer | library | exact | code | prose | agent | decode |\n|" + strings.Repeat("---|", 7) + "\n")
		for _, e := range o.exact {
			right := fmt.Sprintf("%d/%d", e.right, e.of)
			if e.note != "" {
				right = strings.ReplaceAll(fmt.Sprintf("%s, %.60s", right, e.note), "|", "/")
			}
			if strings.HasPrefix(e.note, "does not load") {
				right = "does not load"
			}
			fmt.Fprintf(&b, "| %s | %s | %s |", e.tok, e.with, right)
			for _, text := range o.texts {
				key := e.tok + " encode " + text.name
				fmt.Fprintf(&b, " %s, %s |", strings.TrimSuffix(cell(key+" cold "+e.with, "%.1f"), " wrong"), cell(key+" warm "+e.with, "%.1f"))
			}
			fmt.Fprintf(&b, " %s |\n", cell(e.tok+" decode code  "+e.with, "%.0f"))
		}
	}
	b.WriteByte('\n')
	return b.String()
}
