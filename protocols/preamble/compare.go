// SPDX-License-Identifier: Apache-2.0

package preamble

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/codec"
)

// CompareOptions configures [Compare] and [History.Next]. nil means the defaults.
type CompareOptions struct {
	Prompt Prompt
	// Excerpt is the maximum size of Side.Excerpt in bytes. 0 means 64; if negative, there are no excerpts, which users may have written.
	Excerpt int
}

// Divergence describes where and why the prompts of two requests diverge.
//
// The causes are
//
//	in system text   billing header, memory path, environment (machine, platform, shell, time zone, a whole env block), date, git status,
//	                 temp dir, working directory, skill root, project file (path or text of CLAUDE.md, AGENTS.md …), relocated text
//	                 (another line after the mark that Options.Relocate sets), system text edited, system message moved
//	in tools         tool added, tool removed, tools reordered, tool changed
//	in turns         reminder, user text, assistant text, reasoning dropped, reasoning added, reasoning changed, arguments respelled (the
//	                 same JSON in other bytes), call changed, call id changed, result changed, media changed, history compacted,
//	                 history rewritten
//
// More causes may be added.
type Divergence struct {
	Relation Relation
	// Offset is the number of bytes of the canonical prompt (see the package comment) that A and B share. It is at most
	// A.Bytes and at most B.Bytes. In the result of [History.Next], it is a lower bound.
	Offset   int64
	Cause    string // "" unless Relation is Diverges or Shorter
	Class    string // how long the fragment at Offset stays the same: static, session, turn or volatile; "" if Cause is ""
	Rule     string // ID of the rule that matches the fragment, or ""
	A, B     Side   // the first and the second request
	within   int64  // 0 if Offset is exact; otherwise the prompts diverge in [Offset, Offset+within) of the later prompt
	cosmetic string // other differences before Offset, which are not in the prompt: cache breakpoints, content form, item ids, call ids, tool spelling
}

// Side describes a divergence in one of the two requests.
type Side struct {
	Bytes   int64  // length of the canonical prompt
	Path    string // path of the block or tool; "" at the end of the prompt and in built requests
	At      int    // bytes of the segment's text before the divergence
	Excerpt string // text around the divergence, valid UTF-8
}

// String returns the divergence as one line of text.
func (b Divergence) String() string {
	out := fmt.Sprintf("prompts are the same: %d bytes", b.Offset)
	switch b.Relation {
	case Extends:
		out = fmt.Sprintf("prompt extends: %d of %d bytes are shared", b.Offset, b.B.Bytes)
	case Shorter:
		out = fmt.Sprintf("prompt ends early: %d of %d bytes are left", b.Offset, b.A.Bytes)
	case Diverges:
		at := fmt.Sprintf("%s+%d", b.B.Path, b.B.At)
		if b.A.Path != "" && b.A.Path != b.B.Path {
			at = fmt.Sprintf("%s+%d / %s", b.A.Path, b.A.At, at)
		}
		out = fmt.Sprintf("prompts diverge at byte %d (%s): %v, %v; %d bytes lost", b.Offset, at, b.Cause, b.Class, b.A.Bytes-b.Offset)
		if b.Rule != "" {
			out += ", rule " + b.Rule
		}
		if b.B.Excerpt != "" || b.A.Excerpt != "" {
			out += fmt.Sprintf(": %q, then %q", b.A.Excerpt, b.B.Excerpt)
		}
	}
	if b.cosmetic != "" {
		out += "; not in the prompt: " + b.cosmetic
	}
	return out
}

// Compare returns where the prompt of b, the later request, diverges from the prompt of a. It compares canonical
// prompts, so differences in breakpoints, the form of content and IDs of items are not a divergence. Requests of
// different APIs can be compared; their tools are compared by name, description and schema only.
//
// Cost: linear in both requests. Paths are computed only for the divergence.
func Compare(a, b *block.Request, o *CompareOptions) Divergence {
	c := newComparer(o)
	raw := a.API() == b.API() && codec.DocOf(a) != nil && codec.DocOf(b) != nil
	c.a, c.b = segments(a, c.prompt, raw), segments(b, c.prompt, raw)
	return c.compare()
}

// comparer compares two prompts.
type comparer struct {
	prompt  Prompt
	excerpt int
	a, b    []segment
}

// newComparer returns a comparer without prompts. nil options mean the defaults.
func newComparer(o *CompareOptions) comparer {
	c := comparer{excerpt: 64}
	if o != nil {
		c.prompt = o.Prompt
		if o.Excerpt != 0 {
			c.excerpt = max(o.Excerpt, 0)
		}
	}
	return c
}

