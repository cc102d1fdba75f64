// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/weft-go/weft/parsers/family"
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/event"
)

// Registry finds grammars by name. It is immutable and safe for concurrent use.
type Registry struct {
	byName map[string]*compiled
	names  []string
}

// NewRegistry returns a registry of the given grammars, which must not change any more. A later grammar shadows an
// earlier one of the same name or alias.
func NewRegistry(grammars ...*grammar.Grammar) (*Registry, error) {
	r := &Registry{byName: map[string]*compiled{}}
	for _, g := range grammars {
		c, err := compile(g)
		if err != nil {
			return nil, fmt.Errorf("parsers: %w", err)
		}
		for _, n := range append([]string{g.Name}, g.Aliases...) {
			r.byName[fold(n)] = c
		}
		if !slices.Contains(r.names, g.Name) {
			r.names = append(r.names, g.Name)
		}
	}
	slices.Sort(r.names)
	return r, nil
}

// Default returns the registry of all families that weft knows.
func Default() *Registry { return builtin() }

var builtin = sync.OnceValue(func() *Registry {
	r, err := NewRegistry(family.All()...)
	if err != nil {
		panic("parsers: " + err.Error()) // a mistake in package family; its tests see it
	}
	return r
})

// Names returns the canonical names, sorted.
func (r *Registry) Names() []string { return slices.Clone(r.names) }

// Lookup returns the grammar called name, ignoring case, '-', '_' and '.'. The caller must not change it. The error is
// an *UnknownFamilyError.
func (r *Registry) Lookup(name string) (*grammar.Grammar, error) {
	c, err := r.lookup(name)
	if err != nil {
		return nil, err
	}
	return c.g, nil
}

func (r *Registry) lookup(name string) (*compiled, error) {
	if c := r.byName[fold(name)]; c != nil {
		return c, nil
	}
	return nil, &UnknownFamilyError{Name: name, Near: r.near(name)}
}

// New returns a parser of the family called name. Nil options are defaults. The error is an *UnknownFamilyError.
func (r *Registry) New(name string, opt *Options) (*Parser, error) {
	c, err := r.lookup(name)
	if err != nil {
		return nil, err
	}
	return newParser(c, opt), nil
}

// New returns a parser of the family called name in the default registry. Nil options are defaults. The error is an
// *UnknownFamilyError.
func New(name string, opt *Options) (*Parser, error) { return Default().New(name, opt) }

// near returns up to three names or aliases closest to name.
func (r *Registry) near(name string) []string {
	type cand struct {
		name string
		dist int
	}
	var cands []cand
	f := fold(name)
	for n := range r.byName {
		d := distance(f, n)
		if strings.HasPrefix(n, f) || strings.HasPrefix(f, n) {
			d = min(d, 2)
		}
		if d <= max(2, len(f)/3) {
			cands = append(cands, cand{r.byName[n].g.Name, d})
		}
	}
	slices.SortFunc(cands, func(a, b cand) int {
		if a.dist != b.dist {
			return a.dist - b.dist
		}
		return strings.Compare(a.name, b.name)
	})
	var out []string
	for _, c := range cands {
		if !slices.Contains(out, c.name) && len(out) < 3 {
			out = append(out, c.name)
		}
	}
	return out
}

// fold maps the spellings of a name that people use to one.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// distance is the edit distance of two short names.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		prev := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := prev
			if a[i] != b[j] {
				d = 1 + min(prev, row[j], row[j+1])
			}
			prev, row[j+1] = row[j+1], d
		}
	}
	return row[len(b)]
}

// Events parses deltas with p and yields the events one by one, in order, Close included. An error ends the range. The
// Data of an event is valid until the next one is asked for.
func Events(p *Parser, deltas iter.Seq[[]byte]) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		var evs []event.Event
		deliver := func(err error) bool {
			for _, e := range evs {
				if !yield(e, nil) {
					return false
				}
			}
			if err != nil {
				yield(event.Event{}, err)
			}
			return err == nil
		}
		for d := range deltas {
			var err error
			if evs, err = p.Feed(evs[:0], d); !deliver(err) {
				return
			}
		}
		var err error
		evs, err = p.Close(evs[:0])
		deliver(err)
	}
}
