// SPDX-License-Identifier: Apache-2.0

// Package seal computes checksums of texts that were passed on, to distinguish a repetition from another text without
// retaining it.
//
// A seal contains the text's length and its CRC-32C. It detects accidental differences, not deliberate ones. With
// hardware support, it processes a few bytes per cycle.
package seal

import "hash/crc32"

// A Seal is the checksum of the text added so far. The zero Seal is the seal of the empty text.
type Seal struct {
	sum  uint32
	n    uint64
	held uint8 // bytes of buf that are not in sum yet, because short pieces are summed together
	buf  [64]byte
	_    [0]func() // prevents comparison with ==: equal texts may be split differently between buf and sum
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

// Len returns the length of the text in bytes.
func (s *Seal) Len() uint64 { return s.n }

// Equal reports whether the texts have the same length and checksum.
func (s *Seal) Equal(o *Seal) bool { return s.n == o.n && s.sumHeld() == o.sumHeld() }
