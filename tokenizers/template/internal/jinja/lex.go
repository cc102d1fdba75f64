// SPDX-License-Identifier: Apache-2.0

package jinja

import (
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokEOF tokenKind = iota
	tokData
	tokVarBegin
	tokVarEnd
	tokBlockBegin
	tokBlockEnd
	tokName
	tokString
	tokInt
	tokFloat
	tokOp
)

type token struct {
	kind tokenKind
	pos  int    // in the source after its line ends were made \n
	text string // data; name; string without escapes; operator
	num  Value
}

func (t token) describe() string {
	switch t.kind {
	case tokEOF:
		return "end of template"
	case tokData:
		return "template text"
	case tokVarBegin:
		return "{{"
	case tokVarEnd:
		return "}}"
	case tokBlockBegin:
		return "{%"
	case tokBlockEnd:
		return "%}"
	case tokString:
		return "a string"
	case tokInt, tokFloat:
		return "a number"
	}
	return strconv.Quote(t.text)
}

// isSpace reports what \s in a Python pattern and str.isspace accept.
func isSpace(r rune) bool {
	switch {
	case r <= 0x20:
		return r == ' ' || r >= 9 && r <= 13 || r >= 0x1c && r <= 0x1f
	case r == 0x85 || r == 0xa0 || r == 0x1680 || r >= 0x2000 && r <= 0x200a || r == 0x2028 || r == 0x2029 || r == 0x202f || r == 0x205f || r == 0x3000:
		return true
	}
	return false
}

// normalize makes all line ends \n and drops the last one.
func normalize(src string) string {
	if strings.Contains(src, "\r") {
		src = strings.ReplaceAll(src, "\r\n", "\n")
		src = strings.ReplaceAll(src, "\r", "\n")
	}
	return strings.TrimSuffix(src, "\n")
}

type lexer struct {
	src    string
	pos    int
	tokens []token
	braces []byte
}

func (l *lexer) fail(pos int, format string, args ...any) {
	panic(compileError(l.src, pos, format, args...))
}

func (l *lexer) emit(kind tokenKind, pos int, text string) {
	l.tokens = append(l.tokens, token{kind: kind, pos: pos, text: text})
}

func (l *lexer) skipSpace() {
	for l.pos < len(l.src) {
		r, n := utf8.DecodeRuneInString(l.src[l.pos:])
		if !isSpace(r) {
			return
		}
		l.pos += n
	}
}

// sign consumes a - or + at the cursor.
func (l *lexer) sign() byte {
	if l.pos < len(l.src) && (l.src[l.pos] == '-' || l.src[l.pos] == '+') {
		l.pos++
		return l.src[l.pos-1]
	}
	return 0
}

// run cuts the source into tokens, as Jinja's lexer does with trim_blocks and lstrip_blocks on.
func (l *lexer) run() {
	lineStart := true
	for l.pos < len(l.src) {
		start := l.pos
		open := -1
		for i := start; ; i++ {
			k := strings.IndexByte(l.src[i:], '{')
			if k < 0 {
				break
			}
			i += k
			if i+1 < len(l.src) && (l.src[i+1] == '%' || l.src[i+1] == '{' || l.src[i+1] == '#') {
				open = i
				break
			}
		}
		if open < 0 {
			l.emit(tokData, start, l.src[start:])
			l.pos = len(l.src)
			break
		}
		l.pos = open + 2
		kind := l.src[open+1]
		if kind == '%' {
			if sign, end, ok := l.rawBegin(); ok {
				l.data(start, open, sign, true, lineStart)
				l.pos = end
				lineStart = l.src[l.pos-1] == '\n'
				lineStart = l.raw(open, lineStart)
				continue
			}
		}
		sign := l.sign()
		l.data(start, open, sign, kind != '{', lineStart)
		switch kind {
		case '#':
			l.comment(open)
			lineStart = l.src[l.pos-1] == '\n'
		case '%':
			l.emit(tokBlockBegin, open, "")
			l.tag(open, false)
			lineStart = l.src[l.pos-1] == '\n'
		default:
			l.emit(tokVarBegin, open, "")
			l.tag(open, true)
			lineStart = l.src[l.pos-1] == '\n'
		}
	}
	l.emit(tokEOF, len(l.src), "")
}

// data emits the text before a tag, stripped as the tag's sign and lstrip_blocks ask.
func (l *lexer) data(start, end int, sign byte, lstrip, lineStart bool) {
	text := l.src[start:end]
	switch {
	case sign == '-':
		text = strings.TrimRightFunc(text, isSpace)
	case sign != '+' && lstrip:
		at := strings.LastIndexByte(text, '\n') + 1
		if (at > 0 || lineStart) && strings.TrimLeftFunc(text[at:], isSpace) == "" {
			text = text[:at]
		}
	}
	if text != "" {
		l.emit(tokData, start, text)
	}
}

