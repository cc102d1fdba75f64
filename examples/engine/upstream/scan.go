// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bytes"
	"math"
	"unicode/utf8"

	"github.com/weft-go/weft/protocols/event"
)

// Almost all chunks of a stream have output, the usual finish reasons or usage, and nothing else that counts. This file
// decodes those in about a tenth of the time of encoding/json and without allocation. It accepts a subset of JSON in which
// encoding/json finds the same steps, and leaves the rest to appendSteps: stop reasons, log probabilities, details of the
// usage other than the cached tokens, errors, repeated fields, names that encoding/json would compare without regard to
// case, numbers that are not integers, other nested values, surrogates, and malformed chunks.

// A pattern contains the bytes of a chunk around its text and its token ids. The chunks of a stream hardly differ in
// anything else. What was scanned need not be scanned again: the same bytes up to the text leave the scanner in the same
// state, which no text changes, and so on.
type pattern struct {
	head    []byte // up to the text, with its quote
	middle  []byte // up to the ids, with their bracket
	tail    []byte // after the ids
	choice  int
	learned int // chunks that set the pattern
}

const (
	// maxLearned is the number of chunks that set a pattern, after which it remains as it is.
	maxLearned = 8
	// maxPattern is the length of the longest chunk that sets one. The first chunk of a stream can contain the prompt's ids.
	maxPattern = 2 << 10
)

// match decodes a chunk that has the pattern, or reports false.
func (r *chunkReader) match(dst []Step, data []byte) ([]Step, bool) {
	p := &r.like
	if p.learned == 0 || !bytes.HasPrefix(data, p.head) {
		return dst, false
	}
	s := chunkScanner{b: data, i: len(p.head) - 1}
	st := Step{Choice: p.choice, StopID: -1}
	var ok bool
	if st.Text, ok = s.text(&r.text); !ok || !bytes.HasPrefix(data[s.i:], p.middle) {
		return dst, false
	}
	s.i += len(p.middle) - 1
	if r.ids, ok = s.uints(r.ids); !ok || string(data[s.i:]) != string(p.tail) {
		return dst, false
	}
	st.IDs = r.ids[:len(r.ids):len(r.ids)]
	return append(dst, st), true
}

// learn makes a chunk the pattern. It has one choice with its text at data[text:textEnd] and then its ids at
// data[ids:idsEnd], or textEnd > ids.
func (p *pattern) learn(data []byte, st *Step, text, textEnd, ids, idsEnd int) {
	if p.learned == maxLearned || len(data) > maxPattern || text == 0 || textEnd > ids {
		return
	}
	p.learned++
	p.head = append(p.head[:0], data[:text+1]...)
	p.middle = append(p.middle[:0], data[textEnd:ids+1]...)
	p.tail = append(p.tail[:0], data[idsEnd:]...)
	p.choice = st.Choice
}

// scan decodes a chunk with output only. It reports false if the chunk is anything else.
func (r *chunkReader) scan(dst []Step, data []byte) ([]Step, bool) {
	r.ids, r.text = r.ids[:0], r.text[:0]
	if dst, ok := r.match(dst, data); ok {
		return dst, true
	}
	r.ids, r.text = r.ids[:0], r.text[:0]
	s := chunkScanner{b: data}
	from := len(dst)
	if !s.take('{') {
		return dst, false
	}
	var used *event.Tokens
	for seen := false; ; {
		ok := false
		switch string(s.name()) {
		case "":
			return dst[:from], false
		case "choices":
			if !seen {
				seen = true
				dst, ok = r.choices(dst, &s)
			}
		case "error":
			ok = s.literal("null")
		case "usage":
			if used == nil {
				if ok = s.literal("null"); !ok {
					used, ok = s.usage()
				}
			}
		default:
			ok = s.skip()
		}
		if !ok {
			return dst[:from], false
		}
		if s.take(',') {
			continue
		}
		if ok = s.take('}') && s.end(); !ok {
			return dst[:from], false
		}
		if used != nil {
			return append(dst, Step{Usage: used}), true
		}
		if len(dst) == from+1 && dst[from].Finish == event.None {
			r.like.learn(data, &dst[from], s.textAt, s.textEnd, s.idsAt, s.idsEnd)
		}
		return dst, true
	}
}

