// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"fmt"
	"reflect"
	"slices"
	"sort"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/normal"
	"github.com/weft-go/weft/tokenizers/internal/pretok"
	"github.com/weft-go/weft/tokenizers/internal/unidata"
)

// This file is structured as follows: the definition of cut points, the properties of a tokenizer that determine them
// (nature), the rules with their proofs (newSplitter), the search, and the probes that test the rules with the
// tokenizer.

// A Boundary specifies which byte must follow a position for the text to be split there. The zero Boundary means that
// the text must not be split.
type Boundary uint8

// The boundaries, in the order of what they require.
const (
	noBoundary      Boundary = iota
	boundaryAlways           // any byte may follow, or the end of the text
	boundaryGraphic          // one of the 94 visible ASCII characters must follow
	boundaryLetter           // an ASCII letter must follow
)

// Before reports whether the text can be split if next is the next byte; -1 means the end of the text.
func (k Boundary) Before(next int) bool {
	switch {
	case k == noBoundary || next < 0:
		return k == boundaryAlways
	case k == boundaryGraphic:
		return graphic(byte(next))
	case k == boundaryLetter:
		return letter(byte(next))
	}
	return true
}

func graphic(b byte) bool { return b > ' ' && b < 0x7F }

func letter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

// A Splitter finds positions at which a text can be split before it is encoded: positions p where
//
//	ids(text) == ids(text[:p]) + ids(text[p:])
//
// This depends only on the bytes before p, on which of them are trusted, and on the next byte (see [Boundary]). So a
// position at which one text can be split is one for every text that begins with the same bytes and continues as its
// Boundary requires: IDs of a prefix can be cached, and parts of a text can be encoded independently. It holds for
// [Tokenizer.AppendEncode] and for [Tokenizer.AppendEncodeSegments].
//
// A Splitter is immutable and safe for concurrent use by multiple goroutines.
type Splitter struct {
	off     string
	nodes   []cutNode // trie of the tokens spelled backwards; node 0 is the root
	ends    [256]bool // bytes that a cut point can follow
	strips  bool      // some token of the trie is followed by white space that belongs to it
	newline newlineRule
	tokens  []string // tokens in the trie
}

type cutNode struct {
	child, sibling int32 // 0 means absent
	b              byte
	end            bool // a token begins here
	strip          bool // it has rStrip
}

// newlineRule specifies when a position between a newline and a letter is a cut point.
type newlineRule uint8

const (
	newlineNever newlineRule = iota
	newlineAlone             // after a visible ASCII character
	newlineAny
)

// nature contains the properties of a tokenizer, other than its added tokens, that determine cut points. Each new stage
// of the loader must be considered here. The zero values are safe.
type nature struct {
	why      string      // a reason why no position is safe, for example that beginnings of texts are special
	identity bool        // no normalizer: text reaches the pre-tokenizer as it is
	newline  newlineRule // what the pre-tokenizer allows
	// Ids of a range between raw added tokens depend on the provenance of all of it.
	mixes bool
}

// nature returns the properties of t.
//
// Stages work on one range between raw added tokens at a time, so the text before a raw token does not affect the text
// after it. The exception is a stage that depends on whether a range is the first, as Metaspace does with
// prepend_scheme "first"; it must set why. Prepend, and Metaspace and ByteLevel if they always add a space at the
// start, treat all ranges alike and are safe. The model works on one pre-token at a time.
func (t *Tokenizer) nature() nature {
	n := nature{
		identity: len(t.norm) == 0,
		newline:  newlineAny,
		// The normalizer changes the text that encodeNormal and defuse examine.
		mixes: len(t.norm) > 0 && (t.normal != nil || t.reachable),
	}
	if t.trunc != (Truncation{}) || t.pad != (Padding{}) {
		n.why = "the file truncates or pads texts"
	}
	for _, s := range t.norm {
		if s != normal.NFC() {
			n.newline = newlineNever // the proof does not cover other normalizers
		}
	}
	if len(t.steps) == 0 {
		n.newline = newlineNever
	}
	for _, s := range t.steps {
		if s.first {
			n.why = "the beginning of a text is not encoded like the rest of it"
		}
		n.newline = min(n.newline, s.newline())
	}
	return n
}

