// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/bytelevel"
	"github.com/weft-go/weft/tokenizers/internal/jsonr"
	"github.com/weft-go/weft/tokenizers/internal/spm"
	"github.com/weft-go/weft/tokenizers/internal/vocab"
)

// decoder joins the texts of tokens to one text. The reference applies a chain of steps to the list of all tokens. Here
// the steps for single tokens are applied to the vocabulary once, when it is loaded; the remaining rules depend on
// several tokens:
//
//	tokens → start or text → runs of byte tokens → characters stripped at both ends → output
type decoder struct {
	steady bool         // the text is the concatenation of the tokens' texts
	text   *vocab.Table // by id: the decoded text; for added tokens see Tokenizer.plain
	start  *vocab.Table // by id, including added tokens: the text as the first token; nil if it does not differ

	fallback             bool // runs of tokens such as <0xE2> are bytes
	stripChar            string
	stripStart, stripEnd int    // maximum number of stripChar removed
	suffix               string // ends a word in the token's spelling; decoded as a space, or as nothing at the end

	pieces   *spm.Model // of a SentencePiece model: its rules apply instead of each
	denormal *spm.Denormalizer
	closes   bool // a space at the start of a text, which is dropped, ends the start

	each []func(token string, first bool) string // the steps for single tokens
	raw  bool                                    // the token is spelled in byte-level characters
}

// readDecoder reads the chain of steps.
func (t *Tokenizer) readDecoder(s jsonr.Span) error {
	p := part{"decoder", s}
	d := &t.dec
	if p.null() {
		// The reference joins the tokens with spaces.
		d.each = append(d.each, func(token string, first bool) string {
			if first {
				return token
			}
			return " " + token
		})
		return nil
	}
	fused := false
	return d.read(p, &fused, true)
}

func (d *decoder) read(p part, fused *bool, only bool) error {
	kind, err := p.kind()
	if err != nil {
		return err
	}
	late := d.fallback || *fused
	switch kind {
	case "Sequence":
		parts, err := p.list("decoders")
		for _, q := range parts {
			if err == nil {
				err = d.read(q, fused, len(parts) == 1)
			}
		}
		return err
	case "ByteLevel":
		if !only {
			return p.refuse("ByteLevel among other decoders")
		}
		d.raw = true
		return p.fields(&byteLevel{}) // the flags do not affect decoding
	case "Fuse":
		*fused = true
		return p.fields(&struct{ Type string }{})
	case "ByteFallback":
		if late {
			return p.refuse("ByteFallback after Fuse or ByteFallback")
		}
		d.fallback = true
		return p.fields(&struct{ Type string }{})
	case "Strip":
		return d.readStrip(p, *fused)
	}
	if late {
		return p.refuse("decoder %q after ByteFallback or Fuse", kind)
	}
	switch kind {
	case "WordPiece":
		var v struct {
			Type    string
			Prefix  string
			Cleanup bool
		}
		if err := p.fields(&v); err != nil {
			return err
		}
		d.each = append(d.each, func(token string, first bool) string {
			if !first {
				if rest, ok := strings.CutPrefix(token, v.Prefix); ok {
					token = rest
				} else {
					token = " " + token
				}
			}
			if v.Cleanup {
				token = cleanup.Replace(token)
			}
			return token
		})
		return nil
	case "Metaspace":
		m, err := readMetaspace(p)
		if err != nil {
			return err
		}
		d.each = append(d.each, func(token string, first bool) string {
			if first && m.scheme != "never" {
				return strings.ReplaceAll(token, m.replacement, "")
			}
			return strings.ReplaceAll(token, m.replacement, " ")
		})
		return nil
	case "Replace":
		r, err := readReplace(p)
		if err != nil {
			return err
		}
		d.each = append(d.each, func(token string, _ bool) string { return r.apply(token) })
		return nil
	case "BPEDecoder":
		var v struct{ Type, Suffix string }
		if err := p.fields(&v); err != nil {
			return err
		}
		if !only || v.Suffix == "" {
			return p.refuse("BPEDecoder among other decoders or without a suffix")
		}
		d.suffix = v.Suffix
		d.each = append(d.each, func(token string, _ bool) string { return strings.ReplaceAll(token, v.Suffix, " ") })
		return nil
	}
	return p.refuse("decoder %q", kind)
}

