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

// This file reads the stages around the model. Every component has a struct with all permitted fields. A file with an
// unknown or repeated field is refused.

// part is a component of the file and its position.
type part struct {
	path  string
	span  jsonr.Span
	depth int // number of Sequences around it
}

// Limits of the stages around the model, well above what published files have. They bound the work of a load, which is
// linear in the file for each level of a Sequence and for each normalizer, and the memory for compiled expressions.
const (
	maxNesting       = 16
	maxNormalizers   = 256
	maxPreTokenizers = 64
	maxDecoders      = 64
)

func (p part) null() bool { return string(p.span.Data) == "null" }

func (p part) fail(kind error, format string, args ...any) error {
	return &Error{file: tokenizerFile, field: p.path, Offset: p.span.Offset, reason: clip(fmt.Sprintf(format, args...)), err: kind}
}

// clip shortens a message that quotes a file.
func clip(s string) string {
	const most = 600
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}

func (p part) refuse(format string, args ...any) error {
	return p.fail(ErrUnsupported, format, args...)
}

// distinct fails if an object in p has a key twice. It ignores case, because encoding/json accepts any case and uses
// the last value. Keys in special_tokens are not checked.
func (p part) distinct() error {
	r := jsonr.New(p.span, p.path)
	distinct(r)
	return malformed(r.End())
}

func distinct(r *jsonr.Reader) {
	switch r.Peek() {
	case '{':
		var key []byte
		var seen []string
		for r.Object(); r.Key(&key); {
			if seen = newField(r, seen, string(key)); seen[len(seen)-1] == "special_tokens" {
				r.Skip()
			} else {
				distinct(r)
			}
		}
	case '[':
		for r.Array(); r.Next(); {
			distinct(r)
		}
	default:
		r.Skip()
	}
}

// newField appends key to seen. It fails if seen contains it already.
func newField(r *jsonr.Reader, seen []string, key string) []string {
	key = strings.ToLower(key)
	switch {
	case slices.Contains(seen, key):
		r.Fail("appears twice")
	case len(seen) == maxFields:
		r.Fail("is one of more than %d fields", maxFields)
	}
	return append(seen, key)
}

// maxFields is well above the number of fields of any component.
const maxFields = 32

// kind returns the type field. It only checks the names of p's own fields; fields and list check their values.
func (p part) kind() (string, error) {
	r := jsonr.New(p.span, p.path)
	if r.Peek() != '{' {
		return "", p.fail(ErrFormat, "is no object with a type")
	}
	var key []byte
	var seen []string
	kind, found := "", false
	for r.Object(); r.Key(&key); {
		seen = newField(r, seen, string(key))
		if string(key) == "type" && r.Peek() == '"' {
			kind, found = string(r.String(nil)), true
		} else {
			r.Skip()
		}
	}
	if err := r.End(); err != nil {
		return "", malformed(err)
	}
	if !found {
		return "", p.fail(ErrFormat, "is no object with a type")
	}
	return kind, nil
}

// fields decodes the component into v, which must have all permitted fields.
func (p part) fields(v any) error {
	if err := p.distinct(); err != nil {
		return err
	}
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
	if p.depth == maxNesting {
		return nil, p.fail(ErrLimit, "nested in %d other sequences", maxNesting)
	}
	var out []part
	r := jsonr.New(p.span, p.path)
	var key []byte
	for r.Object(); r.Key(&key); {
		switch string(key) {
		case "type":
			r.Skip()
		case name:
			for r.Array(); r.Next(); {
				at := r.Path()
				out = append(out, part{at, r.Raw(), p.depth + 1})
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

// byteLevel contains the fields of ByteLevel as pre-tokenizer, decoder and post-processor.
type byteLevel struct {
	Type           string
	AddPrefixSpace bool  `json:"add_prefix_space"`
	TrimOffsets    bool  `json:"trim_offsets"` // offsets only
	UseRegex       *bool `json:"use_regex"`    // true if absent
}
