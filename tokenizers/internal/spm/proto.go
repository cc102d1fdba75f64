// SPDX-License-Identifier: Apache-2.0

package spm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/vocab"
)

// Limits of a file. The longest pieces of published models have less than 100 bytes.
const (
	MaxPiece = 4096 // bytes
	maxRule  = 1024 // bytes of the text of a normalizer's rule, of which the rest is not examined
	maxTo    = 256  // bytes of the replacement of a rule, and of the text for unknown pieces
)

// Conditions that an [Error] wraps.
var (
	ErrLimit       = errors.New("limit exceeded")
	ErrUnsupported = errors.New("unsupported")
)

// Error reports why a model could not be read.
type Error struct {
	Field  string // path in the file, such as pieces[3].piece
	Offset int64  // bytes from the start of the file, or -1
	Reason string
	Err    error // ErrLimit, ErrUnsupported or nil
}

// Error returns field, reason and offset.
func (e *Error) Error() string {
	return fmt.Sprintf("spm: %s: %s (offset %d)", e.Field, e.Reason, e.Offset)
}

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }

// Type is the type of a piece.
type Type uint8

// The types, with their values in files.
const (
	Normal  Type = 1
	Unknown Type = 2
	Control Type = 3
	User    Type = 4
	Unused  Type = 5
	Byte    Type = 6
)

// Kind is the type of a model, with its value in files.
type Kind uint8

const (
	kindUnigram Kind = 1
	kindBPE     Kind = 2
	kindWord    Kind = 3
	kindChar    Kind = 4
)

// file is the content of a model file.
type file struct {
	texts  []string // of the pieces
	scores []float32
	types  []Type
	at     []int64 // offset of each piece

	kind         Kind
	byteFallback bool
	suffix       bool // treat_whitespace_as_suffix
	unkSurface   string
	named        [3]string // bos_piece, eos_piece, pad_piece
	ids          [3]int64  // bos_id, eos_id, pad_id

	normal, denormal rules
}

// rules is a normalizer_spec.
type rules struct {
	charsmap              []byte
	prefix, strip, escape bool // add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces
	at                    int64
}

// message reads the fields of a protocol buffer.
type message struct {
	data []byte
	base int64 // offset of data in the file
	at   int
	path string

	field uint64
	wire  byte
	num   uint64 // value of a varint or fixed field
	bytes []byte // value of a length-delimited field
	start int64  // offset of the value
	err   *Error
}

func (m *message) fail(format string, args ...any) bool {
	if m.err == nil {
		m.err = &Error{Field: m.path, Offset: m.base + int64(m.at), Reason: fmt.Sprintf(format, args...)}
	}
	return false
}

// next reads the next field and reports whether there is one.
func (m *message) next() bool {
	if m.err != nil || m.at == len(m.data) {
		return false
	}
	key, ok := m.varint()
	if !ok {
		return m.fail("ends inside a field")
	}
	m.field, m.wire = key>>3, byte(key&7)
	m.start = m.base + int64(m.at)
	if m.field == 0 {
		return m.fail("has a field 0; this is no SentencePiece model")
	}
	switch m.wire {
	case 0:
		if m.num, ok = m.varint(); !ok {
			return m.fail("ends inside a field")
		}
	case 1, 5:
		n := 8
		if m.wire == 5 {
			n = 4
		}
		if len(m.data)-m.at < n {
			return m.fail("ends inside a field")
		}
		var b [8]byte
		copy(b[:], m.data[m.at:m.at+n])
		m.num = binary.LittleEndian.Uint64(b[:])
		m.at += n
	case 2:
		n, ok := m.varint()
		if !ok || n > uint64(len(m.data)-m.at) {
			return m.fail("ends inside a field")
		}
		m.start = m.base + int64(m.at)
		m.bytes = m.data[m.at : m.at+int(n)]
		m.at += int(n)
	default:
		return m.fail("has a field of wire type %d; this is no SentencePiece model", m.wire)
	}
	return true
}

func (m *message) varint() (uint64, bool) {
	v, n := binary.Uvarint(m.data[m.at:])
	if n <= 0 {
		return 0, false
	}
	m.at += n
	return v, true
}

// want reports whether the current field has the given wire type. A field of another type is skipped, as in protobuf.
func (m *message) want(wire byte) bool { return m.wire == wire }

