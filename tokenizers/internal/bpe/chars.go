// SPDX-License-Identifier: Apache-2.0

package bpe

import (
	"fmt"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/vocab"
	"github.com/weft-go/weft/tokenizers/internal/words"
)

// This file is structured as follows: options and construction, then characters to ids (leaves), then words to ids.
// cuts.go determines where words are cut before merging.

// CharsOptions configures a [Chars] model. The zero value merges characters and drops those that are not in the
// vocabulary.
type CharsOptions struct {
	// Unk is the id of characters that are not in the vocabulary; nil drops them.
	Unk *uint32
	// FuseUnk gives neighbouring unknown characters one id.
	FuseUnk bool
	// ByteFallback spells a character that is not in the vocabulary with the tokens <0x00> to <0xFF> if all
	// its bytes have one.
	ByteFallback bool
	// ContinuingSubwordPrefix begins the spelling of tokens that do not begin a word; may be empty.
	ContinuingSubwordPrefix string
	// EndOfWordSuffix ends the spelling of tokens that end a word, "</w>" for CLIP; may be empty.
	EndOfWordSuffix string
	// IgnoreMerges encodes a word that is a token of the vocabulary as that token, regardless of merges.
	IgnoreMerges bool
}

// Chars encodes words by merging characters, as models with SentencePiece-style vocabularies do (Llama 2,
// Mistral up to v3, Gemma), for which a whole text is one word, and those with a suffix at the end of each
// word (CLIP). It is immutable and safe for concurrent use.
//
// The result is that of Hugging Face tokenizers 0.23, models/bpe, with two of its corners: an unknown
// character waits for the next known one, so that characters spelled in bytes between the two come before
// it; and a character is spelled in bytes together with its prefix and suffix. A byte that is not part of valid UTF-8,
// which the reference refuses, is a character that is not in the vocabulary.
type Chars struct {
	merges
	own    words.Owner
	vocab  *vocab.Table
	prefix string
	suffix string
	ascii  [utf8.RuneSelf]uint32 // ids of characters without prefix and suffix, or noID if absent
	runes  runeTable             // ids of all characters in all forms
	unk    uint32                // or noID
	fuse   bool
	fall   bool
	ignore bool
	whole  bool        // words are not cut
	bytes  [256]uint32 // ids of <0x00> to <0xFF>, or noID if absent or they are not used
	odd    []uint64    // bit id: unk, or one of bytes: its length differs from that of its spelling
	made   []uint64    // bit id: a character or the result of a merge
	self   []uint64    // bit id: the word with the token's spelling encodes as that token alone
	maxLen int         // bytes of the longest token
	cuts   cuts
}

// Forms of a character.
const (
	inside = 1 << iota // spelled with the prefix
	last               // spelled with the suffix
)

// NewChars returns the model of a vocabulary whose bytes are the spelling in the file and its merges. Of each merge, To
// must be spelled like A and then B without its prefix. If two merges join the same pair, the later one is used, as in
// the reference. NewChars takes some tens of milliseconds for 60,000 merges.
func NewChars(v *vocab.Table, merges []Merge, opt CharsOptions) (*Chars, error) {
	m := &Chars{vocab: v, prefix: opt.ContinuingSubwordPrefix, suffix: opt.EndOfWordSuffix, unk: noID,
		fuse: opt.FuseUnk, fall: opt.ByteFallback, ignore: opt.IgnoreMerges}
	if err := m.merges.init(v, merges); err != nil {
		return nil, err
	}
	for rank, g := range merges {
		a, b, to := v.Bytes(g.A), v.Bytes(g.B), v.Bytes(g.To)
		n := len(m.prefix)
		// The length of a token must grow with each merge: the queue and the proof in cuts.go rely on it. The reference
		// removes n bytes from b without checking them, or fails.
		if len(a) == 0 || len(b) <= n || string(b[:n]) != m.prefix || string(to) != string(a)+string(b[n:]) {
			return nil, fmt.Errorf("bpe: merge %d of %q and %q cannot make %q", rank, a, b, to)
		}
	}
	m.odd = make([]uint64, (v.Len()+63)/64)
	m.made = make([]uint64, (v.Len()+63)/64)
	for _, g := range merges {
		m.made[g.To>>6] |= 1 << (g.To & 63)
	}
	if opt.Unk != nil {
		m.unk = *opt.Unk
		if len(v.Bytes(m.unk)) == 0 {
			return nil, fmt.Errorf("bpe: the unknown token %d is not in the vocabulary", m.unk)
		}
		m.odd[m.unk>>6] |= 1 << (m.unk & 63)
	}
	for b := range m.bytes {
		m.bytes[b] = noID
		if id, ok := v.Lookup(fmt.Sprintf("<0x%02X>", b)); ok && m.fall {
			m.bytes[b] = id
			m.odd[id>>6] |= 1 << (id & 63)
		}
	}
	m.readRunes()
	m.findCuts(merges)
	m.findSelf()
	return m, nil
}

