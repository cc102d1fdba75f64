// SPDX-License-Identifier: Apache-2.0

package intent

import (
	"fmt"
	"iter"
	"math/bits"
	"strings"
)

// hint is one piece of information in an [Intent].
type hint uint8

const (
	hintPriority hint = iota
	hintTier
	hintServiceTier
	hintSpeed
	hintObjective
	hintExpectedOutput
	hintMaxThinking
	hintPrefetch
	hintPace
	hintTTFT
	hintITL
	hintDeadline
	hintRetain
	hintBreakpoints
	hintSalt
	hintCacheKey
	hintEvict
	hintTenant
	hintUser
	hintDataClass
	hintSession // its ID
	hintParent
	hintRoot
	hintFinal
	hintAgent
	hintHarness
	hintTurn
	hintWindow
	hintTrigger
	hintCompaction
	hintRequestID
	hintPin
	hintMeta

	numHints
)

// about holds, for each hint, its name, a function that reports whether an Intent has it, and one that copies it.
var about = [numHints]struct {
	name string
	has  func(*Intent) bool
	copy func(dst, src *Intent)
}{
	hintPriority:       plain("priority", func(in *Intent) *int32 { return &in.Priority }),
	hintTier:           plain("tier", func(in *Intent) *uint32 { return &in.Tier }),
	hintServiceTier:    plain("service_tier", func(in *Intent) *string { return &in.ServiceTier }),
	hintSpeed:          plain("speed", func(in *Intent) *string { return &in.Speed }),
	hintObjective:      plain("objective", func(in *Intent) *string { return &in.Objective }),
	hintExpectedOutput: plain("expected_output", func(in *Intent) *int { return &in.ExpectedOutput }),
	hintMaxThinking:    plain("max_thinking", func(in *Intent) *int { return &in.MaxThinking }),
	hintPrefetch:       plain("prefetch", func(in *Intent) *bool { return &in.Prefetch }),
	hintPace:           plain("pace", func(in *Intent) *Pace { return &in.Pace }),
	hintTTFT:           plain("ttft", durationOf(hintTTFT)),
	hintITL:            plain("itl", durationOf(hintITL)),
	hintDeadline:       plain("deadline", durationOf(hintDeadline)),
	hintRetain:         plain("retain", func(in *Intent) *Retain { return &in.Retain }),
	hintBreakpoints: {
		"breakpoints",
		func(in *Intent) bool { return len(in.Breakpoints) > 0 },
		func(dst, src *Intent) { dst.Breakpoints = src.Breakpoints },
	},
	hintSalt:      plain("salt", func(in *Intent) *string { return &in.Salt }),
	hintCacheKey:  plain("cache_key", func(in *Intent) *string { return &in.CacheKey }),
	hintEvict:     plain("evict", func(in *Intent) *Evict { return &in.Evict }),
	hintTenant:    plain("tenant", func(in *Intent) *string { return &in.Tenant }),
	hintUser:      plain("user", func(in *Intent) *string { return &in.User }),
	hintDataClass: plain("data_class", func(in *Intent) *string { return &in.DataClass }),
	hintSession:   plain("session", func(in *Intent) *string { return &in.Session.ID }),
	hintParent:    plain("parent", func(in *Intent) *string { return &in.Session.Parent }),
	hintRoot: {
		"root",
		func(in *Intent) bool { // not if the other fields imply it
			s := &in.Session
			return s.Root != "" && (s.Parent != "" || s.Root != s.ID)
		},
		func(dst, src *Intent) { dst.Session.Root = src.Session.Root },
	},
	hintFinal:   plain("final", func(in *Intent) *bool { return &in.Session.Final }),
	hintAgent:   plain("agent", func(in *Intent) *string { return &in.Session.Agent }),
	hintHarness: plain("harness", func(in *Intent) *string { return &in.Session.Harness }),
	hintTurn:    plain("turn", func(in *Intent) *string { return &in.Session.Turn }),
	hintWindow:  plain("window", func(in *Intent) *string { return &in.Session.Window }),
	hintTrigger: plain("trigger", func(in *Intent) *Trigger { return &in.Trigger }),
	hintCompaction: {
		"compaction",
		func(in *Intent) bool { return in.Compaction != nil },
		func(dst, src *Intent) { dst.Compaction = src.Compaction },
	},
	hintRequestID: plain("request_id", func(in *Intent) *string { return &in.RequestID }),
	hintPin:       plain("pin", func(in *Intent) *Pin { return &in.Pin }),
	hintMeta: {
		"meta",
		func(in *Intent) bool { return len(in.Meta) > 0 },
		func(dst, src *Intent) { dst.Meta = src.Meta },
	},
}

