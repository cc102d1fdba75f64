// SPDX-License-Identifier: Apache-2.0

package parsers

// Held returns how many bytes of the stream p holds back between calls.
func (p *Parser) Held() int { return len(p.win) - p.start }

// In returns the value of each rule of p for a family, by its canonical name.
func (p Policy) In(family string) map[string]string {
	r, all := p.rules(family), map[string]string{}
	for _, rule := range policyRules {
		values := rule.values
		if values == nil {
			values = policySwitch
		}
		for i, value := range values {
			same := r
			if rule.set(&same, uint8(i)); same == r {
				all[rule.name] = value
			}
		}
	}
	return all
}

// Kept returns how many bytes of memory the buffers of p have.
func (p *Parser) Kept() int {
	return cap(p.buf) + cap(p.out) + cap(p.raw) + cap(p.call.name) + cap(p.call.id) +
		cap(p.param.key) + p.param.seen.Cap() + 8*cap(p.tokEnds) + 24*cap(p.tokMarks) + p.layout.kept()
}
