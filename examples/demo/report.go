// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weft-go/weft/router"
)

// A printer writes the report. It keeps the first error of the writer.
type printer struct {
	w       io.Writer
	color   bool
	verbose bool
	err     error
}

func newPrinter(w io.Writer, color, verbose bool) *printer {
	return &printer{w: w, color: color, verbose: verbose}
}

// The colors, as SGR parameters.
const (
	bold    = "1"
	dim     = "2"
	green   = "32"
	yellow  = "33"
	magenta = "35"
	cyan    = "36"
)

// paint wraps text in a color.
func (p *printer) paint(sgr, text string) string {
	if !p.color {
		return text
	}
	return "\x1b[" + sgr + "m" + text + "\x1b[0m"
}

func (p *printer) line(format string, args ...any) { p.print(format+"\n", args...) }

func (p *printer) print(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

// title prints the first line, before any work.
func (p *printer) title() {
	p.line("%s: an agent repairs a failing test over three APIs, through one gateway with two engines. It takes about 4 seconds.", p.paint(bold, "weft demo"))
}

// begin prints the start of a conversation, progress the end of one of its turns, and end the end of the line.
func (p *printer) begin(what string) { p.print("  playing %-24s ", what) }
func (p *printer) progress()         { p.print(".") }
func (p *printer) end()              { p.line(" done") }

// results prints the savings: kept and stripped are one conversation with and without the header, all is the three
// conversations.
func (p *printer) results(kept, stripped, all *ledger) {
	less := 100 - 100*float64(stripped.uncached)/float64(kept.uncached)
	p.line("")
	p.line("%s  Without the volatile header, engines compute %s prompt tokens.", p.paint(bold, "RESULT 1"), p.paint(green, fmt.Sprintf("%.0f %% fewer", less)))
	p.line("  Claude Code begins its system text with a billing header that changes with every request, so an engine's prefix cache")
	p.line("  never matches what follows. The gateway removes the header. Four turns of /v1/messages, on fresh engines:")
	p.line("  %-36s %14s %12s", "", "header kept", "stripped")
	p.line("  %-36s %14s %12s", "what ends the shared prefix", cmp.Or(kept.parts, "nothing"), cmp.Or(stripped.parts, "nothing"))
	p.line("  %-36s %14d %12d", "prompt tokens", kept.prompt, stripped.prompt)
	p.line("  %-36s %14d %s", "prompt tokens computed", kept.uncached, p.paint(green, fmt.Sprintf("%12d", stripped.uncached)))
	p.line("  %-36s %14s %s", "time to first token, mean (modeled)", secs(kept.first/time.Duration(kept.turns)),
		p.paint(green, fmt.Sprintf("%12s", secs(stripped.first/time.Duration(stripped.turns)))))
	p.line("  %-36s %14s %12s", "time to first token, worst (modeled)", secs(kept.worst), secs(stripped.worst))
	p.line("")
	p.line("%s  Early dispatch saves %s of the %s that %d turns take (modeled).", p.paint(bold, "RESULT 2"), p.paint(green, secs(all.won)), secs(all.ready+all.won), all.turns)
	p.line("  %d tool calls started as soon as each was complete in the stream, instead of at the end of the model's turn.", all.calls)
}

// story prints the heading and the question of a conversation.
func (p *printer) story(s story) {
	p.line("")
	p.line("%s  %s  “%s”", p.paint(bold, "/v1/"+path(s.api)), p.paint(dim, s.family), s.question)
}

func path(api string) string {
	if api == "chat" {
		return "chat/completions"
	}
	return api
}

// turn prints a turn: one line or, if verbose, a timeline.
func (p *printer) turn(t *turn) {
	p.line(" %s  %d prompt tokens, %s cached → %s", p.paint(bold, fmt.Sprint("turn ", t.n)), t.prompt,
		p.paint(green, fmt.Sprintf("%4d", t.cached)), p.choice(&t.decision)+p.paint(dim, p.summary(t)))
	if p.verbose {
		p.timeline(t)
	}
}

// summary returns the actions of the turn for a line without a timeline.
func (p *printer) summary(t *turn) string {
	switch {
	case p.verbose:
		return ""
	case len(t.tools) == 0:
		return "; the final text"
	}
	var names []string
	var ahead time.Duration
	for _, r := range t.tools {
		names = append(names, r.name)
		ahead = max(ahead, t.end-r.dispatched)
	}
	return fmt.Sprintf("; %s, the first %s before the turn ended", strings.Join(names, " and "), secs(ahead))
}

// timeline prints everything that the client received in a turn.
func (p *printer) timeline(t *turn) {
	var rows []row
	add := func(at time.Duration, what, sgr, format string, args ...any) {
		rows = append(rows, row{at, what, sgr, fmt.Sprintf(format, args...)})
	}
	if t.stripped > 0 && t.n == 1 {
		add(0, "stripped", dim, "%s", p.paint(dim, fmt.Sprintf("%d bytes of billing header, as in every turn", t.stripped)))
	}
	if t.reasoning.text != "" {
		add(t.reasoning.first, "reasoning", dim, "%s", p.paint(dim, clip(t.reasoning.text, width)))
	}
	if t.text.text != "" {
		add(t.text.first, "text", "", "%s", clip(t.text.text, width))
	}
	for _, r := range t.tools {
		add(r.begun, "call", yellow, "%s %s", r.name, p.paint(dim, clip(r.args, width-len(r.name))))
		ahead := ""
		if d := t.end - r.dispatched; d >= 100*time.Millisecond {
			ahead = fmt.Sprintf(" %s before the turn ended", secs(d))
		}
		lines := strings.Count(strings.TrimSpace(r.result), "\n") + 1
		add(r.dispatched, "dispatched", magenta, "%s%s%s", r.name, ahead,
			p.paint(dim, fmt.Sprintf("; %s at %s", count(lines, "line of result", "lines of result"), secs(r.done))))
	}
	add(t.end, "turn ended", "", "%s", p.paint(dim, fmt.Sprintf("%s, %d tokens", t.finish, t.output)))
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.at, b.at) })
	for _, r := range rows {
		p.row(r)
	}
}