// plain describes a hint that is a comparable field.
func plain[T comparable](name string, at func(*Intent) *T) (d struct {
	name string
	has  func(*Intent) bool
	copy func(dst, src *Intent)
}) {
	d.name = name
	d.has = func(in *Intent) bool { var zero T; return *at(in) != zero }
	d.copy = func(dst, src *Intent) { *at(dst) = *at(src) }
	return d
}

// String returns the name of the hint.
func (h hint) String() string { return about[h].name }

// lookup returns the hint with the given name. Spaces, dashes and underscores are equivalent.
func lookup(name string) (h hint, ok bool) {
	for h := range numHints {
		if unspaced(h.String()) == unspaced(name) {
			return h, true
		}
	}
	return 0, false
}

// unspaced replaces dashes and underscores in a name by spaces.
func unspaced(s string) string {
	return strings.NewReplacer("-", " ", "_", " ").Replace(strings.TrimSpace(s))
}

// Hints returns the set of hints that are present.
func (in *Intent) Hints() (set Hints) {
	for h := range numHints {
		if about[h].has(in) {
			set = set.with(h)
		}
	}
	return set
}

// Only returns a copy of in with only the hints of set.
func (in *Intent) Only(set Hints) (out Intent) {
	for h := range set.all() {
		about[h].copy(&out, in)
	}
	out.Session.normal()
	return out
}

// Hints is a set of hints. The name of a hint is the name of its field of [Intent] or [Session] in snake case:
//
//	priority tier service_tier speed objective expected_output max_thinking prefetch pace ttft itl deadline
//	retain breakpoints salt cache_key evict tenant user data_class
//	session parent root final agent harness turn window trigger compaction request_id pin meta
//
// where session is the ID of the session. Our own dialect uses the same names. The zero value is the empty set.
type Hints uint64

// ParseHints returns the set of hints with the given names. Spaces and dashes in a name are treated as underscores.
func ParseHints(names ...string) (Hints, error) {
	var set Hints
	for _, name := range names {
		h, ok := lookup(name)
		if !ok {
			return 0, fmt.Errorf("intent: unknown hint %q: the hints are %s", name, strings.Join(allHints.Names(), ", "))
		}
		set = set.with(h)
	}
	return set, nil
}

// MustHints is like [ParseHints] but panics if a name is unknown. It is for names that are constants of a program.
func MustHints(names ...string) Hints {
	set, err := ParseHints(names...)
	if err != nil {
		panic(err)
	}
	return set
}

// Names returns the names of the hints, in the order listed at [Hints].
func (s Hints) Names() []string {
	var names []string
	for h := range s.all() {
		names = append(names, h.String())
	}
	return names
}

const allHints Hints = 1<<numHints - 1

func setOf(list ...hint) (s Hints) {
	for _, h := range list {
		s = s.with(h)
	}
	return s
}

func (s Hints) has(h hint) bool { return s&(1<<h) != 0 }

func (s Hints) with(h hint) Hints { return s | 1<<h }

// all yields the hints of the set in the order of their declaration.
func (s Hints) all() iter.Seq[hint] {
	return func(yield func(hint) bool) {
		for s &= allHints; s != 0; s &= s - 1 {
			if !yield(hint(bits.TrailingZeros64(uint64(s)))) {
				return
			}
		}
	}
}