// sub returns the current field as a message.
func (m *message) sub(path string) *message {
	return &message{data: m.bytes, base: m.start, path: path}
}

// read reads a file.
func read(data []byte) (*file, error) {
	f := &file{
		kind: kindUnigram, unkSurface: " \u2047 ", named: [3]string{"<s>", "</s>", "<pad>"}, ids: [3]int64{1, 2, -1},
		normal: rules{prefix: true, strip: true, escape: true}, denormal: rules{prefix: true, strip: true, escape: true},
	}
	m := &message{data: data, path: "model"}
	for m.next() {
		if !m.want(2) {
			continue
		}
		var err *Error
		switch m.field {
		case 1:
			err = f.piece(m)
		case 2:
			err = f.trainer(m.sub("trainer_spec"))
		case 3:
			err = f.normal.read(m.sub("normalizer_spec"))
		case 5:
			err = f.denormal.read(m.sub("denormalizer_spec"))
		}
		if err != nil {
			return nil, err
		}
	}
	if m.err != nil {
		return nil, m.err
	}
	return f, nil
}

func (f *file) piece(m *message) *Error {
	id := len(f.texts)
	p := m.sub(fmt.Sprintf("pieces[%d]", id))
	if id > vocab.MaxID {
		return &Error{p.path, p.base, fmt.Sprintf("more than %d pieces", vocab.MaxID+1), ErrLimit}
	}
	text, score, typ := "", float32(0), uint64(Normal)
	for p.next() {
		switch {
		case p.field == 1 && p.want(2):
			text = string(p.bytes)
		case p.field == 2 && p.want(5):
			score = math.Float32frombits(uint32(p.num))
		case p.field == 3 && p.want(0):
			typ = p.num
		}
	}
	switch {
	case p.err != nil:
		return p.err
	case text == "":
		p.at = 0
		p.fail("is an empty piece")
	case len(text) > MaxPiece:
		return &Error{p.path, p.base, fmt.Sprintf("%d bytes, the limit is %d", len(text), MaxPiece), ErrLimit}
	case !utf8.ValidString(text):
		p.at = 0
		p.fail("is not UTF-8")
	case typ < uint64(Normal) || typ > uint64(Byte):
		p.at = 0
		p.fail("has the type %d", typ)
	case math.IsNaN(float64(score)) || math.IsInf(float64(score), 0):
		p.at = 0
		p.fail("has the score %v", score)
	}
	f.texts = append(f.texts, text)
	f.scores = append(f.scores, score)
	f.types = append(f.types, Type(typ))
	f.at = append(f.at, p.base)
	return p.err
}

func (f *file) trainer(m *message) *Error {
	for m.next() {
		switch {
		case m.field == 3 && m.want(0):
			if m.num < uint64(kindUnigram) || m.num > uint64(kindChar) {
				return &Error{"trainer_spec.model_type", m.start, fmt.Sprintf("model type %d", m.num), ErrUnsupported}
			}
			f.kind = Kind(m.num)
		case m.field == 24 && m.want(0):
			f.suffix = m.num != 0
		case m.field == 35 && m.want(0):
			f.byteFallback = m.num != 0
		case m.field >= 41 && m.field <= 43 && m.want(0):
			f.ids[m.field-41] = int64(int32(m.num))
		case m.field == 44 && m.want(2):
			if len(m.bytes) > maxTo {
				return &Error{"trainer_spec.unk_surface", m.start, fmt.Sprintf("%d bytes, the limit is %d", len(m.bytes), maxTo), ErrLimit}
			}
			f.unkSurface = string(m.bytes)
		case m.field >= 46 && m.field <= 48 && m.want(2):
			f.named[m.field-46] = string(m.bytes)
		}
	}
	return m.err
}

func (r *rules) read(m *message) *Error {
	r.at = m.base
	for m.next() {
		switch {
		case m.field == 2 && m.want(2):
			r.charsmap = m.bytes
			r.at = m.start
		case m.field == 3 && m.want(0):
			r.prefix = m.num != 0
		case m.field == 4 && m.want(0):
			r.strip = m.num != 0
		case m.field == 5 && m.want(0):
			r.escape = m.num != 0
		}
	}
	return m.err
}
