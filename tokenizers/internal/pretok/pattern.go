// SPDX-License-Identifier: Apache-2.0

package pretok

import (
	"fmt"
	"iter"
	"strings"
	"sync"
)

// Pattern is a compiled expression. It is immutable and safe for concurrent use.
type Pattern struct {
	expr  string
	prog  []inst
	entry int32
	loops int
	word  int32 // the set of \w, or -1

	sets    []compiledSet
	classes int
	page    [0x1100]uint16 // of data, by character / 256
	data    [][256]uint16

	emptyOK    bool // it may match the empty string
	startBytes [256]bool

	pool sync.Pool
}

// Error reports why an expression was refused.
type Error struct {
	Expr   string
	Offset int    // bytes from the start of Expr
	Reason string // the construct at Pos
}

// Error returns the position and the reason.
func (e *Error) Error() string {
	return fmt.Sprintf("pretok: cannot use %s at offset %d of %q", e.Reason, e.Offset, e.Expr)
}

// Compile reads an expression in the syntax of Oniguruma 6.9, as Hugging Face's tokenizers read the Regex of a Split.
// The package documentation lists the constructs for which it returns an [*Error].
//
// A Pattern takes some 100 KB. Compiling takes milliseconds.
func Compile(expr string) (*Pattern, error) { return compileIn(expr, false) }

// CompileRust reads an expression in the syntax of Rust's crate fancy-regex, which tiktoken uses. It refuses more than
// Compile, above all what the two syntaxes interpret differently and tokenizers do not use; see the package
// documentation.
func CompileRust(expr string) (*Pattern, error) { return compileIn(expr, true) }

func compileIn(expr string, rust bool) (*Pattern, error) {
	if len(expr) > maxExpr {
		return nil, &Error{Expr: expr[:maxExpr], Offset: maxExpr, Reason: fmt.Sprintf("an expression of more than %d bytes", maxExpr)}
	}
	n, err := parse(expr, rust)
	if err != nil {
		return nil, err
	}
	return compile(expr, n)
}

// maxExpr is the longest expression, in bytes.
const maxExpr = 1 << 15

// Literal returns the pattern that matches s itself: the String of a Split. The error is an [*Error]; it
// means that s is not valid UTF-8 or is too long.
func Literal(s string) (*Pattern, error) {
	var b strings.Builder
	for _, c := range []byte(s) {
		if strings.IndexByte(`\.+*?()|[]{}^$`, c) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return Compile(b.String())
}

// String returns the expression.
func (p *Pattern) String() string { return p.expr }

// MatchesEmpty reports whether the expression may match the empty string. It may be true if it does not.
func (p *Pattern) MatchesEmpty() bool { return p.emptyOK }

// Find returns the first match in s that starts at or after from, which must be the start of a character or len(s).
// Look-behind and anchors also examine the text before from. ok is false if there is no match.
//
// The time is linear in the examined text. To find all matches use [Pattern.All], which does not examine text again
// that an earlier search has examined.
func (p *Pattern) Find(s string, from int) (start, end int, ok bool) {
	m := p.start(s)
	start, end = m.find(from)
	m.release()
	return start, end, start >= 0
}

// All returns the starts and ends of successive matches in s, like Hugging Face's find_iter: an empty match right after
// another match is skipped. Time is linear in len(s).
func (p *Pattern) All(s string) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		m := p.start(s)
		for m.next() {
			if !yield(m.from, m.to) {
				break
			}
		}
		m.release()
	}
}
