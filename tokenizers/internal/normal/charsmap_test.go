// SPDX-License-Identifier: Apache-2.0

package normal_test

import (
	"encoding/binary"
	"maps"
	"slices"
)

// charsmap compiles rules the way SentencePiece lays them out.
func charsmap(rules map[string]string) []byte {
	var texts []byte
	value := map[string]uint32{}
	for _, k := range slices.Sorted(maps.Keys(rules)) {
		value[k] = uint32(len(texts))
		texts = append(append(texts, rules[k]...), 0)
	}
	var trie []uint32
	used := map[uint32]bool{0: true}
	set := func(i, unit uint32) {
		for uint32(len(trie)) <= i|0xFF { // a step may ask for any unit of the block
			trie = append(trie, 0)
		}
		trie[i] = unit
		used[i] = true
	}
	var add func(at, label uint32, prefix string)
	add = func(at, label uint32, prefix string) {
		next := map[byte]bool{}
		for k := range rules {
			if len(k) > len(prefix) && k[:len(prefix)] == prefix {
				next[k[len(prefix)]] = true
			}
		}
		v, leaf := value[prefix]
		free := func(base uint32) bool {
			if base == 0 || used[base] {
				return false
			}
			for c := range next {
				if used[base^uint32(c)] {
					return false
				}
			}
			return true
		}
		base := uint32(1)
		for !free(base) {
			base++
		}
		unit := (at^base)<<10 | label
		if leaf {
			unit |= 1 << 8
			set(base, v|1<<31)
		} else {
			used[base] = true
		}
		set(at, unit)
		keys := slices.Sorted(maps.Keys(next))
		for _, c := range keys {
			used[base^uint32(c)] = true
		}
		for _, c := range keys {
			add(base^uint32(c), uint32(c), prefix+string([]byte{c}))
		}
	}
	add(0, 0, "")
	out := binary.LittleEndian.AppendUint32(nil, uint32(4*len(trie)))
	for _, u := range trie {
		out = binary.LittleEndian.AppendUint32(out, u)
	}
	return append(out, texts...)
}

// smallRules has a rule of each kind: one that removes, adds, keeps the number of characters, takes several bytes or several
// characters, is the beginning of another.
var smallRules = map[string]string{
	"\t": " ", "\r": " ", "\x01": "", "\u00ad": "", "ﬁ": "fi", "½": "1⁄2", "e\u0301": "é", "ab": "X", "Å": "Å", "\u200b": "", "…": "...",
	"か\u3099": "が", "\u0600": "N", "©": "(c)", "क": "k", "\u0301": "", "\u1100\u1161": "가", "\u11a8": "g", "a\u0300\u0301": "2",
}
