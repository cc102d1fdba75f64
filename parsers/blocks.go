// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"slices"
	"strings"

	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/parsers/internal/scan"
	"github.com/weft-go/weft/parsers/internal/work"
	"github.com/weft-go/weft/protocols/event"
)

// begin implements layout.
func (p *tagged) begin(start Start) {
	p.bare = p.tag.Bare && p.tag.Body.Call != nil && p.opt.calls()
	r := p.tag.Reasoning
	if start == StartUnspecified && r != nil && (r.Prompted || p.rules.forceReasoning) {
		start = StartReasoning
	}
	if start != StartReasoning {
		return
	}
	p.reasoning = r != nil && p.opt.Channels != OnlyTools
	p.echoable, p.thought = true, p.reasoning
	if !p.reasoning {
		return
	}
	p.trim, p.label = r.Lead, r.Label
	if r.Inline {
		p.reasoning = false
		p.prefix = r.Open.Text
		p.label = r.Open.Text // an echo
	}
}

// advance implements layout.
func (p *tagged) advance() bool {
	switch p.state { // the states of long arguments: three comparisons are faster than the switch
	case stJSON:
		return p.jsonBody()
	case stCodec:
		return p.codec()
	case stBareList:
		return p.bareList()
	}
	switch p.state {
	case stConfirm:
		return p.confirmParam()
	case stParams:
		return p.params()
	case stKey:
		return p.paramKey()
	case stAttr:
		return p.attribute()
	case stOpened:
		return p.opened()
	case stSuspect:
		return p.suspect()
	case stClosing:
		return p.closing()
	case stName:
		return p.callName()
	case stBody:
		return p.body()
	case stList:
		return p.list()
	case stEnd:
		return p.endOfCall()
	case stRepair:
		return p.repair()
	case stBrace:
		return p.bareBrace()
	case stSkip:
		return p.skip()
	case stCite:
		return p.endCitation()
	}
	return false
}

// jsonEnded implements layout.
func (p *tagged) jsonEnded(how jsonEnd) bool {
	switch {
	case how == jsonDone:
		return p.argumentsDone()
	case how == jsonBad && p.beginRepair():
		return true
	case how == jsonNone && p.pos == len(p.win):
		return false
	}
	return p.broken(event.BadArguments)
}

// passes implements layout.
func (p *tagged) passes() *plainRun {
	switch {
	case p.state == stJSON:
		if p.json.at == jsonValue && p.json.stream && p.inJSONString() && p.passing() {
			return p.runs.json
		}
	case p.state == stCodec && p.passer != nil && p.passing():
		if t := p.passer.Passes(); t != nil {
			if t != p.runs.table {
				p.runs.table = t
				p.runs.codec.compile(t, oddStop, edge{})
			}
			return &p.runs.codec
		}
	}
	return nil
}

// reset implements layout.
func (p *tagged) reset() {
	*p = tagged{
		machine: p.machine, tag: p.tag, sets: p.sets, dec: p.dec, passer: p.passer,
		spare: p.spare[:0], json: jsonCall{args: p.json.args[:0]},
	}
}

// kept implements layout.
func (p *tagged) kept() int { return cap(p.spare) + cap(p.json.args) }