// newline returns what a step of the pre-tokenizer allows.
func (s *step) newline() newlineRule {
	if s.fn == nil || s.rewrite != nil {
		return newlineNever
	}
	return scannerNewline(s.fn)
}

// scannerNewline returns what one cutting step allows. A function it does not know allows nothing.
//
// Let p be between "\n" and an ASCII letter. In the expressions of all steps but GPT2 no alternative has a newline
// followed by a letter: the character before \p{L}+ is not \r or \n, what follows punctuation is [\r\n]* or [\r\n/]*,
// \s*[\r\n]+ ends with a newline, the rest is white space or free of it. So no piece runs across p. Pieces before p are
// the same when the text ends at p: runs that end at p because of the letter then end because of the end, and the one
// look-ahead, (?!\S), is not reached, because a run of white space that touches p has a newline and is taken by
// \s*[\r\n]+ up to p. Pieces after p depend on what follows p only, since the expressions look ahead, not back. The
// steps of DeepSeek that isolate digits and ideographs keep "\n" and the letter in one piece, for which the proof of
// the last step is the same. DeepSeek, which cuts where the three together do, has it from them.
//
// GPT2 has no \s*[\r\n]+: "\n\n" is cut in two before a letter and is one piece at the end. After a visible
// character (so the run of white space is that newline alone) \s+(?!\S) fails before a letter and \s+ takes
// it; at the end \s+(?!\S) takes it. Its other alternatives hold no newline.
func scannerNewline(f pretok.Func) newlineRule {
	at := reflect.ValueOf(f).Pointer()
	for _, g := range []pretok.Func{
		pretok.CL100K, pretok.Qwen2, pretok.Qwen35, pretok.O200K, pretok.Tekken, pretok.Kimi,
		pretok.DeepSeekDigits, pretok.DeepSeekCJK, pretok.DeepSeekWords, pretok.DeepSeek,
	} {
		if at == reflect.ValueOf(g).Pointer() {
			return newlineAny
		}
	}
	if at == reflect.ValueOf(pretok.GPT2).Pointer() {
		return newlineAlone
	}
	return newlineNever
}

// Splitter returns the splitter of t. The first call tests its rules by encoding some thousand short texts whole and in
// two parts, which takes milliseconds. Rules that cannot be proved for t are not used. If none is left, or a test fails,
// the error explains why.
func (t *Tokenizer) Splitter() (*Splitter, error) { return t.splitter() }

func (t *Tokenizer) newSplitter() (*Splitter, error) {
	c := t.cutRules()
	if c.off == "" {
		c.off = c.probe(t)
	}
	if c.off != "" {
		return nil, fmt.Errorf("tokenizers: texts cannot be split: %s", c.off)
	}
	return c, nil
}

// cutRules is newSplitter without the test.
func (t *Tokenizer) cutRules() *Splitter {
	c := &Splitter{}
	n := t.nature()
	if n.why != "" {
		c.off = n.why
		return c
	}
	searched := make([]string, len(t.added))
	for i, a := range t.added {
		searched[i] = t.searched(a)
	}
	if c.off = c.addTokens(t.added, searched, n); c.off != "" {
		return c
	}
	c.addNewline(t.added, searched, n)
	if len(c.nodes) == 1 && c.newline == newlineNever {
		c.off = "no added token and no rule of the pre-tokenizer makes a safe cut"
	}
	return c
}

// maxOverlaps bounds the work of looking for added tokens that overlap.
const maxOverlaps = 1 << 22

