// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/intent"
	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/cache"
)

// This file finds the blocks of a request in its prompt. It contains the marks and their tokens, the locator, which
// maps positions in the messages to positions in the prompt, and the alignment of a text with what a template printed
// of it.

// Mark is a breakpoint and its position in the prompt.
type Mark struct {
	intent.Breakpoint
	Path string // path of the marked block in the body of the request
	Byte int    // position in the prompt, in bytes
}

// Breakpoints returns the cache breakpoints of req, from which p must have been rendered, with their positions in the
// prompt and sorted by them. It also returns the faults found in them. The Tokens of the marks are 0; see
// [Prompt.Tokens].
//
// The position is the end of the template's output for the marked block, before the tags that close a message. It is
// never after the block, but it may be earlier if the template trims or reformats text. Blocks without text in the
// prompt, such as images, have the position of the block before them. A mark is omitted, with a fault, if the template
// does not print its block or prints it after later blocks, because such a prompt is not a prefix of later ones.
//
// If there are marks, the cost is one pass over the spans and over the texts of marked blocks.
func (p *Prompt) Breakpoints(req *block.Request) ([]Mark, []intent.Fault) {
	list, faults := wire.Breakpoints(req)
	if len(list) == 0 {
		return nil, faults
	}
	at := make([]block.Ref, len(list))
	for i := range list {
		at[i] = markedAt(req, &list[i])
	}
	if p.values != nil || p.fitted != nil {
		p.complete()
	}
	places := p.lookup(at)
	first := 0
	if p.partial { // then end looks at no block before a marked one
		first = math.MaxInt
		for _, i := range places {
			if i >= 0 {
				first = min(first, max(p.places[i].Message, 0))
			}
		}
	}
	l := p.locator(first)
	marks := make([]Mark, 0, len(list))
	for i, b := range list {
		m := Mark{Breakpoint: b, Path: at[i].Path()}
		var why string
		if m.Byte, why = l.end(places[i]); why != "" {
			if p.partial { // again, with all positions
				p.complete()
				return p.Breakpoints(req)
			}
			faults = append(faults, intent.NewFault(cmp.Or(m.Path, "cache_control"), "", why))
			continue
		}
		marks = append(marks, m)
	}
	slices.SortStableFunc(marks, func(a, b Mark) int { return a.Byte - b.Byte })
	return marks, faults
}

// markedAt returns the position of a breakpoint's block or tool in the body.
func markedAt(req *block.Request, b *intent.Breakpoint) block.Ref {
	if b.Tool >= 0 {
		return req.Tools()[b.Tool].At
	}
	blk := &req.Turns()[b.Turn].Blocks[b.Block]
	if b.Inner >= 0 {
		blk = &blk.Content[b.Inner]
	}
	return blk.At
}

