// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"github.com/weft-go/weft/protocols/event"
)

// text passes on visible text and reasoning up to the next marker, and lets the layout decide what the marker means.
func (p *machine) text() bool {
	if p.restore {
		p.restoreText(p.start)
	}
	if !p.reasoning && !p.runOpen && (p.label == "" || p.trimLabel(len(p.win), !p.final)) {
		if p.want && p.beginGuided() {
			return true
		}
		if p.bare {
			if begun, waits := p.layout.bareCall(); begun {
				return !waits
			}
		}
	}
	s := p.textSet()
	m := p.find(s)
	if m < 0 {
		if p.final {
			p.flush(len(p.win), false)
			p.lastBlanks()
		} else {
			p.flush(p.free(s), false)
		}
		return false
	}
	p.layout.marker(s.markers[m])
	return true
}

// lastBlanks settles white space at the end of the stream: after a call it is structure, otherwise it is the response.
func (p *machine) lastBlanks() {
	if p.start >= len(p.win) {
		return
	}
	if p.reasoning {
		p.put(event.Reasoning, len(p.win))
		return
	}
	if p.lastCall {
		p.dropBlanks(len(p.win))
	}
	p.put(event.Text, len(p.win))
}
