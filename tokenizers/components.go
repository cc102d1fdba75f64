// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/weft-go/weft/tokenizers/internal/jsonr"
	"github.com/weft-go/weft/tokenizers/pretok"
)

// This file reads the stages around the model. Every component has a struct with all the fields it may
// have; a field that is not in it, or is there twice, refuses the file.

// part is a component in the file.
type part struct {
	place string
	span  jsonr.Span
}

func (p part) null() bool { return string(p.span.Data) == "null" }

func (p part) fail(kind error, format string, args ...any) error {
	return &Error{File: tokenizerFile, Place: p.place, Offset: p.span.Offset, Reason: fmt.Sprintf(format, args...), Err: kind}
}

func (p part) refuse(format string, args ...any) error {
	return p.fail(ErrUnsupported, format, args...)
}

// distinct fails if an object in p has a key twice. Case does not count: encoding/json takes either spelling
// for a field, and the last one wins. The keys of special_tokens are no fields.
func (p part) distinct() error {
	r := jsonr.New(p.span, p.place)
	distinct(r)
	return malformed(r.End())
}

func distinct(r *jsonr.Reader) {
	switch r.Peek() {
	case '{':
		var key []byte
		var seen []string
		for r.Object(); r.Key(&key); {
			k := strings.ToLower(string(key))
			switch {
			case slices.Contains(seen, k):
				r.Fail("appears twice")
			case len(seen) == maxFields:
				r.Fail("is one of more than %d fields", maxFields)
			case k == "special_tokens":
				r.Skip()
			default:
				distinct(r)
			}
			seen = append(seen, k)
		}
	case '[':
		for r.Array(); r.Next(); {
			distinct(r)
		}
	default:
		r.Skip()
	}
}

// maxFields is far above the number of fields of any component.
const maxFields = 32

// kind returns the type field.
func (p part) kind() (string, error) {
	if err := p.distinct(); err != nil {
		return "", err
	}
	var v struct {
		Type *string `json:"type"`
	}
	if err := json.Unmarshal(p.span.Data, &v); err != nil || v.Type == nil {
		return "", p.fail(ErrFormat, "is no object with a type")
	}
	return *v.Type, nil
}

// fields reads the component into v, which must have all fields.
func (p part) fields(v any) error {
	d := json.NewDecoder(bytes.NewReader(p.span.Data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return p.refuse("field %s", name)
		}
		return p.fail(ErrFormat, "%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// list returns the elements of the array in field name of a Sequence.
func (p part) list(name string) ([]part, error) {
	var out []part
	r := jsonr.New(p.span, p.place)
	var key []byte
	for r.Object(); r.Key(&key); {
		switch string(key) {
		case "type":
			r.Skip()
		case name:
			for r.Array(); r.Next(); {
				at := r.Path()
				out = append(out, part{at, r.Raw()})
			}
		default:
			r.Fail("field %q", key)
			return nil, unsupported(r.Err())
		}
	}
	if err := r.End(); err != nil {
		return nil, malformed(err)
	}
	return out, nil
}

func (t *Tokenizer) readNormalizer(s jsonr.Span) error { return t.normalizer(part{"normalizer", s}) }

func (t *Tokenizer) normalizer(p part) error {
	if p.null() {
		return nil
	}
	kind, err := p.kind()
	if err != nil {
		return err
	}
	switch kind {
	case "NFC":
		t.nfc = true // twice is the same as once
		return p.fields(&struct{ Type string }{})
	case "Sequence":
		parts, err := p.list("normalizers")
		for _, q := range parts {
			if err == nil {
				err = t.normalizer(q)
			}
		}
		return err
	}
	return p.refuse("normalizer %q", kind)
}

// byteLevel has the fields of ByteLevel as pre-tokenizer, decoder and post-processor.
type byteLevel struct {
	Type           string
	AddPrefixSpace bool  `json:"add_prefix_space"`
	TrimOffsets    bool  `json:"trim_offsets"` // offsets only
	UseRegex       *bool `json:"use_regex"`    // true if absent
}

func (t *Tokenizer) readPreTokenizer(s jsonr.Span) error {
	p := part{"pre_tokenizer", s}
	if p.null() {
		return p.refuse("no pre-tokenizer")
	}
	kind, err := p.kind()
	if err != nil {
		return err
	}
	parts := []part{p}
	if kind == "Sequence" {
		if parts, err = p.list("pretokenizers"); err != nil {
			return err
		}
	}
	for i, q := range parts {
		kind, err := q.kind()
		if err != nil {
			return err
		}
		switch kind {
		case "Split":
			err = t.split(q)
		case "ByteLevel":
			if i != len(parts)-1 {
				return q.refuse("steps after ByteLevel")
			}
			var b byteLevel
			if err = q.fields(&b); err == nil && b.AddPrefixSpace {
				err = q.refuse("add_prefix_space")
			}
			if b.UseRegex == nil || *b.UseRegex {
				t.steps = append(t.steps, pretok.GPT2)
			}
			if err == nil && len(t.steps) == 0 {
				err = q.refuse("ByteLevel without any rule that cuts")
			}
			return err
		default:
			err = q.refuse("pre-tokenizer %q", kind)
		}
		if err != nil {
			return err
		}
	}
	return p.refuse("no ByteLevel at the end")
}

func (t *Tokenizer) split(p part) error {
	var v struct {
		Type     string
		Pattern  struct{ Regex, String *string }
		Behavior string
		Invert   bool
	}
	if err := p.fields(&v); err != nil {
		return err
	}
	switch {
	case v.Pattern.Regex == nil || v.Pattern.String != nil:
		return p.refuse("Split on a string")
	case v.Behavior != "Isolated":
		return p.refuse("Split with behavior %q", v.Behavior)
	case v.Invert:
		return p.refuse("Split with invert")
	}
	f, ok := pretok.Lookup(*v.Pattern.Regex)
	if !ok {
		return p.refuse("Split pattern %q", *v.Pattern.Regex)
	}
	t.steps = append(t.steps, f)
	return nil
}

func (t *Tokenizer) readDecoder(s jsonr.Span) error {
	p := part{"decoder", s}
	if p.null() {
		return p.refuse("no decoder")
	}
	kind, err := p.kind()
	if err != nil {
		return err
	}
	if kind != "ByteLevel" {
		return p.refuse("decoder %q", kind)
	}
	return p.fields(&byteLevel{}) // the flags have no influence on decoding
}

func (t *Tokenizer) readPostProcessor(s jsonr.Span) error {
	p := part{"post_processor", s}
	if err := t.postProcessor(p); err != nil {
		return err
	}
	for _, ids := range [][]uint32{t.before, t.after} {
		for _, id := range ids {
			if _, ok := t.Token(id); !ok {
				return p.fail(ErrFormat, "adds the id %d, which no token has", id)
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
		return p.fields(&byteLevel{}) // moves offsets only
	}
	if len(t.before)+len(t.after) > 0 {
		return p.refuse("a second post-processor that adds ids")
	}
	switch kind {
	case "RobertaProcessing", "BertProcessing":
		return t.robertaProcessing(p)
	case "TemplateProcessing":
		return t.templateProcessing(p)
	}
	return p.refuse("post-processor %q", kind)
}

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
