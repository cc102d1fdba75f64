// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"strings"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/carrier"
	"github.com/weft-go/weft/protocols/internal/jsonw"
	"github.com/weft-go/weft/protocols/internal/seal"
)

// Many clients drop thinking without a signature, so every block gets one: its seal, if the producer gave none. On the
// way back it tells whether the text is still the model's.

// appendSignature appends the producer's signature, or our own if there is none. An encrypted form, which this API has no
// field for, travels in a carrier.
func appendSignature(dst, given []byte, f event.Flags, s *seal.Seal) []byte {
	switch {
	case len(given) == 0:
		return s.Append(dst)
	case f.Has(event.Encrypted):
		return carrier.Append(dst, carrier.Text, string(given), "")
	}
	return append(dst, given...)
}

// CheckSignature reports whether signature was made by this package, and if so whether thinking is the text that it
// was made for. Clients of the messages API must send thinking blocks back unchanged; a prompt built from a changed one
// does not match the cached prefix.
func CheckSignature(signature, thinking string) (ours, intact bool) {
	if !strings.HasPrefix(signature, seal.Prefix) {
		return false, false
	}
	return true, string(seal.Append(nil, []byte(thinking))) == signature
}

// blockSeal returns the seal of a collected block of reasoning.
func blockSeal(b *event.Block) (s seal.Seal) {
	s.Add(jsonw.AppendValid(nil, b.Data))
	return s
}