// cleanup removes spaces before punctuation, in the reference's order.
var cleanup = chain{
	{" .", "."}, {" ?", "?"}, {" !", "!"}, {" ,", ","}, {" ' ", "'"}, {" n't", "n't"}, {" 'm", "'m"},
	{" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
}

type chain [][2]string

func (c chain) Replace(s string) string {
	for _, r := range c {
		s = strings.ReplaceAll(s, r[0], r[1])
	}
	return s
}

func (d *decoder) readStrip(p part, fused bool) error {
	var v struct {
		Type        string
		Content     string
		Start, Stop int
	}
	if err := p.fields(&v); err != nil {
		return err
	}
	if utf8.RuneCountInString(v.Content) != 1 {
		return p.fail(ErrFormat, "content is not one character")
	}
	if v.Start < 0 || v.Stop < 0 || v.Start > 1<<10 || v.Stop > 1<<10 {
		return p.fail(ErrFormat, "start or stop is out of range")
	}
	if fused {
		if d.stripChar != "" {
			return p.refuse("a second Strip after Fuse")
		}
		d.stripChar, d.stripStart, d.stripEnd = v.Content, v.Start, v.Stop
		return nil
	}
	if d.fallback {
		return p.refuse("Strip between ByteFallback and Fuse")
	}
	// The reference panics on a token that consists only of characters stripped from both ends.
	d.each = append(d.each, func(token string, _ bool) string {
		n := v.Start
		for ; n > 0 && strings.HasPrefix(token, v.Content); n-- {
			token = token[len(v.Content):]
		}
		for n := v.Stop; n > 0 && strings.HasSuffix(token, v.Content); n-- {
			token = token[:len(token)-len(v.Content)]
		}
		return token
	})
	return nil
}

// spelled returns the decoded text of a token.
func (d *decoder) spelled(token string, first bool) string {
	if d.raw {
		if b, ok := bytelevel.Decode(nil, []byte(token)); ok {
			return string(b)
		}
		return token
	}
	for _, f := range d.each {
		token = f(token, first)
	}
	return token
}

// fallbackByte returns the byte that a token such as <0x0A> represents.
func fallbackByte(token string) (byte, bool) {
	if len(token) != 6 || !strings.HasPrefix(token, "<0x") || token[5] != '>' {
		return 0, false
	}
	b, err := strconv.ParseUint(token[3:5], 16, 8)
	return byte(b), err == nil
}

// buildDecoder applies the chain to the vocabulary. The added tokens must have been read.
func (t *Tokenizer) buildDecoder() error {
	d := &t.dec
	d.steady = !d.fallback && d.stripChar == "" && d.suffix == "" && d.pieces == nil
	t.plain = make([][]byte, len(t.added))
	for i := range t.added {
		t.plain[i] = []byte(d.spelled(t.shown[i], false))
	}
	if t.inBytes && d.raw {
		d.text = t.vocab
	} else if d.pieces != nil {
		if err := t.buildPieces(); err != nil {
			return err
		}
	} else if err := t.buildTexts(); err != nil {
		return err
	}
	for id := range t.flags {
		if b := t.decoded(uint32(id)); utf8.Valid(b) {
			t.flags[id] |= flagWhole
		}
	}
	return nil
}

// buildTexts builds the tables of decoded texts.
func (t *Tokenizer) buildTexts() (err error) {
	d := &t.dec
	d.start = nil
	d.text, err = t.texts(false)
	for id := range uint32(len(t.flags)) {
		if t.flags[id]&flagKnown != 0 && d.start == nil && err == nil {
			if token, _ := t.Token(id); d.spelled(token, true) != d.spelled(token, false) {
				d.steady = false
				d.start, err = t.texts(true)
			}
		}
	}
	return err
}

// buildPieces builds the tables of decoded texts for a SentencePiece model.
func (t *Tokenizer) buildPieces() (err error) {
	d := &t.dec
	d.closes = !d.pieces.Normalizer().Strips()
	var b [2]vocab.Builder
	for id := range uint32(len(t.flags)) {
		if _, ok := t.Token(id); !ok {
			continue
		}
		t.flags[id] |= flagKnown
		var text [2]string
		switch added := t.addedToken(id); {
		case added != nil:
			text[0], text[1] = added.Content, added.Content
		case d.pieces.Type(id) == spm.Byte:
			x, _ := fallbackByte(string(t.vocab.Bytes(id)))
			text[0], text[1] = string([]byte{x}), string([]byte{x})
			t.flags[id] |= flagByte
		default:
			text[0], text[1] = d.pieces.Decoded(id, false), d.pieces.Decoded(id, true)
		}
		if int64(id) < int64(t.vocab.Len()) {
			if typ := d.pieces.Type(id); typ == spm.Control || typ == spm.Unknown && text[0] == "" {
				t.flags[id] |= flagAside
			}
		}
		for k := range b {
			if err := b[k].Add(id, []byte(text[k]), false); err != nil {
				return part{"pieces", jsonr.Span{Offset: -1}}.fail(ErrLimit, "%s", err)
			}
		}
	}
	if d.text, err = b[0].Build(); err == nil {
		d.start, err = b[1].Build()
	}
	if err != nil {
		return part{"pieces", jsonr.Span{Offset: -1}}.fail(ErrFormat, "%s", err)
	}
	return nil
}

// texts returns the table of decoded texts, for the first token or for later ones.
func (t *Tokenizer) texts(first bool) (*vocab.Table, error) {
	var b vocab.Builder
	b.Grow(t.vocab.Count()+len(t.added), t.vocab.Count()*6)
	for id := range uint32(len(t.flags)) {
		token, ok := t.Token(id)
		if !ok {
			continue
		}
		t.flags[id] |= flagKnown
		s := t.dec.spelled(token, first)
		if x, ok := fallbackByte(s); ok && t.dec.fallback {
			t.flags[id] |= flagByte
			s = string([]byte{x})
			if i, ok := t.idAt[id]; ok {
				t.plain[i] = []byte{x}
			}
		}
		if err := b.Add(id, []byte(s), false); err != nil {
			return nil, part{"model.vocab", jsonr.Span{Offset: -1}}.fail(ErrLimit, "%s", err)
		}
	}
	table, err := b.Build()
	if err != nil {
		return nil, part{"model.vocab", jsonr.Span{Offset: -1}}.fail(ErrFormat, "%s", err)
	}
	return table, nil
}

// decoded returns the decoded text of id if it is not the first token. The caller must not modify it.
func (t *Tokenizer) decoded(id uint32) []byte {
	if t.flag(id)&flagAdded != 0 {
		return t.plain[t.idAt[id]]
	}
	return t.dec.text.Bytes(id)
}
