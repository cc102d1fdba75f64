// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"slices"
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
	distinct             bool   // a token is omitted after one with the same spelling (CTC)

	// late contains the steps for single tokens that follow ByteFallback, which apply to runs of byte tokens too.
	late []func(token string, first bool) string
	// whole contains the steps that apply to the text of all tokens. It is not known before the last token.
	whole []func(text string) string

	pieces   *spm.Model // of a SentencePiece model: its rules apply instead of each
	denormal *spm.Denormalizer
	closes   bool // a space at the start of a text, which is dropped, ends the start

	each  []func(token string, first bool) string // the steps for single tokens
	grows []growth                                // of Replace
	raw   bool                                    // the token is spelled in byte-level characters
}

// readDecoder reads the chain of steps.
func (t *Tokenizer) readDecoder(s jsonr.Span) error {
	p := part{path: "decoder", span: s}
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
	if err := d.read(p, &fused, true); err != nil {
		return err
	}
	if err := p.checkGrowth(d.grows); err != nil {
		return err
	}
	if len(d.whole) > 0 && d.stripChar != "" {
		f := strip(d.stripChar, d.stripStart, d.stripEnd)
		d.whole = slices.Insert(d.whole, 0, func(text string) string { return f(text, true) })
		d.stripChar, d.stripStart, d.stripEnd = "", 0, 0
	}
	return nil
}

