// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"slices"
	"strconv"
	"sync"
)

// printed is the decimal form of an id and a comma. The last byte is the number of bytes.
type printed [8]byte

// printedIDs returns the decimal forms of ids below 262,144, which are those of all vocabularies of today. It is 2 MB,
// made at the first use: many programs print no ids.
var printedIDs = sync.OnceValue(func() []printed {
	list := make([]printed, 1<<18)
	for i := range list {
		p := &list[i]
		n := len(strconv.AppendUint(p[:0], uint64(i), 10))
		p[n], p[len(p)-1] = ',', byte(n+1)
	}
	return list
})

// appendIDs appends each id in decimal and a comma.
func appendIDs(dst []byte, ids []uint32) []byte {
	const size = len(printed{})
	at, table := len(dst), printedIDs()
	dst = slices.Grow(dst, (size-1)*len(ids)+size)
	dst = dst[:cap(dst)]
	for i, id := range ids {
		if int64(id) < int64(len(table)) {
			p := &table[id]
			*(*printed)(dst[at:]) = *p // beyond the digits, up to the next id's end
			at += int(p[size-1])
			continue
		}
		dst = append(strconv.AppendUint(dst[:at], uint64(id), 10), ',')
		at = len(dst)
		dst = slices.Grow(dst, (size-1)*(len(ids)-i)+size)
		dst = dst[:cap(dst)]
	}
	return dst[:at]
}
