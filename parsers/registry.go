// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/weft-go/weft/parsers/family"
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/event"
)

// Registry finds families by name. It is immutable and safe for concurrent use. The zero Registry has no families.
type Registry struct {
	byName map[string]*entry
	names  []string
	both   sync.Map // pair to *entry; whatever the spelling, at most one for each pair of families
}

// entry is one family: a grammar, or a parser of the user's own.
type entry struct {
	name string
	c    *compiled
	make func(*Options) (Stream, error)
}

// pair are the families of a combination. Two families may have the same name, because a shadowed family keeps its
// aliases.
type pair struct{ tools, reasoning *entry }

// Extend returns a registry of r's families and the given grammars, which must not be modified afterwards. A grammar
// shadows earlier families with the same name or alias. r is unchanged.
func (r *Registry) Extend(grammars ...*grammar.Grammar) (*Registry, error) {
	out := r.clone()
	for _, g := range grammars {
		c, err := compile(g)
		if err != nil {
			return nil, fmt.Errorf("parsers: %w", err)
		}
		out.add(&entry{name: g.Name, c: c}, g.Aliases...)
	}
	return out, nil
}

// ExtendFunc returns a registry of r's families and a family whose parser is the user's own. It shadows an earlier
// family with the same name. r is unchanged.
//
// make is called once for each parser that New returns, from any goroutine. Its Options are never nil: the zero Options
// if New got none. They are the caller's and must not be changed. If make cannot honor the options, it should return an
// error, which New returns unchanged. The Stream serves one response after the other, reset between them, and must not
// be nil.
func (r *Registry) ExtendFunc(name string, make func(*Options) (Stream, error)) *Registry {
	out := r.clone()
	out.add(&entry{name: name, make: make})
	return out
}

func (r *Registry) clone() *Registry {
	out := &Registry{byName: maps.Clone(r.byName), names: slices.Clone(r.names)}
	if out.byName == nil {
		out.byName = map[string]*entry{}
	}
	return out
}

func (r *Registry) add(e *entry, aliases ...string) {
	for _, n := range append([]string{e.name}, aliases...) {
		r.byName[fold(n)] = e
	}
	if i, ok := slices.BinarySearch(r.names, e.name); !ok {
		r.names = slices.Insert(r.names, i, e.name)
	}
}

// Default returns the registry of all families in package family.
func Default() *Registry { return builtin() }

var builtin = sync.OnceValue(func() *Registry {
	r, err := new(Registry).Extend(family.All()...)
	if err != nil {
		panic("parsers: " + err.Error()) // an error in package family, which its tests detect
	}
	return r
})

// Names returns the canonical names, sorted.
func (r *Registry) Names() []string { return slices.Clone(r.names) }

// Lookup returns the grammar called name, ignoring case, '-', '_' and '.'. The name a+b means the calls of a with the
// reasoning of b, as [grammar.With] has it. The caller must not change it. It is nil for a family whose parser is the
// user's own. The error is an *UnknownFamilyError, or reports why two families cannot be combined.
func (r *Registry) Lookup(name string) (*grammar.Grammar, error) {
	e, err := r.lookup(name)
	if err != nil || e.c == nil {
		return nil, err
	}
	return e.c.g, nil
}

func (r *Registry) lookup(name string) (*entry, error) {
	if e := r.byName[fold(name)]; e != nil {
		return e, nil
	}
	tools, reasoning, ok := strings.Cut(name, "+")
	if !ok {
		return nil, r.unknown(name)
	}
	switch {
	case strings.Contains(reasoning, "+"):
		return nil, &UnknownFamilyError{Name: name, known: r.Names()}
	case fold(tools) == "":
		return nil, &UnknownFamilyError{Name: name, refused: `the name begins with "+"; the family of the calls must come before it`}
	case fold(reasoning) == "":
		return nil, &UnknownFamilyError{Name: name, refused: `the name ends in "+"; the family of the reasoning must come after it`}
	}
	t, err := r.lookup(tools)
	if err != nil {
		return nil, err
	}
	re, err := r.lookup(reasoning)
	if err != nil {
		return nil, err
	}
	if e, ok := r.both.Load(pair{t, re}); ok {
		return e.(*entry), nil
	}
	if t.c == nil || re.c == nil {
		return nil, fmt.Errorf("parsers: %s: only grammars can be combined", name)
	}
	g, err := grammar.With(t.c.g, re.c.g)
	if err != nil {
		return nil, err
	}
	if g == t.c.g {
		return t, nil
	}
	c, err := compile(g)
	if err != nil {
		return nil, err
	}
	e, _ := r.both.LoadOrStore(pair{t, re}, &entry{name: g.Name, c: c})
	return e.(*entry), nil
}

