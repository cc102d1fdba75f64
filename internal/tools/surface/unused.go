// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/types"
	"io"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// printUnused lists the exported symbols and fields that neither another package nor an Example uses. A use through an
// interface is not seen, so a line is a hint, not proof.
func printUnused(w io.Writer, root string) error {
	pkgs, err := load(root, packages.NeedSyntax|packages.NeedTypesInfo|packages.NeedImports|packages.NeedDeps|packages.NeedForTest, true)
	if err != nil {
		return err
	}
	// A symbol is named by its position, as a package and its test variants have objects of their own.
	type symbol struct{ pkg, name string }
	declaredAt := map[string]symbol{}
	usedAt := map[string]uint8{} // 1: by another package, 2: by an Example, 4: by a test
	for _, p := range pkgs {
		path := strings.TrimSuffix(p.PkgPath, "_test")
		for _, f := range p.Syntax {
			file := p.Fset.Position(f.Pos()).Filename
			test := strings.HasSuffix(file, "_test.go")
			ast.Inspect(f, func(n ast.Node) bool {
				if fd, ok := n.(*ast.FuncDecl); ok {
					kind := uint8(1)
					if test {
						kind = 4
						if strings.HasPrefix(fd.Name.Name, "Example") {
							kind = 2
						}
					}
					ast.Inspect(fd, func(n ast.Node) bool { return note(p, path, n, kind, usedAt) })
					return false
				}
				kind := uint8(1)
				if test {
					kind = 4
				}
				return note(p, path, n, kind, usedAt)
			})
		}
		if p.Types == nil || p.Name == "main" || !ours(p) {
			continue
		}
		for _, sym := range objects(p.Types) {
			declaredAt[p.Fset.Position(sym.obj.Pos()).String()] = symbol{below(path), sym.name}
		}
	}
	var lines []string
	for pos, s := range declaredAt {
		switch u := usedAt[pos]; {
		case u&3 != 0:
		case u&4 != 0:
			lines = append(lines, s.pkg+"\t"+s.name+"\ttests only")
		default:
			lines = append(lines, s.pkg+"\t"+s.name+"\tunused")
		}
	}
	slices.Sort(lines)
	for _, l := range lines {
		fmt.Fprintln(w, l)
	}
	return nil
}

// note records the use of an object of another package, or of the same package by an Example.
func note(p *packages.Package, path string, n ast.Node, kind uint8, used map[string]uint8) bool {
	id, ok := n.(*ast.Ident)
	if !ok {
		return true
	}
	obj := p.TypesInfo.Uses[id]
	if obj == nil || obj.Pkg() == nil {
		return true
	}
	if v, ok := obj.(*types.Var); ok {
		obj = v.Origin()
	}
	if f, ok := obj.(*types.Func); ok {
		obj = f.Origin()
	}
	if strings.TrimSuffix(obj.Pkg().Path(), "_test") == path && kind == 1 {
		return true
	}
	used[p.Fset.Position(obj.Pos()).String()] |= kind
	return true
}

type object struct {
	obj  types.Object
	name string
}

// objects returns the exported symbols and fields of a package.
func objects(p *types.Package) []object {
	var out []object
	for _, name := range p.Scope().Names() {
		obj := p.Scope().Lookup(name)
		if !obj.Exported() {
			continue
		}
		out = append(out, object{obj, name})
		tn, ok := obj.(*types.TypeName)
		if !ok || tn.IsAlias() {
			continue
		}
		named, ok := tn.Type().(*types.Named)
		if !ok {
			continue
		}
		for m := range named.Methods() {
			if m.Exported() {
				out = append(out, object{m, name + "." + m.Name()})
			}
		}
		switch u := named.Underlying().(type) {
		case *types.Interface:
			for m := range u.ExplicitMethods() {
				if m.Exported() {
					out = append(out, object{m, name + "." + m.Name()})
				}
			}
		case *types.Struct:
			for f := range u.Fields() {
				if f.Exported() {
					out = append(out, object{f, name + "." + f.Name() + " (field)"})
				}
			}
		}
	}
	return out
}

// ours reports whether p is a package that users import.
func ours(p *packages.Package) bool {
	if strings.HasSuffix(p.PkgPath, "_test") || strings.HasSuffix(p.PkgPath, ".test") || strings.Contains(p.PkgPath, "/internal/") {
		return false
	}
	m, _, _ := strings.Cut(below(p.PkgPath), "/")
	return slices.Contains(modules, m)
}