// rawBegin looks for the rest of a raw tag at the cursor without moving it.
func (l *lexer) rawBegin() (sign byte, end int, ok bool) {
	save := l.pos
	defer func() { l.pos = save }()
	sign = l.sign()
	l.skipSpace()
	if !strings.HasPrefix(l.src[l.pos:], "raw") {
		return 0, 0, false
	}
	l.pos += 3
	l.skipSpace()
	switch {
	case strings.HasPrefix(l.src[l.pos:], "-%}"):
		l.pos += 3
		l.skipSpace()
		return sign, l.pos, true
	case strings.HasPrefix(l.src[l.pos:], "%}"):
		return sign, l.pos + 2, true
	}
	return 0, 0, false
}

// raw reads up to endraw.
func (l *lexer) raw(open int, lineStart bool) bool {
	start := l.pos
	if start == len(l.src) {
		return lineStart // as Jinja, which misses the end only if something follows
	}
	for i := start; ; {
		k := strings.Index(l.src[i:], "{%")
		if k < 0 {
			l.fail(open, "raw is not closed")
		}
		i += k
		l.pos = i + 2
		sign := l.sign()
		l.skipSpace()
		if strings.HasPrefix(l.src[l.pos:], "endraw") {
			l.pos += 6
			l.skipSpace()
			if l.blockEnd() {
				l.data(start, i, sign, true, lineStart)
				return l.src[l.pos-1] == '\n'
			}
		}
		i += 2
	}
}

// blockEnd consumes %} with its signs and the white space these take away.
func (l *lexer) blockEnd() bool {
	s := l.src[l.pos:]
	switch {
	case strings.HasPrefix(s, "+%}"):
		l.pos += 3
	case strings.HasPrefix(s, "-%}"):
		l.pos += 3
		l.skipSpace()
	case strings.HasPrefix(s, "%}\n"):
		l.pos += 3
	case strings.HasPrefix(s, "%}"):
		l.pos += 2
	default:
		return false
	}
	return true
}

func (l *lexer) comment(open int) {
	if l.pos == len(l.src) {
		return
	}
	k := strings.Index(l.src[l.pos:], "#}")
	if k < 0 {
		l.fail(open, "comment is not closed")
	}
	end := l.pos + k
	var sign byte
	if k > 0 {
		sign = l.src[end-1]
	}
	l.pos = end + 2
	switch {
	case sign == '-':
		l.skipSpace()
	case sign != '+' && strings.HasPrefix(l.src[l.pos:], "\n"):
		l.pos++
	}
}

const operators = "+-*/%~[](){}.,:|;<>="

// tag reads the tokens of a tag up to and with its end.
func (l *lexer) tag(open int, variable bool) {
	l.braces = l.braces[:0]
	for {
		if l.pos >= len(l.src) {
			l.fail(open, "tag is not closed")
		}
		if len(l.braces) == 0 {
			at := l.pos
			if variable {
				if strings.HasPrefix(l.src[at:], "-}}") {
					l.pos += 3
					l.skipSpace()
					l.emit(tokVarEnd, at, "")
					return
				}
				if strings.HasPrefix(l.src[at:], "}}") {
					l.pos += 2
					l.emit(tokVarEnd, at, "")
					return
				}
			} else if l.blockEnd() {
				l.emit(tokBlockEnd, at, "")
				return
			}
		}
		at := l.pos
		c := l.src[at]
		switch {
		case c >= '0' && c <= '9':
			l.number()
			continue
		case c == '\'' || c == '"':
			l.str(c)
			continue
		case c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z':
			for l.pos < len(l.src) && nameByte(l.src[l.pos]) {
				l.pos++
			}
			if l.pos < len(l.src) && l.src[l.pos] >= utf8.RuneSelf {
				l.name()
			}
			l.emit(tokName, at, l.src[at:l.pos])
			continue
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(l.src[at:])
			if isSpace(r) {
				l.pos += n
				continue
			}
			if !unicode.IsLetter(r) && !unicode.Is(unicode.Nl, r) {
				l.fail(at, "unexpected character %q", r)
			}
			l.name()
			l.emit(tokName, at, l.src[at:l.pos])
			continue
		case isSpace(rune(c)):
			l.pos++
			continue
		}
		op := l.src[at : at+1]
		if at+1 < len(l.src) {
			switch l.src[at : at+2] {
			case "//", "**", "==", "!=", ">=", "<=":
				op = l.src[at : at+2]
			}
		}
		if len(op) == 1 && !strings.Contains(operators, op) {
			l.fail(at, "unexpected character %q", c)
		}
		switch op[0] {
		case '{':
			l.braces = append(l.braces, '}')
		case '(':
			l.braces = append(l.braces, ')')
		case '[':
			l.braces = append(l.braces, ']')
		case '}', ')', ']':
			k := len(l.braces) - 1
			if k < 0 || l.braces[k] != op[0] {
				l.fail(at, "unexpected %q", op)
			}
			l.braces = l.braces[:k]
		}
		l.pos += len(op)
		l.emit(tokOp, at, op)
	}
}

func nameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// name continues a name that is not ASCII.
func (l *lexer) name() {
	for l.pos < len(l.src) {
		r, n := utf8.DecodeRuneInString(l.src[l.pos:])
		if r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
			return
		}
		l.pos += n
	}
}

