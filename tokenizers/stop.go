// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Limits of [StopOptions].
const (
	MaxStopStrings = 256
	MaxStopBytes   = 4096 // of all strings together; the tables then take at most 2 MB, usually a few KB
)

// StopOptions says what ends a generation.
type StopOptions struct {
	// Hidden strings end the text before themselves, as "stop" of the OpenAI API does, Visible ones behind
	// themselves, as vLLM's include_stop_str_in_output asks. A string in both is hidden.
	Hidden, Visible []string
	// HiddenIDs end it before the text of the id (that of end-of-sequence ids, say), VisibleIDs behind it.
	HiddenIDs, VisibleIDs []uint32
	// MinTokens is vLLM's min_tokens: an id among the first MinTokens-1 ids does not stop, and a string does
	// not if its last byte comes with one of the first MinTokens ids.
	MinTokens int
}

// Stops are compiled [StopOptions]: an automaton that knows, at each byte, the longest stop string that ends
// here and how much of one may have begun (Aho and Corasick, 1975). Immutable and safe for concurrent use.
type Stops struct {
	class   [256]uint16 // of bytes; 0 is that of bytes in no string
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

// NewStops compiles opt. Strings must be valid UTF-8 and not empty.
func NewStops(opt StopOptions) (*Stops, error) {
	s := &Stops{hidden: slices.Clone(opt.HiddenIDs), visible: slices.Clone(opt.VisibleIDs), min: opt.MinTokens}
	slices.Sort(s.hidden)
	slices.Sort(s.visible)
	if n := len(opt.Hidden) + len(opt.Visible); n > MaxStopStrings {
		return nil, fmt.Errorf("tokenizers: %d stop strings are over the limit %d", n, MaxStopStrings)
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
			if total += len(x); total > MaxStopBytes {
				return nil, fmt.Errorf("tokenizers: stop strings are over the limit of %d bytes", MaxStopBytes)
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
	begins := []uint16{0} // state -> length, if a hidden string begins with it and goes on
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

// StopReason is what ended a text.
type StopReason struct {
	// Text is the stop string, empty if an id ended the text.
	Text string
	// ID is the id that ended the text or with which the stop string became complete. Zero from a StopText.
	ID uint32
	// Hidden says that Text, or the text of ID, is not in the output.
	Hidden bool
}

// StopText looks for stop strings in text that comes in pieces. One goroutine at a time. The output does not
// depend on how the text is cut into pieces.
//
// The stop that ends first counts, as it does for an engine that looks after every token; of those that end
// at the same byte the longest, which is the one that begins first. Strings are found anywhere, also in the
// middle of a piece. Text is held back only while it may turn out to be hidden: what is held is the longest
// end of the text that a hidden string begins with and goes on.
//
//	stops, _ := tokenizers.NewStops(tokenizers.StopOptions{Hidden: []string{"END"}})
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
func (m *StopText) Append(dst []byte, text string) []byte { return feed(m, dst, text, true) }

// AppendBytes is [StopText.Append] for bytes, which must not overlap the free part of dst.
func (m *StopText) AppendBytes(dst, text []byte) []byte { return feed(m, dst, text, true) }

func feed[T []byte | string](m *StopText, dst []byte, p T, active bool) []byte {
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

// Finish appends what is held back to dst: no stop string comes any more. [StopText.Stopped] keeps its
// answer until Reset.
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

// StopStream is a [Stream] that ends at stop strings and stop ids. One goroutine at a time; it does not
// allocate when warm and dst has room.
//
//	s := tok.NewStopStream(stops, true)
//	for … { out = s.Append(out[:0], id); if _, done := s.Stopped(); done { break } }
//	out = s.Finish(out[:0])
type StopStream struct {
	stream  *Stream
	text    StopText
	buf     []byte
	ids     int
	ignored int
}

// NewStopStream returns a StopStream. With skipSpecial special added tokens are left out of the text.
func (t *Tokenizer) NewStopStream(stops *Stops, skipSpecial bool) *StopStream {
	return &StopStream{stream: t.NewStream(skipSpecial), text: StopText{s: stops}}
}

// Append takes the next id and appends to dst the text that is certain to belong to the output. At a stop id
// it appends all that was held back, since no more text follows. A visible stop id counts after the
// stop strings that its text completes. After a stop ids are only counted.
func (s *StopStream) Append(dst []byte, id uint32) []byte {
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
	s.buf = s.stream.Append(s.buf[:0], id)
	dst = feed(&s.text, dst, s.buf, s.ids > stops.min)
	if s.text.stopped {
		s.text.reason.ID = id
		s.stream.Reset()
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
func (s *StopStream) end(dst []byte, why StopReason) []byte {
	dst = s.flush(dst)
	if !s.text.stopped {
		s.text.stopped, s.text.reason = true, why
	}
	return dst
}

func (s *StopStream) flush(dst []byte) []byte {
	s.buf = s.stream.Finish(s.buf[:0])
	dst = feed(&s.text, dst, s.buf, s.ids > s.text.s.min)
	return s.text.Finish(dst)
}

// Finish appends what is held back to dst. Nothing is after a stop. An incomplete character becomes U+FFFD,
// which may complete a stop string that holds one.
func (s *StopStream) Finish(dst []byte) []byte {
	if s.text.stopped {
		return dst
	}
	return s.flush(dst)
}

// Stopped returns what ended the text, and whether it has ended.
func (s *StopStream) Stopped() (StopReason, bool) { return s.text.Stopped() }

// Ignored returns the number of ids that came after the one that ended the text.
func (s *StopStream) Ignored() int { return s.ignored }

// Held returns the number of bytes held back.
func (s *StopStream) Held() int { return s.stream.Held() + s.text.Held() }

// Reset makes s ready for the next text.
func (s *StopStream) Reset() {
	s.stream.Reset()
	s.text.Reset()
	s.ids, s.ignored = 0, 0
}
