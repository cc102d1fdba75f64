// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"cmp"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// This file writes constraints in GBNF, the notation of llama.cpp, as its build 11434 reads it. It differs from structural
// tags in what the text of a token may be: the engine compares the text of all tokens, markers too, with the grammar. So
// that free text has no marker, it cannot contain the text of one either. The rules for such text are the states of the
// automaton that searches for the markers.

// GBNF returns the constraint as a grammar of llama.cpp. Equal demands have equal grammars. Free text, in reasoning and in
// strings, cannot contain the text of the markers and special tokens of the vocabulary.
//
// The error is an *[apierr.Error] of class Invalid for what the notation cannot express: structural tags and grammars in
// other notations, and keywords of schemas such as not, uniqueItems and multipleOf. Keywords that only annotate, as format does
// with values other than date, time, date-time, uuid, email, hostname, ipv4 and uri, have no effect.
func (c *Constraint) GBNF() (string, error) {
	g := gbnf{names: make(map[string]string), refs: make(map[reference]string), ids: make(map[string]int), sets: make(map[string]string)}
	if c.root.Type == "grammar" {
		if err := isGBNF(c.root.Grammar); err != nil {
			return "", err
		}
		return c.root.Grammar, nil
	}
	g.model = c.model
	g.avoid = g.texts(c.model.excluded())
	root, err := g.format(c.root)
	if err != nil {
		return "", err
	}
	return "root ::= " + root + "\n" + g.rules.String(), nil
}

// excluded returns the tokens that free text must not have.
func (m *Model) excluded() []uint32 {
	if m.tok == nil {
		return nil
	}
	return m.callShape().exclude
}

// A gbnf writes a grammar. Its methods return expressions that can be part of a sequence.
type gbnf struct {
	model *Model
	avoid []string // texts that free text must not contain
	rules strings.Builder
	names map[string]string // of rules, by their expression
	n     int

	refs   map[reference]string // names of rules
	schema []byte               // that references refer to
	id     int                  // of the schema
	ids    map[string]int       // of schemas
	parts  map[string]part      // of the schema, by their path
	sets   map[string]string    // expressions, by the characters
	depth  int
	work   int // bytes that were read and written
	spent  int // on automata
}

// maxGBNFWork bounds the bytes of schemas that are read, each part again for its members, and of the grammar. The tools of
// harnesses take a tenth of it.
const maxGBNFWork = 4 << 20

// maxPattern bounds a regular expression, in bytes.
const maxPattern = 32 << 10

// spend adds to the work and returns an error if that was too much.
func (g *gbnf) spend(bytes int) error {
	if g.work += bytes; g.work > maxGBNFWork {
		return inexpressible("room for a demand this large")
	}
	return nil
}

// texts returns the texts of tokens.
func (g *gbnf) texts(ids []uint32) (list []string) {
	for _, id := range ids {
		if text, ok := g.model.tok.Token(id); ok && text != "" {
			list = append(list, text)
		}
	}
	return list
}

// inexpressible returns the error for what a grammar cannot express. The parameter is not known here.
func inexpressible(format string, args ...any) error {
	return unforced("", "llama.cpp's grammars have no "+fmt.Sprintf(format, args...))
}

// rule returns the name of the rule with an expression.
func (g *gbnf) rule(expr string) string {
	if name, ok := g.names[expr]; ok {
		return name
	}
	g.work += len(expr)
	name := g.name()
	g.names[expr] = name
	g.define(name, expr)
	return name
}

// name returns the name of a rule that is not defined.
func (g *gbnf) name() string {
	g.n++
	return fmt.Sprint("r", g.n)
}

func (g *gbnf) define(name, expr string) { fmt.Fprintf(&g.rules, "%s ::= %s\n", name, expr) }

