// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"strings"

	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/parsers/internal/scan"
	"github.com/weft-go/weft/parsers/internal/work"
	"github.com/weft-go/weft/protocols/event"
)

// textRun is the state of a run of visible text or reasoning, in every layout, and of the output before it.
type textRun struct {
	reasoning bool   // reasoning is open; a call inside it returns to it
	runOpen   bool   // the current run has emitted something
	trim      string // structural white space that may still follow
	label     string // of reasoning, that may still follow
	prefix    string // of the text: an opening tag that is in the prompt
	last      byte   // the last byte emitted in this run
	quoting   bool   // an opening tag was left in this run as text
	cited     bool   // the run is inside a citation
	thought   bool   // there was reasoning
	joinable  bool   // the last block is reasoning that was closed, with nothing after it, and another one continues it
	lastCall  bool   // the last block was a call
	echoable  bool   // an echoed reasoning opener may still come
	framed    bool   // the run is inside a frame that the model opened for it
	mute      bool   // text inside the frame has no recipient
	want      bool   // a guided document is still expected
	bare      bool   // calls may come without a tag, as JSON objects

	textMarkers, reasonMarkers *markerSet
	plainMarkers               *markerSet // textMarkers before the first call
	bracedMarkers              *markerSet // textMarkers after it, or nil if they remain
}

// block opens a new output block unless one of kind k that may continue is open.
func (p *machine) block(k event.Kind) {
	if p.partKind != k {
		p.part++
		p.partKind = k
	}
	p.joinable, p.lastCall = false, false
}

// flush emits the run up to window position to. Unless closing, when a marker follows at to, it holds back what may
// still turn out to be structure or half a character.
func (p *machine) flush(to int, closing bool) {
	if p.label != "" && !closing && !p.trimLabel(to, !p.final) {
		return
	}
	p.trimLead(to)
	if p.start >= to {
		return
	}
	kind := event.Text
	if p.reasoning {
		kind = event.Reasoning
	}
	if p.c.frames && !p.framed && p.part < 0 && !closing && p.rules.dropUnframed && !p.tooLong(p.start, p.lim.HeldBytes) {
		if p.final {
			p.start = to
		}
		return
	}
	if !closing && !p.runOpen && (!p.reasoning || p.echoable) && p.blankRun(to) {
		return
	}
	if !closing && !p.final {
		to = p.unpadded(to)
		to = p.whole(p.start, to)
	}
	p.put(kind, to)
}

// trimLead drops the structural white space at the beginning of a run.
func (p *machine) trimLead(to int) {
	if p.label != "" && !p.trimLabel(to, to == len(p.win) && !p.final) {
		return
	}
	for p.trim != "" && p.start < to {
		if p.win[p.start] != p.trim[0] {
			p.trim = ""
			break
		}
		p.trim = p.trim[1:]
		p.start++
	}
	p.skipTo(p.start)
}

// skipTo makes at the next position to examine if the current one is before it.
func (p *machine) skipTo(at int) {
	if p.pos < at {
		p.pos, p.node = at, 0
	}
}

// trimLabel drops the label of reasoning at the beginning of a run, which goes on after window position to if more is set.
// It reports false while the label may still follow.
func (p *machine) trimLabel(to int, more bool) bool {
	n := 0
	st, at := scan.Match(p.win[:to], p.start, p.label, &n)
	if st == scan.More && more {
		return false
	}
	if st == scan.Yes || st == scan.More && n > 0 && n == len(strings.TrimRight(p.label, "\n")) {
		p.start = at
	}
	p.label = ""
	p.skipTo(p.start)
	return true
}

// unpadded returns the window position before the white space that ends the run at to and may belong to the marker that
// follows it.
func (p *machine) unpadded(to int) int {
	if p.reasoning {
		if to > p.start && p.structural(p.win[to-1]) {
			to--
		}
		return to
	}
	n := len(p.c.before)
	if p.c.tags {
		switch p.rules.before {
		case beforeDrop:
			return p.unblanked(to)
		case beforeKeep:
			n = 0
		}
	}
	for ; n > 0 && to > p.start && p.structural(p.win[to-1]); n-- {
		work.Add(1)
		to--
	}
	return to
}

// unblanked returns the window position before the white space that ends the run at to, at most MaxHold bytes of it.
// Each byte is examined once.
func (p *machine) unblanked(to int) int {
	i := max(p.padSeen, p.start)
	work.Add(max(0, to-i))
	for ; i < to; i++ {
		if !blank(p.win[i]) {
			p.padEnd = i + 1
		}
	}
	if p.padSeen = max(p.padSeen, to); p.padEnd > to { // to is before a marker that was seen
		for i = to; i > p.start && blank(p.win[i-1]); i-- {
		}
		return i
	}
	return max(p.padEnd, p.start, to-p.c.g.MaxHold)
}

// structural reports whether c may be white space that belongs to the marker after the run.
func (p *machine) structural(c byte) bool { return p.edge(p.reasoning).has(c) }

