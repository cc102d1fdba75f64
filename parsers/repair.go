// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"github.com/weft-go/weft/parsers/args"
	"github.com/weft-go/weft/parsers/internal/scan"
	"github.com/weft-go/weft/protocols/event"
)

// beginRepair reports whether the JSON arguments, which end at pos with something that is not JSON, may only lack closing
// brackets. repair then looks for the closing tag.
func (p *Parser) beginRepair() bool {
	if !p.opt.Policy.Repair || p.c.tag == nil || len(p.c.callClose.markers) == 0 || !p.lex.Closable() {
		return false
	}
	p.node, p.state = 0, stRepair
	return true
}

// repair adds the brackets that the arguments lack, if the closing tag of the call follows.
func (p *Parser) repair() bool {
	switch _, st := p.expect(p.c.callClose); st {
	case scan.More:
		return false
	case scan.No:
		return p.broken(event.BadArguments)
	}
	n := len(p.out)
	p.out = p.lex.AppendClosers(p.out)
	p.arguments(p.out[n:len(p.out):len(p.out)], p.mark)
	p.endCall(p.pos, event.Recovered|event.Repaired)
	p.afterBlock()
	return true
}

// endTruncated completes a call at the end of the stream, if the policy wants values that were cut.
func (p *Parser) endTruncated() bool {
	if !p.opt.Policy.EmitTruncated || p.c.tag == nil || p.call.failed || p.state != stValue && p.state != stConfirm ||
		p.param.types != args.String {
		return false
	}
	if p.closeEnd = len(p.win); p.state == stValue {
		p.closeAt = len(p.win)
	}
	p.endValue()
	p.endParams(len(p.win), event.Recovered|event.Repaired)
	return true
}