// Tokens returns the breakpoints of marks with Tokens set to the number of ids that are entirely before the mark. This
// number is exact. The marks must be sorted, and ids must be the whole prompt encoded by tok.
//
// It decodes ids up to each mark, starting at the nearest of cuts. With the cuts of a prefix cache
// ([cache.Cache.AppendEncodePrefixes]) these are at most 4 KiB of text for each mark; without cuts it is the whole
// prompt. If the decoded text differs from the prompt, as with normalizers, the prompt is encoded again with offsets;
// if that yields other ids, only the common prefix counts.
func (p *Prompt) Tokens(tok *tokenizers.Tokenizer, marks []Mark, ids []uint32, cuts ...cache.Prefix) []intent.Breakpoint {
	out := make([]intent.Breakpoint, len(marks))
	k := 0
	var known *tokens // of the prompts of the conversation
	if len(ids) > 0 && len(ids) == len(p.ids) && &ids[0] == &p.ids[0] && tok == p.model.tok {
		known = p.tokens
	}
	boundaries := known.boundaries()
	var found []boundary
	// until sets the Tokens of the marks before end to n.
	until := func(end, n int) {
		for ; k < len(marks) && marks[k].Byte < end; k++ {
			out[k] = marks[k].Breakpoint
			out[k].Tokens = n
			found = append(found, boundary{marks[k].Byte, n, end})
		}
	}
	s, done := tok.NewStream(false, nil), 0
	single := 0 // the ids before this one are decoded one by one
	var text []byte
	var last cache.Prefix // a cut near the end
	inBlocks := tok == p.model.tok && p.model.blocks
	for n := decodeBlock / 4; inBlocks && n <= decodeBlock && n < len(ids) && len(marks) > 0; n *= 4 { // the marks of a conversation are near its end
		text = tok.AppendDecode(text[:0], ids[len(ids)-n:], false)
		at := len(p.Text) - len(text)
		if at <= 0 || p.Text[at:] != string(text) || !utf8.RuneStart(p.Text[at]) {
			break
		}
		if at <= marks[len(marks)-1].Byte {
			last = cache.Prefix{Bytes: at, Tokens: len(ids) - n}
			break
		}
	}
	for n := 0; n < len(ids) && k < len(marks); n++ {
		if i := slices.IndexFunc(boundaries, func(b boundary) bool { return b.at == marks[k].Byte }); i >= 0 {
			until(boundaries[i].end, boundaries[i].ids)
			n--
			continue
		}
		if n > 0 && s.Held() == 0 { // decoders may treat the first token differently
			near := last
			if i := sort.Search(len(cuts), func(i int) bool { return cuts[i].Bytes > marks[k].Byte }); near.Bytes > marks[k].Byte || i > 0 && cuts[i-1].Tokens > near.Tokens {
				near = cache.Prefix{}
				if i > 0 {
					near = cuts[i-1]
				}
			}
			if near.Tokens > n && near.Tokens < len(ids) {
				done, n = near.Bytes, near.Tokens
			}
		}
		if n >= single && n > 0 && s.Held() == 0 && inBlocks {
			block := ids[n:min(n+decodeBlock, len(ids))]
			text = tok.AppendDecode(text[:0], block, false)
			if len(text) <= marks[k].Byte-done && p.Text[done:done+len(text)] == string(text) {
				done += len(text)
				n += len(block) - 1
				continue
			}
			single = n + len(block)
		}
		text = s.Append(text[:0], ids[n])
		if p.Text[done:min(done+len(text), len(p.Text))] != string(text) {
			var e tokenizers.Encoding
			if err := tok.Encode(&e, p.Segments, &tokenizers.EncodeOptions{Offsets: true}); err != nil {
				e = tokenizers.Encoding{} // a text of more than 2 GiB
			}
			same := 0
			for ; same < len(ids) && same < len(e.IDs) && ids[same] == e.IDs[same]; same++ {
				until(e.Offsets[same].End, same)
			}
			until(len(p.Text)+1, same)
			return out
		}
		done += len(text)
		until(done+s.Held(), n)
	}
	if known != nil {
		known.setBoundaries(found)
	}
	until(len(p.Text)+1, len(ids))
	return out
}

// decodeBlock is the number of ids that Tokens decodes at once.
const decodeBlock = 64

// Paths returns, for each span of p, the path in the request's body of the block or tool that it prints, or "" if it
// prints none or several.
func (p *Prompt) Paths() []string {
	p.complete()
	l, places := p.locator(0), p.fit()
	out := make([]string, len(p.Spans))
	for i := 0; i < len(places); {
		n := 1
		for i+n < len(places) && places[i].sameText(&places[i+n]) {
			n++
		}
		l.paths(out, places[i:i+n])
		i += n
	}
	return out
}

// place is the position of a block in the messages that were passed to the template.
type place struct {
	chat.Position
	lost bool // the position is unknown
}

func (p *place) sameText(o *place) bool { return p.key() == o.key() }

// element is the part of the request that a span prints.
type element struct {
	tool, message int // at least one is -1
	member        string
	index         int    // -1 if absent
	rest          string // rest of the path
}