// readRunes finds the tokens that are one character, in each form that this model has.
func (m *Chars) readRunes() {
	for c := range m.ascii {
		m.ascii[c] = noID
	}
	n := 0
	for {
		m.runes = newRuneTable(n)
		n = 0
		for id := range uint32(m.vocab.Len()) {
			tok := m.vocab.Bytes(id)
			m.maxLen = max(m.maxLen, len(tok))
			if len(tok) == 0 || len(tok) > utf8.UTFMax+len(m.prefix)+len(m.suffix) {
				continue
			}
			if got, ok := m.vocab.Lookup(view(tok)); !ok || got != id {
				continue
			}
			for form := range uint32(4) {
				s := view(tok)
				if form&inside != 0 {
					if m.prefix == "" || len(s) < len(m.prefix) || s[:len(m.prefix)] != m.prefix {
						continue
					}
					s = s[len(m.prefix):]
				}
				if k := len(s) - len(m.suffix); form&last != 0 {
					if m.suffix == "" || k < 0 || s[k:] != m.suffix {
						continue
					}
					s = s[:k]
				}
				c, size := utf8.DecodeRuneInString(s)
				if size == 0 || size != len(s) || c == utf8.RuneError && size == 1 {
					continue
				}
				n++
				m.runes.put(c, form, id)
				m.made[id>>6] |= 1 << (id & 63)
				if form == 0 && c < utf8.RuneSelf {
					m.ascii[c] = id
				}
			}
		}
		if m.runes.room(n) {
			return
		}
	}
}

// runeTable maps characters in their forms to ids by open addressing.
type runeTable struct {
	slots []uint64 // (rune<<2|form)+1 << 32 | id, 0 is free; len is a power of two at most 2/3 full
	shift uint8
}

func newRuneTable(n int) runeTable {
	log := uint8(4)
	for 1<<log < n+n/2 {
		log++
	}
	return runeTable{make([]uint64, 1<<log), 64 - log}
}

// room reports whether n entries fit. If they do not, put drops some.
func (t *runeTable) room(n int) bool { return n+n/2 <= len(t.slots) }

func (t *runeTable) put(c rune, form, id uint32) {
	key := uint64(c)<<2 | uint64(form) + 1
	mask := uint64(len(t.slots) - 1)
	at := key * 0x9E3779B97F4A7C15 >> t.shift
	for i := range uint64(len(t.slots) - 1) { // one slot stays free, at which searches end
		e := &t.slots[(at+i)&mask]
		if *e == 0 {
			*e = key<<32 | uint64(id)
			return
		}
	}
}

func (t *runeTable) get(c rune, form uint32) uint32 {
	key := uint64(c)<<2 | uint64(form) + 1
	mask := uint64(len(t.slots) - 1)
	for i := key * 0x9E3779B97F4A7C15 >> t.shift; ; i++ {
		e := t.slots[i&mask]
		if e>>32 == key {
			return uint32(e)
		}
		if e == 0 {
			return noID
		}
	}
}

