// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// This file contains Signer, then the functions that create and open tokens, then the layout of tokens. TokenWriter is
// in token_writer.go. A Signer is not modified after it was returned.

// Signer creates tokens for the reasoning that is sent to clients, and uses them to verify that the reasoning that
// clients return is unmodified. There are two forms of tokens:
//
//	signed   an HMAC-SHA256 of the text, which the client holds next to it
//	sealed   the text itself, encrypted with AES-256-GCM, for a client that is shown none of it
//
// A token is bound to the exact bytes of the text, to its form, and to the context of the Signer (see [Signer.With]).
// It is not bound to a conversation or a position in one: clients cut, fork and resume conversations, and reasoning
// moves with them. So a client can repeat, move or omit reasoning that the model wrote in this context, but cannot
// change it.
//
// A token is ASCII, of letters, digits, '.', '-' and '_', which signatures of the Messages API and encrypted_content of the
// Responses API both carry:
//
//	weft3.sKEYID0.LENGTH.MAC          signed: id of the key, bytes of the text in base 36, 43 characters
//	weft3.eKEYID0.LENGTH.CIPHERTEXT   sealed: nonce, text and tag in base64
//	weft3.u.LENGTH.DIGEST             unsigned: 6 characters
//
// A token is a function of key, context and text. So a response has the same tokens whenever it is encoded, and cached
// prefixes remain valid. For that reason, the nonce of the sealed form is 96 bits of an HMAC of the text, as in the SIV
// construction of RFC 5297: it repeats only if the text does, and needs no random source. Two tokens reveal whether
// their texts are equal. Seal fewer than 2^32 texts with one key, so that two nonces collide with a probability below
// 2^-32.
//
// A nil *Signer creates unsigned tokens, which contain a checksum that anyone can compute. It detects accidental
// changes, but does not prove the origin of the text. Unsigned tokens are useful because many clients drop reasoning
// without a token.
//
// A Signer is immutable and safe for concurrent use by multiple goroutines.
type Signer struct {
	keys    []*signingKey // the first one creates tokens
	context string
	maximum int
}

// SignerOptions configures a [Signer].
type SignerOptions struct {
	// Old lists keys of earlier tokens, which are still accepted; at most 16. To rotate keys, pass the new key to
	// NewSigner and add the previous one here. Remove it when conversations with its tokens have ended.
	Old [][]byte
	// MaxSealed is the maximum length in bytes of the text in a sealed token, both for creating and opening it. 0 or
	// less means 1 MiB. It is limited to 1 GiB.
	MaxSealed int
}

// KeySize is the minimum length of a key in bytes. Keys must come from a random source; do not use a password.
const KeySize = 32

const (
	maxOldKeys    = 16
	defaultSealed = 1 << 20
	mostSealed    = 1 << 30
	tokenPrefix   = "weft3."
	keyIDSize     = 6
	signedSize    = 43 // of 32 bytes in base64
	unsignedSize  = 6  // of a CRC-32C
	nonceSize     = 12
	tagSize       = 16
	formSigned    = 's'
	formSealed    = 'e'
	formUnsigned  = 'u'
	tokenVersion  = 3
)

// encoding rejects nonzero trailing bits, so that each token has exactly one encoding.
var encoding = base64.RawURLEncoding.Strict()

// signingKey holds the keys derived from one configured key.
type signingKey struct {
	id      string // keyIDSize characters
	mac     []byte
	aead    cipher.AEAD
	signers sync.Pool // of *TokenWriter
}

// NewSigner returns a Signer with a key of at least [KeySize] bytes. All processes that serve the same clients need the
// same key. With a key that one process reads from crypto/rand, tokens are [Unverified] in other processes and after a
// restart. nil options mean the defaults. The Signer does not retain the key slices.
func NewSigner(key []byte, o *SignerOptions) (*Signer, error) {
	if o == nil {
		o = &SignerOptions{}
	}
	c := &Signer{maximum: o.MaxSealed}
	if c.maximum <= 0 {
		c.maximum = defaultSealed
	}
	c.maximum = min(c.maximum, mostSealed)
	if len(o.Old) > maxOldKeys {
		return nil, fmt.Errorf("replay: new signer: %d old keys, want at most %d", len(o.Old), maxOldKeys)
	}
	for _, k := range append([][]byte{key}, o.Old...) {
		derived, err := newSigningKey(k)
		if err != nil {
			return nil, err
		}
		c.keys = append(c.keys, derived)
	}
	return c, nil
}