// number reads an index and the bracket after it. It returns -1 if there is none.
func number(s string) (n int, rest string) {
	for i := range len(s) {
		switch c := s[i]; {
		case c == ']' && i > 0:
			return n, s[i+1:]
		case c < '0' || c > '9' || n > (math.MaxInt32-9)/10:
			return -1, ""
		}
		n = 10*n + int(s[i]-'0')
	}
	return -1, ""
}

// partOf returns the tool or message with which a path begins, and -1 for the other, and the rest of the path. Both are -1 if
// it begins with neither.
func partOf(path string) (tool, message int, rest string) {
	tool, message = -1, -1
	if s, ok := strings.CutPrefix(path, "messages["); ok {
		message, rest = number(s)
	} else if s, ok := strings.CutPrefix(path, "tools["); ok {
		tool, rest = number(s)
	}
	return tool, message, rest
}

// elementOf parses a path such as messages[2].tool_calls[0].function.name.
func elementOf(path string) element {
	e := element{index: -1}
	e.tool, e.message, e.rest = partOf(path)
	if !strings.HasPrefix(path, "messages[") {
		return e
	}
	s := strings.TrimPrefix(e.rest, ".")
	end := 0
	for end < len(s) && s[end] != '.' && s[end] != '[' {
		end++
	}
	e.member, e.rest = s[:end], s[end:]
	if s, ok := strings.CutPrefix(e.rest, "["); ok {
		e.index, e.rest = number(s)
	}
	return e
}

// key identifies a text, a call or a tool by the path of its spans.
type key struct {
	tool, message int
	member        string
	index         int
}

func (p *place) key() key { return key{p.Tool, p.Message, p.Member, p.Index} }

// locator maps blocks of the request to positions in the prompt. Spans are indexed only for the messages and tools that
// are asked for, because there are few marks in long conversations.
type locator struct {
	p        *Prompt
	fitted   []place // nil if Fit changed nothing and the places of p apply
	first    int     // the first message that is looked at
	messages []group // the spans of the first printing of each message from first on
	tools    []group
	skipped  group         // of messages before first
	others   group         // of messages without a place, which are after those with one
	spans    map[key][]int // indexes of the spans in these groups, for indexed ones
	starts   map[key][]int // results of align
}

// group is a range [from, to) of spans that print a message or a tool, and others that print neither.
type group struct {
	from, to int32
	shown    int32 // the first span of the message, in any printing, that is not system text, plus 1; 0 if there is none
	indexed  bool
}

// locator returns a locator of places in messages from first on, which is 0 if places in tools are looked for as well. p must be
// complete if Fit changed messages.
func (p *Prompt) locator(first int) *locator {
	l := &locator{p: p, first: first, spans: make(map[key][]int)}
	if p.values != nil || p.fitted != nil {
		l.fitted = p.fit()
	}
	messages, tools := 0, 0
	if l.fitted != nil {
		for i := range l.fitted {
			at := &l.fitted[i]
			messages, tools = max(messages, at.Message+1), max(tools, at.Tool+1)
		}
	} else {
		for i := range p.places {
			at := &p.places[i]
			messages, tools = max(messages, at.Message+1), max(tools, at.Tool+1)
		}
	}
	l.messages, l.tools = make([]group, max(messages-first, 0)), make([]group, tools)
	at := &l.others
	var last *group // at; nil for a repetition, after another message or tool, and for what has no place
	prefix := ""    // of the last path: messages[2]
	tool, message := -1, -1
	ofTool, ofMessage := -1, -1 // of the last path
	for i := range p.Spans {
		s := &p.Spans[i]
		if prefix == "" || !strings.HasPrefix(s.Path, prefix) {
			var rest string
			ofTool, ofMessage, rest = partOf(s.Path)
			if prefix = ""; ofTool < 0 && ofMessage < 0 {
				continue
			}
			prefix = s.Path[:len(s.Path)-len(rest)]
		}
		if ofTool != tool || ofMessage != message {
			tool, message = ofTool, ofMessage
			at = cmp.Or(l.group(tool, message), &l.others)
			if last = nil; at != &l.others && at.to == 0 {
				last = at
				last.from = int32(i)
			}
		}
		if message >= 0 && at.shown == 0 && s.Kind != "system" {
			at.shown = int32(i + 1)
		}
		if last != nil {
			last.to = int32(i + 1)
		}
	}
	return l
}

