// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// check type-checks a package that may import the others.
func check(t *testing.T, path, src string, others ...*types.Package) *types.Package {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	conf := types.Config{Importer: from(others)}
	p, err := conf.Check(path, fset, []*ast.File{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

type from []*types.Package

func (f from) Import(path string) (*types.Package, error) {
	for _, p := range f {
		if p.Path() == path {
			return p, nil
		}
	}
	return importer.Default().Import(path)
}

func TestMentions(t *testing.T) {
	in := check(t, base+"m/internal/in", `package in
type T struct{ Field int }
func (T) Method() {}
type I interface{ M() }
type G[X any] struct{}
`)
	p := check(t, base+"m/p", `package p
import "github.com/weft-go/weft/m/internal/in"
type (
	Alias = in.T
	Own struct{ ok in.T; Bad []*in.T }
	Embeds struct{ in.T }
	Hidden struct{ hidden }
	hidden struct{ Promoted map[string]in.T }
	Iface interface{ F(func() in.T) }
	EmbedsI interface{ in.I }
	Param[X in.I] struct{}
	Arg struct{ X in.G[int] }
	Fine struct{ Nested struct{ A Alias }; x in.T; F func(Own) Alias }
	Def in.T
)
func (Fine) Bad(...in.T) {}
func (*Fine) Good(Alias) Own { return Own{} }
func (hidden) Method() in.T { return in.T{} }
func F() (chan in.T, error) { return nil, nil }
func OK(int) Alias { return Alias{} }
var V in.T
const C = 1
`, in)
	var got []string
	for _, m := range mentions(p) {
		got = append(got, m.name+": "+strings.ReplaceAll(m.what, "m/internal/", ""))
	}
	slices.Sort(got)
	want := []string{
		"Alias: in.T", "Arg: X in.G", "Embeds: T in.T", "EmbedsI: in.I", "F: in.T", "Fine.Bad: in.T", "Hidden.Method: in.T",
		"Hidden: hidden.Promoted in.T", "Iface: F in.T", "Own: Bad in.T", "Param: in.I", "V: in.T",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestCounts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "parsers", "p")
	write := func(name, src string) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.go", `package p
const A, b = 1, 2
type T struct { X, y int; Z struct{ W int }; T2 }
type T2 interface { M(); n() }
func F() {}
func (*T) Method() {}
func (t) Method() {}
type t struct{}
`)
	write("a_test.go", "package p\nfunc Test() {}\n")
	write("gen.go", "//go:build ignore\n\npackage main\nfunc Exported() {}\n")
	names, fields, err := exported(dir)
	if want := []string{"A", "F", "T", "T.Method", "T2", "T2.M"}; err != nil || fields != 4 || !slices.Equal(names, want) {
		t.Errorf("%q, %d fields, %v, want %q, 4", names, fields, err, want)
	}

	root := filepath.Dir(filepath.Dir(dir))
	for _, m := range modules {
		if err := os.MkdirAll(filepath.Join(root, m), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(root, filepath.Dir(recorded)), 0o700); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run(&out, root, false, false, true); err != nil {
		t.Fatal(err)
	}
	if err := run(&out, root, false, true, false); err != nil || out.Len() > 0 {
		t.Errorf("unchanged: %v, %s", err, &out)
	}
	write("b.go", "package p\nfunc More() {}\n")
	if err := run(&out, root, false, true, false); err == nil || !strings.Contains(out.String(), "parsers/p                            7     4") {
		t.Errorf("one more: %v, %s", err, &out)
	}
}
