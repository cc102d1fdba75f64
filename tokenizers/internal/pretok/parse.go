// SPDX-License-Identifier: Apache-2.0

package pretok

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/unidata"
)

// This file reads Oniguruma's syntax (ONIG_SYNTAX_ONIGURUMA of version 6.9, the default of Rust's onig
// crate) into a tree. Constructs that the tree cannot represent are errors, and so are those that Oniguruma
// reads in an unintended way. rust.go contains what differs in the syntax of Rust's fancy-regex.

type kind uint8

const (
	kEmpty  kind = iota
	kSet         // one character of set
	kCat         // subs one after the other
	kAlt         // one of subs, the first that leads to a match
	kRepeat      // subs[0] min to max times
	kLook        // subs[0] matches here, or not
	kAtomic      // subs[0], whose first match is final
	kAssert      // a position
)

type node struct {
	kind       kind
	at         int // offset in the expression
	subs       []*node
	set        charset
	min, max   int  // max is -1 for no limit
	lazy       bool // kRepeat
	neg        bool // kLook
	lookbehind bool // kLook
	folded     rune // kSet: the letter for which (?i) made the set, or 0
	position   position
}

type position uint8

const (
	lineStart  position = iota // ^
	lineEnd                    // $
	textStart                  // \A
	textEnd                    // \z
	lastLine                   // \Z
	wordEdge                   // \b
	noWordEdge                 // \B
)

const (
	maxDepth  = 200    // nested groups
	maxRepeat = 100000 // Oniguruma's limit
)

type parser struct {
	expr  string
	pos   int
	depth int
	flags flags
	rust  bool // the syntax is that of fancy-regex
}

type flags struct{ fold, dotAll, extended bool }

// fail panics with an error, which parse recovers.
func (p *parser) fail(at int, format string, args ...any) {
	panic(&Error{p.expr, at, fmt.Sprintf(format, args...)})
}

func parse(expr string, rust bool) (n *node, err error) {
	p := parser{expr: expr, rust: rust}
	defer func() {
		if e, ok := recover().(*Error); ok {
			n, err = nil, e
		} else if e != nil {
			panic(e)
		}
	}()
	if !utf8.ValidString(expr) {
		for i, r := range expr {
			if r == utf8.RuneError {
				p.fail(i, "no valid UTF-8")
			}
		}
	}
	n = p.alternatives()
	if p.pos < len(expr) {
		p.fail(p.pos, "unmatched )")
	}
	p.checkFolds(n)
	if rust {
		p.checkRust(n)
	}
	return n, nil
}

func (p *parser) more() bool { return p.pos < len(p.expr) }

func (p *parser) next() rune {
	r, n := utf8.DecodeRuneInString(p.expr[p.pos:])
	p.pos += n
	return r
}

// take skips lit if it comes next.
func (p *parser) take(lit string) bool {
	if strings.HasPrefix(p.expr[p.pos:], lit) {
		p.pos += len(lit)
		return true
	}
	return false
}

