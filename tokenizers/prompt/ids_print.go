// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"encoding/binary"
	"slices"
	"strconv"
	"sync"
)

// groups has the decimal forms of groups of three digits, the first one in the lowest byte. It fits in the processor's
// first cache, which a table of all ids does not.
type groups struct {
	// high has the digits before the last three, in up to three bytes, and in the highest byte their number.
	high [1 << 10]uint32
	// low has the last three digits and a comma, in up to four bytes, and in the highest byte their number. From 1 << 10
	// on, it has them without leading zeros.
	low [2 << 10]uint64
}

// printed is made at the first use: many programs print no ids.
var printed = sync.OnceValue(func() *groups {
	var g groups
	for i := range uint64(1000) {
		var short, padded [8]byte
		n := len(strconv.AppendUint(short[:0], i, 10))
		copy(padded[:], "000")
		copy(padded[3-n:], short[:n])
		if i > 0 {
			g.high[i] = binary.LittleEndian.Uint32(short[:]) | uint32(n)<<24
		}
		short[n], padded[3] = ',', ','
		g.low[i] = binary.LittleEndian.Uint64(padded[:]) | 4<<56
		g.low[i|1<<10] = binary.LittleEndian.Uint64(short[:]) | uint64(n+1)<<56
	}
	return &g
})

// appendIDs appends each id in decimal and a comma.
func appendIDs(dst []byte, ids []uint32) []byte {
	const size = 8 // written for each id, of which at most 7 count
	at, g := len(dst), printed()
	dst = slices.Grow(dst, (size-1)*len(ids)+size)
	dst = dst[:cap(dst)]
	for i, id := range ids {
		if id < 1e6 {
			k := id / 1000
			none := (k - 1) >> 31 // 1 if k is 0
			high, low := g.high[k&(1<<10-1)], g.low[(id-1000*k|none<<10)&(2<<10-1)]
			n := high >> 24
			binary.LittleEndian.PutUint64(dst[at:], uint64(high&(1<<24-1))|low<<(8*n&63)&(1<<56-1))
			at += int(n) + int(low>>56)
			continue
		}
		dst = append(strconv.AppendUint(dst[:at], uint64(id), 10), ',')
		at = len(dst)
		dst = slices.Grow(dst, (size-1)*(len(ids)-i)+size)
		dst = dst[:cap(dst)]
	}
	return dst[:at]
}