// leaves sets st.leaf to the ids from which merging w starts and, if sizes is set, st.size to the number of bytes that
// each covers.
func (m *Chars) leaves(w string, st *State, sizes bool) {
	st.leaf, st.size = st.leaf[:0], st.size[:0]
	waits := uint32(0) // bytes of the unknown token that has not been added, or 0 if absent
	add := func(id, size uint32) {
		st.leaf = append(st.leaf, id)
		if sizes {
			st.size = append(st.size, size)
		}
	}
	bare := m.prefix == "" && m.suffix == ""
	for i := 0; i < len(w); {
		c, size := rune(w[i]), 1
		if c >= utf8.RuneSelf {
			c, size = utf8.DecodeRuneInString(w[i:])
		}
		start := i
		i += size
		var id uint32
		form := uint32(0)
		switch {
		case !bare:
			if start > 0 && m.prefix != "" {
				form = inside
			}
			if i == len(w) && m.suffix != "" {
				form |= last
			}
			id = m.runes.get(c, form)
		case c < utf8.RuneSelf:
			id = m.ascii[c]
		default:
			id = m.runes.get(c, 0)
		}
		if c == utf8.RuneError && size == 1 {
			id = noID
		}
		if id != noID {
			if waits > 0 {
				add(m.unk, waits)
				waits = 0
			}
			add(id, uint32(size))
			continue
		}
		if m.spell(w[start:i], form, nil) {
			m.spell(w[start:i], form, add)
			continue
		}
		if m.unk == noID {
			continue
		}
		if waits > 0 && !m.fuse {
			add(m.unk, waits)
			waits = 0
		}
		waits += uint32(size)
	}
	if waits > 0 {
		add(m.unk, waits)
	}
}

// spell adds the bytes of a character. With a nil add it only reports whether all of them have tokens.
func (m *Chars) spell(c string, form uint32, add func(id, size uint32)) bool {
	if !m.fall {
		return false
	}
	parts := [3]string{1: c}
	if form&inside != 0 {
		parts[0] = m.prefix
	}
	if form&last != 0 {
		parts[2] = m.suffix
	}
	for _, p := range parts {
		for k := 0; k < len(p); k++ {
			id := m.bytes[p[k]]
			if id == noID {
				return false
			}
			if add != nil {
				add(id, 1)
			}
		}
	}
	return true
}

// Append appends the ids of the word s[i:j] to dst. The text around the word is read only to load keys quickly and does
// not affect the result. An empty word has no ids.
func (m *Chars) Append(dst []uint32, s string, i, j int, st *State) []uint32 {
	if i >= j {
		return dst
	}
	if m.ignore && j-i <= m.maxLen {
		if id, ok := m.vocab.Lookup(s[i:j]); ok {
			return append(dst, id)
		}
	}
	if !st.words.Serves(&m.own) {
		st.words.Bind(&m.own)
	}
	if m.whole {
		return m.part(dst, s, i, j, st)
	}
	for i < j {
		k := m.cuts.next(s, i, j)
		if k == i+1 && s[i] < utf8.RuneSelf {
			if id := m.ascii[s[i]]; id != noID {
				dst = append(dst, id)
				i = k
				continue
			}
		}
		dst = m.part(dst, s, i, k, st)
		i = k
	}
	return dst
}

// AppendEnds is [Chars.Append] that also appends, for each id, where its part of the word ends: bytes from i.
// It begins where the one before ends. As in the reference these are sums of lengths: dropped characters
// have none, and a prefix or suffix spelled in bytes has one for each byte, so that ends can fall short of
// j-i or pass it.
func (m *Chars) AppendEnds(dst []uint32, ends []int, s string, i, j int, st *State) ([]uint32, []int) {
	if i >= j {
		return dst, ends
	}
	if m.ignore && j-i <= m.maxLen {
		if id, ok := m.vocab.Lookup(s[i:j]); ok {
			return append(dst, id), append(ends, j-i)
		}
	}
	if m.whole { // tokens may contain incomplete characters
		return m.mergeEnds(dst, ends, s[i:j], 0, st)
	}
	if !st.words.Serves(&m.own) {
		st.words.Bind(&m.own)
	}
	end := 0
	for i < j {
		k := m.cuts.next(s, i, j)
		start := len(dst)
		dst = m.part(dst, s, i, k, st)
		odd := false
		for _, id := range dst[start:] {
			odd = odd || m.isOdd(id)
		}
		if odd {
			dst, ends = m.mergeEnds(dst[:start], ends, s[i:k], end, st)
			end = ends[len(ends)-1]
		} else {
			for _, id := range dst[start:] {
				end += len(m.vocab.Bytes(id))
				ends = append(ends, end)
			}
		}
		i = k
	}
	return dst, ends
}