func newSigningKey(secret []byte) (*signingKey, error) {
	if len(secret) < KeySize {
		return nil, fmt.Errorf("replay: new signer: key has %d bytes, want at least %d", len(secret), KeySize)
	}
	master, err := hkdf.Extract(sha256.New, secret, nil)
	if err != nil {
		return nil, err
	}
	derive := func(use string, n int) []byte {
		out, e := hkdf.Expand(sha256.New, master, "weft reasoning carrier 3 "+use, n)
		if e != nil {
			err = e
		}
		return out
	}
	k := &signingKey{id: encoding.EncodeToString(derive("id", 4)), mac: derive("mac", 32)}
	sealing := derive("aes", 32)
	if err != nil {
		return nil, err
	}
	cb, err := aes.NewCipher(sealing)
	if err != nil {
		return nil, err
	}
	k.aead, err = cipher.NewGCM(cb)
	return k, err
}

// With returns a Signer with the same keys and another context, such as a tenant or a model. Tokens of one context are
// [Forged] in another, so reasoning for one tenant is not accepted from another. With of a nil Signer is nil. Cost: one
// small allocation.
func (c *Signer) With(context string) *Signer {
	if c == nil {
		return nil
	}
	o := *c
	o.context = context
	return &o
}

// Equal reports whether c and o were derived from the same Signer and have the same context: they accept the same tokens.
// Both may be nil.
func (c *Signer) Equal(o *Signer) bool {
	if c == nil || o == nil {
		return c == o
	}
	return slices.Equal(c.keys, o.keys) && c.context == o.context && c.maximum == o.maximum
}

// MaxSealed returns the maximum length in bytes of the text in a sealed token, or 0 for a nil Signer, which cannot
// seal.
func (c *Signer) MaxSealed() int {
	if c == nil {
		return 0
	}
	return c.maximum
}

// Verdict is the result of verifying a token against its reasoning.
type Verdict uint8

// The verdicts.
const (
	// Foreign means that the token is absent or not from this package, such as another server's signature. Nothing is
	// known about the text, which is returned unchanged.
	Foreign Verdict = iota
	// Intact means that the token was created for this text, or contained it. For an unsigned token, which only a nil
	// Signer reports as intact, it means that the checksum matches.
	Intact
	// Unverified means that the token cannot be checked: its key is unknown to this Signer, for example after a restart
	// with a random key; it has no key; or it is for more text than MaxSealed. The text may or may not be unmodified.
	Unverified
	// Absent means that the token is signed but the text is missing, because the client did not receive it or removed
	// it. There is nothing to verify or to replay.
	Absent
	// Forged means that the token does not match the text: one of them was changed, they were swapped, or the token was
	// created in another context.
	Forged
)

var verdictNames = [...]string{"foreign", "intact", "unverified", "absent", "forged"}

// String returns the verdict in lower case.
func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return fmt.Sprintf("verdict(%d)", uint8(v))
}

// AppendSigned appends the signed token of text, or the unsigned token for a nil Signer. text and dst must not overlap.
// Cost: one SHA-256 of the text; normally no allocation if c is not nil and dst has enough capacity.
func (c *Signer) AppendSigned(dst, text []byte) []byte {
	s := c.borrow(c.first())
	s.start(s.form())
	s.Write(text)
	dst = s.appendSigned(dst)
	s.giveBack()
	return dst
}

// AppendSealed appends the sealed token of text, which is 4/3 as long. It returns false, and dst unchanged, if the text
// is longer than MaxSealed or the Signer is nil. text and dst must not overlap. Cost: one SHA-256 and one AES-GCM of
// the text, one allocation of its size.
func (c *Signer) AppendSealed(dst, text []byte) ([]byte, bool) {
	if c == nil || len(text) > c.maximum {
		return dst, false
	}
	k := c.first()
	s := c.borrow(k)
	s.start(formSealed)
	s.Write(text)
	box := make([]byte, nonceSize, nonceSize+len(text)+tagSize)
	copy(box, s.mac())
	s.giveBack()
	box = k.aead.Seal(box, box, text, c.appendBound(nil, formSealed))
	return encoding.AppendEncode(appendHead(dst, formSealed, k.id, len(text)), box), true
}

