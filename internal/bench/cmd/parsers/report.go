// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/weft-go/weft/internal/bench"
)

// report holds the measurements of one family; its JSON is one line of output.
type report struct {
	Family   string `json:"family"`
	NotBuilt string `json:"not_built,omitempty"`
	Tagged   bool   `json:"tagged"`
	Source   string `json:"source,omitempty"` // files or built-in
	Chunks   string `json:"chunks"`
	Ollama   string `json:"ollama,omitempty"` // its parser
	Rows     []*row `json:"rows,omitempty"`
	// Growth is the time per chunk at a 1 MB argument divided by the time per chunk of several 10 KB replies, or 0 if
	// not measured.
	Growth float64 `json:"growth,omitempty"`
	// Repeated is the same over one reply with 10 KB, whose branches the processor has learnt.
	Repeated float64 `json:"growth_repeated,omitempty"`
	// OllamaGrowth is the same for Ollama, or 100 KB over 10 KB, as given by OllamaGrowthAt.
	OllamaGrowth   float64 `json:"ollama_growth,omitempty"`
	OllamaGrowthAt string  `json:"ollama_growth_at,omitempty"`

	bars   bench.Bars
	before int // run of the minimal machine
}

// row is one workload, or one size of growth.
type row struct {
	Work   string        `json:"work"`
	Chunks int           `json:"n_chunks"`
	Bytes  int           `json:"bytes"`
	Right  string        `json:"wrong,omitempty"` // what is wrong with weft in any way to cut
	Floor  float64       `json:"floor_ns,omitempty"`
	Weft   bench.Timing  `json:"weft"`
	Ollama *bench.Timing `json:"ollama,omitempty"`
	// OllamaChunks is the chunking for Ollama: whole markers if its results are wrong with the requested one.
	OllamaChunks string  `json:"ollama_chunks,omitempty"`
	OverFloor    float64 `json:"over_floor,omitempty"`
	MinOverFloor float64 `json:"min_over_floor,omitempty"` // of the lowest rounds
	OverWeft     float64 `json:"ollama_over_weft,omitempty"`
}

func newRow(work string, ins []bench.Input) *row {
	chunks, bytes := bench.Size(ins)
	return &row{Work: work, Chunks: chunks, Bytes: bytes}
}

// at returns the row of a workload that has a time.
func (r *report) at(work string) *row {
	for _, w := range r.Rows {
		if w.Work == work && w.Weft.NS > 0 {
			return w
		}
	}
	return nil
}

// setFloor notes the times of the minimal machine and works out the ratios.
func (r *report) setFloor(t bench.FloorTimes) {
	for _, w := range r.Rows {
		f := map[string]bench.FloorTime{"plain": t.Plain, "agentic": t.Agentic, "growth-1048576": t.Growth}[w.Work]
		if w.Floor = f.NS; f.NS > 0 {
			w.OverFloor, w.MinOverFloor = ratio(w.Weft.NS, f.NS), ratio(w.Weft.Min, f.Min)
		}
		if w.Ollama != nil && w.Weft.NS > 0 {
			w.OverWeft = ratio(w.Ollama.NS, w.Weft.NS)
		}
	}
	small, big := r.at(moreName), r.at("growth-1048576")
	if small == nil || big == nil {
		return
	}
	r.Growth = ratio(big.Weft.NS, small.Weft.NS)
	if one := r.at("growth-10240"); one != nil {
		r.Repeated = ratio(big.Weft.NS, one.Weft.NS)
	}
	if small.Ollama == nil || small.Ollama.NS == 0 {
		return
	}
	if big.Ollama.NS > 0 {
		r.OllamaGrowth, r.OllamaGrowthAt = ratio(big.Ollama.NS, small.Ollama.NS), "1 MB"
	} else if middle := r.at("growth-102400"); middle != nil && middle.Ollama.NS > 0 {
		r.OllamaGrowth, r.OllamaGrowthAt = ratio(middle.Ollama.NS, small.Ollama.NS), "100 KB"
	}
}

func ratio(a, b float64) float64 { return math.Round(a/b*1000) / 1000 }

// right reports whether weft was right in all workloads.
func (r *report) right() bool {
	for _, w := range r.Rows {
		if w.Right != "" || w.Weft.Wrong != "" {
			return false
		}
	}
	return true
}