// addTokens adds the added tokens whose end is a cut point wherever they occur in trusted text.
//
// The leftmost token is matched, then the longest, and the text between two raw tokens is encoded independently. So the
// end of a matched raw token is a cut point if its text is always matched, whatever precedes or follows it:
//
//   - No other token holds it (a longer match could start earlier, or at the same position, and run across the cut),
//     and no token, nor itself, ends with what it begins with (an earlier match could take its beginning away). Then
//     each place where it is spelled is a match, independent of all other text.
//   - It is not single_word, which looks at both neighbours. Where some other token is, it must not end
//     with a word character, or a token after the cut would see it.
//   - With rstrip it takes white space along: the cut is after that, before a visible character. It must
//     not begin with white space if another token strips that, and no token may if this one does: such a token has
//     the white space once more and runs across the cut.
//   - lstrip is harmless: a token takes white space at most back to the match before it, and a text that
//     starts at the cut has none before.
//
// A normalized token is searched for in the normalized ranges between raw tokens. It is taken only if nothing is
// normalized, so that it is found in the text as it is; if no token is part of it or begins inside it, since raw ones
// come first; and if it does not end with white space that a raw token after it may strip.
func (c *Splitter) addTokens(added []AddedToken, searched []string, n nature) string {
	var single, lstrip, rstrip, spaced bool
	work := 0
	text := make(map[string]int, len(added)) // how many tokens are found as this text
	for i, a := range added {
		single = single || a.singleWord
		lstrip = lstrip || a.lStrip
		rstrip = rstrip || a.rStrip
		first, _ := utf8.DecodeRuneInString(searched[i])
		spaced = spaced || unidata.Class(first)&unidata.Space != 0
		text[searched[i]]++
		if work += len(searched[i]) * len(searched[i]); len(searched[i]) > 1<<15 || work > maxOverlaps {
			return "the added tokens are too long to compare"
		}
	}
	tails := make(map[string]bool) // what tokens end with, but are not
	heads := make(map[string]bool) // what tokens begin with, but are not
	held := make(map[string]bool)  // tokens that are part of another
	holds := make(map[string]bool) // tokens that another is part of
	for _, s := range searched {
		for i := range len(s) {
			if i > 0 {
				tails[s[i:]] = true
				heads[s[:i]] = true
			}
			for j := i + 1; j <= len(s); j++ {
				if j-i < len(s) && text[s[i:j]] > 0 {
					held[s[i:j]] = true
					holds[s] = true
				}
			}
		}
	}
	c.nodes = make([]cutNode, 1)
	for i, a := range added {
		s := searched[i]
		first, _ := utf8.DecodeRuneInString(s)
		last, _ := utf8.DecodeLastRuneInString(s)
		switch {
		case text[s] > 1 || held[s] || a.singleWord,
			single && unidata.IsWord(last),
			rstrip && unidata.Class(first)&unidata.Space != 0,
			a.rStrip && spaced,
			a.normalized && (!n.identity || holds[s] || a.rStrip || lstrip && unidata.Class(last)&unidata.Space != 0):
			continue
		}
		overlaps := false
		for j := 1; j < len(s) && !overlaps; j++ {
			overlaps = tails[s[:j]] || a.normalized && heads[s[j:]]
		}
		if !overlaps {
			c.insert(s, a.rStrip)
		}
	}
	if c.strips {
		for r := range rune(0x10000) {
			if unidata.Class(r)&unidata.Space != 0 {
				b := utf8.AppendRune(nil, r)
				c.ends[b[len(b)-1]] = true
			}
		}
	}
	return ""
}

func (c *Splitter) insert(s string, strip bool) {
	n := int32(0)
	for i := len(s) - 1; i >= 0; i-- {
		k := c.nodes[n].child
		for k != 0 && c.nodes[k].b != s[i] {
			k = c.nodes[k].sibling
		}
		if k == 0 {
			k = int32(len(c.nodes))
			c.nodes = append(c.nodes, cutNode{b: s[i], sibling: c.nodes[n].child})
			c.nodes[n].child = k
		}
		n = k
	}
	c.nodes[n].end, c.nodes[n].strip = true, strip
	c.ends[s[len(s)-1]] = true
	c.strips = c.strips || strip
	c.tokens = append(c.tokens, s)
}