// marker implements layout. For a marker that is data there is nothing to do: pos is after it and start before it.
func (p *tagged) marker(m marker) {
	t := p.tag
	switch r := m.role; r {
	case roleReasonOpen:
		switch {
		case !p.reasoning:
			p.closeRun()
			p.openReasoning(t.Reasoning)
		case p.untouched() && (p.echoable || p.start == p.mark): // again, or after the one in the prompt
			p.start, p.echoable = p.pos, false
			p.trim, p.label = t.Reasoning.Lead, t.Reasoning.Label
		}
	case roleReasonClose:
		switch {
		case p.reasoning:
			p.closeReasoning(t.Reasoning.After)
		case p.thought && (p.rules.dropOrphans || p.untouched()), !p.thought && !p.rules.keepOrphans && t.Reasoning.Close.Token:
			p.strip()
		}
	case roleBreak:
		p.pos = p.mark
		p.breakOut()
		p.newRun()
	case roleTurn:
		p.closeRun()
		p.start = p.pos
		p.newRun()
	case roleCiteOpen:
		if !p.cited {
			p.cited = true
			p.dropTag(p.mark)
		}
	case roleCiteClose:
		if p.cited {
			p.holdOpener()
			p.state = stCite
		}
	case roleWrapClose, roleCallClose:
		if !p.rules.keepOrphans && !p.closesText() {
			p.strip()
		}
	case roleBare:
		if p.off(p.mark) < p.dead || p.pos < len(p.win) && !blank(p.win[p.pos]) && !nameStart(p.win[p.pos]) {
			return // most brackets
		}
		p.holdOpener()
		p.beginBareList()
	case roleBrace:
		p.holdOpener()
		p.state = stBrace
	case roleWrapOpen, roleCallOpen:
		if p.reasoning && p.rules.openerEnds {
			p.pos = p.mark // it is read again, in the text
			p.breakOut()
			return
		}
		p.holdOpener()
		p.wrapper = r == roleWrapOpen
		p.state = stOpened
	}
}

// holdOpener holds the bytes at mark, since they may begin a call.
func (p *tagged) holdOpener() {
	if !p.untouched() {
		p.flush(p.beforeBlock(p.mark), true)
	}
	p.openAt, p.openEnd, p.lit = p.mark, p.pos, 0
	p.call.name, p.call.id = p.call.name[:0], p.call.id[:0]
}

// dropTag drops the tag of a citation, from window position from to pos, out of the run it is in.
func (p *tagged) dropTag(from int) {
	p.flush(from, true)
	p.start = p.pos
}

// endCitation reads the rest of the closing tag of a citation, which is dropped. What only begins like one is text.
func (p *tagged) endCitation() bool {
	for ; p.pos < len(p.win); p.pos++ {
		work.Add(1)
		switch c := p.win[p.pos]; {
		case c == '>':
			p.pos++
			p.dropTag(p.openAt)
			p.cited = false
			p.state = stText
			return true
		case c == '<', p.pos-p.openAt > p.c.g.MaxHold:
			p.state = stText
			return true
		}
	}
	if p.final { // the end of the stream cut the tag
		p.dropTag(p.openAt)
		p.state = stText
		return true
	}
	return false
}

// closesText reports whether the closing marker at mark ends something that was emitted as text: an opening tag without
// a call, or a call whose opening tag is missing. The marker is then text too.
func (p *tagged) closesText() bool {
	last := p.last
	if at := p.beforeBlock(p.mark); at > p.start {
		last = p.win[at-1]
	}
	if !p.reasoning && p.tag.Body.Call != nil && (last == '}' || last == ']') {
		p.quoting = true
	}
	return p.quoting
}