// format writes a part of a constraint.
func (g *gbnf) format(f *format) (string, error) {
	list := func(sep string) (string, error) {
		var parts []string
		for i := range f.Elements {
			part, err := g.format(&f.Elements[i])
			if err != nil {
				return "", err
			}
			parts = append(parts, part)
		}
		return strings.Join(parts, sep), nil
	}
	switch {
	case f.raw != nil:
		return "", inexpressible("structural tags")
	case f.Type == "const_string":
		return literal(f.Value), nil
	case f.Type == "token":
		return fmt.Sprintf("<[%d]>", *f.Token), nil
	case f.Type == "any_tokens":
		return g.text("", "", g.texts(f.Exclude)), nil
	case f.Type == "tag": // of any text
		return g.text(f.End, "", g.avoid), nil
	case f.Type == "json_schema":
		return g.jsonSchema(f.Schema)
	case f.Type == "regex":
		return g.regex(f.Pattern, false)
	case f.text != nil:
		return g.ruled(f.text)
	case f.name != nil:
		return g.automaton(f.name), g.spend(0)
	case f.Type == "grammar":
		return g.embed(f.Grammar)
	case f.Type == "sequence":
		return list(" ")
	case f.Type == "or":
		out, err := list(" | ")
		return "(" + out + ")", err
	case f.Type == "optional", f.Type == "star":
		out, err := g.format(f.Content)
		return g.rule(out) + map[string]string{"optional": "?", "star": "*"}[f.Type], err
	case f.Type == "repeat":
		out, err := g.format(f.Content)
		if *f.Max < 0 || *f.Max > maxRepeat {
			return g.rule(out) + fmt.Sprintf("{%d,}", min(*f.Min, maxRepeat)), err
		}
		return g.rule(out) + fmt.Sprintf("{%d,%d}", *f.Min, *f.Max), err
	}
	return "", inexpressible("%s", f.Type)
}

// literal writes a text.
func literal(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r >= ' ' && r <= '~':
			b.WriteRune(r)
		default:
			writeCode(&b, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// writeCode writes a character by its number.
func writeCode(b *strings.Builder, r rune) {
	switch {
	case r <= 0xff:
		fmt.Fprintf(b, `\x%02x`, r)
	case r <= 0xffff:
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		fmt.Fprintf(b, `\U%08x`, r)
	}
}

// class writes a set of characters, given by pairs of first and last, or its complement.
func class(not bool, pairs ...rune) string {
	var b strings.Builder
	b.WriteByte('[')
	if not {
		b.WriteByte('^')
	}
	one := func(r rune) {
		if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			b.WriteRune(r)
			return
		}
		writeCode(&b, r)
	}
	for i := 0; i < len(pairs); i += 2 {
		one(pairs[i])
		if pairs[i+1] > pairs[i] {
			b.WriteByte('-')
			one(pairs[i+1])
		}
	}
	b.WriteByte(']')
	return b.String()
}

// single returns the pairs of single characters.
func single(runes []rune) (pairs []rune) {
	for _, r := range runes {
		pairs = append(pairs, r, r)
	}
	return pairs
}

// stringEnd is the end of free text that is the rest of a string in JSON.
const stringEnd = `"`

// escape is what follows a backslash in JSON.
const escape = `(["\\/bfnrt] | "u" [0-9a-fA-F] [0-9a-fA-F] [0-9a-fA-F] [0-9a-fA-F])`

// A searcher is the automaton of Aho and Corasick, which finds words in a text.
type searcher struct {
	next  []map[rune]int // by state; 0 is the start
	fail  []int
	found []int // the word that ends in a state, from 1; 0 is none
}

// newSearcher returns the automaton for words.
func newSearcher(words []string) *searcher {
	s := &searcher{}
	state := func() int {
		s.next, s.fail, s.found = append(s.next, map[rune]int{}), append(s.fail, 0), append(s.found, 0)
		return len(s.next) - 1
	}
	state()
	for i, w := range words {
		at := 0
		for _, r := range w {
			to, ok := s.next[at][r]
			if !ok {
				to = state()
				s.next[at][r] = to
			}
			at = to
		}
		if at > 0 && s.found[at] == 0 {
			s.found[at] = i + 1
		}
	}
	for queue := []int{0}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for r, to := range s.next[at] {
			queue = append(queue, to)
			if at > 0 {
				s.fail[to] = s.step(s.fail[at], r)
			}
		}
		if s.found[at] == 0 {
			s.found[at] = s.found[s.fail[at]]
		}
	}
	return s
}

// step returns the state after a character.
func (s *searcher) step(at int, r rune) int {
	for {
		if to, ok := s.next[at][r]; ok {
			return to
		}
		if at == 0 {
			return 0
		}
		at = s.fail[at]
	}
}

// runes returns the characters with which a state does not lead to the start, sorted.
func (s *searcher) runes(at int) (out []rune) {
	for ; ; at = s.fail[at] {
		for r := range s.next[at] {
			out = append(out, r)
		}
		if at == 0 {
			slices.Sort(out)
			return slices.Compact(out)
		}
	}
}