// choice returns the router's estimates: for the chosen engine, and for the next best one.
func (p *printer) choice(d *router.Decision) string {
	cost := fmt.Sprintf(" %.0f ms", whole(d.Cost))
	if p.verbose {
		cost = " " + d.String()
	}
	out := p.paint(cyan, d.Key.String()) + p.paint(dim, cost)
	if key, cost, ok := d.Next(); ok {
		out += p.paint(dim, fmt.Sprintf(", %s %.0f ms", key, whole(cost)))
	}
	return out
}

// terms explains the words of the report.
func (p *printer) terms(speed float64) {
	p.line("")
	p.line("%s", p.paint(bold, "Terms"))
	p.line("  ada, bob       the two engines: vLLM's HTTP API with a real prefix cache. The model's words are scripted; tokens,")
	p.line("                 caches, routing, parsing and tools are real.")
	p.line("  cached         prompt tokens that the engine still has from an earlier request and does not compute again")
	p.line("  → ada 71 ms    the router's choice, with its estimate for each engine; the lowest wins. The estimate is mainly the time")
	p.line("                 to compute the tokens that are not cached there (new); a busy fleet adds a price for computing them twice")
	p.line("                 (move); -v prints the terms")
	p.line("  modeled        on a clock that runs %.0f times as fast as yours, at %.0f prompt tokens/s and %v for each output token", speed, timing.PrefillPerSecond, timing.DecodePerToken)
}

// next prints commands to try next.
func (p *printer) next() {
	p.line("")
	p.line("%s", p.paint(bold, "Next"))
	p.line("  go run ./examples/demo -v       everything that arrived, with its time")
	p.line("  go run ./examples/agent         an agent without a gateway: parsers on a raw completion stream")
	p.line("  go run ./examples/gateway -h    the gateway alone, in front of your engines (see examples/README.md)")
}

// A row is one line of a turn's timeline.
type row struct {
	at        time.Duration
	what, sgr string
	text      string
}

// width is the largest number of characters in a row's text.
const width = 88

func (p *printer) row(r row) {
	label := fmt.Sprintf("%-10s", r.what)
	if r.sgr != "" {
		label = p.paint(r.sgr, label)
	}
	p.line("  %7s  %s  %s", secs(r.at), label, r.text)
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", many)
}

func secs(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// clip returns text as one line of at most n characters.
func clip(text string, n int) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return text
}

// whole rounds x and returns 0 instead of -0, which would print a minus sign.
func whole(x float64) float64 { return math.Round(x) + 0 }