// opened determines whether a call follows an opening tag. Until then, the tag may be prose.
func (p *tagged) opened() bool {
	if p.want && p.node == 0 && p.openGuided() {
		return true
	}
	t := p.tag
	m, st := -1, scan.No
	if p.wrapper && t.Open.Text != "" && !p.objectInBlock() {
		m, st = p.expect(p.sets.callOpen)
	} else {
		p.skipBlanks()
		p.anchor = p.pos
		if p.pos < len(p.win) && t.Open.Text != "" && t.Open.Text[0] == '[' && p.win[p.pos] == '[' { // the tag again, or a list
			again, at := scan.Match(p.win, p.pos+p.lit, t.Open.Text, &p.lit)
			if again == scan.More && !p.final {
				return false
			}
			if p.lit = 0; again == scan.Yes && at-p.openAt <= p.c.g.MaxHold {
				p.pos = at
				return true
			}
		}
		switch {
		case p.pos == len(p.win):
			st = scan.More
		case t.Body.List == grammar.Dicts:
			if p.win[p.pos] == '[' && p.pos-p.openAt <= p.c.g.MaxHold {
				p.openLiteral()
				return true
			}
		case p.pos-p.openAt > p.c.g.MaxHold:
		case t.Body.Call != nil && p.win[p.pos] == '[' && t.Body.Codec != nil: // either kind of list
			if st = p.listOfObjects(p.pos); st == scan.No {
				p.listed = true
				p.pos++
				p.beginName()
				return true
			}
		case t.Body.Call != nil && (p.win[p.pos] == '{' || p.win[p.pos] == '['):
			st = scan.Yes
		case t.Name != nil:
			if p.wrapper && p.win[p.pos] == '[' { // a list of calls without tags of their own
				p.listed = true
				p.pos++
			}
			p.beginName()
			p.from = p.pos
			return true
		}
	}
	if p.anchor-p.openAt > p.c.g.MaxHold {
		p.pos, p.node, st = p.anchor, 0, scan.No
	}
	switch st {
	case scan.More:
		if !p.final {
			return false
		}
		if !p.wrapper && !t.Open.Token && (t.Quoted || t.Name != nil) {
			return p.doubt(p.pos)
		}
		return p.truncatedOpener() // the stream ends in or after the opening tag
	case scan.No:
		return p.doubt(p.pos)
	}
	if m < 0 && t.Quoted && p.win[p.pos] == '[' { // a word that also occurs in prose: a list of objects must follow
		i := p.pos + 1
		for i < len(p.win) && blank(p.win[i]) && i-p.pos < p.c.g.MaxHold {
			i++
		}
		switch {
		case i == len(p.win) && !p.final:
			return false
		case i == len(p.win) && t.Open.Token:
			return p.truncatedOpener()
		case i == len(p.win) || p.win[i] != '{' && !(p.win[i] == ']' && t.Open.Token):
			return p.doubt(p.pos)
		}
	}
	if m < 0 && p.tag.Body.Call.Strict {
		switch p.peekCall(p.pos) {
		case scan.More:
			if !p.final {
				return false
			}
		case scan.No:
			return p.doubt(p.pos)
		}
	}
	if m >= 0 && p.reasoning && !t.Open.Token { // a thought may be about tags
		p.beginName()
		return true
	}
	if !p.commit() {
		return false
	}
	p.start = p.pos
	if m >= 0 {
		p.beginName()
		return true
	}
	p.beginCalls()
	return true
}

// objectInBlock reports whether a call object follows the opening tag of a block, in families that write either.
func (p *tagged) objectInBlock() bool {
	if p.tag.Body.Call == nil || p.node != 0 {
		return false
	}
	p.skipBlanks()
	return p.pos < len(p.win) && p.win[p.pos] == '{'
}

// openGuided drops an opening tag that engines leave around a guided document: the bytes after it can only begin the
// document. It returns false if they cannot, or if more input is needed.
func (p *tagged) openGuided() bool {
	i := p.pos
	for i < len(p.win) && blank(p.win[i]) {
		work.Add(1)
		i++
	}
	if p.reasoning || p.runOpen || i == len(p.win) || i-p.openAt > p.c.g.MaxHold {
		return false
	}
	c := p.win[i]
	if !(p.opt.Output == GuidedRequired && c == '[' || c == '{' && p.tag.Body.Call == nil) {
		return false
	}
	p.mark = p.openAt
	p.closeRun()
	p.start, p.pos = i, i
	p.newRun()
	p.state = stText
	return true
}

// suspect searches for the closing tag after an opening tag without a call. If it follows soon, the tags are a broken
// call, whose markup must not be shown; otherwise they are prose.
func (p *tagged) suspect() bool {
	s := p.textSet()
	m := p.find(s)
	if m < 0 {
		p.mark = p.free(s)
	}
	far := p.mark-p.openAt > p.c.g.MaxHold
	if m >= 0 && !far && s.markers[m].role == roleBare {
		return true
	}
	if m >= 0 && !far && (s.markers[m].role == roleCallClose || s.markers[m].role == roleWrapClose) {
		end := p.pos
		if s.markers[m].role == roleWrapClose && p.mark == p.anchor { // an empty block
			p.mark = p.openAt
			p.dropBlanks(p.mark)
			p.flush(p.beforeBlock(p.mark), true)
			p.newRun()
			p.pos = end
			p.layout.afterBlock()
			return true
		}
		if !p.commit() {
			return false
		}
		p.abort(event.BadStructure, end)
		p.layout.afterBlock()
		return true
	}
	if r := roleNone; m >= 0 && !far {
		r = s.markers[m].role
		if (r == roleCallOpen || r == roleWrapOpen) && p.suspected && p.blankSince(p.openEnd) { // the tag again
			p.wrapper = r == roleWrapOpen
			p.openEnd, p.lit = p.pos, 0
			p.state = stOpened
			return true
		}
		if r == roleCallOpen && p.noisy { // all of it is markup if a call follows
			p.wrapper = true
			p.beginName()
			return true
		}
	}
	if m >= 0 || far || p.final {
		if m >= 0 {
			p.pos = p.mark
		}
		p.from = p.start
		p.quoting = true
		p.state = stText
		return true
	}
	return false
}

