// SPDX-License-Identifier: Apache-2.0

// Package seal computes the signatures that encoders give to reasoning when the producer gave none: many clients drop
// reasoning that carries nothing to be sent back.
//
// A seal holds the text's length and its CRC-32C. It is no secret and proves nothing about who wrote the text; it tells
// whether the text is still the same. Cost: a few bytes a cycle where the processor has the instruction.
package seal

import (
	"hash/crc32"
	"strconv"
)

// Prefix begins every seal.
const Prefix = "weft2."

// A Seal is the seal of the text added so far. The zero Seal is that of no text.
type Seal struct {
	sum  uint32
	n    uint64
	held uint8 // bytes of buf that are not in sum yet: short pieces are summed together
	buf  [64]byte
	_    [0]func() // not comparable with ==: the same text may be held and summed in another way
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Add extends the text.
func (s *Seal) Add(text []byte) {
	s.n += uint64(len(text))
	if int(s.held)+len(text) > len(s.buf) {
		s.sum = s.sumHeld()
		s.held = 0
		if len(text) > len(s.buf)/2 {
			s.sum = crc32.Update(s.sum, castagnoli, text)
			return
		}
	}
	s.held += uint8(copy(s.buf[s.held:], text))
}

func (s *Seal) sumHeld() uint32 { return crc32.Update(s.sum, castagnoli, s.buf[:s.held]) }

// Len returns the bytes of the text.
func (s *Seal) Len() uint64 { return s.n }

// Equal reports whether the texts have the same length and sum.
func (s *Seal) Equal(o *Seal) bool { return s.n == o.n && s.sumHeld() == o.sumHeld() }

// Append appends the seal in ASCII.
func (s *Seal) Append(dst []byte) []byte {
	dst = append(dst, Prefix...)
	dst = strconv.AppendUint(dst, s.n, 36)
	dst = append(dst, '.')
	return strconv.AppendUint(dst, uint64(s.sumHeld()), 36)
}

// Append appends the seal of text.
func Append(dst, text []byte) []byte {
	var s Seal
	s.Add(text)
	return s.Append(dst)
}
