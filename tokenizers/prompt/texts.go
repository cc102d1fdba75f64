// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// This file writes the formats of texts that a template prints as they are, without quotes. What a schema demands of
// such a text, and that it does not contain what ends it, are automata that read it side by side. Their product is
// written as a grammar with a rule for each state, in the notation that xgrammar and llama.cpp have in common.

// A textRule is what a schema demands of a text.
type textRule struct {
	least, most int      // characters; most is -1 for any number
	patterns    []string // regular expressions that find something in it
	not         string   // one that does not, or ""
}

// anyText permits every text.
var anyText = textRule{most: -1}

func (r textRule) free() bool {
	return r.least == 0 && r.most < 0 && len(r.patterns) == 0 && r.not == ""
}

// A ruledText is the format of a text that has to follow a rule.
type ruledText struct {
	rule  textRule
	words []string // which it cannot contain
}

const (
	// maxLeast is the number of characters up to which minLength is enforced for texts without quotes. An engine computes a
	// mask over the whole vocabulary for each of them.
	maxLeast = 32
	// maxTextCost bounds the states of an automaton that xgrammar takes, of which those that permit many characters cost
	// wideCost.
	maxTextCost, wideCost = 512, 8
	// maxTextStates is the same for llama.cpp, which computes no masks.
	maxTextStates = 2048
	// maxTextWork bounds the work for the automata of all texts of a demand: steps, of a regular expression for each of its
	// instructions.
	maxTextWork = 1 << 24
	// maxInstructions is the number of instructions that a regular expression may have.
	maxInstructions = 1 << 12
)

// A machine is an automaton that reads a text. Its states are numbers.
type machine interface {
	start() int
	step(state int, r rune) int // -1 if the text cannot continue like this
	accepts(state int) bool
	cuts(cut func(from, to rune)) // the ranges of characters that it tells apart
}

// without is the automaton of texts that do not contain the words of a searcher.
type without struct{ *searcher }

func (m without) start() int             { return 0 }
func (m without) accepts(state int) bool { return true }
func (m without) step(state int, r rune) int {
	to := m.searcher.step(state, r)
	if m.found[to] > 0 {
		return -1
	}
	return to
}
func (m without) cuts(cut func(from, to rune)) {
	for _, next := range m.next {
		for r := range next {
			cut(r, r)
		}
	}
}

// counter is the automaton of texts of least to most characters.
type counter struct{ least, most int }

func (m counter) start() int             { return 0 }
func (m counter) accepts(state int) bool { return state >= m.least }
func (m counter) step(state int, r rune) int {
	switch {
	case state == m.most:
		return -1
	case m.most < 0:
		return min(state+1, m.least)
	}
	return state + 1
}
func (m counter) cuts(func(from, to rune)) {}

// lost is the state of a complement after a character with which the automaton could not continue.
const lost = 1 << 30

// complement is the automaton of all other texts.
type complement struct{ machine }

func (m complement) accepts(state int) bool { return state == lost || !m.machine.accepts(state) }
func (m complement) step(state int, r rune) int {
	if state == lost {
		return lost
	}
	if to := m.machine.step(state, r); to >= 0 {
		return to
	}
	return lost
}

// oneOf is the automaton of some words.
type oneOf struct {
	next []map[rune]int
	end  []bool
}

func newOneOf(words []string) *oneOf {
	m := &oneOf{next: []map[rune]int{{}}, end: []bool{false}}
	for _, w := range words {
		at := 0
		for _, r := range w {
			to, ok := m.next[at][r]
			if !ok {
				to = len(m.next)
				m.next, m.end = append(m.next, map[rune]int{}), append(m.end, false)
				m.next[at][r] = to
			}
			at = to
		}
		m.end[at] = true
	}
	return m
}

func (m *oneOf) start() int             { return 0 }
func (m *oneOf) accepts(state int) bool { return m.end[state] }
func (m *oneOf) step(state int, r rune) int {
	if to, ok := m.next[state][r]; ok {
		return to
	}
	return -1
}
func (m *oneOf) cuts(cut func(from, to rune)) {
	for _, next := range m.next {
		for r := range next {
			cut(r, r)
		}
	}
}

// finder is the automaton of texts in which a regular expression finds something. Its states are sets of instructions,
// which it computes when they are reached.
type finder struct {
	prog *syntax.Prog
	sets [][]uint32 // sorted
	done []bool     // by set: whether something has been found
	ids  map[string]int
	from []uint32 // the instructions with which a match begins after the start
}