// edge returns the edge of a run of reasoning or text.
func (p *machine) edge(reasoning bool) edge {
	switch {
	case !reasoning:
		return edge{last: p.c.before[:min(1, len(p.c.before))], blanks: p.rules.before == beforeDrop}
	case p.rules.keepTail:
		return edge{}
	}
	return edge{last: p.c.tail}
}

// edge is the white space that may belong to the marker after a run.
type edge struct {
	last   string // these bytes
	blanks bool   // and all blanks
	value  bool   // the run is the value of a parameter
}

func (e edge) has(c byte) bool { return strings.IndexByte(e.last, c) >= 0 || e.blanks && blank(c) }

// put emits win[start:to] as kind and moves start.
func (p *machine) put(kind event.Kind, to int) {
	if p.start >= to {
		return
	}
	if kind == event.Text && p.hides() {
		p.runOpen, p.last = true, p.win[to-1]
		p.start = to
		return
	}
	if !p.runOpen && kind == event.Reasoning && p.joinable && p.partKind == event.Reasoning {
		p.emit(kind, p.made([]byte("\n")), p.start, p.start)
	}
	p.block(kind)
	if p.prefix != "" {
		p.emit(kind, p.made([]byte(p.prefix)), p.start, p.start)
		p.prefix = ""
	}
	p.runOpen, p.echoable = true, false
	p.emit(kind, p.win[p.start:to:to], p.start, to)
	p.last = p.win[to-1]
	p.start = to
}

// hides reports whether text is dropped because it comes after a call, or next to one in a message to a tool.
func (p *machine) hides() bool {
	return p.rules.dropAfterCall && p.complete > 0 && p.c.tags || p.mute && p.framed
}

// blankRun reports whether the run, which has emitted nothing, is up to window position to only white space and little of
// it.
func (p *machine) blankRun(to int) bool {
	if p.blanksCount() && !p.want && !p.bare {
		return false
	}
	p.from = max(p.from, p.start)
	for p.from < to && blank(p.win[p.from]) {
		work.Add(1)
		p.from++
	}
	return p.from >= to && to-p.start <= p.c.g.MaxHold
}

// blanksCount reports whether a run of nothing but white space is text: by policy, or because it fills a frame that the
// model opened for text.
func (p *machine) blanksCount() bool {
	return p.rules.keepBlanks || (p.framed && !p.mute) && p.opt.Output == Native
}

// closeRun ends the run before a block whose marker is at mark: it emits what is left of the run, or drops it if it is
// only white space. It moves start to mark.
func (p *machine) closeRun() {
	p.dropBlanks(p.mark)
	p.flush(p.mark, true)
	p.start = max(p.start, p.mark)
	p.newRun()
}

// closeRunAt is closeRun with the marker at window position at.
func (p *machine) closeRunAt(at int) {
	p.mark = at
	p.closeRun()
}

// strip drops the marker just found, an orphan, from the run it is in.
func (p *machine) strip() {
	p.dropBlanks(p.mark)
	p.flush(p.mark, true)
	p.start = p.pos
}

// newRun begins a run of text or reasoning at start.
func (p *machine) newRun() {
	p.runOpen, p.trim, p.label, p.from = false, "", "", p.start
	p.last, p.quoting, p.cited = 0, false, false
}

// dropBlanks drops the run before window position to if it is white space that has not been emitted.
func (p *machine) dropBlanks(to int) {
	if !p.reasoning && !p.runOpen && !p.blanksCount() {
		if p.trimLead(to); p.blankRun(to) {
			p.start = to
		}
	}
}

// untouched reports whether the run before mark is empty, or white space that was not emitted.
func (p *machine) untouched() bool {
	p.trimLead(p.mark)
	return !p.runOpen && (p.start >= p.mark || p.blankRun(p.mark))
}

// beforeBlock returns the end of the text before a block whose marker is at window position at, less the structural
// white space between them.
func (p *machine) beforeBlock(at int) int {
	if p.reasoning {
		return at
	}
	return p.unpadded(at)
}

// openReasoning begins a span of reasoning after a marker.
func (p *machine) openReasoning(r *grammar.Reasoning) {
	p.start = p.pos
	p.newRun()
	p.reasoning, p.thought, p.trim, p.label = true, true, r.Lead, r.Label
}

// closeReasoning ends the span of reasoning at mark, less the structural newline before it.
func (p *machine) closeReasoning(after string) {
	p.trimLead(p.mark)
	p.flush(p.unpadded(p.mark), true)
	wrote := p.partKind == event.Reasoning
	p.start = p.pos
	p.reasoning = false
	p.newRun()
	p.trim = after
	p.joinable = wrote && p.rules.joinThoughts
	if !p.joinable {
		p.endBlock()
	}
}

// textSet returns the markers that matter in the current run.
func (p *machine) textSet() *markerSet {
	if p.reasoning {
		return p.reasonMarkers
	}
	return p.textMarkers
}