// choices scans the array of choices.
func (r *chunkReader) choices(dst []Step, s *chunkScanner) ([]Step, bool) {
	if !s.take('[') {
		return dst, false
	}
	if s.take(']') {
		return dst, true
	}
	for {
		dst = append(dst, Step{StopID: -1})
		if !r.choice(&dst[len(dst)-1], s) {
			return dst, false
		}
		if !s.take(',') {
			return dst, s.take(']')
		}
	}
}

// choice scans an element of choices.
func (r *chunkReader) choice(st *Step, s *chunkScanner) bool {
	if !s.take('{') {
		return false
	}
	for index, text, ids, finish := false, false, false, false; ; {
		ok := false
		switch string(s.name()) {
		case "":
			return false
		case "index":
			var n uint64
			n, ok = s.uint()
			ok = ok && !index && n < uint64(r.n)
			st.Choice, index = int(n), true
		case "text":
			if !text {
				text = true
				s.space()
				s.textAt = s.i
				st.Text, ok = s.text(&r.text)
				s.textEnd = s.i
			}
		case "token_ids":
			if ok = s.literal("null"); !ok && !ids {
				from := len(r.ids)
				s.idsAt = s.i
				r.ids, ok = s.uints(r.ids)
				s.idsEnd = s.i
				st.IDs = r.ids[from:len(r.ids):len(r.ids)]
			}
			ok, ids = ok && !ids, true
		case "finish_reason":
			switch {
			case finish:
			case s.literal("null"):
				ok = true
			case s.literal(`"stop"`):
				ok, st.Finish = true, event.Stop
			case s.literal(`"length"`):
				ok, st.Finish = true, event.Length
			}
			finish = true
		case "stop_reason", "logprobs":
			ok = s.literal("null")
		default:
			ok = s.skip()
		}
		if !ok {
			return false
		}
		if !s.take(',') {
			return s.take('}')
		}
	}
}

// usage scans a usage object whose only details are the cached tokens.
func (s *chunkScanner) usage() (*event.Tokens, bool) {
	t := &event.Tokens{CachedEstimated: true}
	if !s.take('{') {
		return nil, false
	}
	for {
		var n uint64
		ok := false
		switch string(s.name()) {
		case "":
			return nil, false
		case "prompt_tokens":
			n, ok = s.uint()
			t.Prompt = int64(n)
		case "completion_tokens":
			n, ok = s.uint()
			t.Output = int64(n)
		case "prompt_tokens_details":
			switch {
			case !t.CachedEstimated:
			case s.literal("null"):
				ok = true
			case s.take('{') && string(s.name()) == "cached_tokens":
				n, ok = s.uint()
				ok = ok && s.take('}')
				t.Cached, t.CachedEstimated = int64(n), false
			}
		default:
			ok = s.skip()
		}
		if !ok {
			return nil, false
		}
		if !s.take(',') {
			return t, s.take('}')
		}
	}
}

// A chunkScanner is a position in a chunk. After a method has failed, the position is undefined, except for take and
// literal, which then only skip white space.
type chunkScanner struct {
	b []byte
	i int

	textAt, textEnd int // the last text, with its quotes
	idsAt, idsEnd   int // the last ids, with their brackets
}

// space skips white space.
func (s *chunkScanner) space() {
	for s.i < len(s.b) && (s.b[s.i] == ' ' || s.b[s.i] == '\n' || s.b[s.i] == '\r' || s.b[s.i] == '\t') {
		s.i++
	}
}

// end reports whether only white space follows.
func (s *chunkScanner) end() bool {
	s.space()
	return s.i == len(s.b)
}

// take skips white space and c.
func (s *chunkScanner) take(c byte) bool {
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	s.space()
	if s.i >= len(s.b) || s.b[s.i] != c {
		return false
	}
	s.i++
	return true
}

// literal skips white space and word.
func (s *chunkScanner) literal(word string) bool {
	s.space()
	if len(s.b)-s.i < len(word) || string(s.b[s.i:s.i+len(word)]) != word {
		return false
	}
	s.i += len(word)
	return true
}

