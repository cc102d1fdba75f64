// SPDX-License-Identifier: Apache-2.0

package messagesanswer

import (
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/jsonw"
	"github.com/weft-go/weft/protocols/internal/sigpack"
	"github.com/weft-go/weft/protocols/replay"
)

// Many clients drop thinking without a signature, so every block has one. If the producer gave none, it is a token of
// the Signer: signed if the client gets the text, else sealed, with the text inside.

// signer returns a writer of the tokens of a response.
func (o *Options) signer() *replay.TokenWriter {
	return o.Signer.NewWriter(o.Thinking == ThinkingOmitted)
}

// appendSignature appends the producer's signature, or otherwise the token of own. An encrypted form, for which
// this API has no field, is packed by package sigpack.
func appendSignature(dst, given []byte, f event.Flags, own *replay.TokenWriter) []byte {
	switch {
	case len(given) == 0:
		return own.AppendToken(dst)
	case f.Has(event.Encrypted):
		return sigpack.Append(dst, sigpack.Text, string(given), "")
	}
	return append(dst, given...)
}

// sign returns the signer of a collected block of reasoning: s, or the first one.
func (o *Options) sign(s *replay.TokenWriter, b *event.Block) *replay.TokenWriter {
	if s == nil {
		s = o.signer()
	}
	s.Reset()
	s.Write(jsonw.AppendValid(nil, b.Data))
	return s
}
