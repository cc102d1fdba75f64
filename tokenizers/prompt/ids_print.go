// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"slices"
	"strconv"
	"sync"
)

// number is the decimal form of a number below 10,000.
type number struct {
	padded [4]byte // with leading zeros
	digits [4]byte // without
	size   uint8   // of digits, in bytes
}

// numbers returns the numbers below 10,000. It is 90 KB, made at the first use: many programs print no ids.
var numbers = sync.OnceValue(func() *[10_000]number {
	list := new([10_000]number)
	for i := range list {
		n := &list[i]
		n.padded = [4]byte{byte('0' + i/1000), byte('0' + i/100%10), byte('0' + i/10%10), byte('0' + i%10)}
		n.size = uint8(copy(n.digits[:], strconv.Itoa(i)))
	}
	return list
})

// appendIDs appends ids as a JSON list.
func appendIDs(dst []byte, ids []uint32) []byte {
	if len(ids) == 0 {
		return append(dst, "[]"...)
	}
	const most = len("4294967295,")
	width := 1 + len(strconv.FormatUint(uint64(slices.Max(ids)), 10))
	at := len(dst) + 1
	dst = append(slices.Grow(dst, width*len(ids)+most+2), '[')
	buf, table := dst[:cap(dst)], numbers()
	for _, id := range ids {
		b := buf[at : at+most]
		switch high := id / 10_000; {
		case high == 0:
			n := &table[id]
			*(*[4]byte)(b) = n.digits
			at += int(n.size)
		case high < 10_000:
			n := &table[high]
			*(*[4]byte)(b) = n.digits
			*(*[4]byte)(b[n.size:]) = table[id%10_000].padded
			at += int(n.size) + 4
		default:
			at += len(strconv.AppendUint(b[:0], uint64(id), 10))
		}
		buf[at] = ','
		at++
	}
	buf[at-1] = ']' // instead of the last comma
	return buf[:at]
}