// Open verifies a token and returns the reasoning: text for a signed or unsigned token, or the text in a sealed token,
// regardless of text. The string is empty for [Absent] and [Forged]. Any input is safe. Cost: the same as for creating
// the token; normally no allocation for a signed token.
func (c *Signer) Open(token, text string) (string, Verdict) {
	rest, ours := strings.CutPrefix(token, tokenPrefix)
	if !ours {
		return text, Foreign
	}
	t, ok := parseToken(rest)
	switch {
	case !ok:
		return "", Forged
	case t.form == formSealed:
		return c.openSealed(&t, text)
	case text == "" && t.size > 0:
		return "", Absent
	case t.size != uint64(len(text)):
		return "", Forged
	case t.form == formUnsigned:
		if !c.signs(nil, &t, text) {
			return "", Forged
		}
		if c != nil {
			return text, Unverified
		}
		return text, Intact
	}
	v := Unverified
	for k := range c.known(t.id) {
		if c.signs(k, &t, text) {
			return text, Intact
		}
		v = Forged
	}
	if v == Forged {
		text = ""
	}
	return text, v
}

// signs reports whether t is the token of text with the given key, or the unsigned token if k is nil.
func (c *Signer) signs(k *signingKey, t *token, text string) bool {
	s := c.borrow(k)
	s.start(s.form())
	write(s, text)
	s.want = s.appendCode(s.want[:0])
	s.got = append(s.got[:0], t.payload...)
	same := subtle.ConstantTimeCompare(s.want, s.got) == 1
	s.giveBack()
	return same
}

func (c *Signer) openSealed(t *token, text string) (string, Verdict) {
	if t.size > mostSealed || encoding.EncodedLen(nonceSize+int(t.size)+tagSize) != len(t.payload) {
		return "", Forged
	}
	v := Unverified
	if int(t.size) > c.MaxSealed() {
		return text, v
	}
	for k := range c.known(t.id) {
		box, err := encoding.DecodeString(t.payload)
		if err != nil || len(box) != nonceSize+int(t.size)+tagSize {
			return "", Forged
		}
		original, err := k.aead.Open(box[nonceSize:nonceSize], box[:nonceSize], box[nonceSize:], c.appendBound(nil, formSealed))
		if err == nil {
			return string(original), Intact
		}
		v = Forged
	}
	if v == Forged {
		text = ""
	}
	return text, v
}

// known yields the keys with an ID. IDs are short, so two keys may have the same one.
func (c *Signer) known(id string) iter.Seq[*signingKey] {
	return func(yield func(*signingKey) bool) {
		if c == nil {
			return
		}
		for _, k := range c.keys {
			if k.id == id && !yield(k) {
				return
			}
		}
	}
}

// first returns the key that creates tokens, or nil.
func (c *Signer) first() *signingKey {
	if c == nil {
		return nil
	}
	return c.keys[0]
}

// appendBound appends the data that precedes the text in every MAC. All its parts have a fixed length or are preceded
// by their length.
func (c *Signer) appendBound(dst []byte, form byte) []byte {
	dst = append(dst, tokenVersion, form)
	if c == nil {
		return binary.BigEndian.AppendUint64(dst, 0)
	}
	return append(binary.BigEndian.AppendUint64(dst, uint64(len(c.context))), c.context...)
}

// token is a parsed token.
type token struct {
	form    byte
	id      string
	size    uint64
	payload string
}

// parseToken parses the part of a token after the prefix. It accepts only one encoding of each token.
func parseToken(s string) (t token, ok bool) {
	head, s, ok := strings.Cut(s, ".")
	size, payload, more := strings.Cut(s, ".")
	if !ok || !more || head == "" || len(size) > 13 {
		return t, false
	}
	t = token{form: head[0], id: head[1:], payload: payload}
	switch t.form {
	case formUnsigned:
		ok = t.id == "" && len(payload) == unsignedSize
	case formSigned:
		ok = len(t.id) == keyIDSize && len(payload) == signedSize
	case formSealed:
		ok = len(t.id) == keyIDSize
	default:
		ok = false
	}
	n, err := strconv.ParseUint(size, 36, 63)
	if t.size = n; !ok || err != nil {
		return t, false
	}
	var again [16]byte
	return t, string(strconv.AppendUint(again[:0], n, 36)) == size
}

// appendHead appends the part of a token before its payload.
func appendHead(dst []byte, form byte, id string, size int) []byte {
	dst = append(append(dst, tokenPrefix...), form)
	dst = append(append(dst, id...), '.')
	return append(strconv.AppendUint(dst, uint64(size), 36), '.')
}
