// SPDX-License-Identifier: Apache-2.0

package pretok

import (
	"slices"
	"strconv"
	"strings"

	"github.com/weft-go/weft/tokenizers/internal/unidata"
)

// This file contains what differs between Oniguruma's syntax and that of the crates fancy-regex and regex, with which
// tiktoken cuts: what is translated, and what is refused because its meaning differs.

// LookupRust is [Lookup] for one expression in the syntax of [CompileRust]. Its scanners match everywhere in a text, so
// no text is left between matches.
func LookupRust(expr string) (f Func, ok bool) {
	expr = strings.NewReplacer("\r", `\r`, "\n", `\n`).Replace(expr)
	switch expr {
	case cl100kBaseExpr:
		return CL100KRust, true // {1,3}+ has another meaning
	case gpt2Expr, gpt2Short, gpt2Possessive, cl100kExpr, cl100kFirstExpr, qwen2Expr, qwen35Expr, o200kExpr, tekkenExpr, kimiExpr:
		return Lookup(expr)
	}
	return nil, false
}

// rustEscape refuses the escapes after a backslash that differ in meaning.
func (p *parser) rustEscape(at int) {
	if !p.more() {
		p.fail(at, "a backslash at the end")
	}
	c := p.expr[p.pos]
	switch {
	case 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9':
		if strings.IndexByte("AzsSdDwWpPtnvfrauxe", c) < 0 {
			p.fail(at, "\\%c", c)
		}
	case c == '<' || c == '>' || c >= 0x80:
		p.fail(at, "an escaped %q", p.expr[p.pos:p.pos+1])
	}
}

// rustClass refuses what is an operator or a named class inside [ ].
func (p *parser) rustClass(at int) {
	for _, op := range [...]string{"--", "~~", "[:"} {
		if strings.HasPrefix(p.expr[p.pos:], op) {
			p.fail(at, "%s in a class", op)
		}
	}
}

// rustProperty returns the set of \p{name}, or of a shorthand by the name that shorthand uses.
func (p *parser) rustProperty(at int, name string) charset {
	switch name {
	case "Word":
		set := charset{{0x200C, 0x200D}} // Join_Control
		for _, part := range [...]string{"Alphabetic", "M", "Nd", "Pc"} {
			r, _ := unidata.Property(part)
			set = set.union(newCharset(r))
		}
		return set
	case "XDigit", "Alnum", "Punct", "Print", "Graph", "Blank", "Cntrl", "Digit", "ASCII":
		p.fail(at, "the property %q", name) // absent or different
	}
	r, ok := unidata.Property(name)
	if !ok {
		p.fail(at, "the property %q", name)
	}
	return newCharset(r)
}

// caseless returns set. Under (?i) the two syntaxes fold the sets of properties, complements and intersections in a
// different order, which is refused if it matters.
func (p *parser) caseless(at int, set charset) charset {
	if p.rust && p.flags.fold && !slices.Equal(p.fold(at, set, true), set) {
		p.fail(at, "(?i) on this set")
	}
	return set
}

// hex reads n hexadecimal digits.
func (p *parser) hex(at, n int) rune {
	if p.pos+n <= len(p.expr) {
		if v, err := strconv.ParseUint(p.expr[p.pos:p.pos+n], 16, 32); err == nil {
			p.pos += n
			return p.scalar(at, v)
		}
	}
	p.fail(at, "\\x without two hexadecimal digits")
	return 0
}

// checkRust refuses repeats of what may be empty, for which the two engines have different rules.
func (p *parser) checkRust(n *node) {
	if n.kind == kRepeat && n.max != 1 && nullable(n.subs[0]) {
		p.fail(n.at, "a repeat of what may be empty")
	}
	for _, x := range n.subs {
		p.checkRust(x)
	}
}