// blankSince reports whether nothing but white space is between window position from and mark.
func (p *tagged) blankSince(from int) bool {
	for _, c := range p.win[max(from, 0):p.mark] {
		if !blank(c) {
			return false
		}
	}
	return true
}

// closing reads on after a call until its block ends or another call begins. A block that is not closed ends at the
// first byte that cannot belong to it, so that no text is lost.
func (p *tagged) closing() bool {
	if p.node == 0 && p.nextInBlock() {
		waits := p.waiting
		p.waiting = false
		return p.err == nil && !waits
	}
	s := p.sets.closing
	if s == nil {
		if p.pos == len(p.win) && !p.final && p.pos-p.start <= p.c.g.MaxHold {
			return false
		}
		p.pos = p.start
		p.layout.afterBlock()
		return true
	}
	m, st := p.expect(s)
	if p.anchor-p.start > p.c.g.MaxHold {
		st = scan.No
	}
	switch st {
	case scan.More:
		if !p.final {
			return false
		}
		if p.node != 0 { // the beginning of a marker
			p.start = len(p.win)
			return false
		}
		fallthrough // the rest is white space
	case scan.No:
		p.node, p.pos = 0, p.anchor
		if p.inMessage {
			p.state = stSkip
			return true
		}
		p.wrapper, p.listed = false, false
		p.newRun()
		p.state = stText
		return true
	}
	switch {
	case s.markers[m].role == roleCallOpen:
		if !p.beginCall(p.mark) {
			return false
		}
		p.start = p.pos
		p.beginName()
	case s.markers[m].role == roleCallClose && p.wrapper:
		p.start = p.pos
	default:
		p.layout.afterBlock()
	}
	return true
}

// nextInBlock handles everything other than tags between the calls of one block: separators, the end of a list, the
// next call where calls have no tags. It reports whether the state has changed.
func (p *tagged) nextInBlock() bool {
	t := p.tag
	call := t.Body.Call
	for p.pos < len(p.win) {
		c := p.win[p.pos]
		work.Add(1)
		switch {
		case blank(c):
		case p.pos-p.start > p.c.g.MaxHold:
			return false
		case p.listed && c == ']':
			p.listed = false
			p.start = p.pos + 1
		case t.Open.Text == "" && c == ',', call != nil && t.Close.Text != "" && (c == ',' || c == '}'),
			call != nil && call.Sep != "" && c == call.Sep[0]:
		case call != nil && c == '{':
			if t.Close.Text == "" && !p.listed { // only its beginning distinguishes it from text
				switch p.peekCall(p.pos) {
				case scan.More:
					if !p.final {
						p.waiting = true
						return true
					}
					return false
				case scan.No:
					return false
				}
			}
			p.start = p.pos
			if p.beginCall(p.pos) {
				p.beginJSON()
			}
			return true
		case t.Open.Text == "" && p.wrapper && nameStart(c):
			p.start = p.pos
			if p.beginCall(p.pos) {
				p.beginName()
			}
			return true
		default:
			return false
		}
		p.pos++
	}
	return false
}