// parseRegex reads a regular expression of a schema.
func parseRegex(pattern string) (*syntax.Regexp, error) {
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("the regular expression is too long")
	}
	return syntax.Parse(fromJavaScript(pattern), syntax.Perl)
}

// moreSpace is the white space that \s matches in JavaScript or Python but not in Go.
const moreSpace = `\v\x1c-\x1f\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`

// fromJavaScript returns a regular expression of JavaScript, as schemas have them, in the notation of Go. What is not
// white space is so in Python too.
func fromJavaScript(pattern string) string {
	var out strings.Builder
	class, not := false, false
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\' && i+1 < len(pattern):
			i++
			switch e := pattern[i]; {
			case e == 'u' && i+4 < len(pattern) && isHex(pattern[i+1:i+5]):
				out.WriteString(`\x{` + pattern[i+1:i+5] + "}")
				i += 4
			case e == 'S' && !class:
				out.WriteString(`[^\s` + moreSpace + "]")
			case e == 's' && not:
				out.WriteString(`\s` + moreSpace)
			default:
				out.WriteString(pattern[i-1 : i+1])
			}
			continue
		case c == '[' && !class:
			class, not = true, strings.HasPrefix(pattern[i+1:], "^")
		case c == ']' && class:
			class, not = false, false
		}
		out.WriteByte(pattern[i])
	}
	return out.String()
}

func isHex(text string) bool { return strings.Trim(text, "0123456789abcdefABCDEF") == "" }

// newFinder returns the automaton of a regular expression, or nil if it has parts, such as \b, that automata of characters do
// not have.
func newFinder(re *syntax.Regexp) *finder {
	prog, err := syntax.Compile(re.Simplify())
	if err != nil || len(prog.Inst) > maxInstructions {
		return nil
	}
	for _, i := range prog.Inst {
		if i.Op == syntax.InstEmptyWidth && syntax.EmptyOp(i.Arg)&^(syntax.EmptyBeginText|syntax.EmptyEndText) != 0 {
			return nil
		}
	}
	m := &finder{prog: prog, ids: make(map[string]int)}
	m.from = m.closure(nil, uint32(prog.Start), 0)
	m.state(m.closure(slices.Clone(m.from), uint32(prog.Start), syntax.EmptyBeginText))
	return m
}

// closure adds the instructions that can be reached without a character.
func (m *finder) closure(set []uint32, pc uint32, at syntax.EmptyOp) []uint32 {
	seen := make(map[uint32]bool)
	var visit func(pc uint32)
	visit = func(pc uint32) {
		if seen[pc] {
			return
		}
		seen[pc] = true
		switch i := &m.prog.Inst[pc]; i.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			visit(i.Out)
			visit(i.Arg)
		case syntax.InstCapture, syntax.InstNop:
			visit(i.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(i.Arg)&^at == 0 {
				visit(i.Out)
			} else if syntax.EmptyOp(i.Arg)&syntax.EmptyBeginText == 0 {
				set = append(set, pc) // which holds at the end
			}
		case syntax.InstFail:
		default:
			set = append(set, pc)
		}
	}
	visit(pc)
	return set
}

// state returns the number of a set of instructions.
func (m *finder) state(set []uint32) int {
	slices.Sort(set)
	set = slices.Compact(set)
	found := slices.ContainsFunc(set, func(pc uint32) bool { return m.prog.Inst[pc].Op == syntax.InstMatch })
	if found {
		set = nil
	}
	key := fmt.Sprint(set, found)
	id, ok := m.ids[key]
	if !ok {
		id = len(m.sets)
		m.ids[key] = id
		m.sets, m.done = append(m.sets, set), append(m.done, found)
	}
	return id
}

func (m *finder) start() int { return 0 }

func (m *finder) accepts(state int) bool {
	if m.done[state] {
		return true
	}
	for _, pc := range m.sets[state] {
		if m.prog.Inst[pc].Op == syntax.InstEmptyWidth {
			end := syntax.EmptyEndText
			if state == 0 {
				end |= syntax.EmptyBeginText
			}
			for _, pc := range m.closure(nil, pc, end) {
				if m.prog.Inst[pc].Op == syntax.InstMatch {
					return true
				}
			}
		}
	}
	return false
}

func (m *finder) step(state int, r rune) int {
	if m.done[state] {
		return state
	}
	next := slices.Clone(m.from)
	for _, pc := range m.sets[state] {
		i := &m.prog.Inst[pc]
		var ok bool
		switch i.Op {
		case syntax.InstRune, syntax.InstRune1:
			ok = i.MatchRune(r)
		case syntax.InstRuneAny:
			ok = true
		case syntax.InstRuneAnyNotNL:
			ok = !slices.Contains(lineEnds, r)
		}
		if ok {
			next = m.closure(next, i.Out, 0)
		}
	}
	if len(next) == 0 {
		return -1
	}
	return m.state(next)
}

