// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

const (
	maxStopStrings = 256
	maxStopBytes   = 4096 // the tables then take at most 2 MB, usually a few KB
)

// StopOptions specifies what ends a generation.
type StopOptions struct {
	// Hidden strings end the text before themselves, like "stop" of the OpenAI API; Visible strings end it after
	// themselves, like vLLM's include_stop_str_in_output. A string in both is hidden. At most 256 strings with 4096
	// bytes in total are allowed; they must be valid UTF-8 and not empty.
	Hidden, Visible []string
	// HiddenIDs end the text before the text of the ID (as for end-of-sequence IDs), VisibleIDs after it.
	HiddenIDs, VisibleIDs []uint32
	// MinTokens is vLLM's min_tokens: an ID among the first MinTokens-1 IDs does not stop, nor does a string whose
	// last byte comes with one of the first MinTokens IDs.
	MinTokens int
}

// Stops is a compiled set of stop strings and IDs: an automaton that knows, at each byte, the longest stop string that
// ends there and how much of one may have begun (Aho and Corasick, 1975). It is immutable and safe for concurrent use by
// multiple goroutines.
type Stops struct {
	class   [256]uint16 // of each byte; 0 for bytes that occur in no string
	classes int
	next    []uint16 // state*classes + class -> state; state 0 is the start
	state   []stopState
	strings []stopString
	hidden  []uint32 // sorted
	visible []uint32
	min     int
}

type stopState struct {
	match int16  // index in strings of the longest that ends here, -1 if none does
	hold  uint16 // length of the longest proper beginning of a hidden string that the text may end with
}

type stopString struct {
	text   string
	hidden bool
}

// NewStops compiles options. With nil options nothing stops a text.
func NewStops(options *StopOptions) (*Stops, error) {
	var opt StopOptions
	if options != nil {
		opt = *options
	}
	s := &Stops{hidden: slices.Clone(opt.HiddenIDs), visible: slices.Clone(opt.VisibleIDs), min: opt.MinTokens}
	slices.Sort(s.hidden)
	slices.Sort(s.visible)
	if n := len(opt.Hidden) + len(opt.Visible); n > maxStopStrings {
		return nil, fmt.Errorf("tokenizers: %d stop strings exceed the limit of %d", n, maxStopStrings)
	}
	total := 0
	for _, set := range []struct {
		list   []string
		hidden bool
	}{{opt.Hidden, true}, {opt.Visible, false}} {
		for _, x := range set.list {
			switch {
			case x == "":
				return nil, errors.New("tokenizers: a stop string is empty")
			case !utf8.ValidString(x):
				return nil, fmt.Errorf("tokenizers: stop string %.40q is not UTF-8", x)
			}
			if total += len(x); total > maxStopBytes {
				return nil, fmt.Errorf("tokenizers: stop strings exceed the limit of %d bytes", maxStopBytes)
			}
			if !slices.ContainsFunc(s.strings, func(have stopString) bool { return have.text == x }) {
				s.strings = append(s.strings, stopString{x, set.hidden})
			}
		}
	}
	s.compile()
	return s, nil
}

func (s *Stops) compile() {
	s.classes = 1
	for _, x := range s.strings {
		for _, b := range []byte(x.text) {
			if s.class[b] == 0 {
				s.class[b] = uint16(s.classes)
				s.classes++
			}
		}
	}
	grow := func() uint16 {
		s.state = append(s.state, stopState{match: -1})
		s.next = append(s.next, make([]uint16, s.classes)...)
		return uint16(len(s.state) - 1)
	}
	grow()
	begins := []uint16{0} // by state, the length if it is a proper prefix of a hidden string
	for i, x := range s.strings {
		n := uint16(0)
		for k, b := range []byte(x.text) {
			if x.hidden && k > 0 {
				begins[n] = uint16(k)
			}
			at := int(n)*s.classes + int(s.class[b])
			if s.next[at] == 0 {
				child := grow()
				s.next[at] = child
				begins = append(begins, 0)
			}
			n = s.next[at]
		}
		s.state[n].match = int16(i)
	}
	// Breadth first: fail is the state of the longest proper end of a state's text that is a state.
	fail := make([]uint16, len(s.state))
	queue := make([]uint16, 0, len(s.state))
	for c := range s.classes {
		if n := s.next[c]; n != 0 {
			queue = append(queue, n)
		}
	}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		f := fail[n]
		if s.state[n].match < 0 {
			s.state[n].match = s.state[f].match
		}
		if s.state[n].hold = begins[n]; begins[n] == 0 {
			s.state[n].hold = s.state[f].hold
		}
		for c := range s.classes {
			at := int(n)*s.classes + c
			if child := s.next[at]; child != 0 {
				fail[child] = s.next[int(f)*s.classes+c]
				queue = append(queue, child)
			} else {
				s.next[at] = s.next[int(f)*s.classes+c]
			}
		}
	}
}