// skip drops markup that cannot be read, up to where a call or block ends or the next one begins.
func (p *tagged) skip() bool {
	s := p.sets.resync[0]
	if p.reasoning {
		s = p.sets.resync[1]
	}
	m := p.find(s)
	if m < 0 {
		p.start = p.free(s)
		if p.final {
			p.start = len(p.win)
		}
		return false
	}
	p.start = p.mark
	if s.markers[m].role == roleItem {
		return p.nextItem()
	}
	p.newRun()
	p.openAt = p.mark
	switch s.markers[m].role {
	case roleReasonClose:
		p.pos, p.state = p.mark, stText
	case roleCallClose:
		p.start = p.pos
		if p.wrapper {
			p.state = stClosing
		} else {
			p.layout.afterBlock()
		}
	case roleWrapClose:
		p.layout.afterBlock()
	case roleWrapOpen:
		p.call.name, p.call.id = p.call.name[:0], p.call.id[:0]
		p.wrapper = true
		p.state = stOpened
	case roleCallOpen:
		p.call.name, p.call.id = p.call.name[:0], p.call.id[:0]
		if p.tag.Name == nil || !p.wrapper {
			p.state = stOpened
			break
		}
		if !p.beginCall(p.mark) {
			return false
		}
		p.start = p.pos
		p.beginName()
	default: // the message around the block ends
		p.pos, p.state = p.mark, stText
	}
	return true
}

// nextItem begins the next object of a list if a call object begins at mark, after one that cannot be read.
func (p *tagged) nextItem() bool {
	st := scan.No
	if p.listed {
		st = p.peekCall(p.mark)
	}
	switch {
	case st == scan.More && !p.final:
		p.pos, p.node = p.mark, 0
		return false
	case st == scan.Yes:
		p.pos, p.openAt = p.mark, p.mark
		if p.beginCall(p.mark) {
			p.beginJSON()
		}
		return p.err == nil
	}
	p.start = p.pos
	return true
}

// compileTagged compiles a grammar of layout tagged; nil if g has another one.
func compileTagged(g *grammar.Grammar) *compiled {
	t := g.Tagged
	if t == nil {
		return nil
	}
	c := &compiled{g: g, tags: true}
	sets := c.compileTags(t, nil)
	c.newLayout = func(m *machine) layout {
		l := &tagged{machine: m}
		l.setTags(t, sets)
		return l
	}
	c.startAfter = func(prompt string) Start { return startAfterTags(t, prompt) }
	return c
}