func (c *comparer) compare() Divergence {
	var br Divergence
	for i := range c.a {
		br.A.Bytes += int64(len(c.a[i].text))
	}
	for i := range c.b {
		br.B.Bytes += int64(len(c.b[i].text))
	}
	i, differ := 0, cosmetic(0)
	for i < len(c.a) && i < len(c.b) && c.a[i].same(&c.b[i]) {
		differ |= c.cosmetic(&c.a[i], &c.b[i])
		br.Offset += int64(len(c.a[i].text))
		i++
	}
	br.cosmetic = differ.String()
	off := 0
	switch {
	case i == len(c.a) && i == len(c.b):
	case i == len(c.a):
		br.Relation = Extends
	case i == len(c.b):
		br.Relation, br.Cause, br.Class = Shorter, causeHistoryRewritten, classTurn
	default:
		br.Relation = Diverges
		if c.a[i].head(&c.b[i]) {
			off = common(c.a[i].text, c.b[i].text)
		}
		br.Cause, br.Class, br.Rule = c.cause(i, off)
	}
	br.Offset += int64(off)
	c.side(&br.A, c.a, i, off)
	c.side(&br.B, c.b, i, off)
	return br
}

// common returns the length of the common prefix of two texts, in bytes of whole characters.
func common(a, b string) int {
	n := min(len(a), len(b))
	i := 0
	for i < n && a[i] == b[i] {
		i++
	}
	for i > 0 && (i < len(a) && !utf8.RuneStart(a[i]) || i < len(b) && !utf8.RuneStart(b[i])) {
		i--
	}
	return i
}

// side sets the fields of s for a divergence at offset off of segment i.
func (c *comparer) side(s *Side, list []segment, i, off int) {
	if i >= len(list) {
		return
	}
	g := &list[i]
	s.Path, s.At = g.at.Path(), off
	s.Excerpt = excerpt(g.text, off, c.excerpt)
}

// excerpt returns at most n bytes of whole characters of text around off.
func excerpt(text string, off, n int) string {
	if n <= 0 {
		return ""
	}
	from := max(off-n/4, 0)
	for from < off && !utf8.RuneStart(text[from]) {
		from++
	}
	end := min(from+n, len(text))
	for end > from && end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.ToValidUTF8(text[from:end], "\uFFFD")
}

// cosmetic compares two equal segments in what is not in the prompt.
func (c *comparer) cosmetic(a, b *segment) (x cosmetic) {
	if a.cache != b.cache {
		x |= cacheMoved
	}
	if a.form != b.form {
		x |= contentForm
	}
	if a.id != b.id {
		x |= itemIDs
	}
	if a.callID != b.callID {
		x |= callIDs
	}
	if a.spaced != b.spaced {
		x |= toolSpelling
	}
	return x
}

// cause returns the cause, class and rule of a difference at offset off of segments i, which both exist.
func (c *comparer) cause(i, off int) (string, string, string) {
	a, b := &c.a[i], &c.b[i]
	if c.leads(i) && (off < billingLen(a.text) || off < billingLen(b.text)) {
		return causeBillingHeader, classVolatile, billingRule
	}
	switch {
	case a.kind == toolSegment && b.kind == toolSegment && a.name == b.name && a.head(b):
		if r := c.known(a, b, off); r != nil {
			return r.Cause, r.Class, r.ID
		}
		return causeToolChanged, classStatic, ""
	case a.kind == toolSegment || b.kind == toolSegment:
		return c.tools(a, b), classSession, ""
	case a.head(b) && a.where() != 0:
		if r := c.known(a, b, off); r != nil {
			return r.Cause, r.Class, r.ID
		}
		if a.kind == systemSegment && (tailed(a.text, off) || tailed(b.text, off)) {
			return causeRelocatedText, classSession, ""
		}
	}
	switch {
	case a.kind == systemSegment || b.kind == systemSegment:
		return c.system(i)
	case b.kind == compactionSegment || compacts(b.text):
		return causeCompacted, classTurn, ""
	case a.kind == reasoningSegment && b.kind != a.kind && a.role == b.role:
		return causeReasoningDropped, classTurn, ""
	case b.kind == reasoningSegment && a.kind != b.kind && a.role == b.role:
		return causeReasoningAdded, classTurn, ""
	case a.kind == reminderSegment || b.kind == reminderSegment:
		return causeReminder, classTurn, ""
	case a.kind != b.kind || a.role != b.role:
		return causeHistoryRewritten, classTurn, ""
	case a.kind == callSegment:
		return c.call(a, b), classTurn, ""
	case a.kind == resultSegment && c.prompt.CallIDs && a.callID != b.callID && a.text == a.callID:
		return causeCallIDChanged, classTurn, ""
	}
	return causeOf(a.kind), classTurn, ""
}

// leads reports whether segment i is the first system text of either prompt.
func (c *comparer) leads(i int) bool {
	first := func(list []segment) bool {
		if list[i].kind != systemSegment {
			return false
		}
		for k := range i {
			if list[k].kind == systemSegment {
				return false
			}
		}
		return true
	}
	return first(c.a) || first(c.b)
}

