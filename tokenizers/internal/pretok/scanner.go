// SPDX-License-Identifier: Apache-2.0

package pretok

import (
	"math/bits"
	"reflect"
	"unsafe"
)

// This file cuts ASCII text 64 bytes at a time. A set of positions in such a window is an integer of 64 bits, and whether a piece
// begins at a position follows from the sets that contain it and its neighbors. So a few dozen operations find all pieces
// without a branch that the processor has to guess. What a window does not decide is left to the Func that a Scanner
// replaces: pieces that are longer, or that contain or precede other characters.
//
// This file is structured as follows: the rules, the Scanner, the sets of a window, and the starts of pieces in it. classify finds
// the sets with vector instructions, if the processor has them.

// A rule describes what a Func does with ASCII, beyond what all have in common: runs of letters, digits, white space and other
// characters (signs) are pieces, the last space of a run goes to the letters or signs after it, and white space before
// anything else loses its last character, which is a piece.
type rule uint16

const (
	leads     rule = 1 << iota // letters begin with any character before them but a line end, a digit and one of several signs
	spaced                     // digits begin with a space before them
	each                       // each digit is a piece
	groups                     // each three digits are a piece
	tails                      // line ends belong to the signs before them; other white space is cut after its last one
	slashes                    // slashes after such line ends belong to the signs too
	small                      // contractions in small letters are pieces
	caseless                   // contractions are pieces
	suffixes                   // contractions belong to the letters before them
	capitals                   // a piece begins where a capital follows a small letter
	digitEnds                  // white space ends before a digit as at the end of a text; control characters have rules of their own
	wholeEnd                   // white space at the end of a text is one piece
)

// rules lists the Funcs that have one.
var rules = []struct {
	f Func
	r rule
}{
	{GPT2, spaced | small},
	{CL100K, leads | groups | tails | caseless},
	{CL100KBase, leads | tails | caseless | wholeEnd},
	{CL100KRust, leads | groups | tails | caseless | wholeEnd},
	{Qwen2, leads | each | tails | caseless},
	{Qwen35, leads | each | tails | caseless},
	{O200K, leads | groups | tails | slashes | suffixes | capitals},
	{Tekken, leads | each | tails | slashes | capitals},
	{Kimi, leads | groups | tails | suffixes | capitals},
	{DeepSeek, leads | groups | tails | digitEnds},
}

// A Scanner cuts like a Func, but returns many pieces at a time. It is immutable and safe for concurrent use.
type Scanner struct {
	next Func
	rule rule // 0 means none
	sets *[256]uint64
}

// NewScanner returns a Scanner that cuts like f.
func NewScanner(f Func) *Scanner {
	x := &Scanner{next: f}
	for _, r := range rules {
		if reflect.ValueOf(f).Pointer() == reflect.ValueOf(r.f).Pointer() {
			x.rule = r.r
			x.sets = setsOf(r.r)
		}
	}
	return x
}

// Next returns the end of the piece of s that starts at i, as the Func does.
func (x *Scanner) Next(s string, i int) int { return x.next(s, i) }

// MinScan is the length in bytes from which a text takes less time with Ends than with Next.
const MinScan = 16

// Ends stores the ends of pieces of s in ends and returns their number. The first piece starts at i, and the others follow it.
// It stops at the end of s, or when ends is full; the last 64 of ends are filled one by one, which is slower.
func (x *Scanner) Ends(ends []int, s string, i int) int {
	n := 0
	for i < len(s) && n < len(ends) {
		if x.rule != 0 && len(ends)-n >= window && len(s)-i >= MinScan && word64(s, i)&highs == 0 {
			found := x.window((*[window]int)(ends[n:]), s, i)
			if found > 0 {
				n += found
				i = ends[n-1]
				continue
			}
		}
		i = x.next(s, i)
		ends[n] = i
		n++
	}
	return n
}

// vectors reports whether the processor has the instructions of classify.
var vectors = hasVectors()

