// SPDX-License-Identifier: Apache-2.0

package pretok

// This file is structured as follows: the interface of cutting steps, the conversion of matches to pieces, and Split,
// which combines both.

// Piece is the substring s[Start:End] of a text, in bytes. Start < End.
type Piece struct{ Start, End int }

// Splitter is one cutting step. AppendPieces appends the pieces of s to dst, in order and without overlap;
// text that the step removes is in none of them. No piece is empty.
//
// All implementations in this package are pure, safe for concurrent use, take time linear in len(s), and allocate only
// memory for dst when warm. Implementations: [Func], [Split], [Whitespace], [WhitespaceSplit], [Bert], [Punctuation],
// [Digits], [CharDelimiter], [UnicodeScripts], [FixedLength], [Metaspace].
type Splitter interface {
	AppendPieces(dst []Piece, s string) []Piece
}

// AppendPieces implements [Splitter].
func (f Func) AppendPieces(dst []Piece, s string) []Piece {
	for i := 0; i < len(s); {
		j := f(s, i)
		dst = append(dst, Piece{i, j})
		i = j
	}
	return dst
}

// Behavior specifies what happens to the matches of an expression. The examples cut "the-final--countdown" at
// every "-".
type Behavior uint8

// The behaviours of Hugging Face's SplitDelimiterBehavior.
const (
	Isolated           Behavior = iota // the - final - - countdown
	Removed                            // the final countdown
	MergedWithPrevious                 // the- final- - countdown
	MergedWithNext                     // the -final - -countdown
	Contiguous                         // the - final -- countdown
)

var behaviors = [...]string{"Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"}

// ParseBehavior returns the behavior with the name that tokenizer.json uses, such as "MergedWithNext".
func ParseBehavior(name string) (b Behavior, ok bool) {
	for i, s := range behaviors {
		if s == name {
			return Behavior(i), true
		}
	}
	return 0, false
}

// String returns the name.
func (b Behavior) String() string {
	if int(b) < len(behaviors) {
		return behaviors[b]
	}
	return "unknown behavior"
}

// joiner makes pieces of matches and of the text between them, which are added in order and may be empty.
// It does what NormalizedString::split does in Hugging Face's tokenizers 0.23 (tokenizer/normalizer.rs),
// in one pass.
type joiner struct {
	dst      []Piece
	behavior Behavior
	invert   bool
	prev     bool // the last text added was a match
	any      bool // dst ends with a piece of this joiner
}

func (j *joiner) add(start, end int, match bool) {
	match = match != j.invert
	var grow bool
	switch j.behavior {
	case Removed:
		if match {
			return
		}
	case Contiguous:
		grow = match == j.prev
	case MergedWithPrevious:
		grow = match && !j.prev
	case MergedWithNext:
		grow = !match && j.prev
	}
	j.prev = match
	if j.any {
		last := &j.dst[len(j.dst)-1]
		if grow {
			last.End = end
			return
		}
		if last.Start == last.End {
			*last = Piece{start, end}
			return
		}
	}
	j.any = true
	j.dst = append(j.dst, Piece{start, end})
}

// pieces returns the result.
func (j *joiner) pieces() []Piece {
	if n := len(j.dst) - 1; j.any && j.dst[n].Start == j.dst[n].End {
		return j.dst[:n]
	}
	return j.dst
}

// Split cuts at the matches of an expression: the pre-tokenizer Split.
type Split struct {
	Pattern  *Pattern
	Behavior Behavior
	// Invert exchanges matches and the text between them.
	Invert bool
}

// NewSplit returns the cutting step of a Split pre-tokenizer with a Regex: the hand-written scanner if there is one,
// otherwise a [Split] with the compiled expression. The error is an [*Error].
func NewSplit(expr string, b Behavior, invert bool) (Splitter, error) {
	if b == Isolated {
		if f, ok := Lookup(expr); ok {
			return f, nil
		}
	}
	if expr == clipExpr && b == Removed && invert {
		return wordsOnly{CLIP}, nil
	}
	p, err := Compile(expr)
	if err != nil {
		return nil, err
	}
	return &Split{p, b, invert}, nil
}

// wordsOnly is the cuts of f without pieces of white space.
type wordsOnly struct{ f Func }

// AppendPieces implements [Splitter].
func (x wordsOnly) AppendPieces(dst []Piece, s string) []Piece {
	for i := 0; i < len(s); {
		j := x.f(s, i)
		if c, _ := classAt(s, i); c&space == 0 {
			dst = append(dst, Piece{i, j})
		}
		i = j
	}
	return dst
}

// AppendPieces implements [Splitter].
func (x *Split) AppendPieces(dst []Piece, s string) []Piece {
	if s == "" {
		return dst
	}
	j := joiner{dst: dst, behavior: x.Behavior, invert: x.Invert}
	prev := 0
	m := x.Pattern.start(s)
	for m.next() {
		if prev != m.from {
			j.add(prev, m.from, false)
		}
		j.add(m.from, m.to, true)
		prev = m.to
	}
	m.release()
	if prev != len(s) {
		j.add(prev, len(s), false)
	}
	return j.pieces()
}