// group returns the spans of a message or tool, or nil if there is no place in it.
func (l *locator) group(tool, message int) *group {
	switch {
	case tool >= 0 && tool < len(l.tools):
		return &l.tools[tool]
	case tool < 0 && message >= 0 && message < l.first:
		return &l.skipped
	case tool < 0 && message >= 0 && message-l.first < len(l.messages):
		return &l.messages[message-l.first]
	}
	return nil
}

// place returns place number i.
func (l *locator) place(i int) place {
	if l.fitted != nil {
		return l.fitted[i]
	}
	return place{Position: l.p.places[i]}
}

// lookup returns the number of the first place of each position, or -1.
func (p *Prompt) lookup(list []block.Ref) []int {
	const few = 8
	out := make([]int, len(list))
	for i := range out {
		out[i] = -1
	}
	var first map[block.Ref]int
	if len(list) > few {
		first = make(map[block.Ref]int, len(list))
		for _, at := range list {
			first[at] = -1
		}
	}
	for n := range p.places {
		at := p.places[n].At
		if first != nil {
			if i, ok := first[at]; ok && i < 0 {
				first[at] = n
			}
			continue
		}
		for i := range list {
			if list[i] == at && out[i] < 0 {
				out[i] = n
			}
		}
	}
	for i, at := range list {
		if at == (block.Ref{}) {
			out[i] = -1
		} else if first != nil {
			out[i] = first[at]
		}
	}
	return out
}

// printing returns the indexes of the spans of the first printing of a place's text, call or tool.
func (l *locator) printing(p *place) []int {
	if g := l.group(p.Tool, p.Message); g != nil && !g.indexed {
		g.indexed = true
		for i := int(g.from); i < int(g.to); i++ {
			e := elementOf(l.p.Spans[i].Path)
			if e.tool != p.Tool || e.message != p.Message {
				continue
			}
			k := key{e.tool, e.message, e.member, -1}
			l.spans[k] = append(l.spans[k], i)
			if e.index >= 0 {
				k.index = e.index
				l.spans[k] = append(l.spans[k], i)
			}
		}
	}
	return l.spans[p.key()]
}

// end returns the position in the prompt at which the block of place number i ends, or the reason why it is unknown.
func (l *locator) end(i int) (int, string) {
	if i < 0 {
		return 0, "the block is not in the prompt"
	}
	p := l.place(i)
	if p.lost {
		return 0, "the position of the block in the prompt is unknown"
	}
	end, ok := l.printed(&p)
	// A block that prints nothing has the end of the block before it.
	const most = 1000 // blocks to go back
	if !ok && l.p.partial {
		return 0, "the position of the block before it is not known"
	}
	for from := i; !ok && strings.TrimSpace(p.Text[:p.Offset]) == "" && p.Message >= 0 && i > max(0, from-most); i-- {
		before := l.place(i - 1)
		if before.Message < 0 {
			break
		}
		end, ok = l.printed(&before)
	}
	if !ok {
		return 0, "the template does not print the block"
	}
	// n is the number of spans that begin before end.
	n := sort.Search(len(l.p.Spans), func(i int) bool { return l.p.Spans[i].Start >= end })
	before := func(g group) bool { return g.shown > 0 && int(g.shown) <= n }
	if before(l.others) || slices.ContainsFunc(l.messages[min(p.Message+1-l.first, len(l.messages)):], before) {
		return 0, "the template prints the block after later ones"
	}
	return end, ""
}

