// SPDX-License-Identifier: Apache-2.0

package normal

import (
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/nfc"
)

// NFC returns the normalizer of that name: canonical composition with the reference's tables, which are about Unicode 9.
func NFC() Step { return form(nfc.C) }

// NFD returns the normalizer of that name.
func NFD() Step { return form(nfc.D) }

// NFKC returns the normalizer of that name.
func NFKC() Step { return form(nfc.KC) }

// NFKD returns the normalizer of that name.
func NFKD() Step { return form(nfc.KD) }

type form nfc.Form

func (f form) Prefix(s string) int { return nfc.Form(f).Span(s) }

func (f form) Append(dst *Text, src Text, b *Buffer) {
	s := view(src.B)
	a := aligner{src: src}
	for i := 0; i < len(s); {
		n := nfc.Form(f).Span(s[i:])
		if n > 0 {
			dst.copy(src, i, i+n)
			if i += n; i == len(s) {
				return
			}
		}
		chars, n := b.nfc.Next(nfc.Form(f), s[i:])
		if len(chars) == 0 { // not UTF-8
			dst.copy(src, i, i+1)
			i++
			continue
		}
		a.at = i
		for _, c := range chars {
			dst.B = utf8.AppendRune(dst.B, c.R)
			if src.From != nil {
				dst.fill(a.next(c.Change))
			}
		}
		i += n
	}
}