// A StopReason reports what ended a text.
type StopReason struct {
	// Text is the stop string, empty if an id ended the text.
	Text string
	// ID is the id that ended the text or with which the stop string became complete. It is zero for a StopText.
	ID uint32
	// Hidden reports that Text, or the text of ID, is not in the output.
	Hidden bool
}

// A StopText ends streamed text at stop strings. The output does not depend on how the text is split into pieces. It is
// not safe for concurrent use.
//
// The stop string that ends first applies, as in an engine that checks after every token; of several that end at the
// same byte, the longest does. Strings are found anywhere, also in the middle of a piece. Text is held back only while it
// may turn out to be hidden: while it is a proper prefix of a hidden string.
//
//	stops, _ := tokenizers.NewStops(&tokenizers.StopOptions{Hidden: []string{"END"}})
//	m := stops.NewText()
//	m.Append(nil, "one E")   // "one ", Held() == 1
//	m.Append(nil, "vE")      // "Ev", Held() == 1
//	m.Append(nil, "NDless")  // "", Stopped(): END, Ignored() == 4
type StopText struct {
	s       *Stops
	at      uint16
	held    []byte
	reason  StopReason
	stopped bool
	ignored int
}

// NewText returns a StopText.
func (s *Stops) NewText() *StopText { return &StopText{s: s} }

// Append takes the next piece of text and appends to dst what is certain to belong to the output. It does
// not retain text and does not allocate when warm. After a stop it does nothing but count.
func (m *StopText) Append(dst []byte, text string) []byte { return match(m, dst, text, true) }

// AppendBytes is [StopText.Append] for bytes, which must not overlap the free part of dst.
func (m *StopText) AppendBytes(dst, text []byte) []byte { return match(m, dst, text, true) }

func match[T []byte | string](m *StopText, dst []byte, p T, active bool) []byte {
	if m.stopped {
		m.ignored += len(p)
		return dst
	}
	s := m.s
	if len(s.strings) == 0 {
		return append(dst, p...)
	}
	at := int(m.at)
	for i := 0; i < len(p); i++ {
		at = int(s.next[at*s.classes+int(s.class[p[i]])])
		if k := s.state[at].match; k >= 0 && active {
			x := &s.strings[k]
			m.stopped, m.reason, m.ignored = true, StopReason{Text: x.text, Hidden: x.hidden}, len(p)-i-1
			n := len(m.held) + i + 1
			if x.hidden {
				n -= len(x.text)
			}
			return emit(m, dst, p, n, 0)
		}
	}
	m.at = uint16(at)
	hold := int(s.state[at].hold)
	return emit(m, dst, p, len(m.held)+len(p)-hold, hold)
}

// emit appends the first n bytes of what is held and p, and holds the hold bytes after them.
func emit[T []byte | string](m *StopText, dst []byte, p T, n, hold int) []byte {
	k := min(n, len(m.held))
	dst = append(dst, m.held[:k]...)
	dst = append(dst, p[:n-k]...)
	if hold == 0 {
		m.held = m.held[:0]
		return dst
	}
	m.held = append(m.held[:copy(m.held, m.held[k:])], p[n-k:]...)
	return dst
}

// Finish appends the text held back to dst, because no stop string can follow. The result of [StopText.Stopped] does
// not change until Reset.
func (m *StopText) Finish(dst []byte) []byte {
	dst = append(dst, m.held...)
	m.held, m.at = m.held[:0], 0
	return dst
}

// Held returns the number of bytes held back.
func (m *StopText) Held() int { return len(m.held) }