// known returns the rule that matches the fragment at off in either of two segments of the same kind.
func (c *comparer) known(a, b *segment, off int) *rule {
	s := scanner{rules: DefaultRules(), where: a.where()}
	if r := s.rule(a.text, off); r != nil {
		return r
	}
	return s.rule(b.text, off)
}

// rule returns the rule that matches offset off of text, by its line or else by the lines around it.
func (s *scanner) rule(text string, off int) *rule {
	from := strings.LastIndexByte(text[:off], '\n') + 1
	if from < len(text) {
		end := lineEnd(text, from)
		if f, ok := s.at(text, from, end); ok && f.rule.End == "" {
			if off >= f.valOff && off <= f.valEnd {
				return f.rule
			}
		}
		if r := s.label(text[from:end]); r != nil {
			return r
		}
	}
	list, mark := s.all(text)
	for i := range list {
		f := &list[i]
		tail := mark >= 0 && f.off > mark
		if f.off <= off && off < f.end && (tail || f.rule.End != "" || off >= f.valOff && off <= f.valEnd) {
			return f.rule
		}
	}
	return nil
}

// all is like find but also returns the fragments after the mark.
func (s *scanner) all(text string) ([]fragment, int) {
	list, mark := s.find(nil, text)
	if mark < 0 {
		return list, mark
	}
	from := lineEnd(text, mark)
	tail, _ := s.find(nil, text[from:])
	for _, f := range tail {
		list = append(list, fragment{f.rule, f.off + from, f.end + from, f.valOff + from, f.valEnd + from})
	}
	return list, mark
}

// label returns the rule whose label starts a line that Relocate wrote.
func (s *scanner) label(line string) *rule {
	for i := range s.rules {
		if r := &s.rules[i]; r.Label != "" && r.Where&(inSystem|inTools) != 0 && strings.HasPrefix(line, r.Label) {
			return r
		}
	}
	return nil
}

// tailed reports whether off is after the mark of Relocate.
func tailed(text string, off int) bool {
	s := scanner{where: inSystem}
	_, mark := s.find(nil, text)
	return mark >= 0 && off >= mark
}

// tools returns the cause of a divergence in the list of tools at a and b, one of which may not be a tool.
func (c *comparer) tools(a, b *segment) string {
	has := func(list []segment, name string) bool {
		for i := range list {
			if list[i].kind == toolSegment && list[i].name == name {
				return true
			}
		}
		return false
	}
	switch {
	case b.kind == toolSegment && !has(c.a, b.name):
		return causeToolAdded
	case a.kind == toolSegment && !has(c.b, a.name):
		return causeToolRemoved
	case a.kind == toolSegment && b.kind == toolSegment:
		return causeToolReordered
	case b.kind == toolSegment:
		return causeToolAdded
	}
	return causeToolRemoved
}

// system returns the cause, class and rule of a divergence in system text at segment i.
func (c *comparer) system(i int) (string, string, string) {
	in := func(list []segment, text string) bool {
		for k := i + 1; k < len(list); k++ {
			if list[k].kind == systemSegment && list[k].text == text {
				return true
			}
		}
		return false
	}
	a, b := &c.a[i], &c.b[i]
	switch {
	case a.kind == systemSegment && b.kind == systemSegment && (a.text == b.text || in(c.b, a.text) && in(c.a, b.text)),
		a.kind == systemSegment && b.kind != systemSegment && in(c.b, a.text),
		b.kind == systemSegment && a.kind != systemSegment && in(c.a, b.text):
		return causeSystemMoved, classTurn, ""
	}
	return causeSystemEdited, classStatic, ""
}

// call returns the cause of a difference between two calls.
func (c *comparer) call(a, b *segment) string {
	cut := func(s *segment) (name, args string) {
		text := s.text
		if c.prompt.CallIDs {
			text = strings.TrimPrefix(text, s.callID+"\n")
		}
		name, args, _ = strings.Cut(text, "\n")
		return name, args
	}
	an, aa := cut(a)
	bn, ba := cut(b)
	switch {
	case an == bn && aa == ba && a.callID != b.callID:
		return causeCallIDChanged
	case an == bn && aa != ba && sameJSON(aa, ba):
		return causeArgumentsRespelled
	}
	return causeCallChanged
}

// sameJSON reports whether two texts are JSON encodings of equal values.
func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

// compactions lists the starts of the user text with which harnesses replace a compacted history.
var compactions = [...]string{
	"This session is being continued from a previous conversation", // Claude Code
	"Another language model started to solve this problem",         // Codex
}

func compacts(text string) bool {
	for _, s := range compactions {
		if strings.HasPrefix(text, s) {
			return true
		}
	}
	return false
}