// digits consumes digits with single underscores between them, and reports whether there was one.
func (l *lexer) digits(ok func(byte) bool) bool {
	start := l.pos
	for l.pos < len(l.src) {
		switch c := l.src[l.pos]; {
		case ok(c):
			l.pos++
		case c == '_' && l.pos > start && l.pos+1 < len(l.src) && ok(l.src[l.pos+1]):
			l.pos += 2
		default:
			return l.pos > start
		}
	}
	return l.pos > start
}

func decimal(c byte) bool { return c >= '0' && c <= '9' }

func (l *lexer) number() {
	at := l.pos
	if at == 0 || l.src[at-1] != '.' {
		l.digits(decimal)
		float := false
		if l.pos+1 < len(l.src) && l.src[l.pos] == '.' && decimal(l.src[l.pos+1]) {
			l.pos++
			l.digits(decimal)
			float = true
		}
		if l.pos < len(l.src) && l.src[l.pos]|0x20 == 'e' {
			save := l.pos
			l.pos++
			l.sign()
			if l.digits(decimal) {
				float = true
			} else {
				l.pos = save
			}
		}
		if float {
			f, _ := strconv.ParseFloat(strings.ReplaceAll(l.src[at:l.pos], "_", ""), 64)
			l.tokens = append(l.tokens, token{kind: tokFloat, pos: at, num: f})
			return
		}
		l.pos = at
	}
	base := 10
	if l.src[at] == '0' {
		l.pos++
		ok := func(c byte) bool { return c == '0' }
		if l.pos < len(l.src) {
			switch l.src[l.pos] | 0x20 {
			case 'x':
				base, ok = 16, func(c byte) bool { return decimal(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }
			case 'o':
				base, ok = 8, func(c byte) bool { return c >= '0' && c <= '7' }
			case 'b':
				base, ok = 2, func(c byte) bool { return c == '0' || c == '1' }
			}
		}
		if base != 10 {
			l.pos++
			if l.pos < len(l.src) && l.src[l.pos] == '_' {
				l.pos++
			}
			if !l.digits(ok) {
				base, l.pos = 10, at+1
			}
		} else {
			if l.pos+1 < len(l.src) && l.src[l.pos] == '_' && l.src[l.pos+1] == '0' {
				l.pos++
			}
			l.digits(ok)
		}
	} else {
		l.digits(decimal)
	}
	text := strings.ReplaceAll(l.src[at:l.pos], "_", "")
	if base != 10 {
		text = text[2:]
	}
	if len(text) > 4300 {
		l.fail(at, "integer of more than 4300 digits")
	}
	n, ok := new(big.Int).SetString(text, base)
	if !ok {
		l.fail(at, "malformed number")
	}
	l.tokens = append(l.tokens, token{kind: tokInt, pos: at, num: num{big: n}.value()})
}

// str reads a string with the escapes of Python's unicode-escape codec.
func (l *lexer) str(quote byte) {
	at := l.pos
	l.pos++
	start := l.pos
	var b []byte
	for {
		if l.pos >= len(l.src) {
			l.fail(at, "string is not closed")
		}
		c := l.src[l.pos]
		if c == quote {
			text := l.src[start:l.pos]
			if b != nil {
				text = string(append(b, text...))
			}
			l.pos++
			l.emit(tokString, at, text)
			return
		}
		if c != '\\' {
			l.pos++
			continue
		}
		b = append(b, l.src[start:l.pos]...)
		if b == nil {
			b = []byte{}
		}
		if l.pos+1 >= len(l.src) {
			l.fail(at, "string is not closed")
		}
		c = l.src[l.pos+1]
		l.pos += 2
		switch c {
		case '\n':
		case '\\', '\'', '"':
			b = append(b, c)
		case 'a':
			b = append(b, 7)
		case 'b':
			b = append(b, 8)
		case 'f':
			b = append(b, 12)
		case 'n':
			b = append(b, 10)
		case 'r':
			b = append(b, 13)
		case 't':
			b = append(b, 9)
		case 'v':
			b = append(b, 11)
		case '0', '1', '2', '3', '4', '5', '6', '7':
			v := rune(c - '0')
			for n := 1; n < 3 && l.pos < len(l.src) && l.src[l.pos] >= '0' && l.src[l.pos] <= '7'; n++ {
				v = v*8 + rune(l.src[l.pos]-'0')
				l.pos++
			}
			b = utf8.AppendRune(b, v)
		case 'x', 'u', 'U':
			n := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
			if l.pos+n > len(l.src) {
				l.fail(l.pos-2, "malformed \\%c escape", c)
			}
			v, err := strconv.ParseUint(l.src[l.pos:l.pos+n], 16, 32)
			if err != nil || v > unicode.MaxRune {
				l.fail(l.pos-2, "malformed \\%c escape", c)
			}
			if v >= 0xd800 && v < 0xe000 {
				l.fail(l.pos-2, "half a surrogate pair")
			}
			b = utf8.AppendRune(b, rune(v))
			l.pos += n
		case 'N':
			l.fail(l.pos-2, "\\N escapes are not supported")
		default:
			b = append(b, '\\')
			l.pos--
		}
		start = l.pos
	}
}
