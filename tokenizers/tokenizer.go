// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"slices"

	"github.com/weft-go/weft/tokenizers/bpe"
	"github.com/weft-go/weft/tokenizers/internal/bytelevel"
	"github.com/weft-go/weft/tokenizers/internal/normal"
	"github.com/weft-go/weft/tokenizers/pretok"
	"github.com/weft-go/weft/tokenizers/vocab"
)

// Tokenizer converts between text and token ids. It is immutable and safe for concurrent use.
// Make one with [Load] or [LoadFS].
type Tokenizer struct {
	// Text to ids, in the order of the stages.
	raw     *matcher      // added tokens looked for before the normalizer, nil if there are none
	norm    []normal.Step // the normalizer
	normal  *matcher      // added tokens looked for after it
	steps   []step        // the pre-tokenizer
	origins bool          // one of them asks where its text comes from, and that is not where it stands
	cuts    []pretok.Func // the same, if it only cuts and the model has the bytes; else nil
	model   model
	byteBPE *bpe.Model // model, if it is one of bytes, or does the same for texts without gaps
	gaps    *gaps
	before  []uint32 // the frame
	after   []uint32
	trunc   Truncation
	pad     Padding
	trims   []trimming // what happens to offsets

	// Ids to text.
	dec   decoder
	plain [][]byte // what added[i] decodes to when it is not the first

	vocab   *vocab.Table
	inBytes bool     // vocab holds the bytes of the text, not the spelling of the file
	spell   spelling // what is in the file and not in bytes
	mapped  int      // which of steps spells bytes as characters, -1 if none
	unk     int64    // the id of what the model does not know, -1 if none

	added   []AddedToken // in id order
	addedAt map[string]int32
	idAt    map[uint32]int32
	flags   []uint8  // by id, len(flags) == VocabSize()
	shown   []string // added[i].Content, normalized where the token is
	// The model can make a special token of ordinary text; such ids are replaced in untrusted text.
	reachable bool

	config Config
	pool   pool
}

// Bits of Tokenizer.flags.
const (
	flagAdded  = 1 << iota
	flagHidden // left out with skipSpecial
	flagWhole  // decodes to whole characters
	flagByte   // decodes to one byte of a run that is text as a whole or not at all
	flagKnown  // a token; not set if decoding does not ask
	flagForged // a special token that the model may make of ordinary text
)

// spelling holds the few vocabulary entries that are not spelled in byte-level characters. Merges never
// make them.
type spelling struct {
	ids  map[string]uint32
	text map[uint32]string
}

// VocabSize returns the number of ids: one more than the largest.
func (t *Tokenizer) VocabSize() int { return len(t.flags) }

// TokenID returns the id of a token by its spelling in the file: added tokens as they are, the others in
// byte-level characters ("Ġthe" is the word " the").
func (t *Tokenizer) TokenID(token string) (uint32, bool) {
	if i, ok := t.addedAt[token]; ok {
		return t.added[i].ID, true
	}
	return t.modelID(token)
}

// modelID is TokenID for the model's own vocabulary.
func (t *Tokenizer) modelID(token string) (uint32, bool) {
	if id, ok := t.spell.ids[token]; ok {
		return id, true
	}
	if !t.inBytes {
		return t.vocab.Lookup(token)
	}
	var buf [64]byte
	if b, ok := bytelevel.Decode(buf[:0], []byte(token)); ok {
		return t.vocab.Lookup(string(b))
	}
	return 0, false
}

// Token returns the spelling of id, the counterpart of [Tokenizer.TokenID]. That of a normalized added token
// is normalized, as in the reference.
func (t *Tokenizer) Token(id uint32) (string, bool) {
	if t.addedToken(id) != nil {
		return t.shown[t.idAt[id]], true
	}
	if s, ok := t.spell.text[id]; ok {
		return s, true
	}
	b := t.vocab.Bytes(id)
	if len(b) == 0 {
		return "", false
	}
	if !t.inBytes {
		return string(b), true
	}
	return string(bytelevel.Encode(nil, b)), true
}

// TokenBytes appends the bytes that id decodes to, which may be part of a character, to dst. For an unused
// id it appends nothing.
func (t *Tokenizer) TokenBytes(dst []byte, id uint32) []byte { return append(dst, t.decoded(id)...) }

// AddedTokens returns the added tokens in id order.
func (t *Tokenizer) AddedTokens() []AddedToken { return slices.Clone(t.added) }

// IsSpecial reports whether id is a special added token.
func (t *Tokenizer) IsSpecial(id uint32) bool {
	a := t.addedToken(id)
	return a != nil && a.Special
}

// EOS returns the ids that end a generation: those of generation_config.json if that file is there, else
// the eos_token of tokenizer_config.json, else none.
func (t *Tokenizer) EOS() []uint32 { return slices.Clone(t.config.EOS) }

// Config returns what the files beside tokenizer.json say.
func (t *Tokenizer) Config() Config {
	c := t.config
	c.EOS = slices.Clone(c.EOS)
	return c
}

// flag returns the flags of id, 0 for one that is not used.
func (t *Tokenizer) flag(id uint32) uint8 {
	if uint64(id) < uint64(len(t.flags)) {
		return t.flags[id]
	}
	return 0
}

func (t *Tokenizer) addedToken(id uint32) *AddedToken {
	if t.flag(id)&flagAdded != 0 {
		return &t.added[t.idAt[id]]
	}
	return nil
}
