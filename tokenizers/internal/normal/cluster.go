// SPDX-License-Identifier: Apache-2.0

package normal

import (
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/unidata"
)

// extends reports whether a character of class g belongs to the cluster of the character before it, if that is not a
// control.
func extends(g uint8) bool {
	return unidata.GraphemeExtend <= g && g <= unidata.GraphemeSpacing
}

// cluster returns the length of the first grapheme cluster of s, by the rules of UAX 29 that affect Precompiled: all
// but those for pairs of regional indicators, because two of them have more bytes than a key, and one is a single
// character. A byte that is not UTF-8 is a cluster.
func cluster(s string) int {
	if s[0] < utf8.RuneSelf && (len(s) == 1 || s[1] < utf8.RuneSelf) {
		if len(s) > 1 && s[0] == '\r' && s[1] == '\n' {
			return 2
		}
		return 1
	}
	r, end := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && end == 1 || r == '\r' || r == '\n' {
		return end
	}
	const (
		none       = iota
		pictograph // a pictograph and marks
		joined     // and a joiner after them
		consonant  // a consonant and marks
		linked     // with a linker among them
	)
	g := unidata.Grapheme(r)
	state := none
	for end < len(s) {
		switch g {
		case unidata.GraphemeControl:
			return end
		case unidata.GraphemePictographic:
			state = pictograph
		case unidata.GraphemeConsonant:
			state = consonant
		case unidata.GraphemeZWJ:
			if state == pictograph {
				state = joined
			} else if state == joined {
				state = none
			}
		case unidata.GraphemeExtend, unidata.GraphemeLinker, unidata.GraphemeUnlinked:
			switch {
			case state == joined, g == unidata.GraphemeUnlinked && state >= consonant:
				state = none
			case g == unidata.GraphemeLinker && state == consonant:
				state = linked
			}
		default:
			state = none
		}
		r, n := utf8.DecodeRuneInString(s[end:])
		if r == utf8.RuneError && n == 1 || r == '\r' || r == '\n' {
			return end
		}
		next := unidata.Grapheme(r)
		switch {
		case extends(next):
		case next == unidata.GraphemeControl:
			return end
		case g == unidata.GraphemePrepend:
		case state == joined && next == unidata.GraphemePictographic:
		case state == linked && next == unidata.GraphemeConsonant:
		case g == unidata.GraphemeL && (next == unidata.GraphemeL || next == unidata.GraphemeV || next == unidata.GraphemeLV || next == unidata.GraphemeLVT):
		case (g == unidata.GraphemeLV || g == unidata.GraphemeV) && (next == unidata.GraphemeV || next == unidata.GraphemeT):
		case (g == unidata.GraphemeLVT || g == unidata.GraphemeT) && next == unidata.GraphemeT:
		default:
			return end
		}
		g = next
		end += n
	}
	return end
}
