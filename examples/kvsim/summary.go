// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"html"
	"math"

	"github.com/weft-go/weft/router/sim"
)

// summarize sets the figures of the rows from their results. The ratios are to the first row of the same workers and load.
func summarize(rows []*row) {
	var base *row
	for _, r := range rows {
		if base == nil || base.Workers != r.Workers || base.Load != r.Load {
			base = r
		}
		n := float64(r.Seeds)
		for _, res := range r.results {
			r.Requests += res.Requests()
			r.Mean += ms(res.Mean()) / n
			r.P50 += ms(res.Percentile(50)) / n
			r.P90 += ms(res.Percentile(90)) / n
			r.End += ms(res.End()) / n
			r.Cached += res.Hit() / n
		}
		r.MeanRatio, r.MeanRatioCI = paired(r, base, func(s *sim.Result) float64 { return ms(s.Mean()) })
		r.P90Ratio, r.P90RatioCI = paired(r, base, func(s *sim.Result) float64 { return ms(s.Percentile(90)) })
	}
}

func ms[D ~int64](d D) float64 { return float64(d) / 1e6 }

// paired returns the geometric mean of the ratios of two rows with equal seeds, and half of its 95 % confidence interval.
func paired(a, b *row, figure func(*sim.Result) float64) (ratio float64, ci *float64) {
	var logs []float64
	var sum float64
	for i := range a.results {
		x, y := figure(a.results[i]), figure(b.results[i])
		if x <= 0 || y <= 0 {
			return 0, nil // nothing was measured
		}
		logs = append(logs, math.Log(x/y))
		sum += math.Log(x / y)
	}
	n := float64(len(logs))
	mean := sum / n
	if len(logs) > 1 {
		var squares float64
		for _, l := range logs {
			squares += (l - mean) * (l - mean)
		}
		half := math.Expm1(student(len(logs)-1) * math.Sqrt(squares/(n-1)/n))
		ci = &half
	}
	return math.Exp(mean), ci
}

// student returns the 97.5 % quantile of Student's t distribution with n degrees of freedom, within 1 %.
func student(n int) float64 {
	table := [...]float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228}
	if n <= len(table) {
		return table[n-1]
	}
	return 1.960 + 2.5/float64(n)
}

// report returns an HTML page with a table and a plot for each number of workers and load.
func report(rows []*row, args string) []byte {
	var b bytes.Buffer
	b.WriteString(`<!doctype html><html lang="en"><meta charset="utf-8"><title>kvsim</title>
<style>body{font:14px/1.4 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em}table{border-collapse:collapse;margin:1em 0}
td,th{padding:.2em .8em;text-align:right;border-bottom:1px solid #ccc}td:first-child,th:first-child{text-align:left}svg{display:block}
.mean{fill:#2b6cb0}.p90{fill:#a8c7e8}text{font:12px system-ui,sans-serif;fill:currentColor}</style>
<h1>Routing policies compared</h1>
`)
	fmt.Fprintf(&b, "<p><code>kvsim %s</code></p>\n<p>Times to first token in simulated fleets. Ratios are to the first policy with the same seeds; ± is a 95 %% confidence interval.</p>\n", html.EscapeString(args))
	for from := 0; from < len(rows); {
		to := from
		for to < len(rows) && rows[to].Workers == rows[from].Workers && rows[to].Load == rows[from].Load {
			to++
		}
		cell(&b, rows[from:to])
		from = to
	}
	b.WriteString("</html>\n")
	return b.Bytes()
}

// cell writes the rows that are compared with each other.
func cell(b *bytes.Buffer, rows []*row) {
	r := rows[0]
	fmt.Fprintf(b, "<h2>%s, %d workers, load %g</h2>\n", html.EscapeString(r.Workload), r.Workers, r.Load)
	b.WriteString("<table><tr><th>policy<th>mean ms<th>ratio<th>p50 ms<th>p90 ms<th>ratio<th>end ms<th>cached</tr>\n")
	longest := 0.0
	for _, r := range rows {
		longest = max(longest, r.P90, r.Mean)
		fmt.Fprintf(b, "<tr><td>%s<td>%.0f<td>%s<td>%.0f<td>%.0f<td>%s<td>%.0f<td>%.1f %%</tr>\n", html.EscapeString(r.Policy), r.Mean, withCI(r.MeanRatio, r.MeanRatioCI),
			r.P50, r.P90, withCI(r.P90Ratio, r.P90RatioCI), r.End, 100*r.Cached)
	}
	b.WriteString("</table>\n")
	const left, width, height = 180, 560, 34
	fmt.Fprintf(b, `<svg width="%d" height="%d" role="img" aria-label="mean and 90th percentile of the time to first token">`, left+width+90, height*len(rows)+24)
	for i, r := range rows {
		y := i * height
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, left-8, y+20, html.EscapeString(r.Policy))
		for k, bar := range []struct {
			class string
			ms    float64
		}{{"mean", r.Mean}, {"p90", r.P90}} {
			w := int(width * bar.ms / max(longest, 1e-9))
			fmt.Fprintf(b, `<rect class="%s" x="%d" y="%d" width="%d" height="13"/><text x="%d" y="%d">%.0f</text>`, bar.class, left, y+3+k*14, w, left+w+5, y+14+k*14, bar.ms)
		}
	}
	fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\">upper bar: mean; lower bar: 90th percentile, in ms</text></svg>\n", left, height*len(rows)+18)
}

func withCI(ratio float64, ci *float64) string {
	if ci == nil {
		return fmt.Sprintf("%.3f", ratio)
	}
	return fmt.Sprintf("%.3f ± %.3f", ratio, ratio**ci)
}