// alternatives reads up to a closing parenthesis or the end.
func (p *parser) alternatives() *node {
	if p.depth++; p.depth > maxDepth {
		p.fail(p.pos, "groups nested more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	n := &node{kind: kAlt, at: p.pos}
	for {
		n.subs = append(n.subs, p.sequence())
		if !p.take("|") {
			break
		}
	}
	if len(n.subs) == 1 {
		return n.subs[0]
	}
	return n
}

func (p *parser) sequence() *node {
	n := &node{kind: kCat, at: p.pos}
	for {
		p.skipSpace()
		if !p.more() || p.expr[p.pos] == '|' || p.expr[p.pos] == ')' {
			break
		}
		x, isolated := p.item()
		if x == nil {
			continue
		}
		n.subs = append(n.subs, x)
		if isolated {
			break // the rest was parsed as a separate group
		}
	}
	switch len(n.subs) {
	case 0:
		n.kind = kEmpty
	case 1:
		return n.subs[0]
	}
	return n
}

// skipSpace skips white space and comments when (?x) is on.
func (p *parser) skipSpace() {
	for p.flags.extended && p.more() {
		switch c := p.expr[p.pos]; {
		case c == ' ' || '\t' <= c && c <= '\r':
			p.pos++
		case c == '#':
			if i := strings.IndexByte(p.expr[p.pos:], '\n'); i >= 0 {
				p.pos += i + 1
			} else {
				p.pos = len(p.expr)
			}
		default:
			return
		}
	}
}

// item reads one item and its quantifiers. It returns nil for a comment.
func (p *parser) item() (n *node, isolated bool) {
	at := p.pos
	n, isolated = p.atom()
	if n == nil || isolated {
		return n, isolated
	}
	for first := true; ; first = false {
		p.skipSpace()
		q := p.pos
		lo, hi, lazy, possessive, ok := p.quantifier()
		if !ok {
			return n, false
		}
		if p.rust && !first {
			p.fail(q, "a quantifier after a quantifier")
		}
		if n.kind == kLook || n.kind == kAssert {
			p.fail(q, "a quantifier after something that has no width")
		}
		n = &node{kind: kRepeat, at: at, subs: []*node{n}, min: lo, max: hi, lazy: lazy}
		if possessive {
			n = &node{kind: kAtomic, at: at, subs: []*node{n}}
		}
	}
}

// quantifier reads ? * + or {n,m} and the mark after it, if any.
func (p *parser) quantifier() (lo, hi int, lazy, possessive, ok bool) {
	if !p.more() {
		return
	}
	switch p.expr[p.pos] {
	case '?':
		lo, hi = 0, 1
	case '*':
		lo, hi = 0, -1
	case '+':
		lo, hi = 1, -1
	case '{':
		at := p.pos
		lo, hi, lazy, possessive, ok = p.interval()
		if p.rust {
			if !ok || p.expr[at+1] == ',' || possessive {
				p.fail(at, "a { that does not begin {n}, {n,} or {n,m}")
			}
			lazy = lazy || p.take("?")
			possessive = !lazy && p.take("+")
		}
		return lo, hi, lazy, possessive, ok
	default:
		return
	}
	p.pos++
	lazy = p.take("?")
	possessive = !lazy && p.take("+")
	return lo, hi, lazy, possessive, true
}

// interval reads {n} {n,} {,m} {n,m}; anything else that begins with { is text. A + after it is a separate quantifier,
// and so is a ? after {n}. If n > m, it means {m,n}, possessive.
func (p *parser) interval() (lo, hi int, lazy, possessive, ok bool) {
	end := strings.IndexByte(p.expr[p.pos:], '}')
	if end < 0 {
		return
	}
	first, second, comma := strings.Cut(p.expr[p.pos+1:p.pos+end], ",")
	number := func(s string) int {
		for _, c := range []byte(s) {
			if c < '0' || c > '9' {
				return -1
			}
		}
		n, err := strconv.Atoi(s)
		if err != nil || n > maxRepeat {
			p.fail(p.pos, "a repeat count above %d", maxRepeat)
		}
		return n
	}
	lo, hi = 0, -1
	if first != "" {
		if lo = number(first); lo < 0 {
			return
		}
	}
	if second != "" {
		if hi = number(second); hi < 0 {
			return
		}
	}
	switch {
	case first == "" && second == "":
		return
	case !comma:
		hi = lo
	case hi >= 0 && lo > hi:
		lo, hi, possessive = hi, lo, true
	}
	p.pos += end + 1
	if comma {
		lazy = p.take("?")
	}
	if lazy && possessive {
		p.fail(p.pos-1, "a lazy {n,m} with n above m")
	}
	return lo, hi, lazy, possessive, true
}

func (p *parser) assertion(at int, w position) *node {
	return &node{kind: kAssert, at: at, position: w}
}

// chars returns the node for a set outside a character class. neg is applied after case folding.
func (p *parser) chars(at int, set charset, neg bool) *node {
	if p.flags.fold {
		set = p.fold(at, set, neg)
	}
	if neg {
		set = set.negate()
	}
	return &node{kind: kSet, at: at, set: set}
}

func (p *parser) literal(at int, r rune) *node {
	n := &node{kind: kSet, at: at, set: single(r)}
	if p.flags.fold {
		n.set = p.fold(at, n.set, false)
		n.folded = n.set[0][0]
	}
	return n
}

// fold adds the other cases of the characters in set. Some letters fold to more than one letter (ß to ss),
// which a set cannot express.
func (p *parser) fold(at int, set charset, neg bool) charset {
	out := slices.Clone(set)
	unidata.Folds(func(orbit []rune) {
		for _, r := range orbit {
			if set.has(r) {
				for _, r := range orbit {
					out = append(out, [2]rune{r, r})
				}
				break
			}
		}
	})
	out = newCharset(out)
	if !neg {
		unidata.MultiFolds(func(r rune, _ []rune) {
			if out.has(r) {
				p.fail(at, "(?i) on %q, which folds to more than one letter,", r)
			}
		})
	}
	return out
}

// checkFolds rejects the reverse of such foldings: consecutive letters to which one letter folds.
func (p *parser) checkFolds(n *node) {
	var row []*node
	var walk func(n *node)
	check := func() {
		unidata.MultiFolds(func(_ rune, to []rune) {
			for i := 0; i+len(to) <= len(row); i++ {
				ok := true
				for k, r := range to {
					ok = ok && row[i+k].set.has(r)
				}
				if ok {
					p.fail(row[i].at, "(?i) on %q, which one letter folds to,", string(to))
				}
			}
		})
		row = row[:0]
	}
	walk = func(n *node) {
		switch {
		case n.folded != 0:
			row = append(row, n)
		case n.kind == kCat:
			for _, x := range n.subs {
				walk(x)
			}
		case n.kind == kRepeat && n.subs[0].folded != 0:
			check()
			// Oniguruma may write x{3} as xxx.
			for range min(n.min, 3) {
				walk(n.subs[0])
			}
			check()
		default:
			check()
			for _, x := range n.subs {
				walk(x)
				check()
			}
		}
	}
	walk(n)
	check()
}

func (p *parser) atom() (n *node, isolated bool) {
	at := p.pos
	switch c := p.next(); c {
	case '(':
		return p.group(at)
	case '[':
		set, neg := p.class(at)
		return p.chars(at, set, neg), false
	case '.':
		if p.flags.dotAll {
			return &node{kind: kSet, at: at, set: charset(nil).negate()}, false
		}
		return &node{kind: kSet, at: at, set: single('\n').negate()}, false
	case '^':
		if p.rust {
			return p.assertion(at, textStart), false
		}
		return p.assertion(at, lineStart), false
	case '$':
		if p.rust {
			return p.assertion(at, textEnd), false
		}
		return p.assertion(at, lineEnd), false
	case '*', '+', '?':
		p.fail(at, "a quantifier after nothing")
	case '\\':
		return p.escape(at), false
	default:
		return p.literal(at, c), false
	}
	panic("unreachable")
}

func (p *parser) group(at int) (n *node, isolated bool) {
	if p.take("*") {
		p.fail(at, "a callout (*…)")
	}
	if !p.take("?") {
		// The group prevents a quantifier from applying to an item without width.
		return &node{kind: kCat, at: at, subs: []*node{p.close(at)}}, false
	}
	if !p.more() {
		p.fail(at, "a group without an end")
	}
	wrap := func(k kind, neg, lookbehind bool) *node {
		return &node{kind: k, at: at, neg: neg, lookbehind: lookbehind, subs: []*node{p.close(at)}}
	}
	if p.rust && p.take("P<") {
		p.pos-- // (?P<name>…) is (?<name>…)
	}
	switch c := p.next(); c {
	case ':':
		return p.close(at), false
	case '=':
		return wrap(kLook, false, false), false
	case '!':
		return wrap(kLook, true, false), false
	case '>':
		return wrap(kAtomic, false, false), false
	case '#':
		i := strings.IndexByte(p.expr[p.pos:], ')')
		if i < 0 {
			p.fail(at, "a comment without an end")
		}
		if strings.IndexByte(p.expr[p.pos:p.pos+i], '\\') >= 0 {
			p.fail(at, "a comment with a backslash")
		}
		p.pos += i + 1
		return nil, false
	case '<', '\'':
		if c == '<' {
			if p.take("=") {
				return wrap(kLook, false, true), false
			}
			if p.take("!") {
				return wrap(kLook, true, true), false
			}
			c = '>'
		}
		i := strings.IndexRune(p.expr[p.pos:], c)
		if i <= 0 {
			p.fail(at, "a group name without an end")
		}
		for k, r := range p.expr[p.pos : p.pos+i] {
			if !unidata.IsWord(r) || k == 0 && '0' <= r && r <= '9' {
				p.fail(p.pos, "the group name %q", p.expr[p.pos:p.pos+i])
			}
		}
		p.pos += i + 1
		return p.close(at), false
	case '~':
		p.fail(at, "an absent operator (?~…)")
	case '(':
		p.fail(at, "a condition (?(…)…)")
	case '{':
		p.fail(at, "a callout (?{…})")
	}
	p.pos--
	saved := p.flags
	on := true
	for {
		if !p.more() {
			p.fail(at, "a group without an end")
		}
		c := p.next()
		if p.rust {
			switch c {
			case 's':
				c = 'm' // the same option
			case 'm', 'x':
				p.fail(at, "the group option %q", c)
			}
		}
		switch c {
		case '-':
			on = false
		case 'i':
			p.flags.fold = on
		case 'm':
			p.flags.dotAll = on
		case 'x':
			p.flags.extended = on
		case ':':
			n = p.close(at)
			p.flags = saved
			return n, false
		case ')': // up to the end of the group around it
			if p.rust {
				if p.depth > 1 {
					p.fail(at, "options for the rest of a group") // fancy-regex does not end them with the group
				}
				return nil, false
			}
			n = p.alternatives()
			p.flags = saved
			return n, true
		default:
			p.fail(at, "the group option %q", c)
		}
	}
}

// close reads the rest of a group.
func (p *parser) close(at int) *node {
	saved := p.flags
	n := p.alternatives()
	p.flags = saved
	if !p.take(")") {
		p.fail(at, "a group without an end")
	}
	return n
}

// escape reads the rest of an escape outside a class.
func (p *parser) escape(at int) *node {
	if !p.more() {
		p.fail(at, "a backslash at the end")
	}
	if p.rust {
		p.rustEscape(at)
	}
	switch c := p.expr[p.pos]; c {
	case 'A', 'z', 'Z', 'b', 'B':
		p.pos++
		return p.assertion(at, map[byte]position{'A': textStart, 'z': textEnd, 'Z': lastLine, 'b': wordEdge, 'B': noWordEdge}[c])
	case 'R':
		p.pos++
		line := newCharset([][2]rune{{'\n', '\r'}, {0x85, 0x85}, {0x2028, 0x2029}})
		crlf := &node{kind: kCat, at: at, subs: []*node{{kind: kSet, set: single('\r')}, {kind: kSet, set: single('\n')}}}
		return &node{kind: kAtomic, at: at, subs: []*node{{kind: kAlt, at: at, subs: []*node{crlf, {kind: kSet, set: line}}}}}
	case 'N':
		p.pos++
		return &node{kind: kSet, at: at, set: single('\n').negate()}
	case 'O':
		p.pos++
		return &node{kind: kSet, at: at, set: charset(nil).negate()}
	case '1', '2', '3', '4', '5', '6', '7', '8', '9', 'k':
		p.fail(at, "a backreference")
	case 'g':
		p.fail(at, "a subexpression call")
	case 'G', 'K', 'X', 'y', 'Y':
		p.fail(at, "\\%c", c)
	}
	if set, neg, ok := p.shorthand(at); ok {
		if p.rust {
			if neg {
				set = p.caseless(at, set.negate())
			}
			return p.chars(at, set, false)
		}
		if c := p.expr[at+1] | 0x20; c != 'p' || set.equal(wordSet()) {
			// Case folding does not apply to \w and similar sets. A lone \w has more characters than one in a class.
			if set.equal(wordSet()) {
				set = bareWord()
			}
			if neg {
				set = set.negate()
			}
			return &node{kind: kSet, at: at, set: set}
		}
		if neg { // before case folding, other than in [^…]
			set = set.negate()
		}
		return p.chars(at, set, false)
	}
	return p.literal(at, p.char(at))
}

// shorthand reads the rest of \s \d \w \h \p{…} and their opposites.
func (p *parser) shorthand(at int) (set charset, neg, ok bool) {
	var name string
	switch c := p.expr[p.pos]; c {
	case 's', 'S':
		name, neg = "Space", c == 'S'
	case 'd', 'D':
		name, neg = "Nd", c == 'D'
	case 'w', 'W':
		name, neg = "Word", c == 'W'
	case 'h', 'H':
		name, neg = "XDigit", c == 'H'
	case 'p', 'P':
		if p.rust && p.pos+1 < len(p.expr) && p.expr[p.pos+1] != '{' {
			name, neg = p.expr[p.pos+1:p.pos+2], c == 'P'
			p.pos++
			break
		}
		end := strings.IndexByte(p.expr[p.pos:], '}')
		if p.pos+1 >= len(p.expr) || p.expr[p.pos+1] != '{' || end < 0 {
			p.fail(at, "\\%c without {…}", c)
		}
		name, neg = p.expr[p.pos+2:p.pos+end], c == 'P'
		if rest, ok := strings.CutPrefix(name, "^"); ok && !p.rust {
			name, neg = rest, !neg
		}
		p.pos += end
	default:
		return nil, false, false
	}
	p.pos++
	if p.rust {
		return p.rustProperty(at, name), neg, true
	}
	r, ok := unidata.Property(name)
	if !ok {
		p.fail(at, "the property %q", name)
	}
	return newCharset(r), neg, true
}

// char reads the rest of an escape that denotes one character.
func (p *parser) char(at int) rune {
	c := p.next()
	switch c {
	case 't':
		return '\t'
	case 'n':
		return '\n'
	case 'v':
		return '\v'
	case 'f':
		return '\f'
	case 'r':
		return '\r'
	case 'a':
		return '\a'
	case 'e':
		return 0x1B
	case '0':
		n := 0
		for ; n < 2 && p.pos+n < len(p.expr) && '0' <= p.expr[p.pos+n] && p.expr[p.pos+n] <= '7'; n++ {
		}
		v, _ := strconv.ParseUint("0"+p.expr[p.pos:p.pos+n], 8, 8)
		p.pos += n
		return rune(v)
	case 'u':
		if p.rust && p.pos < len(p.expr) && p.expr[p.pos] == '{' {
			return p.braced(at, 'u')
		}
		if p.pos+4 <= len(p.expr) {
			if v, err := strconv.ParseUint(p.expr[p.pos:p.pos+4], 16, 32); err == nil {
				p.pos += 4
				return p.scalar(at, v)
			}
		}
		p.fail(at, "\\u without four hexadecimal digits")
	case 'x':
		if p.pos < len(p.expr) && p.expr[p.pos] == '{' {
			return p.braced(at, 'x')
		}
		if p.rust {
			return p.hex(at, 2)
		}
		p.pos--
		return p.bytes(at)
	}
	if c < utf8.RuneSelf && ('a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9') {
		p.fail(at, "\\%c", c)
	}
	return c
}

// braced reads the code point of \x{…} or \u{…}.
func (p *parser) braced(at int, c rune) rune {
	p.pos++
	end := strings.IndexByte(p.expr[p.pos:], '}')
	if end >= 1 && end <= 8 {
		if v, err := strconv.ParseUint(p.expr[p.pos:p.pos+end], 16, 32); err == nil {
			p.pos += end + 1
			return p.scalar(at, v)
		}
	}
	p.fail(at, "\\%c{…} without one code point", c)
	return 0
}

func (p *parser) scalar(at int, v uint64) rune {
	if v > utf8.MaxRune || !utf8.ValidRune(rune(v)) {
		p.fail(at, "the code point %X", v)
	}
	return rune(v)
}

// bytes reads \xHH, or several of them that are the UTF-8 of one character.
func (p *parser) bytes(at int) rune {
	var b []byte
	for p.pos+2 < len(p.expr) && p.expr[p.pos] == 'x' {
		n := 3
		v, err := strconv.ParseUint(p.expr[p.pos+1:p.pos+3], 16, 8)
		if err != nil {
			break
		}
		p.pos += n
		b = append(b, byte(v))
		if utf8.FullRune(b) {
			break
		}
		if !strings.HasPrefix(p.expr[p.pos:], `\x`) {
			break
		}
		p.pos++
	}
	r, n := utf8.DecodeRune(b)
	if len(b) == 0 || n != len(b) || r == utf8.RuneError && n == 1 {
		p.fail(at, "\\x without two hexadecimal digits, or no valid UTF-8")
	}
	return r
}

// class reads a character class after its bracket: unions, && between them, all of it negated or not.
func (p *parser) class(at int) (set charset, neg bool) {
	if p.depth++; p.depth > maxDepth {
		p.fail(at, "classes nested more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	neg = p.take("^")
	var done charset // the intersection of the sides before this one
	var cur [][2]rune
	sides, items := 0, 0
	for first := true; ; first = false {
		here := p.pos
		if !p.more() {
			p.fail(at, "a character class without an end")
		}
		if p.expr[p.pos] == ']' && !first {
			p.pos++
			break
		}
		if p.rust {
			p.rustClass(here)
		}
		if p.take("&&") {
			if items == 0 {
				p.fail(here, "&& after nothing")
			}
			done = side(done, cur, sides)
			cur, items = nil, 0
			sides++
			continue
		}
		items++
		if p.expr[p.pos] == '[' {
			if x, ok := p.posix(); ok {
				cur = append(cur, x...)
			} else {
				p.pos++
				x, n := p.class(here)
				if n {
					x = x.negate()
				}
				cur = append(cur, x...)
			}
			p.noRange(here)
			continue
		}
		if p.expr[p.pos] == '\\' {
			p.pos++
			if !p.more() {
				p.fail(here, "a backslash at the end")
			}
			if p.rust {
				p.rustEscape(here)
			}
			if x, n, ok := p.shorthand(here); ok {
				if n {
					x = p.caseless(here, charset(x).negate())
				}
				cur = append(cur, x...)
				p.noRange(here)
				continue
			}
			p.pos--
		} else if p.expr[p.pos] == '-' && !(items == 1 && sides == 0) && !strings.HasPrefix(p.expr[p.pos:], "-]") {
			p.fail(here, "a - that is neither escaped nor at an end of its class")
		}
		lo := p.classChar(here)
		hi := lo
		if strings.HasPrefix(p.expr[p.pos:], "-") && !strings.HasPrefix(p.expr[p.pos:], "-]") {
			p.pos++
			q := p.pos
			if !p.more() || p.expr[p.pos] == '[' || p.expr[p.pos] == '-' || strings.HasPrefix(p.expr[p.pos:], "&&") {
				p.fail(here, "a range without an end")
			}
			if p.expr[p.pos] == '\\' && p.pos+1 < len(p.expr) && strings.IndexByte("sSdDwWhHpP", p.expr[p.pos+1]) >= 0 {
				p.fail(here, "a range to a class")
			}
			if hi = p.classChar(q); hi < lo {
				p.fail(here, "the empty range %q", p.expr[here:p.pos])
			}
			p.noRange(here)
		}
		cur = append(cur, [2]rune{lo, hi})
	}
	if items == 0 {
		p.fail(at, "&& before nothing")
	}
	set = side(done, cur, sides)
	if neg || sides > 0 {
		set = p.caseless(at, set)
	}
	return set, neg
}

func side(done charset, cur [][2]rune, sides int) charset {
	c := newCharset(cur)
	if sides > 0 {
		c = done.intersect(c)
	}
	return c
}

// noRange refuses a - that looks like a range that starts with something other than a character.
func (p *parser) noRange(at int) {
	if strings.HasPrefix(p.expr[p.pos:], "-") && !strings.HasPrefix(p.expr[p.pos:], "-]") {
		p.fail(at, "a range from a class or a range")
	}
}

// classChar reads one character of a class.
func (p *parser) classChar(at int) rune {
	c := p.next()
	if c != '\\' {
		return c
	}
	if !p.more() {
		p.fail(at, "a backslash at the end")
	}
	if p.rust {
		p.rustEscape(at)
	} else if p.take("b") {
		return '\b'
	}
	return p.char(at)
}

// posix reads [:name:] if it comes next.
func (p *parser) posix() (charset, bool) {
	rest, ok := strings.CutPrefix(p.expr[p.pos:], "[:")
	if !ok {
		return nil, false
	}
	name, _, ok := strings.Cut(rest, ":]")
	if !ok || strings.ContainsAny(name, "[]\\") {
		return nil, false
	}
	at := p.pos
	p.pos += len("[:") + len(name) + len(":]")
	name, neg := strings.CutPrefix(name, "^")
	r, ok := unidata.Posix(name)
	if !ok {
		p.fail(at, "the class [:%s:]", name)
	}
	set := newCharset(r)
	if neg {
		set = set.negate()
	}
	return set, true
}

func wordSet() charset {
	r, _ := unidata.Property("Word")
	return newCharset(r)
}

// bareWord is the set of \w outside a class and of \b: Oniguruma uses another table for it, in which six numerals of
// Latin-1 are word characters too.
func bareWord() charset {
	return wordSet().union(charset{{0xB2, 0xB3}, {0xB9, 0xB9}, {0xBC, 0xBE}})
}
