// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"encoding/json"

	"github.com/weft-go/weft/tokenizers/internal/jsonr"
	"github.com/weft-go/weft/tokenizers/internal/vocab"
)

func (t *Tokenizer) readPostProcessor(s jsonr.Span) error {
	p := part{path: "post_processor", span: s}
	if err := t.postProcessor(p); err != nil {
		return err
	}
	for _, ids := range [][]uint32{t.before, t.after} {
		for _, id := range ids {
			if id > vocab.MaxID {
				return p.fail(ErrLimit, "adds the id %d, the limit is %d", id, vocab.MaxID)
			}
		}
	}
	return nil
}

func (t *Tokenizer) postProcessor(p part) error {
	if p.null() {
		return nil
	}
	kind, err := p.kind()
	if err != nil {
		return err
	}
	switch kind {
	case "Sequence":
		parts, err := p.list("processors")
		for _, q := range parts {
			if err == nil {
				err = t.postProcessor(q)
			}
		}
		return err
	case "ByteLevel":
		b := byteLevel{AddPrefixSpace: true, TrimOffsets: true}
		if err := p.fields(&b); err != nil {
			return err
		}
		if b.TrimOffsets {
			t.trims = append(t.trims, trimming{b.AddPrefixSpace, t.joined})
		}
		return nil
	}
	// A later frame is around an earlier one.
	before, after := t.before, t.after
	if t.framed && len(before)+len(after) > 0 {
		return p.refuse("post-processor %q after a TemplateProcessing, whose tokens the reference passes on as texts of their own", kind)
	}
	t.before, t.after = nil, nil
	t.framed = kind == "TemplateProcessing"
	switch kind {
	case "RobertaProcessing", "BertProcessing":
		err = t.robertaProcessing(p)
		t.joined = true
	case "TemplateProcessing":
		err = t.templateProcessing(p)
	default:
		err = p.refuse("post-processor %q", kind)
	}
	t.before, t.after = append(t.before, before...), append(after, t.after...)
	if len(t.before)+len(t.after) > maxFrame {
		return p.fail(ErrLimit, "%d ids around a text, the limit is %d", len(t.before)+len(t.after), maxFrame)
	}
	return err
}

// maxFrame is well above the number of tokens that any model adds to a text.
const maxFrame = 1 << 10

func (t *Tokenizer) robertaProcessing(p part) error {
	var v struct {
		Type           string
		Sep, Cls       []json.RawMessage
		TrimOffsets    bool `json:"trim_offsets"`
		AddPrefixSpace bool `json:"add_prefix_space"` // offsets only
	}
	if err := p.fields(&v); err != nil {
		return err
	}
	if v.TrimOffsets {
		t.trims = append(t.trims, trimming{v.AddPrefixSpace, t.joined})
	}
	for _, x := range []struct {
		pair []json.RawMessage
		to   *[]uint32
	}{{v.Cls, &t.before}, {v.Sep, &t.after}} {
		var id uint32
		if len(x.pair) != 2 || json.Unmarshal(x.pair[1], &id) != nil {
			return p.fail(ErrFormat, "cls and sep must be a token and its id")
		}
		*x.to = append(*x.to, id)
	}
	return nil
}

func (t *Tokenizer) templateProcessing(p part) error {
	type piece struct {
		SpecialToken *struct {
			ID     string
			TypeID uint32 `json:"type_id"`
		}
		Sequence *struct {
			ID     string
			TypeID uint32 `json:"type_id"`
		}
	}
	var v struct {
		Type          string
		Single, Pair  []piece
		SpecialTokens map[string]struct {
			ID     string
			IDs    []uint32
			Tokens []string
		} `json:"special_tokens"`

		// The reference ignores these, which are from ByteLevel. Some published files have them.
		AddPrefixSpace json.RawMessage `json:"add_prefix_space"`
		TrimOffsets    json.RawMessage `json:"trim_offsets"`
		UseRegex       json.RawMessage `json:"use_regex"`
	}
	if err := p.fields(&v); err != nil {
		return err
	}
	to := &t.before
	for _, x := range v.Single {
		switch {
		case x.Sequence != nil && x.SpecialToken == nil && x.Sequence.ID == "A" && to == &t.before:
			to = &t.after
		case x.SpecialToken != nil && x.Sequence == nil:
			tok, ok := v.SpecialTokens[x.SpecialToken.ID]
			if !ok {
				return p.fail(ErrFormat, "special token %q is not declared", x.SpecialToken.ID)
			}
			*to = append(*to, tok.IDs...)
		default:
			return p.refuse("a template for one text other than special tokens around A")
		}
	}
	if to == &t.before {
		return p.refuse("a template for one text without A")
	}
	return nil
}