// addNewline takes the position between a newline and a letter, which [scannerNewline] proves for the
// pre-tokenizer. Before it:
//
//   - No added token may hold a newline and a letter, or one could run across the cut. Then the matches in
//     the whole text are those in the two parts.
//   - A token that begins with a letter must not be lstrip, which would take the newline away, and one that
//     ends with the newline must not be single_word, which would see the letter. rstrip before the cut takes
//     the newline in the whole and in the part.
//   - NFC changes nothing across the cut: a newline and an ASCII letter are starters, and no character
//     composes with either before it. The letter may compose with what follows, which gives a letter.
//   - If ids depend on the provenance of a whole range, a cut inside it would change them.
func (c *Splitter) addNewline(added []AddedToken, searched []string, n nature) {
	if n.mixes || n.newline == newlineNever {
		return
	}
	maybeLetter := func(b byte) bool { return letter(b) || b >= utf8.RuneSelf }
	for i, a := range added {
		s := searched[i]
		for k := 0; k+1 < len(s); k++ {
			if s[k] == '\n' && maybeLetter(s[k+1]) {
				return
			}
		}
		if a.lStrip && maybeLetter(s[0]) || a.singleWord && s[len(s)-1] == '\n' {
			return
		}
	}
	c.newline = n.newline
	c.ends['\n'] = true
}

// at returns the boundary at p, 0 < p <= len(text).
func (c *Splitter) at(text string, p int, untrusted []Offset) Boundary {
	if c.tokenBefore(text, p, untrusted) == boundaryAlways {
		return boundaryAlways
	}
	if p == len(text) {
		return noBoundary
	}
	if c.strips && graphic(text[p]) {
		if c.tokenBefore(text, spaceBefore(text, p), untrusted) == boundaryGraphic {
			return boundaryGraphic
		}
	}
	if text[p-1] == '\n' && letter(text[p]) {
		if c.newline == newlineAny || c.newline == newlineAlone && p > 1 && graphic(text[p-2]) {
			return boundaryLetter
		}
	}
	return noBoundary
}

// tokenBefore returns boundaryAlways if a token without rstrip ends at p, boundaryGraphic if one with it does.
func (c *Splitter) tokenBefore(text string, p int, untrusted []Offset) Boundary {
	n := int32(0)
	for i := p - 1; i >= 0; i-- {
		k := c.nodes[n].child
		for k != 0 && c.nodes[k].b != text[i] {
			k = c.nodes[k].sibling
		}
		if k == 0 {
			return noBoundary
		}
		n = k
		if c.nodes[n].end && trusted(untrusted, i, p) {
			if c.nodes[n].strip {
				return boundaryGraphic
			}
			return boundaryAlways
		}
	}
	return noBoundary
}

// trusted reports whether no range of untrusted overlaps [start, end).
func trusted(untrusted []Offset, start, end int) bool {
	k := sort.Search(len(untrusted), func(k int) bool { return untrusted[k].End > start })
	return k == len(untrusted) || untrusted[k].Start >= end
}

// Next returns the first position at or after from at which text can be split, with its boundary, or 0 and the zero
// Boundary. The ranges in untrusted are the parts of text that are not trusted; they are sorted and do not overlap. The
// cost is linear in the bytes searched: a few nanoseconds for each, more only after white space that a token may strip.
func (c *Splitter) Next(text string, from int, untrusted []Offset) (int, Boundary) {
	for p := max(from, 1); p <= len(text); p++ {
		if c.ends[text[p-1]] {
			if k := c.at(text, p, untrusted); k != noBoundary {
				return p, k
			}
		}
	}
	return 0, noBoundary
}

// Last returns the last position after from at which text can be split, like [Splitter.Next].
func (c *Splitter) Last(text string, from int, untrusted []Offset) (int, Boundary) {
	for p := len(text); p > from && p > 0; p-- {
		if c.ends[text[p-1]] {
			if k := c.at(text, p, untrusted); k != noBoundary {
				return p, k
			}
		}
	}
	return 0, noBoundary
}

