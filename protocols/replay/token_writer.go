// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// TokenWriter creates the token of a text that arrives in pieces. The token does not depend on how the text is split. A
// TokenWriter can be used for several texts in sequence. It is not safe for concurrent use.
//
//	s := signer.NewWriter(false)
//	s.Write(delta) …
//	token = s.AppendToken(token[:0])
//	s.Reset()
type TokenWriter struct {
	c    *Signer
	key  *signingKey // nil for unsigned tokens
	hash hash.Hash   // nil for unsigned tokens
	crc  uint32      // for unsigned tokens: enough to detect accidental changes, and three times as fast
	n    int         // bytes of text

	seal bool
	text []byte // if seal, up to the limit
	over bool   // the text is longer than the limit

	held int // bytes of buf that are not in hash yet, as pieces are short
	buf  [512]byte
	sum  []byte
	want []byte // for a comparison
	got  []byte
}

// NewWriter returns a TokenWriter for an empty text.
//
// If seal is true, it creates sealed tokens and retains the text. If the text is longer than MaxSealed or c is nil, the
// token is signed or unsigned instead. The client then does not have the text, so that Open returns [Absent] later.
func (c *Signer) NewWriter(seal bool) *TokenWriter {
	s := c.newWriter(c.first())
	s.seal = seal && c != nil
	s.start(s.form())
	return s
}

// Write appends p to the text. It never fails and does not retain p.
func (s *TokenWriter) Write(p []byte) (int, error) {
	switch {
	case !s.seal && len(p) <= len(s.buf)-s.held: // a short piece, as in a stream
		s.n += len(p)
		s.held += copy(s.buf[s.held:], p)
	case !s.seal && s.key == nil: // a long piece, without the copies of write
		s.n += len(p)
		s.flush()
		s.crc = crc32.Update(s.crc, castagnoli, p)
	default:
		write(s, p)
	}
	return len(p), nil
}

func write[T []byte | string](s *TokenWriter, p T) {
	if s.seal && !s.over {
		if s.over = len(p) > s.c.maximum-len(s.text); s.over {
			s.text = nil
		} else {
			s.text = append(s.text, p...)
		}
	}
	s.n += len(p)
	for {
		n := copy(s.buf[s.held:], p)
		s.held += n
		if n == len(p) {
			return
		}
		p = p[n:]
		s.flush()
	}
}

// sealed reports whether the token of the text so far is a sealed one.
func (s *TokenWriter) sealed() bool { return s.seal && !s.over }

// AppendToken appends the token of the text so far. More text may be written after it.
func (s *TokenWriter) AppendToken(dst []byte) []byte {
	if s.sealed() {
		if out, ok := s.c.AppendSealed(dst, s.text); ok {
			return out
		}
	}
	return s.appendSigned(dst)
}

// Reset starts a new, empty text.
func (s *TokenWriter) Reset() {
	s.text, s.over = s.text[:0], false
	s.start(s.form())
}

// newWriter returns a TokenWriter with key k, which may be nil.
func (c *Signer) newWriter(k *signingKey) *TokenWriter {
	s := &TokenWriter{c: c, key: k}
	if k != nil {
		s.hash = hmac.New(sha256.New, k.mac)
	}
	return s
}

// borrow returns a TokenWriter from the pool of the key. The caller must return it with giveBack.
func (c *Signer) borrow(k *signingKey) *TokenWriter {
	if k != nil {
		if s, ok := k.signers.Get().(*TokenWriter); ok {
			s.c = c
			return s
		}
	}
	return c.newWriter(k)
}

func (s *TokenWriter) giveBack() {
	if s.key != nil {
		s.c = nil
		s.key.signers.Put(s)
	}
}

// form returns the form of tokens that are not sealed.
func (s *TokenWriter) form() byte {
	if s.key == nil {
		return formUnsigned
	}
	return formSigned
}

// start starts a new text.
func (s *TokenWriter) start(form byte) {
	s.crc, s.held, s.n = 0, 0, 0
	var bound *Signer // unsigned tokens have no context
	if s.key != nil {
		s.hash.Reset()
		if bound = s.c; len(bound.context) > len(s.buf)/2 {
			s.hash.Write(bound.appendBound(nil, form))
			return
		}
	}
	s.held = len(bound.appendBound(s.buf[:0], form))
}

func (s *TokenWriter) flush() {
	if s.key == nil {
		s.crc = crc32.Update(s.crc, castagnoli, s.buf[:s.held])
	} else {
		s.hash.Write(s.buf[:s.held])
	}
	s.held = 0
}

// mac returns the MAC or checksum of the text so far. It is valid until the next call of mac.
func (s *TokenWriter) mac() []byte {
	s.flush()
	if s.key == nil {
		s.sum = binary.BigEndian.AppendUint32(s.sum[:0], s.crc)
	} else {
		s.sum = s.hash.Sum(s.sum[:0])
	}
	return s.sum
}

// appendCode appends the last part of a signed or unsigned token.
func (s *TokenWriter) appendCode(dst []byte) []byte {
	return encoding.AppendEncode(dst, s.mac())
}

func (s *TokenWriter) appendSigned(dst []byte) []byte {
	id := ""
	if s.key != nil {
		id = s.key.id
	}
	return s.appendCode(appendHead(dst, s.form(), id, s.n))
}
