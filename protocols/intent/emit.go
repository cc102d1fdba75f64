// SPDX-License-Identifier: Apache-2.0

package intent

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// sentHeader is a header to send.
type sentHeader struct{ name, value string } // name in lower case

// sentMember is a field of the body to send.
type sentMember struct {
	path []string // names from the root
	json []byte
}

// Change describes a hint that is not used as requested: a [Policy] limited it, or a [Target] does not support it or
// only approximates it.
type Change struct {
	Hint  string // name, see [Hints]
	Value string // as requested; "" from Emit
	Used  string // the value used instead, or "" if the hint is dropped
	Why   string
}

// Out holds hints in the dialect of a [Target].
type Out struct {
	// Changes are the hints that the target does not support or only approximates.
	Changes []Change

	kind    kind
	headers []sentHeader
	members []sentMember
}

// Emit returns the hints of in, in the dialect of t. Hints that the dialect, version and features of t do not support
// are listed in Out.Changes instead. [Out.AppendBody] and [Out.SetHeaders] add the result to a request.
func (t *Target) Emit(in *Intent) Out {
	s := sender{in: in, t: t, out: Out{kind: t.kind}}
	for h := range in.Hints().all() {
		s.hint = h
		c, why := t.find(h)
		switch {
		case c == nil:
			s.lose(why)
		case lineage.has(h) && s.lost(hintSession):
			s.lose("the session is not sent")
		default:
			c.send(&s)
		}
	}
	return s.out
}

// sender collects the headers and fields to send.
type sender struct {
	in   *Intent
	t    *Target
	hint hint
	out  Out
}

// lineage holds the hints that have no meaning without a session.
var lineage = setOf(hintParent, hintRoot, hintFinal)

// lost reports whether an earlier hint was dropped or changed.
func (s *sender) lost(h hint) bool {
	return slices.ContainsFunc(s.out.Changes, func(c Change) bool { return c.Hint == h.String() })
}

func (s *sender) lose(why string) {
	s.out.Changes = append(s.out.Changes, Change{Hint: s.hint.String(), Why: why})
}

// instead records that an approximation was sent.
func (s *sender) instead(sent, why string) {
	s.out.Changes = append(s.out.Changes, Change{Hint: s.hint.String(), Used: sent, Why: why})
}

func (s *sender) header(name, value string) {
	switch {
	case len(value) > maxText && s.t.kind != weft, len(value) > maxHeader:
		s.lose("too long for a header")
	case !inHeader(value):
		s.lose("contains characters not allowed in a header")
	default:
		s.out.headers = append(s.out.headers, sentHeader{name, value})
	}
}

func (s *sender) member(json []byte, path ...string) {
	s.out.members = append(s.out.members, sentMember{path, json})
}

// text sends a string of at most most bytes.
func (s *sender) text(text string, most int, path ...string) {
	switch why := textFault(text); {
	case why != "":
		s.lose(why)
	case len(text) > most:
		s.lose("more than " + strconv.Itoa(most) + " bytes")
	default:
		s.member(appendString(nil, text), path...)
	}
}

// count sends a number of tokens.
func (s *sender) count(n int, path ...string) {
	if n < 0 || n > 1<<31-1 {
		s.lose("not a token count from 0 to 2147483647")
		return
	}
	s.member(strconv.AppendInt(nil, int64(n), 10), path...)
}

// wait reports whether a duration can be sent.
func (s *sender) wait(d time.Duration) bool {
	if d <= 0 || d > maxWait {
		s.lose("not a duration above 0 and up to a day")
		return false
	}
	return true
}

// milliseconds sends a duration in a header, rounded up to whole milliseconds.
func (s *sender) milliseconds(name string, d time.Duration) {
	if !s.wait(d) {
		return
	}
	ms := strconv.FormatInt(int64((d+time.Millisecond-1)/time.Millisecond), 10)
	if d%time.Millisecond != 0 {
		s.instead(ms+" ms", "whole milliseconds only")
	}
	s.header(name, ms)
}

// Rows for hints that are sent in common ways.

func inHeaderRow(h hint, name string, at func(*Intent) *string) capability {
	return capability{hint: h, as: name, send: func(s *sender) { s.header(name, *at(s.in)) }}
}

func inBodyRow(h hint, most int, at func(*Intent) *string, path ...string) capability {
	return capability{hint: h, as: strings.Join(path, "."), send: func(s *sender) {
		s.text(*at(s.in), most, path...)
	}}
}

func countRow(h hint, at func(*Intent) *int, path ...string) capability {
	return capability{hint: h, as: strings.Join(path, "."), send: func(s *sender) {
		s.count(*at(s.in), path...)
	}}
}

// The following set a field of a row.

func (c capability) since(version string) capability { c.version = version; return c }
func (c capability) needs(f features) capability     { c.features = f; return c }
func (c capability) priority(p Polarity) capability  { c.polarity = p; return c }
func row(h hint, as string, send func(*sender)) capability {
	return capability{hint: h, as: as, send: send}
}

// Fields that several dialects support.
var (
	saltOf      = func(in *Intent) *string { return &in.Salt }
	keyOf       = func(in *Intent) *string { return &in.CacheKey }
	requestIDOf = func(in *Intent) *string { return &in.RequestID }
	sessionOf   = func(in *Intent) *string { return &in.Session.ID }
	parentOf    = func(in *Intent) *string { return &in.Session.Parent }
	tenantOf    = func(in *Intent) *string { return &in.Tenant }
	userOf      = func(in *Intent) *string { return &in.User }
	goalOf      = func(in *Intent) *string { return &in.Objective }
	serviceOf   = func(in *Intent) *string { return &in.ServiceTier }
	thinkingOf  = func(in *Intent) *int { return &in.MaxThinking }
	outputOf    = func(in *Intent) *int { return &in.ExpectedOutput }
)