// lineEnds are what a dot does not match in JavaScript, whose regular expressions schemas have.
var lineEnds = []rune{'\n', '\r', '\u2028', '\u2029'}

func (m *finder) cuts(cut func(from, to rune)) {
	for _, i := range m.prog.Inst {
		switch i.Op {
		case syntax.InstRune, syntax.InstRune1:
			if len(i.Rune) > 1 {
				for p := 0; p+1 < len(i.Rune); p += 2 {
					cut(i.Rune[p], i.Rune[p+1])
				}
				continue
			}
			cut(i.Rune[0], i.Rune[0])
			if syntax.Flags(i.Arg)&syntax.FoldCase != 0 {
				for f := unicode.SimpleFold(i.Rune[0]); f != i.Rune[0]; f = unicode.SimpleFold(f) {
					cut(f, f)
				}
			}
		case syntax.InstRuneAnyNotNL:
			for _, r := range lineEnds {
				cut(r, r)
			}
		}
	}
}

// An automaton is the product of machines, without states that lead to no text.
type automaton struct {
	edges  []map[int][]rune // by state: the characters that lead to a state, as pairs of first and last
	accept []bool
}

// product returns the texts that all machines accept. It returns nil if there are none, and false if tooMany, which gets the
// number of states and of those that permit many characters, reports that they are too many. The work is added to spent.
func product(spent *int, tooMany func(states, wide int) bool, machines ...machine) (*automaton, bool) {
	cost := 1
	for _, m := range machines {
		if c, ok := m.(complement); ok {
			m = c.machine
		}
		if f, ok := m.(*finder); ok {
			cost += len(f.prog.Inst)
		}
	}
	bounds := []rune{0}
	for _, m := range machines {
		m.cuts(func(from, to rune) { bounds = append(bounds, from, to+1) })
	}
	slices.Sort(bounds)
	bounds = slices.Compact(bounds)
	if bounds[len(bounds)-1] > unicode.MaxRune {
		bounds = bounds[:len(bounds)-1]
	}
	ids := make(map[string]int)
	var tuples [][]int
	a := &automaton{}
	state := func(tuple []int) int {
		key := fmt.Sprint(tuple)
		id, ok := ids[key]
		if !ok {
			id = len(tuples)
			ids[key] = id
			tuples = append(tuples, tuple)
			accept := true
			for i, m := range machines {
				accept = accept && m.accepts(tuple[i])
			}
			a.accept = append(a.accept, accept)
		}
		return id
	}
	var first []int
	for _, m := range machines {
		first = append(first, m.start())
	}
	state(first)
	wideStates := 0
	for at := 0; at < len(tuples); at++ {
		edges := make(map[int][]rune)
		size := 0
		for i, from := range bounds {
			to := rune(unicode.MaxRune)
			if i+1 < len(bounds) {
				to = bounds[i+1] - 1
			}
			next := make([]int, len(machines))
			dead := false
			for j, m := range machines {
				if next[j] = m.step(tuples[at][j], from); next[j] < 0 {
					dead = true
					break
				}
			}
			if dead {
				continue
			}
			size += int(to-from) + 1
			id := state(next)
			if list := edges[id]; len(list) > 0 && list[len(list)-1] == from-1 {
				list[len(list)-1] = to
			} else {
				edges[id] = append(list, from, to)
			}
		}
		a.edges = append(a.edges, edges)
		if size >= 64 {
			wideStates++
		}
		if *spent += cost * len(bounds); *spent > maxTextWork || tooMany(len(tuples), wideStates) {
			return nil, false
		}
	}
	return a.pruned(), true
}

// pruned removes the states that lead to no text. It returns nil if there is no text.
func (a *automaton) pruned() *automaton {
	back := make([][]int, len(a.edges))
	for from, edges := range a.edges {
		for to := range edges {
			back[to] = append(back[to], from)
		}
	}
	live := make([]bool, len(a.edges))
	var todo []int
	for state, accept := range a.accept {
		if accept {
			live[state] = true
			todo = append(todo, state)
		}
	}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, from := range back[at] {
			if !live[from] {
				live[from] = true
				todo = append(todo, from)
			}
		}
	}
	if !live[0] {
		return nil
	}
	for _, edges := range a.edges {
		for to := range edges {
			if !live[to] {
				delete(edges, to)
			}
		}
	}
	return a
}

