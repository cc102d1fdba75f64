// SPDX-License-Identifier: Apache-2.0

package cache

import "github.com/weft-go/weft/tokenizers"

// cursor is a position in the joined text of segments.
type cursor struct {
	segs []tokenizers.Segment // part of the first may be consumed
	off  int                  // offset in segs[0]; below its length, unless no text is left
	left int                  // bytes from here to the end
}

func newCursor(segs []tokenizers.Segment) cursor {
	c := cursor{segs: segs}
	for i := range segs {
		c.left += len(segs[i].Text)
	}
	c.skipEmpty()
	return c
}

// skipEmpty skips segments that are consumed.
func (c *cursor) skipEmpty() {
	for len(c.segs) > 0 && c.off >= len(c.segs[0].Text) {
		c.off -= len(c.segs[0].Text)
		c.segs = c.segs[1:]
	}
}

// advance moves the cursor by n bytes.
func (c *cursor) advance(n int) {
	c.off += n
	c.left -= n
	c.skipEmpty()
}

// symbol returns the symbol of the text at the cursor. See trie.
func (c *cursor) symbol() uint16 {
	if c.left <= 0 {
		return 0
	}
	return notEnd | uint16(c.segs[0].Text[c.off])
}

// common returns the length of the longest prefix of s at the cursor.
func (c cursor) common(s string) int {
	k := 0
	for k < len(s) && c.left > 0 {
		seg := c.segs[0].Text[c.off:]
		n := min(len(seg), len(s)-k)
		if seg[:n] != s[k:k+n] {
			return k + common(seg[:n], s[k:k+n])
		}
		k += n
		c.advance(n)
	}
	return k
}

// run is a range of one provenance. It ends at an offset in the text of its node.
type run struct {
	end     int
	trusted bool
}

// skip returns the cursor after the next n bytes. It reports false unless they have the provenance of runs, nil for all
// trusted.
func (c cursor) skip(n int, runs []run) (cursor, bool) {
	for at := 0; at < n; {
		seg := &c.segs[0]
		k := min(len(seg.Text)-c.off, n-at)
		at += k
		if runs == nil {
			if !seg.Trusted {
				return c, false
			}
		} else {
			if seg.Trusted != runs[0].trusted || at > runs[0].end {
				return c, false
			}
			if at == runs[0].end {
				runs = runs[1:]
			}
		}
		c.advance(k)
	}
	return c, true
}

// appendSegments appends the segments of the next n bytes.
func (c cursor) appendSegments(dst []tokenizers.Segment, n int) []tokenizers.Segment {
	for n > 0 {
		k := min(len(c.segs[0].Text)-c.off, n)
		dst = append(dst, tokenizers.Segment{Text: c.segs[0].Text[c.off : c.off+k], Trusted: c.segs[0].Trusted})
		n -= k
		c.advance(k)
	}
	return dst
}