// The neighbors that probes put around a token, chosen to affect normalizers, pre-tokenizers, strip flags and merges.
var (
	probeLeft = []string{
		"", "x", "Hello", " ", "  ", "\n", "a\n", "\n\n", "\t", "word ", "'", "e", "1", "\u00e9", "e\u0301", "\u4e2d", ".", "//",
		"\u2581", "<", "<|", "\u0e33", "\U0001F468\u200d", "\u00a0", "\r\n", "\u1100", "##",
	}
	probeRight = []string{
		"", "x", " x", "  x", "   ", "\n", "\nx", "\n\n", "\n\nx", "\r\nA", "\tx", "'s", "'LL", "\u0301", "\u0301x", "\u200d\U0001F469",
		"\u1161", "\u0e33", "1", "12345", "\u4e2d", "\u00a0x", "\u2581x", "\u3000", ".", "/", "//\nx", "The", "the cat", "=\u0338", ">", "|>",
		"##x", "\ufe0f", "\uff21", "\u00df", "\u0130", "\u03a3", "``", "''",
	}
	probeNewline = []string{
		"a", " a", "a ", ".", "!!!", "//", "\r", "\n", "\n\n", " \n ", "\t", "1", "\u4e2d", "\u3000", "\u00a0", "'", "e\u0301", "\u0301",
		"\U0001F600", "\u0001", "\u2028", "", "-",
	}
)

// maxProbed is the number of tokens that are probed with every neighbor; if there are more, each is probed with some of
// the neighbors.
const maxProbed = 32

// probe encodes texts whole and in parts. It returns the first difference, or "".
func (c *Splitter) probe(t *Tokenizer) string {
	var whole, parts []uint32
	differs := func(text string, untrusted []Offset, segs func(lo, hi int) []Segment) bool {
		for p, k := c.Next(text, 1, untrusted); k != noBoundary; p, k = c.Next(text, p+1, untrusted) {
			if segs == nil {
				whole = t.AppendEncode(whole[:0], text)
				parts = t.AppendEncode(t.AppendEncode(parts[:0], text[:p]), text[p:])
			} else {
				whole = t.AppendEncodeSegments(whole[:0], segs(0, len(text)))
				parts = t.AppendEncodeSegments(t.AppendEncodeSegments(parts[:0], segs(0, p)), segs(p, len(text)))
			}
			if !slices.Equal(whole, parts) {
				return true
			}
		}
		return false
	}
	check := func(left, token, right string) string {
		text := left + token + right
		if differs(text, nil, nil) {
			return fmt.Sprintf("ids change when %q is cut", text)
		}
		// The same with untrusted neighbors.
		a, b := len(left), len(left)+len(token)
		untrusted := []Offset{{0, a}, {b, len(text)}}
		if differs(text, untrusted, func(lo, hi int) []Segment {
			mid := min(max(b, lo), hi)
			return []Segment{{text[lo:max(lo, min(a, hi))], false}, {text[max(lo, min(a, hi)):mid], true}, {text[mid:hi], false}}
		}) {
			return fmt.Sprintf("ids change when %q is cut and the neighbours of %q are not trusted", text, token)
		}
		return ""
	}
	step := max(1, len(c.tokens)/maxProbed)
	for i, s := range c.tokens {
		for k, right := range probeRight {
			left := probeLeft[(i+k)%len(probeLeft)]
			if i%step != 0 && (i+k)%8 != 0 {
				continue
			}
			// Another token on either side, too.
			other := c.tokens[(i+k)%len(c.tokens)]
			for _, x := range [3][2]string{{left, right}, {other, right}, {left, right + other}} {
				if bad := check(x[0], s, x[1]); bad != "" {
					return bad
				}
			}
		}
	}
	if c.newline != newlineNever {
		for i, left := range probeNewline {
			for k, right := range []string{"a", "A", "the", "e\u0301", "s", "LL\n", "K\u0327 x"} {
				other := ""
				if len(c.tokens) > 0 {
					other = c.tokens[(i+k)%len(c.tokens)]
				}
				for _, x := range [3][2]string{{left, right}, {"x" + left, right + other}, {other + left, right}} {
					if bad := check(x[0], "\n", x[1]); bad != "" {
						return bad
					}
				}
			}
		}
	}
	return ""
}