func (r *report) print(out io.Writer) {
	if r.NotBuilt != "" {
		fmt.Fprintf(out, "\n%s: not built (%s)\n", r.Family, r.NotBuilt)
		return
	}
	style := "JSON arguments"
	if r.Tagged {
		style = "tagged arguments"
	}
	fmt.Fprintf(out, "\n%s: %s, workload: %s\n", r.Family, style, r.Source)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "workload\tchunks\tfloor ns\tweft ns\tmin\tallocs\t× floor\tmin × min\tollama ns\tallocs\t× weft\t")
	var notes []string
	for _, w := range r.Rows {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t",
			w.Work, w.Chunks, num(w.Floor), ns(&w.Weft), num(w.Weft.Min), allocs(&w.Weft), num(w.OverFloor), num(w.MinOverFloor))
		if w.Weft.Wrong != "" {
			notes = append(notes, w.Work+": WEFT IS WRONG: "+w.Weft.Wrong)
		}
		if w.Ollama == nil {
			fmt.Fprint(t, "-\t-\t-\t\n")
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t\n", ns(w.Ollama), allocs(w.Ollama), num(w.OverWeft))
		switch {
		case w.Ollama.Wrong != "":
			notes = append(notes, w.Work+": ollama has no time: "+w.Ollama.Wrong)
		case w.OllamaChunks != r.Chunks:
			notes = append(notes, fmt.Sprintf("%s: ollama is wrong with %s chunks; its time is with %s chunks",
				w.Work, r.Chunks, w.OllamaChunks))
		}
	}
	t.Flush()
	if r.Growth > 0 {
		fmt.Fprintf(out, "growth, 1 MB over 10 KB: weft %.2f (over one reply repeated: %.2f)", r.Growth, r.Repeated)
		if r.OllamaGrowth > 0 {
			fmt.Fprintf(out, "; ollama %.1f (%s over 10 KB)", r.OllamaGrowth, r.OllamaGrowthAt)
		}
		fmt.Fprintln(out)
	}
	if r.Ollama == "" {
		notes = append(notes, "ollama has no parser of this family")
	}
	for _, n := range notes {
		fmt.Fprintln(out, "  "+n)
	}
	line, err := json.Marshal(r)
	if err != nil {
		panic("parsers: " + err.Error())
	}
	fmt.Fprintf(out, "%s\n", line)
}

func num(x float64) string {
	switch {
	case x == 0:
		return "-"
	case x < 100:
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

func ns(t *bench.Timing) string {
	if t.Wrong != "" {
		return "none"
	}
	return num(t.NS)
}

func allocs(t *bench.Timing) string {
	if t.Wrong != "" || t.Rounds == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f", t.Allocs)
}

// summary prints a table in Markdown: each ratio with its goal.
func summary(out io.Writer, reports []*report) {
	fmt.Fprintln(out, "\n| family | plain, × floor (≤) | allocs a chunk | agentic, × floor (≤) "+
		"| 1 MB over 10 KB (≤) | over one reply repeated (≤) | ollama × weft: plain | agentic | short | ollama growth | right |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|---|---|---|---|")
	for _, r := range reports {
		if r.NotBuilt != "" {
			fmt.Fprintf(out, "| %s | not built |%s\n", r.Family, strings.Repeat(" |", 9))
			continue
		}
		over := func(work string, bar float64) string {
			if w := r.at(work); w != nil && w.OverFloor > 0 {
				return goal(w.OverFloor, bar, w.Weft.Noisy())
			}
			return "-"
		}
		peer := func(work string) string {
			w := r.at(work)
			switch {
			case w == nil || w.Ollama == nil:
				return "-"
			case w.Ollama.Wrong != "":
				return "wrong"
			case w.OllamaChunks != r.Chunks:
				return fmt.Sprintf("%.1f (%s)", w.OverWeft, w.OllamaChunks)
			}
			return fmt.Sprintf("%.1f", w.OverWeft)
		}
		plainAllocs := "-"
		if w := r.at("plain"); w != nil {
			plainAllocs = "0"
			if a := w.Weft.Allocs; a > 0 {
				plainAllocs = fmt.Sprintf("%.4f: %.0f a reply", a, a*float64(w.Chunks))
			}
		}
		grow, repeated, peerGrow := "-", "-", "-"
		if r.Growth > 0 {
			noisy := r.at("growth-1048576").Weft.Noisy()
			grow = goal(r.Growth, r.bars.Growth, noisy || r.at(moreName).Weft.Noisy())
			repeated = goal(r.Repeated, r.bars.Growth, noisy)
		}
		if r.OllamaGrowth > 0 {
			peerGrow = fmt.Sprintf("%.1f at %s", r.OllamaGrowth, r.OllamaGrowthAt)
		}
		right := "yes"
		if !r.right() {
			right = "NO"
		}
		cells := []string{
			r.Family, over("plain", r.bars.Plain), plainAllocs, over("agentic", r.bars.Agentic), grow, repeated,
			peer("plain"), peer("agentic"), peer("short"), peerGrow, right,
		}
		fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
	}
}

func goal(x, bar float64, noisy bool) string {
	mark := ""
	if x > bar {
		mark = " MISSED"
	}
	if noisy {
		mark += " noisy"
	}
	return fmt.Sprintf("%.2f (%.1f)%s", x, bar, mark)
}
