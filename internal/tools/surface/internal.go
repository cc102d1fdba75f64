// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/types"
	"io"
	"slices"
	"strings"
)

// exceptions are symbols that may mention a type of an internal package, with the reason.
var exceptions = map[string]string{}

// checkInternal lists the exported symbols and fields whose types mention a type of an internal package, which users cannot
// name. It returns an error if there are any besides the exceptions.
func checkInternal(w io.Writer, root string) error {
	pkgs, err := load(root, 0, false)
	if err != nil {
		return err
	}
	var lines []string
	used := map[string]bool{}
	for _, p := range pkgs {
		if p.Name == "main" || !ours(p) {
			continue
		}
		for _, m := range mentions(p.Types) {
			name := below(p.PkgPath) + "." + m.name
			if exceptions[name] != "" {
				used[name] = true
				continue
			}
			lines = append(lines, name+": "+m.what)
		}
	}
	for name := range exceptions {
		if !used[name] {
			lines = append(lines, name+": the exception is not needed")
		}
	}
	slices.Sort(lines)
	for _, l := range lines {
		fmt.Fprintln(w, l)
	}
	if len(lines) > 0 {
		return fmt.Errorf("%d exported symbols mention internal types", len(lines))
	}
	return nil
}

// A mention is a type of an internal package in the type of an exported symbol.
type mention struct{ name, what string }

// mentions returns the mentions of internal types by the exported symbols of p.
func mentions(p *types.Package) []mention {
	var all []mention
	for _, name := range p.Scope().Names() {
		obj := p.Scope().Lookup(name)
		if !obj.Exported() {
			continue
		}
		tn, ok := obj.(*types.TypeName)
		if !ok {
			all = report(all, name, obj.Type())
			continue
		}
		if alias, ok := tn.Type().(*types.Alias); ok {
			all = report(all, name, alias.Rhs())
			continue
		}
		named, ok := tn.Type().(*types.Named)
		if !ok {
			continue
		}
		all = report(all, name, named.Underlying())
		for tp := range named.TypeParams().TypeParams() {
			all = report(all, name, tp.Constraint())
		}
		set := types.NewMethodSet(types.NewPointer(named)) // with promoted methods
		if types.IsInterface(named) {
			continue // its methods are in the underlying type
		}
		for m := range set.Methods() {
			if m.Obj().Exported() {
				all = report(all, name+"."+m.Obj().Name(), m.Obj().Type())
			}
		}
	}
	return all
}

// report adds a mention for each internal type in t. For a struct or an interface it is a mention by its field or method.
func report(all []mention, name string, t types.Type) []mention {
	var what []string
	w := walker{seen: map[types.Type]bool{}}
	w.found = func(member string, tn *types.TypeName) {
		s := below(tn.Pkg().Path()) + "." + tn.Name()
		if member != "" {
			s = member + " " + s
		}
		if !slices.Contains(what, s) {
			what = append(what, s)
		}
	}
	w.walk("", t)
	if len(what) == 0 {
		return all
	}
	return append(all, mention{name, strings.Join(what, ", ")})
}

// A walker visits what a user can reach in a type without going through another symbol.
type walker struct {
	seen  map[types.Type]bool
	found func(member string, tn *types.TypeName)
}

func (w *walker) walk(member string, t types.Type) {
	if w.seen[t] {
		return
	}
	w.seen[t] = true
	switch t := t.(type) {
	case *types.Named:
		w.name(member, t.Obj())
		for a := range t.TypeArgs().Types() {
			w.walk(member, a)
		}
	case *types.Alias: // the aliased type is reported at the alias
		w.name(member, t.Obj())
		for a := range t.TypeArgs().Types() {
			w.walk(member, a)
		}
	case *types.Pointer:
		w.walk(member, t.Elem())
	case *types.Slice:
		w.walk(member, t.Elem())
	case *types.Array:
		w.walk(member, t.Elem())
	case *types.Chan:
		w.walk(member, t.Elem())
	case *types.Map:
		w.walk(member, t.Key())
		w.walk(member, t.Elem())
	case *types.Tuple:
		for v := range t.Variables() {
			w.walk(member, v.Type())
		}
	case *types.Signature:
		for tp := range t.TypeParams().TypeParams() {
			w.walk(member, tp.Constraint())
		}
		w.walk(member, t.Params())
		w.walk(member, t.Results())
	case *types.Union:
		for term := range t.Terms() {
			w.walk(member, term.Type())
		}
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() || f.Embedded() {
				w.walk(join(member, f.Name()), f.Type())
			}
			if f.Embedded() && !f.Exported() { // its exported fields are promoted
				w.walk(join(member, f.Name()), deref(f.Type()).Underlying())
			}
		}
	case *types.Interface:
		for m := range t.ExplicitMethods() {
			if m.Exported() {
				w.walk(join(member, m.Name()), m.Type())
			}
		}
		for e := range t.EmbeddedTypes() {
			w.walk(member, e)
		}
	}
}

// name reports a type name of an internal package.
func (w *walker) name(member string, tn *types.TypeName) {
	if tn.Pkg() == nil || !strings.HasPrefix(tn.Pkg().Path(), base) {
		return
	}
	if slices.Contains(strings.Split(tn.Pkg().Path(), "/"), "internal") {
		w.found(member, tn)
	}
}

func join(member, name string) string {
	if member == "" {
		return name
	}
	return member + "." + name
}

func deref(t types.Type) types.Type {
	if p, ok := t.(*types.Pointer); ok {
		return p.Elem()
	}
	return t
}