// automaton writes the rules for an automaton and returns the name of the first.
func (g *gbnf) automaton(a *automaton) string {
	names := make([]string, len(a.edges))
	name := func(state int) string {
		if names[state] == "" {
			names[state] = g.name()
		}
		return names[state]
	}
	todo, done := []int{0}, make(map[int]bool)
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if done[at] {
			continue
		}
		done[at] = true
		var list []string
		if a.accept[at] {
			list = append(list, `""`)
		}
		for _, to := range sortedKeys(a.edges[at]) {
			chars := classOf(a.edges[at][to])
			if len(a.edges[to]) == 0 { // only the end can follow
				list = append(list, chars)
				continue
			}
			list = append(list, chars+" "+name(to))
			todo = append(todo, to)
		}
		expr := strings.Join(list, " | ")
		g.work += len(expr)
		g.define(name(at), expr)
	}
	return names[0]
}

// classOf writes a set of characters, or its complement if that has only ASCII: xgrammar 0.2.7 does not read others there.
func classOf(pairs []rune) string {
	others := complementOf(pairs)
	if len(others) == 0 || others[len(others)-1] >= utf8.RuneSelf {
		return class(false, pairs...)
	}
	return class(true, others...)
}

// complementOf returns all characters but some, as pairs of first and last.
func complementOf(pairs []rune) (others []rune) {
	from := rune(0)
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i] > from {
			others = append(others, from, pairs[i]-1)
		}
		from = pairs[i+1] + 1
	}
	if from <= unicode.MaxRune {
		others = append(others, from, unicode.MaxRune)
	}
	return others
}

// machines returns the automata of what a rule's texts match and do not match, and what it demands of the length.
func (r textRule) machines() (list, not []machine, least, most int) {
	least, most = r.least, r.most
	for _, pattern := range r.patterns {
		re, err := parseRegex(pattern)
		if err != nil {
			continue
		}
		if char, from, to := wholeRepeat(re); char != nil { // a set of characters and a length
			least = max(least, from)
			if to >= 0 && (most < 0 || to < most) {
				most = to
			}
			re = char
		}
		if m := newFinder(re); m != nil {
			list = append(list, m)
		}
	}
	if r.not != "" {
		re, _ := parseRegex(r.not) // one of ours
		not = append(not, complement{newFinder(re)})
	}
	return list, not, least, most
}

// wholeRepeat takes a regular expression apart that only has one repeated set of characters: it returns the expression for any
// number of them, and the bounds of the number.
func wholeRepeat(re *syntax.Regexp) (char *syntax.Regexp, least, most int) {
	if re.Op != syntax.OpConcat || len(re.Sub) != 3 || re.Sub[0].Op != syntax.OpBeginText || re.Sub[1].Op != syntax.OpRepeat || re.Sub[2].Op != syntax.OpEndText {
		return nil, 0, 0
	}
	switch repeat := re.Sub[1]; repeat.Sub[0].Op {
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		star := &syntax.Regexp{Op: syntax.OpStar, Sub: repeat.Sub[:1]}
		return &syntax.Regexp{Op: syntax.OpConcat, Sub: []*syntax.Regexp{re.Sub[0], star, re.Sub[2]}}, repeat.Min, repeat.Max
	}
	return nil, 0, 0
}

// ebnf returns the grammar of the text for xgrammar, which can limit the length of what a rule matches. It is false if no
// text can follow the rule. The work is added to spent.
func (t ruledText) ebnf(spent *int) (string, bool) {
	tooMany := func(states, wide int) bool { return states+(wideCost-1)*wide > maxTextCost }
	patterns, not, least, most := t.rule.machines()
	none := most >= 0 && most < least
	limit := ""
	if most >= 0 {
		limit = fmt.Sprintf("[max_chars=%d]", most)
	}
	var exact, longer []machine
	if least > 0 || most >= 0 {
		exact, longer = []machine{counter{least, most}}, []machine{counter{min(least, maxLeast), -1}}
	}
	// What demands too much is left out: first what only few texts contain, then that texts are not read as other values,
	// the length, and the patterns.
	for _, try := range []struct {
		limit    string
		machines []machine
	}{
		{"", slices.Concat(patterns, not, exact)}, {limit, slices.Concat(patterns, not, longer)},
		{"", slices.Concat(patterns, exact)}, {limit, slices.Concat(patterns, longer)}, {limit, slices.Concat(not, longer)}, {limit, patterns},
	} {
		if len(patterns)+len(not) == 0 || len(try.machines) == 0 {
			continue
		}
		for _, words := range [][]string{t.words, t.starts(3), t.starts(1)} {
			a, ok := product(spent, tooMany, append(try.machines, without{newSearcher(words)})...)
			if ok && a == nil {
				return "", false
			}
			if ok {
				return a.ebnf(try.limit), true
			}
		}
	}
	if most == 0 {
		return "root ::= \"\"\n", !none
	}
	return t.counted(limit, min(least, maxLeast)), !none
}

