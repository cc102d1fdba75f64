// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"slices"

	"github.com/weft-go/weft/tokenizers/internal/bpe"
	"github.com/weft-go/weft/tokenizers/internal/bytelevel"
	"github.com/weft-go/weft/tokenizers/internal/normal"
	"github.com/weft-go/weft/tokenizers/internal/pretok"
	"github.com/weft-go/weft/tokenizers/internal/vocab"
)

// Tokenizer converts between text and token ids. It is immutable and safe for concurrent use by multiple goroutines.
// Create one with [Load].
type Tokenizer struct {
	// Text to ids, in the order of the stages.
	raw     *matcher          // added tokens matched before the normalizer; may be nil
	norm    []normal.Step     // the normalizer
	inserts bool              // it may insert text before the first character
	normal  *matcher          // added tokens matched after it
	steps   []step            // the pre-tokenizer
	origins bool              // a step depends on the origin of its text, which differs from its position
	cuts    []*pretok.Scanner // the same steps if they only cut and the model works on bytes; otherwise nil
	model   model
	byteBPE *bpe.Model // model, if it is one of bytes, or does the same for texts without gaps
	gaps    *gaps
	before  []uint32 // the frame
	after   []uint32
	trunc   Truncation
	stride  int // overlap of texts that the file's truncation cuts off
	pad     Padding
	trims   []trimming // trimming of offsets
	framed  bool       // the last processor is a TemplateProcessing
	joined  bool       // a processor joined special tokens and the text, which a TemplateProcessing does not

	// Ids to text.
	dec   decoder
	plain [][]byte // decoded text of added[i] if it is not the first token

	vocab   *vocab.Table
	inBytes bool     // vocab holds the bytes of the text, not the spelling of the file
	spell   spelling // entries that are not spelled in bytes
	mapped  int      // which of steps spells bytes as characters, -1 if none
	unk     int64    // id of unknown text, or -1
	unkText bool     // a token with that id is spelled as the text in the reference, as in Unigram

	added   []AddedToken // in id order
	addedAt map[string]int32
	idAt    map[uint32]int32
	flags   []uint8  // by id, len(flags) == VocabSize()
	shown   []string // added[i].Content, normalized where the token is or was
	// The model can make a special token of ordinary text; such ids are replaced in untrusted text.
	reachable bool
	standIn   []uint32 // what untrusted text yields for a special token of one character

	config   config
	eos      []uint32
	splitter func() (*Splitter, error)
	pool     pool
}

// Bits of Tokenizer.flags.
const (
	flagAdded  = 1 << iota
	flagHidden // left out with skipSpecial
	flagWhole  // decodes to whole characters
	flagByte   // decodes to one byte of a run that is text as a whole or not at all
	flagKnown  // a token; not set if decoding does not ask
	flagForged // a special token that the model may make of ordinary text
	flagAside  // a control piece of a SentencePiece model: what follows it is still the start of the text
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

// Token returns the spelling of id, the counterpart of [Tokenizer.TokenID]. The spelling of a normalized added token is
// normalized, as in the reference.
func (t *Tokenizer) Token(id uint32) (string, bool) {
	if t.addedToken(id) != nil {
		return t.shown[t.idAt[id]], true
	}
	return t.modelToken(id)
}

// modelToken is Token for the model's own vocabulary.
func (t *Tokenizer) modelToken(id uint32) (string, bool) {
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

// AppendToken appends the bytes of id, which may be part of a character, to dst. For an unused id it appends nothing.
func (t *Tokenizer) AppendToken(dst []byte, id uint32) []byte { return append(dst, t.decoded(id)...) }

// AddedTokens returns the added tokens in id order.
func (t *Tokenizer) AddedTokens() []AddedToken { return slices.Clone(t.added) }

// IsSpecial reports whether id is a special added token.
func (t *Tokenizer) IsSpecial(id uint32) bool {
	a := t.addedToken(id)
	return a != nil && a.Special
}

// EOS returns the IDs that end a generation: the eos_token_id of generation_config.json if present, otherwise the
// eos_token of tokenizer_config.json, or nil.
func (t *Tokenizer) EOS() []uint32 { return slices.Clone(t.eos) }

// NamedToken returns the text of the token that the files name bos_token, eos_token or pad_token. It is empty if they do
// not, or for another name.
func (t *Tokenizer) NamedToken(name string) string {
	switch name {
	case "bos_token":
		return t.config.bos
	case "eos_token":
		return t.config.eos
	case "pad_token":
		return t.config.pad
	}
	return ""
}

// MaxLength returns model_max_length of tokenizer_config.json in tokens; 0 if it is not specified or not an integer.
func (t *Tokenizer) MaxLength() int64 { return t.config.maxLength }

// flag returns the flags of id, or 0 if id is not used.
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