// printed returns the end of the template's output for p.
func (l *locator) printed(p *place) (end int, ok bool) {
	if p.lost {
		return 0, false
	}
	list := l.printing(p)
	switch {
	case len(list) == 0:
		return 0, false
	case p.Member == "tool_calls":
		return l.call(list), true
	case p.Offset == len(p.Text):
		return l.p.Spans[list[len(list)-1]].End, true
	case strings.TrimSpace(p.Text[:p.Offset]) == "":
		return l.p.Spans[list[0]].Start, true
	}
	starts := l.align(p, list)
	if starts == nil {
		return l.common(list, p.Text, p.Offset)
	}
	for i, k := range list {
		s := &l.p.Spans[k]
		if p.Offset <= starts[i] {
			break
		}
		end, ok = s.Start+min(p.Offset-starts[i], s.End-s.Start), true
	}
	return end, ok
}

// call returns the end of a call's arguments. Spans after them are ignored, because templates repeat the name of a call
// with its result.
func (l *locator) call(list []int) int {
	end, args := l.p.Spans[list[0]].End, false
	for _, i := range list {
		is := strings.HasPrefix(strings.TrimPrefix(elementOf(l.p.Spans[i].Path).rest, ".function"), ".arguments")
		switch {
		case is:
			end, args = l.p.Spans[i].End, true
		case args:
			return end
		}
	}
	return end
}

// align returns the position in p.Text of each span in list, or nil if the spans are not consecutive parts of the text.
// If several positions are possible, it is the last one, so that a mark is never too late.
func (l *locator) align(p *place, list []int) []int {
	if starts, ok := l.starts[p.key()]; ok {
		return starts
	}
	starts, text := make([]int, len(list)), p.Text
	if l.starts == nil {
		l.starts = make(map[key][]int)
	}
	l.starts[p.key()] = nil
	for i := len(list) - 1; i >= 0; i-- {
		s := &l.p.Spans[list[i]]
		if starts[i] = strings.LastIndex(text, l.p.Text[s.Start:s.End]); starts[i] < 0 {
			return nil
		}
		text = text[:starts[i]]
	}
	l.starts[p.key()] = starts
	return starts
}

// common returns the end of the common prefix of the spans in list and the first n bytes of text. The spans print a
// modified text: trimmed, for example, or as a JSON string.
func (l *locator) common(list []int, text string, n int) (end int, ok bool) {
	trimmed := strings.TrimLeft(text, " \t\r\n")
	front := l.p.Text[l.p.Spans[list[0]].Start:]
	quoted := front[0] == '"' && (text[0] != '"' || strings.HasPrefix(front, `"\`))
	if !quoted {
		n -= len(text) - len(trimmed)
		text = trimmed
	}
	at := 0
	for i, k := range list {
		s := &l.p.Spans[k]
		from := s.Start
		if quoted && i == 0 {
			from++
		}
		for from < s.End {
			c, size := l.p.Text[from:from+1], 1
			if quoted && c == `\` {
				r, _, rest, err := strconv.UnquoteChar(l.p.Text[from:s.End], '"')
				if err != nil {
					return end, ok
				}
				c, size = string(r), s.End-from-len(rest)
			}
			if at+len(c) > n || text[at:at+len(c)] != c {
				return end, ok
			}
			at += len(c)
			from += size
			end, ok = from, true
		}
	}
	return end, ok
}

// paths sets the paths of the spans that print one text, which the elements of places share.
func (l *locator) paths(out []string, places []place) {
	p := &places[0]
	if p.lost {
		return
	}
	list := l.printing(p)
	var starts []int
	if len(places) > 1 {
		if starts = l.align(p, list); starts == nil {
			return
		}
	}
	if len(list) == 0 {
		return
	}
	path := p.At.Path()
	for i, k := range list {
		if starts == nil {
			out[k] = path
			continue
		}
		s := &l.p.Spans[k]
		n := sort.Search(len(places), func(n int) bool { return places[n].Offset > starts[i] })
		if n < len(places) && starts[i]+s.End-s.Start <= places[n].Offset {
			out[k] = places[n].At.Path()
		}
	}
}