// name returns a field name of lower-case letters, digits and underscores, and skips the colon. It returns nil for all
// else. encoding/json compares such names byte by byte, as no other name of that form folds to the same one.
func (s *chunkScanner) name() []byte {
	if !s.take('"') {
		return nil
	}
	for from := s.i; s.i < len(s.b); s.i++ {
		switch c := s.b[s.i]; {
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_':
		case c == '"':
			name := s.b[from:s.i]
			s.i++
			if !s.take(':') {
				return nil
			}
			return name
		default:
			return nil
		}
	}
	return nil
}

// uint scans an integer from 0 to 2^63-1.
func (s *chunkScanner) uint() (uint64, bool) {
	s.space()
	from, n := s.i, uint64(0)
	for s.i < len(s.b) && s.b[s.i]-'0' <= 9 {
		if n > (math.MaxInt64-9)/10 {
			return 0, false
		}
		n = 10*n + uint64(s.b[s.i]-'0')
		s.i++
	}
	return n, s.i > from && (s.b[from] != '0' || s.i == from+1)
}

// uints scans an array of token ids and appends them to dst.
func (s *chunkScanner) uints(dst []uint32) ([]uint32, bool) {
	if !s.take('[') {
		return dst, false
	}
	if s.take(']') {
		return dst, true
	}
	for {
		n, ok := s.uint()
		if !ok || n > math.MaxUint32 {
			return dst, false
		}
		dst = append(dst, uint32(n))
		if !s.take(',') {
			return dst, s.take(']')
		}
	}
}

// text scans a string. The result is a view of the chunk or, if the string has escapes, of *buf, to which its text is
// appended.
func (s *chunkScanner) text(buf *[]byte) ([]byte, bool) {
	if !s.take('"') {
		return nil, false
	}
	from, start, ascii := len(*buf), s.i, true
	for escaped := false; s.i < len(s.b); {
		switch c := s.b[s.i]; {
		case c == '"':
			text := s.b[start:s.i:s.i]
			s.i++
			if escaped {
				*buf = append(*buf, text...)
				text = (*buf)[from:len(*buf):len(*buf)]
			}
			return text, ascii || utf8.Valid(text)
		case c == '\\':
			escaped = true
			*buf = append(*buf, s.b[start:s.i]...)
			r, ok := s.escape()
			if !ok {
				return nil, false
			}
			*buf = utf8.AppendRune(*buf, r)
			start = s.i
		case c < ' ':
			return nil, false
		default:
			ascii = ascii && c < utf8.RuneSelf
			s.i++
		}
	}
	return nil, false
}

// escape scans an escape sequence that is not a surrogate.
func (s *chunkScanner) escape() (rune, bool) {
	if len(s.b)-s.i < 2 {
		return 0, false
	}
	c := s.b[s.i+1]
	s.i += 2
	switch c {
	case '"', '\\', '/':
		return rune(c), true
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	case 'u':
		if len(s.b)-s.i < 4 {
			return 0, false
		}
		r := rune(0)
		for _, c := range s.b[s.i : s.i+4] {
			switch {
			case c-'0' <= 9:
				r = r<<4 | rune(c-'0')
			case c|0x20 >= 'a' && c|0x20 <= 'f':
				r = r<<4 | rune(c|0x20-'a'+10)
			default:
				return 0, false
			}
		}
		s.i += 4
		return r, r < 0xd800 || r > 0xdfff
	}
	return 0, false
}

// skip skips a string without escapes, an integer, a literal, or an array of token ids, such as prompt_token_ids.
func (s *chunkScanner) skip() bool {
	s.space()
	if s.i >= len(s.b) {
		return false
	}
	switch s.b[s.i] {
	case '"':
		for s.i++; s.i < len(s.b); s.i++ {
			switch c := s.b[s.i]; {
			case c == '"':
				s.i++
				return true
			case c == '\\' || c < ' ':
				return false
			}
		}
		return false
	case '[':
		s.i++
		if s.take(']') {
			return true
		}
		for {
			if _, ok := s.uint(); !ok {
				return false
			}
			if !s.take(',') {
				return s.take(']')
			}
		}
	case 'n':
		return s.literal("null")
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	}
	_, ok := s.uint()
	return ok
}