// compileTags compiles t. around are the markers that end the message which t is in, if it is in one.
func (c *compiled) compileTags(t *grammar.Tagged, around []marker) *tagSets {
	s := new(tagSets)
	var rOpen, rClose, wOpen, wClose []marker
	c.before = t.Before
	r := t.Reasoning
	if r != nil {
		c.hasReasoning = true
		if r.Tail != "" {
			c.tail = r.Tail[:1]
		}
		if !r.Inline {
			rOpen, rClose = spelled(roleReasonOpen, r.Open), spelled(roleReasonClose, r.Close)
		}
	}
	if w := t.Wrapper; w != nil {
		wOpen, wClose = spelled(roleWrapOpen, w.Open), spelled(roleWrapClose, w.Close)
	}
	cOpen, cClose := spelled(roleCallOpen, t.Open), spelled(roleCallClose, t.Close)
	var ends, bare []marker
	for _, e := range slices.Concat(t.Ends, t.Skip) {
		ends = append(ends, mk(e, roleTurn))
	}
	if t.Cite != nil {
		ends = slices.Concat(ends, spelled(roleCiteOpen, t.Cite.Open), spelled(roleCiteClose, t.Cite.Close))
	}
	if t.Bare && t.Body.Codec != nil {
		bare = []marker{{text: "[", role: roleBare}}
	}
	opens := wOpen
	if t.Wrapper == nil || t.Wrapper.Optional {
		opens = slices.Concat(wOpen, cOpen)
	}
	set := func(ms ...[]marker) *markerSet { return newSet(slices.Concat(ms...)...) }
	calls := slices.Concat(opens, wClose, cClose)
	if t.Wrapper != nil {
		calls = slices.Concat(opens, wClose, tokens(cClose))
	}
	for v := range c.text {
		text, reason := ends, ends
		if v&withReasoning != 0 {
			text = slices.Concat(text, rOpen, rClose)
			reason = slices.Concat(reason, rOpen, rClose)
		}
		switch {
		case v&withCalls != 0:
			text, reason = slices.Concat(text, calls, bare), slices.Concat(reason, calls)
		case r != nil && r.CallEnds:
			for _, m := range opens {
				m.role = roleBreak
				reason = append(slices.Clip(reason), m)
			}
		}
		if around == nil {
			c.text[v], c.reasoning[v] = newSet(text...), newSet(reason...)
			if v&withCalls != 0 && t.Bare && t.Body.Codec == nil && t.Body.List != grammar.Dicts {
				c.braced[v] = newSet(append(slices.Clip(text), marker{text: "{", role: roleBrace})...)
			}
		}
	}
	c.quoted = set(ends, rOpen, rClose)
	s.callOpen, s.callClose = set(cOpen), set(cClose)
	var items []marker
	if t.Body.Call != nil && t.Body.List != grammar.Dicts {
		items = []marker{{text: "{", role: roleItem}}
	}
	s.resync[0] = set(cClose, wClose, cOpen, wOpen, around, items)
	s.resync[1] = set(cClose, wClose, cOpen, wOpen, rClose, around, items)
	switch {
	case t.Wrapper != nil:
		s.closing = set(cOpen, wClose, cClose[min(1, len(cClose)):])
	case len(cClose) > 0:
		s.closing = set(cClose)
	}
	if p := t.Body.Params; p != nil {
		pOpen := []marker{{text: p.Open, role: roleParamOpen}}
		pClose := []marker{{text: p.Close, role: roleParamClose}}
		s.keyEnds, s.valueOpens = []string{p.KeyEnd}, []string{p.Value}
		s.between = set(pOpen, pClose, cClose, wClose, cOpen, wOpen, around)
		next := pOpen
		if !p.Newline && (p.Value == "" || p.Value == cdata) { // a parameter on a line of its own, or a key with a tag of its own, may be the next
			next = nil
		}
		s.value = set(pClose, cClose, cOpen, wClose, next)
		if p.Value == cdata {
			end := []marker{{text: "]]>", role: roleSectionClose}}
			s.section, s.values = set(end), set(pClose, cClose, cOpen, wClose, next, end)
		}
		s.following[closerOwn] = set(pOpen, cClose, wClose, cOpen, wOpen, around)
		s.following[closerCall] = set(wClose, cOpen, wOpen, around)
		s.following[closerBlock], s.following[closerBlock+1] = set(wOpen), set(cOpen)
		s.following[closerSection], s.following[closerSection+1] = set(pClose), s.following[closerOwn]
	}
	s.opens = set(opens)
	return s
}

// setTags makes p parse the tags of t.
func (p *tagged) setTags(t *grammar.Tagged, sets *tagSets) {
	p.tag, p.sets = t, sets
	if b := t.Body.Params; b != nil {
		p.param.set, p.param.all, p.param.newline = sets.value, sets.values, b.Newline
	}
	if t.Body.Codec != nil {
		p.dec = t.Body.Codec.NewDecoder()
		p.passer, _ = p.dec.(grammar.Passing)
		if h, ok := p.dec.(grammar.Holding); ok {
			h.Hold(p.lim.HeldBytes)
		}
		if e, ok := p.dec.(interface{ EndAt(marker string) }); ok {
			e.EndAt(t.Close.Text)
		}
	}
}

// startAfterTags returns the position at which generation begins after prompt.
func startAfterTags(t *grammar.Tagged, prompt string) Start {
	r := t.Reasoning
	if r == nil {
		return StartTurn
	}
	if label := strings.TrimRight(r.Label, "\n"); label != "" {
		prompt = strings.TrimSuffix(prompt, label)
	}
	ends := func(m grammar.Marker) bool {
		return slices.ContainsFunc(spelled(roleNone, m), func(m marker) bool { return strings.HasSuffix(prompt, m.text) })
	}
	switch {
	case ends(r.Open):
		return StartReasoning
	case ends(r.Close):
		return StartResponse
	}
	return StartTurn
}