// text returns the rule for any text without the texts in avoid: up to and including the first end, if that is not "", or
// the rest of a string in JSON if end is stringEnd and also json is stringEnd.
func (g *gbnf) text(end, json string, avoid []string) string {
	key := fmt.Sprintf("\x00text %s %s %q", end, json, avoid)
	if name, ok := g.names[key]; ok {
		return name
	}
	words := avoid
	if end != "" && json == "" {
		words = append([]string{end}, words...)
	}
	s := newSearcher(words)
	names := make([]string, len(s.next))
	for i := range names {
		if s.found[i] == 0 {
			names[i] = g.name()
		}
	}
	g.names[key] = names[0]
	for at, name := range names {
		if name == "" {
			continue
		}
		var list []string
		runes := s.runes(at)
		targets := make(map[int][]rune)
		for _, r := range runes {
			to := s.step(at, r)
			targets[to] = append(targets[to], r)
		}
		other := single(runes)
		switch {
		case json != "":
			runes = slices.DeleteFunc(runes, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' })
			other = append([]rune{0, 0x1f, '"', '"', '\\', '\\'}, single(runes)...)
			list = append(list, `"\""`, `"\\" `+escape+" "+names[0])
		case end == "":
			list = append(list, `""`)
		}
		for _, to := range sortedKeys(targets) {
			chars := targets[to]
			if json != "" {
				chars = slices.DeleteFunc(chars, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' })
			}
			switch {
			case len(chars) == 0:
			case s.found[to] == 1 && len(words) > len(avoid):
				list = append(list, class(false, single(chars)...))
			case s.found[to] == 0:
				list = append(list, class(false, single(chars)...)+" "+names[to])
			}
		}
		any := "."
		if len(other) > 0 {
			any = class(true, other...)
		}
		g.define(name, strings.Join(append(list, any+" "+names[0]), " | "))
	}
	return names[0]
}

func sortedKeys[V any](m map[int]V) []int {
	keys := make([]int, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// firsts returns the first characters of the texts to avoid, sorted. Text without them has none of those.
func (g *gbnf) firsts() (out []rune) {
	for _, w := range g.avoid {
		r, _ := utf8.DecodeRuneInString(w)
		out = append(out, r)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// regex writes a regular expression, which matches a whole text or, inside a string of JSON, a part of it.
func (g *gbnf) regex(pattern string, json bool) (string, error) {
	if len(pattern) > maxPattern {
		return "", inexpressible("room for a regular expression this long")
	}
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", unforced("", fmt.Sprintf("the regular expression %q cannot be read: %v", pattern, err))
	}
	list := []*syntax.Regexp{re}
	if re.Op == syntax.OpConcat {
		list = re.Sub
	}
	isStart := func(op syntax.Op) bool { return op == syntax.OpBeginText || op == syntax.OpBeginLine }
	isEnd := func(op syntax.Op) bool { return op == syntax.OpEndText || op == syntax.OpEndLine }
	start, end := !json, !json
	for len(list) > 0 && isStart(list[0].Op) {
		start, list = true, list[1:]
	}
	for len(list) > 0 && isEnd(list[len(list)-1].Op) {
		end, list = true, list[:len(list)-1]
	}
	var parts []string
	if !start {
		parts = append(parts, g.char()+"*")
	}
	for _, sub := range list {
		part, err := g.regexPart(sub, json)
		if err != nil {
			return "", err
		}
		parts = append(parts, part)
	}
	if !end {
		parts = append(parts, g.char()+"*")
	}
	return cmp.Or(strings.Join(parts, " "), `""`), nil
}

// regexPart writes a part of a regular expression.
func (g *gbnf) regexPart(re *syntax.Regexp, json bool) (string, error) {
	if g.depth++; g.depth > maxGBNFDepth {
		return "", inexpressible("nesting this deep")
	}
	defer func() { g.depth-- }()
	if err := g.spend(len(re.Rune)); err != nil {
		return "", err
	}
	var parts []string
	for _, sub := range re.Sub {
		part, err := g.regexPart(sub, json)
		if err != nil {
			return "", err
		}
		parts = append(parts, part)
	}
	switch re.Op {
	case syntax.OpEmptyMatch:
		return `""`, nil
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			return literal(quoteIf(json, string(re.Rune))), nil
		}
		for _, r := range re.Rune {
			pairs := []rune{r, r}
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				pairs = append(pairs, f, f)
			}
			parts = append(parts, g.set(pairs, json))
		}
		return strings.Join(parts, " "), nil
	case syntax.OpCharClass:
		return g.set(re.Rune, json), nil
	case syntax.OpAnyChar:
		return g.set([]rune{0, unicode.MaxRune}, json), nil
	case syntax.OpAnyCharNotNL:
		return g.set([]rune{0, '\n' - 1, '\n' + 1, unicode.MaxRune}, json), nil
	case syntax.OpConcat:
		return strings.Join(parts, " "), nil
	case syntax.OpAlternate:
		return "(" + strings.Join(parts, " | ") + ")", nil
	case syntax.OpCapture:
		return g.rule(parts[0]), nil
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		if re.Max == 0 && re.Op == syntax.OpRepeat || parts[0] == `""` {
			return `""`, nil
		}
		return g.rule(parts[0]) + repetition(re), nil
	}
	return "", inexpressible("equivalent of %q in a regular expression", re)
}

// repetition returns the suffix of what a regular expression repeats. Package syntax allows a count of 1,000, which
// llama.cpp does too.
func repetition(re *syntax.Regexp) string {
	switch {
	case re.Op == syntax.OpStar:
		return "*"
	case re.Op == syntax.OpPlus:
		return "+"
	case re.Op == syntax.OpQuest:
		return "?"
	case re.Max < 0:
		return fmt.Sprintf("{%d,}", re.Min)
	}
	return fmt.Sprintf("{%d,%d}", re.Min, re.Max)
}

// quoteIf returns a text as it is inside a string of JSON.
func quoteIf(json bool, text string) string {
	if !json {
		return text
	}
	quoted := string(quoteJSON(text))
	return quoted[1 : len(quoted)-1]
}

// wide is the number of characters from which a set is free text.
const wide = 512

// set writes a set of characters, inside a string of JSON if json is set.
func (g *gbnf) set(pairs []rune, json bool) string {
	key := fmt.Sprint(pairs, json)
	expr, ok := g.sets[key]
	if !ok {
		expr = g.newSet(pairs, json)
		g.sets[key] = expr
	}
	g.work += len(expr)
	return expr
}

func (g *gbnf) newSet(pairs []rune, json bool) string {
	size := 0
	for i := 0; i < len(pairs); i += 2 {
		size += int(pairs[i+1]-pairs[i]) + 1
	}
	var without []rune
	var list []string
	if json {
		for r := range rune(' ') {
			without = append(without, r)
		}
		without = append(without, '"', '\\')
		for _, r := range without {
			if within(pairs, r) {
				list = append(list, literal(quoteIf(true, string(r))))
			}
		}
	}
	if size >= wide {
		without = append(without, g.firsts()...)
	}
	slices.Sort(without)
	var rest []rune
	for i := 0; i < len(pairs); i += 2 {
		from := pairs[i]
		for _, r := range slices.Compact(without) {
			if r < from || r > pairs[i+1] {
				continue
			}
			if r > from {
				rest = append(rest, from, r-1)
			}
			from = r + 1
		}
		if from <= pairs[i+1] {
			rest = append(rest, from, pairs[i+1])
		}
	}
	if len(rest) > 0 {
		list = append(list, class(false, rest...))
	}
	if len(list) == 1 {
		return list[0]
	}
	return "(" + strings.Join(list, " | ") + ")"
}

func within(pairs []rune, r rune) bool {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i] <= r && r <= pairs[i+1] {
			return true
		}
	}
	return false
}

// isGBNF returns an error for a grammar in another notation.
func isGBNF(grammar string) error {
	for line := range strings.Lines(grammar) {
		if name, _, ok := strings.Cut(line, "::="); ok && strings.TrimSpace(name) == "root" {
			return nil
		}
	}
	return unforced("", "the grammar has no rule root ::=, so it is not one of llama.cpp")
}

// embed writes a client's grammar as part of another one: its rules get other names.
func (g *gbnf) embed(grammar string) (string, error) {
	if err := isGBNF(grammar); err != nil {
		return "", err
	}
	var out strings.Builder
	for i := 0; i < len(grammar); {
		c := grammar[i]
		end := i + 1
		switch {
		case c == '#':
			end = i + max(1, strings.IndexByte(grammar[i:]+"\n", '\n'))
		case c == '"' || c == '[' || c == '<' || c == '{': // what they enclose is no name
			closer := map[byte]byte{'"': '"', '[': ']', '<': '>', '{': '}'}[c]
			for end < len(grammar) && grammar[end] != closer {
				if grammar[end] == '\\' {
					end++
				}
				end++
			}
			end++
		case isNameByte(c):
			for end < len(grammar) && isNameByte(grammar[end]) {
				end++
			}
			out.WriteString("g-")
		}
		end = min(end, len(grammar))
		out.WriteString(grammar[i:end])
		i = end
	}
	g.rules.WriteString(strings.TrimRight(out.String(), "\n") + "\n")
	return "g-root", nil
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-'
}
