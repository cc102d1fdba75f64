// SPDX-License-Identifier: Apache-2.0

package jsontext

import "github.com/weft-go/weft/parsers/internal/work"

const hexDigits = "0123456789abcdef"

// AppendEscaped appends raw as the inside of a JSON string. Bytes ≥ 0x80 are copied; quotes, backslashes and control
// characters are escaped, nothing else.
func AppendEscaped[S []byte | string](dst []byte, raw S) []byte {
	work.Add(len(raw))
	at := 0
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if plain[c] {
			continue
		}
		dst = append(dst, raw[at:i]...)
		at = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(dst, raw[at:]...)
}

// AppendQuoted appends raw as a JSON string.
func AppendQuoted[S []byte | string](dst []byte, raw S) []byte {
	return append(AppendEscaped(append(dst, '"'), raw), '"')
}

// AppendUnquoted appends the decoded text of quoted, a valid JSON string with its quotes. A lone surrogate becomes
// U+FFFD.
func AppendUnquoted(dst, quoted []byte) []byte {
	work.Add(len(quoted))
	s := quoted[1 : len(quoted)-1]
	for i := 0; i < len(s); {
		c := s[i]
		if c != '\\' {
			dst = append(dst, c)
			i++
			continue
		}
		switch c = s[i+1]; c {
		case 'u':
			r := hex4(s[i+2:])
			i += 6
			if r >= 0xd800 && r < 0xdc00 && i+6 <= len(s) && s[i] == '\\' && s[i+1] == 'u' {
				if lo := hex4(s[i+2:]); lo >= 0xdc00 && lo < 0xe000 {
					r = 0x10000 + (r-0xd800)<<10 + (lo - 0xdc00)
					i += 6
				}
			}
			dst = appendRune(dst, r)
			continue
		case 'n':
			c = '\n'
		case 't':
			c = '\t'
		case 'r':
			c = '\r'
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		}
		dst = append(dst, c)
		i += 2
	}
	return dst
}

func hex4(b []byte) (r rune) {
	for _, c := range b[:4] {
		switch {
		case c <= '9':
			r = r<<4 | rune(c-'0')
		default:
			r = r<<4 | rune(c|0x20-'a'+10)
		}
	}
	return r
}

// appendRune writes UTF-8; a surrogate becomes U+FFFD, as append(dst, string(r)...) would have it.
func appendRune(dst []byte, r rune) []byte { return append(dst, string(r)...) }
