// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/weft-go/weft/internal/bench/kvindex"
)

// printer prints tables, or lines if enc is there.
type printer struct {
	out   io.Writer
	enc   *json.Encoder
	lines []string // verdicts, kept for the end of a table
}

func (p *printer) printf(format string, args ...any) {
	if p.enc == nil {
		fmt.Fprintf(p.out, format, args...)
	}
}

// line prints a measurement of some kind.
func (p *printer) line(kind string, v any) {
	if p.enc != nil {
		_ = p.enc.Encode(map[string]any{kind: v})
	}
}

func (p *printer) head(rounds int) {
	p.printf("%s %s/%s, %s, %d rounds, %s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, cpuName(), rounds,
		time.Now().UTC().Format("2006-01-02 15:04 MST"))
	p.line("run", map[string]any{
		"go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH, "cpu": cpuName(), "rounds": rounds, "time": time.Now().UTC(),
	})
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

func (p *printer) comparisonHead() {
	p.printf("\nOne thread. x weft: what it takes over what weft takes, lookup and event\n%-15s %-6s %9s %8s %8s %8s %7s %8s %8s %7s %7s %9s\n",
		"", "", "us/query", "p50", "p99", "ns/block", "B/res", "allocs/q", "allocs/e", "x weft", "x weft", "Mblocks/s")
}

func (p *printer) comparison(c *kvindex.Comparison, goals []kvindex.Goal) {
	p.line("workload", struct {
		*kvindex.Comparison
		Reference any            `json:"crtc,omitempty"`
		Goals     []kvindex.Goal `json:"goals"`
	}{c, reference(c.Workload), goals})
	name := c.Workload
	for i := range c.Costs {
		k := &c.Costs[i]
		if k.Wrong != "" {
			p.printf("%-15s %-6s WRONG, no times: %s\n", name, k.Peer, k.Wrong)
			name = ""
			continue
		}
		note := ""
		if k.Noisy {
			note = "  noisy"
		}
		if k.Asked < c.Queries {
			note += fmt.Sprintf("  (%d of %d queries)", k.Asked, c.Queries)
		}
		memory := fmt.Sprintf("%7.1f %8.4f %8.4f", k.BytesPerResidency, k.AllocsPerQuery, k.AllocsPerEvent)
		if k.Residencies == 0 { // measured by another process, which does not report it
			memory = fmt.Sprintf("%7s %8s %8s", "-", "-", "-")
		}
		p.printf("%-15s %-6s %9.2f %8.2f %8.2f %8.1f %s %7.2f %7.2f %9.1f%s\n", name, k.Peer, k.USPerQuery, k.USPerQueryP50, k.USPerQueryP99,
			k.NSPerEventBlock, memory, k.QueryRatio, k.EventRatio, k.BlockOpsPerS/1e6, note)
		name = ""
	}
	if ref, ok := kvindex.ReferenceOf(c.Workload); ok {
		p.printf("%-15s %-6s %9.1f %8s %8s %8.0f %7.0f   elsewhere: orientation only\n", "", "(crtc)", ref.USPerQuery, "", "",
			ref.NSPerEventBlock, ref.BytesPerResidency)
	}
	line := fmt.Sprintf("%-15s checksum %d", c.Workload, c.Checksum)
	if c.Known {
		line += " as published"
	}
	line += fmt.Sprintf("; %d first blocks, %.0f %% of the blocks in the largest shard", c.Roots, 100*c.LargestRoot)
	p.lines = append(p.lines, line+verdict(goals))
}

// verdict lists the missed goals.
func verdict(goals []kvindex.Goal) string {
	var missed []string
	for _, g := range goals {
		if !g.Met {
			missed = append(missed, fmt.Sprintf("%s %.4g (goal %.4g)", g.What, g.Is, g.Want))
		}
	}
	if len(missed) == 0 {
		return fmt.Sprintf("; all %d goals hold", len(goals))
	}
	return "; MISSED: " + strings.Join(missed, ", ")
}

func reference(name string) any {
	if ref, ok := kvindex.ReferenceOf(name); ok {
		return map[string]float64{
			"us_per_query": ref.USPerQuery, "ns_per_event_block": ref.NSPerEventBlock, "bytes_per_residency": ref.BytesPerResidency,
		}
	}
	return nil
}

// definition defines block operations.
const definition = `Mblocks/s: millions of block operations a second, as others count: a query counts all its block hashes, looked at or not, an event
counts the blocks that it stores or removes. Time ends when every event is visible to lookups; events are applied when the call returns, so
that there is no queue to drain. Prefix-heavy workloads have high numbers whatever the index does: compare us/query and ns/block.
`

func (p *printer) comparisonEnd() {
	if len(p.lines) == 0 {
		return
	}
	p.printf("\n%s\n", definition)
	for _, l := range p.lines {
		p.printf("%s\n", l)
	}
}

func (p *printer) concurrent(b *kvindex.Beside, readers []kvindex.Readers, goals []kvindex.Goal) {
	p.line("beside", struct {
		*kvindex.Beside
		Goals []kvindex.Goal `json:"goals"`
	}{b, goals})
	p.printf("\n%s: a reader and a writer, %d rounds; lookups per second of the reader's CPU time\n", b.Workload, b.Rounds)
	p.printf("  alone                                  %12.0f\n", b.Alone)
	p.printf("  beside a writer on the same index      %12.0f  %.3f of alone\n", b.Beside, b.Ratio)
	p.printf("  beside a writer on another index       %12.0f  %.3f of alone; same over other %.3f\n", b.Control, b.ControlRatio, b.OwnRatio)
	p.printf("  the writer: %.0f events/s, %.1f ns/block of its CPU time, %.4f allocs/event; both: %.1f Mblocks/s on %.2f CPUs\n", b.EventsPerS,
		b.NSPerEventBlock, b.AllocsPerEvent, b.BlockOpsPerS/1e6, b.CPUs)
	p.printf("  %s\n", strings.TrimPrefix(verdict(goals), "; "))
	p.printf("  %-10s %14s %14s %6s\n", "readers", "lookups/s", "per CPU s", "CPUs")
	for _, r := range readers {
		p.line("readers", r)
		p.printf("  %-10d %14.0f %14.0f %6.2f\n", r.Readers, r.PerS, r.PerCPUS, r.CPUs)
	}
}

func (p *printer) sizeHead() {
	p.printf("\nCost against size, a made-up fleet: sessions of 228 blocks that share 32\n")
	p.printf("%12s %8s %9s %9s %9s %9s %8s %9s\n", "residencies", "workers", "us/query", "us/best 3", "ns/block", "filling", "B/res", "MB")
}

func (p *printer) size(s kvindex.Sized) {
	p.line("size", s)
	p.printf("%12d %8d %9.2f %9.2f %9.1f %9.1f %8.1f %9.1f\n", s.Residencies, s.Workers, s.USPerQuery, s.USPerBest, s.NSPerEventBlock, s.NSPerBlockFilled,
		s.BytesPerResidency, s.MB)
}

// pauses prints how long events and lookups waited.
func (p *printer) pauses(list []kvindex.Pause) {
	for i := range list {
		p.line("pause", list[i])
	}
	p.printf("\nTimes beside something big: %d residencies on %d workers; events of 20 blocks, and lookups, in us on the clock\n", list[0].Residencies, list[0].Workers)
	p.printf("%10s %9s %9s %9s %9s %9s %9s\n", "", "ms", "events", "p99.9", "longest", "lookup", "longest")
	for _, q := range list {
		p.printf("%10s %9.1f %9d %9.0f %9.0f %9.0f %9.0f\n", q.What, q.MS, q.Events, q.EventP999, q.EventMax, q.LookupP999, q.LookupMax)
	}
}

// sizeEnd estimates the memory of a hundred million blocks from the largest size measured with that many workers.
func (p *printer) sizeEnd(last kvindex.Sized) {
	const n = 100_000_000
	mb := last.BytesPerResidency * n / 1e6
	p.line("size_computed", map[string]any{"residencies": n, "workers": last.Workers, "mb": mb, "from": last.Residencies})
	p.printf("%12d %8d %58.0f  computed from the bytes at %d\n", n, last.Workers, mb, last.Residencies)
}