// Stopped returns what ended the text, and whether it has ended.
func (m *StopText) Stopped() (StopReason, bool) { return m.reason, m.stopped }

// Ignored returns the number of bytes that came after the stop, also in the piece that had it.
func (m *StopText) Ignored() int { return m.ignored }

// Reset makes m ready for the next text.
func (m *StopText) Reset() { *m = StopText{s: m.s, held: m.held[:0]} }

// A Stream decodes IDs one at a time. Its output equals the text that [Tokenizer.AppendDecode] returns for all IDs at
// once, up to the first stop. No part of it ends inside a character. A step costs O(bytes of the token) and does not
// allocate when warm if dst has room. A Stream is not safe for concurrent use.
//
// Held back are up to 3 bytes of a character; in models with byte fallback a whole run of byte tokens, one byte each,
// because the token after the run decides whether all of it was text; what a decoder may still remove at the end (one
// token, or the spaces that it strips); and text that may become a hidden stop string.
//
//	s := tok.NewStream(true, stops)
//	for id := range ids {
//		out = s.Append(out[:0], id) // the text that is complete now, often one token's
//		if _, done := s.Stopped(); done {
//			break
//		}
//	}
//	out = s.Finish(out[:0]) // U+FFFD if the last character is incomplete
type Stream struct {
	decoding decoding
	text     StopText // text.s is nil without stops
	buf      []byte
	ids      int
	ignored  int
}

// NewStream returns a Stream. With skipSpecial special added tokens are left out of the text. stops may be nil.
func (t *Tokenizer) NewStream(skipSpecial bool, stops *Stops) *Stream {
	return &Stream{decoding: t.stream(skipSpecial), text: StopText{s: stops}}
}

// Append appends the text that is certain to belong to the output after id. At a stop ID it appends all that was held
// back, since no more text follows. A visible stop ID applies after the stop strings that its text completes. After a
// stop, IDs are only counted.
func (s *Stream) Append(dst []byte, id uint32) []byte {
	if s.text.s == nil {
		return s.decoding.append(dst, id)
	}
	if s.text.stopped {
		s.ignored++
		return dst
	}
	s.ids++
	stops := s.text.s
	if s.ids >= stops.min {
		if _, hit := slices.BinarySearch(stops.hidden, id); hit {
			return s.end(dst, StopReason{ID: id, Hidden: true})
		}
	}
	s.buf = s.decoding.append(s.buf[:0], id)
	dst = match(&s.text, dst, s.buf, s.ids > stops.min)
	if s.text.stopped {
		s.text.reason.ID = id
		s.decoding.reset()
		return dst
	}
	if s.ids >= stops.min {
		if _, hit := slices.BinarySearch(stops.visible, id); hit {
			return s.end(dst, StopReason{ID: id})
		}
	}
	return dst
}

// end flushes and stops.
func (s *Stream) end(dst []byte, why StopReason) []byte {
	dst = s.flush(dst)
	if !s.text.stopped {
		s.text.stopped, s.text.reason = true, why
	}
	return dst
}

func (s *Stream) flush(dst []byte) []byte {
	s.buf = s.decoding.finish(s.buf[:0])
	dst = match(&s.text, dst, s.buf, s.ids > s.text.s.min)
	return s.text.Finish(dst)
}

// Finish appends what is held back to dst: nothing after a stop. An incomplete character becomes U+FFFD, which may
// complete a stop string that contains one. Call Reset before the next text.
func (s *Stream) Finish(dst []byte) []byte {
	switch {
	case s.text.s == nil:
		return s.decoding.finish(dst)
	case s.text.stopped:
		return dst
	}
	return s.flush(dst)
}

// Stopped returns what ended the text, and whether it has ended.
func (s *Stream) Stopped() (StopReason, bool) { return s.text.Stopped() }

// Ignored returns the number of IDs after the one that ended the text.
func (s *Stream) Ignored() int { return s.ignored }

// Held returns the number of bytes held back.
func (s *Stream) Held() int { return s.decoding.held() + s.text.Held() }

// Reset prepares s for the next text and drops what is held back.
func (s *Stream) Reset() {
	s.decoding.reset()
	s.text.Reset()
	s.ids, s.ignored = 0, 0
}