// window is the number of bytes that are examined together.
const window = 64

// The sets of a character are bits of its entry in Scanner.sets, eight bits apart: the entries of eight characters, shifted by
// their positions, together have eight bits of each set.
const (
	inUpper = iota // capitals; line ends among blanks
	inLower        // small letters; spaces among blanks
	inDigit
	inBlank
	inSlash
	inQuote
	inStop    // the rule does not apply
	inControl // control characters that are not blanks, if vectors is set
)

func setsOf(r rule) *[256]uint64 {
	t := new([256]uint64)
	for b := range t {
		add := func(set int) { t[b] |= 1 << (8 * set) }
		if b >= len(ascii) || r&digitEnds != 0 && ascii[b] == 0 {
			add(inStop)
			continue
		}
		switch c := ascii[b]; {
		case c&upper != 0:
			add(inUpper)
		case c&lower != 0:
			add(inLower)
		case c&num != 0:
			add(inDigit)
		case c&space != 0:
			add(inBlank)
		}
		switch b {
		case '\n', '\r':
			add(inUpper)
		case ' ':
			add(inLower)
		case '/':
			add(inSlash)
		case '\'':
			add(inQuote)
		}
	}
	return t
}

// window stores the ends of pieces in the next bytes of s, from the start i of a piece, and returns their number. It is 0 if the
// first piece is longer, or contains or precedes a character to which the rule does not apply.
func (x *Scanner) window(ends *[window]int, s string, i int) int {
	n := min(len(s)-i, window)
	var m [8]uint64
	x.setsAt(&m, s, i, n)
	final := i+n == len(s)
	valid := ^uint64(0) >> (window - n)
	if stop := m[inStop] & valid; stop != 0 {
		n = bits.TrailingZeros64(stop)
		if n == 0 {
			return 0
		}
		final = false
		valid = ^uint64(0) >> (window - n)
	}
	starts := x.starts(&m, valid, final, s, i, n)
	found := 0
	for starts &^= 1; starts != 0; starts &= starts - 1 {
		ends[found] = i + bits.TrailingZeros64(starts)
		found++
	}
	if final {
		ends[found] = len(s)
		found++
	}
	return found
}

// setsAt sets the sets of the n bytes of s at i, in the order of their numbers. Bits after these are of no meaning.
func (x *Scanner) setsAt(m *[8]uint64, s string, i, n int) {
	var rest [window]byte
	if s = s[i:]; n < window {
		copy(rest[:], s)
		s = unsafe.String(&rest[0], window)
	}
	if !vectors {
		for g := range m {
			m[g] = x.eight(word64(s, 8*g))
		}
		transpose(m)
		return
	}
	classify(m, unsafe.StringData(s))
	if x.rule&digitEnds != 0 {
		m[inStop] |= m[inControl]
	}
}

// eight returns the sets of eight characters.
func (x *Scanner) eight(w uint64) uint64 {
	t := x.sets
	return t[uint8(w)] | t[uint8(w>>8)]<<1 | t[uint8(w>>16)]<<2 | t[uint8(w>>24)]<<3 |
		t[uint8(w>>32)]<<4 | t[uint8(w>>40)]<<5 | t[uint8(w>>48)]<<6 | t[uint8(w>>56)]<<7
}

// transpose exchanges byte i of word j and byte j of word i.
func transpose(m *[8]uint64) {
	for i := range 4 {
		t := (m[i]>>32 ^ m[i+4]) & (1<<32 - 1)
		m[i] ^= t << 32
		m[i+4] ^= t
	}
	for _, i := range [4]int{0, 1, 4, 5} {
		t := (m[i]>>16 ^ m[i+2]) & 0x0000FFFF0000FFFF
		m[i] ^= t << 16
		m[i+2] ^= t
	}
	for i := 0; i < 8; i += 2 {
		t := (m[i]>>8 ^ m[i+1]) & 0x00FF00FF00FF00FF
		m[i] ^= t << 8
		m[i+1] ^= t
	}
}