// unknown returns the error for a name that is not in r.
func (r *Registry) unknown(name string) error {
	model, _ := LookupModel(name)
	return &UnknownFamilyError{Name: name, Near: r.near(name, model != ""), Model: model, known: r.Names(), refused: refused(name)}
}

// refused returns why there is no family of a name that another engine registers, or "".
func refused(name string) string {
	switch fold(name) {
	case "xing40", "xingchen4", "iquestcoder", "openpanguv2":
		return "no public template, parser or recorded output documents its format"
	case "k2horizon":
		return "its arguments have elements for their types, which SGLang's k2_horizon parser documents and no grammar describes yet"
	case "plamo3":
		return "its calls have tags of several tokens inside a block, as in the plamo3 parsers of vLLM and SGLang, and no grammar describes that yet"
	case "hyperclovaxseedthink":
		return "its values are JSON or raw text, whatever their type, as in vLLM's parser, and no grammar describes that yet"
	case "solaropen":
		return "it writes calls as a message, as in upstage-Solar-Open-100B.jinja of llama.cpp, and no grammar describes that yet"
	case "functionary", "functionaryv32":
		return "Functionary 3.2 writes messages to recipients without an end, as in meetkai-functionary-medium-v3.2.jinja of llama.cpp, " +
			"and no grammar describes that yet; functionary_v3_1 is the format of version 3.1"
	case "musespark", "musespark1x", "musesparkopen":
		return "Muse Spark routes other messages to text than Muse Glimmer, as in vLLM's muse parser, and no grammar describes that yet"
	case "minicpmv":
		return "it writes line feeds as escape sequences, as in vLLM's minicpmv parser, and no grammar describes that yet"
	case "beam", "hf", "responsetemplate":
		return "its format is a response_template of transformers, which this package does not read"
	case "glm4":
		return "the format of GLM-4 before 4.5, a name on a line and JSON without any tag, cannot be distinguished from text"
	}
	return ""
}

// New returns a parser of the family called name, as [Registry.Lookup] understands it. Nil options are defaults. The
// error comes from Lookup or from the user's own parser.
func (r *Registry) New(name string, opt *Options) (*Parser, error) {
	e, err := r.lookup(name)
	if err != nil {
		return nil, err
	}
	if err := opt.check(); err != nil {
		return nil, err
	}
	if e.c != nil {
		return newParser(e.c, opt), nil
	}
	if opt == nil {
		opt = &Options{}
	}
	s, err := e.make(opt)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, fmt.Errorf("parsers: %s: its function returned no Stream", e.name)
	}
	return wrap(s, opt.Choice), nil
}

// New returns a parser of the family called name in the default registry. Nil options are defaults. The error is an
// *UnknownFamilyError, or reports why two families cannot be combined.
func New(name string, opt *Options) (*Parser, error) { return Default().New(name, opt) }

// near returns up to three known names that are similar to name or that name abbreviates, the nearest first. For the
// name of a model, abbreviations are ignored.
func (r *Registry) near(name string, model bool) []string {
	type cand struct {
		name string
		dist int
	}
	var cands []cand
	f := fold(name)
	for n := range r.byName {
		d, limit := distance(f, n), min(3, (len(f)+1)/3)
		if !model && len(f) > 1 && (strings.HasPrefix(n, f) || len(n) > 2 && strings.HasPrefix(f, n)) {
			limit = d
		}
		if d <= limit {
			cands = append(cands, cand{r.byName[n].name, d})
		}
	}
	slices.SortFunc(cands, func(a, b cand) int {
		return cmp.Or(cmp.Compare(a.dist, b.dist), strings.Compare(a.name, b.name))
	})
	var out []string
	for _, c := range cands {
		if !slices.Contains(out, c.name) && len(out) < 3 {
			out = append(out, c.name)
		}
	}
	return out
}

// fold maps the usual spellings of a name to one.
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

// Events parses deltas with p and yields the events one by one, in order, up to and including the event.Finish. The
// engine's finish reason is treated as unknown. An error ends the range. The Data of an event is valid until the next
// iteration.
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
			if evs, err = p.Append(evs[:0], d); !deliver(err) {
				return
			}
		}
		var err error
		evs, err = p.Finish(evs[:0], event.None)
		deliver(err)
	}
}