// read appends the steps of a decoder. only specifies that it is the only one.
func (d *decoder) read(p part, fused *bool, only bool) error {
	kind, err := p.kind()
	if err != nil {
		return err
	}
	if len(d.each)+len(d.late)+len(d.whole) > maxDecoders {
		return p.fail(ErrLimit, "more than %d decoders", maxDecoders)
	}
	// add adds a step for single tokens. After Fuse and ByteLevel there is one token, the first.
	add := func(f func(token string, first bool) string) {
		switch {
		case *fused:
			d.whole = append(d.whole, func(text string) string { return f(text, true) })
		case d.fallback:
			d.late = append(d.late, f)
		default:
			d.each = append(d.each, f)
		}
	}
	switch kind {
	case "Sequence":
		parts, err := p.list("decoders")
		for _, q := range parts {
			if err == nil {
				err = d.read(q, fused, only && len(parts) == 1)
			}
		}
		return err
	case "ByteLevel":
		if len(d.each) > 0 || d.fallback || d.suffix != "" || d.distinct || *fused {
			return p.refuse("ByteLevel after another decoder")
		}
		d.raw, *fused = true, true
		return p.fields(&byteLevel{}) // the flags do not affect decoding
	case "Fuse":
		*fused = true
		return p.fields(&struct{ Type string }{})
	case "ByteFallback":
		if d.fallback || *fused {
			return p.refuse("ByteFallback after Fuse, ByteLevel or ByteFallback")
		}
		d.fallback = true
		return p.fields(&struct{ Type string }{})
	case "Strip":
		f, err := d.readStrip(p, *fused && !d.raw && len(d.whole) == 0)
		if err == nil && f != nil {
			add(f)
		}
		return err
	case "WordPiece":
		v := struct {
			Type    string
			Prefix  string
			Cleanup bool
		}{}
		if err := p.fields(&v); err != nil {
			return err
		}
		add(func(token string, first bool) string {
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
		add(func(token string, first bool) string {
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
		d.grows = append(d.grows, r.growth())
		add(func(token string, _ bool) string { return r.apply(token) })
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
	case "CTC":
		v := struct {
			Type      string
			Pad       string `json:"pad_token"`
			Delimiter string `json:"word_delimiter_token"`
			Cleanup   bool
		}{}
		if err := p.fields(&v); err != nil {
			return err
		}
		if !only || v.Pad == "" || v.Delimiter == "" {
			return p.refuse("CTC among other decoders or without its tokens")
		}
		d.distinct = true
		d.each = append(d.each, func(token string, _ bool) string {
			token = strings.ReplaceAll(token, v.Pad, "")
			if v.Cleanup {
				token = strings.ReplaceAll(cleanup.Replace(token), v.Delimiter, " ")
			}
			return token
		})
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

// readStrip returns the step of a Strip for single tokens. If fused is set, it is for the text of all of them, which need
// not be complete, and the result is nil.
func (d *decoder) readStrip(p part, fused bool) (func(token string, first bool) string, error) {
	var v struct {
		Type        string
		Content     string
		Start, Stop int
	}
	if err := p.fields(&v); err != nil {
		return nil, err
	}
	if utf8.RuneCountInString(v.Content) != 1 {
		return nil, p.fail(ErrFormat, "content is not one character")
	}
	if v.Start < 0 || v.Stop < 0 || v.Start > 1<<10 || v.Stop > 1<<10 {
		return nil, p.fail(ErrFormat, "start or stop is out of range")
	}
	if fused && d.stripChar == "" {
		d.stripChar, d.stripStart, d.stripEnd = v.Content, v.Start, v.Stop
		return nil, nil
	}
	return strip(v.Content, v.Start, v.Stop), nil
}

// strip returns the step that removes up to start and stop times a character at the ends of a token. The reference
// panics on a token that consists only of characters stripped from both ends.
func strip(content string, start, stop int) func(token string, first bool) string {
	return func(token string, _ bool) string {
		for n := start; n > 0 && strings.HasPrefix(token, content); n-- {
			token = token[len(content):]
		}
		for n := stop; n > 0 && strings.HasSuffix(token, content); n-- {
			token = token[:len(token)-len(content)]
		}
		return token
	}
}

// spelled returns the decoded text of a token, except for the steps that follow ByteFallback.
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

// joined applies the steps that follow ByteFallback.
func (d *decoder) joined(token string, first bool) string {
	for _, f := range d.late {
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
	d.steady = !d.fallback && d.stripChar == "" && d.suffix == "" && d.pieces == nil && !d.distinct && len(d.whole) == 0
	t.plain = make([][]byte, len(t.added))
	for i := range t.added {
		t.plain[i] = []byte(d.joined(d.spelled(t.shown[i], false), false))
	}
	if t.inBytes && d.raw && d.steady {
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
			if token, _ := t.Token(id); d.joined(d.spelled(token, true), true) != d.joined(d.spelled(token, false), false) {
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
				return part{path: "pieces", span: jsonr.Span{Offset: -1}}.fail(ErrLimit, "%s", err)
			}
		}
	}
	if d.text, err = b[0].Build(); err == nil {
		d.start, err = b[1].Build()
	}
	if err != nil {
		return part{path: "pieces", span: jsonr.Span{Offset: -1}}.fail(ErrFormat, "%s", err)
	}
	return nil
}

// maxDecoded is the number of bytes that the decoded texts of a vocabulary may have beyond a multiple of their spelling.
const maxDecoded = 16 << 20

// texts returns the table of decoded texts, for the first token or for later ones.
func (t *Tokenizer) texts(first bool) (*vocab.Table, error) {
	var b vocab.Builder
	b.Grow(t.vocab.Count()+len(t.added), t.vocab.Count()*6)
	spelled, decoded := 0, 0 // bytes
	for id := range uint32(len(t.flags)) {
		token, ok := t.Token(id)
		if !ok {
			continue
		}
		t.flags[id] |= flagKnown
		s := t.dec.spelled(token, first)
		x, isByte := fallbackByte(s)
		if isByte = isByte && t.dec.fallback; t.dec.fallback {
			if y, ok := fallbackByte(t.dec.spelled(token, !first)); ok != isByte || x != y {
				return nil, part{path: "decoder", span: jsonr.Span{Offset: -1}}.fail(ErrUnsupported, "token %q is a byte only at the start or only after it", token)
			}
		}
		if isByte {
			t.flags[id] |= flagByte
			s = string([]byte{x})
			if i, ok := t.idAt[id]; ok {
				t.plain[i] = []byte{x}
			}
		} else {
			s = t.dec.joined(s, first)
		}
		spelled, decoded = spelled+len(token)+1, decoded+len(s)
		if decoded > maxDecoded+4*spelled {
			return nil, part{path: "decoder", span: jsonr.Span{Offset: -1}}.fail(ErrLimit, "lengthens the vocabulary to more than %d bytes", maxDecoded+4*spelled)
		}
		if err := b.Add(id, []byte(s), false); err != nil {
			return nil, part{path: "model.vocab", span: jsonr.Span{Offset: -1}}.fail(ErrLimit, "%s", err)
		}
	}
	table, err := b.Build()
	if err != nil {
		return nil, part{path: "model.vocab", span: jsonr.Span{Offset: -1}}.fail(ErrFormat, "%s", err)
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