// starts returns the positions at which pieces begin, of those that do not depend on what follows the window: n bytes of s from i,
// the end of the text if final is set.
//
// Position k of a set shifted left by one is the character before k, and shifted right the one after it.
func (x *Scanner) starts(m *[8]uint64, valid uint64, final bool, s string, i, n int) uint64 {
	r := x.rule
	blank := m[inBlank] & valid
	digit := m[inDigit] & valid
	line := m[inUpper] & blank
	gap := m[inLower] & blank // spaces
	big := m[inUpper] &^ blank & valid
	little := m[inLower] &^ blank & valid
	letter := big | little
	sign := valid &^ (blank | digit | letter)
	if r&tails == 0 {
		line = 0
	}

	// Line ends after signs, and maybe slashes after these, belong to the signs. An addition carries through the rest of
	// a run.
	after := line
	if r&slashes != 0 {
		after |= m[inSlash] & valid
	}
	first := sign << 1 & line
	tail := (after+first^after)&after | first
	blank &^= tail
	sign &^= tail
	line &^= tail

	// Words, numbers and signs begin where their runs do, if not before.
	signs := sign &^ (sign<<1 | gap<<1)
	lead := gap << 1
	if r&leads != 0 {
		// A sign that is alone and does not follow a space begins the word after it.
		lead = (blank&^line | signs&^(sign>>1)) << 1
	}
	starts := letter&^(letter<<1)&^lead | signs
	if r&capitals != 0 {
		starts |= big & (little << 1)
	}
	numbers := digit &^ (digit << 1)
	switch {
	case r&each != 0:
		numbers = digit
	case r&groups != 0:
		for more := numbers; more != 0; numbers |= more {
			more = more << 3 & digit & (digit << 1) & (digit << 2)
		}
	case r&spaced != 0:
		numbers &^= gap << 1
	}
	starts |= numbers

	// A run of blanks is cut after its last line end, and before its last blank if that is not a line end and something
	// follows.
	blanks := blank &^ (blank << 1)
	next := valid &^ m[inBlank]
	if r&digitEnds != 0 {
		next &^= digit
	}
	starts |= blanks | blank&^line&(next>>1)
	rest := blank &^ line
	starts |= rest & (line << 1) &^ below(rest, line>>1)

	if (!final || r&wholeEnd != 0) && blank>>(n-1) != 0 {
		// What follows, or the end, decides where the run of blanks at the end is cut.
		starts &= 1<<(bits.Len64(blanks)) - 1
	}
	if quotes := m[inQuote] & valid; quotes != 0 && r&(small|caseless|suffixes) != 0 {
		starts = x.quotes(starts, quotes, letter, s, i)
	}
	return starts & valid
}

// below returns the positions of run from which it continues up to one in ends.
func below(run, ends uint64) uint64 {
	ends &= run
	for k := 1; k < window; k *= 2 {
		ends |= ends >> k & run
		run &= run >> k
	}
	return ends
}

// quotes adds the contractions at the positions in quotes to starts.
func (x *Scanner) quotes(starts, quotes, letter uint64, s string, i int) uint64 {
	done := 0 // end of the last one
	for ; quotes != 0; quotes &= quotes - 1 {
		k := bits.TrailingZeros64(quotes)
		keep := uint64(2)<<k - 1 // a contraction that is a piece begins at k
		if x.rule&suffixes != 0 {
			if k == 0 || k == done || letter>>(k-1)&1 == 0 {
				continue
			}
			keep >>= 1
		} else if starts>>k&1 == 0 {
			continue
		}
		end := 0
		if x.rule&small != 0 {
			end = smallContraction(s, i+k)
		} else {
			end = contraction(s, i+k)
		}
		if end -= i; end == k {
			continue
		}
		done = end
		starts = starts&(keep|^uint64(0)<<end) | 1<<end
	}
	return starts
}