// AppendChars appends the ids of s before any merge: those of its characters, with unknown characters as specified by
// the options. Prefix and suffix are added as if s were a word.
func (m *Chars) AppendChars(dst []uint32, s string, st *State) []uint32 {
	m.leaves(s, st, false)
	dst = append(dst, st.leaf...)
	st.trim()
	return dst
}

// part encodes s[i:j], which no merge leaves.
func (m *Chars) part(dst []uint32, s string, i, j int, st *State) []uint32 {
	if j-i > words.MaxLen {
		return m.long(dst, s[i:j], st)
	}
	dst, lo, hi, ok := st.words.Append(dst, s, i, j)
	if !ok {
		start := len(dst)
		dst = m.long(dst, s[i:j], st)
		st.words.Put(lo, hi, dst[start:])
	}
	return dst
}

// long encodes a part without the cache.
func (m *Chars) long(dst []uint32, w string, st *State) []uint32 {
	if len(w) <= m.maxLen {
		if id, ok := m.vocab.Lookup(w); ok && m.self[id>>6]>>(id&63)&1 != 0 {
			return append(dst, id)
		}
	}
	return m.merge(dst, w, st)
}

// merge encodes a part without looking at tables of results.
func (m *Chars) merge(dst []uint32, w string, st *State) []uint32 {
	m.leaves(w, st, false)
	if len(st.leaf) <= maxScan {
		dst = m.mergeScan(dst, st.leaf, st)
	} else {
		m.mergeNodes(st)
		for i := int32(0); i >= 0; i = st.nodes[i].next {
			dst = append(dst, st.nodes[i].id)
		}
	}
	st.trim()
	return dst
}

func (m *Chars) mergeScan(dst, leaf []uint32, st *State) []uint32 {
	r := &st.row
	n := copy(r.id[:], leaf)
	for i := 1; i < n; i++ {
		r.next[i-1] = m.join(r.id[i-1], r.id[i]).at(i - 1)
	}
	return m.scan(dst, r, n)
}

// mergeNodes merges st.leaf, which is not empty. The result is in st.nodes; a node has the index of
// its first leaf.
func (m *Chars) mergeNodes(st *State) {
	nodes, q := st.list(len(st.leaf))
	for i, id := range st.leaf {
		nodes[i] = node{id: id, prev: int32(i - 1), next: int32(i + 1)}
		if i > 0 {
			if r := m.join(st.leaf[i-1], id); r != noMerge {
				q.add(r.rank(), int32(i-1))
			}
		}
	}
	nodes[len(nodes)-1].next = -1
	m.run(nodes, q)
}

// mergeEnds is merge, and also tracks lengths. end is the start of the part.
func (m *Chars) mergeEnds(dst []uint32, ends []int, w string, end int, st *State) ([]uint32, []int) {
	m.leaves(w, st, true)
	if len(st.leaf) == 0 {
		return dst, ends
	}
	m.mergeNodes(st)
	for i := int32(0); i >= 0; {
		n := st.nodes[i]
		dst = append(dst, n.id)
		next := n.next
		if next < 0 {
			next = int32(len(st.leaf))
		}
		for ; i < next; i++ {
			end += int(st.size[i])
		}
		ends = append(ends, end)
		i = n.next
	}
	st.trim()
	return dst, ends
}

func (m *Chars) isOdd(id uint32) bool { return m.odd[id>>6]>>(id&63)&1 != 0 }

// findSelf computes self.
func (m *Chars) findSelf() {
	m.self = make([]uint64, (m.vocab.Len()+63)/64)
	if m.suffix != "" {
		return // the spelling of a word differs from that of its token
	}
	var st State
	var buf []uint32
	for id := range uint32(m.vocab.Len()) {
		if tok := m.vocab.Bytes(id); len(tok) > 0 {
			buf = m.merge(buf[:0], view(tok), &st)
			if len(buf) == 1 && buf[0] == id {
				m.self[id>>6] |= 1 << (id & 63)
			}
		}
	}
}

// Reaches reports whether the encoding of some word may contain id. It may return true if no such word exists.
func (m *Chars) Reaches(id uint32) bool {
	if int64(id) >= int64(m.vocab.Len()) {
		return false
	}
	if m.isOdd(id) || m.made[id>>6]>>(id&63)&1 != 0 {
		return true
	}
	if m.ignore {
		got, ok := m.vocab.Lookup(view(m.vocab.Bytes(id)))
		return ok && got == id
	}
	return false
}
