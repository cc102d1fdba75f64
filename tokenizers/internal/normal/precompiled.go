// SPDX-License-Identifier: Apache-2.0

package normal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/unidata"
)

// Precompiled returns the normalizer of that name for the rules in charsmap, the decoded field
// precompiled_charsmap. SentencePiece compiles its rules to this form:
//
//	size of the trie in bytes  4 bytes, little endian
//	trie                       units of 4 bytes, little endian: a double array over the bytes of the keys
//	texts                      UTF-8, each ended by a zero byte; the trie's values are offsets in here
//
// The crate spm_precompiled reads a grapheme cluster of fewer than six bytes as one key, and if that has no rule,
// or is longer, its characters one by one. A key "has" the rule of its shortest prefix that has one, and
// then the whole key is replaced. All of that is reproduced, also what looks like a mistake: a cluster
// removed at the very start of a text puts the origins of what follows off by its characters.
//
// longest is the length of the longest text in bytes. The error describes the fault in charsmap. Its memory is not kept. A trie that points outside itself or outside the texts
// has no rule there (the reference stops the program).
func Precompiled(charsmap []byte) (step Step, longest int, err error) {
	if len(charsmap) < 4 {
		return nil, 0, errors.New("shorter than the 4 bytes of its first field")
	}
	size := uint64(binary.LittleEndian.Uint32(charsmap))
	rest := charsmap[4:]
	if n := size &^ 3; n > uint64(len(rest)) {
		return nil, 0, fmt.Errorf("trie of %d bytes exceeds the remaining %d bytes", size, len(rest))
	}
	x := &precompiled{trie: make([]uint32, size/4)}
	if len(x.trie) == 0 {
		return nil, 0, errors.New("no trie")
	}
	for i := range x.trie {
		x.trie[i] = binary.LittleEndian.Uint32(rest[4*i:])
	}
	rest = rest[4*len(x.trie):]
	if !utf8.Valid(rest) {
		return nil, 0, errors.New("texts are not UTF-8")
	}
	x.texts = string(rest)
	for text := range strings.SplitSeq(x.texts, "\x00") {
		longest = max(longest, len(text))
	}
	var key [utf8.UTFMax]byte
	for c := range rune(1 << 16) {
		switch unidata.Grapheme(c) {
		case unidata.GraphemeAny, unidata.GraphemePictographic, unidata.GraphemeConsonant, unidata.GraphemeLV, unidata.GraphemeLVT:
		case unidata.GraphemeControl:
			if c >= utf8.RuneSelf {
				continue
			}
		default:
			continue
		}
		if _, has := x.find(view(key[:utf8.EncodeRune(key[:], c)])); !has && (c < 0xD800 || c > 0xDFFF) {
			x.inert[c>>6] |= 1 << (c & 63)
		}
	}
	return x, longest, nil
}

type precompiled struct {
	trie  []uint32
	texts string
	// inert has the characters below U+10000 that have no rule and that join neither the preceding character
	// nor each other.
	inert [1 << 10]uint64
}

// find returns what key is replaced by.
func (x *precompiled) find(key string) (string, bool) {
	at := offset(x.trie[0])
	for i := range len(key) {
		c := uint32(key[i])
		at ^= c
		if c == 0 || at >= uint32(len(x.trie)) {
			return "", false
		}
		unit := x.trie[at]
		if unit&(1<<31|0xFF) != c {
			return "", false
		}
		at ^= offset(unit)
		if unit>>8&1 == 0 {
			continue
		}
		if at >= uint32(len(x.trie)) {
			return "", false
		}
		v := int64(x.trie[at] &^ (1 << 31))
		if v > int64(len(x.texts)) || v < int64(len(x.texts)) && !utf8.RuneStart(x.texts[v]) {
			return "", false
		}
		to := x.texts[v:]
		if n := strings.IndexByte(to, 0); n >= 0 {
			to = to[:n]
		}
		return to, true
	}
	return "", false
}

func offset(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }

