// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"strconv"
	"sync"
	"unsafe"

	"github.com/weft-go/weft/tokenizers/internal/uncleared"
)

// idPart has bytes of a printed id, of which the first n count.
type idPart struct {
	text [4]byte
	n    int32
}

// groups has the decimal forms of groups of three digits. It fits in the processor's first cache, which a table of all ids does not.
type groups struct {
	high [1 << 10]idPart // the digits before the last three; none of 0
	low  [2 << 10]idPart // the last three digits and a comma; from 1 << 10 on, without leading zeros
}

// printed is made at the first use: many programs print no ids.
var printed = sync.OnceValue(func() *groups {
	var g groups
	set := func(d *idPart, s string) { d.n = int32(copy(d.text[:], s)) }
	for i := range 1000 {
		s := strconv.Itoa(i)
		if i > 0 {
			set(&g.high[i], s)
		}
		set(&g.low[i], ("000" + s)[len(s):]+",")
		set(&g.low[i|1<<10], s+",")
	}
	return &g
})

// most is the largest number of bytes that an id below 1e6 takes with its comma, and beyond the number of bytes that may be written
// after the last one.
const most, beyond = 7, 8

// appendIDs appends each id in decimal and a comma.
func appendIDs(dst []byte, ids []uint32) []byte {
	for {
		if need := len(dst) + most*len(ids) + beyond; need > cap(dst) {
			dst = append(uncleared.Bytes(max(need, len(dst)+len(dst)/4)), dst...)
		}
		at := len(dst)
		size, n := putIDs(dst[at:cap(dst)], ids)
		if dst, ids = dst[:at+size], ids[n:]; len(ids) == 0 {
			return dst
		}
		dst = append(strconv.AppendUint(dst, uint64(ids[0]), 10), ',') // no vocabulary has a million tokens
		ids = ids[1:]
	}
}

// putIDs writes the ids up to the first one of 1e6 or more to dst, which has room for them: most bytes for each, and beyond. It returns the
// number of bytes and of ids. Without checks of the room, and without branches that depend on the ids, it takes half as long.
func putIDs(dst []byte, ids []uint32) (size, n int) {
	g, p, at := printed(), unsafe.Pointer(unsafe.SliceData(dst)), 0
	for i, id := range ids {
		if id >= 1e6 {
			return at, i
		}
		k := id / 1000
		none := (k - 1) >> 31 // 1 if k is 0
		high, low := &g.high[k&(1<<10-1)], &g.low[(id-1000*k|none<<10)&(2<<10-1)]
		*(*[4]byte)(unsafe.Add(p, at)) = high.text
		at += int(high.n)
		*(*[4]byte)(unsafe.Add(p, at)) = low.text
		at += int(low.n)
	}
	return at, len(ids)
}
