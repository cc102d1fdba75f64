// SPDX-License-Identifier: Apache-2.0

package parsers

// Held returns how many bytes of the stream p holds back between calls.
func (p *Parser) Held() int { return len(p.win) - p.start }

// Kept returns how many bytes of memory the buffers of p have.
func (p *Parser) Kept() int {
	return cap(p.buf) + cap(p.out) + cap(p.raw) + cap(p.spare) + cap(p.call.name) + cap(p.call.id) + cap(p.json.args) +
		cap(p.param.key) + p.param.seen.Cap() + 8*cap(p.tokEnds) + 24*cap(p.tokMarks) +
		cap(p.header.channel) + cap(p.header.recipient) + cap(p.header.ctype)
}