// skip returns the length of a prefix of s that is unchanged regardless of the following text: inert characters, each
// of which is a cluster. s must start with a cluster.
func (x *precompiled) skip(s string) int {
	last, i := 0, 0 // start of the last character, end of it
	for i < len(s) {
		if c := s[i]; c < utf8.RuneSelf {
			if x.inert[c>>6]>>(c&63)&1 == 0 {
				break
			}
			last = i
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r > 0xFFFF || x.inert[r>>6]>>(r&63)&1 == 0 {
			break
		}
		last = i
		i += n
	}
	if last == i || i == len(s) {
		return i
	}
	if s[i] < utf8.RuneSelf {
		if s[i] == '\n' && s[last] == '\r' {
			return last
		}
		return i
	}
	r, _ := utf8.DecodeRuneInString(s[i:])
	if g := unidata.Grapheme(r); extends(g) || g == unidata.GraphemeV || g == unidata.GraphemeT {
		return last
	}
	return i
}

// maxKey is the first length of a cluster that is not read as one key.
const maxKey = 6

func (x *precompiled) Prefix(s string) int {
	for i := 0; i < len(s); {
		if n := x.skip(s[i:]); n > 0 {
			i += n
			continue
		}
		n := cluster(s[i:])
		if n < maxKey && valid(s[i:i+n]) {
			if _, ok := x.find(s[i : i+n]); ok {
				return i
			}
		}
		for end := i + n; i < end; {
			_, n := utf8.DecodeRuneInString(s[i:])
			if _, ok := x.find(s[i : i+n]); ok && valid(s[i:i+n]) {
				return i
			}
			i += n
		}
	}
	return len(s)
}

// valid reports whether a cluster is more than a byte that is not UTF-8.
func valid(s string) bool { return len(s) > 1 || s[0] < utf8.RuneSelf }

// item is a run of the result: a character of size bytes with a change, as in [aligner.next], or, if the change is
// kept, unchanged characters at position at of the source.
type item struct{ size, change, at int32 }

const kept = 2

func (x *precompiled) Append(dst *Text, src Text, b *Buffer) {
	s := view(src.B)
	track := src.From != nil
	start := len(dst.B)
	b.items = b.items[:0]
	for i := 0; i < len(s); {
		if n := x.skip(s[i:]); n > 0 {
			dst.B = append(dst.B, s[i:i+n]...)
			if track {
				_, last := utf8.DecodeLastRuneInString(s[i : i+n])
				b.items = append(b.items, item{int32(n - last), kept, int32(i)}, item{size: int32(last)})
			}
			i += n
			continue
		}
		n := cluster(s[i:])
		if n < maxKey && valid(s[i:i+n]) {
			if to, ok := x.find(s[i : i+n]); ok {
				dst.B = append(dst.B, to...)
				if track {
					b.replaced(s[i:i+n], to)
				}
				i += n
				continue
			}
		}
		for end := i + n; i < end; {
			_, n := utf8.DecodeRuneInString(s[i:])
			to, ok := x.find(s[i : i+n])
			switch {
			case ok && valid(s[i:i+n]):
				dst.B = append(dst.B, to...)
				if track {
					b.replaced(s[i:i+n], to)
				}
			default:
				dst.B = append(dst.B, s[i:i+n]...)
				if track {
					b.items = append(b.items, item{size: int32(n)})
				}
			}
			i += n
		}
	}
	if !track {
		return
	}
	a := aligner{src: src}
	end := start
	for _, it := range b.items {
		at := end
		end += int(it.size)
		if it.change == kept && a.at == int(it.at) {
			a.at += int(it.size)
			dst.From = append(dst.From, src.From[it.at:a.at]...)
			continue
		}
		for n := int(it.size); at < end; at += n {
			change := it.change
			if change == kept {
				_, n = utf8.DecodeRune(dst.B[at:end])
				change = 0
			}
			origin := a.next(change)
			for range n {
				dst.From = append(dst.From, origin)
			}
		}
	}
}

// replaced records that a key was replaced with to (the function replace of normalizers/precompiled.rs).
func (b *Buffer) replaced(key, to string) {
	from, diff := len(b.items), int32(utf8.RuneCountInString(to)-utf8.RuneCountInString(key))
	for i := 0; i < len(to); {
		n := 1
		if to[i] >= utf8.RuneSelf {
			_, n = utf8.DecodeRuneInString(to[i:])
		}
		b.items = append(b.items, item{size: int32(n)})
		i += n
	}
	n := len(b.items)
	switch {
	case diff > 0:
		for k := max(from, n-int(diff)); k < n; k++ {
			b.items[k].change = 1
		}
	case diff < 0 && n > 0:
		b.items[n-1].change += diff
	}
}
