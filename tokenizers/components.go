// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/weft-go/weft/tokenizers/internal/jsonr"
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

// strict is fields for a component without a type.
func (p part) strict(v any) error {
	if err := p.distinct(); err != nil {
		return err
	}
	return p.fields(v)
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

// byteLevel has the fields of ByteLevel as pre-tokenizer, decoder and post-processor.
type byteLevel struct {
	Type           string
	AddPrefixSpace bool  `json:"add_prefix_space"`
	TrimOffsets    bool  `json:"trim_offsets"` // offsets only
	UseRegex       *bool `json:"use_regex"`    // true if absent
}
