// SPDX-License-Identifier: Apache-2.0

package preamble

import (
	"iter"
	"strings"

	"github.com/weft-go/weft/protocols/block"
)

// header is the start of the billing block. The comparison is case-sensitive.
const header = "x-anthropic-billing-header:"

// billingRule is the ID of the rules R1 to R4 in a report.
const billingRule = "claude-code/billing"

// maxOpaque limits the length of a header without key=value; pairs. A longer line may be system text.
const maxOpaque = 512

// strip removes the billing header, or several in sequence, from the start of the request's system text.
func strip(r *block.Request) (changes []Change, err error) {
	for b := range opening(r.Turns()) {
		n := billingLen(b.Text)
		if n == 0 {
			break
		}
		c := Change{Action: actRemoved, Rule: billingRule, Path: b.At.Path(), Offset: offsetOf(b.At), Text: b.Text[:n], Bytes: n, Count: 1}
		c.whole = n == len(b.Text)
		if c.whole {
			err = r.Delete(b.At)
		} else {
			err = r.SetText(b.At, b.Text[n:])
		}
		if err != nil {
			return changes, err
		}
		changes = append(changes, c)
		if !c.whole {
			break
		}
	}
	return changes, nil
}

// offsetOf returns the offset of a position in the body, or -1 if it has none.
func offsetOf(at block.Ref) int64 {
	off, end := at.Span()
	if end == 0 {
		return -1
	}
	return int64(off)
}

// opening yields the blocks of the leading system text, up to the first that is not text. It skips empty ones.
func opening(turns []block.Turn) iter.Seq[*block.Block] {
	return func(yield func(*block.Block) bool) {
		for i := range leading(turns) {
			for k := range turns[i].Blocks {
				b := &turns[i].Blocks[k]
				if b.Kind != block.Text || b.Text != "" && !yield(b) {
					return
				}
			}
		}
	}
}

// billingLen returns the length of the billing headers at the start of text. Cost: one pass over them.
func billingLen(text string) int {
	n, end := 0, 0
	for strings.HasPrefix(text[n:], header) {
		if n >= end { // otherwise the header follows another in the same line
			end = lineEnd(text, n)
		}
		k := one(text[n:], end-n)
		if k == 0 {
			break
		}
		n += k
	}
	return n
}

// one returns the length of the header at the start of text; its line has size bytes.
func one(text string, size int) int {
	line := strings.TrimSuffix(text[:size], "\n")
	switch n := pairs(line); {
	case len(header) < n && n < len(line):
		return n // followed by text in the same line
	case n < len(line) && len(line) > maxOpaque:
		return 0 // no pairs and too long for a header of a future version
	case blank(text[size:]):
		return len(text)
	}
	return size
}

// blank reports whether s, the text after a header, is only white space of at most 16 bytes.
func blank(s string) bool { return len(s) <= 16 && strings.TrimSpace(s) == "" }

// pairs returns the end of the header in its line: after the last key=value; pair, or the end of the line if only
// blanks follow. A blank ends a value, because text may follow the header directly, unless the value's semicolon is
// followed by the end of the line or by another known key, all of which start with cc.
func pairs(line string) int {
	i := len(header)
	for {
		k := i
		for k < len(line) && line[k] == ' ' {
			k++
		}
		key := k
		for k < len(line) && isKey(line[k]) {
			k++
		}
		if k == key || k >= len(line) || line[k] != '=' {
			break
		}
		if k++; k < len(line) && line[k] == '"' {
			if q := strings.IndexByte(line[k+1:], '"'); q >= 0 {
				k += q + 2
			}
		}
		for ; k < len(line) && line[k] != ';' && line[k] != ' '; k++ {
		}
		if k < len(line) && line[k] == ' ' && strings.HasPrefix(line[key:], "cc") {
			if value, rest, ok := strings.Cut(line[k:], ";"); ok {
				if rest = strings.TrimLeft(rest, " \t\r"); rest == "" || strings.HasPrefix(rest, "cc") {
					k += len(value)
				}
			}
		}
		if k == len(line) { // the last pair may lack its semicolon
			return k
		}
		if line[k] != ';' {
			break
		}
		i = k + 1
	}
	k := i
	for k < len(line) && (line[k] == ' ' || line[k] == '\t' || line[k] == '\r') {
		k++
	}
	if k == len(line) {
		return k
	}
	return i
}

func isKey(c byte) bool {
	return c == '_' || c == '-' || c == '.' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
}
