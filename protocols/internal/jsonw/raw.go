// SPDX-License-Identifier: Apache-2.0

package jsonw

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// IsObject reports whether raw is one valid JSON object. It limits nesting to 10,000 levels.
func IsObject(raw []byte) bool {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	return len(raw) > 0 && raw[0] == '{' && json.Valid(raw)
}

// IsTyped reports whether raw is one valid JSON object whose first field is a string named type, as in all output items
// and content blocks.
func IsTyped(raw []byte) bool {
	if !IsObject(raw) {
		return false
	}
	typed := false
	Members(raw, func(key, value []byte) bool {
		if string(key) == `"type"` {
			typed = len(value) > 2 && value[0] == '"'
			return false
		}
		return true
	})
	return typed
}

// IsArray reports whether raw is one valid JSON array.
func IsArray(raw []byte) bool {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	return len(raw) > 0 && raw[0] == '[' && json.Valid(raw)
}

// AppendRaw appends raw, which must be valid JSON, on one line: line breaks between its tokens become spaces and
// ill-formed UTF-8 becomes U+FFFD. Everything else is preserved, including spelling of numbers and order of keys.
func AppendRaw(dst, raw []byte) []byte {
	n := len(dst)
	if utf8.Valid(raw) {
		dst = append(dst, raw...)
	} else {
		dst = AppendValid(dst, raw)
	}
	for i := n; i < len(dst); i++ {
		if dst[i] == '\n' || dst[i] == '\r' {
			dst[i] = ' '
		}
	}
	return dst
}

// AppendElements appends the elements of raw, which must be a valid JSON array, without the brackets, and with a comma
// before them if dst does not end in an opening bracket. It is used to concatenate arrays.
func AppendElements(dst, raw []byte) []byte {
	raw = bytes.TrimSpace(raw)
	raw = bytes.TrimSpace(raw[1 : len(raw)-1])
	if len(raw) == 0 {
		return dst
	}
	if len(dst) > 0 && dst[len(dst)-1] != '[' {
		dst = append(dst, ',')
	}
	return AppendRaw(dst, raw)
}

// Members calls yield with the key, still quoted and escaped, and the value of each field of raw, which should be a
// valid JSON object, until yield returns false. It reads only the outermost level. If raw is not an object, it stops at
// the first byte that it cannot parse; it never panics. It makes one pass and does not allocate.
func Members(raw []byte, yield func(key, value []byte) bool) {
	i := blank(raw, 0)
	if i >= len(raw) || raw[i] != '{' {
		return
	}
	i++
	for {
		i = blank(raw, i)
		if i >= len(raw) || raw[i] != '"' {
			return
		}
		k := i
		i = skipValue(raw, i)
		key := raw[k:i]
		i = blank(raw, i)
		if i >= len(raw) || raw[i] != ':' {
			return
		}
		v := blank(raw, i+1)
		i = skipValue(raw, v)
		if i == v || !yield(key, raw[v:i]) {
			return
		}
		i = blank(raw, i)
		if i >= len(raw) || raw[i] != ',' {
			return
		}
		i++
	}
}

func blank(raw []byte, i int) int {
	for i < len(raw) && isBlank(raw[i]) {
		i++
	}
	return i
}

// skipValue returns the end of the value that starts at raw[i].
func skipValue(raw []byte, i int) int {
	depth := 0
	for i < len(raw) {
		switch c := raw[i]; c {
		case '"':
			i++
			for i < len(raw) && raw[i] != '"' {
				if raw[i] == '\\' {
					i++
				}
				i++
			}
			i++
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
			i++
		default:
			if depth == 0 {
				for i < len(raw) && !isEnd(raw[i]) {
					i++
				}
				return i
			}
			i++
			continue
		}
		if depth == 0 {
			return min(i, len(raw))
		}
	}
	return len(raw)
}

func isEnd(c byte) bool {
	switch c {
	case ',', '}', ']', ':', ' ', '\t', '\n', '\r':
		return true
	}
	return false
}

// Balance tracks the nesting of JSON text that is received in pieces. The zero value is ready to use.
type Balance struct {
	depth    int
	str, esc bool
	some     bool // something other than white space was read
}

// FeedPlain is Feed with what [AppendPlain] reports of p.
func (b *Balance) FeedPlain(p []byte, plain bool) {
	if !plain || !b.str || b.esc { // plain text inside a string changes nothing
		b.Feed(p)
	}
}

// Feed reads the next piece.
func (b *Balance) Feed(p []byte) {
	for i := 0; i < len(p); i++ {
		if b.str && !b.esc {
			if i = skipPlain(text(p), i, 0); i == len(p) {
				return
			}
		}
		c := p[i]
		b.some = b.some || !isBlank(c)
		switch {
		case b.esc:
			b.esc = false
		case b.str:
			switch c {
			case '\\':
				b.esc = true
			case '"':
				b.str = false
			}
		case c == '"':
			b.str = true
		case c == '{' || c == '[':
			b.depth++
		case c == '}' || c == ']':
			b.depth--
		}
	}
}

// Open reports whether the text read so far ends inside a string, an object or an array, so that it cannot be a
// complete JSON value.
func (b *Balance) Open() bool { return b.str || b.depth > 0 }

// Blank reports whether only white space was read so far.
func (b *Balance) Blank() bool { return !b.some }

// AppendSpoiled appends text, made invalid as JSON by [Balance.Spoiler].
func AppendSpoiled(dst, text []byte) []byte {
	var b Balance
	b.Feed(text)
	return append(append(dst, text...), b.Spoiler()...)
}

// IsBlank reports whether raw contains only JSON white space.
func IsBlank(raw []byte) bool { return blank(raw, 0) == len(raw) }

// Spoiler returns a suffix that makes the text read so far invalid as JSON and distinct from the empty arguments that
// some clients treat as {}. It returns "" while the text is open. A quote after a complete value is not JSON, yet the
// parsers of incomplete JSON that official clients run on each delta ignore it, whereas they would fail on a brace.
func (b *Balance) Spoiler() string {
	switch {
	case b.Open():
		return ""
	case !b.some:
		return "{"
	}
	return `"`
}