// starts returns the first n characters of the words: texts without these are read by an automaton with fewer states.
func (t ruledText) starts(n int) (list []string) {
	for _, w := range t.words {
		runes := []rune(w)
		list = append(list, string(runes[:min(n, len(runes))]))
	}
	return list
}

// counted returns the grammar of a text with at least some characters. So that it has few states, none but the last of
// these characters and what follows it can be the first two of a word to avoid.
func (t ruledText) counted(limit string, least int) string {
	var words []string
	var first, second []rune
	for _, w := range t.words {
		words = append(words, literal(w))
		r, n := utf8.DecodeRuneInString(w)
		first = append(first, r)
		if r, n = utf8.DecodeRuneInString(w[n:]); n > 0 {
			second = append(second, r)
		}
	}
	slices.Sort(first)
	second = append(second, first...)
	slices.Sort(second)
	first, second = slices.Compact(first), slices.Compact(second)
	begins, clear, clearer := class(false, single(first)...), classOf(complementOf(single(first))), classOf(complementOf(single(second)))
	var out strings.Builder
	rule := func(name string, list ...string) { fmt.Fprintf(&out, "%s ::= %s\n", name, strings.Join(list, " | ")) }
	state := func(kind string, n int) string {
		if n == least {
			return kind
		}
		return fmt.Sprintf("%s%d", kind, n)
	}
	rule("root"+limit, state("clear", 0))
	for n := range least {
		rule(state("clear", n), clear+" "+state("clear", n+1), begins+" "+state("begun", n+1))
		if n > 0 {
			rule(state("begun", n), clearer+" "+state("clear", n+1), begins+" "+state("begun", n+1))
		}
	}
	if least > 0 {
		rule("begun", `""`, clearer+" clear", begins+" begun")
	}
	rule("clear", "TagDispatch(loop_after_dispatch=false, excludes=("+strings.Join(words, ", ")+"))")
	return longEscapes(out.String())
}

// ebnf returns the automaton as a grammar for xgrammar.
func (a *automaton) ebnf(limit string) string {
	g := gbnf{}
	root := g.automaton(a)
	return longEscapes("root" + limit + " ::= " + root + "\n" + g.rules.String())
}

var escapes = regexp.MustCompile(`\\(x[0-9a-f]{2}|.)`)

// longEscapes writes \x3c as \u003c: xgrammar's \x takes all hexadecimal digits that follow.
func longEscapes(grammar string) string {
	return escapes.ReplaceAllStringFunc(grammar, func(s string) string {
		if len(s) == 4 {
			return `\u00` + s[2:]
		}
		return s
	})
}

// ruled writes a text that follows a rule.
func (g *gbnf) ruled(t *ruledText) (string, error) {
	words := slices.Concat(t.words, g.avoid)
	key := fmt.Sprintf("\x00ruled %q %d %d %q %q", t.rule.patterns, t.rule.least, t.rule.most, t.rule.not, words)
	if name, ok := g.names[key]; ok {
		return name, nil
	}
	tooMany := func(states, wide int) bool { return states > maxTextStates }
	avoid := without{newSearcher(words)}
	patterns, not, least, most := t.rule.machines()
	least = min(least, maxRepeat)
	if most > maxRepeat {
		most = -1
	}
	name := func() string {
		count := []machine{counter{least, most}}
		for _, machines := range [][]machine{slices.Concat(patterns, not, count), slices.Concat(patterns, count), patterns} {
			if len(machines) == 0 {
				break
			}
			if a, ok := product(&g.spent, tooMany, append(machines, avoid)...); ok && a != nil {
				return g.automaton(a)
			}
		}
		var firsts []rune
		for _, w := range words {
			r, _ := utf8.DecodeRuneInString(w)
			firsts = append(firsts, r)
		}
		slices.Sort(firsts)
		char := g.rule(class(true, single(slices.Compact(firsts))...))
		switch {
		case most >= 0:
			return g.rule(fmt.Sprintf("%s{%d,%d}", char, least, most))
		case least > 0:
			return g.rule(fmt.Sprintf("%s{%d} %s", char, least, g.text("", "", words)))
		}
		return g.text("", "", words)
	}()
	g.names[key] = name
	return name, g.spend(0)
}
